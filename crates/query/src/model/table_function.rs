//! Functions that make rows, read in place of tables: `FROM generate_series(1, 3) AS g`.

use std::fmt::{self, Display, Formatter};

use esker_format::Value;
use esker_format::calendar::DAY_US;
use serde::{Deserialize, Serialize};

use super::{Expr, Query, Relation};

/// A function that makes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableFunction {
    /// Values from a start to a stop, which is one of them where a step leads to it.
    GenerateSeries,
    /// The same without the stop; one operand alone is the stop, and 0 the start.
    Range,
    /// The names and values of the members of an object of JSON.
    JsonEach,
    /// The same, the values as text.
    JsonEachText,
    /// The elements of an array of JSON.
    JsonArrayElements,
    /// The same as text.
    JsonArrayElementsText,
    /// The names of the members of an object of JSON.
    JsonObjectKeys,
    /// The items of a list.
    Unnest,
}

/// A call of a function that makes rows.
///
/// ```
/// use esker_query::model::{Expr, Query, Relation, TableCall, TableFunction};
///
/// let operands = [1i64, 10].map(Expr::literal);
/// let call = TableCall::new(TableFunction::GenerateSeries, operands);
/// let query = Query::from(Relation::call(call).aliased("g"));
/// assert_eq!(query.to_string(), "SELECT * FROM generate_series(1, 10) AS g");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCall {
    /// The function.
    pub function: TableFunction,
    /// What it is called with. Of a series: start, stop and step; the step of one of timestamps
    /// is two operands, months and microseconds.
    pub operands: Vec<Expr>,
    /// Whether the rows are numbered, from 1 on, in a last column.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordinality: bool,
    /// What older statements have in place of [`Relation::after_filter`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_filter: bool,
}

impl TableFunction {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::GenerateSeries,
        Self::Range,
        Self::JsonEach,
        Self::JsonEachText,
        Self::JsonArrayElements,
        Self::JsonArrayElementsText,
        Self::JsonObjectKeys,
        Self::Unnest,
    ];

    /// As SQL writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GenerateSeries => "generate_series",
            Self::Range => "range",
            Self::JsonEach => "json_each",
            Self::JsonEachText => "json_each_text",
            Self::JsonArrayElements => "json_array_elements",
            Self::JsonArrayElementsText => "json_array_elements_text",
            Self::JsonObjectKeys => "json_object_keys",
            Self::Unnest => "unnest",
        }
    }

    /// The function of a name, in any case; those of JSON begin with `jsonb_`, too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let is_it = |function: &Self| {
            let own = function.name();
            let rest = own.strip_prefix("json_");
            own == lower || rest.is_some() && rest == lower.strip_prefix("jsonb_")
        };
        Self::ALL.into_iter().find(is_it)
    }

    /// The least and the greatest number of operands.
    #[must_use]
    pub const fn operand_counts(self) -> (usize, usize) {
        match self {
            Self::GenerateSeries => (2, 4),
            Self::Range => (1, 4),
            _ => (1, 1),
        }
    }

    /// What its columns are called; none for one column that is called as the rows are.
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::GenerateSeries | Self::Range | Self::JsonObjectKeys | Self::Unnest => &[],
            Self::JsonEach | Self::JsonEachText => &["key", "value"],
            Self::JsonArrayElements | Self::JsonArrayElementsText => &["value"],
        }
    }
}

impl TableCall {
    /// A call, whose rows are not numbered.
    #[must_use]
    pub fn new(function: TableFunction, operands: impl IntoIterator<Item = Expr>) -> Self {
        let operands = operands.into_iter().collect();
        Self { function, operands, ordinality: false, after_filter: false }
    }

    /// What its columns are called, where one that has no name of its own is called so.
    #[must_use]
    pub fn columns_of(&self, alias: &str) -> Vec<String> {
        self.columns(Some(alias))
    }

    /// What its columns are called, where its rows are called so.
    pub(crate) fn columns(&self, alias: Option<&str>) -> Vec<String> {
        let alone = [alias.unwrap_or(self.function.name())];
        let own = match self.function.columns() {
            [] => alone.as_slice(),
            own => own,
        };
        let number = self.ordinality.then_some("ordinality");
        own.iter().copied().chain(number).map(str::to_owned).collect()
    }
}

impl Query {
    /// The rows that a function makes.
    #[must_use]
    pub fn call(call: TableCall) -> Self {
        Self { call: Some(call), ..Self::default() }
    }

    /// The call, where there is nothing beside it.
    pub(crate) fn as_call(&self) -> Option<&TableCall> {
        self.call.as_ref().filter(|_| self.is_only_rows())
    }
}

impl Relation {
    /// The rows that a function makes. Its operands may name fields of what stands before it.
    #[must_use]
    pub fn call(call: TableCall) -> Self {
        let query = Some(Box::new(Query::call(call)));
        Self { query, lateral: true, ..Self::default() }
    }

    /// The call of a function whose rows it is.
    pub(crate) fn as_call(&self) -> Option<&TableCall> {
        self.query.as_deref().and_then(Query::as_call)
    }
}

impl Display for TableCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function.name())?;
        match self.operands.as_slice() {
            [start, stop, Expr::Literal(Value::Int(months)), Expr::Literal(Value::Int(us))] => {
                write!(f, "{start}, {stop}, {}", Interval { months: *months, us: *us })?
            }
            operands => super::display::list(f, operands)?,
        }
        f.write_str(if self.ordinality { ") WITH ORDINALITY" } else { ")" })
    }
}

/// An interval as SQL writes it.
struct Interval {
    months: i64,
    us: i64,
}

impl Display for Interval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { months, us } = *self;
        f.write_str("INTERVAL '")?;
        if months != 0 {
            write!(f, "{months} months{}", if us != 0 { " " } else { "" })?;
        }
        match us {
            0 if months != 0 => {}
            us if us % DAY_US == 0 => write!(f, "{} days", us / DAY_US)?,
            us => write!(f, "{us} microseconds")?,
        }
        f.write_str("'")
    }
}
