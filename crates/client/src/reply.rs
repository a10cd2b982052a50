//! Answers.

use esker_format::Value;
use esker_wire::pack::Token;
use esker_wire::value::{read_owned, read_values};
use esker_wire::{Frame, Kind, Reader};

use crate::{Error, Result};

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub data_type: String,
}

/// Where a page of a query lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageEnd {
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
    /// The cursor of the page before.
    pub previous: Option<String>,
    /// How many rows all pages have, where that was requested.
    pub total: Option<u64>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The columns, of what answers with rows.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
    /// The value at the end, as it came.
    pub(crate) done: Vec<u8>,
}

impl Reply {
    /// Takes a frame of the answer; true for the last.
    pub(crate) fn take(&mut self, frame: &Frame<'_>) -> Result<bool> {
        match frame.kind()? {
            Kind::Columns => self.columns = columns(frame.payload)?,
            Kind::Rows => rows(frame.payload, &mut self.rows)?,
            Kind::Done => self.done = frame.payload.to_vec(),
            Kind::Failed => return Err(failed(frame.payload)?),
            other => return Err(Error::connection(format!("the server sent {other:?}"))),
        }
        Ok(frame.is_last())
    }

    /// How many rows were changed, stored or removed; 0 where the answer says something else.
    #[must_use]
    pub fn changed(&self) -> u64 {
        let mut reader = Reader::new(&self.done);
        match reader.token() {
            Ok(Token::Uint(n)) => n,
            Ok(Token::Array(_)) => reader.uint().unwrap_or(0),
            _ => 0,
        }
    }

    /// What was done, in words; `None` where the answer says something else.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        Reader::new(&self.done).text().ok()
    }

    /// Of a page of a query: the cursors of the next page and of the one before, and how many rows
    /// all have; `None` where the answer says something else.
    #[must_use]
    pub fn page(&self) -> Option<PageEnd> {
        let mut reader = Reader::new(&self.done);
        let text = |reader: &mut Reader<'_>| -> Option<Option<String>> {
            let mut ahead = *reader;
            if matches!(ahead.token(), Ok(Token::Nil)) {
                *reader = ahead;
                return Some(None);
            }
            Some(Some(reader.text().ok()?.to_owned()))
        };
        reader.array_of(3).ok()?;
        let (next, previous) = (text(&mut reader)?, text(&mut reader)?);
        Some(PageEnd { next, previous, total: reader.optional_uint().ok()? })
    }

    /// The rows of a get, in the order of the keys, with `None` where there is none.
    ///
    /// # Errors
    /// When it is the answer to something else; the same below.
    pub fn found(&self) -> Result<Vec<Option<Vec<Value>>>> {
        self.list(|reader| {
            let mut ahead = *reader;
            match ahead.token()? {
                Token::Nil => {
                    *reader = ahead;
                    Ok(None)
                }
                _ => Ok(Some(read_values(reader)?)),
            }
        })
    }

    /// Of an exists: for each key, whether there is a row.
    ///
    /// # Errors
    /// As for [`Reply::found`].
    pub fn flags(&self) -> Result<Vec<bool>> {
        self.list(|reader| Ok(reader.bool()?))
    }

    /// The number that a value of a bucket is now; `None` where the answer says something else.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        Reader::new(&self.done).int().ok()
    }

    /// Keys and values of a bucket.
    ///
    /// # Errors
    /// As for [`Reply::found`].
    pub fn entries(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let parts = self.list(|reader| Ok(reader.bytes()?.to_vec()))?;
        let (pairs, rest) = parts.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::connection("the server sent a key without a value"));
        }
        Ok(pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect())
    }

    /// The values of a bucket, in the order of the keys.
    ///
    /// # Errors
    /// As for [`Reply::found`].
    pub fn values(&self) -> Result<Vec<Option<Vec<u8>>>> {
        self.list(|reader| Ok(reader.optional_bytes()?.map(<[u8]>::to_vec)))
    }

    /// Names.
    ///
    /// # Errors
    /// As for [`Reply::found`].
    pub fn names(&self) -> Result<Vec<String>> {
        self.list(|reader| Ok(reader.text()?.to_owned()))
    }

    /// The row id of the one row that was stored.
    #[must_use]
    pub fn row_id(&self) -> Option<u64> {
        let mut reader = Reader::new(&self.done);
        reader.array_of(2).ok()?;
        reader.uint().ok()?;
        reader.optional_uint().ok()?
    }

    fn list<'r, T>(&'r self, item: impl Fn(&mut Reader<'r>) -> Result<T>) -> Result<Vec<T>> {
        let mut reader = Reader::new(&self.done);
        let count = reader.array()?;
        let items = (0..count).map(|_| item(&mut reader)).collect::<Result<Vec<_>>>()?;
        reader.finish()?;
        Ok(items)
    }
}

fn columns(payload: &[u8]) -> Result<Vec<Column>> {
    let mut reader = Reader::new(payload);
    let count = reader.array()?;
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        reader.array_of(2)?;
        let (name, data_type) = (reader.text()?.to_owned(), reader.text()?.to_owned());
        columns.push(Column { name, data_type });
    }
    Ok(columns)
}

fn rows(payload: &[u8], rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let mut reader = Reader::new(payload);
    let count = reader.array()?;
    rows.reserve(count);
    for _ in 0..count {
        let width = reader.array()?;
        let row = (0..width).map(|_| read_owned(&mut reader));
        rows.push(row.collect::<esker_wire::Result<_>>()?);
    }
    Ok(())
}

pub(crate) fn failed(payload: &[u8]) -> Result<Error> {
    let mut reader = Reader::new(payload);
    reader.array_of(2)?;
    Ok(Error::told(reader.text()?, reader.text()?))
}
