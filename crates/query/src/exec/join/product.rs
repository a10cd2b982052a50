//! All pairs of two sides as a source, of which none is made before it is requested.
//!
//! ```text
//! left 1 2, right a b c      row    0    1    2    3    4    5
//!                            pair   1 a  1 b  1 c  2 a  2 b  2 c
//!                                   └─ batch ─┘    └─ batch ─┘
//! ```
//!
//! A batch has one row of the left, whose values are constants in it, beside a slice of the right,
//! which lies in memory. So a condition on a pair is tested as one on a row is, thousands at once,
//! and nothing is copied; a limit, a group and a count see batches as those of a table. Pairs come
//! in the order of the left rows, then of the right ones.
//!
//! Where a number of the right lies between two of the left ([`band`](super::band)), each row of
//! the left has those pairs alone, and the right lies in the order of that number.
//!
//! In a left join each row of the left has one pair more, with NULLs on the right. It is visible
//! where no other of that row passes the condition, and else the others are; which rows that are
//! is found by going through all pairs once before.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use esker_format::{Batch, ColumnSlice, Data, Room, Schema, Validity, ValueRef};

use super::band::Bands;
use super::build::Built;
use super::fetched::Fetched;
use super::{Input, JoinCounts, JoinPlan};
use crate::access_path::{Goal, ScanPlan};
use crate::bound::Bound;
use crate::budget::Charge;
use crate::exec::output::materialised::slice;
use crate::exec::scan::{Morsel, Scan, WAVE_MAX, in_waves};
use crate::exec::sort::Location;
use crate::filter::CodeTables;
use crate::predicate::Predicate;
use crate::source::SourceRef;
use crate::{Error, ErrorKind, Fragment, Options, Result, Source, ZONE_ROWS, Zone};

/// The most rows of a part, but for those of one row of the left.
const PART_ROWS: usize = 1 << 30;

/// The most pairs.
const PAIRS_MAX: usize = 1 << 44;

/// All pairs of the rows of two sides.
pub(crate) struct Product<'a> {
    sides: Arc<Sides<'a>>,
    parts: Vec<ProductPart<'a>>,
}

/// The pairs of some rows of the left.
struct ProductPart<'a> {
    sides: Arc<Sides<'a>>,
    /// The numbers of these rows.
    lefts: Range<usize>,
}

/// What pairs are made of.
struct Sides<'a> {
    /// Columns of the left, then of the right; then, in a left join, whether there is no match.
    schema: Schema,
    left: SourceRef<'a>,
    left_rows: LeftRows,
    /// The positions of the columns that the left gives.
    left_columns: Vec<usize>,
    /// The columns of the right, [`ZONE_ROWS`] rows in a batch.
    right: Vec<Batch>,
    right_rows: usize,
    /// In a left join: the rows of the left that have a match.
    matched: Option<Vec<bool>>,
    /// Which rows of the right belong to each of the left, where that is not all of them.
    bands: Option<Bands>,
}

/// Which rows of the left there are, by their numbers.
enum LeftRows {
    /// All; the number of the first row of each part, and of what would come after the last.
    All(Vec<usize>),
    Some(Vec<Location>),
}

/// The rows of the right, in memory.
pub(crate) struct Rights<'b> {
    columns: Fetched,
    row_count: usize,
    charge: Charge<'b>,
}

impl<'b> Rights<'b> {
    /// Reads the right side of a plan.
    ///
    /// # Errors
    /// `OverBudget` when it does not fit in memory, and what reading fails with.
    pub(crate) fn new(plan: &JoinPlan<'_>, options: &'b Options) -> Result<Self> {
        let right = &plan.right;
        let parts = || (0..right.source.part_count()).map(|part| right.source.part(part));
        let visible: Option<usize> = parts().map(|part| part.visible_count()).sum();
        let is_counted = right.columns.is_empty() && right.filter.is_none() && plan.band.is_none();
        if let (true, Some(row_count)) = (is_counted, visible) {
            // How many there are is all that matters.
            let charge = options.memory().charge();
            return Ok(Self { columns: Fetched::default(), row_count, charge });
        }
        let Built { locations, pair_columns, mut charge, .. } =
            Built::new(&alone(right, &right.columns), &[], options)?;
        charge.set(pair_columns.bytes())?;
        Ok(Self { columns: pair_columns, row_count: locations.len(), charge })
    }

