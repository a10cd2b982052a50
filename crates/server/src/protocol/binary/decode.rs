//! Frames to requests.

use std::time::Duration;

use esker::{Isolation, RowUpdate, Value};
use esker_wire::pack::Token;
use esker_wire::value::{read_key, read_owned, read_values};
use esker_wire::{Kind, Reader};

use crate::session::{AdminTask, Conflict, EntryRange, Expiry, Fields, Key, Request, Rows};
use crate::{Error, Result};

impl From<esker_wire::Error> for Error {
    fn from(e: esker_wire::Error) -> Self {
        Self::invalid(e.to_string())
    }
}

/// What a frame asks. Not of those that are about the connection or a bulk load.
pub(super) fn request(kind: Kind, payload: &[u8]) -> Result<Request> {
    let reader = &mut Reader::new(payload);
    let request = read(kind, reader)?;
    reader.finish()?;
    Ok(request)
}

/// A write that is done once: its key, what it asks without one, and the payload of that.
pub(super) fn once(payload: &[u8]) -> Result<(&str, Kind, &[u8])> {
    let mut reader = Reader::new(payload);
    reader.array_of(3)?;
    let (key, code) = (reader.text()?, reader.uint()?);
    let kind = u8::try_from(code).ok().and_then(Kind::of).filter(|kind| writes(*kind));
    let kind = kind.ok_or_else(|| {
        Error::invalid(format!("idempotency-key: expected the code of a write, found {code:#04x}"))
    })?;
    Ok((key, kind, payload.get(reader.position()..).unwrap_or_default()))
}

/// True of requests that may change something by themselves.
fn writes(kind: Kind) -> bool {
    use Kind::{Append, AppendColumns, Delete, Insert, Sql, Update, UpdateMany};
    let rows = [Insert, Update, UpdateMany, Delete, Sql, Append, AppendColumns];
    let entries = [Kind::BucketPut, Kind::BucketRemove, Kind::BucketIncrement];
    rows.contains(&kind) || entries.contains(&kind)
}

fn read(kind: Kind, reader: &mut Reader<'_>) -> Result<Request> {
    Ok(match kind {
        Kind::Ping => Request::Ping,
        Kind::Tables => Request::Tables,
        Kind::Buckets => Request::Buckets,
        Kind::Commit => Request::Commit,
        Kind::Rollback => Request::Rollback,
        Kind::Schema => Request::Schema { table: first_text(reader, 1)? },
        Kind::Query => Request::Query { json: first_text(reader, 1)? },
        Kind::Explain => Request::Explain { json: first_text(reader, 1)? },
        Kind::Admin => Request::Admin(AdminTask::parse(&first_text(reader, 1)?)?),
        Kind::Get | Kind::Exists | Kind::Delete => by_keys(kind, reader)?,
        Kind::Insert => {
            let table = first_text(reader, 3)?;
            let conflict = if reader.bool()? { Conflict::Replace } else { Conflict::Fail };
            Request::Insert { table, rows: rows(reader)?, conflict }
        }
        Kind::Update => {
            let table = first_text(reader, 3)?;
            let (key, fields) = owned(update(reader)?);
            Request::Update { table, key, fields }
        }
        Kind::UpdateMany => {
            let table = first_text(reader, 2)?;
            let count = reader.array()?;
            expect_pairs(count, "the fields behind every key")?;
            let updates = (0..count / 2).map(|_| update(reader).map(owned));
            let updates = updates.collect::<Result<_>>()?;
            Request::UpdateMany { table, updates }
        }
        Kind::Sql => {
            let text = first_text(reader, 2)?;
            let parameters = parameters(&text, reader)?;
            Request::Sql { text: text.into(), parameters }
        }
        Kind::Begin => {
            reader.array_of(2)?;
            let isolation =
                if reader.bool()? { Isolation::Serializable } else { Isolation::Snapshot };
            Request::Begin { isolation, read_only: reader.bool()? }
        }
        _ => return entries(kind, reader),
    })
}

/// True when a map comes next.
pub(super) fn is_map(reader: &Reader<'_>) -> Result<bool> {
    let mut ahead = *reader;
    Ok(matches!(ahead.token()?, Token::Map(_)))
}

/// Rows, all of them arrays with a value for every field, or all maps of fields.
fn rows(reader: &mut Reader<'_>) -> Result<Rows> {
    let count = reader.array()?;
    if count == 0 || !is_map(reader)? {
        let rows = (0..count).map(|_| read_values(reader));
        return Ok(Rows::Values(rows.collect::<esker_wire::Result<_>>()?));
    }
    let owned = |(name, value): (&str, Value)| (name.to_owned(), value);
    let row = |_| Ok(named(reader)?.into_iter().map(owned).collect());
    Ok(Rows::Named((0..count).map(row).collect::<Result<_>>()?))
}

