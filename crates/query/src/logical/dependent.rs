//! Subqueries that name fields of the query around them, on their way to become columns of it.
//!
//! Each is replaced by a field that its rows get: see `column`. What only some rows ask, in a CASE
//! or COALESCE, is answered for these alone.

use std::collections::BTreeSet;

use super::Context;
use super::condition;
use super::names::Names;
use super::outer::Outer;
use crate::bind::named;
use crate::model::{Expr, Function, Join, JoinKind, Operator, SubqueryForm};
use crate::{Error, Query, Result};

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Dependent {
    /// What the column is called that it becomes.
    pub(super) column: String,
    pub(super) form: SubqueryForm,
    /// What its values are compared with.
    pub(super) operand: Option<Expr>,
    /// As it was written.
    pub(super) written: Query,
    /// With names of `outer` for those of the query around.
    pub(super) query: Query,
    pub(super) outer: Outer,
    /// Which rows ask it; `None` for all.
    guard: Option<Expr>,
    /// All of it, as it was written.
    whole: Expr,
    /// Whether it stands beside groups, outside of their aggregates.
    is_of_group: bool,
}

/// Those of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Dependents {
    pub(super) all: Vec<Dependent>,
    /// How many of the first are answered before rows pass `filter`; the others are asked by rows
    /// that have.
    pub(super) of_filter: usize,
    /// Conditions on rows that have these columns.
    pub(super) filter: Vec<Expr>,
}

/// Where a subquery stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    guard: Option<Expr>,
    /// Whether what is shown, or has to hold, is of groups.
    is_of_group: bool,
}

impl Dependent {
    /// Which rows ask it.
    pub(super) fn guard(&self) -> Option<&Expr> {
        self.guard.as_ref()
    }
}

impl Dependents {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Makes them name fields of the query around in full, and notes the fields that are needed.
    pub(super) fn qualify(
        &mut self,
        names: &Names,
        query: &mut Query,
        needed: &mut BTreeSet<usize>,
    ) -> Result<()> {
        for condition in &mut self.filter {
            names.qualify(condition, None, needed).map_err(|e| e.at("WHERE"))?;
        }
        for one in &mut self.all {
            needed.extend(one.outer.fields.iter().map(|(number, _)| *number));
            for expr in one.operand.iter_mut().chain(&mut one.guard) {
                names.qualify(expr, None, needed)?;
            }
            if one.is_of_group {
                one.make_key(names, query)?;
            }
        }
        Ok(())
    }
}

impl Dependent {
    /// Makes one beside groups a key of these, as all that it reads is.
    ///
    /// # Errors
    /// `InvalidQuery` for one that reads a field which has no one value in a group.
    fn make_key(&self, names: &Names, query: &mut Query) -> Result<()> {
        let key = |key: &Expr| match key {
            Expr::Item(place) => query.item("GROUP BY", *place).ok().map(|item| item.expr.clone()),
            Expr::Field(name) => {
                let item = named(name, &query.select).ok().flatten();
                let item = item.and_then(|at| query.select.get(at)).map(|item| item.expr.clone());
                let is_field = matches!(names.find(name, None), Ok(Some(_)));
                if is_field { Some(key.clone()) } else { item.or_else(|| Some(key.clone())) }
            }
            key => Some(key.clone()),
        };
        let keys: Vec<Expr> = query.group_by.iter().filter_map(key).collect();
        let mut is_key = false;
        keys.iter().for_each(|key| key.each_field(&mut |name| is_key |= name == self.column));
        if is_key {
            return Ok(());
        }
        for (number, full) in &self.outer.fields {
            let field = names.field(*number).map(|field| Expr::Field(field.name));
            if !field.is_some_and(|field| keys.contains(&field)) {
                return Err(Error::invalid(format!(
                    "a subquery beside groups reads {}, which is not in GROUP BY: {}",
                    full.name, self.whole
                )));
            }
        }
        if !query.grouping_sets.is_empty() {
            return Err(Error::invalid(format!(
                "beside grouping sets, a subquery that reads their keys has no place: {}; ask it \
                 of (SELECT … GROUP BY …) instead",
                self.whole
            )));
        }
        query.group_by.push(Expr::field(&self.column));
        Ok(())
    }
}

impl Place {
    /// Beside groups, where a query has such.
    pub(super) fn of_groups_of(query: &Query) -> Self {
        Self { guard: None, is_of_group: query.is_grouped() }
    }

    /// The same where only rows of which a condition holds ask.
    fn only_where(&self, condition: &Expr) -> Self {
        if condition.has_aggregate() {
            return self.clone();
        }
        let guard = match &self.guard {
            Some(guard) => guard.clone().and(condition.clone()),
            None => condition.clone(),
        };
        Self { guard: Some(guard), ..self.clone() }
    }
}

