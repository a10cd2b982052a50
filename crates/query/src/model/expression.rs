//! Expressions over the fields of one row, or of one group.

use esker_format::schema::EVENT_ID_NAME;
use esker_format::{DataType, Labels, Value};
use serde::{Deserialize, Serialize};

use std::sync::Arc;

use super::{
    Aggregate, Function, Lookup, Operator, OrderBy, Query, SubqueryForm, WindowCall, serial,
};
use crate::{Error, Result};

/// The most levels of an expression: what is deeper is refused, since computing it goes as deep.
pub const EXPR_DEPTH_MAX: usize = 128;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    /// The value of a field, or of a select item by its alias.
    Field(String),
    /// The select item at a place, counted from 1 when `*` is written out; only as a whole key of
    /// `GROUP BY` or `ORDER BY`.
    Item(usize),
    /// Every select item; only as a whole key: of `ORDER BY`, or of `GROUP BY`, where items with
    /// aggregates and constants are left out.
    AllItems,
    /// Which of the keys of the groups a grouping set leaves out: a bit each, that of the last
    /// operand lowest. Without operands it is of all keys.
    Grouping(Vec<Self>),
    /// A constant.
    Literal(#[serde(with = "serial::ValueForm")] Value),
    /// An operator and its operands.
    Apply(Operator, Vec<Self>),
    /// A function and its operands.
    Call(Function, Vec<Self>),
    /// A value that is given when the statement runs.
    Parameter(Parameter),
    /// What a field holds that a new row has no value for; only as a whole value of an insert.
    Default,
    /// An aggregate over the rows of the group.
    Aggregate {
        /// The function.
        function: Aggregate,
        /// What it aggregates; `None` counts rows.
        operand: Option<Box<Self>>,
        /// Whether equal values count once.
        distinct: bool,
        /// What `first` and `last` order the rows of the group by.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        order: Vec<OrderBy>,
    },
    /// A window function, over rows or groups.
    Window(Box<WindowCall>),
    /// A value converted to a type.
    Cast(Box<Self>, #[serde(with = "serial::text")] DataType),
    /// A value of a row of another table.
    Lookup(Box<Lookup>),
    /// Several values side by side; only as what may be among the rows of a subquery.
    Row(Vec<Self>),
    /// Every field of a table, by what the query calls it; of all tables where the name is empty.
    /// Only as a whole select item.
    AllFields(String),
    /// What a query answers.
    Subquery {
        /// What is wanted of it.
        form: SubqueryForm,
        /// What its values are compared with, but for [`SubqueryForm::Scalar`] and
        /// [`SubqueryForm::Exists`].
        operand: Option<Box<Self>>,
        /// The query.
        query: Box<Query>,
    },
    /// What a subquery has answered, in its place while the query around it runs: as an operand of
    /// [`Operator::In`] all its values, elsewhere the first.
    #[serde(skip)]
    Answer(Arc<Answer>),
}

/// The values of a subquery's one column. They compare as values of a field of its type do, not as
/// constants that are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    values: Vec<Value>,
    data_type: DataType,
    labels: Option<Arc<Labels>>,
    /// The question, where nothing was answered.
    unanswered: Option<String>,
}

impl Answer {
    /// The values of a column of some type, and the labels of an enum.
    #[must_use]
    pub fn new(values: Vec<Value>, data_type: DataType, labels: Option<Arc<Labels>>) -> Self {
        Self { values, data_type, labels, unanswered: None }
    }

    /// What will be answered when the query runs, where it is only looked at: a column of some type
    /// and its labels, and the subquery as text.
    #[must_use]
    pub fn unanswered(text: String, data_type: DataType, labels: Option<Arc<Labels>>) -> Self {
        Self { values: Vec::new(), data_type, labels, unanswered: Some(text) }
    }

    /// The subquery as text, where it has not run.
    #[must_use]
    pub fn as_unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }

    /// The values, NULL among them.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The column's type.
    #[must_use]
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The labels of an enum.
    #[must_use]
    pub fn labels(&self) -> Option<&Arc<Labels>> {
        self.labels.as_ref()
    }
}

/// A place in a statement for a value that is given when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Which of the values, from 0.
    pub position: u32,
    /// How the statement writes it: `?1`, `$1` or `:name`.
    pub name: String,
}

