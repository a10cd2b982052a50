//! Applying an update to the row of a key.

use esker_format::Value;
use esker_query::model::Expr;

use super::{Bound, Update};
use crate::{Modified, Result, Table, TransactionTable};

impl Table {
    /// Applies an update to the row with a key, as one: no commit changes the row between its
    /// reading and its writing. Returns the row before and the row now.
    ///
    /// ```
    /// use esker::{DataType, Modified, Options, Schema, Update};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("name", DataType::Text).field("n", DataType::I64);
    /// let counters = db.create_table("counters", schema.primary_key(["name"]).build()?)?;
    /// counters.insert(&["hits".into(), 0.into()])?;
    /// counters.apply(&["hits".into()], &Update::new().increment("n", 5))?;
    /// assert_eq!(counters.get(&["hits".into()])?.unwrap().get("n"), Some(&5.into()));
    /// let absent = counters.apply(&["misses".into()], &Update::new().increment("n", 1))?;
    /// assert_eq!(absent, Modified::Absent);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming the operator and the path of what cannot be done: an unknown field, a
    /// value of another type than the operator takes, an overflow, operators on
    /// one place, a check that the new row fails; `AlreadyExists` for a unique value that another
    /// row has. Nothing is changed then.
    pub fn apply(&self, key: &[Value], update: &Update) -> Result<Modified> {
        self.apply_to(key, None, update)
    }

    /// The same, if a condition is true for the row.
    ///
    /// # Errors
    /// As for [`Table::apply`]; `InvalidInput` when the condition does not fit the schema or is
    /// none.
    pub fn apply_if(&self, key: &[Value], update: &Update, condition: &Expr) -> Result<Modified> {
        self.apply_to(key, Some(condition), update)
    }

    fn apply_to(
        &self,
        key: &[Value],
        condition: Option<&Expr>,
        update: &Update,
    ) -> Result<Modified> {
        self.attempt(|current| {
            let bound = Bound::new(&current.schema, update, &self.engine)?;
            if bound.changes_key(&current.schema) {
                return self.transacted(|table| table.apply_to(key, condition, update));
            }
            self.modify_once(current, key, condition, &|row| bound.apply(row).map(Some))
        })
    }
}

impl TransactionTable<'_> {
    /// Applies an update to the row with a key, as the transaction sees it. Returns the row before
    /// and the row now.
    ///
    /// # Errors
    /// As for [`Table::apply`], but that what others commit meanwhile, and unique values, are
    /// reported by [`crate::Transaction::commit`].
    pub fn apply(&self, key: &[Value], update: &Update) -> Result<Modified> {
        self.apply_to(key, None, update)
    }

    fn apply_to(
        &self,
        key: &[Value],
        condition: Option<&Expr>,
        update: &Update,
    ) -> Result<Modified> {
        let bound = Bound::new(self.schema(), update, self.transaction.engine())?;
        self.modify(key, condition, &|row| bound.apply(row).map(Some))
    }
}
