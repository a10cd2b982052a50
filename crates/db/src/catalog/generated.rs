//! Fields whose values are computed from the others of their row, whenever the row is written.
//!
//! ```text
//!  a row that is given whole ─► fit_row ─► complete ──┐
//!  a row that is made of another one ────► recompute ─┼─► checks ─► staged, or kept
//!  a batch of a load or an appender ─────► complete ──┘
//! ```
//!
//! Who gives a row whole leaves out what is generated: NULL stands in its place, or the very value
//! that comes of the others, as in what was read before. Another value is refused, since it would
//! be lost. No generated field reads another one, so that their order does not matter.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::schema::{Alteration, Generated};
use esker_format::{Batch, Column, DataType, Field, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::model::Expr;
use esker_query::{FailedRow, GeneratedValue, Limits};

use crate::bulk_load::batch_check::check_keys;
use crate::catalog::checks::{exact, name_exactly, reads};
use crate::commit::fit::fit_row;
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// An expression as what computes the values of a field, which are stored.
///
/// ```
/// use esker::{DataType, Options, Schema, Value};
/// use esker_query::model::{Expr, Operator};
///
/// let total = Expr::field("price").binary(Operator::Multiply, Expr::field("count"));
/// let schema = Schema::builder()
///     .field("price", DataType::I64)
///     .field("count", DataType::I64)
///     .field("total", DataType::I64)
///     .generated(esker::generated(&total)?)
///     .build()?;
/// let db = Options::new().memory()?;
/// let table = db.create_table("t", schema)?;
/// table.insert(&[5i64.into(), 3i64.into(), Value::Null])?;
/// let row = table.iter()?.next().expect("inserted above")?;
/// assert_eq!(row.get("total"), Some(&15i64.into()));
/// let e = table.insert(&[5i64.into(), 3i64.into(), 16i64.into()]).unwrap_err();
/// assert_eq!(
///     e.to_string(),
///     "field \"total\" is generated: expected nothing, or what comes of the row, 15, found 16"
/// );
/// # Ok::<(), esker::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` when a number in the expression is not finite.
pub fn generated(expr: &Expr) -> Result<Generated> {
    Ok(Generated { expression: GeneratedValue::encode(expr)?, is_virtual: false })
}

/// The expression that computes the values of a field.
///
/// # Errors
/// `Corrupt` when it cannot be read.
pub(crate) fn expression(generated: &Generated) -> Result<Expr> {
    Ok(GeneratedValue::decode(&generated.expression)?)
}

/// The generated fields of one version of a schema.
#[derive(Default)]
pub(crate) struct GeneratedFields(Vec<GeneratedField>);

struct GeneratedField {
    position: usize,
    name: String,
    nullable: bool,
    value: GeneratedValue,
}

impl GeneratedFields {
    /// Resolves what computes the fields.
    ///
    /// # Errors
    /// `InvalidInput` when an expression does not fit the schema.
    pub fn of(schema: &Schema) -> Result<Self> {
        let mut all = Vec::new();
        for (position, field) in schema.fields().iter().enumerate() {
            let Some(generated) = &field.generated else { continue };
            let value = GeneratedValue::new(field, &expression(generated)?, schema)
                .map_err(|e| Error::from(e).at(format_args!("field {:?}", field.name)))?;
            let (name, nullable) = (field.name.clone(), field.nullable);
            all.push(GeneratedField { position, name, nullable, value });
        }
        Ok(Self(all))
    }

    /// Computes the fields of rows that are given whole, and fit the schema.
    fn complete(&self, rows: &mut [Cow<'_, [Value]>], limits: &Limits) -> Result<()> {
        let columns = self.columns_of(rows)?;
        let read = ReadRows { columns: &columns, count: rows.len(), first: 0 };
        for field in &self.0 {
            let made = field.computed(&read, limits)?;
            for (i, row) in rows.iter_mut().enumerate() {
                let value = made.value(i);
                // default: a row that fits has a value for each field
                let given = row.get(field.position).map_or(ValueRef::Null, Value::as_ref);
                if given.is_identical(value) {
                    continue;
                }
                field.expect_left_out(given, value).map_err(|e| read.in_row(e, i))?;
                if let Some(slot) = row.to_mut().get_mut(field.position) {
                    *slot = value.to_owned();
                }
            }
        }
        Ok(())
    }

    /// Computes the fields of a row that was made of another one.
    fn recompute(&self, row: &mut [Value], limits: &Limits) -> Result<()> {
        let columns = self.columns_of(&[&*row])?;
        let read = ReadRows { columns: &columns, count: 1, first: 0 };
        for field in &self.0 {
            let made = field.computed(&read, limits)?;
            if let Some(slot) = row.get_mut(field.position) {
                *slot = made.value(0).to_owned();
            }
        }
        Ok(())
    }

    /// Computes the fields of a batch, of which all other columns fit the schema. The first row has
    /// a number.
    fn complete_batch(&self, batch: &mut Batch, first: u64, limits: &Limits) -> Result<()> {
        for field in &self.0 {
            let read = ReadRows { columns: &batch.columns, count: batch.len(), first };
            let made = field.computed(&read, limits)?;
            let Some(given) = batch.columns.get(field.position) else { continue };
            // Mostly nothing is given at all.
            for row in (0..read.count).filter(|row| !given.is_null(*row)) {
                let left_out = field.expect_left_out(given.value(row), made.value(row));
                left_out.map_err(|e| read.in_row(e, row))?;
            }
            if let Some(column) = batch.columns.get_mut(field.position) {
                *column = made;
            }
        }
        Ok(())
    }

    /// The columns of rows that the fields read; the others are empty.
    fn columns_of(&self, rows: &[impl AsRef<[Value]>]) -> Result<Vec<Column>> {
        let read = || self.0.iter().flat_map(|field| field.value.reads());
        // default: what reads nothing needs no column
        let count = read().map(|(position, _)| position + 1).max().unwrap_or_default();
        let mut columns = vec![Column::empty(DataType::Bool); count];
        for &(position, data_type) in read() {
            let Some(slot) = columns.get_mut(position).filter(|column| column.is_empty()) else {
                continue;
            };
            let mut column = Column::empty(data_type);
            for row in rows {
                // default: a row that fits has a value for each field
                let value = row.as_ref().get(position).map_or(ValueRef::Null, Value::as_ref);
                column.push(value)?;
            }
            *slot = column;
        }
        Ok(columns)
    }
}

/// Rows whose fields are computed.
struct ReadRows<'a> {
    /// The columns of the schema, those that nothing reads empty perhaps.
    columns: &'a [Column],
    count: usize,
    /// The number of the first.
    first: u64,
}

impl ReadRows<'_> {
    /// The error of a row, which is named where there are several.
    fn in_row(&self, e: Error, row: usize) -> Error {
        let is_one = self.first == 0 && self.count == 1;
        if is_one { e } else { e.in_row(self.first + row as u64) }
    }
}

