//! Whether a batch, whose parts anybody may set, is one of a schema.
//!
//! Bulk loads are as fast as memory, so each check is one pass without branches that only tells
//! that something is wrong. What it is, and in which row, is looked for afterwards.

use std::fmt::Display;
use std::mem::discriminant;

use esker_format::calendar::DAY_US;
use esker_format::decimal::limit;
use esker_format::row::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use esker_format::{
    Batch, Column, DataType, Field, Interval, List, Schema, Values, VariableValues,
};

use crate::commit::fit::refuse_long_values;
use crate::{Error, Result};

/// Checks every column of a batch. Messages count its rows from `first_row`.
///
/// # Errors
/// `InvalidInput` naming the field, the row, what was expected and what was found;
/// `ConstraintViolated` for a NULL where none may be.
pub(crate) fn check_batch(schema: &Schema, batch: &Batch, first_row: u64) -> Result<()> {
    let (want, got) = (schema.fields().len(), batch.columns.len());
    if want != got {
        return Err(Error::invalid(format!("expected {want} columns, found {got}")));
    }
    for (field, column) in schema.fields().iter().zip(&batch.columns) {
        let checked = Checked { field, column, first_row };
        checked.check_type()?;
        checked.check_row_counts(batch.len())?;
        checked.check_nulls()?;
        match &column.values {
            Values::Variable(values) => {
                checked.check_offsets(values)?;
                checked.check_text(values)?;
                checked.check_lengths(values)?;
            }
            Values::U8(values) => checked.check_bools(values)?,
            Values::I64(values) => {
                checked.check_times(values)?;
                checked.check_decimals(values)?;
            }
            Values::I128(values) => checked.check_decimals(values)?,
            _ => {}
        }
    }
    check_keys(schema, batch, first_row)
}

/// Most keys together are shorter than one may be.
pub(crate) fn check_keys(schema: &Schema, batch: &Batch, first_row: u64) -> Result<()> {
    if !schema.has_unique_values() {
        return Ok(());
    }
    let is_key = |(at, field): &(usize, &Field)| {
        schema.key_positions().contains(at) || schema.is_unique_field(field.id)
    };
    let keys = schema.fields().iter().enumerate().filter(is_key);
    let columns = keys.filter_map(|(at, _)| batch.columns.get(at));
    let columns: Vec<&Column> = columns.collect();
    let heap = |column: &&Column| match &column.values {
        Values::Variable(values) => values.heap.len(),
        _ => 0,
    };
    if columns.iter().map(heap).sum::<usize>() <= KEY_BYTES_MAX {
        return Ok(());
    }
    for row in 0..batch.len() {
        let value = |position| batch.columns.get(position).map(|column: &Column| column.value(row));
        refuse_long_values(schema, value).map_err(|e| e.in_row(first_row + row as u64))?;
    }
    Ok(())
}

struct Checked<'a> {
    field: &'a Field,
    column: &'a Column,
    first_row: u64,
}

