//! The rows of a table in the order of the primary key.
//!
//! ```text
//!   segment, by key     0 1 2 3 4 5 6 …                       the rows themselves
//!   segment, as loaded  run (7 3 9 0 …)                       sorted when first read
//!   open group          run (4 0 2 …), run (6 5), run (7)     grows as readers come by
//!                                │
//!   cursor              least key of all heads ─► visible? ─► row
//! ```
//!
//! A group has small sorted runs of rising size (the logarithmic method): the next reader sorts
//! the rows that came since and merges runs of about one size, so that a row is merged a few times
//! in all, and writers never wait. A run names rows by number and is never changed; older readers
//! pass over the rows that are too new for them.
//!
//! Invariants
//! 1. The runs of a row group name each row below their total length once.
//! 2. Within a run, rows rise by (key, row number): of two versions of one key the older comes
//!    first.

mod cursor;
mod form;
mod samples;
mod sorted_rows;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::Schema;
use esker_format::key::first_word;

use crate::live_version::LiveVersion;
use crate::segment::Segment;
use crate::view::RowGroup;
use crate::{Error, Result};
pub use cursor::{Direction, KeyBounds, KeyCursor, KeyRow};
pub use form::KeyForm;
pub use sorted_rows::SortedRows;
use sorted_rows::{SegmentSamples, SortedRun};

/// Longer runs are not merged any more: a reader would wait for it.
const MERGED_ROWS_MAX: usize = 1 << 17;

impl SortedRows {
    /// Runs that name all of the first `rows` rows of a row group, and maybe later ones.
    pub(crate) fn cover(
        &self,
        row_group: &RowGroup,
        form: &KeyForm,
        rows: usize,
    ) -> Result<Vec<Arc<SortedRun>>> {
        // default: the list is replaced as a whole
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let covered: usize = runs.iter().map(|run| run.rows.len()).sum();
        if covered < rows {
            let mut run = sorted(row_group, form, covered..rows)?;
            let mut kept = runs.clone();
            while let Some(last) = kept.last() {
                let len = last.rows.len();
                if len > 2 * run.len() || len + run.len() > MERGED_ROWS_MAX {
                    break;
                }
                run = merged(row_group, form, &last.rows, &run)?;
                kept.pop();
            }
            kept.push(Arc::new(SortedRun::new(row_group, form, run)?));
            *runs = kept;
        }
        Ok(runs.clone())
    }

    /// The samples of a segment whose rows lie in the order of the key, if there can be any.
    fn samples(&self, segment: &Segment, form: &KeyForm) -> Option<&SegmentSamples> {
        let field = form.plain_field()?;
        self.samples.get_or_init(|| SegmentSamples::new(segment, field)).as_ref()
    }
}

/// Some rows by key: first by eight bytes of it, and by all of it where these are equal.
fn sorted(row_group: &RowGroup, form: &KeyForm, rows: std::ops::Range<usize>) -> Result<Vec<u32>> {
    let mut pairs = Vec::with_capacity(rows.len());
    let mut key = Vec::new();
    for row in rows {
        form.read(row_group, row, &mut key)?;
        let number = u32::try_from(row);
        let beyond = |_| Error::corrupt(format!("row group {}: no row {row}", row_group.id()));
        pairs.push((first_word(&key), number.map_err(beyond)?));
    }
    pairs.sort_unstable();
    let mut other = Vec::new();
    let mut failed = None;
    for equal in pairs.chunk_by_mut(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1) {
        equal.sort_by(|a, b| match compare(row_group, form, (a.1, b.1), (&mut key, &mut other)) {
            Ok(order) => order,
            Err(e) => {
                failed.get_or_insert(e);
                Ordering::Equal
            }
        });
    }
    match failed {
        None => Ok(pairs.into_iter().map(|(_, row)| row).collect()),
        Some(e) => Err(e),
    }
}

/// Versions of several row groups, by key, and of one key by age.
pub(crate) fn sorted_by_key(
    form: &KeyForm,
    row_groups: &[RowGroup],
    versions: Vec<LiveVersion>,
) -> Result<Vec<LiveVersion>> {
    let mut key = Vec::new();
    let mut keyed = Vec::with_capacity(versions.len());
    for version in versions {
        form.read(version.row_group_in(row_groups)?, version.row as usize, &mut key)?;
        keyed.push((first_word(&key), version));
    }
    // Stable: segments are sorted already, which this sort makes use of.
    keyed.sort_by_key(|(first, _)| *first);
    for equal in keyed.chunk_by_mut(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1) {
        let mut whole = Vec::with_capacity(equal.len());
        for (_, version) in equal.iter() {
            let (row_group, row) = (version.row_group_in(row_groups)?, version.row as usize);
            form.read(row_group, row, &mut key)?;
            // Row groups that were rewritten at different times are not always in the order of
            // their rows.
            let age = (row_group.created(row), version.row_group, version.row);
            whole.push((key.clone(), age, *version));
        }
        whole.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        for (to, (_, _, version)) in equal.iter_mut().zip(whole) {
            to.1 = version;
        }
    }
    Ok(keyed.into_iter().map(|(_, version)| version).collect())
}

/// Refuses a segment whose rows are not in the order that it says.
///
/// # Errors
/// `Corrupt` saying which, or when a block does not fit its checksum.
pub fn verify(segment: &Arc<Segment>, schema: &Schema) -> Result<()> {
    if !segment.is_sorted() {
        return Ok(());
    }
    let (form, row_group) = (KeyForm::of(schema), RowGroup::Segment(Arc::clone(segment)));
    let (mut key, mut before) = (Vec::new(), Vec::new());
    for row in 0..segment.row_count() {
        form.read(&row_group, row, &mut key)?;
        if row > 0 && key < before {
            let message =
                format!("segment {}: row {row} is not in the order of the key", segment.id());
            return Err(Error::corrupt(message));
        }
        std::mem::swap(&mut key, &mut before);
    }
    Ok(())
}

fn merged(row_group: &RowGroup, form: &KeyForm, older: &[u32], newer: &[u32]) -> Result<Vec<u32>> {
    let mut rows = Vec::with_capacity(older.len() + newer.len());
    let (mut older, mut newer) = (older.iter().peekable(), newer.iter().peekable());
    let (mut a_key, mut b_key) = (Vec::new(), Vec::new());
    let read = |row: Option<&&u32>, key: &mut Vec<u8>| match row {
        Some(row) => form.read(row_group, **row as usize, key),
        None => Ok(()),
    };
    read(older.peek(), &mut a_key)?;
    read(newer.peek(), &mut b_key)?;
    while let (Some(a), Some(b)) = (older.peek(), newer.peek()) {
        // The rows of older runs have lower numbers.
        if a_key <= b_key {
            rows.push(**a);
            older.next();
            read(older.peek(), &mut a_key)?;
        } else {
            rows.push(**b);
            newer.next();
            read(newer.peek(), &mut b_key)?;
        }
    }
    rows.extend(older.chain(newer));
    Ok(rows)
}

fn compare(
    row_group: &RowGroup,
    form: &KeyForm,
    (a, b): (u32, u32),
    (a_key, b_key): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<Ordering> {
    form.read(row_group, a as usize, a_key)?;
    form.read(row_group, b as usize, b_key)?;
    Ok(a_key.cmp(&b_key).then(a.cmp(&b)))
}
