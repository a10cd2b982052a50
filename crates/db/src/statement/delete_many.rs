//! Many rows removed by their keys, in one commit.

use esker_format::{Value, ValueRef};

use crate::commit::by_key::{fit_keys, remove_rows};
use crate::commit::row_sink::StagedRows;
use crate::limits::{CancellationCheck, within_limits, without_limits};
use crate::table_version::TableVersion;
use crate::{Limits, Result, Table};

impl Table {
    /// Removes the rows with some keys, all in one commit; returns how many there were.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build()?;
    /// let table = db.create_table("t", schema)?;
    /// table.insert_many(&[vec![1i64.into()], vec![2i64.into()], vec![3i64.into()]])?;
    /// let keys = [vec![1i64.into()], vec![3i64.into()], vec![1i64.into()], vec![9i64.into()]];
    /// assert_eq!(table.delete_many(&keys)?, 2);
    /// assert_eq!(table.count()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` when a key does not fit the schema; the message says which. `OverBudget` when
    /// there are more than one commit may have. Nothing is removed then.
    pub fn delete_many(&self, keys: &[Vec<Value>]) -> Result<u64> {
        Ok(self.delete_each(keys)?.into_iter().map(u64::from).sum())
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has removed nothing.
    ///
    /// # Errors
    /// As for [`Table::delete_many`]; `TimedOut`, `Cancelled`.
    pub fn delete_many_with(&self, keys: &[Vec<Value>], limits: &Limits) -> Result<u64> {
        let found = within_limits(&self.engine, limits, |check_cancelled| {
            self.attempt(|current| self.delete_batch(current, keys, check_cancelled))
        })?;
        Ok(found.into_iter().map(u64::from).sum())
    }

    /// As [`Table::delete_many`]; says of each key whether there was a row.
    #[doc(hidden)]
    pub fn delete_each<K: AsRef<[Value]>>(&self, keys: &[K]) -> Result<Vec<bool>> {
        self.attempt(|current| self.delete_batch(current, keys, &without_limits))
    }

    fn delete_batch<K: AsRef<[Value]>>(
        &self,
        current: &TableVersion,
        keys: &[K],
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<Vec<bool>> {
        let hash_of = |key: &[ValueRef<'_>]| current.hash(key);
        let fitted = fit_keys(&current.schema, keys, &hash_of, (0, check_cancelled));
        let fitted = fitted.collect::<Result<Vec<_>>>()?.into_iter().map(Ok);
        self.change(current, |writer, staged| {
            let mut rows = StagedRows::new(&self.engine, current, (writer, staged));
            rows.may_repeat = true;
            remove_rows(&mut rows, fitted, (0, check_cancelled))
        })
    }
}
