//! Whether what a query shows depends on the order of the rows that it reads.
//!
//! ```text
//! SELECT count(*) …                                    no: one row, of exact aggregates
//! SELECT k, sum(n) … GROUP BY k ORDER BY k LIMIT 3     no: no two groups come in the same place
//! SELECT a … ORDER BY b                                no, but for rows that are equal in b
//! SELECT a … ORDER BY b LIMIT 3                        yes: which of them are shown
//! SELECT a …; SELECT first(a) …; SELECT sum(float) …   yes
//! ```
//!
//! What does not depend on it saves putting joined rows in the order that is written. The rows of
//! an answer are the same, and those that `ORDER BY` tells apart come in its order.

use esker_format::{DataType, Schema, Value};

use crate::bind::bind_row;
use crate::bind::scope::named;
use crate::model::{Aggregate, Expr};
use crate::{Inputs, Query};

/// What the names of a query mean.
#[derive(Clone, Copy)]
pub(super) struct RowsRead<'r> {
    pub(super) schema: &'r Schema,
    pub(super) inputs: &'r Inputs,
}

impl RowsRead<'_> {
    /// True where the rest of a query, whose names are full, shows the same rows in whatever order
    /// it reads them; `shows_any`: they need not come in the order in which they are read.
    pub(super) fn in_any_order(self, query: &Query, shows_any: bool) -> bool {
        let is_grouped = query.is_grouped();
        if !query.distinct_on.is_empty() || !query.exprs().all(|expr| self.is_same(expr)) {
            return false;
        }
        if !is_grouped {
            let is_shown = shows_any || !query.order_by.is_empty();
            return is_shown && !query.distinct && !query.is_cut();
        }
        // The keys do not tell groups of several sets apart.
        if query.is_cut() && !query.grouping_sets.is_empty() {
            return false;
        }
        let keys = || query.group_by.iter().map(|key| self.group_key(key, query));
        if !keys().all(|key| key.is_some_and(|key| self.is_exact(key))) {
            return false;
        }
        let is_ordered = |key: Option<&Expr>| {
            let mut order = query.order_by.iter().map(|by| resolved(&by.expr, query));
            key.is_some() && order.any(|by| by == key)
        };
        !query.is_cut() || keys().all(is_ordered)
    }

    /// What a key of the groups stands for: a field before a select item.
    fn group_key<'q>(self, key: &'q Expr, query: &'q Query) -> Option<&'q Expr> {
        match key {
            Expr::Field(_) if bind_row(key, self.schema, self.inputs).is_ok() => Some(key),
            _ => resolved(key, query),
        }
    }

    /// Whether an expression has the same value for a group in whatever order its rows come.
    fn is_same(self, expr: &Expr) -> bool {
        match expr {
            Expr::Field(_)
            | Expr::Item(_)
            | Expr::Literal(_)
            | Expr::Parameter(_)
            | Expr::Answer(_) => true,
            Expr::Apply(_, operands) | Expr::Call(_, operands) => {
                !expr.varies() && operands.iter().all(|operand| self.is_same(operand))
            }
            Expr::Cast(operand, _) => self.is_same(operand),
            Expr::Aggregate { function, operand, order, .. } => {
                order.is_empty() && self.is_same_aggregate(*function, operand.as_deref())
            }
            _ => false,
        }
    }

    fn is_same_aggregate(self, function: Aggregate, operand: Option<&Expr>) -> bool {
        use Aggregate as A;
        let Some(operand) = operand else { return function == A::Count };
        if operand.varies() {
            return false;
        }
        match function {
            A::Count
            | A::CountIf
            | A::BoolAnd
            | A::BoolOr
            | A::BitAnd
            | A::BitOr
            | A::BitXor
            | A::ApproxCountDistinct => true,
            A::Sum
            | A::Avg
            | A::Min
            | A::Max
            | A::Quantile { .. }
            | A::PercentileDisc { .. }
            | A::Mode => self.is_exact(operand),
            _ => false,
        }
    }

    /// Whether equal values are the same, and adding them up is exact.
    fn is_exact(self, expr: &Expr) -> bool {
        let Ok(bound) = bind_row(expr, self.schema, self.inputs) else { return false };
        !bound.is_random()
            && !matches!(bound.data_type(), DataType::Json)
            && !bound.data_type().is_float()
    }
}

