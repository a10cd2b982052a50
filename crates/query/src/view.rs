//! Views: queries that have a name, and are read as tables are.
//!
//! ```text
//! CREATE VIEW v AS SELECT …        looked at once: its columns, what it reads  ─►  kept
//! SELECT … FROM v WHERE …          SELECT … FROM (the query) AS v WHERE …
//! ```
//!
//! A view means what it meant when it was made:
//!
//! * Of a table it sees the fields that there were then. One that is added later is not in its `*`,
//!   and makes no name of it mean another field.
//! * Orders and divisions that leave something open mean what the session had chosen that made it,
//!   whatever the one chooses that reads it.
//! * No query around it lends it a name: one that WITH calls as a table of the view is not read.
//!
//! The database refuses changes of tables that would change a view: see [`View::reads_field`].

use esker_format::FieldId;
use serde::Serialize;

use crate::model::{Expr, Function, NewName, Operator, OrderBy, Query, Relation};
use crate::{DivisionByZero, Error, ErrorKind, Result, ResultColumn, Semantics};

/// How many views may lie in each other.
pub const VIEW_DEPTH_MAX: usize = 16;

/// A query that is read by a name.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The query.
    pub query: Query,
    /// Its columns.
    pub columns: Vec<ResultColumn>,
    /// What the session had chosen that made it.
    pub semantics: Semantics,
    /// The tables and views that it reads, by name, and how much of each it sees.
    pub inputs: Vec<ViewInput>,
}

/// A table or a view that a view reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewInput {
    /// Its name.
    pub name: String,
    /// What of it is seen.
    pub seen: Seen,
}

/// What a view sees of what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Of a table the fields with numbers up to this one.
    FieldsThrough(FieldId),
    /// Of another view so many columns.
    Columns(usize),
}

impl View {
    /// The stored form of a query.
    ///
    /// # Errors
    /// `InvalidQuery` when it has none: a number in it is not finite, or it nests too deep.
    pub fn encode(query: &Query) -> Result<String> {
        let text = to_text(query)?;
        match Self::decode(&text) {
            Ok(decoded) if decoded == *query => Ok(text),
            Ok(_) => Err(Error::invalid("a view: expected finite numbers")),
            Err(e) => Err(Error::invalid(format!("a view: the query cannot be stored: {e}"))),
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the text is not that of a query.
    pub fn decode(text: &str) -> Result<Query> {
        let corrupt =
            |e: serde_json::Error| Error::new(ErrorKind::Corrupt, format!("a stored query: {e}"));
        serde_json::from_str(text).map_err(corrupt)
    }

    /// What it sees of a table or a view that it reads.
    #[must_use]
    pub fn sees(&self, name: &str) -> Option<Seen> {
        self.inputs.iter().find(|input| input.name == name).map(|input| input.seen)
    }

    /// The same view where what it reads goes by other names.
    #[must_use]
    pub fn renamed(&self, rename: &mut NewName<'_>) -> Self {
        let mut renamed = self.clone();
        renamed.query.rename_tables(rename);
        for input in &mut renamed.inputs {
            input.name = rename(&input.name).unwrap_or_else(|| std::mem::take(&mut input.name));
        }
        renamed
    }

    /// The names of its columns.
    #[must_use]
    pub fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// The query as it means the same where nothing is chosen.
    #[must_use]
    pub fn query_by_default(&self) -> Query {
        self.query_for(Semantics::default(), self.columns.len())
    }

    /// The query as it means the same where others choose otherwise, with the first `count` of its
    /// columns.
    pub(crate) fn query_for(&self, reader: Semantics, count: usize) -> Query {
        let mut query = self.query.clone();
        if !self.semantics.means_as(reader) {
            self.semantics.fix(&mut query);
        }
        if count >= self.columns.len() {
            return query;
        }
        let relation = Relation::query(query, "view");
        let mut first = Query::from(Relation { columns: self.column_names(), ..relation });
        for column in self.columns.iter().take(count) {
            first.select(Expr::field(&column.name));
        }
        first
    }
}

fn to_text(query: &impl Serialize) -> Result<String> {
    serde_json::to_string(query).map_err(|e| Error::invalid(format!("a view: {e}")))
}

impl Semantics {
    /// Whether all that is left open means the same by another choice.
    fn means_as(self, other: Self) -> bool {
        // default: what is not chosen is as by default
        let chosen = |of: Self| {
            (of.nulls_order.unwrap_or_default(), of.division_by_zero.unwrap_or_default())
        };
        chosen(self) == chosen(other)
    }

    /// Makes a query, with those within it, say what it leaves open.
    fn fix(self, query: &mut Query) {
        query.with.iter_mut().for_each(|with| self.fix(&mut with.query));
        query.set.iter_mut().flat_map(|set| set.queries_mut()).for_each(|one| self.fix(one));
        query.derived.iter_mut().for_each(|derived| self.fix(derived));
        query.joins.iter_mut().for_each(|join| self.fix_relation(&mut join.relation));
        query.order_by.iter_mut().for_each(|key| self.fix_key(key));
        query.exprs_mut().for_each(|expr| self.fix_expr(expr));
    }

    fn fix_relation(self, relation: &mut Relation) {
        relation.query.iter_mut().for_each(|query| self.fix(query));
        for join in &mut relation.joins {
            self.fix_relation(&mut join.relation);
            join.on.iter_mut().for_each(|on| self.fix_expr(on));
        }
    }

    fn fix_key(self, key: &mut OrderBy) {
        key.nulls_first = Some(self.nulls_first(key));
    }

    fn fix_expr(self, expr: &mut Expr) {
        match expr {
            Expr::Aggregate { order, .. } => order.iter_mut().for_each(|key| self.fix_key(key)),
            Expr::Window(call) => {
                call.over.order_by.iter_mut().for_each(|key| self.fix_key(key));
            }
            Expr::Subquery { query, .. } => self.fix(query),
            _ => {}
        }
        expr.operands_mut().into_iter().for_each(|operand| self.fix_expr(operand));
        let taken = std::mem::replace(expr, Expr::Default);
        *expr = self.fixed_division(taken);
    }

    /// A division that fails by zero, or does not, whatever is chosen where it is computed.
    fn fixed_division(self, expr: Expr) -> Expr {
        let fails = self.division_by_zero == Some(DivisionByZero::Error);
        let zero = || Expr::literal(0i64);
        let or_null = |divisor: Expr| Expr::call(Function::Nullif, [divisor, zero()]);
        match expr {
            Expr::Apply(operator @ (Operator::Divide | Operator::Remainder), operands) => {
                let operator = self.operator(operator);
                let last = operands.len().saturating_sub(1);
                let operands = operands.into_iter().enumerate();
                let operands = operands.map(|(i, operand)| match i == last && !fails {
                    true => or_null(operand),
                    false => operand,
                });
                Expr::Apply(operator, operands.collect())
            }
            Expr::Call(Function::Mod, operands) if fails => {
                Expr::Apply(Operator::RemainderOrFail, operands)
            }
            Expr::Call(Function::Mod, mut operands) => {
                let divisor = operands.pop().map(or_null);
                operands.extend(divisor);
                Expr::Call(Function::Mod, operands)
            }
            other => other,
        }
    }
}
