//! A join of which memory holds neither side: by files of equal keys.
//!
//! ```text
//! left  ─ scan ─ key, location ─► file 0 … file 15 ─┐  file n of both: the smaller one is indexed,
//! right ─ scan ─ key, location ─► file 0 … file 15 ─┤  the other is read past it
//!                                                   └─► pairs of locations, sorted ─► as in memory
//! ```
//!
//! * Of a row its key and where it lies are written; the columns that conditions on pairs read are
//!   fetched for the rows of one file at a time.
//! * A file of which memory does not hold the index is split again, and so is the one beside it,
//!   until [`LEVELS_MAX`]: then its rows have one key, and the join is refused.
//! * One file after another is joined: each may take an eighth of the memory that is left, and all
//!   write their pairs to one sorter. The index of a file is made by all threads.
//! * The pairs are those that are found in memory, and sorting gives them the same order. They have
//!   to fit: what comes out of a join lies in memory.

use std::ops::ControlFlow;

use super::build::{push_locations, vectors};
use super::fetched::Fetched;
use super::index::{Index, Keys};
use super::matched::{Marks, Matched};
use super::pairs::{Half, Pairs};
use super::{Input, JoinCounts, JoinPlan, NONE, Side, chunk};
use crate::access_path::{Goal, ScanPlan};
use crate::budget::Charge;
use crate::evaluate::Picked;
use crate::exec::aggregate::group::encode;
use crate::exec::scan::{Morsel, Scan, in_waves};
use crate::exec::sort::Location;
use crate::exec::spill::{
    ExternalSorter, LEVELS_MAX, Partitions, Record, SpillReader, key_of, record_of, rest_of,
    rising, split,
};
use crate::filter::CodeTables;
use crate::model::JoinKind;
use crate::predicate::Predicate;
use crate::{Error, ErrorKind, Options, Result, TemporaryFiles, ZONE_ROWS};
use esker_format::Room;

/// What the rows of a file may take, however small the budget is.
const BYTES_MIN: u64 = 32 << 10;

/// A join by files.
struct Join<'p> {
    plan: &'p JoinPlan<'p>,
    pair: &'p Predicate,
    options: &'p Options,
    files: &'p TemporaryFiles,
    /// Pairs, by the location of the left row and then by that of the right one.
    found: ExternalSorter<'p>,
}

/// What a join by files has found.
pub(super) enum Outcome<'b> {
    Pairs(Pairs<'b>),
    /// Rows of the left.
    SemiJoinSource(Vec<Location>),
}

/// Runs a join of which the sides have keys.
///
/// # Errors
/// `OverBudget` when the rows of one key are too many, and what writing and reading fails with.
pub(super) fn run<'b>(
    plan: &JoinPlan<'_>,
    side: Side,
    (floats, pair): (&[bool], &Predicate),
    (options, files): (&'b Options, &TemporaryFiles),
) -> Result<(Outcome<'b>, JoinCounts)> {
    let found = ExternalSorter::new(options, files);
    let mut join = Join { plan, pair, options, files, found };
    let (left, left_rows) = join.partition(&plan.left, floats, true)?;
    let (right, right_rows) = join.partition(&plan.right, floats, false)?;
    let mut todo: Vec<_> = left.into_iter().zip(right).map(|(l, r)| (l, r, 1)).collect();
    while let Some((left, right, level)) = todo.pop() {
        if let Some((left, right)) = join.files(left, right, level)? {
            todo.extend(left.into_iter().zip(right).map(|(l, r)| (l, r, level + 1)));
        }
    }
    let shows_right = plan.kind.shows_right();
    let outcome = join.finish(shows_right, options)?;
    let (rows_built, rows_probed) = side.order(left_rows, right_rows);
    let rows_out = match &outcome {
        Outcome::Pairs(pairs) => pairs.len(),
        Outcome::SemiJoinSource(rows) => rows.len(),
    };
    let rows_out = rows_out as u64;
    Ok((outcome, JoinCounts { rows_built, rows_probed, rows_out, ..JoinCounts::default() }))
}

