//! Numbers in runs, sorted and put together by all threads.
//!
//! What a morsel or batch adds is sorted by the thread that works on it. In the end the sorted runs
//! are cut at the same numbers, and the pieces between two cuts are sorted side by side, each run
//! in them being in order already.
//!
//! Invariants: runs end where `ends` says, the last at the end; each is sorted once `sort_last` was
//! called.

use esker_vfs::parallel_map;

use crate::{Options, Result};

/// About how many numbers are sorted in one piece.
const PIECE_ROWS: usize = 1 << 15;

/// Numbers, no two of which are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    numbers: Vec<u128>,
    ends: Vec<usize>,
}

impl Runs {
    /// How much memory it has.
    pub(crate) fn bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<u128>()
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Makes room for some numbers more.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.numbers.reserve(more);
    }

    pub(crate) fn push(&mut self, number: u128) {
        self.numbers.push(number);
    }

    /// Sorts what was added since the last run.
    pub(crate) fn sort_last(&mut self) {
        // default: the first run begins at the start
        let start = self.ends.last().copied().unwrap_or_default();
        if start < self.numbers.len() {
            self.numbers.get_mut(start..).unwrap_or_default().sort_unstable();
            self.ends.push(self.numbers.len());
        }
    }

    /// Adds the sorted runs of another one, each number greater by `first`.
    pub(crate) fn merge(&mut self, other: &Self, first: u128) {
        debug_assert_eq!(other.ends.last().copied().unwrap_or(0), other.numbers.len());
        // What was added one by one, such as what a walk has found, is a run of its own.
        self.sort_last();
        let start = self.numbers.len();
        self.numbers.extend(other.numbers.iter().map(|number| number + first));
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    /// What `take` makes of each piece of the numbers, in order.
    ///
    /// # Errors
    /// When the query is to end.
    pub(crate) fn finish<T: Send>(
        mut self,
        options: &Options,
        take: impl Fn(Vec<u128>) -> T + Sync,
    ) -> Result<Vec<T>> {
        self.sort_last();
        let runs = self.runs();
        let cuts = cuts(&runs, self.numbers.len());
        let pieces: Vec<(u128, Option<u128>)> = std::iter::once(0)
            .chain(cuts.iter().copied())
            .zip(cuts.iter().copied().map(Some).chain([None]))
            .collect();
        let sorted: Vec<Result<_>> = parallel_map(&*options.tasks, &pieces, |(from, to)| {
            options.expect_time_left()?;
            Ok(take(piece(&runs, *from, *to)))
        });
        sorted.into_iter().collect()
    }

    fn runs(&self) -> Vec<&[u128]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.map(|(start, end)| self.numbers.get(start..end).unwrap_or_default()).collect()
    }
}

/// The numbers from one on and below another, in order.
fn piece(runs: &[&[u128]], from: u128, to: Option<u128>) -> Vec<u128> {
    let mut numbers = Vec::new();
    for run in runs {
        let start = run.partition_point(|number| *number < from);
        let end = to.map_or(run.len(), |to| run.partition_point(|number| *number < to));
        numbers.extend_from_slice(run.get(start..end).unwrap_or_default());
    }
    // Runs are in order: the stable sort finds them and merges.
    numbers.sort();
    numbers
}

/// Numbers at which the runs are cut into pieces of about the same size, from samples of each run.
fn cuts(runs: &[&[u128]], count: usize) -> Vec<u128> {
    const SAMPLES: usize = 16;
    let pieces = count.div_ceil(PIECE_ROWS).max(1);
    let step = (count / (pieces * SAMPLES)).max(1);
    let mut samples: Vec<u128> =
        runs.iter().flat_map(|run| run.iter().skip(step / 2).step_by(step)).copied().collect();
    samples.sort_unstable();
    let mut cuts: Vec<u128> = (1..pieces)
        .filter_map(|piece| samples.get(piece * samples.len() / pieces).copied())
        .collect();
    cuts.dedup();
    cuts
}
