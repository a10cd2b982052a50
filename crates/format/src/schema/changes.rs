//! Changes of rows that are kept: which tables have a feed, and which table is one.
//!
//! ```text
//!  CREATE TABLE orders (…) WITH (changes = '1 day', changes_by = 'old')
//!                                 │                  └ the row as it was, too
//!                                 └ how long changes are kept in the stream orders$changes
//! ```
//!
//! Both tables say so in their schemas, and that of the table has the number of its feed: none is
//! known as a feed by its name, which may be given to another.

use super::stream::Span;
use super::{Alteration, PrimaryKey, Profile, Schema, TableId, retention};
use crate::codec::{Reader, Writer};
use crate::{Error, Result};

/// What is kept of a row that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChangedRows {
    /// Its key, and the row as it is then.
    #[default]
    Key,
    /// The row as it was, too.
    Old,
}

/// What a table has to do with changes that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Its changes are kept in a feed.
    Kept {
        /// For how many microseconds.
        keep_us: u64,
        /// What is kept of them.
        rows: ChangedRows,
    },
    /// It is the feed of a table.
    Feed,
    /// It has what is kept of a rollup of a stream whose events have ended.
    History,
}

const BY_KEY: u8 = 1;
const BY_OLD: u8 = 2;
const FEED: u8 = 3;
const HISTORY: u8 = 4;

impl ChangedRows {
    /// The value of option `changes_by`.
    ///
    /// # Errors
    /// `InvalidInput` for another text than `key` and `old`.
    pub fn read(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "key" => Ok(Self::Key),
            "old" => Ok(Self::Old),
            _ => {
                let message = "option changes_by of a table: expected key or old";
                Err(Error::invalid(format!("{message}, found {text:?}")))
            }
        }
    }
}

impl Changes {
    /// The value of option `changes`: a length of time in microseconds.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is none, or that is no time at all.
    pub fn read_keep(text: &str) -> Result<u64> {
        retention::keep_us("changes", text)
    }
}

impl Schema {
    pub(super) fn encode_changes(&self, out: &mut Writer) {
        match self.changes {
            None => {}
            Some(Changes::Feed) => out.u8(FEED),
            Some(Changes::History) => out.u8(HISTORY),
            Some(Changes::Kept { keep_us, rows }) => {
                out.u8(if rows == ChangedRows::Old { BY_OLD } else { BY_KEY });
                out.u64(keep_us);
                // default: no table has number 0
                out.u32(self.feed.map_or(0, |feed| feed.0));
            }
        }
    }

    pub(super) fn decode_changes(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let rows = match input.u8()? {
            FEED => {
                self.changes = Some(Changes::Feed);
                return Ok(());
            }
            HISTORY => {
                self.changes = Some(Changes::History);
                return Ok(());
            }
            BY_KEY => ChangedRows::Key,
            BY_OLD => ChangedRows::Old,
            other => {
                return Err(Error::corrupt(format!("unknown kind of changes {other}")));
            }
        };
        self.changes = Some(Changes::Kept { keep_us: input.u64()?, rows });
        self.feed = Some(TableId(input.u32()?)).filter(|feed| feed.0 != 0);
        Ok(())
    }

    /// The table that has the changes of this one, once there is one.
    #[must_use]
    #[inline]
    pub fn feed(&self) -> Option<TableId> {
        self.feed
    }

    /// The same schema of a table whose changes another one has; `None`: one is still to be made.
    #[must_use]
    pub fn with_feed(mut self, feed: Option<TableId>) -> Self {
        self.feed = feed;
        self
    }

    /// What the table has to do with changes that are kept; `None`: nothing.
    #[must_use]
    #[inline]
    pub fn changes(&self) -> Option<Changes> {
        self.changes
    }

    /// True for the feed of a table.
    #[must_use]
    #[inline]
    pub fn is_feed(&self) -> bool {
        self.changes == Some(Changes::Feed)
    }

    /// True for what is kept of a rollup of events that have ended.
    #[must_use]
    #[inline]
    pub fn is_history(&self) -> bool {
        self.changes == Some(Changes::History)
    }

    /// True for a table that the engine has made beside another one, or beside a view: it comes and
    /// goes with that, and is written by it alone.
    #[must_use]
    #[inline]
    pub fn is_companion(&self) -> bool {
        self.is_feed() || self.is_history()
    }

    /// What is kept of changes, and for how many microseconds; `None`: they are not kept.
    #[must_use]
    #[inline]
    pub fn kept_changes(&self) -> Option<(u64, ChangedRows)> {
        match self.changes? {
            Changes::Kept { keep_us, rows } => Some((keep_us, rows)),
            Changes::Feed | Changes::History => None,
        }
    }

    /// The options of a table with a feed as a statement has them.
    #[must_use]
    pub fn changes_options(&self) -> Vec<(&'static str, String)> {
        let Some((keep_us, rows)) = self.kept_changes() else { return Vec::new() };
        let by = (rows == ChangedRows::Old).then(|| ("changes_by", "old".to_owned()));
        [("changes", Span(keep_us).to_string())].into_iter().chain(by).collect()
    }

