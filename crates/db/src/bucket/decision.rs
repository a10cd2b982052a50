//! What becomes of an entry by what it is: within a transaction as without one.

use esker_format::{Value, ValueRef};

use super::{codec, expect_value, row};
use crate::commit::row_sink::RowSink;
use crate::{Error, Result};

/// What came of [`Bucket::compare_and_swap`](crate::Bucket::compare_and_swap).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped<V = Vec<u8>> {
    /// The value was as expected, and is the new one now.
    Done,
    /// Nothing was changed: this is the value, or there is none.
    Found(Option<V>),
}

/// What becomes of an entry.
pub(crate) enum Change {
    Keep,
    Remove,
    /// This value, and this end.
    Put(Vec<u8>, Value),
}

/// An entry as it is.
pub(crate) struct Entry<'a> {
    pub value: &'a [u8],
    pub expires_at: &'a Value,
}

impl<'a> Entry<'a> {
    /// That of a row of a bucket.
    pub fn of(row: &'a [Value]) -> Result<Self> {
        match row {
            [_, Value::Bytes(value), expires_at] => Ok(Self { value, expires_at }),
            _ => Err(Error::corrupt("a row that is no entry of a bucket")),
        }
    }
}

/// Changes an entry by what it is, as `decide` says; `name` is that of the bucket.
pub(crate) fn modify_entry<S: RowSink, R>(
    sink: &mut S,
    name: &impl Fn() -> String,
    key: &[u8],
    decide: impl FnOnce(Option<&Entry<'_>>) -> Result<(Change, R)>,
) -> Result<R> {
    let found = [ValueRef::Bytes(key)];
    let mut slot = sink.look(&found, sink.hash(&found))?;
    let there = sink.take_row(&mut slot)?;
    let entry = there.as_deref().map(Entry::of).transpose()?;
    let (change, result) = decide(entry.as_ref())?;
    match change {
        Change::Put(value, end) => {
            expect_value(name, &value)?;
            sink.put(&found, slot, row(key, &value, end))?;
        }
        Change::Remove if entry.is_some() => sink.remove(&found, slot)?,
        Change::Remove | Change::Keep => {}
    }
    Ok(result)
}

/// The end of an entry, which it keeps; `new` tells that of one that comes.
fn end_of(entry: Option<&Entry<'_>>, new: impl FnOnce() -> Result<Value>) -> Result<Value> {
    // default: a new entry gets the end of new ones
    entry.map_or_else(new, |entry| Ok(entry.expires_at.clone()))
}

/// A value where there is none; returns the one that is in the way.
pub(crate) fn put_if_absent(
    entry: Option<&Entry<'_>>,
    value: &[u8],
    end: impl FnOnce() -> Result<Value>,
) -> Result<(Change, Option<Vec<u8>>)> {
    match entry {
        Some(entry) => Ok((Change::Keep, Some(entry.value.to_vec()))),
        None => Ok((Change::Put(value.to_vec(), end()?), None)),
    }
}

/// Another value for the expected one; `None` stands for no entry.
pub(crate) fn compare_and_swap(
    entry: Option<&Entry<'_>>,
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
    end: impl FnOnce() -> Result<Value>,
) -> Result<(Change, Swapped)> {
    let found = entry.map(|entry| entry.value);
    if found != expected {
        return Ok((Change::Keep, Swapped::Found(found.map(<[u8]>::to_vec))));
    }
    let change = match new {
        Some(new) => Change::Put(new.to_vec(), end()?),
        None if found.is_some() => Change::Remove,
        None => Change::Keep,
    };
    Ok((change, Swapped::Done))
}

/// Another value for whatever there is; `None` stands for no entry.
pub(crate) fn replace(
    entry: Option<&Entry<'_>>,
    new: Option<&[u8]>,
    end: impl FnOnce() -> Result<Value>,
) -> Result<Change> {
    Ok(match new {
        Some(new) => Change::Put(new.to_vec(), end_of(entry, end)?),
        None if entry.is_some() => Change::Remove,
        None => Change::Keep,
    })
}

/// A number with another one added; returns the sum.
pub(crate) fn increment(
    entry: Option<&Entry<'_>>,
    by: i64,
    end: impl FnOnce() -> Result<Value>,
) -> Result<(Change, i64)> {
    let (bytes, sum) = add(entry.map(|entry| entry.value), by)?;
    Ok((Change::Put(bytes, end_of(entry, end)?), sum))
}

/// The sum of a value and a number, as it is stored and as it is.
fn add(value: Option<&[u8]>, by: i64) -> Result<(Vec<u8>, i64)> {
    // default: an entry that is not there counts as 0
    let before = value.map_or(Ok(0), codec::decode_i64)?;
    let sum = before.checked_add(by).ok_or_else(|| {
        Error::invalid(format!("{before} + {by} is beyond the numbers of 64 bits"))
    })?;
    Ok((codec::encode_i64(sum), sum))
}

/// A value with bytes at its end; returns how many there are then.
pub(crate) fn append(
    entry: Option<&Entry<'_>>,
    bytes: &[u8],
    end: impl FnOnce() -> Result<Value>,
) -> Result<(Change, usize)> {
    // default: an entry that is not there is empty
    let mut value = entry.map_or_else(Vec::new, |entry| entry.value.to_vec());
    value.extend_from_slice(bytes);
    let len = value.len();
    Ok((Change::Put(value, end_of(entry, end)?), len))
}

/// Another end; false when there is no entry.
pub(crate) fn touch(
    entry: Option<&Entry<'_>>,
    end: impl FnOnce() -> Result<Value>,
) -> Result<(Change, bool)> {
    let Some(entry) = entry else { return Ok((Change::Keep, false)) };
    let end = end()?;
    let change = match end == *entry.expires_at {
        true => Change::Keep,
        false => Change::Put(entry.value.to_vec(), end),
    };
    Ok((change, true))
}

/// No end; false when there is no entry, or it has none.
pub(crate) fn persist(entry: Option<&Entry<'_>>) -> (Change, bool) {
    match entry.filter(|entry| !entry.expires_at.is_null()) {
        Some(entry) => (Change::Put(entry.value.to_vec(), Value::Null), true),
        None => (Change::Keep, false),
    }
}
