//! What an index computes of rows: the values of its parts that are no fields, and which rows it
//! has.
//!
//! This crate knows no expressions. The layer above gives each table a compiler that makes, of an
//! index, what computes its values; that depends on the numbers of fields alone, so that it serves
//! for every version of the schema in which the index is.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use esker_format::schema::Index;
use esker_format::{Column, ColumnSlice, DataType, Field, FieldId, Room, Schema, Value, ValueRef};

use crate::segment::Segment;
use crate::{Error, Result};

/// Makes what computes the values of an index; `None` for one of which nothing is computed.
pub type IndexCompiler = fn(&Schema, &Index) -> Result<Option<Arc<dyn IndexValues>>>;

/// For tables that have no index of which anything is computed.
///
/// # Errors
/// `Corrupt` when it has one.
pub fn fields_only(_: &Schema, index: &Index) -> Result<Option<Arc<dyn IndexValues>>> {
    match index.is_computed() {
        false => Ok(None),
        true => Err(Error::corrupt(format!(
            "index {:?}: this table computes no expressions",
            index.name
        ))),
    }
}

/// What becomes of a row of which a value cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// Nothing is computed.
    Refused,
    /// The index leaves the row out, or stores NULL: no reader sees such a row.
    LeftOut,
}

/// What was computed of some rows.
#[derive(Debug, Default)]
pub struct ComputedValues {
    /// Which of the rows the index has; `None` for all.
    pub has: Option<Vec<bool>>,
    /// By part, the values of the rows that it has, NULL of others; `None` for a part that is not
    /// computed.
    pub columns: Vec<Option<Column>>,
}

/// What computes the values of one index.
pub trait IndexValues: fmt::Debug + Send + Sync {
    /// The fields that it reads, in the order in which it takes their columns.
    fn reads(&self) -> &[FieldId];

    /// Computes the values of rows, given the columns that it reads.
    ///
    /// # Errors
    /// `InvalidInput` naming the index when a value cannot be computed; `Corrupt` for columns that
    /// are not those of the fields.
    fn compute(
        &self,
        columns: &[ColumnSlice<'_>],
        rows: usize,
        failing: Failing,
    ) -> Result<ComputedValues>;

    /// What computes the partial aggregates of a rollup; `None` for an index that finds rows.
    fn partials(&self) -> Option<&dyn Partials> {
        None
    }

    /// A part as statements write it, with the names that fields have.
    fn written(&self, part: usize, schema: &Schema) -> String;

    /// What it is, for the layer above.
    fn as_any(&self) -> &dyn Any;
}

/// What computes the partial aggregates of one rollup.
pub trait Partials {
    /// The fields that it reads, in the order in which it takes their columns.
    fn reads(&self) -> &[FieldId];

    /// The types of the columns that it makes.
    fn types(&self) -> &[DataType];

    /// The one of them that has how many rows a group has: of type `u32`, as counts are.
    fn rows(&self) -> usize;

    /// Computes the groups of rows, given the columns that it reads; `None` where there are more
    /// than `groups_max`, or a key cannot be computed of some row.
    ///
    /// # Errors
    /// `Corrupt` when a column cannot be read.
    fn compute(
        &self,
        columns: &[ColumnSlice<'_>],
        rows: usize,
        groups_max: usize,
    ) -> Result<Option<Vec<Column>>>;
}

impl dyn Partials + '_ {
    /// The columns as a run stores them.
    pub(crate) fn columns(&self) -> Vec<Field> {
        // default: there are fewer columns, as a rollup has few keys and operands
        let id = |number: usize| FieldId(u16::try_from(number + 1).unwrap_or(u16::MAX));
        let field = |(number, data_type): (usize, &DataType)| {
            Field::new(id(number), String::new(), *data_type, true)
        };
        self.types().iter().enumerate().map(field).collect()
    }
}

impl ComputedValues {
    /// Whether the index has a row.
    #[must_use]
    pub fn has(&self, row: usize) -> bool {
        // default: an index without a filter has all
        self.has.as_ref().is_none_or(|has| has.get(row) == Some(&true))
    }
}

/// The fields that values are computed of, as a schema has them.
fn fields<'s>(values: &dyn IndexValues, schema: &'s Schema) -> Result<Vec<&'s Field>> {
    let field = |id: &FieldId| {
        let missing = || Error::corrupt(format!("an index reads field number {}, not there", id.0));
        schema.field_of(*id).ok_or_else(missing)
    };
    values.reads().iter().map(field).collect()
}

