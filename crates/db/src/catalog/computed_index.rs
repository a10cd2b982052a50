//! Indexes of which something is computed: a part is an expression, or rows are left out for which
//! a condition is not true.
//!
//! ```text
//!  NewIndex, fields by name ─► settle ─► Index, fields by number ─► compiler ─► IndexValues
//!                                                                   unique entries, runs, queries
//! ```
//!
//! What may fail for a row is computed of every row that is written, as a check is tested, and of
//! the rows there are when the index is made. So every visible row has its values.

use std::any::Any;
use std::sync::Arc;

use esker_format::schema::{Alteration, Index, IndexField, IndexId, NewIndex, RowExpression};
use esker_format::{Batch, ColumnSlice, FieldId, Schema};
use esker_query::index_expression::{self, IndexComputation};
use esker_query::model::Expr;
use esker_query::{FailedRow, IndexedRows, Limits};
use esker_table::index_values::{ComputedValues, Failing, IndexValues};

use crate::catalog::kept_rollup::KeptRollup;
use crate::{Error, Result};

/// An expression over the fields of a row, by their names, as a part of a
/// [`NewIndex`](crate::NewIndex).
///
/// ```
/// use esker::{DataType, NewIndex, Options, Schema};
/// use esker_query::model::{Expr, Function};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder().field("email", DataType::Text).build()?;
/// let users = db.create_table("users", schema)?;
/// let lower = esker::index_expression(&Expr::call(Function::Lower, [Expr::field("email")]))?;
/// let by_mail = NewIndex::on(Vec::new()).named("by_mail").expression("lower(email)", lower);
/// db.create_index("users", by_mail.unique())?;
/// users.insert(&["Ada@x".into()])?;
/// let e = users.insert(&["ada@X".into()]).unwrap_err();
/// assert_eq!(
///     e.to_string(),
///     "unique index \"by_mail\": lower(email) = ada@x exists already"
/// );
/// # Ok::<(), esker::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` when a number in the expression is not finite.
pub fn index_expression(expr: &Expr) -> Result<RowExpression> {
    Ok(index_expression::by_names(expr)?)
}

/// What computes the values of one index.
#[derive(Debug)]
pub(crate) struct ComputedIndex {
    index: Index,
    computation: IndexComputation,
}

/// Makes what computes the values of an index; `None` where there is nothing to compute.
pub(crate) fn compiler(
    schema: &Schema,
    index: &Index,
) -> esker_table::Result<Option<Arc<dyn IndexValues>>> {
    if index.is_rollup() {
        return Ok(Some(Arc::new(KeptRollup::of(schema, index)?)));
    }
    if !index.is_computed() {
        return Ok(None);
    }
    let computation = IndexComputation::of(index, schema).map_err(|e| {
        let message = format!("index {:?}: {e}", index.name);
        esker_table::Error::new(esker_table::ErrorKind::Corrupt, message)
    })?;
    Ok(Some(Arc::new(ComputedIndex { index: index.clone(), computation })))
}

impl ComputedIndex {
    /// What computes the values, as the queries have it.
    pub fn of(values: &dyn IndexValues) -> Option<&Self> {
        values.as_any().downcast_ref()
    }

    pub fn computation(&self) -> &IndexComputation {
        &self.computation
    }
}

impl IndexValues for ComputedIndex {
    fn reads(&self) -> &[FieldId] {
        self.computation.reads()
    }

