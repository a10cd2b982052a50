//! The one query model, its planner and its vectorised executor.
//!
//! | module | what it defines |
//! |---|---|
//! | [`model`] | [`model::Query`] and its expressions, the operator table |
//! | `semantics` | where NULLs go and what a division by zero is, where a statement chooses |
//! | `view` | queries that are read by a name as tables are |
//! | [`operator`] | the 38 operators that a field can be tested with |
//! | [`json`] | queries as JSON |
//! | `page`, `cursor` | answers page by page, from where the one before ended |
//! | `bound`, `bind` | names to positions, types checked, clauses to steps |
//! | `evaluate` | expressions, computed for the rows of a batch |
//! | `pattern`, `pieces` | LIKE and regular expressions; texts of any size, piece by piece |
//! | `budget`, `limits`, `meter` | the memory and the time that a statement may take |
//! | `temporary_file` | what does not fit in memory |
//! | [`Constraint`] | a condition that is tested on rows before they are stored |
//! | [`GeneratedValue`] | a value of a field, computed of a row before it is stored |
//! | [`ComputedDefault`] | a default of a field, evaluated for each row |
//! | `row_expression` | what such expressions may be, and their stored form |
//! | [`Rollup`] | which queries can be answered by partial aggregates of parts of a table |
//! | `predicate` | filters as conditions that kernels and zone maps decide |
//! | `access_path` | which rows are looked at: all, or those that sorted runs name |
//! | `logical` | joins and subqueries: from several tables to the one source that the rest reads |
//! | `exec` | scanning, filtering, grouping, windows, ordering |
//!
//! A query reads a [`Source`] and runs with [`Options`]: see [`execute`], [`stream`], [`scan`] and
//! [`explain`]; [`plan`] tells what they would do.
//!
//! What the languages leave open, here:
//!
//! * Integers of every type compute as `i64`, checked: overflow is an error, never a wrapped
//!   number. `/` between integers truncates, as in SQLite and PostgreSQL.
//! * Division by zero, and remainder by zero, is NULL, as in SQLite; also of floats. It is an error
//!   where [`Semantics`] say so.
//! * Numbers compare exactly across types. NaN equals itself and is greater than all numbers.
//! * NULL sorts before every value unless the order, or [`Semantics`], say otherwise; NULLs are one
//!   group.
//! * A text constant beside a date, UUID, address, … is one; beside bytes it is its characters in
//!   UTF-8, and `X'ff00'` is written in digits.
//! * `LIKE` regards case, `ILIKE` does not.
//! * Whether a query fails never depends on encodings, zone maps or threads: conditions that may
//!   fail see only the rows that pass all others of the same AND.
#![forbid(unsafe_code)]

mod access_path;
mod activity;
mod bind;
mod bound;
mod budget;
mod computed;
mod computed_default;
mod constraint;
mod cursor;
mod error;
mod evaluate;
mod exec;
mod explain;
mod filter;
mod generated;
pub mod index_expression;
pub mod json;
mod limits;
mod logical;
mod looked_up;
mod meter;
pub mod model;
pub mod operator;
mod options;
mod page;
mod pattern;
mod pieces;
mod predicate;
mod result;
mod rollup;
mod row_expression;
mod row_filter;
mod run;
mod semantics;
mod source;
mod temporary_file;
#[cfg(test)]
#[path = "../tests/memory_source/mod.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod time_zone;
mod view;

/// What tests share names this crate, whether they are within it or not.
#[cfg(test)]
extern crate self as esker_query;

pub use crate::exec::spill::{TEMPORARY_PREFIX, TemporaryFiles};
pub use crate::exec::table_function::{CollectedRows, RowCollector};
pub use crate::source::no_rows::NoRows;
pub use crate::source::one_row::OneRow;
pub use activity::{Activity, SessionActivity, SlowStatementActivity};
pub use budget::Budget;
pub use computed::{Computed, select};
pub use computed_default::ComputedDefault;
pub use constraint::Constraint;
pub use cursor::Cursor;
pub use error::{Error, ErrorKind, Result};
pub use explain::{
    ExplainedInput, ExplainedPart, ExplainedStep, ExplainedSubquery, Explanation, Met, Ran, Reading,
};
pub use generated::GeneratedValue;
pub use index_expression::{IndexComputation, IndexedRows};
pub use limits::{Deadline, Limits};
pub use logical::{Resolved, Tables};
pub use looked_up::{FindRows, NoOtherRows};
pub use model::Query;
#[doc(hidden)]
pub use options::JoinOrder;
pub use options::{IndexUse, Inputs, Options, Sequences, Unnesting};
pub use page::{Page, Paging, page};
pub use result::{AnswerSink, QueryResult, ResultColumn, Statistics};
pub use rollup::partials::{PartialAggregates, WantedRows};
pub use rollup::{Rollup, RollupColumn};
pub use row_expression::FailedRow;
pub use row_filter::RowFilter;
pub use run::{assign, check, constant, execute, explain, plan, scan, stream};
pub use semantics::{DivisionByZero, NullsOrder, RollupUse, Semantics};
pub use source::{
    BitmapRun, Entries, Fragment, GramRun, IndexRun, KeyRange, KeyRows, OperandColumns,
    RollupBlock, RollupBlocks, RollupLayout, RollupRun, RollupShape, RunExpression, RunPath,
    SortedRun, Source, ZONE_ROWS, Zone,
};
pub use time_zone::parse_value;
pub use view::{Seen, VIEW_DEPTH_MAX, View, ViewInput};
