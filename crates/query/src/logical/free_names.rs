//! Names in a query that mean fields of the queries around it.
//!
//! A name is looked for from inside out: among the tables of the query that has it, then of the one
//! around that, and so on. What stands in FROM sees only what is around the query, but for LATERAL,
//! which sees the tables before it as well.

use super::Context;
use super::names::Names;
use crate::model::{Expr, Relation, WindowFunction};
use crate::{Error, Query, Result};

/// What is put in the place of a name that the fields of a query around mean; `None` to leave it.
type Replace<'r> = &'r mut dyn FnMut(&Names, &str) -> Result<Option<Expr>>;

/// The queries around the one at hand.
struct Around<'r> {
    /// Their names, those of the outermost first.
    scopes: Vec<Names>,
    /// The first so many are those whose fields are replaced.
    base: usize,
    replace: Replace<'r>,
}

impl Around<'_> {
    /// What stands in the place of a name, where it is that of a field of the first queries.
    fn replaced(&mut self, name: &str) -> Result<Option<Expr>> {
        let Self { scopes, base, replace } = self;
        for (level, names) in scopes.iter().enumerate().rev() {
            match names.find(name, None) {
                Ok(None) => {}
                Ok(Some(_)) if level < *base => return replace(names, name),
                Err(error) if level < *base => return Err(error),
                // What may mean several fields is reported when that query is resolved.
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Whether all names in an aggregate are fields of the first queries.
    fn has_all_of(&self, aggregate: &Expr) -> bool {
        let mut names = Vec::new();
        aggregate.collect_names(&mut names);
        let is_outer = |name: &&str| {
            let knows = |scope: &Names| !matches!(scope.find(name, None), Ok(None));
            let level = self.scopes.iter().rposition(knows);
            level.is_some_and(|level| level < self.base)
        };
        !names.is_empty() && names.iter().all(is_outer)
    }
}

impl Context<'_, '_> {
    /// Replaces the names in a query that mean fields of the one around it.
    pub(super) fn replace_outer(
        &self,
        query: &mut Query,
        outer: &Names,
        replace: Replace<'_>,
    ) -> Result<()> {
        let mut may_name = false;
        query.each_field(&mut |name| may_name |= !matches!(outer.find(name, None), Ok(None)));
        if !may_name {
            return Ok(());
        }
        self.in_query(query, &mut Around { scopes: vec![outer.clone()], base: 1, replace })
    }

    /// A name in a query that only the query around it knows.
    pub(super) fn outer_name(&self, query: &Query, outer: &Names) -> Result<Option<String>> {
        let mut first = None;
        self.replace_outer(&mut query.clone(), outer, &mut |_, name| {
            first.get_or_insert_with(|| name.to_owned());
            Ok(None)
        })?;
        Ok(first)
    }

    fn in_query(&self, query: &mut Query, around: &mut Around<'_>) -> Result<()> {
        self.nested(|| {
            let mut known = Query::default();
            for with in &mut query.with {
                let mut closed = with.clone();
                if !with.recursive {
                    self.beside(&known, || {
                        self.close(&mut closed.query, &around.scopes)?;
                        self.in_query(&mut with.query, around)
                    })?;
                }
                known.with.push(closed);
            }
            self.beside(&known, || self.in_body(query, around))
        })
    }

    fn in_body(&self, query: &mut Query, around: &mut Around<'_>) -> Result<()> {
        if let Some(set) = &mut query.set {
            return set.queries_mut().try_for_each(|query| self.in_query(query, around));
        }
        let own = self.own_names(query, &around.scopes)?;
        self.in_from(query, &own, around)?;
        let is_alias = |alias: &String| matches!(own.find(alias, None), Ok(None));
        let aliases = query.select.iter().filter_map(|item| item.alias.clone());
        let aliases: Vec<String> = aliases.filter(is_alias).collect();
        around.scopes.push(own);
        let done = self.in_exprs(query, &aliases, around);
        around.scopes.pop();
        done
    }

    /// What a query reads in place of tables.
    fn in_from(&self, query: &mut Query, own: &Names, around: &mut Around<'_>) -> Result<()> {
        let mut before = Query { with: Vec::new(), joins: Vec::new(), ..query.clone() };
        query.derived.iter_mut().try_for_each(|derived| self.in_query(derived, around))?;
        for join in &mut query.joins {
            let whole = join.clone();
            let lateral = join.relation.lateral;
            let beside = lateral.then(|| self.own_names(&before, &around.scopes)).transpose()?;
            self.in_relation(&mut join.relation, beside.as_ref(), own, around)?;
            before.joins.push(whole);
        }
        Ok(())
    }

    /// One relation; `beside` has the names before it, where it sees them.
    fn in_relation(
        &self,
        relation: &mut Relation,
        beside: Option<&Names>,
        own: &Names,
        around: &mut Around<'_>,
    ) -> Result<()> {
        if let Some(query) = &mut relation.query {
            around.scopes.extend(beside.cloned());
            let done = self.in_query(query, around);
            around.scopes.truncate(around.scopes.len() - usize::from(beside.is_some()));
            done?;
        }
        for join in &mut relation.joins {
            let beside = join.relation.lateral.then_some(own);
            self.in_relation(&mut join.relation, beside, own, around)?;
            if let Some(on) = &mut join.on {
                around.scopes.push(own.clone());
                let done = self.in_expr(on, &[], around);
                around.scopes.pop();
                done?;
            }
        }
        Ok(())
    }

    fn in_exprs(
        &self,
        query: &mut Query,
        aliases: &[String],
        around: &mut Around<'_>,
    ) -> Result<()> {
        let items = query.select.iter_mut().map(|item| &mut item.expr);
        let on = query.joins.iter_mut().filter_map(|join| join.on.as_mut());
        let written = query.values.iter_mut().flatten();
        let operands = query.call.iter_mut().flat_map(|call| &mut call.operands);
        for expr in items.chain(&mut query.filter).chain(on).chain(written).chain(operands) {
            self.in_expr(expr, &[], around)?;
        }
        // Names of select items are known behind the groups only.
        let keys = query.order_by.iter_mut().map(|key| &mut key.expr);
        let behind = query.group_by.iter_mut().chain(&mut query.having).chain(keys);
        for expr in behind.chain(&mut query.qualify).chain(&mut query.distinct_on) {
            self.in_expr(expr, aliases, around)?;
        }
        Ok(())
    }

    fn in_expr(&self, expr: &mut Expr, aliases: &[String], around: &mut Around<'_>) -> Result<()> {
        match expr {
            Expr::Field(name) => {
                if aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name)) {
                    return Ok(());
                }
                if let Some(new) = around.replaced(name)? {
                    *expr = new;
                }
                Ok(())
            }
            // As the standard has it, it is one of the groups of the query around.
            Expr::Aggregate { .. } if around.has_all_of(expr) => Err(Error::invalid(format!(
                "{expr}: an aggregate of fields of a query around is of the groups of that query; \
                 select it there, under a name, and ask that"
            ))),
            Expr::Window(call) if call.function == WindowFunction::Aggregate => {
                let keys = call.over.order_by.iter_mut().map(|key| &mut key.expr);
                let beside = call.over.partition_by.iter_mut().chain(keys);
                let own = call.operands.iter_mut().flat_map(Expr::operands_mut);
                own.chain(beside).try_for_each(|o| self.in_expr(o, aliases, around))
            }
            Expr::Subquery { operand, query, .. } => {
                operand.iter_mut().try_for_each(|o| self.in_expr(o, aliases, around))?;
                self.in_query(query, around)
            }
            _ => {
                let operands = expr.operands_mut();
                operands.into_iter().try_for_each(|o| self.in_expr(o, aliases, around))
            }
        }
    }

    /// The names of the tables of a query that stands within others.
    fn own_names(&self, query: &Query, scopes: &[Names]) -> Result<Names> {
        let mut bare = Query { with: Vec::new(), ..query.clone() };
        match self.look_names(&bare) {
            // A query in FROM may name what is around.
            Err(_) if !scopes.is_empty() => {}
            found => return found,
        }
        let none = Names::new(Vec::new())?;
        let (base, mut typed) = (scopes.len(), |names: &Names, name: &str| names.typed(name));
        let scopes = scopes.to_vec();
        self.in_from(&mut bare, &none, &mut Around { scopes, base, replace: &mut typed })?;
        self.look_names(&bare)
    }

    /// Puts values of which the types are known in the place of all names that queries around
    /// know: what is left can be looked at.
    fn close(&self, query: &mut Query, scopes: &[Names]) -> Result<()> {
        let (base, mut typed) = (scopes.len(), |names: &Names, name: &str| names.typed(name));
        let scopes = scopes.to_vec();
        self.in_query(query, &mut Around { scopes, base, replace: &mut typed })
    }
}
