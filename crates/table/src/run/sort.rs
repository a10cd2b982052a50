//! Sorting the rows of a segment by some of its columns.
//!
//! Each column becomes *ranks*: whole numbers in the order of its values, NULL the greatest. Then
//! rows are sorted by the ranks of the last column first, and stably by those before it.

use esker_format::order_key::{Key, key};
use esker_format::{ColumnSlice, Data};

/// Bits of a row number.
const ROW_BITS: u32 = 22;

/// The rows in the order of some columns, each with whether its greatest value comes first; NULL
/// last, ties by row.
pub(super) fn sorted_rows(len: usize, columns: &[(ColumnSlice<'_>, bool)]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..u32::try_from(len).unwrap_or(u32::MAX)).collect();
    for (column, descending) in columns.iter().rev() {
        order = sort_by(&order, &Ranks::of(column), *descending);
    }
    order
}

/// Numbers in the order of a column's values.
struct Ranks {
    ranks: Vec<u64>,
    /// The greatest rank of a value. NULL has one more.
    greatest: u64,
}

impl Ranks {
    fn of(column: &ColumnSlice<'_>) -> Self {
        match column.data {
            // Dictionaries are sorted, and no value stands there twice.
            Data::Dictionary { codes, .. } => Self::from_ranks(column, |i| u64::from(codes.get(i))),
            _ if column.data_type.is_variable() => Self::of_bytes(column),
            _ => Self::of_keys(column),
        }
    }

    fn from_ranks(column: &ColumnSlice<'_>, rank: impl Fn(usize) -> u64) -> Self {
        let mut greatest = 0;
        let mut ranks = Vec::with_capacity(column.len);
        for i in 0..column.len {
            let rank = if column.is_null(i) { u64::MAX } else { rank(i) };
            if rank != u64::MAX {
                greatest = greatest.max(rank);
            }
            ranks.push(rank);
        }
        ranks.iter_mut().filter(|rank| **rank == u64::MAX).for_each(|rank| *rank = greatest + 1);
        Self { ranks, greatest }
    }

    fn of_keys(column: &ColumnSlice<'_>) -> Self {
        let keys: Vec<Option<Key>> =
            (0..column.len).map(|i| (!column.is_null(i)).then(|| key(column.value(i)))).collect();
        let (least, greatest) = keys
            .iter()
            .flatten()
            .fold((Key::MAX, Key::MIN), |(least, most), k| (least.min(*k), most.max(*k)));
        let span = greatest.checked_sub(least).and_then(|span| u64::try_from(span).ok());
        match span {
            Some(span) if span < u64::MAX - 1 => {
                let rank = |k: &Option<Key>| match k {
                    Some(k) => u64::try_from(k - least).unwrap_or(span),
                    None => span + 1,
                };
                Self { ranks: keys.iter().map(rank).collect(), greatest: span }
            }
            // All NULL, or too far apart.
            _ => {
                let mut pairs: Vec<(Key, u32)> = Vec::new();
                for (row, key) in (0u32..).zip(&keys) {
                    pairs.extend(key.map(|key| (key, row)));
                }
                pairs.sort_unstable();
                Self::of_sorted(column.len, &pairs, |a, b| a.0 == b.0, |pair| pair.1)
            }
        }
    }

    fn of_bytes(column: &ColumnSlice<'_>) -> Self {
        let mut pairs: Vec<(u64, u32)> = Vec::with_capacity(column.len);
        for row in 0..column.len {
            if !column.is_null(row) {
                let prefix = prefix(column.bytes(row));
                pairs.push((prefix, u32::try_from(row).unwrap_or(u32::MAX)));
            }
        }
        let bytes = |pair: &(u64, u32)| column.bytes(pair.1 as usize);
        pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes(a).cmp(bytes(b))));
        let is_same = |a: &(u64, u32), b: &(u64, u32)| a.0 == b.0 && bytes(a) == bytes(b);
        Self::of_sorted(column.len, &pairs, is_same, |pair| pair.1)
    }

    /// Counts distinct values in sorted order. Rows that are not among them are NULL.
    fn of_sorted<T>(
        len: usize,
        sorted: &[T],
        is_same: impl Fn(&T, &T) -> bool,
        row: impl Fn(&T) -> u32,
    ) -> Self {
        let mut ranks = vec![u64::MAX; len];
        let mut greatest = 0;
        let mut last: Option<&T> = None;
        for item in sorted {
            greatest += u64::from(last.is_some_and(|last| !is_same(last, item)));
            last = Some(item);
            if let Some(rank) = ranks.get_mut(row(item) as usize) {
                *rank = greatest;
            }
        }
        ranks.iter_mut().filter(|rank| **rank == u64::MAX).for_each(|rank| *rank = greatest + 1);
        Self { ranks, greatest }
    }

    fn rank(&self, row: u32, descending: bool) -> u64 {
        let rank = self.ranks.get(row as usize).copied().unwrap_or(u64::MAX);
        if descending && rank <= self.greatest { self.greatest - rank } else { rank }
    }
}

/// The first eight bytes as a number in the same order.
fn prefix(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = bytes.len().min(8);
    if let (Some(to), Some(from)) = (first.get_mut(..len), bytes.get(..len)) {
        to.copy_from_slice(from);
    }
    u64::from_le_bytes(first).swap_bytes()
}

/// Sorts rows by their ranks; equal ones keep their order.
fn sort_by(order: &[u32], ranks: &Ranks, descending: bool) -> Vec<u32> {
    let row_at = |i: u64| {
        let i = usize::try_from(i).unwrap_or(usize::MAX);
        order.get(i).copied().unwrap_or(u32::MAX)
    };
    if (ranks.greatest + 1).leading_zeros() >= ROW_BITS && order.len() <= 1 << ROW_BITS {
        let pack = |(i, row): (u64, &u32)| ranks.rank(*row, descending) << ROW_BITS | i;
        let mut packed: Vec<u64> = (0u64..).zip(order).map(pack).collect();
        packed.sort_unstable();
        return packed.iter().map(|word| row_at(word & ((1 << ROW_BITS) - 1))).collect();
    }
    let mut pairs: Vec<(u64, u64)> =
        (0u64..).zip(order).map(|(i, row)| (ranks.rank(*row, descending), i)).collect();
    pairs.sort_unstable();
    pairs.iter().map(|(_, i)| row_at(*i)).collect()
}
