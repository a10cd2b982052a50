//! Cursors: where a page of an answer ends, as a text that a client keeps.
//!
//! ```text
//! version, flags      which way it leads, whether a snapshot is named
//! query               checksum of the query, its parameters, its table
//! fields              checksum of the fields of the table
//! snapshot            its number, where there is one
//! keys                the values of the order's keys in the row at the edge of the page
//! checksum            of all that is before
//! ```
//!
//! The last key of an order is the row id, or the keys of a group: so a cursor stands between two
//! rows, never on one of several that are equal, and means the same after a restart.

mod base64;
#[cfg(test)]
mod tests;

use esker_format::checksum::{Place, checksum};
use esker_format::codec::{Reader, Writer};
use esker_format::row::{decode_value, encode_value};
use esker_format::{DataType, Schema, Value, ValueRef};

use crate::model::RowCount;
use crate::{Error, Inputs, Query, Result};

const VERSION: u8 = 1;
const BACKWARD: u8 = 1;
const HAS_SNAPSHOT: u8 = 2;

/// Which query a cursor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    query: u64,
    fields: u64,
}

/// The edge of a page, and which way to go on from there.
///
/// ```
/// use esker_query::Cursor;
///
/// let error = Cursor::parse("from a typewriter").unwrap_err();
/// assert_eq!(error.to_string(), "cursor: damaged: expected a text that a page gave as it was");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) is_backward: bool,
    identity: Identity,
    snapshot: Option<u128>,
    keys: Vec<u8>,
}

fn sum(bytes: &[u8]) -> u64 {
    checksum(Place { database: 0, file: 0, position: 0 }, bytes)
}

fn damaged() -> Error {
    Error::invalid("cursor: damaged: expected a text that a page gave as it was")
}

impl Identity {
    /// Of a query on a table with these fields. How many rows a page has may change.
    pub(crate) fn new(
        query: &Query,
        schema: &Schema,
        table: u128,
        inputs: &Inputs,
    ) -> Result<Self> {
        let whole = Query { limit: None, offset: RowCount::Number(0), ..query.clone() };
        let text = serde_json::to_string(&whole)
            .map_err(|e| Error::invalid(format!("cursor: the query cannot be written: {e}")))?;
        let semantics = inputs.semantics;
        let asked = format!("{table:x} {text} {:?}{semantics}", inputs.parameters);
        let fields = schema.fields().iter().map(|field| {
            let (id, name, nullable) = (field.id, &field.name, field.nullable);
            format!("{id:?} {name:?} {:?} {nullable}\n", field.data_type)
        });
        let fields: String = fields.collect();
        Ok(Self { query: sum(asked.as_bytes()), fields: sum(fields.as_bytes()) })
    }
}

impl Cursor {
    /// The place behind (or before) a row.
    pub(crate) fn new(
        identity: Identity,
        snapshot: Option<u128>,
        is_backward: bool,
        keys: &[(DataType, ValueRef<'_>)],
    ) -> Self {
        let mut out = Writer::new();
        for (data_type, value) in keys {
            out.u8(u8::from(!value.is_null()));
            encode_value(&mut out, *data_type, *value);
        }
        Self { is_backward, identity, snapshot, keys: out.into_bytes() }
    }

    /// Reads what [`Cursor::to_text`] wrote.
    ///
    /// # Errors
    /// `InvalidQuery` when that is damaged.
    pub fn parse(text: &str) -> Result<Self> {
        let bytes = base64::decode(text).ok_or_else(damaged)?;
        let (body, stored) = bytes.split_last_chunk::<8>().ok_or_else(damaged)?;
        if sum(body) != u64::from_le_bytes(*stored) {
            return Err(damaged());
        }
        Self::read(&mut Reader::new(body)).map_err(|_| damaged())?.ok_or_else(|| {
            Error::invalid("cursor: of another version of the program: begin again without it")
        })
    }

    fn read(input: &mut Reader<'_>) -> esker_format::Result<Option<Self>> {
        if input.u8()? != VERSION {
            return Ok(None);
        }
        let flags = input.u8()?;
        let identity = Identity { query: input.u64()?, fields: input.u64()? };
        let snapshot = match flags & HAS_SNAPSHOT {
            0 => None,
            _ => Some(u128::from(input.u64()?) << 64 | u128::from(input.u64()?)),
        };
        let keys = input.raw(input.remaining())?.to_vec();
        Ok(Some(Self { is_backward: flags & BACKWARD != 0, identity, snapshot, keys }))
    }

    /// The cursor as a text of letters, digits, `-` and `_`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "both halves are written")]
    pub fn to_text(&self) -> String {
        let mut out = Writer::new();
        out.u8(VERSION);
        let has_snapshot = if self.snapshot.is_some() { HAS_SNAPSHOT } else { 0 };
        out.u8(has_snapshot | if self.is_backward { BACKWARD } else { 0 });
        out.u64(self.identity.query);
        out.u64(self.identity.fields);
        if let Some(snapshot) = self.snapshot {
            out.u64((snapshot >> 64) as u64);
            out.u64(snapshot as u64);
        }
        out.raw(&self.keys);
        let stored = sum(out.as_bytes());
        out.u64(stored);
        base64::encode(out.as_bytes())
    }

    /// The snapshot that its page was read from, where that is held.
    #[must_use]
    pub fn snapshot(&self) -> Option<u128> {
        self.snapshot
    }

    /// The values of the keys, which are of these types.
    pub(crate) fn values(
        &self,
        identity: Identity,
        types: impl Iterator<Item = DataType>,
    ) -> Result<Vec<Value>> {
        let mut input = Reader::new(&self.keys);
        let mut values = Vec::new();
        for data_type in types {
            let has_value = input.u8().map_err(|_| damaged())? == 1;
            values.push(match has_value {
                true => decode_value(&mut input, data_type).map_err(|_| damaged())?.to_owned(),
                false => Value::Null,
            });
        }
        debug_assert_eq!(identity, self.identity);
        input.finish().map_err(|_| damaged())?;
        Ok(values)
    }

    /// Refuses to go on with another query than the cursor is of.
    pub(crate) fn expect(&self, identity: Identity) -> Result<()> {
        if self.identity.query != identity.query {
            return Err(Error::invalid(
                "cursor: of another query: everything but the limit has to be as it was",
            ));
        }
        if self.identity.fields != identity.fields {
            return Err(Error::invalid(
                "cursor: the fields of the table have changed since: begin again without it",
            ));
        }
        Ok(())
    }
}