impl<'p> Join<'p> {
    /// Writes the rows of a side by their keys, and tells how many there are.
    fn partition(
        &mut self,
        input: &Input<'_>,
        floats: &[bool],
        is_left: bool,
    ) -> Result<(Vec<SpillReader>, u64)> {
        let predicate = Predicate::compile(input.filter.as_ref());
        let plan = ScanPlan::new(&predicate, input.source, Goal::ALL, self.options)?;
        let tables = CodeTables::default();
        let scan = Scan::new(input.source, &predicate, &tables, &plan, self.options);
        let job = |morsel: &Morsel| {
            let (mut locations, mut records) = (Vec::new(), Vec::new());
            let room = Room::default();
            scan.run((morsel, &room), |rows, mask| {
                let picked = Picked::of(&mask);
                let keys = vectors(&input.keys, floats, rows, picked.selection())?;
                push_locations(&mut locations, morsel.part, rows, picked.selection());
                records.extend((0..picked.selection().len()).map(|i| {
                    // No key has no bytes: what has none matches nothing.
                    let has_null = keys.iter().any(|key| key.is_null(i));
                    let keys = if has_null { &[] } else { keys.as_slice() };
                    record_of(|out| keys.iter().for_each(|key| encode(out, key, i)))
                }));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok((locations, records))
        };
        let stays = is_left && matches!(self.plan.kind, JoinKind::Left | JoinKind::Anti);
        let (mut parts, mut count) = (Partitions::new(self.files, 0)?, 0u64);
        let few = self.options.tasks.parallelism().max(1);
        let found = &mut self.found;
        in_waves(self.options, &scan.morsels(|_| true), few, job, |(locations, records)| {
            count += locations.len() as u64;
            for (location, mut record) in locations.into_iter().zip(records) {
                if !key_of(&record).is_empty() {
                    record.extend(place_of(location).to_le_bytes());
                    parts.push(&record)?;
                } else if stays {
                    push(found, location, None)?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((parts.finish()?, count))
    }

    /// Joins the rows of two files; when memory does not hold either, splits both.
    #[allow(clippy::type_complexity, reason = "the parts of either")]
    fn files(
        &mut self,
        left: SpillReader,
        right: SpillReader,
        level: u32,
    ) -> Result<Option<(Vec<SpillReader>, Vec<SpillReader>)>> {
        let side = if left.len() < right.len() { Side::Left } else { Side::Right };
        let is_empty = left.len() == 0 || right.len() == 0;
        if left.len() == 0
            || (is_empty && matches!(self.plan.kind, JoinKind::Inner | JoinKind::Semi))
        {
            return Ok(None);
        }
        let (mut build, mut probe) = side.order(left, right);
        let limit = (self.options.memory().left() as u64 / 8).max(BYTES_MIN);
        let built = match build.len() > limit {
            true => None,
            false => match self.build(&mut build, side) {
                Err(e) if e.kind() == ErrorKind::OverBudget => None,
                built => Some(built?),
            },
        };
        if let Some(built) = built {
            self.probe(&built, &mut probe, side)?;
            return Ok(None);
        }
        if level >= LEVELS_MAX {
            let (bytes, budget) = (build.len(), self.options.memory().left());
            let message = format!(
                "the rows of one key of a join need more than {bytes} bytes of memory on either \
                 side, and the query may have {budget}: leave out rows by WHERE, or give it more"
            );
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        let again = |file: SpillReader| split(file.again(), level, self.options, self.files);
        Ok(Some(side.order(again(build)?, again(probe)?)))
    }

    /// The rows of a file with an index on their keys.
    fn build(&self, file: &mut SpillReader, side: Side) -> Result<Built<'p>> {
        let (input, _) = self.plan.inputs(side);
        let mut charge = self.options.memory().charge();
        let (mut heap, mut ends, mut locations) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(record) = file.next()? {
            heap.extend_from_slice(key_of(record));
            ends.push(heap.len());
            locations.push(location_of(record));
            if ends.len().is_multiple_of(ZONE_ROWS) {
                self.options.expect_time_left()?;
                charge.set(heap.capacity() + (ends.capacity() + locations.capacity()) * 8)?;
            }
        }
        super::input::refuse_many(locations.len())?;
        let index = Index::new(Keys::Bytes { heap, ends }, locations.len(), self.options)?;
        let bytes = index.bytes() + locations.capacity() * size_of::<Location>();
        charge.set(bytes)?;
        let columns = self.fetch(input, &locations)?;
        charge.set(bytes + columns.bytes())?;
        Ok(Built { locations, index, columns, _charge: charge })
    }

    /// What conditions on pairs read of some rows.
    fn fetch(&self, input: &Input<'_>, locations: &[Location]) -> Result<Fetched> {
        Fetched::new(input.source, locations, &input.pair_columns, self.options)
    }

    /// Reads the rows of a file past an index.
    fn probe(&mut self, built: &Built<'_>, file: &mut SpillReader, side: Side) -> Result<()> {
        let mut marks = Marks::new(built.locations.len());
        loop {
            self.options.expect_time_left()?;
            let (mut first, mut locations) = (Vec::new(), Vec::new());
            while locations.len() < ZONE_ROWS
                && let Some(record) = file.next()?
            {
                first.push(built.index.first_of(key_of(record)));
                locations.push(location_of(record));
            }
            if locations.is_empty() {
                break;
            }
            let columns = self.fetch(self.plan.inputs(side).1, &locations)?;
            let rows = Probed { columns, first };
            let matched = self.matched(built, &rows, side, &mut marks)?;
            let count = u32::try_from(locations.len()).unwrap_or(NONE);
            let mut pairs = Vec::new();
            matched.for_each(count, |i, has_match, own| {
                let of = |(_, row): &(u32, u32)| built.locations.get(*row as usize).copied();
                let Some(here) = locations.get(i as usize).copied() else { return };
                match (side, self.plan.kind) {
                    (Side::Left, _) if has_match => {
                        own.iter().for_each(|(_, row)| marks.set(*row));
                        pairs.extend(own.iter().filter_map(of).map(|left| (left, Some(here))));
                    }
                    (Side::Right, JoinKind::Inner) if has_match => {
                        pairs.extend(own.iter().map(|pair| (here, of(pair))));
                    }
                    (Side::Right, JoinKind::Left) => {
                        pairs.extend(own.iter().map(|pair| (here, of(pair))));
                    }
                    (Side::Right, JoinKind::Semi) if has_match => pairs.push((here, None)),
                    (Side::Right, JoinKind::Anti) if !has_match => pairs.push((here, None)),
                    _ => {}
                }
            });
            pairs.into_iter().try_for_each(|(left, right)| push(&mut self.found, left, right))?;
        }
        let wanted = match (side, self.plan.kind) {
            (Side::Left, JoinKind::Left | JoinKind::Anti) => false,
            (Side::Left, JoinKind::Semi) => true,
            _ => return Ok(()),
        };
        for (row, location) in (0u32..).zip(&built.locations) {
            if marks.has(row) == wanted {
                push(&mut self.found, *location, None)?;
            }
        }
        Ok(())
    }

    /// The pairs of some rows that match.
    fn matched(
        &self,
        built: &Built<'_>,
        rows: &Probed,
        side: Side,
        marks: &mut Marks,
    ) -> Result<Matched> {
        let mut matched = Matched::new(self.plan.kind, side, rows.first.len());
        let is_first_enough = !self.pair.may_fail() && !self.plan.kind.shows_right();
        let mut charge = self.options.memory().charge();
        let mut candidates: Vec<(u32, u32)> = Vec::new();
        let test = |candidates: &mut Vec<(u32, u32)>| {
            self.options.expect_time_left()?;
            if *self.pair == Predicate::Constant(true) {
                return Ok(());
            }
            let (here, there): (Vec<u32>, Vec<u32>) = candidates.iter().copied().unzip();
            let (here, there) = (rows.columns.take(&here)?, built.columns.take(&there)?);
            let (mut all, right) = side.order(there, here);
            all.columns.extend(right.columns);
            chunk::test(self.pair, all, candidates, self.options.limits())
        };
        for (i, first) in (0u32..).zip(&rows.first) {
            let mut row = *first;
            while row != NONE && !(is_first_enough && matched.has_row(i)) {
                if !(is_first_enough && matched.has_built(row, marks)) {
                    candidates.push((i, row));
                }
                row = built.index.next(row);
                if candidates.len() == ZONE_ROWS {
                    test(&mut candidates)?;
                    matched.add(&mut candidates, marks);
                    charge.set(matched.bytes())?;
                }
            }
        }
        if !candidates.is_empty() {
            test(&mut candidates)?;
            matched.add(&mut candidates, marks);
        }
        Ok(matched)
    }

    /// What was found, in order.
    fn finish<'b>(self, shows_right: bool, options: &'b Options) -> Result<Outcome<'b>> {
        let mut merge = self.found.finish()?;
        let mut charge: Charge<'b> = options.memory().charge();
        let (mut lefts, mut numbers) = (Vec::<Location>::new(), Vec::new());
        let mut rights: Vec<u64> = Vec::new();
        while let Some(Record { key, .. }) = merge.next()? {
            let (left, right) = key.split_at_checked(8).unwrap_or_default();
            let left = at_place(place_in(left));
            if lefts.last() != Some(&left) {
                lefts.push(left);
            }
            if shows_right {
                numbers.push(u32::try_from(lefts.len() - 1).unwrap_or(NONE));
                rights.push(place_in(right));
            }
            if lefts.len().max(rights.len()).is_multiple_of(ZONE_ROWS) {
                charge.set(lefts.capacity() * 8 + rights.capacity() * 28)?;
            }
        }
        super::input::refuse_many(lefts.len().max(rights.len()))?;
        charge.set(lefts.capacity() * 8 + rights.capacity() * 28)?;
        if !shows_right {
            return Ok(Outcome::SemiJoinSource(lefts));
        }
        let mut places = rights.clone();
        places.sort_unstable();
        places.dedup();
        places.pop_if(|place| *place == NOWHERE);
        let number = |place: &u64| match places.binary_search(place) {
            Ok(number) => u32::try_from(number).unwrap_or(NONE),
            Err(_) => NONE,
        };
        let right = Half {
            numbers: rights.iter().map(number).collect(),
            locations: places.iter().map(|place| at_place(*place)).collect(),
        };
        let left = Half { locations: lefts, numbers };
        Ok(Outcome::Pairs(Pairs { left, right, _charge: charge }))
    }
}

/// The rows of one file, with an index.
struct Built<'b> {
    locations: Vec<Location>,
    index: Index,
    columns: Fetched,
    _charge: Charge<'b>,
}

/// Some rows of the file beside it.
struct Probed {
    columns: Fetched,
    /// The first row of each one's key.
    first: Vec<u32>,
}

/// What stands for the right row of a left one without a match.
const NOWHERE: u64 = u64::MAX;

/// Adds a pair.
fn push(found: &mut ExternalSorter<'_>, left: Location, right: Option<Location>) -> Result<()> {
    let right = right.map_or(NOWHERE, place_of);
    found.push(&[rising(place_of(left)), rising(right)].concat(), &[])
}

fn place_of(location: Location) -> u64 {
    u64::from(location.part) << 32 | u64::from(location.row)
}

fn at_place(place: u64) -> Location {
    let part = u32::try_from(place >> 32).unwrap_or(u32::MAX);
    let row = u32::try_from(place & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    Location { part, row }
}

/// The place in the key of a sorted record.
fn place_in(bytes: &[u8]) -> u64 {
    let mut bytes = bytes.first_chunk::<8>().copied().unwrap_or_default();
    bytes.reverse();
    u64::from_le_bytes(bytes)
}

/// The location behind the key of a record.
fn location_of(record: &[u8]) -> Location {
    at_place(u64::from_le_bytes(rest_of(record).first_chunk::<8>().copied().unwrap_or_default()))
}