impl Context<'_, '_> {
    /// Puts fields in the places of subqueries that name fields of the query around, and what is
    /// answered in those of others. Without `dependents` there is no place for the former.
    pub(super) fn replace_in(
        &self,
        expr: &mut Expr,
        names: &Names,
        place: &Place,
        dependents: &mut Option<&mut Dependents>,
    ) -> Result<()> {
        if !expr.has_subquery() {
            return Ok(());
        }
        match expr {
            Expr::Apply(Operator::Case, parts) => {
                let (mut before, last) = (place.clone(), parts.len() - parts.len() % 2);
                for at in (0..last).step_by(2) {
                    let Some([when, then]) = parts.get_mut(at..at + 2) else { continue };
                    self.replace_in(when, names, &before, dependents)?;
                    let holds = Expr::call(Function::Coalesce, [when.clone(), false_value()]);
                    self.replace_in(then, names, &before.only_where(&holds), dependents)?;
                    before = before.only_where(&holds.negated());
                }
                let otherwise = parts.get_mut(last);
                otherwise.map_or(Ok(()), |e| self.replace_in(e, names, &before, dependents))
            }
            Expr::Call(Function::Coalesce, parts) => {
                let mut before = place.clone();
                for part in parts {
                    self.replace_in(part, names, &before, dependents)?;
                    let is_null = Expr::Apply(Operator::IsNull, vec![part.clone()]);
                    before = before.only_where(&is_null);
                }
                Ok(())
            }
            Expr::Aggregate { .. } => {
                let within = Place { is_of_group: false, ..place.clone() };
                let mut operands = expr.operands_mut().into_iter();
                operands.try_for_each(|o| self.replace_in(o, names, &within, dependents))
            }
            _ => {
                let mut operands = expr.operands_mut().into_iter();
                operands.try_for_each(|o| self.replace_in(o, names, place, dependents))?;
                self.replace_one(expr, names, place, dependents)
            }
        }
    }

    fn replace_one(
        &self,
        expr: &mut Expr,
        names: &Names,
        place: &Place,
        dependents: &mut Option<&mut Dependents>,
    ) -> Result<()> {
        let Expr::Subquery { form, operand, query } = &*expr else { return Ok(()) };
        let mut within = (**query).clone();
        let outer = self.outer_of(&mut within, names)?;
        if outer.fields.is_empty() {
            return self.replace_known(expr);
        }
        let Some(dependents) = dependents else {
            let fields: Vec<&str> = outer.fields.iter().map(|(_, f)| f.name.as_str()).collect();
            return Err(Error::invalid(format!(
                "a subquery here names no field of the query around it, but for this one ({}): \
                 {query}",
                fields.join(", ")
            )));
        };
        let is_same = |known: &&mut Dependent| known.whole == *expr && known.guard == place.guard;
        if let Some(known) = dependents.all.iter_mut().find(is_same) {
            known.is_of_group |= place.is_of_group;
            *expr = Expr::field(&known.column);
            return Ok(());
        }
        let column = outer.relation.replace("outer", "subquery");
        let new = Dependent {
            column: column.clone(),
            form: *form,
            operand: operand.as_deref().cloned(),
            written: (**query).clone(),
            query: within,
            outer,
            guard: place.guard.clone(),
            whole: expr.clone(),
            is_of_group: place.is_of_group,
        };
        dependents.all.push(new);
        *expr = Expr::Field(column);
        Ok(())
    }

    /// Whether an expression asks a subquery that names fields of the query around.
    pub(super) fn is_dependent(&self, expr: &Expr, names: &Names) -> Result<bool> {
        if let Expr::Subquery { query, .. } = expr
            && self.outer_name(query, names)?.is_some()
        {
            return Ok(true);
        }
        for operand in expr.operands() {
            if self.is_dependent(operand, names)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the conditions of inner joins that ask such subqueries out, to be tested on the rows
    /// that all joins have made.
    pub(super) fn take_dependent_on(&self, joins: &mut [Join], names: &Names) -> Result<Vec<Expr>> {
        let mut taken = Vec::new();
        let inner = joins.iter_mut().enumerate().filter(|(_, join)| join.kind == JoinKind::Inner);
        for (i, join) in inner {
            let Some(on) = join.on.take_if(|on| on.has_subquery()) else { continue };
            let (mut all, mut kept) = (Vec::new(), Vec::new());
            condition::flatten(on, &mut all);
            for condition in all {
                if !self.is_dependent(&condition, names)? {
                    kept.push(condition);
                    continue;
                }
                let mut alone = Query { filter: Some(condition.clone()), ..Query::default() };
                let read = self.outer_of(&mut alone, names).map_err(|e| e.at("ON"))?;
                let members = read.fields.iter().map(|(number, _)| names.member_of(*number));
                if let Some(later) = members.max().filter(|last| *last > i + 1) {
                    let later = names.name_of(later);
                    let message = format!("ON: {condition}: {later:?} is joined later");
                    return Err(Error::invalid(message));
                }
                taken.push(condition);
            }
            // Without a condition it is a join of all rows.
            join.on = condition::all(kept).or(Some(Expr::literal(true)));
        }
        Ok(taken)
    }
}

fn false_value() -> Expr {
    Expr::literal(false)
}
