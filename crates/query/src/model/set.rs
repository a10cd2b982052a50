//! Answers of several queries as one, and queries that are named for others.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Expr, Query, Relation};

/// How the answers of two queries become one. Rows are equal where all their columns are, and NULL
/// equals NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetOperator {
    /// The rows of both.
    Union,
    /// The rows that both have.
    Intersect,
    /// The rows of the first that the second does not have.
    Except,
}

/// The answers of queries as one: the first with the second, what comes of that with the third, and
/// so on. Its columns are called as those of the first, and have types that all of them can take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetOperation {
    /// The first query.
    pub first: Query,
    /// The others, in order.
    pub rest: Vec<SetBranch>,
}

/// One more query of a [`SetOperation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetBranch {
    /// What becomes of its rows and those before.
    pub operator: SetOperator,
    /// Whether equal rows count each; else they are one.
    #[serde(default)]
    pub all: bool,
    /// The query.
    pub query: Query,
}

/// A query by a name, which a query reads as it does a table. It shadows a table of that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct With {
    /// Its name.
    pub name: String,
    /// What its first columns are called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The query.
    pub query: Query,
    /// Whether the query names itself: it is a [`SetOperation`] of which the last branch, a union,
    /// reads the rows that were found last, until there are no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    /// Whether it runs once and its answer is kept, or runs wherever it is named; `None`: kept
    /// where it is named more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialized: Option<bool>,
}

impl SetOperator {
    /// As SQL writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Union => "UNION",
            Self::Intersect => "INTERSECT",
            Self::Except => "EXCEPT",
        }
    }
}

impl SetBranch {
    /// As SQL writes it between two queries.
    #[must_use]
    pub fn title(&self) -> String {
        let all = if self.all { " ALL" } else { "" };
        format!("{}{all}", self.operator.name())
    }
}

impl SetOperation {
    /// The queries, in order.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|branch| &branch.query))
    }

    /// The queries, in order.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut Query> {
        std::iter::once(&mut self.first).chain(self.rest.iter_mut().map(|branch| &mut branch.query))
    }
}

impl With {
    /// A query by a name.
    #[must_use]
    pub fn new(name: impl Into<String>, query: Query) -> Self {
        let (name, columns) = (name.into(), Vec::new());
        Self { name, columns, query, recursive: false, materialized: None }
    }

    /// Whether its query names it, so that it is one for WITH RECURSIVE.
    #[must_use]
    pub fn reads_itself(&self) -> bool {
        self.query.uses_of(self) > 0
    }

    /// Whether a name in a statement is its own.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Query {
    /// The rows of queries as one.
    ///
    /// ```
    /// use esker_query::model::{Expr, Query, SetOperator};
    ///
    /// let mut old = Query::table("old");
    /// old.select(Expr::field("id"));
    /// let both = old.combined(SetOperator::Except, false, Query::table("new"));
    /// assert_eq!(both.to_string(), "SELECT id FROM old EXCEPT SELECT * FROM new");
    /// ```
    #[must_use]
    pub fn combined(self, operator: SetOperator, all: bool, query: Self) -> Self {
        let branch = SetBranch { operator, all, query };
        let is_set = self.is_only_rows();
        let set = match self {
            Self { set: Some(mut set), .. } if is_set => {
                set.rest.push(branch);
                set
            }
            first => Box::new(SetOperation { first, rest: vec![branch] }),
        };
        Self { set: Some(set), ..Self::default() }
    }

    /// Rows that are written out; their columns are called `column1`, `column2`, ….
    #[must_use]
    pub fn values(rows: Vec<Vec<Expr>>) -> Self {
        Self { values: rows, ..Self::default() }
    }

    /// True for rows that are written out, or those of several queries, with nothing that names,
    /// orders or cuts them.
    pub(crate) fn is_only_rows(&self) -> bool {
        self.with.is_empty() && self.order_by.is_empty() && !self.is_cut()
    }

    /// Whether it shows some of its rows only.
    pub(crate) fn is_cut(&self) -> bool {
        self.limit.is_some() || self.offset.number() != Some(0)
    }

