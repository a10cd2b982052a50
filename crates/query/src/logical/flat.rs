//! Queries in place of tables that show fields of the rows of one table, as they are: the table is
//! read in their place, with its indexes, and its rows are not written out first.
//!
//! ```text
//! (SELECT b, a AS x FROM t WHERE c > 1) AS q     t, of which field 1 is q.b and field 0 is q.x,
//!                                                and rows have to pass c > 1
//! ```

use std::collections::BTreeSet;

use esker_format::{Field, Schema};

use super::Context;
use super::condition::{self, Condition};
use super::names::Names;
use super::names::called;
use crate::access_path::cardinality;
use crate::model::{Expr, SelectItem};
use crate::options::JoinOrder;
use crate::source::SourceRef;
use crate::source::renamed::Renamed;
use crate::{ExplainedInput, Query};

/// Fields of a table that a query does not show, but may test, have numbers from here on.
const UNSHOWN: usize = usize::MAX / 2;

/// A table that is read in place of a query.
pub(super) struct FlatQuery<'a> {
    /// The table; its fields have the names that the query gives them.
    pub(super) source: SourceRef<'a>,
    /// The columns of the query.
    pub(super) schema: Schema,
    pub(super) rows: FlatRows,
    pub(super) input: ExplainedInput,
}

/// Which fields and rows of a table a query shows.
#[derive(Clone, Debug)]
pub(super) struct FlatRows {
    /// The position of each column in the table.
    pub(super) positions: Vec<usize>,
    /// What rows have to pass, over the fields of the table by their positions.
    pub(super) filter: Vec<Condition>,
}

impl FlatRows {
    /// The positions of fields by their numbers, of which the columns of the query have those from
    /// `first` on.
    pub(super) fn places(&self, first: usize, fields: usize) -> Vec<(usize, usize)> {
        (0..fields).map(|position| (self.number(first, position), position)).collect()
    }

    /// The conditions on fields by their numbers.
    pub(super) fn conditions(&self, first: usize) -> Vec<Condition> {
        let number = |position: usize| self.number(first, position);
        let numbered = |condition: &Condition| {
            let mut condition = condition.clone();
            condition.bound.map_fields(&number);
            condition.fields = condition.fields.iter().map(|field| number(*field)).collect();
            condition
        };
        self.filter.iter().map(numbered).collect()
    }

    fn number(&self, first: usize, position: usize) -> usize {
        let column = self.positions.iter().position(|shown| *shown == position);
        column.map_or(UNSHOWN + position, |column| first + column)
    }
}

