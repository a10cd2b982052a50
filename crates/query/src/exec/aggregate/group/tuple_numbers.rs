//! Group numbers of tuples of small codes.
//!
//! Each column numbers its own values; the numbers of a row, side by side in one word, index a
//! table of group numbers. A tuple is written as a key and hashed once, when it is first met.

use esker_format::ColumnSlice;

use super::KeyTable;
use super::code_numbers::{CodeNumbers, UNKNOWN};
use crate::evaluate::Selection;

/// The longest table.
const TUPLES_MAX: usize = 1 << 16;

/// The group number of each tuple of values met.
#[derive(Clone, Debug, Default)]
pub(crate) struct TupleNumbers {
    columns: Vec<KeyColumn>,
    /// Group numbers, by the numbers of the values; the last column's number changes fastest.
    groups: Vec<u32>,
    /// Set once there are too many tuples for a table.
    is_full: bool,
}

#[derive(Clone, Debug, Default)]
struct KeyColumn {
    codes: CodeNumbers,
    values: KeyTable,
    /// How many values there is room for: a power of two.
    room: usize,
}

impl TupleNumbers {
    /// The group number of each selected row; `None` when a column is not one of small codes, or
    /// there are too many tuples.
    pub(crate) fn numbers(
        &mut self,
        columns: &[ColumnSlice<'_>],
        selection: Selection<'_>,
        table: &mut KeyTable,
    ) -> Option<Vec<u32>> {
        if self.is_full {
            return None;
        }
        self.columns.resize(columns.len(), KeyColumn::default());
        let mut tuples: Vec<u32> = Vec::new();
        let mut per_column = Vec::with_capacity(columns.len());
        for (key, column) in self.columns.iter_mut().zip(columns) {
            per_column.push(key.codes.numbers(column, selection, &mut key.values)?);
        }
        if self.columns.iter().any(|key| key.values.len() > key.room) && !self.make_room() {
            return None;
        }
        for (key, numbers) in self.columns.iter().zip(per_column) {
            if tuples.is_empty() {
                tuples = numbers;
                continue;
            }
            let bits = key.room.trailing_zeros();
            tuples.iter_mut().zip(&numbers).for_each(|(tuple, n)| *tuple = *tuple << bits | n);
        }
        let known = self.groups.as_slice();
        let group = |tuple: &u32| known.get(*tuple as usize).copied().unwrap_or(UNKNOWN);
        let mut numbers: Vec<u32> = tuples.iter().map(group).collect();
        if numbers.iter().fold(0, |most, n| most.max(*n)) == UNKNOWN {
            for (number, tuple) in numbers.iter_mut().zip(&tuples) {
                if *number == UNKNOWN {
                    *number = self.complete(*tuple, table);
                }
            }
        }
        Some(numbers)
    }

    /// Makes room for the values there are, and forgets which tuples are known; they are found
    /// again by their keys. False when the table would be too long.
    fn make_room(&mut self) -> bool {
        let mut len = 1usize;
        for key in &mut self.columns {
            key.room = key.values.len().next_power_of_two();
            len = len.saturating_mul(key.room);
        }
        self.is_full = len > TUPLES_MAX;
        self.groups.clear();
        if !self.is_full {
            self.groups.resize(len, UNKNOWN);
        }
        !self.is_full
    }

    /// The group number of a tuple that is not known.
    fn complete(&mut self, tuple: u32, table: &mut KeyTable) -> u32 {
        if let Some(known) = self.groups.get(tuple as usize).filter(|known| **known != UNKNOWN) {
            return *known;
        }
        let mut rest = tuple as usize;
        let mut values = Vec::with_capacity(self.columns.len());
        for column in self.columns.iter().rev() {
            values.push(column.values.key(rest % column.room));
            rest /= column.room;
        }
        let key: Vec<u8> = values.into_iter().rev().flatten().copied().collect();
        let number = table.number(&key);
        if let Some(entry) = self.groups.get_mut(tuple as usize) {
            *entry = number;
        }
        number
    }
}
