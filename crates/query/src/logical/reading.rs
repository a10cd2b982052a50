//! How much is read of what a query reads, as far as its text tells.

use super::pushdown::Pushdown;
use crate::Query;
use crate::model::{Expr, Join};

/// What is wanted of the members of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// No more rows than these of a query that reads its own rows, where it is alone.
    pub(super) most: Option<u64>,
    /// All names that occur, in lower case; `None` where every field is shown.
    mentioned: Option<Vec<String>>,
    /// What its members may test.
    pub(super) pushdown: Pushdown,
}

impl Reading {
    /// Of a query whose members are joined so.
    pub(super) fn of(query: &Query, joins: &[Join], most: Option<u64>) -> Self {
        let shows_all = |item: &crate::model::SelectItem| matches!(item.expr, Expr::AllFields(_));
        let is_any = query.select.is_empty() || query.select.iter().any(shows_all);
        let mut mentioned = Vec::new();
        mention(query, &mut mentioned);
        let mentioned = (!is_any).then_some(mentioned);
        let none = Pushdown::default();
        let reading = Self { most, mentioned, pushdown: none }.beside(joins);
        Self { most, pushdown: Pushdown::of(query, joins), ..reading }
    }

    /// The same where conditions of joins read fields, too.
    pub(super) fn beside(&self, joins: &[Join]) -> Self {
        let is_natural = joins.iter().any(|join| join.natural);
        let mentioned = self.mentioned.clone().filter(|_| !is_natural).map(|mut mentioned| {
            for join in joins {
                mentioned.extend(join.using.iter().map(|name| name.to_ascii_lowercase()));
                join.on.iter().for_each(|on| mention_in(on, &mut mentioned));
            }
            mentioned
        });
        Self { most: None, mentioned, pushdown: Pushdown::default() }
    }

    /// Whether a field may be read.
    pub(super) fn reads(&self, field: &str) -> bool {
        let field = field.to_ascii_lowercase();
        let names = self.mentioned.as_ref();
        names.is_none_or(|names| names.iter().any(|name| name.contains(&field)))
    }
}

fn mention(query: &Query, into: &mut Vec<String>) {
    query.exprs().for_each(|expr| mention_in(expr, into));
    query.set.iter().flat_map(|set| set.queries()).for_each(|query| mention(query, into));
}

fn mention_in(expr: &Expr, into: &mut Vec<String>) {
    match expr {
        Expr::Field(name) => into.push(name.to_ascii_lowercase()),
        Expr::Subquery { query, .. } => mention(query, into),
        _ => {}
    }
    expr.operands().into_iter().for_each(|operand| mention_in(operand, into));
}
