//! Applying an update to every row that matches.

use esker_query::model::Expr;

use super::Update;
use crate::{Database, Result, Transaction};

impl Database {
    /// Applies an update to every row of a table for which a condition is true, all of them or
    /// none; returns how many. Without a condition, to every row.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Update};
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    /// let table = db.create_table("t", schema.primary_key(["id"]).build()?)?;
    /// table.insert_many(&[vec![1.into(), 5.into()], vec![2.into(), 50.into()]])?;
    /// let small = Expr::field("n").binary(Operator::Lt, Expr::literal(10));
    /// assert_eq!(db.apply_where("t", Some(&small), &Update::new().increment("n", 1))?, 1);
    /// assert_eq!(table.get(&[1.into()])?.unwrap().get("n"), Some(&6.into()));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::change`] and [`crate::Table::apply`].
    pub fn apply_where(
        &self,
        table: &str,
        condition: Option<&Expr>,
        update: &Update,
    ) -> Result<u64> {
        crate::statement::apply_to_matching(self, table, condition, update)
    }
}

impl Transaction {
    /// Applies an update to every row of a table for which a condition is true, as the transaction
    /// sees them: see [`Database::apply_where`].
    ///
    /// # Errors
    /// As for [`Transaction::change`] and [`crate::Table::apply`].
    pub fn apply_where(
        &self,
        table: &str,
        condition: Option<&Expr>,
        update: &Update,
    ) -> Result<u64> {
        self.settle()?;
        crate::statement::apply_within(self, table, condition, update)
    }
}