/// The parameters of a statement by position: an array, or a map of the names that the text has.
fn parameters(text: &str, reader: &mut Reader<'_>) -> Result<Vec<Value>> {
    if !is_map(reader)? {
        return Ok(read_values(reader)?);
    }
    let colon = |(name, value): (&str, Value)| (format!(":{name}"), value);
    let named: Vec<(String, Value)> = named(reader)?.into_iter().map(colon).collect();
    Ok(esker_sql::named_parameters(text, &named)?)
}

/// A map of names and values.
pub(super) fn named<'b>(reader: &mut Reader<'b>) -> Result<Vec<(&'b str, Value)>> {
    let count = reader.map()?;
    let member = |_| Ok((reader.text()?, read_owned(reader)?));
    Ok((0..count).map(member).collect::<esker_wire::Result<_>>()?)
}

/// A key and a map of fields.
fn update<'b>(reader: &mut Reader<'b>) -> Result<RowUpdate<&'b str>> {
    let key = read_key(reader)?;
    Ok((key, named(reader)?))
}

fn owned((key, fields): RowUpdate<&str>) -> (Key, Fields) {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    (Key::Values(key), Fields::Values(fields.collect()))
}

/// The table, and how one row of it is changed, of a request to update or delete that; of a delete
/// there are no fields.
pub(super) fn row_change(kind: Kind, payload: &[u8]) -> Result<(&str, RowUpdate<&str>)> {
    let reader = &mut Reader::new(payload);
    let found = if kind == Kind::Update {
        reader.array_of(3)?;
        (reader.text()?, update(reader)?)
    } else {
        reader.array_of(2)?;
        let table = reader.text()?;
        reader.array_of(1)?;
        (table, (read_key(reader)?, Vec::new()))
    };
    reader.finish()?;
    Ok(found)
}

fn expect_pairs(count: usize, expected: &str) -> Result<()> {
    if !count.is_multiple_of(2) {
        return Err(Error::invalid(format!("expected {expected}, found {count} of both")));
    }
    Ok(())
}

fn by_keys(kind: Kind, reader: &mut Reader<'_>) -> Result<Request> {
    let table = first_text(reader, 2)?;
    let keys = (0..reader.array()?).map(|_| Ok(Key::Values(read_key(reader)?)));
    let keys = keys.collect::<esker_wire::Result<_>>()?;
    Ok(match kind {
        Kind::Get => Request::Get { table, keys },
        Kind::Exists => Request::Exists { table, keys },
        _ => Request::Delete { table, keys },
    })
}

fn entries(kind: Kind, reader: &mut Reader<'_>) -> Result<Request> {
    match kind {
        Kind::BucketGet | Kind::BucketRemove => {
            let bucket = first_text(reader, 2)?;
            let keys = (0..reader.array()?).map(|_| Ok(reader.bytes()?.to_vec()));
            let keys = keys.collect::<esker_wire::Result<_>>()?;
            Ok(match kind {
                Kind::BucketGet => Request::BucketGet { bucket, keys },
                _ => Request::BucketRemove { bucket, keys },
            })
        }
        Kind::BucketPut => {
            let bucket = first_text(reader, 3)?;
            let expiry = expiry(reader)?;
            let count = reader.array()?;
            expect_pairs(count, "a value behind every key")?;
            let entry = |_| Ok((reader.bytes()?.to_vec(), reader.bytes()?.to_vec()));
            let entries = (0..count / 2).map(entry).collect::<esker_wire::Result<_>>()?;
            Ok(Request::BucketPut { bucket, entries, expiry })
        }
        Kind::BucketIncrement => {
            let bucket = first_text(reader, 3)?;
            Ok(Request::BucketIncrement {
                bucket,
                key: reader.bytes()?.to_vec(),
                by: reader.int()?,
            })
        }
        Kind::BucketRange => {
            let bucket = first_text(reader, 6)?;
            let mut bytes = || {
                let bytes: Option<&[u8]> = reader.optional_bytes()?;
                Ok::<_, Error>(bytes.map(<[u8]>::to_vec))
            };
            let (from, to, prefix) = (bytes()?, bytes()?, bytes()?);
            let limit = reader.optional_uint()?;
            let limit = limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            let range = EntryRange { from, to, prefix, limit, reverse: reader.bool()? };
            Ok(Request::BucketRange { bucket, range })
        }
        _ => Err(Error::invalid(format!("a frame of kind {kind:?} asks nothing"))),
    }
}

/// When entries end: nil as the bucket says, false never, else so many milliseconds from now.
fn expiry(reader: &mut Reader<'_>) -> Result<Expiry> {
    match reader.token()? {
        Token::Nil => Ok(Expiry::Default),
        Token::Bool(false) => Ok(Expiry::Never),
        Token::Uint(ms) => Ok(Expiry::After(Duration::from_millis(ms))),
        other => Err(Error::invalid(format!(
            "expiry: expected nil, false or milliseconds, found {}",
            other.name()
        ))),
    }
}

/// The text that begins an array of so many values.
fn first_text(reader: &mut Reader<'_>, count: usize) -> Result<String> {
    reader.array_of(count)?;
    Ok(reader.text()?.to_owned())
}
