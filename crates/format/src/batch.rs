//! Owned columns: rows on their way into a table.

use std::num::TryFromIntError;

use crate::row::VALUE_BYTES_MAX;
use crate::{DataType, Error, ErrorKind, Result, Schema, Value, ValueRef};

/// Texts or byte strings, end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableValues {
    /// `offsets[i]..offsets[i + 1]` is value `i`; the first offset is 0.
    pub offsets: Vec<u32>,
    /// The bytes of all values.
    pub heap: Vec<u8>,
}

impl Default for VariableValues {
    fn default() -> Self {
        Self { offsets: vec![0], heap: Vec::new() }
    }
}

impl VariableValues {
    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// True when there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value; false (and nothing appended) when the heap would pass 4 GiB.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let Ok(end) = u32::try_from(self.heap.len() + bytes.len()) else { return false };
        self.heap.extend_from_slice(bytes);
        self.offsets.push(end);
        true
    }

    /// The length of the longest value, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest_from(0)
    }

    /// The same of the values from `first` on.
    #[must_use]
    pub fn longest_from(&self, first: usize) -> usize {
        // default: past the end there is no value.
        let starts = self.offsets.get(first..).unwrap_or_default();
        // default: without an offset there is none, either.
        let ends = starts.get(1..).unwrap_or_default();
        let lengths = starts.iter().zip(ends).map(|(start, end)| end.wrapping_sub(*start));
        lengths.fold(0, u32::max) as usize
    }

    /// Value `i`; empty past the end.
    #[must_use]
    pub fn get(&self, i: usize) -> &[u8] {
        match (self.offsets.get(i), self.offsets.get(i + 1)) {
            (Some(start), Some(end)) => {
                let bytes = self.heap.get(*start as usize..*end as usize);
                debug_assert!(bytes.is_some(), "bytes {start}..{end} of value {i}");
                bytes.unwrap_or_default() // default: offsets rise up to the end of the heap.
            }
            _ => &[],
        }
    }
}

/// The values of a column, by how they are stored. NULLs hold a zero or an empty value.
///
/// `bool` is stored as `U8` (0 or 1), `date` as `I32`, `timestamp` and `time` as `I64`, `ipv4` as
/// `U32`, decimals as mantissas in `I64` or `I128`; text, bytes, UUIDs and IPv6 addresses as
/// `Variable`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is named after the type it stores")]
pub enum Values {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    I128(Vec<i128>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Variable(VariableValues),
}

/// Runs `$body` with `$values` bound to the vector inside a [`Values`] of fixed width, or
/// `$variable_body` with the [`VariableValues`].
#[macro_export]
macro_rules! with_values {
    ($subject:expr, $values:ident => $body:expr, $variable:ident => $variable_body:expr) => {
        match $subject {
            $crate::Values::U8($values) => $body,
            $crate::Values::U16($values) => $body,
            $crate::Values::U32($values) => $body,
            $crate::Values::U64($values) => $body,
            $crate::Values::I8($values) => $body,
            $crate::Values::I16($values) => $body,
            $crate::Values::I32($values) => $body,
            $crate::Values::I64($values) => $body,
            $crate::Values::I128($values) => $body,
            $crate::Values::F32($values) => $body,
            $crate::Values::F64($values) => $body,
            $crate::Values::Variable($variable) => $variable_body,
        }
    };
}

impl Values {
    /// No values, stored as `data_type` is.
    #[must_use]
    pub fn empty(data_type: DataType) -> Self {
        match data_type {
            DataType::Bool | DataType::U8 => Self::U8(Vec::new()),
            DataType::I8 => Self::I8(Vec::new()),
            DataType::I16 => Self::I16(Vec::new()),
            DataType::I32 | DataType::Date => Self::I32(Vec::new()),
            DataType::I64 | DataType::Timestamp | DataType::Time => Self::I64(Vec::new()),
            DataType::Decimal { .. } if data_type.is_wide() => Self::I128(Vec::new()),
            DataType::Decimal { .. } => Self::I64(Vec::new()),
            DataType::U16 => Self::U16(Vec::new()),
            DataType::U32 | DataType::Ipv4 => Self::U32(Vec::new()),
            DataType::U64 => Self::U64(Vec::new()),
            DataType::F32 => Self::F32(Vec::new()),
            DataType::F64 => Self::F64(Vec::new()),
            DataType::Text
            | DataType::Bytes
            | DataType::Uuid
            | DataType::Ipv6
            | DataType::Enum
            | DataType::Json
            | DataType::Interval
            | DataType::List(_) => Self::Variable(VariableValues::default()),
        }
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        with_values!(self, v => v.len(), v => v.len())
    }

