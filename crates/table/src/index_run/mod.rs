//! Index runs: what is stored of an index for one segment. A kind of run is a `RunFormat`: sorted
//! runs, which follow, bitmaps, trigrams, and partial aggregates.
//!
//! A run is a small table beside its segment, stored as a segment of its own: the values of the
//! index's fields in their order, and the row each is of. There is no tree; a look-up is a binary
//! search, a range two.
//!
//! ```text
//! segment-…2a      row   0  1  2  3  4          run-…2a-0001   entry  0  1  2  3  4
//!                  age  31 27  -  27 40                        age   27 27 31 40  -
//!                                                              row    1  3  0  4  2
//! ```
//!
//! A run is *derived*: segment and schema say what must be in it, so no catalogue names it and no
//! frame names it. One that is missing, or damaged, is built again, and until then readers scan.
//!
//! # Invariants
//!
//! [`write_run`] and [`IndexRun::open`] assert what can be seen without reading all entries;
//! `verify`, which `Database::check` calls, compares all of them with the segment. What each kind
//! of run adds is in the head of its module.
//! 1. A run is bound to its segment, which never changes, and to the number of its index, which is
//!    never used again, by its name and its checksums; and it is of the same table and of as many
//!    rows: asserted by `Segment::add_run`.
//! 2. It has its name only once it is synced: `FileSink` of `esker` sees to it.
//! 3. Every row of the segment has its entries, the dead and the invisible included, but for rows
//!    that the filter of the index leaves out; in a rollup it is counted in its group. NULL is
//!    stored for a row that no reader sees and whose value cannot be computed.
//! 4. It is a segment, with all invariants of one.
//!
//! Long values are stored cut ([`KEY_BYTES_MAX`]); where that leaves a question open the segment's
//! own value answers it.

mod bitmap;
mod bytes_order;
mod dead;
mod grams;
mod radix;
mod ranks;
mod rollup;
mod row_number;
mod run;
mod run_format;
mod run_writer;
mod search;
mod sort;
mod sorted;
#[cfg(test)]
mod tests;
mod whole;

use std::path::Path;
use std::sync::Arc;

use esker_arena::Arena;
use esker_format::Schema;
use esker_format::edit::SegmentEntry;
use esker_format::schema::{Index, IndexKind};

use super::{Error, ErrorKind, Result};
use crate::index_values::IndexValues;
use crate::segment::sink::SegmentSink;
use crate::segment::{ANY_ROWS, Segment, SegmentFiles, run_file_id};
pub use bitmap::VALUES_MAX;
pub use run::{IndexRun, KEY_BYTES_MAX};
use run_format::RunFormat;
pub use run_format::{NewRun, RunSource};

/// How runs of a kind are written, read and checked.
fn format_of(kind: IndexKind) -> &'static dyn RunFormat {
    match kind {
        IndexKind::Ordered => &sorted::Sorted,
        IndexKind::Trigram => &grams::Grams,
        IndexKind::Bitmap => &bitmap::Bitmaps,
        IndexKind::Rollup => &rollup::Rollups,
    }
}

/// Writes the run of an index for the rows of a segment. The sink syncs it; its name is durable
/// once the directory is.
///
/// # Errors
/// What the machine says, or `Corrupt` when a block of the source does not fit its checksum.
pub fn write_run(
    new: NewRun<'_>,
    source: &dyn RunSource,
    sink: &mut dyn SegmentSink,
) -> Result<IndexRun> {
    let entries = format_of(new.index.kind).write(new, source, sink)?;
    let values = new.values.cloned();
    let run = IndexRun::new(new.index.clone(), values, entries, source.row_count())?;
    run.expect_sound(&format_args!("the run of index {:?}", new.index.name))?;
    Ok(run)
}

impl IndexRun {
    /// A run over what [`write_run`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it has other entries than `rows` rows need.
    pub fn new(
        index: Index,
        values: Option<Arc<dyn IndexValues>>,
        entries: Segment,
        rows: usize,
    ) -> Result<Self> {
        let (id, found) = (index.id.0, entries.row_count());
        let is_right = |expected| match index.filter {
            Some(_) => found <= expected,
            None => found == expected,
        };
        if !format_of(index.kind).entry_count(rows).is_none_or(is_right) {
            let message = format!("run of index {id}: {found} entries for {rows} rows");
            return Err(Error::corrupt(message));
        }
        Ok(Self::over(index, values, entries, rows))
    }

    /// Asserts what can be seen of a run without reading all of it.
    fn expect_sound(&self, place: &dyn std::fmt::Display) -> Result<()> {
        if let Some(rule) = format_of(self.index.kind).broken_rule(self)? {
            return Err(esker_format::Error::broken(place, rule).into());
        }
        Ok(())
    }

    /// Opens the run of an index that an earlier opening has built for a segment; `None` when there
    /// is none that is whole, since it can be built again.
    ///
    /// # Errors
    /// `Corrupt` when it is whole and cannot be right: it would be built so once more. What the
    /// machine says.
    pub fn open(
        owner: &Segment,
        files: &Arc<SegmentFiles>,
        (index, values): (&Index, Option<Arc<dyn IndexValues>>),
        arena: &Arc<Arena>,
    ) -> Result<Option<Self>> {
        let id = run_file_id(owner.id(), index.id);
        let Some(file_bytes) = files.length(id)? else { return Ok(None) };
        let rows = match format_of(index.kind).entry_count(owner.row_count()) {
            Some(_) if index.filter.is_none() => owner.entry().rows,
            _ => ANY_ROWS,
        };
        let entry = SegmentEntry { id, rows, file_bytes, holds_through: 0, row_id_shift: 0 };
        let run = Segment::open(files, &entry, arena);
        match run.and_then(|entries| Self::new(index.clone(), values, entries, owner.row_count())) {
            Ok(run) => run.sound(&files.path(id)),
            Err(e) if e.kind() == ErrorKind::Corrupt => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The run, unless what it says of itself cannot be read.
    fn sound(self, path: &Path) -> Result<Option<Self>> {
        match format_of(self.index.kind).broken_rule(&self) {
            Ok(None) => Ok(Some(self)),
            Ok(Some(rule)) => {
                let rule = format!("{rule}; without this file the run is built again");
                Err(esker_format::Error::broken(path.display(), rule).into())
            }
            Err(e) if e.kind() == ErrorKind::Corrupt => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// True when a reader's schema finds entries as they lie: it has the index's fields, none of
    /// them of a narrower type. What is read as a narrower type is right only where the reader
    /// sees the row, and a search looks at all.
    #[must_use]
    pub fn is_readable_by(&self, schema: &Schema) -> bool {
        format_of(self.index.kind).is_readable_by(self, schema)
    }

    /// True when the run says no more than that its segment is not worth one: the field of a bitmap
    /// index has too many values there.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn is_left_out(&self) -> Result<bool> {
        format_of(self.index.kind).is_left_out(self)
    }

    /// Compares every entry with the segment: whether each row is there once, with the values that
    /// it has there, in order.
    ///
    /// # Errors
    /// `Corrupt` saying what does not fit.
    pub fn verify(&self, owner: &Segment, schema: &Schema) -> Result<()> {
        self.entries.verify_all()?;
        format_of(self.index.kind).verify(self, owner, schema)
    }
}