    fn compute(
        &self,
        columns: &[ColumnSlice<'_>],
        rows: usize,
        failing: Failing,
    ) -> esker_table::Result<ComputedValues> {
        let is_strict = failing == Failing::Refused;
        let computed = self.computation.compute(columns, rows, is_strict, &Limits::default());
        let IndexedRows { has, columns } = computed.map_err(|FailedRow { error, .. }| {
            let message = format!("index {:?}: {error}", self.index.name);
            esker_table::Error::new(esker_table::ErrorKind::InvalidInput, message)
        })?;
        Ok(ComputedValues { has, columns })
    }

    fn written(&self, part: usize, schema: &Schema) -> String {
        let expression = self.index.fields.get(part).and_then(|part| part.expression.as_deref());
        // default: a part that is not computed is not asked for
        expression.map_or_else(String::new, |expression| written(expression, schema))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An expression as statements write it; what is wrong with one that cannot be read.
pub(crate) fn written(expression: &RowExpression, schema: &Schema) -> String {
    match index_expression::with_names(expression, schema) {
        Ok(expr) => expr.to_string(),
        Err(e) => e.to_string(),
    }
}

/// The parts of an index as people read them: `city`, `lower(email) desc`, `doc.a`.
#[must_use]
pub fn parts_text(schema: &Schema, index: &Index) -> Vec<String> {
    let fields = schema.index_fields(index);
    let text = |(part, field): (&IndexField, String)| {
        let Some(expression) = &part.expression else { return field };
        let order = if part.descending { " desc" } else { "" };
        format!("{}{order}", written(expression, schema))
    };
    index.fields.iter().zip(fields).map(text).collect()
}

/// What a part of an index computes, in SQL; `None` for a field.
#[must_use]
pub fn expression_text(schema: &Schema, part: &IndexField) -> Option<String> {
    Some(written(part.expression.as_deref()?, schema))
}

/// The condition of an index to be in SQL; `None` for one of all rows.
#[must_use]
pub fn new_filter_text(index: &NewIndex) -> Option<String> {
    // No table has taken it: no schema is asked for names.
    Some(written(index.filter.as_ref()?, &Schema::of_types(&[])))
}

/// The condition of an index in SQL; `None` for one that has all rows.
#[must_use]
pub fn filter_text(schema: &Schema, index: &Index) -> Option<String> {
    Some(written(index.filter.as_deref()?, schema))
}

/// Takes the expressions of new indexes: fields are called by their numbers from then on.
pub(crate) fn settle(schema: &mut Schema) -> Result<()> {
    let is_new = |index: &&Index| index.expressions().any(|expression| !expression.is_settled());
    let new: Vec<Index> = schema.indexes().iter().filter(is_new).cloned().collect();
    for index in new {
        let of = schema.clone();
        let settled = |expression: &RowExpression, is_filter: bool| {
            if expression.is_settled() {
                return Ok(expression.clone());
            }
            let expr = index_expression::with_names(expression, &of)?;
            let settled = match is_filter {
                true => index_expression::settle_condition(&expr, &of),
                false => index_expression::settle(&expr, &of),
            };
            settled.map_err(|e| Error::from(e).at(format_args!("index {:?}", index.name)))
        };
        schema.settle_index(index.id, &settled)?;
    }
    Ok(())
}

/// Refuses a change of a field that an index reads to compute something.
pub(crate) fn refuse_change(schema: &Schema, alteration: &Alteration) -> Result<()> {
    let (field, is_gone) = match alteration {
        Alteration::DropField(field) => (field, true),
        Alteration::Widen { field, .. } => (field, false),
        _ => return Ok(()),
    };
    let position = schema.resolve(field)?;
    let Some(found) = schema.fields().get(position) else { return Ok(()) };
    let id = found.id;
    let keeps_type = match alteration {
        Alteration::Widen { data_type, .. } => *data_type == found.data_type,
        _ => false,
    };
    let reads = |index: &&Index| match index.is_rollup() {
        // Its view refuses that the field goes.
        true => !is_gone && !keeps_type && index.needs(id),
        false => index.expressions().any(|of| of.reads.contains(&id)),
    };
    let Some(index) = schema.indexes().iter().find(reads) else { return Ok(()) };
    let name = &index.name;
    if index.is_rollup() {
        return Err(Error::invalid(format!(
            "materialized view {name:?} reads field {field:?}, whose type stays while it is there"
        )));
    }
    Err(Error::invalid(match is_gone {
        true => format!("index {name:?} is computed from field {field:?}: drop it before"),
        false => format!(
            "index {name:?} is computed from field {field:?}, whose type stays while it is there"
        ),
    }))
}

/// Changes of a table with those that take away, before a field goes, the indexes that read it to
/// compute something.
pub(crate) fn cascading(schema: &Schema, alterations: &[Alteration]) -> Vec<Alteration> {
    let (mut all, mut gone) = (Vec::new(), Vec::new());
    for alteration in alterations {
        if let Alteration::DropField(field) = alteration
            && let Ok(position) = schema.resolve(field)
            && let Some(id) = schema.fields().get(position).map(|field| field.id)
        {
            for index in schema.row_indexes() {
                let reads = index.expressions().any(|of| of.reads.contains(&id));
                if reads && !gone.contains(&index.id) {
                    gone.push(index.id);
                    all.push(Alteration::DropIndex(index.name.clone()));
                }
            }
        }
        all.push(alteration.clone());
    }
    all
}

/// An index that is computed of every row that is written, since it may fail.
pub(crate) struct TestedIndex {
    name: String,
    positions: Vec<usize>,
    computation: IndexComputation,
}

impl TestedIndex {
    /// Those of a schema.
    pub fn all(schema: &Schema) -> Result<Vec<Self>> {
        let is_settled = |index: &&Index| {
            index.is_computed() && index.expressions().all(RowExpression::is_settled)
        };
        let mut all = Vec::new();
        for index in schema.row_indexes().filter(is_settled) {
            let computation = IndexComputation::of(index, schema)
                .map_err(|e| Error::from(e).at(format_args!("index {:?}", index.name)))?;
            if computation.may_fail() {
                let positions = schema.positions_of(computation.reads())?;
                all.push(Self { name: index.name.clone(), positions, computation });
            }
        }
        Ok(all)
    }

    /// Refuses a batch with a row of which a value cannot be computed.
    pub fn test(&self, batch: &Batch, first_row: u64, limits: &Limits) -> Result<()> {
        let column = |position: &usize| batch.columns.get(*position).map(ColumnSlice::from);
        let columns: Vec<_> = self.positions.iter().filter_map(column).collect();
        let computed = self.computation.compute(&columns, batch.len(), true, limits);
        computed.map(drop).map_err(|FailedRow { row, error }| {
            let e = Error::from(error).at(format_args!("index {:?}", self.name));
            let is_one = first_row == 0 && batch.len() == 1;
            if is_one { e } else { e.in_row(first_row + row as u64) }
        })
    }
}

/// The unique index that a conflict is meant by: that of all rows, or the one whose rows a
/// condition has.
pub(crate) fn conflicting(
    schema: &Schema,
    (fields, expressions): (&[FieldId], &[Expr]),
    condition: Option<&Expr>,
) -> Result<Vec<IndexId>> {
    let settled = expressions.iter().map(|expr| index_expression::settle(expr, schema));
    let settled = settled.collect::<esker_query::Result<Vec<_>>>()?;
    let is_it = |part: &IndexField| match &part.expression {
        Some(of) => settled.contains(of),
        None => part.path.is_empty() && fields.contains(&part.field),
    };
    let has_all = |index: &Index| {
        index.fields.len() == fields.len() + settled.len() && index.fields.iter().all(is_it)
    };
    let mut found: Vec<&Index> = schema.unique_indexes().filter(|index| has_all(index)).collect();
    found.sort_by_key(|index| index.filter.is_some());
    let mut meant = Vec::new();
    for index in found {
        let is_meant = match (&index.filter, condition) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(filter), Some(condition)) => {
                index_expression::implies(condition, filter, schema)?
            }
        };
        if is_meant {
            meant.push(index.id);
        }
    }
    Ok(meant)
}
