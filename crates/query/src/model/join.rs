//! What a query reads: tables and answers of other queries, side by side.

use serde::{Deserialize, Serialize};

use super::{Expr, Operator, Query};

/// How the rows of two inputs come together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinKind {
    /// Every pair that matches.
    #[default]
    Inner,
    /// Every pair that matches, and each row on the left without a match, with NULLs beside it.
    Left,
    /// The same the other way around: each row on the right without a match stays.
    Right,
    /// Both.
    Full,
    /// Each row on the left that has a match, once; nothing of the right is shown.
    Semi,
    /// Each row on the left that has no match; nothing of the right is shown.
    Anti,
}

/// A table, or the answer of a query that is read like one.
///
/// ```
/// use esker_query::model::{Query, Relation};
///
/// assert_eq!(Relation::table("orders").aliased("o").to_string(), "orders AS o");
/// let recent = Relation::query(Query::table("orders"), "recent");
/// assert_eq!(recent.to_string(), "(SELECT * FROM orders) AS recent");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Relation {
    /// The table's name; empty where `query` is.
    pub table: String,
    /// A query whose answer is read in place of a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<Box<Query>>,
    /// What it is called in the statement; without one, the name of the table or function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// What its first columns are called in the statement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// What is joined to it before it is joined to others: a join in parentheses, of which each
    /// table keeps its name. It has no alias for the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joins: Vec<Join>,
    /// Whether `query` may name fields of what stands before it: it is asked for each row of that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lateral: bool,
    /// Whether it is of the rows that pass WHERE, as what makes rows in the list of SELECT is: no
    /// condition names its columns, and `*` does not show them. It is the last that the query
    /// joins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub after_filter: bool,
}

/// One more input of a query, joined with all before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Join {
    /// How.
    pub kind: JoinKind,
    /// What is on the right.
    pub relation: Relation,
    /// Which pairs match; without it and without `using`, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Expr>,
    /// Fields of both sides that have to be equal, and are shown once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub using: Vec<String>,
    /// Whether all fields that both sides have by one name have to be equal, and are shown once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub natural: bool,
}

/// What is wanted of a query inside an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubqueryForm {
    /// The value of its one row and column; NULL without a row.
    Scalar,
    /// Whether it has a row.
    Exists,
    /// Whether the operand is among the values of its one column.
    In,
    /// Whether a comparison of the operand with a value of its one column holds.
    Any(Operator),
    /// Whether a comparison of the operand with each value of its one column holds.
    All(Operator),
}

impl JoinKind {
    /// Whether fields of the right side can be read after the join.
    #[must_use]
    pub fn shows_right(self) -> bool {
        !matches!(self, Self::Semi | Self::Anti)
    }

    /// As SQL writes it before `JOIN`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inner => "INNER",
            Self::Left => "LEFT",
            Self::Right => "RIGHT",
            Self::Full => "FULL",
            Self::Semi => "SEMI",
            Self::Anti => "ANTI",
        }
    }
}

impl Relation {
    /// A table.
    #[must_use]
    pub fn table(name: impl Into<String>) -> Self {
        Self { table: name.into(), ..Self::default() }
    }

    /// The answer of a query, under a name.
    #[must_use]
    pub fn query(query: Query, alias: impl Into<String>) -> Self {
        let query = Some(Box::new(query));
        Self { query, alias: Some(alias.into()), ..Self::default() }
    }

    /// The same under another name.
    #[must_use]
    pub fn aliased(self, alias: impl Into<String>) -> Self {
        Self { alias: Some(alias.into()), ..self }
    }

    /// Whether it is of the rows that pass WHERE; older statements say so at the call.
    pub(crate) fn is_after_filter(&self) -> bool {
        self.after_filter || self.as_call().is_some_and(|call| call.after_filter)
    }

    /// What it is called in the statement.
    #[must_use]
    pub fn name(&self) -> &str {
        let own = || self.as_call().map_or(self.table.as_str(), |call| call.function.name());
        self.alias.as_deref().unwrap_or_else(own)
    }
}

impl Join {
    /// A join on a condition.
    ///
    /// ```
    /// use esker_query::model::{Expr, Join, JoinKind, Operator, Query, Relation};
    ///
    /// let same = Expr::field("o.customer").binary(Operator::Eq, Expr::field("c.id"));
    /// let mut query = Query::table("orders").aliased("o");
    /// query.joins.push(Join::on(JoinKind::Left, Relation::table("customers").aliased("c"), same));
    /// query.select(Expr::field("c.name"));
    /// assert_eq!(
    ///     query.to_string(),
    ///     "SELECT c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id"
    /// );
    /// ```
    #[must_use]
    pub fn on(kind: JoinKind, relation: Relation, condition: Expr) -> Self {
        Self { kind, relation, on: Some(condition), ..Self::default() }
    }

    /// A join on the equality of fields that both sides have.
    #[must_use]
    pub fn using<N: Into<String>>(
        kind: JoinKind,
        relation: Relation,
        fields: impl IntoIterator<Item = N>,
    ) -> Self {
        let using = fields.into_iter().map(Into::into).collect();
        Self { kind, relation, using, ..Self::default() }
    }

    /// Every pair.
    #[must_use]
    pub fn cross(relation: Relation) -> Self {
        Self { relation, ..Self::default() }
    }

    /// The same join on the equality of all fields that both sides have by one name.
    #[must_use]
    pub fn natural(kind: JoinKind, relation: Relation) -> Self {
        Self { kind, relation, natural: true, ..Self::default() }
    }

    /// Whether every pair matches.
    pub(crate) fn is_cross(&self) -> bool {
        self.on.is_none() && self.using.is_empty() && !self.natural
    }
}
