//! Window functions: what a row's value is among other rows of the answer.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::display::list;
use super::{Expr, OrderBy, Query};

/// A function over the rows of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WindowFunction {
    /// The row's place in its partition, from 1.
    RowNumber,
    /// One more than there are rows before its peers.
    Rank,
    /// One more than there are groups of peers before its own.
    DenseRank,
    /// The rank from 0 to 1: how many of the other rows are before its peers.
    PercentRank,
    /// How many of the rows are its peers or before them, from 0 to 1.
    CumeDist,
    /// Which of so many parts of about the same size it is in, from 1.
    Ntile,
    /// The value of the row so many before it, or a default.
    Lag,
    /// The value of the row so many after it, or a default.
    Lead,
    /// The value of the first row of the frame.
    FirstValue,
    /// The value of the last row of the frame.
    LastValue,
    /// The value of a row of the frame by its place, from 1.
    NthValue,
    /// The aggregate that is its operand, of the rows of the frame.
    Aggregate,
}

/// A call of a window function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCall {
    /// The function.
    pub function: WindowFunction,
    /// Its operands; of [`WindowFunction::Aggregate`], the call of the aggregate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<Expr>,
    /// Whether rows whose value is NULL are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignores_nulls: bool,
    /// The rows that it looks at.
    #[serde(default)]
    pub over: Window,
}

/// Which rows belong together, in which order, and which of them a row looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// What the rows of a partition have in common.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partition_by: Vec<Expr>,
    /// The order within a partition; rows with equal keys are peers. Without it all rows are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order_by: Vec<OrderBy>,
    /// Which rows of its partition a row looks at; `None`: from the first up to its last peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
}

/// The rows around a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// What bounds count.
    pub units: FrameUnits,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
    /// Which rows between are left out.
    #[serde(default)]
    pub exclude: FrameExclusion,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameUnits {
    /// Rows.
    Rows,
    /// How far the one key of the order is away.
    Range,
    /// Groups of peers.
    Groups,
}

/// Where a frame begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameBound {
    /// At the first row of the partition.
    UnboundedPreceding,
    /// So far before the row.
    Preceding(FrameOffset),
    /// At the row, or, but for [`FrameUnits::Rows`], its first or last peer.
    CurrentRow,
    /// So far after the row.
    Following(FrameOffset),
    /// At the last row of the partition.
    UnboundedFollowing,
}

/// How far away a bound is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameOffset {
    /// A constant: a number of rows or groups, or a difference of keys.
    Value(Expr),
    /// A span of time between keys.
    Interval {
        /// Months.
        months: i64,
        /// And microseconds.
        microseconds: i64,
    },
}

/// Which rows of a frame are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameExclusion {
    /// None.
    #[default]
    NoOthers,
    /// The row itself.
    CurrentRow,
    /// The row and its peers.
    Group,
    /// The peers of the row.
    Ties,
}

/// What `exprs` and `exprs_mut` have in common.
macro_rules! exprs_of {
    ($call:expr, $iter:ident $(, $mutable:tt)?) => {{
        let WindowCall { operands, over, .. } = $call;
        let Window { partition_by, order_by, frame } = over;
        let bounds = frame.$iter().flat_map(|Frame { start, end, .. }| [start, end]);
        let offsets = bounds.filter_map(|bound| match bound {
            FrameBound::Preceding(FrameOffset::Value(value))
            | FrameBound::Following(FrameOffset::Value(value)) => Some(value),
            _ => None,
        });
        let keys = order_by.$iter().map(|key| &$($mutable)? key.expr);
        let all = operands.$iter().chain(partition_by.$iter()).chain(keys);
        all.chain(offsets).collect()
    }};
}

impl WindowFunction {
    /// Every window function by its name, but for aggregates, which have their own.
    const NAMES: [(&'static str, Self); 11] = [
        ("row_number", Self::RowNumber),
        ("rank", Self::Rank),
        ("dense_rank", Self::DenseRank),
        ("percent_rank", Self::PercentRank),
        ("cume_dist", Self::CumeDist),
        ("ntile", Self::Ntile),
        ("lag", Self::Lag),
        ("lead", Self::Lead),
        ("first_value", Self::FirstValue),
        ("last_value", Self::LastValue),
        ("nth_value", Self::NthValue),
    ];

    /// The name; that of an aggregate is its own.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, function)| *function == self);
        named.map_or("an aggregate", |(name, _)| name)
    }

    /// The window function of a name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, function)| *function)
    }

    /// The names of all, but for aggregates.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    /// The fewest and the most operands.
    #[must_use]
    pub fn operand_counts(self) -> (usize, usize) {
        match self {
            Self::RowNumber | Self::Rank | Self::DenseRank | Self::PercentRank | Self::CumeDist => {
                (0, 0)
            }
            Self::Lag | Self::Lead => (1, 3),
            Self::NthValue => (2, 2),
            Self::Ntile | Self::FirstValue | Self::LastValue | Self::Aggregate => (1, 1),
        }
    }

    /// Whether it can leave out rows whose value is NULL.
    #[must_use]
    pub fn may_ignore_nulls(self) -> bool {
        matches!(self, Self::Lag | Self::Lead | Self::FirstValue | Self::LastValue | Self::NthValue)
    }
}

