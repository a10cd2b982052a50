//! The order of byte strings, eight bytes at a time.
//!
//! Comparing two strings costs two cache misses, so each row carries the next eight bytes of its
//! string as a number, a *chunk*, in which missing bytes are zeros. Rows are sorted by their
//! chunks; those that stay equal are sorted by the chunk after, and so on.
//!
//! Strings whose chunks are equal and that end there differ in the zeros at their ends only: the
//! shorter is less, and all of them are less than strings that go on.

use std::ops::Range;

use esker_format::ColumnSlice;
use esker_format::key::first_word;

const CHUNK_BYTES: usize = 8;

/// Rows whose strings are equal before `depth`.
struct Equal {
    items: Range<usize>,
    depth: usize,
}

/// The rows of a column that are not NULL, by their bytes; equal ones in their order.
pub(super) fn sorted_rows(column: &ColumnSlice<'_>) -> Vec<u32> {
    let mut items: Vec<(u64, u32)> = Vec::with_capacity(column.len);
    for (row, number) in (0..column.len).zip(0u32..) {
        if !column.is_null(row) {
            items.push((chunk(column.bytes(row), 0), number));
        }
    }
    items.sort_unstable();
    let mut work = Vec::new();
    push_equal(&mut work, &items, 0, CHUNK_BYTES);
    while let Some(Equal { items: range, depth }) = work.pop() {
        let end = range.end;
        let Some(equal) = items.get_mut(range) else { continue };
        let rest = sort_from(column, equal, depth);
        push_equal(&mut work, rest, end - rest.len(), depth + CHUNK_BYTES);
    }
    items.into_iter().map(|(_, row)| row).collect()
}

/// Sorts rows that are equal before `depth` by the chunk there, behind those that have ended, and
/// gives those that have not.
fn sort_from<'i>(
    column: &ColumnSlice<'_>,
    items: &'i mut [(u64, u32)],
    depth: usize,
) -> &'i [(u64, u32)] {
    let mut ended = 0;
    for (key, row) in &mut *items {
        let bytes = column.bytes(*row as usize);
        if bytes.len() > depth {
            *key = chunk(bytes, depth);
        } else {
            *key = bytes.len() as u64;
            ended += 1;
        }
    }
    if ended > 0 && ended < items.len() {
        items.sort_unstable_by_key(|(_, row)| column.bytes(*row as usize).len() > depth);
    }
    let (short, rest) = items.split_at_mut(ended);
    short.sort_unstable();
    rest.sort_unstable();
    rest
}

/// Notes runs of equal chunks; `first` is where `items` begin.
fn push_equal(work: &mut Vec<Equal>, items: &[(u64, u32)], first: usize, depth: usize) {
    let mut start = first;
    for equal in items.chunk_by(|a, b| a.0 == b.0) {
        let end = start + equal.len();
        if equal.len() > 1 {
            work.push(Equal { items: start..end, depth });
        }
        start = end;
    }
}

/// Eight bytes from `depth` on as a number in the same order.
fn chunk(bytes: &[u8], depth: usize) -> u64 {
    // default: where a string has ended there are zeros
    let rest = bytes.get(depth..).unwrap_or_default();
    first_word(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::{Column, DataType, ValueRef};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_sorted_as_by_comparing(
            strings in prop::collection::vec(
                (0usize..3, prop::collection::vec(0u8..2, 0..20)),
                0..200,
            ),
        ) {
            let mut column = Column::empty(DataType::Bytes);
            let mut wanted = Vec::new();
            for (row, (prefix, tail)) in (0u32..).zip(&strings) {
                let bytes = [vec![7; prefix * 5], tail.clone()].concat();
                column.push(ValueRef::Bytes(&bytes)).unwrap();
                wanted.push((bytes, row));
            }
            column.push_null();
            wanted.sort();
            let wanted: Vec<u32> = wanted.into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(sorted_rows(&ColumnSlice::from(&column)), wanted);
        }
    }
}