impl Checked<'_> {
    fn error(&self, message: impl Display) -> Error {
        Error::invalid(format!("field {:?}: {message}", self.field.name))
    }

    fn error_at(&self, row: usize, message: impl Display) -> Error {
        let e = Error::invalid(format!("field {:?}{message}", self.field.name));
        e.in_row(self.first_row + row as u64)
    }

    fn check_type(&self) -> Result<()> {
        let (want, got) = (self.field.data_type, self.column.data_type);
        if want != got {
            return Err(self.error(format_args!("expected {want}, found {got}")));
        }
        if discriminant(&self.column.values) != discriminant(&Values::empty(want)) {
            return Err(self.error(format_args!("expected values stored as those of {want} are")));
        }
        Ok(())
    }

    fn check_row_counts(&self, want: usize) -> Result<()> {
        if let Values::Variable(values) = &self.column.values
            && values.offsets.is_empty()
        {
            return Err(self.error("expected one offset more than rows, found none"));
        }
        let got = self.column.len();
        if got != want {
            return Err(self.error(format_args!("expected {want} rows, found {got}")));
        }
        match self.column.nulls.as_ref().map(Vec::len) {
            Some(got) if got != want => {
                Err(self.error(format_args!("expected NULL marks of {want} rows, found {got}")))
            }
            _ => Ok(()),
        }
    }

    fn check_nulls(&self) -> Result<()> {
        let Some(nulls) = &self.column.nulls else { return Ok(()) };
        let most = match &self.field.generated {
            Some(_) => Column::DEFAULT_MARK,
            None => u8::from(self.field.nullable),
        };
        if nulls.iter().fold(0, |most, mark| most.max(*mark)) <= most {
            return Ok(());
        }
        match nulls.iter().enumerate().find(|(_, mark)| **mark > most) {
            Some((row, 1)) => {
                let e = Error::violated(format!("field {:?} must not be null", self.field.name));
                Err(e.in_row(self.first_row + row as u64))
            }
            Some((row, mark)) => {
                let message = format_args!(": expected a NULL mark of 0 or 1, found {mark}");
                Err(self.error_at(row, message))
            }
            None => Ok(()),
        }
    }

    fn check_bools(&self, values: &[u8]) -> Result<()> {
        if self.field.data_type != DataType::Bool
            || values.iter().fold(0, |most, value| most.max(*value)) <= 1
        {
            return Ok(());
        }
        match values.iter().enumerate().find(|(_, value)| **value > 1) {
            Some((row, value)) => {
                Err(self.error_at(row, format_args!(": expected a bool of 0 or 1, found {value}")))
            }
            None => Ok(()),
        }
    }

    fn check_times(&self, values: &[i64]) -> Result<()> {
        let within = |value: &i64| (0..DAY_US).contains(value);
        if self.field.data_type != DataType::Time || values.iter().all(within) {
            return Ok(());
        }
        match values.iter().enumerate().find(|(_, value)| !within(value)) {
            Some((row, value)) => {
                let expected = format_args!(": expected a time of 0 to {}", DAY_US - 1);
                Err(self.error_at(row, format_args!("{expected}, found {value}")))
            }
            None => Ok(()),
        }
    }

    fn check_decimals<T: Copy + Into<i128>>(&self, values: &[T]) -> Result<()> {
        let DataType::Decimal { precision, scale } = self.field.data_type else { return Ok(()) };
        let limit = limit(precision).unsigned_abs();
        let within = |value: &T| (*value).into().unsigned_abs() < limit;
        if values.iter().fold(true, |all, value| all & within(value)) {
            return Ok(());
        }
        let beyond = |(row, value): &(usize, &T)| !within(value) && !self.column.is_null(*row);
        match values.iter().enumerate().find(beyond) {
            Some((row, value)) => {
                let mantissa: i128 = (*value).into();
                let message = format_args!(
                    ": expected a decimal of at most {precision} digits, found {mantissa} with \
                     {scale} of them behind the point"
                );
                Err(self.error_at(row, message))
            }
            None => Ok(()),
        }
    }

    /// UUIDs and IPv6 addresses have 16 bytes; others may have a limit. The texts have been
    /// checked.
    fn check_lengths(&self, values: &VariableValues) -> Result<()> {
        let sixteen = matches!(self.field.data_type, DataType::Uuid | DataType::Ipv6);
        if let Some(labels) = &self.field.labels {
            let strange =
                |row: &usize| !labels.has_value(values.get(*row)) && !self.column.is_null(*row);
            let expected = labels.expected();
            // default: none is strange
            return (0..values.len()).find(strange).map_or(Ok(()), |row| {
                Err(self.error_at(row, format_args!(": expected {expected}, found another value")))
            });
        }
        if self.field.data_type == DataType::Json {
            let documents = (0..values.len()).filter(|row| !self.column.is_null(*row));
            let mut checked =
                documents.map(|row| (row, esker_format::json::check(values.get(row))));
            return checked
                .find_map(|(row, checked)| Some((row, checked.err()?)))
                // default: none is wrong
                .map_or(Ok(()), |(row, e)| {
                    Err(self.error_at(row, format_args!(": expected json: {e}")))
                });
        }
        if self.field.data_type == DataType::Interval {
            for row in (0..values.len()).filter(|row| !self.column.is_null(*row)) {
                let bytes = values.get(row).as_array().map(Interval::from_stored);
                if !matches!(bytes, Some(Ok(_))) {
                    return Err(self.error_at(row, ": expected an interval, found other bytes"));
                }
            }
            return Ok(());
        }
        if let DataType::List(element) = self.field.data_type {
            for row in (0..values.len()).filter(|row| !self.column.is_null(*row)) {
                let checked = List::check(values.get(row), element);
                checked.map_err(|e| self.error_at(row, format_args!(": expected a list: {e}")))?;
            }
            return Ok(());
        }
        // Nothing has more characters than bytes.
        // default: without a limit any length fits
        let most = self.field.length_max.map_or(usize::MAX, |most| most as usize);
        if !sixteen && values.longest() <= most {
            return Ok(());
        }
        for row in (0..values.len()).filter(|row| !self.column.is_null(*row)) {
            let bytes = values.get(row).len();
            if sixteen && bytes != 16 {
                let message = format_args!(": expected 16 bytes, found {bytes}");
                return Err(self.error_at(row, message));
            }
            let checked = self.field.check_length(self.column.value(row));
            checked.map_err(|e| self.error_at(row, format_args!(": {e}")))?;
        }
        Ok(())
    }

    fn check_offsets(&self, values: &VariableValues) -> Result<()> {
        // default: without offsets there are no values, which is refused below
        let ends = values.offsets.get(1..).unwrap_or_default();
        let ranges = || values.offsets.iter().zip(ends);
        let falls = ranges().fold(false, |falls, (start, end)| falls | (end < start));
        let longest = values.longest();
        let heap = values.heap.len();
        let leaves = ends.last().is_some_and(|end| *end as usize > heap);
        if !falls && !leaves && longest <= VALUE_BYTES_MAX {
            return Ok(());
        }
        for (row, (start, end)) in ranges().enumerate() {
            if end < start {
                let message = format_args!(": expected offsets that rise, found {start}, {end}");
                return Err(self.error_at(row, message));
            }
            if *end as usize > heap {
                let message = format_args!(": expected an end up to {heap}, found {end}");
                return Err(self.error_at(row, message));
            }
            let bytes = (end - start) as usize;
            if bytes > VALUE_BYTES_MAX {
                let message = format_args!(": {bytes} bytes, at most {VALUE_BYTES_MAX}");
                return Err(self.error_at(row, message));
            }
        }
        Ok(())
    }

    /// The offsets have been checked.
    fn check_text(&self, values: &VariableValues) -> Result<()> {
        if self.field.data_type != DataType::Text || is_text(values) {
            return Ok(());
        }
        let rows = (0..values.len()).map(|row| std::str::from_utf8(values.get(row)));
        match rows.enumerate().find_map(|(row, text)| text.err().map(|e| (row, e))) {
            Some((row, e)) => Err(self.error_at(row, format_args!(": expected UTF-8: {e}"))),
            None => Ok(()),
        }
    }
}

/// Whether every value is UTF-8: all together are, and none begins or ends within a character.
fn is_text(values: &VariableValues) -> bool {
    let (Some(first), Some(last)) = (values.offsets.first(), values.offsets.last()) else {
        return true;
    };
    let first = *first as usize;
    let Some(heap) = values.heap.get(first..*last as usize) else { return false };
    if heap.is_ascii() {
        return true;
    }
    std::str::from_utf8(heap).is_ok_and(|text| {
        values
            .offsets
            .iter()
            .fold(true, |all, at| all & text.is_char_boundary(*at as usize - first))
    })
}
