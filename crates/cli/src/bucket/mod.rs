//! `esker bucket list DB`, `create DB NAME`, and `get`, `put`, `delete` and `scan` of one.
//!
//! A key or a value is text, or bytes as pairs of hexadecimal digits behind `0x`. What is written
//! out has the same form: text where it is text that no terminal takes for something else.

mod remote;

use std::ops::Bound;
use std::path::Path;

use esker::{BucketOptions, Entry, Options, PutOptions, Ttl};
use esker_format::text::parse_hex;

use crate::arguments::{BucketCommand, GetEntryArguments, PutEntryArguments, ScanArguments};
use crate::compact::open_to_write;
use crate::failure::{Failure, Result, Status};
use crate::output::printable;
use crate::{Console, sql, units};

/// What stands before hexadecimal digits.
const HEX: &str = "0x";

pub(crate) fn run(command: &BucketCommand, console: &mut Console<'_>) -> Result<()> {
    if let Some(address) = crate::remote::address(directory(command)) {
        return remote::run(address, command, console);
    }
    match command {
        BucketCommand::List { db } => {
            for name in sql::open_to_read(db)?.buckets() {
                writeln!(console.out, "{}", printable(&name))?;
            }
            Ok(())
        }
        BucketCommand::Create { db, bucket, ttl } => {
            let options = ttl.map_or(BucketOptions::new(), |ttl| BucketOptions::new().ttl(ttl));
            let database = Options::new().open(db)?;
            database.create_bucket(bucket, &options)?;
            database.close()?;
            writeln!(console.err, "created bucket {}", printable(bucket))?;
            Ok(())
        }
        BucketCommand::Get(arguments) => get(arguments, console),
        BucketCommand::Put(arguments) => put(arguments, console),
        BucketCommand::Delete { db, bucket, key, prefix } => {
            let database = open_to_write(db)?;
            let removed = {
                let bucket = database.existing_bucket(bucket)?;
                match (key, prefix) {
                    (Some(key), _) => u64::from(bucket.remove(parse(key)?)?),
                    (None, Some(prefix)) => bucket.remove_prefix(parse(prefix)?)?,
                    (None, None) => 0,
                }
            };
            database.close()?;
            tell_removed(bucket, key.as_deref(), removed, console)
        }
        BucketCommand::Scan(arguments) => scan(arguments, console),
    }
}

fn get(arguments: &GetEntryArguments, console: &mut Console<'_>) -> Result<()> {
    let database = sql::open_to_read(&arguments.db)?;
    let value = database.existing_bucket(&arguments.bucket)?.get(parse(&arguments.key)?)?;
    let value = value.ok_or_else(|| missing(&arguments.bucket, &arguments.key))?;
    write_value(&value, arguments.raw, console)
}

fn put(arguments: &PutEntryArguments, console: &mut Console<'_>) -> Result<()> {
    let (key, value) = (parse(&arguments.key)?, parse(&arguments.value)?);
    let ttl = arguments.ttl.map_or(Ttl::Default, Ttl::After);
    let database = Options::new().open(&arguments.db)?;
    let bucket = database.bucket(&arguments.bucket)?;
    if arguments.if_absent {
        if bucket.put_if_absent(key, value, ttl)?.is_some() {
            return Err(is_there(&arguments.bucket, &arguments.key));
        }
    } else {
        bucket.put_with(key, value, PutOptions::new().ttl(ttl))?;
    }
    drop(bucket);
    database.close()?;
    tell_put(console)
}

fn scan(arguments: &ScanArguments, console: &mut Console<'_>) -> Result<()> {
    let database = sql::open_to_read(&arguments.db)?;
    let bucket = database.existing_bucket(&arguments.bucket)?;
    let prefix = parse(arguments.prefix.as_deref().unwrap_or_default())?;
    let from = arguments.from.as_deref().map(parse).transpose()?;
    let found = match (&from, arguments.reverse) {
        (None, _) => bucket.prefix(&prefix)?,
        (Some(from), false) => {
            bucket.range::<[u8], _>((Bound::Included(&**from), Bound::Unbounded))?
        }
        (Some(from), true) => {
            bucket.range::<[u8], _>((Bound::Unbounded, Bound::Included(&**from)))?
        }
    };
    let most = arguments.limit.unwrap_or(usize::MAX);
    let ordered: Box<dyn Iterator<Item = esker::Result<Entry>>> = match arguments.reverse {
        true => Box::new(found.rev()),
        false => Box::new(found),
    };
    for entry in ordered.take(most) {
        let entry = entry?;
        write_entry(entry.key(), entry.value(), arguments.keys, console)?;
    }
    Ok(())
}

fn is_there(bucket: &str, key: &str) -> Failure {
    Failure::usage(format!("bucket {bucket:?} has the key {key} already"))
}

fn tell_put(console: &mut Console<'_>) -> Result<()> {
    Ok(writeln!(console.err, "put {}", entries(1))?)
}

fn tell_removed(
    bucket: &str,
    key: Option<&str>,
    removed: u64,
    console: &mut Console<'_>,
) -> Result<()> {
    match key {
        Some(key) if removed == 0 => Err(missing(bucket, key)),
        _ => Ok(writeln!(console.err, "removed {}", entries(removed))?),
    }
}

fn write_value(value: &[u8], raw: bool, console: &mut Console<'_>) -> Result<()> {
    match raw {
        true => console.out.write_all(value)?,
        false => writeln!(console.out, "{}", shown(value))?,
    }
    Ok(())
}

fn write_entry(key: &[u8], value: &[u8], keys: bool, console: &mut Console<'_>) -> Result<()> {
    match keys {
        true => writeln!(console.out, "{}", shown(key))?,
        false => writeln!(console.out, "{}\t{}", shown(key), shown(value))?,
    }
    Ok(())
}

fn missing(bucket: &str, key: &str) -> Failure {
    Failure::new(Status::NotFound, format!("bucket {bucket:?} has no key {key}"))
}

fn entries(count: u64) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{} entries", units::count(count)),
    }
}

/// The bytes that are meant.
fn parse(text: &str) -> Result<Vec<u8>> {
    let Some(digits) = text.strip_prefix(HEX) else { return Ok(text.as_bytes().to_vec()) };
    parse_hex(digits.as_bytes()).filter(|_| !digits.starts_with('\\')).ok_or_else(|| {
        Failure::usage(format!("expected pairs of hexadecimal digits behind 0x, found {text:?}"))
    })
}

/// Bytes as [`parse`] takes them.
fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if printable(text) == text && !text.starts_with(HEX) => text.to_owned(),
        _ => bytes.iter().fold(HEX.to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}

/// The database of a command.
fn directory(command: &BucketCommand) -> &Path {
    match command {
        BucketCommand::List { db }
        | BucketCommand::Create { db, .. }
        | BucketCommand::Delete { db, .. } => db,
        BucketCommand::Get(arguments) => &arguments.db,
        BucketCommand::Put(arguments) => &arguments.db,
        BucketCommand::Scan(arguments) => &arguments.db,
    }
}