    pub(crate) fn row_count(&self) -> usize {
        self.row_count
    }
}

impl<'a> Product<'a> {
    /// All pairs with some rows of the right; `left` is the source of the left side of the plan.
    /// The schema is that of the wanted columns.
    ///
    /// # Errors
    /// `OverBudget` for too many pairs, and what reading fails with.
    pub(crate) fn new<'b>(
        plan: &JoinPlan<'_>,
        left: &SourceRef<'a>,
        rights: Rights<'b>,
        schema: Schema,
        options: &'b Options,
    ) -> Result<(Self, [Charge<'b>; 2], JoinCounts)> {
        let Rights { columns, row_count: right_rows, charge: right_charge } = rights;
        let (left_rows, mut left_charge, right, bands) = match &plan.band {
            None => {
                let (rows, charge) = LeftRows::new(&plan.left, options)?;
                (rows, charge, columns.into_batches(), None)
            }
            Some(band) => {
                let sides = (&plan.left, &plan.right);
                let (lefts, right, bands) = Bands::new(band, sides, &columns, options)?;
                (LeftRows::Some(lefts), options.memory().charge(), right, Some(bands))
            }
        };
        if let (LeftRows::Some(lefts), Some(bands)) = (&left_rows, &bands) {
            left_charge.set(lefts.capacity() * size_of::<Location>() + bands.bytes())?;
        }
        let left_count = left_rows.len();
        let pairs = match &bands {
            Some(bands) => Some(bands.pair_count()),
            None => left_count.checked_mul(right_rows),
        };
        let Some(rows_out) = pairs.filter(|pairs| *pairs <= PAIRS_MAX) else {
            let message =
                format!("a join of {left_count} rows with {right_rows}: at most {PAIRS_MAX} pairs");
            return Err(Error::new(ErrorKind::OverBudget, message));
        };
        let (left, left_columns) = (left.clone(), plan.left.columns.clone());
        let matched = None;
        let product = Self::of(Sides {
            schema,
            left,
            left_rows,
            left_columns,
            right,
            right_rows,
            matched,
            bands,
        });
        let counts = JoinCounts {
            rows_built: right_rows as u64,
            rows_probed: left_count as u64,
            rows_out: rows_out as u64,
            ..JoinCounts::default()
        };
        Ok((product, [left_charge, right_charge], counts))
    }

    fn of(sides: Sides<'a>) -> Self {
        let (lefts, sides) = (sides.left_rows.len(), Arc::new(sides));
        let (mut parts, mut start) = (Vec::new(), 0);
        while start < lefts {
            let end = sides.part_end(start).clamp(start + 1, lefts);
            parts.push(ProductPart { sides: Arc::clone(&sides), lefts: start..end });
            start = end;
        }
        Self { sides, parts }
    }

    /// The pairs of a left join on a condition, before it is tested. The schema has one more field,
    /// which is true of a row without a match.
    ///
    /// # Errors
    /// `OutOfRange` when the condition cannot be computed, and what reading fails with.
    pub(crate) fn with_unmatched<'b>(
        self,
        on: Option<&Bound>,
        schema: Schema,
        options: &'b Options,
    ) -> Result<(Self, Charge<'b>)> {
        let mut charge = options.memory().charge();
        charge.set(self.sides.left_rows.len())?;
        let matched = self.matched(on, options)?;
        let Self { sides, parts } = self;
        drop(parts);
        let sides = Arc::into_inner(sides).ok_or_else(|| Error::invalid("pairs are in use"))?;
        Ok((Self::of(Sides { schema, matched: Some(matched), ..sides }), charge))
    }

    /// Which rows of the left have a pair that passes a condition.
    fn matched(&self, on: Option<&Bound>, options: &Options) -> Result<Vec<bool>> {
        let predicate = Predicate::compile(on);
        let is_all = predicate == Predicate::Constant(true) && self.sides.right_rows > 0;
        let mut matched = vec![is_all; self.sides.left_rows.len()];
        if is_all {
            return Ok(matched);
        }
        let plan = ScanPlan::new(&predicate, self, Goal::ALL, options)?;
        let tables = CodeTables::default();
        let scan = Scan::new(self, &predicate, &tables, &plan, options);
        let job = |morsel: &Morsel| {
            let mut found = Vec::new();
            let room = Room::default();
            scan.run((morsel, &room), |rows, _| {
                let part = self.parts.get(morsel.part);
                found.extend(part.map(|part| part.pair(rows.start()).0));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        };
        in_waves(options, &scan.morsels(|_| true), WAVE_MAX, job, |found| {
            for left in found {
                matched.get_mut(left).into_iter().for_each(|mark| *mark = true);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(matched)
    }
}

/// One side without what it is to be equal to.
fn alone<'s>(input: &Input<'s>, pair_columns: &[usize]) -> Input<'s> {
    Input {
        source: input.source,
        filter: input.filter.clone(),
        keys: Vec::new(),
        columns: Vec::new(),
        pair_columns: pair_columns.to_vec(),
    }
}

impl LeftRows {
    /// Those that pass the filter of the left.
    fn new<'b>(input: &Input<'_>, options: &'b Options) -> Result<(Self, Charge<'b>)> {
        let parts = || (0..input.source.part_count()).map(|part| input.source.part(part));
        let all_visible = parts().all(|part| part.visible_count() == Some(part.row_count()));
        if input.filter.is_none() && all_visible {
            let mut starts = vec![0];
            let mut rows = 0usize;
            for part in parts() {
                rows = rows.saturating_add(part.row_count());
                starts.push(rows);
            }
            return Ok((Self::All(starts), options.memory().charge()));
        }
        let Built { locations, mut charge, .. } = Built::new(&alone(input, &[]), &[], options)?;
        charge.set(locations.capacity() * size_of::<Location>())?;
        Ok((Self::Some(locations), charge))
    }

    fn len(&self) -> usize {
        match self {
            Self::All(starts) => starts.last().copied().unwrap_or_default(),
            Self::Some(locations) => locations.len(),
        }
    }

    /// The part of a row, and its number there.
    fn place(&self, number: usize) -> Option<(usize, usize)> {
        match self {
            Self::All(starts) => {
                let part = starts.partition_point(|start| *start <= number).checked_sub(1)?;
                Some((part, number - starts.get(part)?))
            }
            Self::Some(locations) => {
                let found = locations.get(number)?;
                Some((found.part as usize, found.row as usize))
            }
        }
    }
}

impl Sides<'_> {
    /// How many pairs each row of the left has, where all have as many.
    fn pairs_each(&self) -> usize {
        self.right_rows + usize::from(self.matched.is_some())
    }

    /// The number of the first pair of a row of the left.
    fn start(&self, left: usize) -> usize {
        match &self.bands {
            // default: what would come after the last row has a number, too
            Some(bands) => bands.starts.get(left).copied().unwrap_or_default(),
            None => left * self.pairs_each(),
        }
    }

    /// Where a part ends that begins with a row of the left.
    fn part_end(&self, left: usize) -> usize {
        match &self.bands {
            Some(bands) => {
                let most = self.start(left) + PART_ROWS;
                bands.starts.partition_point(|start| *start <= most).saturating_sub(1)
            }
            None => left + (PART_ROWS / self.pairs_each().max(1)).max(1),
        }
    }
}

