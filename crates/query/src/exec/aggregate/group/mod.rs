//! Grouping: each row's tuple of keys gets a number, and accumulators take it from there.
//!
//! Where the keys are columns of small codes (a dictionary, a narrowed or 8-bit number), numbers
//! are looked up in tables by the codes; the hash table sees each tuple once. In general the keys
//! are written as bytes and hashed. Either way numbers are given in the order in which the keys are
//! met, so that the order of groups does not depend on the encoding.
//!
//! Each morsel has groups of its own. While there are few, they are merged one after the other;
//! many are merged by all threads, in partitions.

mod code_numbers;
mod directory;
mod group_ids;
mod int_numbers;
mod many_groups;
mod merging;
mod sets;
pub(crate) mod told_keys;
mod tuple_numbers;

use std::ops::Range;

use esker_format::{Batch, Column, ColumnSlice, DataType};
use esker_vfs::parallel_map;

pub(crate) use crate::evaluate::key_codec::encode;
use esker_format::KeyList;
pub(crate) use esker_format::KeyTable;
pub(crate) use group_ids::{COPIES, FEW, Few, GroupIds};
pub(crate) use merging::Merging;
pub(crate) use sets::{keys_of_rows, set_number};

use super::Accumulator;
use crate::bind::{Shown, Stage};
use crate::bound::{Bound, Node};
use crate::evaluate::{Mask, Picked, Rows, Selection, evaluate};
use crate::{Limits, Options, Result, ZONE_ROWS};
use code_numbers::CodeNumbers;
use int_numbers::IntNumbers;
use many_groups::ManyGroups;
use sets::SetNumbers;
use tuple_numbers::TupleNumbers;

/// How many keys are looked up at once.
const AT_ONCE: usize = 32;

/// The columns of keys that are all fields.
fn key_columns<'a>(keys: &[Bound], rows: &Rows<'a>) -> Result<Option<Vec<ColumnSlice<'a>>>> {
    let mut columns = Vec::with_capacity(keys.len());
    for key in keys {
        let Node::Field(position) = key.node else { return Ok(None) };
        columns.push(rows.column(position)?);
    }
    Ok(Some(columns))
}

/// The groups of some of the rows.
#[derive(Debug)]
pub(crate) struct Groups<'s> {
    stage: &'s Stage,
    table: KeyTable,
    accumulators: Vec<Accumulator>,
    numbering: Numbering,
    sets: SetNumbers,
}

/// How rows find the numbers of their keys.
#[derive(Debug, Default)]
struct Numbering {
    codes: CodeNumbers,
    tuples: TupleNumbers,
    ints: IntNumbers,
}

impl<'s> Groups<'s> {
    pub(crate) fn new(stage: &'s Stage) -> Self {
        let mut accumulators: Vec<_> = stage.aggregates.iter().map(Accumulator::new).collect();
        if stage.keys.is_empty() {
            accumulators.iter_mut().for_each(|a| a.resize(1));
        }
        Self {
            stage,
            table: KeyTable::default(),
            accumulators,
            numbering: Numbering::default(),
            sets: SetNumbers::default(),
        }
    }

