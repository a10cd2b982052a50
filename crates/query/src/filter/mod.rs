//! Filters over a batch: a mask goes in, the rows that fail leave it.

/// Calls `$body` with the slice of plain or narrowed numbers in `$data`; `$other` otherwise.
macro_rules! with_numbers {
    ($data:expr, $values:ident => $body:expr, _ => $other:expr) => {
        match $data {
            Data::U8($values) => $body,
            Data::U16($values) => $body,
            Data::U32($values) => $body,
            Data::U64($values) => $body,
            Data::I8($values) => $body,
            Data::I16($values) => $body,
            Data::I32($values) => $body,
            Data::I64($values) => $body,
            _ => $other,
        }
    };
}

mod code_tables;
mod key_set;
mod length;
mod pair;
mod pair_floats;
mod range;
mod runs;
mod search;
mod set;
mod suffix;
mod text;

use esker_format::{BytesReader, Codes, ColumnSlice, Data, DataType, Room, Validity};

pub(crate) use code_tables::CodeTables;
pub(crate) use key_set::{FieldKeys, KeySet};
pub(crate) use with_numbers;

use super::Result;
use crate::evaluate::{Lanes, Mask, Picked, Rows, evaluate};
use crate::predicate::{Condition, Key, Predicate, Test};
use crate::{Fragment, Limits};

/// Removes the rows for which the filter is not true.
///
/// # Errors
/// When a column cannot be read, or an expression fails on a row that no cheaper test excluded.
pub(crate) fn keep<'a>(
    predicate: &'a Predicate,
    rows: &Rows<'a>,
    mask: &mut Mask,
    tables: &CodeTables,
) -> Result<()> {
    match predicate {
        Predicate::Constant(true) => {}
        Predicate::Constant(false) => mask.clear(),
        Predicate::Test(test) => {
            if !mask.is_empty() {
                keep_test(test, rows, &rows.column(test.field)?, mask, tables)?;
            }
        }
        Predicate::Value(bound, wanted) => {
            if pair::keep(bound, *wanted, rows, mask)? {
                return Ok(());
            }
            let picked = Picked::of(mask);
            let vector = evaluate(bound, rows, picked.selection())?;
            if let (Picked::All(_), Lanes::Bools(values), None) =
                (&picked, &vector.lanes, &vector.nulls)
            {
                let wanted = *wanted;
                mask.retain(values, |value| value == wanted);
                return Ok(());
            }
            let mut i = 0;
            mask.retain_rows(|_| {
                let passes = match &vector.lanes {
                    Lanes::Bools(values) => values.get(i) == Some(wanted) && !vector.is_null(i),
                    _ => false,
                };
                i += 1;
                passes
            });
        }
        Predicate::All(members) => {
            for member in members {
                if mask.is_empty() {
                    break;
                }
                keep(member, rows, mask, tables)?;
            }
        }
        Predicate::Any(members) => {
            let mut passed = Mask::none(mask.len());
            for member in members {
                if mask.is_empty() {
                    break;
                }
                let mut now = mask.clone();
                keep(member, rows, &mut now, tables)?;
                mask.and_not(&now);
                passed.or(&now);
            }
            *mask = passed;
        }
    }
    Ok(())
}

/// Which of at most [`ZONE_ROWS`](super::ZONE_ROWS) values of a field pass a filter of that field.
///
/// # Errors
/// When an expression fails.
pub(crate) fn passing(
    predicate: &Predicate,
    field: usize,
    values: ColumnSlice<'_>,
    limits: &Limits,
) -> Result<Mask> {
    // Tables are kept by address, and these values go at the end.
    let tables = CodeTables::default();
    let mut mask = Mask::all(values.len);
    keep(predicate, &Rows::of_column(field, values, limits), &mut mask, &tables)?;
    Ok(mask)
}

/// Whether one row passes, of those that lie far from each other; `None` where an expression has to
/// be evaluated.
///
/// # Errors
/// When a column cannot be read.
pub(crate) fn passes(
    predicate: &Predicate,
    part: &dyn Fragment,
    row: usize,
) -> Result<Option<bool>> {
    match predicate {
        Predicate::Constant(passes) => Ok(Some(*passes)),
        Predicate::Test(test) => {
            let room = Room::default();
            let value = part.value(test.field, row, &room)?;
            Ok(Some(test.condition.matches(value)))
        }
        Predicate::Value(..) => Ok(None),
        Predicate::All(members) => decided(members, false, part, row),
        Predicate::Any(members) => decided(members, true, part, row),
    }
}

