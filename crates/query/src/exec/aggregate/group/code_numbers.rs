//! Group numbers of small codes, looked up in a table.

use std::borrow::Cow;

use esker_format::{Codes, ColumnSlice, Data, DataType, Validity};

use super::group_ids::{FEW, GroupIds, histogram};
use super::{KeyTable, encode};
use crate::evaluate::gather::gather;
use crate::evaluate::{Selection, Vector};

/// What stands in the table for a code not met yet.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The group number of each code of one dictionary, or of one base.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeNumbers {
    /// What the codes mean: the place of the dictionary, or the base, and how many there may be.
    meaning: Option<[usize; 4]>,
    numbers: Vec<u32>,
    null: Option<u32>,
}

impl CodeNumbers {
    /// The group number of each selected row; `None` when the column is not one of small codes.
    pub(crate) fn numbers(
        &mut self,
        column: &ColumnSlice<'_>,
        selection: Selection<'_>,
        table: &mut KeyTable,
    ) -> Option<Vec<u32>> {
        let codes = self.prepare(column)?;
        let has_nulls = !matches!(column.validity, Validity::AllValid);
        let mut numbers = match codes {
            Codes::U8(codes) => self.look_up(codes, selection),
            Codes::U16(codes) => self.look_up(codes, selection),
            Codes::U32(_) => return None,
        };
        if has_nulls || numbers.iter().fold(0, |most, n| most.max(*n)) == UNKNOWN {
            self.complete(column, selection, codes, table, &mut numbers);
        }
        Some(numbers)
    }

    /// The group of each selected row as the code it has, without looking each up; `None` when
    /// the column is not one of codes of 8 bits, or may hold NULL.
    pub(crate) fn ids<'a>(
        &mut self,
        column: &ColumnSlice<'a>,
        selection: Selection<'_>,
        table: &mut KeyTable,
    ) -> Option<GroupIds<'a>> {
        let (Codes::U8(codes), Validity::AllValid) = (self.prepare(column)?, column.validity)
        else {
            return None;
        };
        let codes = match selection {
            Selection::All(len) => Cow::Borrowed(codes.get(..len)?),
            Selection::Rows(rows) => {
                rows.iter().map(|row| codes.get(*row as usize).copied()).collect::<Option<_>>()?
            }
        };
        let counts = histogram(&codes);
        let is_new = |(number, count): (&u32, &u32)| *number == UNKNOWN && *count > 0;
        if self.numbers.iter().zip(&counts).any(is_new) {
            for (i, code) in codes.iter().enumerate() {
                if let Some(entry) = self.numbers.get_mut(usize::from(*code))
                    && *entry == UNKNOWN
                {
                    *entry = value_number(column, selection.row(i), table);
                }
            }
        }
        let groups = <[u32; FEW]>::try_from(self.numbers.as_slice()).ok()?;
        Some(GroupIds::from_codes(codes, groups, counts))
    }

    /// The codes of a column of small codes, with a table for what they mean.
    fn prepare<'a>(&mut self, column: &ColumnSlice<'a>) -> Option<Codes<'a>> {
        let (codes, meaning, count) = small_codes(column)?;
        if self.meaning != Some(meaning) {
            *self = Self { meaning: Some(meaning), numbers: vec![UNKNOWN; count], null: self.null };
        }
        Some(codes)
    }

    fn look_up<T: Copy + Into<usize>>(&self, codes: &[T], selection: Selection<'_>) -> Vec<u32> {
        let known = self.numbers.as_slice();
        let number = |code: T| known.get(code.into()).copied().unwrap_or(UNKNOWN);
        match selection {
            Selection::All(len) => codes.iter().take(len).map(|code| number(*code)).collect(),
            Selection::Rows(rows) => {
                let code = |row: &u32| codes.get(*row as usize).map_or(UNKNOWN, |c| number(*c));
                rows.iter().map(code).collect()
            }
        }
    }

    /// Gives numbers to NULLs and to codes met for the first time.
    fn complete(
        &mut self,
        column: &ColumnSlice<'_>,
        selection: Selection<'_>,
        codes: Codes<'_>,
        table: &mut KeyTable,
        numbers: &mut [u32],
    ) {
        let has_nulls = !matches!(column.validity, Validity::AllValid);
        if has_nulls {
            // A NULL's code means nothing.
            for (i, number) in numbers.iter_mut().enumerate() {
                if column.is_null(selection.row(i) as usize) {
                    *number = self.null.unwrap_or(UNKNOWN);
                }
            }
        }
        for (i, number) in numbers.iter_mut().enumerate().filter(|(_, n)| **n == UNKNOWN) {
            if has_nulls && column.is_null(selection.row(i) as usize) {
                *number = *self.null.get_or_insert_with(|| null_number(column, table));
                continue;
            }
            let code = codes.get(selection.row(i) as usize) as usize;
            // An earlier row of this batch may have had the code.
            let known = self.numbers.get(code).copied().unwrap_or(UNKNOWN);
            *number = if known == UNKNOWN {
                value_number(column, selection.row(i), table)
            } else {
                known
            };
            if let Some(entry) = self.numbers.get_mut(code) {
                *entry = *number;
            }
        }
    }
}

/// The group number of the value in a row.
fn value_number(column: &ColumnSlice<'_>, row: u32, table: &mut KeyTable) -> u32 {
    let mut key = Vec::new();
    encode(&mut key, &gather(column, Selection::Rows(&[row])), 0);
    table.number(&key)
}

fn null_number(column: &ColumnSlice<'_>, table: &mut KeyTable) -> u32 {
    let mut key = Vec::new();
    encode(&mut key, &Vector::nulls(column.data_type, 1), 0);
    table.number(&key)
}

/// The codes of a column of codes of at most 16 bits, what they mean, and how many there may be.
fn small_codes<'a>(column: &ColumnSlice<'a>) -> Option<(Codes<'a>, [usize; 4], usize)> {
    match column.data {
        Data::Dictionary { codes, dictionary } => {
            let offsets = dictionary.offsets;
            let heap = dictionary.heap.as_ptr().addr();
            let count = limit(codes)?;
            Some((codes, [offsets.as_ptr().addr(), offsets.len(), heap, count], count))
        }
        Data::Narrowed { base, codes } => {
            let count = limit(codes)?;
            Some((codes, [usize::try_from(base).ok()?, 0, 1, count], count))
        }
        Data::U8(values) if matches!(column.data_type, DataType::U8 | DataType::Bool) => {
            Some((Codes::U8(values), [0, 0, 2, 0], 1 << 8))
        }
        Data::U16(values) => Some((Codes::U16(values), [0, 0, 3, 0], 1 << 16)),
        _ => None,
    }
}

fn limit(codes: Codes<'_>) -> Option<usize> {
    match codes {
        Codes::U8(_) => Some(1 << 8),
        Codes::U16(_) => Some(1 << 16),
        Codes::U32(_) => None,
    }
}