impl WindowCall {
    /// The expressions within it.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        exprs_of!(self, iter)
    }

    /// The expressions within it.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        exprs_of!(self, iter_mut, mut)
    }

    /// True when an aggregate over a group occurs within: one that has a window is none.
    pub(super) fn has_aggregate(&self) -> bool {
        let is_aggregate = self.function == WindowFunction::Aggregate;
        let skipped = usize::from(is_aggregate);
        let own = self.operands.iter().take(skipped).flat_map(Expr::operands);
        own.chain(self.exprs().into_iter().skip(skipped)).any(Expr::has_aggregate)
    }
}

impl Expr {
    /// A window function of some operands.
    ///
    /// ```
    /// use esker_query::model::{Expr, Window, WindowFunction};
    ///
    /// let over = Window { partition_by: vec![Expr::field("a")], ..Window::default() };
    /// let number = Expr::window(WindowFunction::RowNumber, [], over);
    /// assert_eq!(number.to_string(), "row_number() OVER (PARTITION BY a)");
    /// ```
    #[must_use]
    pub fn window(function: WindowFunction, operands: impl Into<Vec<Self>>, over: Window) -> Self {
        let (operands, ignores_nulls) = (operands.into(), false);
        Self::Window(Box::new(WindowCall { function, operands, ignores_nulls, over }))
    }

    /// The same aggregate over the rows of a window; anything else as it is.
    ///
    /// ```
    /// use esker_query::model::{Expr, Window};
    ///
    /// let count = Expr::count().over(Window::default());
    /// assert_eq!(count.to_string(), "count(*) OVER ()");
    /// ```
    #[must_use]
    pub fn over(self, over: Window) -> Self {
        match self {
            Self::Aggregate { .. } => Self::window(WindowFunction::Aggregate, [self], over),
            other => other,
        }
    }

    /// True when a window function occurs anywhere within.
    #[must_use]
    pub fn has_window(&self) -> bool {
        matches!(self, Self::Window(_)) || self.operands().into_iter().any(Self::has_window)
    }

    /// Adds the window functions within, each once.
    pub(crate) fn collect_windows<'e>(&'e self, into: &mut Vec<&'e WindowCall>) {
        match self {
            Self::Window(call) if into.iter().any(|known| **known == **call) => {}
            Self::Window(call) => into.push(call),
            _ => self.operands().into_iter().for_each(|operand| operand.collect_windows(into)),
        }
    }
}

impl Query {
    /// The expressions in which window functions have a place.
    fn exprs_over_windows(&self) -> impl Iterator<Item = &Expr> {
        let items = self.select.iter().map(|item| &item.expr);
        items.chain(self.order_by.iter().map(|key| &key.expr)).chain(&self.qualify)
    }

    /// True when window functions are computed of its rows or groups.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        self.exprs_over_windows().any(Expr::has_window)
    }

    /// Its window functions, each once.
    pub(crate) fn windows(&self) -> Vec<&WindowCall> {
        let mut windows = Vec::new();
        self.exprs_over_windows().for_each(|expr| expr.collect_windows(&mut windows));
        windows
    }
}

impl Display for WindowCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.function {
            WindowFunction::Aggregate => list(f, &self.operands)?,
            function => {
                write!(f, "{}(", function.name())?;
                list(f, &self.operands)?;
                f.write_str(")")?;
            }
        }
        f.write_str(if self.ignores_nulls { " IGNORE NULLS" } else { "" })?;
        write!(f, " OVER ({})", self.over)
    }
}

impl Display for Window {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut space = "";
        if !self.partition_by.is_empty() {
            f.write_str("PARTITION BY ")?;
            list(f, &self.partition_by)?;
            space = " ";
        }
        if !self.order_by.is_empty() {
            write!(f, "{space}ORDER BY ")?;
            list(f, &self.order_by)?;
            space = " ";
        }
        self.frame.iter().try_for_each(|frame| write!(f, "{space}{frame}"))
    }
}

impl Display for Frame {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let units = match self.units {
            FrameUnits::Rows => "ROWS",
            FrameUnits::Range => "RANGE",
            FrameUnits::Groups => "GROUPS",
        };
        write!(f, "{units} BETWEEN {} AND {}", self.start, self.end)?;
        f.write_str(match self.exclude {
            FrameExclusion::NoOthers => "",
            FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            FrameExclusion::Group => " EXCLUDE GROUP",
            FrameExclusion::Ties => " EXCLUDE TIES",
        })
    }
}

impl Display for FrameBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnboundedPreceding => f.write_str("UNBOUNDED PRECEDING"),
            Self::Preceding(offset) => write!(f, "{offset} PRECEDING"),
            Self::CurrentRow => f.write_str("CURRENT ROW"),
            Self::Following(offset) => write!(f, "{offset} FOLLOWING"),
            Self::UnboundedFollowing => f.write_str("UNBOUNDED FOLLOWING"),
        }
    }
}

impl Display for FrameOffset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(f),
            Self::Interval { months: 0, microseconds } => {
                write!(f, "INTERVAL '{microseconds} microseconds'")
            }
            Self::Interval { months, microseconds: 0 } => write!(f, "INTERVAL '{months} months'"),
            Self::Interval { months, microseconds } => {
                write!(f, "INTERVAL '{months} months {microseconds} microseconds'")
            }
        }
    }
}