/// What a key of the order stands for; `None` where that is not known.
fn resolved<'q>(key: &'q Expr, query: &'q Query) -> Option<&'q Expr> {
    match key {
        Expr::Item(place) => query.item("GROUP BY", *place).ok().map(|item| &item.expr),
        // A number is the place of a select item.
        Expr::Literal(Value::Int(_)) => None,
        Expr::Field(name) => match named(name, &query.select) {
            Ok(Some(at)) => query.select.get(at).map(|item| &item.expr),
            Ok(None) => Some(key),
            Err(_) => None,
        },
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Operator, OrderBy};

    fn field(name: &str) -> Expr {
        Expr::field(name)
    }

    fn select(items: &[Expr]) -> Query {
        let mut query = Query::table("t");
        items.iter().for_each(|item| {
            query.select(item.clone());
        });
        query
    }

    fn ordered(query: Query, by: &[&str]) -> Query {
        let key = |name: &&str| OrderBy { expr: field(name), descending: false, nulls_first: None };
        Query { order_by: by.iter().map(key).collect(), ..query }
    }

    fn grouped(query: Query, by: &[&str]) -> Query {
        Query { group_by: by.iter().map(|name| field(name)).collect(), ..query }
    }

    fn cut(query: Query) -> Query {
        Query { limit: Some(3u64.into()), ..query }
    }

    #[test]
    fn what_depends_on_the_order_of_rows_is_known() {
        let schema = Schema::builder()
            .field("k", DataType::I64)
            .field("t", DataType::Text)
            .field("x", DataType::F64)
            .build()
            .unwrap_or_else(|e| panic!("{e}"));
        let inputs = Inputs::default();
        let of = |function, name: &str| Expr::aggregate(function, field(name));
        let keyed = || grouped(select(&[field("k"), field("t"), Expr::count()]), &["k", "t"]);
        let free = [
            select(&[Expr::count(), of(Aggregate::Sum, "k"), of(Aggregate::Max, "t")]),
            cut(select(&[of(Aggregate::Count, "x").binary(Operator::Add, Expr::literal(1i64))])),
            keyed(),
            ordered(keyed(), &["t"]),
            cut(ordered(keyed(), &["t", "k"])),
            ordered(select(&[field("x"), field("t")]), &["k"]),
        ];
        let read = RowsRead { schema: &schema, inputs: &inputs };
        for query in free {
            assert!(read.in_any_order(&query, false), "{query}");
        }
        // Within a query that takes rows in any order.
        assert!(read.in_any_order(&select(&[field("k")]), true));
        assert!(!read.in_any_order(&cut(select(&[field("k")])), true));
        let by_time = [OrderBy { expr: field("k"), descending: false, nulls_first: None }];
        let bound = [
            select(&[field("k")]),
            cut(ordered(select(&[field("k")]), &["k"])),
            Query { distinct: true, ..ordered(select(&[field("k")]), &["k"]) },
            Query { distinct_on: vec![field("k")], ..ordered(select(&[field("t")]), &["k"]) },
            select(&[of(Aggregate::Sum, "x")]),
            select(&[of(Aggregate::Max, "x")]),
            select(&[of(Aggregate::First, "k")]),
            select(&[of(Aggregate::StringAgg, "t")]),
            select(&[of(Aggregate::Last, "t").in_order(by_time)]),
            cut(keyed()),
            cut(ordered(keyed(), &["t"])),
            grouped(select(&[field("x"), Expr::count()]), &["x"]),
        ];
        for query in bound {
            assert!(!read.in_any_order(&query, false), "{query}");
        }
    }
}
