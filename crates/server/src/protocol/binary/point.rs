//! Rows and entries by key, without a copy between socket and row.

use esker::{ErrorKind, RowRef, ValueRef};
use esker_vfs::{Environment, parallel_map};
use esker_wire::frame::PAYLOAD_BYTES_MAX;
use esker_wire::value::{read_key_into, write};
use esker_wire::{Kind, Reader, pack};
use tokio::time::Instant;

use super::encode;
use crate::session::{Level, RequestSummary, Session, value_bytes};
use crate::{Code, Error, Result};

/// Keys that a request may have to be answered at once, without leaving the runtime.
pub(super) const KEYS_AT_ONCE: usize = 128;

/// Keys between two looks at whether anybody still wants the answer.
const CANCEL_KEYS: usize = 64;

/// Keys that one core looks up, of those of a request with many.
const PART_KEYS: usize = 512;

/// The kinds that are answered here, outside of transactions.
pub(super) fn is_point(kind: Kind) -> bool {
    matches!(kind, Kind::Get | Kind::Exists | Kind::BucketGet)
}

/// How many keys or rows the array of a request's last value has, as far as the first bytes say.
pub(super) fn key_count(kind: Kind, payload: &[u8]) -> usize {
    if kind == Kind::Update {
        return 1;
    }
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

/// Who asks, and since when.
#[derive(Clone, Copy)]
struct Asker<'s> {
    session: &'s Session,
    began: Instant,
}

impl Asker<'_> {
    /// Ends what is cancelled, what takes longer than a statement may, or what has become
    /// too large for a frame.
    fn expect_small(&self, out: &[u8]) -> Result<()> {
        self.session.expect_wanted()?;
        self.session.expect_in_time(self.began)?;
        if out.len() > PAYLOAD_BYTES_MAX {
            let most = PAYLOAD_BYTES_MAX as u64;
            return Err(Error::too_large_answer(most));
        }
        Ok(())
    }
}

/// What is written of an answer, with room for all that is in it.
struct Output<'o> {
    asker: Asker<'o>,
    out: &'o mut Vec<u8>,
    /// How long it is with all that there is room for.
    counted: usize,
}

impl<'o> Output<'o> {
    fn new(asker: Asker<'o>, out: &'o mut Vec<u8>) -> Self {
        let counted = out.len();
        Self { asker, out, counted }
    }

    /// Room for what has been written, and so many bytes more; what is small is reserved together.
    fn reserve(&mut self, more: usize) -> Result<()> {
        const TOGETHER_BYTES: usize = 4 << 10;
        let end = self.out.len() + more;
        if end.saturating_sub(self.counted) < TOGETHER_BYTES { Ok(()) } else { self.count(end) }
    }

    fn bytes(&mut self, value: &[u8]) -> Result<()> {
        self.reserve(value.len())?;
        pack::bytes(self.out, value);
        Ok(())
    }

    fn count(&mut self, end: usize) -> Result<()> {
        self.asker.session.take_answer(end.saturating_sub(self.counted))?;
        self.counted = self.counted.max(end);
        Ok(())
    }

    /// Room for the rest.
    fn finish(mut self) -> Result<()> {
        self.count(self.out.len())
    }
}

/// An error of the server, where one of the engine is expected.
fn as_engine_error(e: Error) -> esker::Error {
    esker::Error::new(ErrorKind::OverBudget, e.message().to_owned())
}