    /// True when there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column on its way into a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What it holds.
    pub data_type: DataType,
    /// The values.
    pub values: Values,
    /// One byte per row, 1 where the row is NULL; `None` when no row is. On the way to a table it
    /// may be 2: see [`Column::DEFAULT_MARK`].
    pub nulls: Option<Vec<u8>>,
}

impl Column {
    /// The mark of a row that is NULL.
    pub const NULL_MARK: u8 = 1;

    /// The mark of a row that says nothing about the field: it gets the field's default, where the
    /// table has it.
    pub const DEFAULT_MARK: u8 = 2;

    /// A column without rows.
    #[must_use]
    pub fn empty(data_type: DataType) -> Self {
        Self { data_type, values: Values::empty(data_type), nulls: None }
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when row `i` says nothing about the field: [`Column::DEFAULT_MARK`].
    #[must_use]
    pub fn is_missing(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.get(i) == Some(&Self::DEFAULT_MARK))
    }

    /// True when row `i` is NULL.
    #[must_use]
    pub fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.get(i).is_some_and(|b| *b != 0))
    }

    /// Appends a NULL.
    pub fn push_null(&mut self) {
        let rows = self.len();
        let nulls = self.nulls.get_or_insert_with(Vec::new);
        nulls.resize(rows, 0);
        nulls.push(1);
        with_values!(&mut self.values, v => v.push(Default::default()), v => {
            v.push(&[]);
        });
    }

    /// Appends a row that says nothing about the field: [`Column::DEFAULT_MARK`].
    pub fn push_missing(&mut self) {
        self.push_null();
        if let Some(mark) = self.nulls.as_mut().and_then(|nulls| nulls.last_mut()) {
            *mark = Self::DEFAULT_MARK;
        }
    }

    /// Appends a value that [`ValueRef::coerce`] has fitted to the type.
    ///
    /// # Errors
    /// `InvalidInput` when the value is of another type, or the column is full.
    #[allow(clippy::cast_possible_truncation, reason = "coerce has checked the range")]
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (&mut self.values, value) {
            (_, ValueRef::Null) => {
                self.push_null();
                return Ok(());
            }
            (Values::U8(v), ValueRef::Bool(x)) => v.push(u8::from(x)),
            (Values::U8(v), ValueRef::Uint(x)) => v.push(x as u8),
            (Values::U16(v), ValueRef::Uint(x)) => v.push(x as u16),
            (Values::U32(v), ValueRef::Uint(x)) => v.push(x as u32),
            (Values::U64(v), ValueRef::Uint(x)) => v.push(x),
            (Values::I8(v), ValueRef::Int(x)) => v.push(x as i8),
            (Values::I16(v), ValueRef::Int(x)) => v.push(x as i16),
            (Values::I32(v), ValueRef::Int(x)) => v.push(x as i32),
            (Values::I32(v), ValueRef::Date(x)) => v.push(x),
            (Values::I64(v), ValueRef::Int(x) | ValueRef::Timestamp(x) | ValueRef::Time(x)) => {
                v.push(x);
            }
            (Values::I64(v), ValueRef::Decimal(x)) if self.data_type.is_decimal() => {
                v.push(x.mantissa() as i64);
            }
            (Values::I128(v), ValueRef::Decimal(x)) => v.push(x.mantissa()),
            (Values::U32(v), ValueRef::Ipv4(x)) => v.push(x),
            (Values::F32(v), ValueRef::Float32(x)) => v.push(x),
            (Values::F64(v), ValueRef::Float(x)) => v.push(x),
            (Values::Variable(v), value) if let Some(bytes) = value.as_bytes() => {
                if !v.push(bytes) {
                    return Err(Error::invalid("column heap would pass 4 GiB"));
                }
            }
            (_, other) => {
                let (want, kind) = (self.data_type, other.kind_name());
                return Err(Error::invalid(format!("expected {want}, found {kind} {other}")));
            }
        }
        if let Some(nulls) = &mut self.nulls {
            nulls.push(0);
        }
        Ok(())
    }

    /// Appends a value that is stored as it stands; false (and nothing appended) when it has to be
    /// looked at more closely.
    #[inline]
    fn push_as_is(&mut self, value: &Value) -> bool {
        /// Appends a number that is in the range of the column.
        fn ranged<T>(values: &mut Vec<T>, number: std::result::Result<T, TryFromIntError>) -> bool {
            number.map(|number| values.push(number)).is_ok()
        }
        let is_pushed = match (&mut self.values, value, self.data_type) {
            (Values::U8(v), Value::Bool(x), DataType::Bool) => ranged(v, Ok(u8::from(*x))),
            (Values::U8(v), Value::Uint(x), DataType::U8) => ranged(v, (*x).try_into()),
            (Values::U16(v), Value::Uint(x), _) => ranged(v, (*x).try_into()),
            (Values::U32(v), Value::Uint(x), DataType::U32) => ranged(v, (*x).try_into()),
            (Values::U64(v), Value::Uint(x), _) => ranged(v, Ok(*x)),
            (Values::I8(v), Value::Int(x), _) => ranged(v, (*x).try_into()),
            (Values::I16(v), Value::Int(x), _) => ranged(v, (*x).try_into()),
            (Values::I32(v), Value::Int(x), DataType::I32) => ranged(v, (*x).try_into()),
            (Values::I32(v), Value::Date(x), DataType::Date) => ranged(v, Ok(*x)),
            (Values::I64(v), Value::Int(x), DataType::I64)
            | (Values::I64(v), Value::Timestamp(x), DataType::Timestamp) => ranged(v, Ok(*x)),
            (Values::F64(v), Value::Float(x), _) => ranged(v, Ok(*x)),
            (Values::F32(v), Value::Float32(x), _) => ranged(v, Ok(*x)),
            (Values::Variable(v), Value::Text(x), DataType::Text) => {
                x.len() <= VALUE_BYTES_MAX && v.push(x.as_bytes())
            }
            _ => false,
        };
        if let Some(nulls) = self.nulls.as_mut().filter(|_| is_pushed) {
            nulls.push(0);
        }
        is_pushed
    }

    fn push_fitted(&mut self, field: &crate::Field, value: ValueRef<'_>) -> Result<()> {
        self.push(fit_value(field, value)?)
    }

    /// Keeps the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        if let Some(nulls) = &mut self.nulls {
            nulls.truncate(rows);
        }
        with_values!(&mut self.values, v => v.truncate(rows), v => {
            v.offsets.truncate(rows + 1);
            // default: without an offset there is no value.
            v.heap.truncate(v.offsets.last().map_or(0, |end| *end as usize));
        });
    }

    /// The value of row `i`; NULL past the end.
    #[must_use]
    pub fn value(&self, i: usize) -> ValueRef<'_> {
        crate::ColumnSlice::from(self).value(i)
    }
}

