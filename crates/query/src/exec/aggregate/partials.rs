//! Partial aggregates: what groups have after some rows, taken out to be kept, and put back as if
//! the rows were met again.
//!
//! ```text
//! rows of a segment ─ update ─► Groups ─ partial_columns ─► columns that are kept
//!                                                                │
//! Groups of a query ◄─ subtract ─ invisible rows      ◄─ update_partials
//! ```

use esker_format::{Column, DataType, ValueRef};

use super::{Accumulator, State};
use crate::bound::Bound;
use crate::evaluate::key_codec::decode_into;
use crate::evaluate::{Lanes, Mask, Picked, Rows, Vector, evaluate};
use crate::exec::aggregate::group::{GroupIds, Groups};
use crate::source::rollup_layout::RollupLayout;
use crate::{Error, Result};

/// Where an accumulator gets what is kept of its values from, by the columns that have it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Feed {
    /// How many rows or values.
    Counts(Bound),
    /// How many rows have a value of an expression.
    CountsOf(Bound, Bound),
    /// Sums of values, and how many there are.
    Sums(Bound, Bound),
    /// One value each, of which any number is as good as one.
    Values(Bound),
}

impl Accumulator {
    /// Adds partial aggregates, those of row `i` of the selection to its group.
    fn update_partials(&mut self, ids: &GroupIds<'_>, feed: &[Vector<'_>]) -> Result<()> {
        match (&mut self.state, feed) {
            (State::Rows(counts) | State::Values(counts), [weights, value]) => {
                let is_known = |row: usize| !value.is_null(row);
                add_counts(counts, ids, weights, &is_known)
            }
            (State::Rows(into) | State::Values(into), [counts]) => {
                add_counts(into, ids, counts, &|_| true)
            }
            (State::Integers { sums: into, counts: known }, [sums, counts]) => {
                let Lanes::Wides(values) = &sums.lanes else { return Err(misfit()) };
                for (group, sum) in ids.numbers().iter().zip(values.iter()) {
                    let into = into.get_mut(*group as usize).ok_or_else(misfit)?;
                    *into = into.checked_add(*sum).ok_or_else(misfit)?;
                }
                add_counts(known, ids, counts, &|_| true)
            }
            (_, [values]) => {
                self.update(ids, Some(values));
                Ok(())
            }
            _ => Err(misfit()),
        }
    }

    /// Takes away what some of the rows have added: of each pair, the first group there is the
    /// second here. False where that cannot be told, as they have the least or greatest value.
    fn subtract(&mut self, gone: &Self, pairs: &[(u32, u32)]) -> Result<bool> {
        match (&mut self.state, &gone.state) {
            (State::Rows(a), State::Rows(b)) | (State::Values(a), State::Values(b)) => {
                subtract_counts(a, b, pairs)?;
            }
            (State::Integers { sums, counts }, State::Integers { sums: b, counts: c }) => {
                for (there, here) in pairs {
                    let (into, sum) = (sums.get_mut(*here as usize), b.get(*there as usize));
                    let (Some(into), Some(sum)) = (into, sum) else { return Err(misfit()) };
                    *into = into.checked_sub(*sum).ok_or_else(misfit)?;
                }
                subtract_counts(counts, c, pairs)?;
            }
            (State::Extremes(a), State::Extremes(b)) => return Ok(a.keep_without(b, pairs)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is kept of some groups, in an order: how many there are, and what is made of them.
    fn push_partials(&self, order: &[u32], columns: &mut [Column]) -> Result<()> {
        let of = |counts: &[u64], group: u32| counts.get(group as usize).copied();
        for group in order {
            match (&self.state, &mut *columns) {
                (State::Rows(counts) | State::Values(counts), [into]) => {
                    into.push(ValueRef::Uint(of(counts, *group).ok_or_else(misfit)?))?;
                }
                (State::Integers { sums, counts }, [into, of_sums]) => {
                    into.push(ValueRef::Uint(of(counts, *group).ok_or_else(misfit)?))?;
                    let sum = sums.get(*group as usize).ok_or_else(misfit)?;
                    of_sums.push(ValueRef::from_mantissa(of_sums.data_type, *sum))?;
                }
                (State::Extremes(extremes), [into]) => {
                    let value = extremes.value(*group as usize, into.data_type);
                    into.push(value.as_ref())?;
                }
                _ => return Err(misfit()),
            }
        }
        Ok(())
    }
}

fn add_counts(
    into: &mut [u64],
    ids: &GroupIds<'_>,
    counts: &Vector<'_>,
    is_known: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let Lanes::Ints(counts) = &counts.lanes else { return Err(misfit()) };
    for (row, (group, count)) in ids.numbers().iter().zip(counts.iter()).enumerate() {
        if is_known(row) {
            let into = into.get_mut(*group as usize).ok_or_else(misfit)?;
            *into += u64::try_from(*count).map_err(|_| misfit())?;
        }
    }
    Ok(())
}

fn subtract_counts(into: &mut [u64], counts: &[u64], pairs: &[(u32, u32)]) -> Result<()> {
    for (there, here) in pairs {
        let (into, count) = (into.get_mut(*here as usize), counts.get(*there as usize));
        let (Some(into), Some(count)) = (into, count) else { return Err(misfit()) };
        *into = into.checked_sub(*count).ok_or_else(misfit)?;
    }
    Ok(())
}

/// What is kept of a rollup is not what its segment says.
pub(crate) fn misfit() -> Error {
    Error::new(crate::ErrorKind::Corrupt, "partial aggregates of a rollup that do not fit its rows")
}

/// The groups of partial aggregates, how many rows each has, and its first row.
pub(crate) struct PartialGroups<'s> {
    groups: Groups<'s>,
    rows: Vec<u64>,
    /// The first row of each, and its grouping set: a row is in a group of each set, in turn.
    firsts: Vec<(i64, usize)>,
}

/// What makes groups of the columns that are kept of others.
#[derive(Clone, Copy)]
pub(crate) struct Feeds<'a> {
    /// The keys of the step.
    pub(crate) keys: &'a [Bound],
    /// What each of its aggregates gets.
    pub(crate) aggregates: &'a [Feed],
    /// How many rows a group has.
    pub(crate) rows: &'a Bound,
    /// The first of them.
    pub(crate) first: &'a Bound,
    /// The number of the row from which those are counted.
    pub(crate) first_row: i64,
}

