//! SQL text to the query model.
//!
//! `SELECT` over a table, joined tables or subqueries: columns, expressions, aliases, `DISTINCT`,
//! `WHERE`, `GROUP BY`, `HAVING`, `ORDER BY` (expressions, aliases, positions, `NULLS FIRST`),
//! `LIMIT`, `OFFSET`; window functions, `WINDOW` and `QUALIFY`; `WITH`, `VALUES`, `UNION`,
//! `INTERSECT` and `EXCEPT`.
//! And `INSERT` (rows or a query, `OR REPLACE`, `ON CONFLICT DO NOTHING` or `DO UPDATE`), `UPDATE`
//! and `DELETE` (with `ORDER BY`, `LIMIT` and `RETURNING`), `CREATE TABLE`, `DROP TABLE` and
//! `TRUNCATE TABLE`: see [`Statement`]. [`Sql`] runs and prepares statements on a database,
//! [`Session`] runs them one after another, with `BEGIN`, `COMMIT`, `ROLLBACK` and savepoints.
//! Everything else that the grammar knows is refused by name: nothing is ignored.
//!
//! ```
//! let query = esker_sql::parse("SELECT origin, count(*) FROM flights GROUP BY 1 LIMIT 3")?;
//! assert_eq!(query.table, "flights");
//! let error = esker_sql::parse("SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES").unwrap_err();
//! assert!(error.to_string().starts_with("WITH TIES is not supported yet"));
//! # Ok::<(), esker_sql::Error>(())
//! ```
#![forbid(unsafe_code)]

mod aggregate;
mod aggregate_in_words;
mod alter;
#[cfg(feature = "async")]
mod asynchronous;
mod call;
mod change;
mod changes_table;
mod channel;
mod collation;
mod column;
mod comment;
mod conflict_target;
mod copy;
mod cursor;
mod definition;
mod dialect;
mod erase;
mod explain;
mod expression;
mod file_table;
mod group;
mod identity_option;
mod index;
mod interval;
mod json_path;
mod list;
mod list_query;
mod literal;
mod looked_up;
mod maintenance;
mod merge;
mod named_statement;
mod number;
mod overriding;
mod parameter;
mod parameters;
mod pattern_list;
mod place;
mod placed;
mod pragma;
mod prepared;
mod qualified_name;
mod reference;
mod relation;
mod run;
mod schema;
mod script;
mod search_path;
mod select;
mod sequence;
mod session;
mod session_tables;
mod setting;
mod show;
mod similar_to;
mod statement;
mod summary;
mod table;
mod table_as;
mod table_function;
mod table_option;
mod temporary;
#[cfg(test)]
mod tests;
mod transaction;
mod type_name;
mod view;
mod view_option;
mod watch;
mod window;

pub use alter::OptionalStep;
#[cfg(feature = "async")]
pub use asynchronous::{AsyncDatabase, AsyncPrepared, AsyncRows};
pub use channel::ChannelStatement;
pub use comment::{CommentStatement, Commented};
pub use copy::{CopiedFile, CopyStatement};
pub use cursor::CursorStatement;
pub use esker_query::{Error, ErrorKind, Result};
pub use explain::{Explain, ExplainFormat};
pub use index::parse_index;
pub use maintenance::MaintenanceStatement;
pub use named_statement::NamedStatement;
pub use parameter::{expect_values, named_parameters};
pub use parameters::{Named, Parameters};
pub use place::place;
pub use prepared::Prepared;
pub use run::{Outcome, Sql, run};
pub use script::{is_complete, open_quote, statements};
pub use sequence::RestartStatement;
pub use session::Session;
pub use setting::SettingStatement;
pub use statement::{Statement, parse, parse_statement, parse_with_parameters};
pub use temporary::OnCommit;
pub use transaction::TransactionStatement;
pub use watch::{WatchStatement, parse_condition};

/// The programs in the guide are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/sql.md")]
struct Guide;

/// So are those of the guide's first page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/start.md")]
struct StartGuide;