impl Source for Product<'_> {
    fn schema(&self) -> &Schema {
        &self.sides.schema
    }

    fn part_count(&self) -> usize {
        self.parts.len()
    }

    #[allow(clippy::indexing_slicing, reason = "the contract of the trait")]
    fn part(&self, index: usize) -> &dyn Fragment {
        &self.parts[index]
    }
}

impl ProductPart<'_> {
    /// The number of a row's left row, and that of its right one, which there may not be.
    fn pair(&self, row: usize) -> (usize, usize) {
        let Some(bands) = &self.sides.bands else {
            let count = self.sides.pairs_each().max(1);
            return (self.lefts.start + row / count, row % count);
        };
        let pair = self.sides.start(self.lefts.start) + row;
        let left = bands.starts.partition_point(|start| *start <= pair).saturating_sub(1);
        // default: every row of the left has a first row of the right
        let first = bands.firsts.get(left).copied().unwrap_or_default() as usize;
        (left, first + pair - self.sides.start(left))
    }
}

impl Fragment for ProductPart<'_> {
    fn row_count(&self) -> usize {
        self.sides.start(self.lefts.end) - self.sides.start(self.lefts.start)
    }

    fn visible_count(&self) -> Option<usize> {
        let Some(matched) = &self.sides.matched else { return Some(self.row_count()) };
        let matched = matched.get(self.lefts.clone())?.iter().filter(|matched| **matched).count();
        Some(matched * self.sides.right_rows + self.lefts.len() - matched)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let (left, right) = self.pair(start);
        let zone_left = ZONE_ROWS - start % ZONE_ROWS;
        let batch_left = ZONE_ROWS - right % ZONE_ROWS;
        // The pair without a right row is a batch.
        let rights_left = match &self.sides.bands {
            Some(_) => {
                let pair = self.sides.start(self.lefts.start) + start;
                self.sides.start(left + 1).saturating_sub(pair)
            }
            None => self.sides.right_rows.saturating_sub(right).max(1),
        };
        start + rows_max.min(zone_left).min(batch_left).min(rights_left)
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let (left, right) = self.pair(rows.start);
        let sides = &*self.sides;
        let missing = || Error::invalid(format!("no column {position} of pairs {rows:?}"));
        let field = sides.schema.fields().get(position).ok_or_else(missing)?;
        let constant = |value| ColumnSlice {
            data_type: field.data_type,
            len: rows.len(),
            validity: Validity::AllValid,
            data: Data::Constant(value),
        };
        if let Some(at) = sides.left_columns.get(position) {
            let (part, row) = sides.left_rows.place(left).ok_or_else(missing)?;
            let column = sides.left.get().part(part).column(*at, row..row + 1, room)?;
            return Ok(constant(column.value(0)));
        }
        let is_unmatched = right == sides.right_rows;
        let is_last = position + 1 == sides.schema.fields().len();
        if sides.matched.is_some() && is_last {
            return Ok(constant(ValueRef::Bool(is_unmatched)));
        }
        if is_unmatched {
            return Ok(constant(ValueRef::Null));
        }
        let batch = sides.right.get(right / ZONE_ROWS);
        let at = position - sides.left_columns.len();
        let column = batch.and_then(|batch| batch.columns.get(at)).ok_or_else(missing)?;
        let start = right % ZONE_ROWS;
        slice(column, start..start + rows.len()).ok_or_else(missing)
    }

    fn visible(&self, rows: Range<usize>) -> Option<Vec<u64>> {
        let matched = self.sides.matched.as_ref()?;
        let (left, right) = self.pair(rows.start);
        let has_match = matched.get(left).copied().unwrap_or_default();
        let is_unmatched = right == self.sides.right_rows;
        (has_match == is_unmatched).then(|| vec![0; rows.len().div_ceil(64)])
    }

    fn zone(&self, _position: usize, _zone: usize) -> Option<Zone<'_>> {
        None
    }
}
