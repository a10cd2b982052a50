//! Removing many rows of a table within a transaction: those of a range of keys, or all.
//!
//! What is removed is a change of each key by itself, so that of two transactions that remove or
//! change the same row the first to commit wins. A row that comes into the range meanwhile stays:
//! under `Serializable` it is a conflict, since the range counts as read.

use std::ops::RangeBounds;

use esker_format::{Value, ValueRef};

use super::rows::TransactionTable;
use crate::Result;
use crate::commit::by_key::remove_row;

impl TransactionTable<'_> {
    /// Removes the rows whose keys lie within bounds; returns how many. A bound has the values of
    /// the first fields of the key, or of all, as for [`TransactionTable::range`].
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("hour", DataType::I64).primary_key(["hour"]);
    /// let readings = db.create_table("readings", schema.build()?)?;
    /// readings.insert_many(&[vec![1i64.into()], vec![2i64.into()], vec![3i64.into()]])?;
    /// let transaction = db.begin()?;
    /// let bound: Vec<Value> = vec![3i64.into()];
    /// assert_eq!(transaction.table("readings")?.delete_range(..bound)?, 2);
    /// transaction.commit()?;
    /// assert_eq!(readings.count()?, 1);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`TransactionTable::range`] and [`TransactionTable::delete`]; nothing is removed
    /// then.
    pub fn delete_range<R: RangeBounds<Vec<Value>>>(&self, bounds: R) -> Result<u64> {
        self.transaction.expect_writes()?;
        // As they are now: what is removed meanwhile does not disturb the walk.
        let rows = self.range(bounds)?;
        let positions = self.schema().key_positions();
        self.change_rows(|sink| {
            let mut removed = 0;
            for row in rows {
                let row = row?;
                let values = row.values();
                let key = positions.iter().filter_map(|p| values.get(*p)).map(Value::as_ref);
                removed += u64::from(remove_row(sink, &key.collect::<Vec<_>>(), 0)?);
            }
            Ok(removed)
        })
    }

    /// Removes all rows that the transaction sees; returns how many.
    ///
    /// # Errors
    /// As for [`TransactionTable::delete`]; nothing is removed then.
    pub fn clear(&self) -> Result<u64> {
        self.transaction.expect_writes()?;
        let rows = self.as_it_is()?;
        let positions = self.schema().key_positions();
        self.change_rows(|sink| {
            let mut removed = 0;
            rows.for_each(|row_id, values| {
                let key = match positions {
                    [] => vec![ValueRef::Uint(row_id)],
                    _ => positions.iter().filter_map(|p| values.get(*p)).copied().collect(),
                };
                removed += u64::from(remove_row(sink, &key, 0)?);
                Ok(())
            })?;
            Ok(removed)
        })
    }
}
