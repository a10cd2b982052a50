//! Rows and entries by key, without a copy between socket and row.

use esker::ValueRef;
use esker_wire::value::{read_key_into, write};
use esker_wire::{Kind, Reader, pack};

use super::encode;
use crate::Result;
use crate::session::{Level, Session};

/// Keys that a request may have to be answered at once, without leaving the runtime.
pub(super) const KEYS_AT_ONCE: usize = 128;

/// The kinds that are answered here, outside of transactions.
pub(super) fn is_point(kind: Kind) -> bool {
    matches!(kind, Kind::Get | Kind::Exists | Kind::BucketGet)
}

/// How many keys or rows the array of a request's last value has, as far as the first bytes say.
pub(super) fn key_count(kind: Kind, payload: &[u8]) -> usize {
    let mut reader = Reader::new(payload);
    let count = || {
        reader.array()?;
        reader.text()?;
        if matches!(kind, Kind::Insert | Kind::BucketPut) {
            reader.token()?;
        }
        reader.array()
    };
    let mut count = count;
    count().unwrap_or(0)
}

/// Answers a request for rows or values by key.
pub(super) fn answer(session: &Session, kind: Kind, id: u32, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut result = Ok(());
    encode::done(out, id, |out| result = find(session, kind, payload, out));
    if let Err(e) = result {
        out.truncate(start);
        encode::error(out, id, &e);
    }
}

fn find(session: &Session, kind: Kind, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let reader = &mut Reader::new(payload);
    reader.array_of(2)?;
    let name = reader.text()?;
    let count = reader.array()?;
    session.expect(Level::Read, Some(name))?;
    pack::array(out, count);
    match kind {
        Kind::BucketGet => values(session, name, (reader, count), out)?,
        _ => rows(session, kind == Kind::Get, name, (reader, count), out)?,
    }
    reader.finish()?;
    Ok(())
}

fn rows(
    session: &Session,
    whole: bool,
    name: &str,
    (reader, count): (&mut Reader<'_>, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    let table = session.database().table(name)?;
    // One row is of one commit anyway.
    let snapshot = if count > 1 { Some(table.snapshot()?) } else { None };
    let mut key: Vec<ValueRef<'_>> = Vec::with_capacity(4);
    for _ in 0..count {
        read_key_into(reader, &mut key)?;
        let visit = |row: &esker::RowRef<'_>| {
            if whole {
                let fields = row.schema().fields().len();
                pack::array(out, fields);
                for position in 0..fields {
                    write(out, row.value(position)?);
                }
            }
            Ok(())
        };
        let found = match &snapshot {
            Some(snapshot) => snapshot.visit(&key, visit)?,
            None => table.visit(&key, visit)?,
        };
        match (whole, found) {
            (true, None) => pack::nil(out),
            (true, Some(())) => {}
            (false, found) => pack::bool(out, found.is_some()),
        }
    }
    Ok(())
}

fn values(
    session: &Session,
    name: &str,
    (reader, count): (&mut Reader<'_>, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    // A bucket is not made by reading.
    session.database().table(name)?;
    let bucket = session.database().bucket(name)?;
    if count == 1 {
        let found = bucket.read(reader.bytes()?, |value| pack::bytes(out, value))?;
        found.unwrap_or_else(|| pack::nil(out));
        return Ok(());
    }
    let snapshot = bucket.snapshot()?;
    for _ in 0..count {
        match snapshot.get(reader.bytes()?)? {
            Some(value) => pack::bytes(out, &value),
            None => pack::nil(out),
        }
    }
    Ok(())
}
