//! Erasures: rows that are deleted so that no file of the database has them any more.
//!
//! ```text
//!  DELETE … ERASE ─► one commit: deletes of the rows, and an entry of the bucket [`ERASURES`]
//!                                       │ maintenance finds an entry without an end
//!  groups and segments with dead rows are rewritten without them, once no reader sees them
//!     ─► value files with garbage are emptied ─► a checkpoint: the log before it goes, and the
//!        reserve of the log is overwritten ─► no reader holds files that were replaced
//!     ─► the directory is synced ─► the entry gets its end, in a commit
//! ```
//!
//! * An entry says which tables an erasure is about, and nothing of rows. What is dead in these
//!   tables goes, whichever statement deleted or replaced it: so the older versions of a row go
//!   with it, and what was deleted without `ERASE` before.
//! * All work is found anew in each process from what there is: row groups with rows that had died
//!   by a commit. Nothing else is kept, so that a crash at any point costs time only. An open takes
//!   its newest commit for that of the erasure, which may rewrite more and never less.
//! * An erasure of a table is one of the tables with references to it, too, whose rows may go with
//!   its rows.
//! * The bucket is one that users can change. An entry that is none is passed over, and an erasure
//!   is its whole record: numbers come again once the newest entries are gone.
//! * Backups, exports and what programs have read are out of reach.
//!
//! The job is [`maintenance::erasing`](crate::maintenance), the statement `statement/erase.rs`.

use esker_format::codec::{Reader, Writer};
use esker_format::{TableId, invariant};

use crate::{Error, Result};

/// The bucket that has what was erased.
pub const ERASURES: &str = "esker_erasure_records";

const FORM: u8 = 1;
/// Digits of the greatest number.
const KEY_DIGITS: usize = 20;
/// The greatest number: it is shown as an integer.
pub(crate) const NUMBER_MAX: u64 = u64::MAX >> 1;
/// Tables that an erasure may be about.
const TABLES_MAX: usize = 1 << 16;

/// What an erasure came to when its rows were deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    /// Its number, by which [`Database::erasures`](crate::Database::erasures) tells what has become
    /// of it.
    pub number: u64,
    /// How many rows were deleted.
    pub rows: u64,
    /// The bytes of groups and segments that are to be written anew without them; `None` within a
    /// transaction, which has deleted nothing before its commit.
    pub bytes_left: Option<u64>,
}

/// An erasure, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureInfo {
    /// Its number.
    pub number: u64,
    /// The table whose rows were erased, as it was called then.
    pub table: String,
    /// When, in microseconds since 1970.
    pub begun_us: i64,
    /// How many rows were deleted.
    pub rows: u64,
    /// The bytes of groups and segments that are still to be written anew.
    pub bytes_left: u64,
    /// What it waits for; `None` at its end.
    pub waits_for: Option<&'static str>,
    /// When the last byte was gone, in microseconds since 1970.
    pub finished_us: Option<i64>,
}

/// An erasure as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub number: u64,
    pub table: String,
    /// All tables whose rows may have gone, that one the first.
    pub tables: Vec<TableId>,
    pub begun_us: i64,
    pub rows: u64,
    pub finished_us: Option<i64>,
}

impl Record {
    /// Its digits: keys are in the order of the numbers.
    pub fn key(&self) -> Vec<u8> {
        format!("{:0KEY_DIGITS$}", self.number).into_bytes()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(FORM);
        out.text(&self.table);
        out.count(self.tables.len());
        self.tables.iter().for_each(|table| out.u32(table.0));
        out.i64(self.begun_us);
        out.u64(self.rows);
        out.u8(u8::from(self.finished_us.is_some()));
        self.finished_us.into_iter().for_each(|at| out.i64(at));
        out.into_bytes()
    }

    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        let number = number_of(key)?;
        let mut input = Reader::new(value);
        let form = input.u8()?;
        invariant!(form == FORM, ERASURES, "an entry has form {form}, expected {FORM}");
        let table = input.text()?.to_owned();
        let count = input.count(TABLES_MAX)?;
        let tables = (0..count).map(|_| Ok(TableId(input.u32()?))).collect::<Result<_>>()?;
        let (begun_us, rows) = (input.i64()?, input.u64()?);
        let most = NUMBER_MAX;
        invariant!(rows <= most, ERASURES, "an entry of {rows} rows, expected at most {most}");
        let finished_us = match input.u8()? {
            0 => None,
            _ => Some(input.i64()?),
        };
        input.finish()?;
        Ok(Self { number, table, tables, begun_us, rows, finished_us })
    }
}

/// The number of an erasure, by its key.
pub(crate) fn number_of(key: &[u8]) -> Result<u64> {
    let is_number = key.len() == KEY_DIGITS && key.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(key).ok().filter(|_| is_number);
    let number = digits.and_then(|digits| digits.parse::<u64>().ok());
    let number = number.filter(|number| *number <= NUMBER_MAX);
    let message = || {
        let found = String::from_utf8_lossy(key);
        format!("bucket {ERASURES:?}: expected keys that are numbers of 20 digits, found {found:?}")
    };
    number.ok_or_else(|| Error::corrupt(message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back() {
        for finished_us in [None, Some(-7), Some(i64::MAX)] {
            let record = Record {
                number: 300,
                table: "é".to_owned(),
                tables: vec![TableId(7), TableId(u32::MAX)],
                begun_us: -1,
                rows: 9,
                finished_us,
            };
            assert_eq!(Record::decode(&record.key(), &record.encode()).unwrap(), record);
        }
        let key = b"00000000000000000001";
        assert!(Record::decode(b"1", &[]).is_err() && Record::decode(key, &[2]).is_err());
        assert_eq!(number_of(b"09223372036854775807").unwrap(), NUMBER_MAX);
        assert!(number_of(b"09223372036854775808").is_err());
        assert!(number_of(b"+0000000000000000001").is_err());
    }
}
