//! An index run: what all kinds share.

use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError};

use esker_format::json::Json;
use esker_format::schema::{Index, IndexField};
use esker_format::{Data, DataType, Field, FieldId, ValueRef};
use esker_vfs::sync::{Mutex, MutexGuard};

use super::dead::DeadEntries;
use super::row_number::number;
use crate::Result;
use crate::index_values::IndexValues;
use crate::segment::Segment;

/// The longest stored value of a text or byte string, in bytes; what is longer is cut.
pub const KEY_BYTES_MAX: usize = 64;

/// The field number under which a sorted run stores rows.
pub(super) const ROW_FIELD: FieldId = FieldId(u16::MAX);

/// The text at the end of a path into a document.
pub(super) fn document_text(document: ValueRef<'_>, path: &[String]) -> Option<String> {
    let document = Json::document(document.as_bytes()?);
    document.text_at(path.iter().map(String::as_str))
}

/// What is stored of one index for one segment.
pub struct IndexRun {
    pub(super) index: Index,
    pub(super) entries: Segment,
    /// How many rows its segment has.
    rows: usize,
    row_field: Field,
    /// As what the texts of each path, and what is computed, are stored, by part; of a rollup all
    /// columns.
    pub(super) made: Vec<Field>,
    /// What computes its values, where anything is computed.
    pub(super) values: Option<Arc<dyn IndexValues>>,
    dead: Mutex<Option<Arc<DeadEntries>>>,
    /// The first number of each zone, where the first field has numbers.
    pub(super) firsts: OnceLock<Option<Vec<i64>>>,
}

impl IndexRun {
    pub(super) fn over(
        index: Index,
        values: Option<Arc<dyn IndexValues>>,
        entries: Segment,
        rows: usize,
    ) -> Self {
        let row_field = Field::new(ROW_FIELD, "row".to_owned(), DataType::U32, false);
        let made = |(number, part): (usize, &IndexField)| {
            let expression = part.expression.as_deref();
            // default: a path leads to texts
            let data_type = expression.map_or(DataType::Text, |of| of.data_type);
            Field::new(Index::computed_id(number), String::new(), data_type, true)
        };
        let made = match values.as_ref().and_then(|values| values.partials()) {
            Some(partials) => partials.columns(),
            None => index.fields.iter().enumerate().map(made).collect(),
        };
        let (dead, firsts) = (Mutex::new(None), OnceLock::new());
        Self { index, entries, rows, row_field, made, values, dead, firsts }
    }

    /// What computes its values, where anything is computed.
    #[must_use]
    pub fn index_values(&self) -> Option<&Arc<dyn IndexValues>> {
        self.values.as_ref()
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What it is stored as.
    #[must_use]
    pub fn entries(&self) -> &Segment {
        &self.entries
    }

    /// How many rows its segment has, the dead ones included.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// The bounds of the entries in a column of numbers, zone by zone; `None` where a zone has
    /// another bound than a number.
    pub(super) fn number_bounds<'a>(
        &'a self,
        field: &'a Field,
    ) -> impl Iterator<Item = Option<(u64, u64)>> + 'a {
        let word = |value: ValueRef<'_>| match value {
            ValueRef::Uint(number) => Some(number),
            _ => None,
        };
        let zones = (0..).map_while(move |zone| self.entries.zone(field, zone));
        zones.map(move |(least, greatest, _)| Some((word(least)?, word(greatest?)?)))
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.row_count()
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of some entries of a sorted run.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn rows(&self, entries: Range<usize>) -> Result<std::borrow::Cow<'_, [u32]>> {
        let column = self.entries.column_as_stored(&self.row_field, entries)?;
        Ok(match column.data {
            Data::U32(rows) => rows.into(),
            _ => {
                let rows: Result<Vec<_>> =
                    (0..column.len).map(|i| number(column.value(i))).collect();
                rows.map_err(|e| e.at(format_args!("index {:?}", self.index.name)))?.into()
            }
        })
    }

    /// True when the list of dead entries is as new as the last delete.
    pub(super) fn knows_dead_entries(&self, owner: &Segment) -> bool {
        self.kept_dead().as_ref().is_some_and(|dead| dead.is_of(owner))
    }

    fn kept_dead(&self) -> MutexGuard<'_, Option<Arc<DeadEntries>>> {
        // default: a list is put there when it is whole
        self.dead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list of dead entries that may miss those of rows that died a moment ago.
    pub(super) fn most_dead_entries(&self, owner: &Segment) -> Result<Arc<DeadEntries>> {
        let kept = self.kept_dead().as_ref().filter(|dead| dead.is_nearly_of(owner)).cloned();
        // default: lists that are older are made anew
        kept.map_or_else(|| self.dead_entries(owner), Ok)
    }

    pub(super) fn dead_entries(&self, owner: &Segment) -> Result<Arc<DeadEntries>> {
        let mut kept = self.kept_dead();
        match kept.as_ref().filter(|dead| dead.is_of(owner)) {
            Some(dead) => Ok(Arc::clone(dead)),
            None => {
                let dead = Arc::new(DeadEntries::of(self, owner)?);
                *kept = Some(Arc::clone(&dead));
                Ok(dead)
            }
        }
    }
}
