//! The query model: what every protocol and binding builds.
//!
//! Tables and how they are joined, a filter, groups, an order, a range of rows. See [`Query`].

mod aggregate;
mod change;
mod collation;
pub(crate) mod date_unit;
mod display;
mod expression;
mod function;
mod grouping;
mod join;
mod lookup;
mod merge;
mod name;
mod operator;
mod row;
mod row_count;
mod serial;
mod set;
mod table_function;
mod table_names;
mod walk;
mod window;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

pub use aggregate::Aggregate;
pub use change::{
    Change, ConflictUpdate, Delete, Insert, InsertRows, OnConflict, Overriding, Update,
};
pub use collation::Collation;
pub use expression::{Answer, EXPR_DEPTH_MAX, Expr, Parameter};
pub(crate) use function::is_path;
pub use function::{FUNCTIONS, Family, Function, FunctionEntry, Makes, OperandKind, Outcome};
pub(crate) use grouping::Groups;
pub use grouping::{GROUPING_SETS_MAX, GroupingElement};
pub use join::{Join, JoinKind, Relation, SubqueryForm};
pub use lookup::Lookup;
pub use merge::{Merge, MergeAction, MergeClause, MergeWhen};
pub use name::name_text;
pub use operator::{Entry, Form, OPERATORS, Operator, Typing};
pub use row_count::RowCount;
pub use set::{SetBranch, SetOperation, SetOperator, With};
pub use table_function::{TableCall, TableFunction};
pub use table_names::{NewName, Searched};
pub use window::{
    Frame, FrameBound, FrameExclusion, FrameOffset, FrameUnits, Window, WindowCall, WindowFunction,
};

/// How many queries may lie in each other: each is taken apart on the stack.
pub const QUERY_DEPTH_MAX: usize = 32;

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
    /// What is compared: an expression, or a select item by its alias or its place.
    pub expr: Expr,
    /// Greatest first.
    #[serde(default)]
    pub descending: bool,
    /// Where NULLs go; `None`: as [`crate::Semantics`] have it, by default as if NULL were less
    /// than every value.
    #[serde(default)]
    pub nulls_first: Option<bool>,
}