    /// One about changes that are kept, or about rollups.
    pub(super) fn alter_changes(&mut self, alteration: &Alteration) -> Result<()> {
        match alteration {
            Alteration::SetChangesKept(keep_us) => self.keep_changes(*keep_us),
            Alteration::SetChangesBy(rows) => self.keep_changes_by(*rows),
            _ => self.alter_rollup(alteration),
        }
    }

    fn keep_changes(&mut self, keep_us: Option<u64>) -> Result<()> {
        self.refuse_of_companion()?;
        // default: the key, where nothing else was said
        let rows = self.kept_changes().map_or(ChangedRows::Key, |(_, rows)| rows);
        self.changes = keep_us.map(|keep_us| Changes::Kept { keep_us, rows });
        // Changes that are kept again are kept in another feed.
        self.feed = self.feed.filter(|_| keep_us.is_some());
        Ok(())
    }

    fn keep_changes_by(&mut self, rows: ChangedRows) -> Result<()> {
        self.refuse_of_companion()?;
        let Some((keep_us, _)) = self.kept_changes() else {
            let message = "the table keeps no changes: expected changes = '1 day', too";
            return Err(Error::invalid(message));
        };
        self.changes = Some(Changes::Kept { keep_us, rows });
        Ok(())
    }

    fn refuse_of_companion(&self) -> Result<()> {
        match self.is_companion() {
            true => Err(Error::invalid("the table is a feed or a history itself")),
            false => Ok(()),
        }
    }

    pub(super) fn validate_changes(&self) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid(message));
        match (self.changes, self.profile) {
            (None, _)
            | (Some(Changes::Kept { .. }), Profile::Table)
            | (Some(Changes::Feed), Profile::Stream)
            | (Some(Changes::History), Profile::Stream | Profile::Table) => {}
            (Some(Changes::Feed), _) => return refuse("a feed that is no stream"),
            (Some(Changes::History), _) => return refuse("a history that is a bucket"),
            (_, Profile::Stream) => {
                return refuse("a stream keeps no changes: a tail of it tells its events");
            }
            (_, Profile::Bucket) => return refuse("a bucket keeps no changes"),
        }
        match self.kept_changes() {
            Some((0, _)) => refuse("changes that are kept for no time"),
            Some(_) if self.primary_key == PrimaryKey::Generated => refuse(
                "a table that keeps its changes has a primary key of fields, by which a change is \
                 known: expected PRIMARY KEY",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;

    #[test]
    fn what_is_said_of_changes_is_stored() {
        let builder = || Schema::builder().field("n", DataType::I64).primary_key(["n"]);
        for rows in [ChangedRows::Key, ChangedRows::Old] {
            let changes = Changes::Kept { keep_us: 7_200_000_000, rows };
            let schema = builder().changes(changes).build().unwrap().with_feed(Some(TableId(9)));
            let mut out = Writer::new();
            schema.encode(&mut out);
            let read = Schema::decode(&mut Reader::new(out.as_bytes())).unwrap();
            assert_eq!((read.changes(), read.feed()), (Some(changes), Some(TableId(9))));
            assert_eq!(read.changes_options()[0], ("changes", "2 hours".to_owned()));
        }
        let plain = builder().build().unwrap();
        let begun = plain.alter(&[Alteration::SetChangesKept(Some(5))]).unwrap();
        assert_eq!(begun.kept_changes(), Some((5, ChangedRows::Key)));
        let by = Alteration::SetChangesBy(ChangedRows::Old);
        assert!(plain.alter(std::slice::from_ref(&by)).is_err());
        assert_eq!(begun.alter(&[by]).unwrap().kept_changes(), Some((5, ChangedRows::Old)));
        let begun = begun.with_feed(Some(TableId(9)));
        let longer = begun.alter(&[Alteration::SetChangesKept(Some(6))]).unwrap();
        assert_eq!(longer.feed(), Some(TableId(9)));
        let again = [Alteration::SetChangesKept(None), Alteration::SetChangesKept(Some(6))];
        assert_eq!(begun.alter(&again).unwrap().feed(), None, "another feed");
        assert_eq!(begun.alter(&[Alteration::SetChangesKept(None)]).unwrap().changes(), None);
    }

    #[test]
    fn streams_and_times_of_zero_are_refused() {
        let changes = Changes::Kept { keep_us: 1, rows: ChangedRows::Key };
        let stream = Schema::builder().field("t", DataType::Timestamp).stream("t", []);
        let e = stream.changes(changes).build().unwrap_err().to_string();
        assert!(e.contains("a stream keeps no changes"), "{e}");
        for text in ["0 seconds", "1 month", "soon"] {
            assert!(Changes::read_keep(text).is_err(), "{text}");
        }
        assert!(ChangedRows::read("new").is_err());
    }
}