impl<'s> PartialGroups<'s> {
    pub(crate) fn new(groups: Groups<'s>) -> Self {
        Self { groups, rows: Vec::new(), firsts: Vec::new() }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.groups.bytes() + (self.rows.capacity() + self.firsts.capacity() * 2) * 8
    }

    /// Whether rows can be taken away from all of its aggregates.
    pub(crate) fn can_lose_rows(&mut self) -> bool {
        self.groups.accumulators().all(|accumulator| {
            matches!(
                accumulator.state,
                State::Rows(_) | State::Values(_) | State::Integers { .. } | State::Extremes(_)
            )
        })
    }

    /// Adds groups of which partial aggregates are kept.
    pub(crate) fn add<'a>(&mut self, feeds: Feeds<'a>, rows: &Rows<'a>, mask: &Mask) -> Result<()> {
        let picked = Picked::of(mask);
        let selection = picked.selection();
        let all = self.groups.ids(feeds.keys, rows, selection)?;
        self.count(&all, &evaluate(feeds.rows, rows, selection)?)?;
        let firsts = evaluate(feeds.first, rows, selection)?;
        self.note_firsts(&all, &firsts, feeds.first_row)?;
        let groups = self.groups.len();
        for (accumulator, feed) in self.groups.accumulators().zip(feeds.aggregates) {
            accumulator.resize(groups);
            let of = |bound: &'a Bound| evaluate(bound, rows, selection);
            let vectors = match feed {
                Feed::Counts(counts) => vec![of(counts)?],
                Feed::CountsOf(weights, value) => vec![of(weights)?, of(value)?],
                Feed::Sums(sums, counts) => vec![of(sums)?, of(counts)?],
                Feed::Values(values) => vec![of(values)?],
            };
            all.iter().try_for_each(|ids| accumulator.update_partials(ids, &vectors))?;
        }
        Ok(())
    }

    /// Adds rows as they are.
    pub(crate) fn add_rows<'a>(
        &mut self,
        keys: &'a [Bound],
        rows: &Rows<'a>,
        mask: &Mask,
    ) -> Result<()>
    where
        's: 'a,
    {
        let picked = Picked::of(mask);
        let selection = picked.selection();
        let all = self.groups.ids(keys, rows, selection)?;
        let ones = Vector::repeat(&esker_format::Value::Int(1), DataType::I64, mask.count());
        self.count(&all, &ones)?;
        self.groups.update_in(&all, rows, selection)
    }

    fn note_firsts(
        &mut self,
        all: &[GroupIds<'_>],
        firsts: &Vector<'_>,
        first_row: i64,
    ) -> Result<()> {
        let Lanes::Ints(rows) = &firsts.lanes else { return Err(misfit()) };
        self.firsts.resize(self.groups.len(), (i64::MAX, 0));
        for (set, ids) in all.iter().enumerate() {
            for (group, row) in ids.numbers().iter().zip(rows.iter()) {
                let first = self.firsts.get_mut(*group as usize).ok_or_else(misfit)?;
                *first = (first.0.min(row.saturating_add(first_row)), set);
            }
        }
        Ok(())
    }

    /// The groups, in the order in which their rows are met.
    pub(crate) fn finish(self) -> Groups<'s> {
        self.arranged(&|_| true)
    }

    /// Some groups, in that order.
    fn arranged(self, is_kept: &dyn Fn(usize) -> bool) -> Groups<'s> {
        let Self { groups, firsts, .. } = self;
        let len = groups.len();
        let kept = (0..).take(len).filter(|group: &u32| is_kept(*group as usize));
        let mut order: Vec<u32> = kept.collect();
        order.sort_by_key(|group| firsts.get(*group as usize).copied());
        groups.arranged(&order)
    }

    fn count(&mut self, all: &[GroupIds<'_>], weights: &Vector<'_>) -> Result<()> {
        self.rows.resize(self.groups.len(), 0);
        all.iter().try_for_each(|ids| add_counts(&mut self.rows, ids, weights, &|_| true))
    }

    /// The groups without some of the rows; `None` where that cannot be told without the others.
    pub(crate) fn without(mut self, gone: Self) -> Result<Option<Groups<'s>>> {
        let Some(pairs) = self.groups.pairs_of(&gone.groups) else { return Err(misfit()) };
        let mut others = gone.groups;
        let len = self.groups.len();
        for (into, from) in self.groups.accumulators().zip(others.accumulators()) {
            into.resize(len);
            if !into.subtract(from, &pairs)? {
                return Ok(None);
            }
        }
        self.rows.resize(len, 0);
        let mut counted = gone.rows;
        counted.resize(others.len(), 0);
        subtract_counts(&mut self.rows, &counted, &pairs)?;
        let rows = std::mem::take(&mut self.rows);
        let has_rows = |group: usize| rows.get(group).is_some_and(|rows| *rows > 0);
        Ok(Some(self.arranged(&has_rows)))
    }
}