/// Rows on their way into a table, column by column.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Batch {
    /// The columns, in the order of the schema's fields, all equally long.
    pub columns: Vec<Column>,
}

impl Batch {
    /// No rows, with the columns of `schema`.
    #[must_use]
    pub fn empty(schema: &Schema) -> Self {
        Self { columns: schema.fields().iter().map(|f| Column::empty(f.data_type)).collect() }
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::len) // default: no columns have no rows.
    }

    /// True when there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row.
    ///
    /// # Errors
    /// `InvalidInput` naming the field when a value does not fit; nothing is appended then.
    pub fn push_row(&mut self, schema: &Schema, row: &[Value]) -> Result<()> {
        if row.len() != schema.fields().len() {
            let (want, got) = (schema.fields().len(), row.len());
            return Err(Error::invalid(format!("expected {want} values, found {got}")));
        }
        let rows = self.len();
        for ((field, column), value) in schema.fields().iter().zip(&mut self.columns).zip(row) {
            let as_is = field.length_max.is_none() && column.push_as_is(value);
            if !as_is && let Err(e) = column.push_fitted(field, value.as_ref()) {
                self.columns.iter_mut().for_each(|c| c.truncate(rows));
                return Err(e);
            }
        }
        Ok(())
    }
}

/// Checks one value against its field.
///
/// # Errors
/// `InvalidInput` naming the field, what it expects and what was found; `ConstraintViolated` for a
/// NULL where none may be.
pub fn check_value(field: &crate::Field, value: ValueRef<'_>) -> Result<()> {
    fit_value(field, value).map(drop)
}

/// Checks one value against its field, and gives it as the field keeps it.
///
/// # Errors
/// As for [`check_value`].
pub fn fit_value<'a>(field: &'a crate::Field, value: ValueRef<'a>) -> Result<ValueRef<'a>> {
    // Most keys are whole numbers, which are as they are kept.
    let is_kept_so = match value {
        ValueRef::Int(_) => field.data_type == DataType::I64,
        ValueRef::Uint(_) => field.data_type == DataType::U64,
        _ => false,
    };
    if is_kept_so {
        return Ok(value);
    }
    if value.is_null() && field.generated.is_some() {
        // It stands for the value that is to be computed.
        return Ok(value);
    }
    if value.is_null() && !field.nullable {
        let message = format!("field {:?} must not be null", field.name);
        return Err(Error::new(ErrorKind::ConstraintViolated, message));
    }
    let len = value.as_bytes().map_or(0, <[u8]>::len); // default: numbers are never too long.
    if len > VALUE_BYTES_MAX {
        let name = &field.name;
        return Err(Error::invalid(format!(
            "field {name:?}: {len} bytes, at most {VALUE_BYTES_MAX}"
        )));
    }
    let fitted = field.coerce(value).and_then(|fitted| field.check_length(fitted).map(|()| fitted));
    fitted.map_err(|e| e.at(format_args!("field {:?}", field.name)))
}