impl GeneratedField {
    /// The values of some rows.
    fn computed(&self, read: &ReadRows<'_>, limits: &Limits) -> Result<Column> {
        let ReadRows { columns, count, .. } = *read;
        let made = self.value.of(columns, count, limits).map_err(|FailedRow { row, error }| {
            let (named, error) = (format!("field {:?}", self.name), Error::from(error));
            let is_named = error.to_string().starts_with(&named);
            read.in_row(if is_named { error } else { error.at(named) }, row)
        })?;
        let null = made.nulls.as_ref().filter(|_| !self.nullable);
        if let Some(row) = null.and_then(|nulls| nulls.iter().position(|mark| *mark != 0)) {
            let message = format!("field {:?} must not be null", self.name);
            return Err(read.in_row(Error::violated(message), row));
        }
        Ok(made)
    }

    fn expect_left_out(&self, given: ValueRef<'_>, value: ValueRef<'_>) -> Result<()> {
        if given.is_null() || given.is_identical(value) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "field {:?} is generated: expected nothing, or what comes of the row, {value}, found \
             {given}",
            self.name
        )))
    }
}

/// The same with the names in what computes its fields as the fields have them.
pub(crate) fn with_exact_names(schema: &Schema) -> Result<Vec<Alteration>> {
    let mut steps = Vec::new();
    for (field, generated) in of_schema(schema) {
        let mut expr = expression(generated)?;
        name_exactly(schema, &mut expr)
            .map_err(|e| e.at(format_args!("field {:?}", field.name)))?;
        steps.push(set_expression(field, generated, &expr)?);
    }
    Ok(steps)
}