    /// The same as groups of another step, whose keys and aggregates have the same types.
    pub(crate) fn of<'t>(self, stage: &'t Stage) -> Groups<'t> {
        let Self { table, accumulators, numbering, sets, .. } = self;
        Groups { stage, table, accumulators, numbering, sets }
    }

    /// The number of groups; without keys there is always one.
    pub(crate) fn len(&self) -> usize {
        if self.stage.keys.is_empty() { 1 } else { self.table.len() }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
            + self.numbering.ints.bytes()
            + self.sets.bytes()
            + self.accumulators.iter().map(Accumulator::bytes).sum::<usize>()
    }

    /// True when it takes no longer to tell how large many groups are than it does of few.
    pub(crate) fn may_be_of_many_rows(&self) -> bool {
        self.accumulators.iter().all(Accumulator::is_flat)
    }

    /// Adds `rows` rows of a query that has no keys and only counts rows.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.add_rows(rows));
    }

    /// What is kept for each aggregate.
    pub(crate) fn accumulators(&mut self) -> impl Iterator<Item = &mut Accumulator> {
        self.accumulators.iter_mut()
    }

    /// Adds the rows of a mask.
    pub(crate) fn update<'a>(&mut self, rows: &Rows<'a>, mask: &Mask) -> Result<()>
    where
        's: 'a,
    {
        let stage: &'a Stage = self.stage;
        if stage.keys.is_empty() {
            for (accumulator, aggregate) in self.accumulators.iter_mut().zip(&stage.aggregates) {
                accumulator.update_all(aggregate.operand.as_ref(), rows, mask)?;
            }
            return Ok(());
        }
        let picked = Picked::of(mask);
        let selection = picked.selection();
        let of_sets = self.ids(keys_of_rows(stage), rows, selection)?;
        self.update_in(&of_sets, rows, selection)
    }

    /// Adds rows of which the groups are known: one list, or one for each grouping set.
    pub(crate) fn update_in<'a>(
        &mut self,
        of_sets: &[GroupIds<'_>],
        rows: &Rows<'a>,
        selection: Selection<'_>,
    ) -> Result<()>
    where
        's: 'a,
    {
        let stage: &'a Stage = self.stage;
        let groups = self.len();
        for (accumulator, aggregate) in self.accumulators.iter_mut().zip(&stage.aggregates) {
            accumulator.resize(groups);
            let operand = aggregate.operand.as_ref();
            let vector = operand.map(|o| evaluate(o, rows, selection)).transpose()?;
            let _copies = rows.meter().room_for_copies(vector.as_slice())?;
            of_sets.iter().for_each(|ids| accumulator.update(ids, vector.as_ref()));
        }
        Ok(())
    }

    /// The groups of the selected rows by what makes the keys of the step: one list, or one for
    /// each grouping set.
    pub(crate) fn ids<'a>(
        &mut self,
        keys: &'a [Bound],
        rows: &Rows<'a>,
        selection: Selection<'_>,
    ) -> Result<Vec<GroupIds<'a>>> {
        if self.stage.keys.is_empty() {
            return Ok(vec![GroupIds::from_numbers(vec![0; selection.len()], 1)]);
        }
        if self.stage.sets.is_empty() {
            return Ok(vec![self.numbering.ids(keys, rows, selection, &mut self.table)?]);
        }
        let tuples = self.numbering.ids(keys, rows, selection, &mut self.sets.tuples)?;
        let numbers = self.sets.groups(self.stage, tuples.numbers(), &mut self.table)?;
        let groups = self.table.len();
        Ok(numbers.into_iter().map(|n| GroupIds::from_numbers(n, groups)).collect())
    }

    /// The key of a group.
    pub(crate) fn key(&self, group: usize) -> &[u8] {
        self.table.key(group)
    }

    /// The groups of another one as they are here; `None` where one is not.
    pub(crate) fn pairs_of(&self, other: &Self) -> Option<Vec<(u32, u32)>> {
        if self.stage.keys.is_empty() {
            return Some(vec![(0, 0)]);
        }
        let pair = |(number, key): (u32, &[u8])| Some((number, self.table.find(key)?));
        let keys = (0..other.table.len()).map(|group| other.table.key(group));
        (0..).zip(keys).map(pair).collect()
    }

    /// Some groups alone, in an order.
    pub(crate) fn arranged(self, order: &[u32]) -> Self {
        let is_same = order.len() == self.table.len()
            && order.iter().enumerate().all(|(place, group)| place == *group as usize);
        if self.stage.keys.is_empty() || is_same {
            return self;
        }
        let mut kept = Self::new(self.stage);
        let pair = |group: &u32| (*group, kept.table.number(self.table.key(*group as usize)));
        let mut pairs: Vec<(u32, u32)> = order.iter().map(pair).collect();
        // As what is not divisible needs them.
        pairs.sort_unstable();
        let groups = kept.table.len();
        for (into, from) in kept.accumulators.iter_mut().zip(&self.accumulators) {
            into.resize(groups);
            into.merge(from, &pairs);
        }
        kept
    }

    /// Adds the groups of later rows.
    pub(crate) fn merge(&mut self, other: Self) {
        if !self.stage.keys.is_empty() && self.table.is_empty() {
            *self = other;
            return;
        }
        let pairs: Vec<(u32, u32)> = match self.stage.keys.is_empty() {
            true => vec![(0, 0)],
            false => (0..).zip(self.table.absorb(&other.table)).collect(),
        };
        let groups = self.len();
        for (into, from) in self.accumulators.iter_mut().zip(&other.accumulators) {
            into.resize(groups);
            into.merge(from, &pairs);
        }
    }

    /// The groups as rows: the keys, then the aggregates.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type; when the query is to end.
    pub(crate) fn finish(mut self, options: &Options) -> Result<Vec<Batch>> {
        if self.table.is_empty() {
            sets::add_empty(self.stage, &mut self.table);
        }
        let groups = self.len();
        self.accumulators.iter_mut().try_for_each(|accumulator| accumulator.settle(groups))?;
        in_batches(groups, options, |range| {
            let key = |i| self.table.key(range.start + i);
            batch(self.stage, range.len(), options.limits(), key, |number, i| {
                Some((self.accumulators.get(number)?, range.start + i))
            })
        })
    }
}

