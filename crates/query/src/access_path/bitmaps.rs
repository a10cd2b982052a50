//! The rows of the values of a field that pass a filter: it is tried once for each value, by the
//! kernels that test rows.

use std::collections::BTreeSet;

use crate::Result;
use crate::filter::passing;
use crate::limits::Limits;
use crate::predicate::Predicate;
use crate::source::BitmapRun;

/// How many rows' bits are set in the time that an entry of a sorted run takes.
const ROWS_PER_ENTRY: usize = 64;

/// Values of a run of bitmaps.
#[derive(Clone)]
pub(crate) struct BitmapLookup<'a> {
    pub(crate) run: &'a dyn BitmapRun,
    /// The values that are read: those that pass, or with `complement` those that do not.
    values: Vec<usize>,
    complement: bool,
    /// How many rows have values that pass.
    count: usize,
    /// What reading takes.
    entries: usize,
}

impl<'a> BitmapLookup<'a> {
    /// The rows that pass a filter, of a part of `rows` rows; `None` when the filter is not of the
    /// run's field alone, or may fail.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub(super) fn find(
        run: &'a dyn BitmapRun,
        predicate: &Predicate,
        rows: usize,
        limits: &Limits,
    ) -> Result<Option<Self>> {
        let mut fields = BTreeSet::new();
        predicate.collect_fields(&mut fields);
        if !fields.into_iter().eq([run.field()]) || predicate.may_fail() {
            return Ok(None);
        }
        let column = run.values()?;
        let mask = passing(predicate, run.field(), column, limits)?;
        // Fewer rows are in fewer bytes.
        let (mut with, mut without) = (Vec::new(), Vec::new());
        let (mut count, mut entries) = (0, [0, 0]);
        for value in 0..column.len {
            let has = run.count(value)?;
            let cost = has.min(rows / ROWS_PER_ENTRY) + 1;
            let (values, sum) = match mask.contains(value) {
                true => (&mut with, &mut entries[0]),
                false => (&mut without, &mut entries[1]),
            };
            values.push(value);
            *sum += cost;
            count += if mask.contains(value) { has } else { 0 };
        }
        let complement = entries[1] < entries[0];
        let (values, entries) = if complement { (without, entries[1]) } else { (with, entries[0]) };
        Ok(Some(Self { run, values, complement, count, entries }))
    }

    /// How many rows there are, the dead and the invisible included.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// What reading takes, in entries of a sorted run.
    pub(crate) fn entry_count(&self) -> usize {
        self.entries
    }

    /// Sets the bits of the rows, of `rows`; they are all zero before.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub(crate) fn fill(&self, bits: &mut [u64], rows: usize) -> Result<()> {
        for value in &self.values {
            self.run.add_rows(*value, bits)?;
        }
        if self.complement {
            bits.iter_mut().for_each(|word| *word = !*word);
            if let Some(last) = bits.last_mut().filter(|_| !rows.is_multiple_of(64)) {
                *last &= (1 << (rows % 64)) - 1;
            }
        }
        Ok(())
    }
}
