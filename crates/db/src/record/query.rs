//! Answers as structs, tuples and values.

use std::sync::Arc;

use esker_query::{Query, QueryResult, ResultColumn};

use super::FromRow;
use crate::{Database, Result, Snapshot};

impl Database {
    /// Answers a query with structs, each field from the column of its name; other columns are left
    /// out. Also with tuples and single values: see [`FromRow`].
    ///
    /// ```
    /// use esker::{Options, Query, Record};
    /// use esker_query::model::{Expr, Operator};
    ///
    /// #[derive(Debug, PartialEq, Record)]
    /// struct Person {
    ///     #[esker(key)]
    ///     name: String,
    ///     born: i32,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// let people = db.create_table_of::<Person>("people")?;
    /// people.insert(&Person { name: "Ada".into(), born: 1815 })?;
    /// people.insert(&Person { name: "Grace".into(), born: 1906 })?;
    /// let born = Expr::field("born").binary(Operator::Lt, Expr::literal(1900i64));
    /// let query = Query { filter: Some(born), ..Query::table("people") };
    /// assert_eq!(db.query_as::<Person>(&query)?, [Person { name: "Ada".into(), born: 1815 }]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::query`]; `InvalidInput` naming the column that is missing, or whose value
    /// the struct cannot hold.
    pub fn query_as<T: FromRow>(&self, query: &Query) -> Result<Vec<T>> {
        records(&self.query(query)?)
    }
}

impl Snapshot {
    /// Answers a query with structs as of this commit: see [`Database::query_as`].
    ///
    /// # Errors
    /// As for [`Database::query_as`].
    pub fn query_as<T: FromRow>(&self, query: &Query) -> Result<Vec<T>> {
        records(&self.query(query)?)
    }
}

/// The rows of an answer as structs, tuples or values: see [`Database::query_as`]. For answers that
/// come from elsewhere, such as SQL.
///
/// # Errors
/// `InvalidInput` naming the column that is missing, or whose value the struct cannot hold.
pub fn records<T: FromRow>(answer: &QueryResult) -> Result<Vec<T>> {
    let columns: Arc<[ResultColumn]> = answer.columns.as_slice().into();
    let places = T::places(&columns)?;
    answer.rows().map(|row| T::from_row(&columns, &places, &row)).collect()
}