/// Answers a request for rows or values by key, in the room of the session; returns the code of its
/// error.
pub(super) fn answer(
    session: &Session,
    kind: Kind,
    id: u32,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Option<Code> {
    let start = out.len();
    let mut result = Ok(());
    let asker = Asker { session, began: Instant::now() };
    encode::done(out, id, |out| result = find(asker, kind, payload, out));
    session.note(asker.began.elapsed(), result.is_ok(), || words(kind, payload));
    let e = result.err()?;
    out.truncate(start);
    encode::error(out, id, &e);
    Some(e.code())
}

/// A request, for the list of what was slow.
pub(super) fn words(kind: Kind, payload: &[u8]) -> RequestSummary {
    let operation = match kind {
        Kind::BucketGet => "bucket_get",
        Kind::Exists => "exists",
        _ => "get",
    };
    let mut reader = Reader::new(payload);
    let place = reader.array().and_then(|_| reader.text());
    let place = place.unwrap_or_default().to_owned();
    RequestSummary::Keys { operation, place, count: key_count(kind, payload) }
}

fn find(asker: Asker<'_>, kind: Kind, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let session = asker.session;
    let reader = &mut Reader::new(payload);
    reader.array_of(2)?;
    let name = reader.text()?;
    let count = reader.array()?;
    session.expect(Level::Read, Some(name))?;
    pack::array(out, count);
    match kind {
        Kind::BucketGet => values(asker, name, (reader, count), out)?,
        _ => rows(asker, kind == Kind::Get, name, (reader, count), out)?,
    }
    reader.finish()?;
    Ok(())
}

fn rows(
    asker: Asker<'_>,
    whole: bool,
    name: &str,
    (reader, count): (&mut Reader<'_>, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    let table = asker.session.database().table(name)?;
    if count <= 1 {
        // One row is of one commit anyway.
        let find = |key: &[ValueRef<'_>], visit: Visit<'_>| table.visit(key, visit);
        return each_key(asker, (reader, count), out, whole, find);
    }
    let snapshot = table.snapshot()?;
    if count < PART_KEYS * 2 {
        let find = |key: &[ValueRef<'_>], visit: Visit<'_>| snapshot.visit(key, visit);
        return each_key(asker, (reader, count), out, whole, find);
    }
    // Most of the time goes into waiting for memory: two cores wait for twice as much of it.
    let mut parts = Vec::with_capacity(count / PART_KEYS + 1);
    let mut key = Vec::with_capacity(4);
    for position in 0..count {
        if position % PART_KEYS == 0 {
            parts.push((*reader, PART_KEYS.min(count - position)));
        }
        read_key_into(reader, &mut key)?;
    }
    let part = |(reader, count): &(Reader<'_>, usize)| {
        let mut out = Vec::new();
        let visit = |key: &[ValueRef<'_>], visit: Visit<'_>| snapshot.visit(key, visit);
        each_key(asker, (&mut { *reader }, *count), &mut out, whole, visit).map(|()| out)
    };
    for found in parallel_map(&*Environment::os().tasks, &parts, part) {
        out.extend_from_slice(&found?);
        asker.expect_small(out)?;
    }
    Ok(())
}

/// What is done with a row that is found.
type Visit<'v> = &'v mut dyn FnMut(&RowRef<'_>) -> esker::Result<()>;

/// Appends what is wanted of each row.
fn each_key(
    asker: Asker<'_>,
    (reader, count): (&mut Reader<'_>, usize),
    out: &mut Vec<u8>,
    whole: bool,
    find: impl Fn(&[ValueRef<'_>], Visit<'_>) -> esker::Result<Option<()>>,
) -> Result<()> {
    let mut output = Output::new(asker, out);
    let mut key: Vec<ValueRef<'_>> = Vec::with_capacity(4);
    for position in 0..count {
        if position % CANCEL_KEYS == CANCEL_KEYS - 1 {
            asker.expect_small(output.out)?;
        }
        read_key_into(reader, &mut key)?;
        let found = find(&key, &mut |row: &RowRef<'_>| {
            if whole {
                let fields = row.schema().fields().len();
                pack::array(output.out, fields);
                for position in 0..fields {
                    let value = row.value(position)?;
                    output.reserve(value_bytes(value)).map_err(as_engine_error)?;
                    write(output.out, value);
                }
            }
            Ok(())
        })?;
        match (whole, found) {
            (true, None) => pack::nil(output.out),
            (true, Some(())) => {}
            (false, found) => pack::bool(output.out, found.is_some()),
        }
    }
    output.finish()
}

fn values(
    asker: Asker<'_>,
    name: &str,
    (reader, count): (&mut Reader<'_>, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    // A bucket is not made by reading.
    let bucket = asker.session.database().existing_bucket(name)?;
    let mut output = Output::new(asker, out);
    if count == 1 {
        let found = bucket.read(reader.bytes()?, |value| output.bytes(value))?;
        match found {
            Some(done) => done?,
            None => pack::nil(output.out),
        }
        return output.finish();
    }
    let snapshot = bucket.snapshot()?;
    for position in 0..count {
        if position % CANCEL_KEYS == CANCEL_KEYS - 1 {
            asker.expect_small(output.out)?;
        }
        match snapshot.get(reader.bytes()?)? {
            Some(value) => output.bytes(&value)?,
            None => pack::nil(output.out),
        }
    }
    output.finish()
}
