//! Two fields beside each other, without a copy of either: texts, and whole numbers 64 at a time.

use esker_format::{Codes, ColumnSlice, Data, DataType, ValueRef};

use super::pair_floats::{self, are_floats_and_numbers};
use crate::Result;
use crate::bound::{Bound, Comparison, Node};
use crate::evaluate::{Mask, Rows};

/// Values taken at a time: as many as a word of a mask has bits.
pub(super) const TAKEN: usize = 64;

/// Removes the rows for which a comparison of two fields is not `wanted`; false when `bound` is
/// none, or one of other types.
pub(super) fn keep(bound: &Bound, wanted: bool, rows: &Rows<'_>, mask: &mut Mask) -> Result<bool> {
    let Node::Compare(comparison, left, right) = &bound.node else { return Ok(false) };
    let (Node::Field(a), Node::Field(b)) = (&left.node, &right.node) else { return Ok(false) };
    let (of_left, of_right) = (left.data_type(), right.data_type());
    let are_texts = of_left.is_variable() && left.data_type == right.data_type;
    let floats_first = are_floats_and_numbers(of_left, of_right);
    let floats_last = are_floats_and_numbers(of_right, of_left);
    if !(are_texts || floats_first || floats_last || are_whole(of_left, of_right)) {
        return Ok(false);
    }
    let (a, b) = (rows.column(*a)?, rows.column(*b)?);
    let comparison = if wanted { *comparison } else { comparison.opposite() };
    let mut kept = mask.clone();
    for column in [&a, &b] {
        kept.and(&Mask::valid(&column.validity, mask.len()));
        if matches!(column.data, Data::Constant(ValueRef::Null)) {
            kept.clear();
        }
    }
    match comparison {
        _ if floats_first => {
            if !pair_floats::keep(comparison, &a, &b, &mut kept) {
                return Ok(false);
            }
        }
        _ if floats_last => {
            if !pair_floats::keep(comparison.mirrored(), &b, &a, &mut kept) {
                return Ok(false);
            }
        }
        _ if !are_texts => {
            if !(has_words(&a) && has_words(&b)) {
                return Ok(false);
            }
            whole(comparison, &a, &b, &mut kept);
        }
        Comparison::Eq => keep_same(&a, &b, true, &mut kept),
        Comparison::Neq => keep_same(&a, &b, false, &mut kept),
        _ => kept.retain_rows(|row| comparison.holds(a.bytes(row).cmp(b.bytes(row)))),
    }
    *mask = kept;
    Ok(true)
}

/// Removes the rows whose texts are not the same, or with `wanted` false those whose are.
///
/// The lengths alone tell most. The texts of the others lie far from each other, and a processor
/// that waits for one after the other waits long: so one byte of each is compared first, without a
/// branch on what came of it, which lets many be fetched at a time.
fn keep_same(a: &ColumnSlice<'_>, b: &ColumnSlice<'_>, wanted: bool, mask: &mut Mask) {
    let (Some(left), Some(right)) = (Texts::of(a), Texts::of(b)) else {
        return mask.retain_rows(|row| is_same(a, b, row) == wanted);
    };
    let mut alike = [false; TAKEN];
    let mut may_be = mask.clone();
    may_be.retain_words(|word, kept| match (left.lengths(word), right.lengths(word)) {
        (Some(left), Some(right)) if kept != 0 => {
            let pairs = left.iter().zip(&right);
            alike.iter_mut().zip(pairs).for_each(|(alike, (a, b))| *alike = a == b);
            kept & Mask::word(&alike)
        }
        _ => kept,
    });
    let rows = may_be.rows();
    let ends_alike: Vec<bool> =
        rows.iter().map(|row| left.last_byte(*row) == right.last_byte(*row)).collect();
    let mut same = Mask::none(mask.len());
    for (row, _) in rows.iter().zip(ends_alike).filter(|(_, alike)| *alike) {
        let row = *row as usize;
        if is_same(a, b, row) {
            same.insert(row);
        }
    }
    if wanted {
        *mask = same;
    } else {
        mask.and_not(&same);
    }
}

/// Texts that lie behind each other.
struct Texts<'a> {
    offsets: &'a [u32],
    start: u32,
    heap: &'a [u8],
}

impl<'a> Texts<'a> {
    fn of(column: &ColumnSlice<'a>) -> Option<Self> {
        match column.data {
            Data::Variable { offsets, start, heap } => Some(Self { offsets, start, heap }),
            _ => None,
        }
    }

    /// The lengths of the texts of a word of rows, if there are so many.
    fn lengths(&self, word: usize) -> Option<[u32; TAKEN]> {
        let offsets = self.offsets.get(word * TAKEN..)?;
        offsets.first_chunk::<ENDS>().map(lengths_of)
    }

