//! The values of a column as whole numbers in the same order, NULL the greatest.

use esker_format::order_key::{Key, float_key, key};
use esker_format::{Codes, ColumnSlice, Data, DataType, Validity};

use super::bytes_order;

/// Numbers in the order of a column's values.
pub(super) struct Ranks {
    ranks: Vec<u64>,
    /// The greatest rank of a value. NULL has one more.
    greatest: u64,
}

impl Ranks {
    pub fn of(column: &ColumnSlice<'_>) -> Self {
        match column.data {
            // Dictionaries are sorted, and no value stands there twice.
            Data::Dictionary { codes, .. } => Self::of_codes(column, codes),
            Data::Narrowed { codes, .. } => Self::of_codes(column, codes),
            Data::Constant(_) => Self { ranks: vec![0; column.len], greatest: 0 },
            _ if column.data_type.is_variable() => Self::of_bytes(column),
            // default: numbers that do not lie as their type stores them, or are far apart
            _ => Self::of_words(column).unwrap_or_else(|| Self::of_keys(column)),
        }
    }

    /// The rank of a row; of a descending column, in which NULL is last all the same.
    pub fn rank(&self, row: u32, descending: bool) -> u64 {
        let rank = self.ranks.get(row as usize).copied();
        debug_assert!(rank.is_some(), "row {row} of {} has no rank", self.ranks.len());
        // default: each row of the column has one
        let rank = rank.unwrap_or(u64::MAX);
        if descending && rank <= self.greatest { self.greatest - rank } else { rank }
    }

    /// No rank is greater.
    pub fn greatest(&self) -> u64 {
        self.greatest + 1
    }

    fn of_codes(column: &ColumnSlice<'_>, codes: Codes<'_>) -> Self {
        let ranks: Vec<u64> = match codes {
            Codes::U8(codes) => codes.iter().map(|code| u64::from(*code)).collect(),
            Codes::U16(codes) => codes.iter().map(|code| u64::from(*code)).collect(),
            Codes::U32(codes) => codes.iter().map(|code| u64::from(*code)).collect(),
        };
        Self::with_nulls(column, ranks)
    }

    /// Ranks of which those of rows that are NULL mean nothing.
    fn with_nulls(column: &ColumnSlice<'_>, mut ranks: Vec<u64>) -> Self {
        if matches!(column.validity, Validity::AllValid) {
            let greatest = ranks.iter().copied().fold(0, u64::max);
            return Self { ranks, greatest };
        }
        let mut greatest = 0;
        for (row, rank) in ranks.iter().enumerate() {
            if *rank > greatest && !column.is_null(row) {
                greatest = *rank;
            }
        }
        for (row, rank) in ranks.iter_mut().enumerate() {
            if column.is_null(row) {
                *rank = greatest + 1;
            }
        }
        Self { ranks, greatest }
    }

    /// Ranks of numbers that lie as their type stores them, by their distance from the least.
    /// `None` for other columns, and when the distance passes every rank.
    fn of_words(column: &ColumnSlice<'_>) -> Option<Self> {
        let words = words(column)?;
        let (mut least, mut greatest) = (u64::MAX, 0);
        if matches!(column.validity, Validity::AllValid) {
            for word in &words {
                (least, greatest) = (least.min(*word), greatest.max(*word));
            }
        } else {
            for (row, word) in words.iter().enumerate() {
                if !column.is_null(row) {
                    (least, greatest) = (least.min(*word), greatest.max(*word));
                }
            }
        }
        let span = greatest.saturating_sub(least);
        if span >= u64::MAX - 1 {
            return None;
        }
        let mut ranks = words;
        ranks.iter_mut().for_each(|word| *word = word.wrapping_sub(least));
        Some(Self::with_nulls(column, ranks))
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
                    // default: no key is further from the least than the greatest is
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
        let bytes = |row: &u32| column.bytes(*row as usize);
        let rows = bytes_order::sorted_rows(column);
        Self::of_sorted(column.len, &rows, |a, b| bytes(a) == bytes(b), |row| *row)
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
}

/// Numbers of 64 bits in the order of the values, where these lie as their type stores them.
fn words(column: &ColumnSlice<'_>) -> Option<Vec<u64>> {
    fn signed<T: Copy + Into<i64>>(values: &[T]) -> Vec<u64> {
        values.iter().map(|v| (*v).into().cast_unsigned() ^ 1 << 63).collect()
    }
    fn unsigned<T: Copy + Into<u64>>(values: &[T]) -> Vec<u64> {
        values.iter().map(|v| (*v).into()).collect()
    }
    fn floats(values: impl Iterator<Item = f64>) -> Vec<u64> {
        // default: the keys of floats have 64 bits
        let word = |v| i64::try_from(float_key(v)).unwrap_or(i64::MAX);
        values.map(|v| word(v).cast_unsigned() ^ 1 << 63).collect()
    }
    Some(match (column.data, column.data_type) {
        (Data::U8(v), _) => unsigned(v),
        (Data::U16(v), _) => unsigned(v),
        (Data::U32(v), _) => unsigned(v),
        (Data::U64(v), DataType::U64) => unsigned(v),
        (Data::I8(v), _) => signed(v),
        (Data::I16(v), _) => signed(v),
        (Data::I32(v), _) => signed(v),
        (Data::I64(v), _) => signed(v),
        (Data::F64(v), DataType::F64) => floats(v.iter().copied()),
        (Data::F32(v), _) => floats(v.iter().map(|v| f64::from(*v))),
        _ => return None,
    })
}