impl Numbering {
    /// The group of each selected row.
    fn ids<'a>(
        &mut self,
        keys: &'a [Bound],
        rows: &Rows<'a>,
        selection: Selection<'_>,
        table: &mut KeyTable,
    ) -> Result<GroupIds<'a>> {
        if let Some(columns) = key_columns(keys, rows)? {
            let numbers = match columns.as_slice() {
                [] => {
                    let number = table.number(&[]);
                    Some(vec![number; selection.len()])
                }
                [column] => {
                    if let Some(ids) = self.codes.ids(column, selection, table) {
                        return Ok(ids);
                    }
                    self.codes.numbers(column, selection, table)
                }
                columns => self.tuples.numbers(columns, selection, table),
            };
            if let Some(numbers) = numbers {
                return Ok(GroupIds::from_numbers(numbers, table.len()));
            }
        }
        let numbers = self.numbers(keys, rows, selection, table)?;
        Ok(GroupIds::from_numbers(numbers, table.len()))
    }

    /// The group number of each selected row, by its keys.
    fn numbers<'a>(
        &mut self,
        keys: &'a [Bound],
        rows: &Rows<'a>,
        selection: Selection<'_>,
        table: &mut KeyTable,
    ) -> Result<Vec<u32>> {
        let vectors = keys.iter().map(|key| evaluate(key, rows, selection));
        let vectors = vectors.collect::<Result<Vec<_>>>()?;
        let _copies = rows.meter().room_for_copies(&vectors)?;
        if let [vector] = vectors.as_slice()
            && let Some(numbers) = self.ints.numbers(vector, table)
        {
            return Ok(numbers);
        }
        let (mut key, mut next) = (Vec::new(), KeyList::default());
        let mut numbers = Vec::with_capacity(selection.len());
        for i in 0..selection.len() {
            key.clear();
            vectors.iter().for_each(|vector| encode(&mut key, vector, i));
            next.push(&key);
            if next.len() == AT_ONCE || i + 1 == selection.len() {
                table.number_all(&next, &mut numbers);
                next.clear();
            }
        }
        Ok(numbers)
    }
}

/// Batches of [`ZONE_ROWS`] groups each but for the last, made in parallel.
fn in_batches(
    groups: usize,
    options: &Options,
    make: impl Fn(Range<usize>) -> Result<Batch> + Sync,
) -> Result<Vec<Batch>> {
    let ranges: Vec<_> =
        (0..groups).step_by(ZONE_ROWS).map(|at| at..groups.min(at + ZONE_ROWS)).collect();
    let batches = parallel_map(&*options.tasks, &ranges, |range| {
        options.expect_time_left()?;
        make(range.clone())
    });
    batches.into_iter().collect()
}

/// Some groups as rows: `key` has the key of a group, and `aggregate` an aggregate, by its number,
/// with the number that a group has there.
fn batch<'k>(
    stage: &Stage,
    groups: usize,
    limits: &Limits,
    key: impl Fn(usize) -> &'k [u8],
    aggregate: impl Fn(usize, usize) -> Option<(&'k Accumulator, usize)>,
) -> Result<Batch> {
    let mut columns: Vec<_> = stage.keys.iter().map(|k| Column::empty(k.data_type())).collect();
    if !columns.is_empty() {
        for i in 0..groups {
            let mut key = key(i);
            for column in &mut columns {
                crate::evaluate::key_codec::decode_into(column, &mut key)?;
            }
        }
    }
    if !stage.shown_keys.is_empty() {
        columns = told_keys::shown(stage, columns, limits)?;
    }
    let mut results = |kept: usize, shown: Option<&Shown>, data_type: DataType| {
        let mut column = Column::empty(data_type);
        for i in 0..groups {
            match (aggregate(kept, i), shown) {
                (Some((accumulator, group)), Some(shown)) => {
                    accumulator.push_shown(group, shown, &mut column)?;
                }
                (Some((accumulator, group)), None) => accumulator.push_value(group, &mut column)?,
                (None, _) => column.push_null(),
            }
        }
        columns.push(column);
        Ok::<_, crate::Error>(())
    };
    match stage.shown.is_empty() {
        true => {
            let mut kept = stage.aggregates.iter().enumerate();
            kept.try_for_each(|(number, kept)| results(number, None, kept.data_type))?;
        }
        false => {
            let mut shown = stage.shown.iter();
            shown.try_for_each(|shown| results(shown.aggregate, Some(shown), shown.data_type))?;
        }
    }
    if columns.is_empty() {
        // One group of nothing is still a row.
        columns.push(Column::empty(DataType::Bool));
        columns.iter_mut().for_each(Column::push_null);
    }
    Ok(Batch { columns })
}