/// What several conditions come to, of which one that is `deciding` is enough.
fn decided(
    members: &[Predicate],
    deciding: bool,
    part: &dyn Fragment,
    row: usize,
) -> Result<Option<bool>> {
    for member in members {
        match passes(member, part, row)? {
            Some(passes) if passes == deciding => return Ok(Some(deciding)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    Ok(Some(!deciding))
}

/// How many rows of a batch pass, all of them visible, where that is known without a mask.
pub(crate) fn count(
    predicate: &Predicate,
    rows: &Rows<'_>,
    tables: &CodeTables,
) -> Result<Option<usize>> {
    let Predicate::Test(test) = predicate else { return Ok(None) };
    let condition = &test.condition;
    if !matches!(
        condition,
        Condition::Range { .. } | Condition::TextRange { .. } | Condition::Match { .. }
    ) {
        return Ok(None);
    }
    let column = rows.column(test.field)?;
    if !matches!(column.validity, Validity::AllValid) {
        return Ok(None);
    }
    Ok(match (condition, column.data) {
        (Condition::Range { least, greatest, negated }, data) => {
            range::count(data, (*least, *greatest), *negated)
        }
        (_, Data::Dictionary { codes, dictionary }) => {
            text::count_codes(test, (codes, dictionary), column.len, (tables, rows.meter()))?
        }
        _ => None,
    })
}

/// Removes the rows whose value fails a test.
fn keep_test(
    test: &Test,
    rows: &Rows<'_>,
    column: &ColumnSlice<'_>,
    mask: &mut Mask,
    tables: &CodeTables,
) -> Result<()> {
    let (condition, meter) = (&test.condition, rows.meter());
    if let Data::Constant(value) = column.data
        && matches!(column.validity, Validity::AllValid)
    {
        if !condition.matches(value) {
            mask.clear();
        }
        return Ok(());
    }
    let valid = Mask::valid(&column.validity, mask.len());
    match condition {
        Condition::Null { negated: true } => {
            mask.and(&valid);
            return Ok(());
        }
        Condition::Null { negated: false } => {
            mask.and_not(&valid);
            return Ok(());
        }
        _ => mask.and(&valid),
    }
    match (condition, column.data) {
        (_, Data::Constant(value)) => {
            if !condition.matches(value) {
                mask.clear();
            }
        }
        (Condition::Range { .. } | Condition::Set { .. }, Data::Narrowed { base, codes }) => {
            keep_narrowed(column, (base, codes), condition, mask);
        }
        (Condition::Range { least, greatest, negated }, data) => {
            range::keep(data, (*least, *greatest), *negated, mask);
        }
        (Condition::Set { keys, negated }, data) => set::keep(data, keys, *negated, mask),
        (_, Data::Dictionary { codes, dictionary }) => {
            text::keep_codes(test, (codes, dictionary), mask, tables, meter)?;
        }
        (Condition::Length { least, greatest, negated, in_characters }, _) => {
            let bounds = (*least, *greatest);
            let seen = length::keep(column, bounds, *negated, *in_characters, mask);
            if *in_characters == (column.data_type == DataType::Text)
                && let Some(seen) = seen
            {
                rows.learn_lengths(test.field, seen);
            }
        }
        (Condition::Match { pattern, negated }, _) => {
            search::keep(column, pattern, *negated, mask, meter)?;
        }
        _ => {
            let mut reader = BytesReader::new(column);
            mask.retain_rows(|row| condition.matches_text(reader.bytes(row)));
        }
    }
    Ok(())
}

/// Tests codes instead of values: the condition moves by the base, once.
fn keep_narrowed(
    column: &ColumnSlice<'_>,
    (base, codes): (u64, Codes<'_>),
    condition: &Condition,
    mask: &mut Mask,
) {
    let base = if column.data_type.is_unsigned() {
        Key::from(base)
    } else {
        Key::from(base.cast_signed())
    };
    let greatest_code = Key::from(match codes {
        Codes::U8(_) => u32::from(u8::MAX),
        Codes::U16(_) => u32::from(u16::MAX),
        Codes::U32(_) => u32::MAX,
    });
    let (_, type_greatest) = match column.data_type {
        DataType::U64 => (0, Key::from(u64::MAX)),
        _ => (0, Key::from(i64::MAX)),
    };
    if base + greatest_code > type_greatest {
        // A sum might wrap around: decode.
        return mask.retain_rows(|row| condition.matches(column.value(row)));
    }
    let data = as_data(codes);
    match condition {
        Condition::Range { least, greatest, negated } => {
            let bounds = (least.saturating_sub(base), greatest.saturating_sub(base));
            range::keep(data, bounds, *negated, mask);
        }
        Condition::Set { keys, negated } => {
            let keys: Vec<_> = keys.iter().map(|key| key.saturating_sub(base)).collect();
            set::keep(data, &keys, *negated, mask);
        }
        _ => {}
    }
}

/// Codes as the plain numbers they are.
fn as_data(codes: Codes<'_>) -> Data<'_> {
    match codes {
        Codes::U8(v) => Data::U8(v),
        Codes::U16(v) => Data::U16(v),
        Codes::U32(v) => Data::U32(v),
    }
}
