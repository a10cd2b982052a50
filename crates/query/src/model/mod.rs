//! The query model: what every protocol and binding builds.
//!
//! One table, a filter, groups, an order, a range of rows. See [`Query`].

mod aggregate;
mod change;
mod display;
mod expression;
mod function;
mod operator;
mod row_count;
mod serial;

use serde::{Deserialize, Serialize};

pub use aggregate::Aggregate;
pub use change::{Change, ConflictUpdate, Delete, Insert, InsertRows, OnConflict, Update};
pub use expression::{EXPR_DEPTH_MAX, Expr, Parameter};
pub use function::{FUNCTIONS, Family, Function, FunctionEntry, OperandKind, Outcome};
pub use operator::{Entry, Form, OPERATORS, Operator, Typing};
pub use row_count::RowCount;

/// One output column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectItem {
    /// What it shows.
    pub expr: Expr,
    /// Its name; without one, the text of the expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// One key of the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderBy {
    /// What is compared: an expression, or the alias of a select item.
    pub expr: Expr,
    /// Greatest first.
    #[serde(default)]
    pub descending: bool,
    /// Where NULLs go; `None`: NULL is less than every value.
    #[serde(default)]
    pub nulls_first: Option<bool>,
}

/// A query over one table.
///
/// ```
/// use esker_query::model::{Expr, Operator, Query};
///
/// let mut query = Query::table("flights");
/// query.select(Expr::field("carrier")).select(Expr::count());
/// query.filter = Some(Expr::field("month").binary(Operator::Eq, Expr::literal(1i64)));
/// query.group_by = vec![Expr::field("carrier")];
/// assert_eq!(
///     query.to_string(),
///     "SELECT carrier, count(*) FROM flights WHERE month = 1 GROUP BY carrier"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Query {
    /// The table's name; empty for one row without fields.
    pub table: String,
    /// The output columns; empty for every field.
    pub select: Vec<SelectItem>,
    /// Whether equal output rows count once.
    pub distinct: bool,
    /// Which rows are looked at.
    pub filter: Option<Expr>,
    /// What the rows of a group have in common.
    pub group_by: Vec<Expr>,
    /// Which groups are shown.
    pub having: Option<Expr>,
    /// The order of the output; without it, the order in which rows or groups are met.
    pub order_by: Vec<OrderBy>,
    /// The most rows to give.
    pub limit: Option<RowCount>,
    /// How many rows to leave out first.
    pub offset: RowCount,
}

impl Query {
    /// Every field of every row of a table.
    #[must_use]
    pub fn table(name: impl Into<String>) -> Self {
        Self { table: name.into(), ..Self::default() }
    }

    /// One row without fields.
    #[must_use]
    pub fn one_row() -> Self {
        Self::default()
    }

    /// Adds an output column.
    pub fn select(&mut self, expr: Expr) -> &mut Self {
        self.select.push(SelectItem { expr, alias: None });
        self
    }

    /// Adds an output column with a name.
    pub fn select_as(&mut self, expr: Expr, alias: impl Into<String>) -> &mut Self {
        self.select.push(SelectItem { expr, alias: Some(alias.into()) });
        self
    }

    /// Every expression in it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let items = self.select.iter().map(|item| &item.expr);
        let keys = self.order_by.iter().map(|key| &key.expr);
        items.chain(&self.filter).chain(&self.group_by).chain(&self.having).chain(keys)
    }

    /// True when it takes values of sequences.
    #[must_use]
    pub fn takes_values(&self) -> bool {
        self.exprs().any(|expr| expr.calls(Function::Nextval))
    }

    /// True when the answer has one row per group rather than one per row.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        !self.group_by.is_empty()
            || self.having.is_some()
            || self.select.iter().any(|item| item.expr.has_aggregate())
            || self.order_by.iter().any(|key| key.expr.has_aggregate())
    }
}

impl SelectItem {
    /// The name of the output column.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.alias, &self.expr) {
            (Some(alias), _) => alias.clone(),
            (None, Expr::Field(name)) => name.clone(),
            (None, expr) => expr.to_string(),
        }
    }
}