impl Groups<'_> {
    /// What is kept of all groups, in the order of their keys.
    pub(crate) fn partial_columns(
        &mut self,
        layout: &RollupLayout,
        firsts: &[u32],
    ) -> Result<Vec<Column>> {
        let types = layout.types();
        let (keys, rows) = types.split_at_checked(layout.rows()).ok_or_else(misfit)?;
        let mut columns: Vec<Column> = keys.iter().map(|of| Column::empty(*of)).collect();
        for group in 0..self.len() {
            let mut key = self.key(group);
            columns.iter_mut().try_for_each(|column| decode_into(column, &mut key))?;
        }
        let mut order: Vec<u32> = (0..).take(self.len()).collect();
        order.sort_by(|a, b| {
            let compare = |column: &Column| {
                let (a, b) = (column.value(*a as usize), column.value(*b as usize));
                a.is_null().cmp(&b.is_null()).then_with(|| a.compare(b))
            };
            columns.iter().map(compare).find(|order| order.is_ne()).unwrap_or(a.cmp(b))
        });
        let mut sorted = Vec::with_capacity(types.len());
        for column in &columns {
            let mut into = Column::empty(column.data_type);
            order.iter().try_for_each(|group| into.push(column.value(*group as usize)))?;
            sorted.push(into);
        }
        let mut kept: Vec<Column> = rows.iter().map(|of| Column::empty(*of)).collect();
        let (len, mut at) = (self.len(), 0);
        for (number, accumulator) in self.accumulators().enumerate() {
            accumulator.resize(len);
            if number == 1 {
                at += 1;
            }
            let width = accumulator.partial_width();
            let into = kept.get_mut(at..at + width).ok_or_else(misfit)?;
            accumulator.push_partials(&order, into)?;
            at += width;
        }
        let into = kept.get_mut(1).ok_or_else(misfit)?;
        for group in &order {
            let first = firsts.get(*group as usize).ok_or_else(misfit)?;
            into.push(ValueRef::Uint(u64::from(*first)))?;
        }
        sorted.extend(kept);
        Ok(sorted)
    }
}

impl Accumulator {
    /// How many columns its partial aggregates take.
    fn partial_width(&self) -> usize {
        if matches!(self.state, State::Integers { .. }) { 2 } else { 1 }
    }
}