    /// The last byte of a text; 0 for one without bytes.
    fn last_byte(&self, row: u32) -> u8 {
        match self.offsets.get(row as usize..row as usize + 2) {
            Some([from, to]) if from != to => {
                let last = to.wrapping_sub(self.start).wrapping_sub(1);
                self.heap.get(last as usize).copied().unwrap_or_default()
            }
            _ => 0,
        }
    }
}

/// Offsets of as many texts as are taken at a time.
const ENDS: usize = TAKEN + 1;

fn lengths_of(offsets: &[u32; ENDS]) -> [u32; TAKEN] {
    let mut lengths = [0; TAKEN];
    if let (Some(starts), Some(ends)) =
        (offsets.first_chunk::<TAKEN>(), offsets.last_chunk::<TAKEN>())
    {
        for ((length, start), end) in lengths.iter_mut().zip(starts).zip(ends) {
            *length = end.wrapping_sub(*start);
        }
    }
    lengths
}

/// The lengths alone tell most.
fn is_same(a: &ColumnSlice<'_>, b: &ColumnSlice<'_>, row: usize) -> bool {
    let length = |column: &ColumnSlice<'_>| match column.data {
        Data::Variable { offsets, .. } => match offsets.get(row..row + 2) {
            Some([from, to]) => to.wrapping_sub(*from) as usize,
            _ => 0,
        },
        _ => column.bytes(row).len(),
    };
    length(a) == length(b) && a.bytes(row) == b.bytes(row)
}

/// Types whose values compare as the words do that they are stored as.
fn are_whole(a: DataType, b: DataType) -> bool {
    let is_integer = |t: DataType| t.is_integer() && t != DataType::U64;
    match (a, b) {
        (DataType::Decimal { scale: a, .. }, DataType::Decimal { scale: b, .. }) => a == b,
        (DataType::Date | DataType::Timestamp | DataType::Time, _) => a == b,
        _ => is_integer(a) && is_integer(b),
    }
}

/// Whether the values lie as words of at most 64 bits.
pub(super) fn has_words(column: &ColumnSlice<'_>) -> bool {
    match column.data {
        Data::U8(_) | Data::U16(_) | Data::U32(_) => true,
        Data::I8(_) | Data::I16(_) | Data::I32(_) | Data::I64(_) | Data::Narrowed { .. } => true,
        Data::Constant(value) => value.is_null() || value.as_word().is_some(),
        _ => false,
    }
}

fn whole(comparison: Comparison, a: &ColumnSlice<'_>, b: &ColumnSlice<'_>, mask: &mut Mask) {
    match comparison {
        Comparison::Eq => each(a, b, mask, |a, b| a == b),
        Comparison::Neq => each(a, b, mask, |a, b| a != b),
        Comparison::Lt => each(a, b, mask, |a, b| a < b),
        Comparison::Lte => each(a, b, mask, |a, b| a <= b),
        Comparison::Gt => each(a, b, mask, |a, b| a > b),
        Comparison::Gte => each(a, b, mask, |a, b| a >= b),
    }
}

fn each(
    a: &ColumnSlice<'_>,
    b: &ColumnSlice<'_>,
    mask: &mut Mask,
    holds: impl Fn(i64, i64) -> bool,
) {
    let (mut left, mut right) = ([0; TAKEN], [0; TAKEN]);
    let mut passed = [false; TAKEN];
    mask.retain_words(|word, kept| {
        take(a, word * TAKEN, &mut left);
        take(b, word * TAKEN, &mut right);
        for ((passed, left), right) in passed.iter_mut().zip(&left).zip(&right) {
            *passed = holds(*left, *right);
        }
        kept & Mask::word(&passed)
    });
}

/// Takes the words of some rows; past the end anything.
pub(super) fn take(column: &ColumnSlice<'_>, first: usize, to: &mut [i64; TAKEN]) {
    fn widened<T: Copy + Into<i64>>(from: &[T], first: usize, to: &mut [i64; TAKEN]) {
        let from = from.get(first..).unwrap_or_default();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = (*from).into());
    }
    match column.data {
        Data::U8(v) => widened(v, first, to),
        Data::U16(v) => widened(v, first, to),
        Data::U32(v) => widened(v, first, to),
        Data::I8(v) => widened(v, first, to),
        Data::I16(v) => widened(v, first, to),
        Data::I32(v) => widened(v, first, to),
        Data::I64(v) => widened(v, first, to),
        Data::Narrowed { base, codes } => {
            match codes {
                Codes::U8(v) => widened(v, first, to),
                Codes::U16(v) => widened(v, first, to),
                Codes::U32(v) => widened(v, first, to),
            }
            to.iter_mut().for_each(|word| *word = word.wrapping_add(base.cast_signed()));
        }
        Data::Constant(value) => *to = [value.as_word().unwrap_or_default(); TAKEN],
        _ => *to = [0; TAKEN],
    }
}