impl<'a> Context<'a, '_> {
    /// A query, called `name`, as the table that it reads; `columns` are further names of its first
    /// columns, the last ones counting. `None` where it does more than filter and name, or is not
    /// right: what it says then is found where it runs.
    pub(super) fn flat(
        &self,
        query: &Query,
        name: &str,
        columns: &[&[String]],
    ) -> Option<FlatQuery<'a>> {
        let rewrites = self.options.join_order != JoinOrder::AsWritten;
        if !rewrites || !is_simple(query) || self.named(&query.table).is_some() {
            return None;
        }
        let (table, own_schema) = self.table(&query.table).ok()?;
        let (own_name, own_schema) = (query.first_relation()?.name().to_owned(), &own_schema);
        let own = Names::new(vec![(own_name, own_schema.clone(), true)]).ok()?;
        let (mut positions, mut fields) = (Vec::new(), Vec::new());
        for SelectItem { mut expr, alias } in own.expanded(&query.select).ok()? {
            own.qualify(&mut expr, None, &mut BTreeSet::new()).ok()?;
            let Expr::Field(field) = &expr else { return None };
            let (position, path) = own.place_of(field).ok()??;
            if !path.is_empty() || positions.contains(&position) {
                return None;
            }
            // default: without an alias a column is called as its field
            let name = alias.unwrap_or_else(|| field.clone());
            fields.push(Field { name, ..own_schema.fields().get(position)?.clone() });
            positions.push(position);
        }
        let mut schema = Schema::of_fields(fields);
        for names in columns.iter().filter(|names| !names.is_empty()) {
            schema = called(schema, names, name).ok()?;
        }
        let source_schema = own_schema.with_field_names(names(own_schema, &positions, &schema)?);
        let filter = self.flat_filter(query, &own, &source_schema)?;
        let what = match query.table.eq_ignore_ascii_case(name) {
            true => name.to_owned(),
            false => format!("{} AS {name}", query.table),
        };
        let rows_estimated = cardinality::estimated_rows(table.get());
        let source = Renamed::new(source_schema, table);
        let source = SourceRef::Shared(std::sync::Arc::new(source) as std::sync::Arc<_>);
        let rows = FlatRows { positions, filter };
        let input = ExplainedInput { rows_estimated, ..ExplainedInput::table(&what) };
        Some(FlatQuery { source, schema, rows, input })
    }

    /// The conditions of a query, on fields by the names that `schema` gives them.
    fn flat_filter(&self, query: &Query, own: &Names, schema: &Schema) -> Option<Vec<Condition>> {
        let mut all = Vec::new();
        if let Some(mut filter) = query.filter.clone() {
            own.qualify(&mut filter, None, &mut BTreeSet::new()).ok()?;
            rename(&mut filter, own, schema)?;
            condition::flatten(filter, &mut all);
        }
        let names = Names::new(vec![(String::new(), schema.clone(), true)]).ok()?;
        let inputs = &self.options.inputs;
        let bind = |expr| {
            let condition = Condition::new("WHERE", expr, schema, &names, inputs).ok()?;
            (!condition.is_fallible).then_some(condition)
        };
        all.into_iter().map(bind).collect()
    }
}

/// Whether a query may show rows of one table as they are.
fn is_simple(query: &Query) -> bool {
    let is_field = |item: &SelectItem| matches!(item.expr, Expr::Field(_) | Expr::AllFields(_));
    !query.table.is_empty()
        && query.with.is_empty()
        && query.derived.is_none()
        && query.columns.is_empty()
        && query.joins.is_empty()
        && !query.distinct
        && query.distinct_on.is_empty()
        && !query.is_grouped()
        && query.order_by.is_empty()
        && !query.is_cut()
        && query.select.iter().all(is_field)
        && !query.filter.as_ref().is_some_and(Expr::has_subquery)
}

/// What the fields of a table are called: those that are shown as their columns, the others by
/// names that no column has.
fn names(own: &Schema, positions: &[usize], shown: &Schema) -> Option<Vec<String>> {
    let mut names: Vec<Option<String>> = vec![None; own.fields().len()];
    let is_taken = |name: &str, names: &[Option<String>]| {
        let mut names = names.iter().flatten().chain(shown.fields().iter().map(|f| &f.name));
        names.any(|known| known.eq_ignore_ascii_case(name))
    };
    for (position, field) in positions.iter().zip(shown.fields()) {
        if names.iter().flatten().any(|known| known.eq_ignore_ascii_case(&field.name)) {
            return None;
        }
        *names.get_mut(*position)? = Some(field.name.clone());
    }
    for (at, field) in own.fields().iter().enumerate() {
        if names.get(at)?.is_none() {
            let mut name = format!("{} (not shown)", field.name);
            while is_taken(&name, &names) {
                name.push('\'');
            }
            *names.get_mut(at)? = Some(name);
        }
    }
    names.into_iter().collect()
}

/// Makes an expression name fields as `schema` does, in which they have the same positions.
fn rename(expr: &mut Expr, own: &Names, schema: &Schema) -> Option<()> {
    if let Expr::Field(name) = expr {
        let (position, path) = own.place_of(name).ok()??;
        let renamed = format!("{}{path}", schema.fields().get(position)?.name);
        *name = renamed;
        return Some(());
    }
    expr.operands_mut().into_iter().try_for_each(|operand| rename(operand, own, schema))
}
