//! Buckets of a server, with the output and the errors of those in a directory.

use std::time::Duration;

use esker::Value;
use esker_client::{Call, Client, Code, KeyRange};
use esker_server::session::AdminTask;

use super::{missing, parse, write_entry, write_value};
use crate::arguments::{BucketCommand, GetEntryArguments, PutEntryArguments, ScanArguments};
use crate::failure::Result;
use crate::output::printable;
use crate::{Console, remote};

/// Entries that are requested at a time.
const PAGE_ENTRIES: usize = 1_000;
/// How often an entry is looked for again that somebody else puts at the same time.
const ATTEMPTS_MAX: usize = 8;

pub(super) fn run(address: &str, command: &BucketCommand, console: &mut Console<'_>) -> Result<()> {
    let mut client = remote::connect(address)?;
    match command {
        BucketCommand::List { .. } => {
            for name in client.call(&Call::buckets())?.names()? {
                writeln!(console.out, "{}", printable(&name))?;
            }
            Ok(())
        }
        BucketCommand::Create { bucket, ttl, .. } => {
            create(&mut client, bucket, *ttl)?;
            Ok(writeln!(console.err, "created bucket {}", printable(bucket))?)
        }
        BucketCommand::Get(arguments) => get(&mut client, arguments, console),
        BucketCommand::Put(arguments) => put(&mut client, arguments, console),
        BucketCommand::Delete { bucket, key, prefix, .. } => {
            let removed = match (key, prefix) {
                (Some(key), _) => u64::from(remove(&mut client, bucket, key)?),
                (None, Some(prefix)) => remove_prefix(&mut client, bucket, &parse(prefix)?)?,
                (None, None) => 0,
            };
            super::tell_removed(bucket, key.as_deref(), removed, console)
        }
        BucketCommand::Scan(arguments) => scan(&mut client, arguments, console),
    }
}

fn create(client: &mut Client, bucket: &str, ttl: Option<Duration>) -> Result<()> {
    let ttl_ms =
        ttl.map(|ttl| u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
    let task = AdminTask::CreateBucket { bucket: bucket.to_owned(), ttl_ms };
    remote::admin::<serde_json::Value>(client, &task).map(drop)
}

fn get(client: &mut Client, asked: &GetEntryArguments, console: &mut Console<'_>) -> Result<()> {
    let value = client.bucket_get(&asked.bucket, parse(&asked.key)?)?;
    let value = value.ok_or_else(|| missing(&asked.bucket, &asked.key))?;
    write_value(&value, asked.raw, console)
}

fn put(client: &mut Client, asked: &PutEntryArguments, console: &mut Console<'_>) -> Result<()> {
    let entry = (parse(&asked.key)?, parse(&asked.value)?);
    let put = Call::bucket_put_for(&asked.bucket, asked.ttl, &[(&entry.0, &entry.1)]);
    match asked.if_absent {
        true => put_if_absent(client, asked, &entry.0, &put)?,
        false => drop(client.call(&put)?),
    }
    super::tell_put(console)
}

/// Looks and puts in one transaction, which fails where somebody else puts the entry meanwhile.
fn put_if_absent(
    client: &mut Client,
    asked: &PutEntryArguments,
    key: &[u8],
    put: &Call,
) -> Result<()> {
    let mut attempt = 1;
    loop {
        client.begin()?;
        let done = match client.bucket_get(&asked.bucket, key) {
            Ok(Some(_)) => {
                client.rollback()?;
                return Err(super::is_there(&asked.bucket, &asked.key));
            }
            Ok(None) => client.call(put).and_then(|_| client.commit()),
            Err(e) => Err(e),
        };
        let Err(e) = done else { return Ok(()) };
        // A commit that failed has ended the transaction.
        let _ = client.rollback();
        match e.code() {
            Some(Code::Conflict) if attempt < ATTEMPTS_MAX => {}
            Some(Code::NotFound) if attempt < ATTEMPTS_MAX => {
                // Another client may put it first.
                let made = create(client, &asked.bucket, None);
                if attempt > 1 {
                    made?;
                }
            }
            _ => return Err(e.into()),
        }
        attempt += 1;
    }
}

fn remove(client: &mut Client, bucket: &str, key: &str) -> Result<bool> {
    Ok(client.bucket_remove(bucket, parse(key)?)?)
}

/// Removes all entries whose keys begin so, in one commit.
fn remove_prefix(client: &mut Client, bucket: &str, prefix: &[u8]) -> Result<u64> {
    // That it is a bucket, and no table that has a key.
    let first = KeyRange { limit: Some(1), ..KeyRange::default() };
    client.call(&Call::bucket_range(bucket, &first))?;
    let (mut text, mut bounds) = (String::from("\"key\" >= ?"), vec![Value::from(prefix)]);
    if let Some(after) = esker_server::session::after_prefix(prefix) {
        text += " AND \"key\" < ?";
        bounds.push(Value::from(after.as_slice()));
    }
    let text = format!("DELETE FROM {} WHERE {text}", remote::quoted(bucket));
    Ok(client.sql(&text, &bounds)?.changed())
}

/// Entries of one moment, some at a time.
fn scan(client: &mut Client, asked: &ScanArguments, console: &mut Console<'_>) -> Result<()> {
    let prefix = parse(asked.prefix.as_deref().unwrap_or_default())?;
    let from = asked.from.as_deref().map(parse).transpose()?;
    let (mut first, mut end) = match (from, asked.reverse) {
        (Some(key), true) => (None, Some(behind(key))),
        (from, _) => (from, None),
    };
    let mut left = asked.limit.unwrap_or(usize::MAX);
    client.call(&Call::begin(false, true))?;
    while left > 0 {
        let limit = left.min(PAGE_ENTRIES);
        let range = KeyRange {
            from: first.as_deref(),
            to: end.as_deref(),
            prefix: Some(&prefix),
            limit: Some(limit as u64),
            reverse: asked.reverse,
        };
        let reply = client.call(&Call::bucket_range(&asked.bucket, &range));
        let entries = reply?.entries()?;
        for (key, value) in &entries {
            write_entry(key, value, asked.keys, console)?;
        }
        left -= entries.len();
        match entries.into_iter().nth(limit - 1) {
            Some((last, _)) if asked.reverse => end = Some(last),
            Some((last, _)) => first = Some(behind(last)),
            None => break,
        }
    }
    Ok(client.rollback()?)
}

/// The first key behind another.
fn behind(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
