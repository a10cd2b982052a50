//! How much is read of what a query reads, as far as its text tells.

use crate::Query;
use crate::model::{Expr, Join};

/// What is wanted of the members of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// No more rows than these of a query that reads its own rows, where it is alone.
    pub(super) most: Option<u64>,
    /// All names that occur, in lower case; `None` where every field is shown.
    mentioned: Option<Vec<String>>,
}

impl Reading {
    /// Of a query whose members are joined so.
    pub(super) fn of(query: &Query, joins: &[Join], most: Option<u64>) -> Self {
        let shows_all = |item: &crate::model::SelectItem| matches!(item.expr, Expr::AllFields(_));
        let is_any = query.select.is_empty() || query.select.iter().any(shows_all);
        let mut mentioned = Vec::new();
        mention(query, &mut mentioned);
        let mentioned = (!is_any).then_some(mentioned);
        Self { most, ..Self { most, mentioned }.beside(joins) }
    }

    /// The same where conditions of joins read fields, too.
    pub(super) fn beside(&self, joins: &[Join]) -> Self {
        let is_natural = joins.iter().any(|join| join.natural);
        let mentioned = self.mentioned.clone().filter(|_| !is_natural).map(|mut mentioned| {
            for join in joins {
                mentioned.extend(join.using.iter().map(|name| name.to_ascii_lowercase()));
                let mut note = |name: &str| mentioned.push(name.to_ascii_lowercase());
                join.on.iter().for_each(|on| on.each_field(&mut note));
                join.relation.each_field(&mut note);
            }
            mentioned
        });
        Self { most: None, mentioned }
    }

    /// Whether a field may be read.
    pub(super) fn reads(&self, field: &str) -> bool {
        let field = field.to_ascii_lowercase();
        let names = self.mentioned.as_ref();
        names.is_none_or(|names| names.iter().any(|name| name.contains(&field)))
    }
}

/// The names of a query, and of those within it, which may name fields of what is around.
fn mention(query: &Query, into: &mut Vec<String>) {
    query.each_field(&mut |name| into.push(name.to_ascii_lowercase()));
}