/// Computes the values of one row, which `value` gives by field.
pub(crate) fn of_row<'s, 'v>(
    values: &dyn IndexValues,
    schema: &'s Schema,
    value: impl Fn(&'s Field) -> Result<ValueRef<'v>>,
    failing: Failing,
) -> Result<ComputedValues> {
    let mut columns = Vec::new();
    for field in fields(values, schema)? {
        let mut column = Column::empty(field.data_type);
        column.push(value(field)?)?;
        columns.push(column);
    }
    let slices: Vec<_> = columns.iter().map(ColumnSlice::from).collect();
    values.compute(&slices, 1, failing)
}

/// Computes the values of a row that is given whole.
///
/// # Errors
/// As [`IndexValues::compute`].
pub fn of_values(
    values: &dyn IndexValues,
    schema: &Schema,
    row: &[Value],
) -> Result<ComputedValues> {
    let value = |field: &Field| {
        let position = schema.fields().iter().position(|known| known.id == field.id);
        let value = position.and_then(|at| row.get(at));
        // default: a row that fits has a value for each field
        Ok(value.map_or(ValueRef::Null, Value::as_ref))
    };
    of_row(values, schema, value, Failing::Refused)
}

/// The value of a part in a row of a segment.
pub(crate) fn in_segment(
    values: &dyn IndexValues,
    schema: &Schema,
    (segment, row): (&Segment, usize),
    part: usize,
) -> Result<Value> {
    let room = Room::default();
    let value = |field| segment.value(field, row, &room);
    let computed = of_row(values, schema, value, Failing::LeftOut)?;
    let column = computed.columns.get(part).and_then(Option::as_ref);
    // default: a part that is not computed has no value of its own
    Ok(column.map_or(Value::Null, |column| column.value(0).to_owned()))
}

/// The values that rows have in an index, by column: those that lie in fields, and those that are
/// computed.
pub struct KeyColumns<'a> {
    index: &'a Index,
    computed: ComputedValues,
    /// By part, the column of its field.
    fields: Vec<Option<ColumnSlice<'a>>>,
}

impl<'a> KeyColumns<'a> {
    /// Of rows whose columns `column` gives by field.
    ///
    /// # Errors
    /// What `column` says, and as [`IndexValues::compute`].
    pub fn new(
        index: &'a Index,
        values: Option<&dyn IndexValues>,
        schema: &'a Schema,
        rows: usize,
        column: &dyn Fn(&'a Field) -> Result<ColumnSlice<'a>>,
        failing: Failing,
    ) -> Result<Self> {
        let computed = match values {
            Some(values) => {
                let read = fields(values, schema)?.into_iter().map(column);
                values.compute(&read.collect::<Result<Vec<_>>>()?, rows, failing)?
            }
            None => ComputedValues::default(),
        };
        let mut fields = Vec::new();
        for part in &index.fields {
            let field = schema.field_of(part.field);
            fields.push(field.map(column).transpose()?);
        }
        Ok(Self { index, computed, fields })
    }

    /// The values of some rows of a segment.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn of_segment(
        index: &'a Index,
        values: Option<&dyn IndexValues>,
        schema: &'a Schema,
        (segment, rows, room): (&'a Segment, Range<usize>, &'a Room),
    ) -> Result<Self> {
        let column = |field: &'a Field| segment.column(field, rows.clone(), room);
        Self::new(index, values, schema, rows.len(), &column, Failing::LeftOut)
    }

    /// The values of a row; `None` when one is NULL, or the index has not the row.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<Vec<ValueRef<'_>>> {
        if !self.computed.has(row) {
            return None;
        }
        let mut key = Vec::with_capacity(self.fields.len());
        for (number, (part, field)) in self.index.fields.iter().zip(&self.fields).enumerate() {
            let value = match (field, self.computed.columns.get(number)) {
                (_, Some(Some(computed))) => computed.value(row),
                (Some(field), _) => part.compared(field.value(row)),
                (None, _) => ValueRef::Null,
            };
            if value.is_null() {
                return None;
            }
            key.push(value);
        }
        Some(key)
    }
}

/// The type of a part of an index.
pub(crate) fn type_of(index: &Index, part: usize, schema: &Schema) -> Option<DataType> {
    let part = index.fields.get(part)?;
    match &part.expression {
        Some(expression) => Some(expression.data_type),
        None => schema.field_of(part.field).map(|field| field.data_type),
    }
}