/// What a change of a schema does to what computes its fields.
///
/// # Errors
/// `InvalidInput` when one reads what is to go or to become another; when the field of which the
/// expression is changed has none.
pub(crate) fn follow(schema: &Schema, alteration: &Alteration) -> Result<Vec<Alteration>> {
    if let Alteration::SetGenerated { field, .. } = alteration {
        let position = schema.resolve(field)?;
        let is_generated = |field: &Field| field.generated.is_some();
        if !schema.fields().get(position).is_some_and(is_generated) {
            return Err(Error::invalid(format!("field {field:?} is not generated")));
        }
    }
    let mut steps = Vec::new();
    for (field, generated) in of_schema(schema) {
        let mut expr = expression(generated)?;
        let name = &field.name;
        match alteration {
            Alteration::DropField(read) if reads(schema, &expr, read)? => {
                let message =
                    format!("field {name:?} is computed from field {read:?}: drop it before");
                return Err(Error::invalid(message));
            }
            Alteration::Widen { field: read, .. } if reads(schema, &expr, read)? => {
                let message = format!(
                    "field {name:?} is computed from field {read:?}, whose type stays while it is"
                );
                return Err(Error::invalid(message));
            }
            Alteration::RenameField { from, to } if reads(schema, &expr, from)? => {
                expr.rename_field(exact(schema, from)?, to);
                steps.push(set_expression(field, generated, &expr)?);
            }
            _ => {}
        }
    }
    Ok(steps)
}

fn of_schema(schema: &Schema) -> impl Iterator<Item = (&Field, &Arc<Generated>)> {
    schema.fields().iter().filter_map(|field| Some((field, field.generated.as_ref()?)))
}

fn set_expression(field: &Field, generated: &Generated, expr: &Expr) -> Result<Alteration> {
    let generated = Generated { expression: GeneratedValue::encode(expr)?, ..generated.clone() };
    Ok(Alteration::SetGenerated { field: field.name.clone(), generated: Some(generated) })
}

impl Engine {
    /// A row that is given whole, as it is stored.
    pub fn complete_row<'r>(
        &self,
        current: &TableVersion,
        row: &'r [Value],
    ) -> Result<Cow<'r, [Value]>> {
        let mut row = [fit_row(&current.schema, row)?];
        if current.schema.has_generated() || current.schema.stream().is_some() {
            self.complete_rows(current, &mut row, &self.limits())?;
        }
        let [row] = row;
        Ok(row)
    }

    /// Computes what is generated of rows that are given whole and fit.
    pub fn complete_rows(
        &self,
        current: &TableVersion,
        rows: &mut [Cow<'_, [Value]>],
        limits: &Limits,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.expect_times_of(&current.schema, rows)?;
        if !current.schema.has_generated() {
            return Ok(());
        }
        match self.checks(current)? {
            Some(checks) => checks.generated().complete(rows, limits),
            None => Ok(()),
        }
    }

    /// Computes what is generated of a row that was made of another one.
    #[inline]
    pub fn recompute(
        &self,
        current: &TableVersion,
        row: &mut [Value],
        limits: Option<&Limits>,
    ) -> Result<()> {
        if !current.schema.has_generated() || Bug::GeneratedValueNotRecomputedOnUpdate.is_planted()
        {
            return Ok(());
        }
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        match limits {
            Some(limits) => checks.generated().recompute(row, limits),
            None => checks.generated().recompute(row, &self.limits()),
        }
    }

    /// Computes what is generated of a batch whose other columns fit. The first row has a number.
    pub fn complete_batch(
        &self,
        current: &TableVersion,
        batch: &mut Batch,
        first_row: u64,
    ) -> Result<()> {
        if !current.schema.has_generated() {
            return Ok(());
        }
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        checks.generated().complete_batch(batch, first_row, &self.limits())?;
        check_keys(&current.schema, batch, first_row)
    }
}
