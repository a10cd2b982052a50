//! Rows that may have the parts of a text that a pattern asks for: those that have all its grams.

use std::ops::Bound as End;

use crate::Result;
use crate::predicate::{Condition, Test};
use crate::source::GramRun;

/// The most grams that are looked up, of a long pattern.
const GRAMS_MAX: usize = 64;
/// The most whose rows are read: a few rare ones leave out nearly all that others would.
const READ_MAX: usize = 6;

/// Grams that candidates have, and how many rows each: the rarest one first.
#[derive(Clone)]
pub(crate) struct GramLookup<'a> {
    pub(crate) run: &'a dyn GramRun,
    pub(crate) grams: Vec<(u32, usize)>,
}

impl<'a> GramLookup<'a> {
    /// What a run says of a test; `None` when that is nothing.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub(super) fn find(run: &'a dyn GramRun, test: &Test) -> Result<Option<Self>> {
        if test.field != run.field() {
            return Ok(None);
        }
        let parts = parts_of(&test.condition);
        let mut wanted: Vec<u32> =
            parts.iter().flat_map(|part| esker_format::grams::of(part)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.truncate(GRAMS_MAX);
        let mut grams = Vec::with_capacity(wanted.len());
        for gram in wanted {
            grams.push((gram, run.count(gram)?));
        }
        grams.sort_by_key(|(_, count)| *count);
        grams.truncate(READ_MAX);
        Ok((!grams.is_empty()).then_some(Self { run, grams }))
    }

    /// The most rows that have all of them.
    pub(crate) fn count_max(&self) -> usize {
        // default: no grams bound nothing
        self.grams.first().map_or(usize::MAX, |(_, count)| *count)
    }

    /// How many rows are to be read, of all of them together.
    pub(crate) fn entry_count(&self) -> usize {
        self.grams.iter().map(|(_, count)| *count).sum()
    }

    /// The rows that have all of them, rising.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub(crate) fn rows(&self) -> Result<Vec<u32>> {
        let Some(((rarest, _), others)) = self.grams.split_first() else { return Ok(Vec::new()) };
        let mut rows = self.run.rows(*rarest)?;
        for (gram, _) in others {
            if rows.is_empty() {
                break;
            }
            let with = self.run.rows(*gram)?;
            let mut from = 0;
            rows.retain(|row| {
                // default: behind the last there is none
                from += with.get(from..).unwrap_or_default().partition_point(|other| other < row);
                with.get(from) == Some(row)
            });
        }
        Ok(rows)
    }
}

/// Parts that every text has that meets a condition.
fn parts_of(condition: &Condition) -> Vec<String> {
    let text = |bytes: &[u8]| {
        // default: bytes that are no text have no grams
        std::str::from_utf8(bytes).map_or_else(|_| Vec::new(), |text| vec![text.to_owned()])
    };
    match condition {
        Condition::Match { pattern, negated: false } => pattern.parts(),
        // The texts that start with the least one.
        Condition::TextRange {
            least: End::Included(least),
            greatest: End::Excluded(greatest),
            negated: false,
        } if is_next(least, greatest) => text(least),
        Condition::TextSet { values, negated: false } => match values.as_slice() {
            [only] => text(only),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// True when every text between two, the second excluded, starts with the first.
fn is_next(first: &[u8], second: &[u8]) -> bool {
    match (first.split_last(), second.split_last()) {
        (Some((a, start)), Some((b, other))) => start == other && a.checked_add(1) == Some(*b),
        _ => false,
    }
}