/// A query over a table, several that are joined, or answers of other queries.
///
/// Where it reads more than one, a field goes by its name where no other table has it, else as
/// `table.field`, with the table's alias where it has one.
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
    /// Queries that it names, each of which may read those before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<With>,
    /// The table's name; empty for one row without fields, and where `derived`, `set`, `values` or
    /// `call` is.
    pub table: String,
    /// The rows of several queries, of which all columns are shown: beside it there are only
    /// `with`, `order_by`, `limit` and `offset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Box<SetOperation>>,
    /// Rows that are written out, in the same way: as many expressions in each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Vec<Expr>>,
    /// Rows that a function makes, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<TableCall>,
    /// A query whose answer is read in place of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<Box<Self>>,
    /// What the table, or the answer read in its place, is called within the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What its first columns are called within the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// What is joined to it, one after another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<Join>,
    /// The output columns; empty for every field.
    pub select: Vec<SelectItem>,
    /// Whether equal output rows count once.
    pub distinct: bool,
    /// Where there are any: of the rows that have these in common, the first in the order is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distinct_on: Vec<Expr>,
    /// Which rows are looked at.
    pub filter: Option<Expr>,
    /// What the rows of a group have in common.
    pub group_by: Vec<Expr>,
    /// Where there are any: rows are grouped once for each of these sets, by those of the keys of
    /// `group_by` at its places, from 0; the other keys are NULL. See [`Query::group_by_sets`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grouping_sets: Vec<Vec<usize>>,
    /// Which groups are shown.
    pub having: Option<Expr>,
    /// Which rows or groups are shown, by what window functions are of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualify: Option<Expr>,
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

    /// Every field of a table, or of the answer of a query.
    #[must_use]
    pub fn from(relation: Relation) -> Self {
        let Relation { table, query: derived, alias, columns, joins, .. } = relation;
        Self { table, derived, alias, columns, joins, ..Self::default() }
    }

    /// The same with another name for what it reads first.
    #[must_use]
    pub fn aliased(self, alias: impl Into<String>) -> Self {
        Self { alias: Some(alias.into()), ..self }
    }

    /// What it reads, in order; nothing for one row without fields, and for rows that are written
    /// out or those of several queries.
    #[must_use]
    pub fn relations(&self) -> Vec<Relation> {
        let joined = self.joins.iter().map(|join| join.relation.clone());
        self.first_relation().into_iter().chain(joined).collect()
    }

    /// What it reads first.
    pub(crate) fn first_relation(&self) -> Option<Relation> {
        let has_first = !self.table.is_empty() || self.derived.is_some();
        has_first.then(|| Relation {
            table: self.table.clone(),
            query: self.derived.clone(),
            alias: self.alias.clone(),
            columns: self.columns.clone(),
            ..Relation::default()
        })
    }

    /// True when it reads one table at most, by its name, and no query lies in it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.derived.is_none()
            && self.alias.is_none()
            && self.joins.is_empty()
            && self.with.is_empty()
            && self.set.is_none()
            && self.values.is_empty()
            && self.call.is_none()
            && self.columns.is_empty()
            && !self.exprs().any(Expr::has_subquery)
    }

    /// True when queries within it run before the rest of it does.
    pub(crate) fn runs_queries_first(&self) -> bool {
        self.derived.is_some()
            || self.set.is_some()
            || self.call.is_some()
            || !self.with.is_empty()
            || self.joins.iter().any(|join| join.relation.runs_queries())
            || self.exprs().any(Expr::has_subquery)
    }

    /// Adds the names of all tables that it reads, those of queries within included.
    pub fn collect_tables(&self, names: &mut std::collections::BTreeSet<String>) {
        self.collect_tables_beside(&mut Vec::new(), names);
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
        let on = self.joins.iter().filter_map(|join| join.on.as_ref());
        let behind = self.group_by.iter().chain(&self.having).chain(keys).chain(on);
        let written = self.values.iter().flatten().chain(&self.distinct_on).chain(&self.qualify);
        let operands = self.call.iter().flat_map(|call| &call.operands);
        items.chain(&self.filter).chain(behind).chain(written).chain(operands)
    }

    /// The select item at a place, counted from 1, once `*` is written out.
    ///
    /// # Errors
    /// `InvalidQuery` when there is none, naming the clause that asks for it.
    pub fn item(&self, clause: &str, place: usize) -> Result<&SelectItem> {
        let item = place.checked_sub(1).and_then(|at| self.select.get(at));
        item.ok_or_else(|| {
            let count = self.select.len();
            Error::invalid(format!("{clause} {place}: expected 1 to {count}"))
        })
    }

    /// True when it takes values of sequences, queries within included.
    #[must_use]
    pub fn takes_values(&self) -> bool {
        let mut takes_values = self.with.iter().any(|with| with.query.takes_values());
        self.each_query_read(&mut |query| takes_values |= query.takes_values());
        takes_values || self.exprs().any(Expr::takes_values)
    }

    /// True when it may be answered otherwise when it is asked again of the same rows: by chance,
    /// or by values of sequences, queries within included.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        let mut is_volatile = self.with.iter().any(|with| with.query.is_volatile());
        self.each_query_read(&mut |query| is_volatile |= query.is_volatile());
        is_volatile || self.exprs().any(Expr::is_volatile)
    }

    /// True when the answer has one row per group rather than one per row.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        !self.group_by.is_empty()
            || !self.grouping_sets.is_empty()
            || self.having.is_some()
            || self.select.iter().any(|item| item.expr.has_aggregate())
            || self.order_by.iter().any(|key| key.expr.has_aggregate())
            || self.qualify.as_ref().is_some_and(Expr::has_aggregate)
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