    /// Calls `visit` for each query that it reads in place of a table.
    pub(super) fn each_query_read<'q>(&'q self, visit: &mut dyn FnMut(&'q Self)) {
        self.joins.iter().for_each(|join| join.relation.each_query(visit));
        self.derived.iter().for_each(|query| visit(query));
        self.set.iter().flat_map(|set| set.queries()).for_each(&mut *visit);
    }

    /// The same for those that an expression of it asks, too.
    pub(super) fn each_query<'q>(&'q self, visit: &mut dyn FnMut(&'q Self)) {
        self.each_query_read(visit);
        self.exprs().for_each(|expr| expr.each_query(visit));
    }

    /// Calls `visit` for each table that it reads by its name.
    fn each_table<'q>(&'q self, visit: &mut dyn FnMut(&'q str)) {
        if self.derived.is_none() && !self.table.is_empty() {
            visit(&self.table);
        }
        self.joins.iter().for_each(|join| join.relation.each_table(visit));
    }

    /// Adds the names of the tables that it reads; those in `known` are queries.
    pub(super) fn collect_tables_beside<'q>(
        &'q self,
        known: &mut Vec<&'q With>,
        names: &mut BTreeSet<String>,
    ) {
        let outer = known.len();
        for with in &self.with {
            let own = known.len();
            known.extend(with.recursive.then_some(with));
            with.query.collect_tables_beside(known, names);
            known.truncate(own);
            known.push(with);
        }
        self.each_table(&mut |table| {
            if !known.iter().any(|with| with.is_called(table)) {
                names.insert(table.to_owned());
            }
        });
        let lookups = self.exprs().flat_map(Expr::lookups);
        names.extend(lookups.map(|lookup| lookup.table.clone()));
        self.each_query(&mut |query| query.collect_tables_beside(known, names));
        known.truncate(outer);
    }

    /// How often the query behind the name number `at` is read, at least two for often: within
    /// another that is run again and again, or beside a full join.
    pub(crate) fn uses_behind(&self, at: usize) -> usize {
        self.with.get(at).map_or(0, |with| self.uses_from(at + 1, with))
    }

    /// The same of a query that is named around this one.
    pub(crate) fn uses_of(&self, with: &With) -> usize {
        self.uses_from(0, with)
    }

    fn uses_from(&self, first: usize, with: &With) -> usize {
        let mut uses = 0;
        for other in self.with.iter().skip(first) {
            let is_hidden = other.is_called(&with.name);
            if !(is_hidden && other.recursive) {
                let times = if other.recursive { 2 } else { 1 };
                uses += times * other.query.uses_of(with);
            }
            if is_hidden {
                return uses;
            }
        }
        self.each_table(&mut |table| uses += usize::from(with.is_called(table)));
        self.each_query(&mut |query| uses += query.uses_of(with));
        uses
    }
}

impl Relation {
    fn each_query<'q>(&'q self, visit: &mut dyn FnMut(&'q Query)) {
        self.query.iter().for_each(|query| visit(query));
        for join in &self.joins {
            join.relation.each_query(visit);
            join.on.iter().for_each(|on| on.each_query(visit));
        }
    }

    fn each_table<'q>(&'q self, visit: &mut dyn FnMut(&'q str)) {
        if self.query.is_none() && !self.table.is_empty() {
            visit(&self.table);
        }
        self.joins.iter().for_each(|join| join.relation.each_table(visit));
    }

    /// True when it is a table, or a join of tables, by their names.
    pub(crate) fn runs_queries(&self) -> bool {
        let is_query = |join: &super::Join| join.relation.runs_queries();
        self.query.is_some() || self.joins.iter().any(is_query)
    }
}

impl Expr {
    fn each_query<'q>(&'q self, visit: &mut dyn FnMut(&'q Query)) {
        if let Self::Subquery { query, .. } = self {
            visit(query);
        }
        self.operands().into_iter().for_each(|operand| operand.each_query(visit));
    }

    /// Adds the names of the tables that queries within it read.
    pub fn collect_tables(&self, names: &mut BTreeSet<String>) {
        self.each_query(&mut |query| query.collect_tables(names));
    }
}
