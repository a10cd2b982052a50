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
//!
//! A field may be computed from rows of other tables, too, which are looked up: see
//! `read/looked_up.rs`. Then it is computed once, when its row comes, and again
//! when something of the row changes that it reads, or where that is asked for.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::schema::{Alteration, Generated};
use esker_format::{Batch, Column, DataType, Field, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::model::{Expr, Lookup};
use esker_query::{FailedRow, FindRows, GeneratedValue, Limits};

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
pub(crate) struct GeneratedFields {
    fields: Vec<GeneratedField>,
    /// The tables in which rows are looked up.
    tables: Vec<String>,
}

struct GeneratedField {
    position: usize,
    name: String,
    nullable: bool,
    value: GeneratedValue,
    /// Whether rows of other tables are looked up for it.
    looks_up: bool,
}

/// A row before a change, as far as what is computed of it depends on it.
pub(crate) struct RowBefore {
    /// `None` where nothing is looked up for the row: all is computed anew.
    row: Option<Vec<Value>>,
    /// The positions of fields that are to be computed anew.
    asked: Vec<usize>,
}

impl RowBefore {
    /// A row of which everything is computed anew.
    pub const NONE: Self = Self { row: None, asked: Vec::new() };

    /// The same where some fields are set, though perhaps to what they were.
    pub fn asking(self, fields: Vec<usize>) -> Self {
        Self { asked: fields, ..self }
    }
}

impl GeneratedFields {
    /// Resolves what computes the fields.
    ///
    /// # Errors
    /// `InvalidInput` when an expression does not fit the schema.
    pub fn of(schema: &Schema) -> Result<Self> {
        let (mut fields, mut tables) = (Vec::new(), Vec::new());
        for (position, field) in schema.fields().iter().enumerate() {
            let Some(generated) = &field.generated else { continue };
            let value = GeneratedValue::new(field, &expression(generated)?, schema)
                .map_err(|e| Error::from(e).at(format_args!("field {:?}", field.name)))?;
            let (name, nullable) = (field.name.clone(), field.nullable);
            let before = tables.len();
            tables.extend(value.lookups().map(|(lookup, _)| lookup.table.clone()));
            let looks_up = tables.len() > before;
            fields.push(GeneratedField { position, name, nullable, value, looks_up });
        }
        tables.sort();
        tables.dedup();
        Ok(Self { fields, tables })
    }

    /// The tables in which rows are looked up.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// What the fields look up, with the types of the values by which rows are found.
    pub fn lookups(&self) -> impl Iterator<Item = (&str, &Lookup, Vec<Option<DataType>>)> {
        self.fields.iter().flat_map(|field| {
            field.value.lookups().map(|(lookup, types)| (field.name.as_str(), lookup, types))
        })
    }

    /// Looks up again what is looked up for a batch; true where something is another.
    pub fn look_up_again(
        &self,
        batch: &mut Batch,
        others: &dyn FindRows,
        limits: &Limits,
    ) -> Result<bool> {
        let mut is_other = false;
        for field in self.fields.iter().filter(|field| field.looks_up) {
            let read = ReadRows { columns: &batch.columns, count: batch.len(), first: 0 };
            let made = field.computed(&read, others, limits)?;
            let Some(column) = batch.columns.get_mut(field.position) else { continue };
            let mut rows = 0..made.len();
            is_other |= rows.any(|row| !column.value(row).is_identical(made.value(row)));
            *column = made;
        }
        Ok(is_other)
    }

    /// Leaves out what is looked up for a row, so that it is looked up again.
    pub fn forget(&self, row: &mut [Value]) {
        for field in self.fields.iter().filter(|field| field.looks_up) {
            row.get_mut(field.position).into_iter().for_each(|value| *value = Value::Null);
        }
    }

    /// The same of a batch.
    fn forget_columns(&self, batch: &mut Batch) {
        let rows = batch.len();
        for field in self.fields.iter().filter(|field| field.looks_up) {
            let Some(column) = batch.columns.get_mut(field.position) else { continue };
            let mut empty = Column::empty(column.data_type);
            (0..rows).for_each(|_| empty.push_null());
            *column = empty;
        }
    }

    /// Computes the fields of rows that are given whole, and fit the schema.
    fn complete(
        &self,
        rows: &mut [Cow<'_, [Value]>],
        others: &dyn FindRows,
        limits: &Limits,
    ) -> Result<()> {
        let columns = self.columns_of(rows)?;
        let read = ReadRows { columns: &columns, count: rows.len(), first: 0 };
        for field in &self.fields {
            let made = field.computed(&read, others, limits)?;
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
    fn recompute(
        &self,
        row: &mut [Value],
        before: &RowBefore,
        others: &dyn FindRows,
        limits: &Limits,
    ) -> Result<()> {
        let columns = self.columns_of(&[&*row])?;
        let read = ReadRows { columns: &columns, count: 1, first: 0 };
        for field in &self.fields {
            if let Some(kept) = field.kept(row, before) {
                row.get_mut(field.position).into_iter().for_each(|slot| *slot = kept.clone());
                continue;
            }
            let made = field.computed(&read, others, limits)?;
            if let Some(slot) = row.get_mut(field.position) {
                *slot = made.value(0).to_owned();
            }
        }
        Ok(())
    }

    /// Computes the fields of a batch, of which all other columns fit the schema. The first row has
    /// a number.
    pub fn complete_batch(
        &self,
        (batch, first): (&mut Batch, u64),
        others: &dyn FindRows,
        limits: &Limits,
    ) -> Result<()> {
        for field in &self.fields {
            let read = ReadRows { columns: &batch.columns, count: batch.len(), first };
            let made = field.computed(&read, others, limits)?;
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
        let read = || self.fields.iter().flat_map(|field| field.value.reads());
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
    fn computed(
        &self,
        read: &ReadRows<'_>,
        others: &dyn FindRows,
        limits: &Limits,
    ) -> Result<Column> {
        let ReadRows { columns, count, .. } = *read;
        let made = self.value.of((columns, count), others, limits);
        let made = made.map_err(|FailedRow { row, error }| {
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

    /// What stays of the row before: nothing that it is computed from has changed.
    fn kept<'b>(&self, row: &[Value], before: &'b RowBefore) -> Option<&'b Value> {
        let old = before.row.as_ref().filter(|_| self.looks_up)?;
        let is_same = |position: usize| match (old.get(position), row.get(position)) {
            (Some(old), Some(new)) => old.as_ref().is_identical(new.as_ref()),
            _ => false,
        };
        let is_asked = |position: usize| before.asked.contains(&position);
        let mut reads = self.value.reads().iter().map(|(position, _)| *position);
        let stays = !is_asked(self.position)
            && reads.all(|position| !is_asked(position) && is_same(position));
        old.get(self.position).filter(|_| stays)
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

pub(super) fn of_schema(schema: &Schema) -> impl Iterator<Item = (&Field, &Arc<Generated>)> {
    schema.fields().iter().filter_map(|field| Some((field, field.generated.as_ref()?)))
}

pub(super) fn set_expression(
    field: &Field,
    generated: &Generated,
    expr: &Expr,
) -> Result<Alteration> {
    let generated = Generated { expression: GeneratedValue::encode(expr)?, ..generated.clone() };
    Ok(Alteration::SetGenerated { field: field.name.clone(), generated: Some(generated) })
}

impl Engine {
    /// What has to be known of a row before it is changed.
    #[inline]
    pub fn before_change(&self, current: &TableVersion, row: &[Value]) -> Result<RowBefore> {
        if !current.schema.has_generated() {
            return Ok(RowBefore::NONE);
        }
        let looks_up = self.looks_up(current)?;
        Ok(RowBefore { row: looks_up.then(|| row.to_vec()), asked: Vec::new() })
    }

    /// Leaves out of a whole row what is looked up for it.
    pub fn forget_looked_up(&self, current: &TableVersion, row: &mut [Value]) -> Result<()> {
        if self.looks_up(current)? {
            self.checks(current)?.iter().for_each(|all| all.generated().forget(row));
        }
        Ok(())
    }

    /// The same of a batch.
    pub fn forget_columns(&self, current: &TableVersion, batch: &mut Batch) -> Result<()> {
        if self.looks_up(current)? {
            self.checks(current)?.iter().for_each(|all| all.generated().forget_columns(batch));
        }
        Ok(())
    }

    /// Whether rows of other tables are looked up for those of a table.
    #[inline]
    pub fn looks_up(&self, current: &TableVersion) -> Result<bool> {
        if !current.schema.has_generated() {
            return Ok(false);
        }
        Ok(self.checks(current)?.is_some_and(|checks| !checks.generated().tables().is_empty()))
    }

    /// Computes what is generated of rows that are given whole and fit, with rows of other tables
    /// found by `others`.
    pub fn complete_by(
        &self,
        current: &TableVersion,
        rows: &mut [Cow<'_, [Value]>],
        others: &dyn FindRows,
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
            Some(checks) => checks.generated().complete(rows, others, limits),
            None => Ok(()),
        }
    }

    /// Computes what is generated of a row that was made of another one.
    #[inline]
    pub fn recompute_by(
        &self,
        current: &TableVersion,
        (row, before): (&mut [Value], &RowBefore),
        others: &dyn FindRows,
        limits: Option<&Limits>,
    ) -> Result<()> {
        if !current.schema.has_generated() || Bug::GeneratedValueNotRecomputedOnUpdate.is_planted()
        {
            return Ok(());
        }
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        match limits {
            Some(limits) => checks.generated().recompute(row, before, others, limits),
            None => checks.generated().recompute(row, before, others, &self.limits()),
        }
    }

    /// A row that is given whole, as it is stored.
    pub fn complete_row_by<'r>(
        &self,
        current: &TableVersion,
        row: &'r [Value],
        others: &dyn FindRows,
    ) -> Result<Cow<'r, [Value]>> {
        let mut row = [fit_row(&current.schema, row)?];
        if current.schema.has_generated() || current.schema.stream().is_some() {
            self.complete_by(current, &mut row, others, &self.limits())?;
        }
        let [row] = row;
        Ok(row)
    }
}