/// What `operands` and `operands_mut` of an expression have in common.
macro_rules! operands_of {
    ($expr:expr, $iter:ident, $exprs:ident $(, $mutable:tt)?) => {
        match $expr {
            Expr::Aggregate { operand, order, .. } => {
                let keys = order.$iter().map(|key| &$($mutable)? key.expr);
                operand.$iter().map(|o| &$($mutable)? **o).chain(keys).collect()
            }
            Expr::Subquery { operand, .. } => {
                operand.$iter().map(|o| &$($mutable)? **o).collect()
            }
            Expr::Apply(_, operands)
            | Expr::Call(_, operands)
            | Expr::Row(operands)
            | Expr::Grouping(operands) => {
                operands.$iter().collect()
            }
            Expr::Window(call) => call.$exprs(),
            Expr::Lookup(lookup) => lookup.keys.$iter().collect(),
            Expr::Cast(operand, _) => vec![&$($mutable)? **operand],
            Expr::Field(_)
            | Expr::Item(_)
            | Expr::AllItems
            | Expr::AllFields(_)
            | Expr::Literal(_)
            | Expr::Answer(_)
            | Expr::Parameter(_)
            | Expr::Default => Vec::new(),
        }
    };
}

impl Expr {
    /// The value of a field.
    #[must_use]
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// A constant.
    #[must_use]
    pub fn literal(value: impl Into<Value>) -> Self {
        Self::Literal(value.into())
    }

    /// A function of some operands.
    #[must_use]
    pub fn call(function: Function, operands: impl Into<Vec<Self>>) -> Self {
        Self::Call(function, operands.into())
    }

    /// An operator of two operands.
    #[must_use]
    pub fn binary(self, operator: Operator, other: Self) -> Self {
        Self::Apply(operator, vec![self, other])
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.binary(Operator::And, other)
    }

