//! Answers as structs.

use esker_query::{Query, QueryResult};

use super::binding::places_in;
use super::{Record, RecordReader};
use crate::{Database, Result, Snapshot};

impl Database {
    /// Answers a query with structs, each field from the column of its name; other columns are left
    /// out.
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
    pub fn query_as<T: Record>(&self, query: &Query) -> Result<Vec<T>> {
        records(&self.query(query)?)
    }
}

impl Snapshot {
    /// Answers a query with structs as of this commit: see [`Database::query_as`].
    ///
    /// # Errors
    /// As for [`Database::query_as`].
    pub fn query_as<T: Record>(&self, query: &Query) -> Result<Vec<T>> {
        records(&self.query(query)?)
    }
}

/// The rows of an answer as structs: see [`Database::query_as`]. For answers that come from
/// elsewhere, such as SQL.
///
/// # Errors
/// `InvalidInput` naming the column that is missing, or whose value the struct cannot hold.
pub fn records<T: Record>(answer: &QueryResult) -> Result<Vec<T>> {
    let places = places_in::<T>(&answer.columns)?;
    answer.rows().map(|row| T::read(&mut RecordReader::new(T::FIELDS, &places, &row))).collect()
}
