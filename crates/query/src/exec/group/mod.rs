//! Grouping: each row's tuple of keys gets a number, and accumulators take it from there.
//!
//! Where the keys are columns of small codes (a dictionary, a narrowed or 8-bit number), numbers
//! are looked up in tables by the codes; the hash table sees each tuple once. In general the keys
//! are written as bytes and hashed. Either way numbers are given in the order in which the keys are
//! met, so that the order of groups does not depend on the encoding.

mod code_numbers;
mod group_ids;
mod int_numbers;
mod key_codec;
mod tuple_numbers;

use std::ops::Range;

use esker_format::{Batch, Column, ColumnSlice, DataType};
use esker_vfs::parallel_map;

pub(crate) use esker_format::KeyTable;
pub(crate) use group_ids::{COPIES, FEW, Few, GroupIds};
pub(crate) use key_codec::{decode, encode};

use super::aggregate::Accumulator;
use super::evaluate::evaluate;
use super::mask::Mask;
use super::rows::Rows;
use super::vector::{Picked, Selection};
use crate::bind::{Bound, Node, Stage};
use crate::options::Options;
use crate::{Result, ZONE_ROWS};
use code_numbers::CodeNumbers;
use int_numbers::IntNumbers;
use tuple_numbers::TupleNumbers;

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
            codes: CodeNumbers::default(),
            tuples: TupleNumbers::default(),
            ints: IntNumbers::default(),
        }
    }

    /// The number of groups; without keys there is always one.
    pub(crate) fn len(&self) -> usize {
        if self.stage.keys.is_empty() { 1 } else { self.table.len() }
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
            + self.ints.bytes()
            + self.accumulators.iter().map(Accumulator::bytes).sum::<usize>()
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
        let ids = self.ids(rows, selection)?;
        let groups = self.table.len();
        for (accumulator, aggregate) in self.accumulators.iter_mut().zip(&stage.aggregates) {
            accumulator.resize(groups);
            let operand = aggregate.operand.as_ref();
            let vector = operand.map(|o| evaluate(o, rows, selection)).transpose()?;
            accumulator.update(&ids, vector.as_ref());
        }
        Ok(())
    }

    /// The group of each selected row.
    fn ids<'a>(&mut self, rows: &Rows<'a>, selection: Selection<'_>) -> Result<GroupIds<'a>>
    where
        's: 'a,
    {
        if let Some(columns) = key_columns(&self.stage.keys, rows)? {
            let numbers = match columns.as_slice() {
                [column] => {
                    if let Some(ids) = self.codes.ids(column, selection, &mut self.table) {
                        return Ok(ids);
                    }
                    self.codes.numbers(column, selection, &mut self.table)
                }
                columns => self.tuples.numbers(columns, selection, &mut self.table),
            };
            if let Some(numbers) = numbers {
                return Ok(GroupIds::from_numbers(numbers, self.table.len()));
            }
        }
        let numbers = self.numbers(rows, selection)?;
        Ok(GroupIds::from_numbers(numbers, self.table.len()))
    }

    /// The group number of each selected row, by its keys.
    fn numbers<'a>(&mut self, rows: &Rows<'a>, selection: Selection<'_>) -> Result<Vec<u32>>
    where
        's: 'a,
    {
        let keys: &'a [Bound] = &self.stage.keys;
        let vectors = keys.iter().map(|key| evaluate(key, rows, selection));
        let vectors = vectors.collect::<Result<Vec<_>>>()?;
        if let [vector] = vectors.as_slice()
            && let Some(numbers) = self.ints.numbers(vector, &mut self.table)
        {
            return Ok(numbers);
        }
        let mut key = Vec::new();
        let number = |i| {
            key.clear();
            vectors.iter().for_each(|vector| encode(&mut key, vector, i));
            self.table.number(&key)
        };
        Ok((0..selection.len()).map(number).collect())
    }

    /// Adds the groups of later rows.
    pub(crate) fn merge(&mut self, other: Self) {
        let numbers =
            if self.stage.keys.is_empty() { vec![0] } else { self.table.absorb(&other.table) };
        let groups = self.len();
        for (into, from) in self.accumulators.iter_mut().zip(other.accumulators) {
            into.resize(groups);
            into.merge(from, &numbers);
        }
    }

    /// The groups as rows: the keys, then the aggregates.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type; when the query is to end.
    pub(crate) fn finish(mut self, options: &Options) -> Result<Vec<Batch>> {
        let groups = self.len();
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.settle(groups));
        let ranges: Vec<_> =
            (0..groups).step_by(ZONE_ROWS).map(|at| at..groups.min(at + ZONE_ROWS)).collect();
        let batches = parallel_map(&*options.tasks, &ranges, |range| {
            options.expect_time_left()?;
            self.batch(range.clone())
        });
        batches.into_iter().collect()
    }

    /// Some of the groups as rows, which have settled.
    fn batch(&self, groups: Range<usize>) -> Result<Batch> {
        let types = self.stage.types();
        let mut columns: Vec<_> = types.iter().map(|t| Column::empty(*t)).collect();
        for group in groups.clone() {
            self.push_keys(&mut columns, group, &types)?;
        }
        let results = columns.iter_mut().skip(self.stage.keys.len());
        for (column, accumulator) in results.zip(&self.accumulators) {
            for value in accumulator.finish(groups.clone())? {
                column.push((&value).into())?;
            }
        }
        if columns.is_empty() {
            // One group of nothing is still a row.
            columns.push(Column::empty(DataType::Bool));
            columns.iter_mut().for_each(Column::push_null);
        }
        Ok(Batch { columns })
    }

    fn push_keys(&self, columns: &mut [Column], group: usize, types: &[DataType]) -> Result<()> {
        let mut key = self.table.key(group);
        for (column, data_type) in columns.iter_mut().zip(types).take(self.stage.keys.len()) {
            column.push(decode(&mut key, *data_type))?;
        }
        Ok(())
    }
}
