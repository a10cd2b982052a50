//! Removing many rows of a table within a transaction: those of a range of keys, or all.
//!
//! What is removed is a change of each key by itself, so that of two transactions that remove or
//! change the same row the first to commit wins. A row that comes into the range meanwhile stays:
//! under `Serializable` it is a conflict, since the range counts as read.

use std::ops::RangeBounds;

use esker_format::{Value, ValueRef};

use super::rows::TransactionTable;
use crate::Result;

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
        let positions = self.schema().key_positions();
        let mut keys = Vec::new();
        for row in self.range(bounds)? {
            let row = row?;
            let values = row.values();
            keys.push(positions.iter().filter_map(|p| values.get(*p)).cloned().collect());
        }
        self.delete_keys(&keys)
    }

    /// Removes all rows that the transaction sees; returns how many.
    ///
    /// # Errors
    /// As for [`TransactionTable::delete`]; nothing is removed then.
    pub fn clear(&self) -> Result<u64> {
        self.transaction.expect_writes()?;
        let positions = self.schema().key_positions();
        let mut keys: Vec<Vec<Value>> = Vec::new();
        self.as_it_is()?.for_each(|row_id, values| {
            keys.push(match positions {
                [] => vec![Value::Uint(row_id)],
                _ => {
                    let values = positions.iter().filter_map(|p| values.get(*p));
                    values.map(|value| ValueRef::to_owned(*value)).collect()
                }
            });
            Ok(())
        })?;
        self.delete_keys(&keys)
    }

    fn delete_keys(&self, keys: &[Vec<Value>]) -> Result<u64> {
        let mut state = self.transaction.state();
        self.done(&mut state, |state| {
            let mut removed = 0;
            for key in keys {
                let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
                let seen = self.see(state, &key)?;
                if seen.row.is_some() {
                    self.remove(state, &key, &seen)?;
                    removed += 1;
                }
            }
            Ok(removed)
        })
    }
}
