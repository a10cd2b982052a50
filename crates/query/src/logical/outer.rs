//! Values of the query around a query: what they are called within, and what is put in their place.

use std::sync::Arc;

use esker_format::json::name_step;
use esker_format::{Field, FieldId, Schema, Value};

use super::Context;
use super::names::Names;
use crate::model::{Answer, Expr, Function};
use crate::{Query, Result};

/// Fields of a query that one within it names. Within, they are fields of a relation of their own,
/// which has a row for each combination of their values.
#[derive(Clone, Debug)]
pub(super) struct Outer {
    /// What that is called; and its column with the number of the row.
    pub(super) relation: String,
    /// The fields, by their names in full, and their numbers in the query around.
    pub(super) fields: Vec<(usize, Field)>,
}

impl Outer {
    /// The number of the row of values.
    pub(super) fn number(&self) -> Expr {
        Expr::field(self.number_in(&self.relation))
    }

    /// The name of the column with that number in a table.
    pub(super) fn number_in(&self, table: &str) -> String {
        format!("{table}.{}", self.relation)
    }

    /// The column with that number.
    pub(super) fn number_field(&self) -> Field {
        let (id, name) = (FieldId(1), self.relation.clone());
        Field::new(id, name, esker_format::DataType::I64, false)
    }

    /// The columns of the relation.
    pub(super) fn schema(&self) -> Schema {
        let own = self.fields.iter().map(|(_, field)| field.clone());
        Schema::of_fields(own.chain([self.number_field()]).collect())
    }

    /// The rest of a name of one of its columns.
    fn below<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(self.relation.as_str())?.strip_prefix('.')
    }

    /// The position of the field of a name, and the path into it.
    fn place<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let rest = self.below(name)?;
        let path = |field: &Field| {
            let path = rest.strip_prefix(field.name.as_str())?;
            (path.is_empty() || path.starts_with('.')).then_some(path)
        };
        let mut fields = self.fields.iter().enumerate();
        fields.find_map(|(at, (_, field))| Some((at, path(field)?)))
    }

    /// Whether a query names any of it.
    pub(super) fn is_in(&self, query: &Query) -> bool {
        let mut is_in = false;
        query.each_field(&mut |name| is_in |= self.below(name).is_some());
        is_in
    }

    /// Whether an expression does.
    pub(super) fn is_in_expr(&self, expr: &Expr) -> bool {
        let mut is_in = false;
        expr.each_field(&mut |name| is_in |= self.below(name).is_some());
        is_in
    }

    /// The fields of the relation that a query names behind its groups.
    pub(super) fn named_in(&self, query: &Query) -> Vec<Expr> {
        let mut named = vec![false; self.fields.len()];
        let mut note = |name: &str| {
            if let Some(slot) = self.place(name).and_then(|(at, _)| named.get_mut(at)) {
                *slot = true;
            }
        };
        let keys = query.order_by.iter().map(|key| &key.expr);
        let items = query.select.iter().map(|item| &item.expr);
        let behind = query.having.iter().chain(&query.qualify);
        items.chain(behind).chain(keys).for_each(|expr| expr.each_field(&mut note));
        let fields = self.fields.iter().zip(named).filter(|(_, is_named)| *is_named);
        fields.map(|((_, field), _)| self.field(field)).collect()
    }

    /// One of its columns.
    fn field(&self, field: &Field) -> Expr {
        Expr::Field(format!("{}.{}", self.relation, field.name))
    }

    /// The same query with values that are not known yet: it can be looked at.
    pub(super) fn looked_at(&self, query: &Query) -> Query {
        self.replaced(query, &|at, path| self.fields.get(at).map(|(_, field)| unknown(field, path)))
    }

    /// The same query with the values of a row.
    pub(super) fn with_values(&self, query: &Query, values: &[Value]) -> Query {
        self.replaced(query, &|at, path| {
            let ((_, field), value) = (self.fields.get(at)?, values.get(at)?);
            let (data_type, labels) = (field.data_type, field.labels.clone());
            let answer = Answer::new(vec![value.clone()], data_type, labels);
            Some(with_path(Expr::Answer(Arc::new(answer)), path))
        })
    }

    fn replaced(&self, query: &Query, by: &dyn Fn(usize, &str) -> Option<Expr>) -> Query {
        let mut query = query.clone();
        query.each_field_mut(&mut |expr| {
            let Expr::Field(name) = expr else { return };
            if let Some(new) = self.place(name).and_then(|(at, path)| by(at, path)) {
                *expr = new;
            }
        });
        query
    }
}

impl Context<'_, '_> {
    /// Makes a query name the fields of the one around it as those of a relation, which is
    /// returned: without fields where it names none.
    pub(super) fn outer_of(&self, query: &mut Query, names: &Names) -> Result<Outer> {
        let number = self.outer_count.get() + 1;
        self.outer_count.set(number);
        let mut outer = Outer { relation: format!("outer {number}"), fields: Vec::new() };
        let mut full = names.clone();
        full.make_full();
        self.replace_outer(query, &full, &mut |names, name| {
            let Some((number, full)) = names.in_full(name)? else { return Ok(None) };
            let Some(field) = names.field(number) else { return Ok(None) };
            if !outer.fields.iter().any(|(known, _)| *known == number) {
                outer.fields.push((number, field));
            }
            Ok(Some(Expr::Field(format!("{}.{full}", outer.relation))))
        })?;
        Ok(outer)
    }
}

/// A value that is not known yet.
pub(super) fn unknown(field: &Field, path: &str) -> Expr {
    let (data_type, labels) = (field.data_type, field.labels.clone());
    let answer = Answer::unanswered(field.name.clone(), data_type, labels);
    with_path(Expr::Answer(Arc::new(answer)), path)
}

/// The text at the end of a path into a document.
fn with_path(document: Expr, path: &str) -> Expr {
    let Some(path) = path.strip_prefix('.') else { return document };
    let steps = path.split('.').map(|step| Expr::literal(name_step(step).into_owned()));
    Expr::Call(Function::JsonText, std::iter::once(document).chain(steps).collect())
}