    /// Either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        self.binary(Operator::Or, other)
    }

    /// The number of rows.
    #[must_use]
    pub fn count() -> Self {
        let (function, order) = (Aggregate::Count, Vec::new());
        Self::Aggregate { function, operand: None, distinct: false, order }
    }

    /// An aggregate of an expression.
    #[must_use]
    pub fn aggregate(function: Aggregate, operand: Self) -> Self {
        let (operand, order) = (Some(Box::new(operand)), Vec::new());
        Self::Aggregate { function, operand, distinct: false, order }
    }

    /// The same aggregate, [`Aggregate::First`] or [`Aggregate::Last`], over the rows of the group
    /// in some order; anything else as it is.
    ///
    /// ```
    /// use esker_query::model::{Aggregate, Expr, OrderBy};
    ///
    /// let by_time = OrderBy { expr: Expr::field("t"), descending: false, nulls_first: None };
    /// let last = Expr::aggregate(Aggregate::Last, Expr::field("price")).in_order([by_time]);
    /// assert_eq!(last.to_string(), "last(price ORDER BY t)");
    /// ```
    #[must_use]
    pub fn in_order(self, by: impl Into<Vec<OrderBy>>) -> Self {
        match self {
            Self::Aggregate { function, operand, distinct, .. } => {
                Self::Aggregate { function, operand, distinct, order: by.into() }
            }
            other => other,
        }
    }

    /// Whether a query has a row.
    #[must_use]
    pub fn has_rows(query: Query) -> Self {
        Self::Subquery { form: SubqueryForm::Exists, operand: None, query: Box::new(query) }
    }

    /// Whether it is among the values of a query's one column.
    #[must_use]
    pub fn among(self, query: Query) -> Self {
        let (form, operand) = (SubqueryForm::In, Some(Box::new(self)));
        Self::Subquery { form, operand, query: Box::new(query) }
    }

    /// Whether a comparison of it with a value of a query's one column holds.
    #[must_use]
    pub fn compared_with_any(self, operator: Operator, query: Query) -> Self {
        let (form, operand) = (SubqueryForm::Any(operator), Some(Box::new(self)));
        Self::Subquery { form, operand, query: Box::new(query) }
    }

    /// Whether a comparison of it with each value of a query's one column holds.
    #[must_use]
    pub fn compared_with_all(self, operator: Operator, query: Query) -> Self {
        let (form, operand) = (SubqueryForm::All(operator), Some(Box::new(self)));
        Self::Subquery { form, operand, query: Box::new(query) }
    }

    /// The value of a query's one row and column.
    #[must_use]
    pub fn value_of(query: Query) -> Self {
        Self::Subquery { form: SubqueryForm::Scalar, operand: None, query: Box::new(query) }
    }

    /// Whether it is false.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::Apply(Operator::Not, vec![self])
    }

    /// How many levels it has, itself included.
    #[must_use]
    pub fn depth(&self) -> usize {
        let (mut depth, mut level) = (1, self.operands());
        while !level.is_empty() {
            depth += 1;
            level = level.iter().flat_map(|expr| expr.operands()).collect();
        }
        depth
    }

    /// The expressions within it, one level down.
    #[must_use]
    pub fn operands(&self) -> Vec<&Self> {
        operands_of!(self, iter, exprs)
    }

    /// The expressions within it, one level down.
    pub fn operands_mut(&mut self) -> Vec<&mut Self> {
        operands_of!(self, iter_mut, exprs_mut, mut)
    }

    /// Adds the names of the fields that it reads, those in queries within it left out.
    pub(crate) fn collect_names<'e>(&'e self, names: &mut Vec<&'e str>) {
        if let Self::Field(name) = self {
            names.push(name);
        }
        self.operands().into_iter().for_each(|operand| operand.collect_names(names));
    }

    /// True when it reads a field of this name, or a path into it.
    #[must_use]
    pub fn reads_field(&self, name: &str) -> bool {
        match self {
            Self::Field(field) => path_below(field, name).is_some(),
            _ => self.operands().into_iter().any(|operand| operand.reads_field(name)),
        }
    }

    /// Makes it read another field instead of one.
    pub fn rename_field(&mut self, from: &str, to: &str) {
        match self {
            Self::Field(field) => {
                if let Some(path) = path_below(field, from) {
                    *field = format!("{to}{path}");
                }
            }
            _ => self.operands_mut().into_iter().for_each(|o| o.rename_field(from, to)),
        }
    }

    /// True when it is a call that depends on when it is computed, or on chance.
    #[must_use]
    pub fn varies(&self) -> bool {
        use Function as F;
        let Self::Call(function, operands) = self else { return false };
        let is_now = |operand: &Self| match operand {
            Self::Literal(Value::Text(text)) => text.trim().eq_ignore_ascii_case("now"),
            _ => false,
        };
        match function {
            F::Now | F::CurrentDate | F::Nextval => true,
            F::SqliteDate | F::SqliteTime | F::SqliteDatetime | F::Julianday | F::Unixepoch => {
                operands.first().is_none_or(is_now)
            }
            F::Strftime => operands.len() == 1 || operands.get(1).is_some_and(is_now),
            other => other.is_random(),
        }
    }

    /// True when it takes values of sequences, queries within included.
    #[must_use]
    pub fn takes_values(&self) -> bool {
        let is_within = match self {
            Self::Subquery { query, .. } => query.takes_values(),
            Self::Call(function, _) => *function == Function::Nextval,
            _ => false,
        };
        is_within || self.operands().into_iter().any(Self::takes_values)
    }

    /// True when it may have another value when it is computed again: by chance, or by values of
    /// sequences, queries within included.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        let is_within = match self {
            Self::Subquery { query, .. } => query.is_volatile(),
            Self::Call(function, _) => *function == Function::Nextval || function.is_random(),
            _ => false,
        };
        is_within || self.operands().into_iter().any(Self::is_volatile)
    }

    /// Refuses the id of an event where rows are not read from their stream.
    pub(crate) fn refuse_event_id(&self) -> Result<()> {
        match self {
            Self::Field(name) if name.ends_with(EVENT_ID_NAME) => Err(Error::invalid(
                "id(): expected a query of a stream, whose rows have ids; those at hand have none",
            )),
            expr => expr.operands().into_iter().try_for_each(Self::refuse_event_id),
        }
    }

    /// True when a query, or what asks another table, lies anywhere within.
    #[must_use]
    pub fn has_subquery(&self) -> bool {
        let is_one = matches!(self, Self::Subquery { .. } | Self::Lookup(_));
        is_one || self.operands().into_iter().any(Self::has_subquery)
    }

    /// True when an aggregate of a group, or a question for its grouping set, occurs anywhere
    /// within.
    #[must_use]
    pub fn has_aggregate(&self) -> bool {
        match self {
            Self::Aggregate { .. } | Self::Grouping(_) => true,
            Self::Window(call) => call.has_aggregate(),
            _ => self.operands().into_iter().any(Self::has_aggregate),
        }
    }
}

/// What follows a field's name in a path into it: nothing where the name is the field's.
fn path_below<'a>(name: &'a str, field: &str) -> Option<&'a str> {
    name.strip_prefix(field).filter(|path| path.is_empty() || path.starts_with('.'))
}
