//! Many rows removed by their keys, in one commit.

use esker_format::{Schema, Value, ValueRef};

use crate::commit::fit::fit_key;
use crate::commit::row_sink::{RowSink, StagedRows, each_change};
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
        let fitted = fit_keys(&current.schema, keys, (0, check_cancelled));
        let fitted = fitted.collect::<Result<Vec<_>>>()?.into_iter().map(Ok);
        self.change(current, |writer, staged| {
            let mut rows = StagedRows::new(&self.engine, current, (writer, staged));
            rows.may_repeat = true;
            remove_rows(&mut rows, fitted, (0, check_cancelled))
        })
    }
}

/// Keys as the fields take them; the first is number `first` of all.
pub(crate) fn fit_keys<'k, K: AsRef<[Value]>>(
    schema: &'k Schema,
    keys: &'k [K],
    (first, check_cancelled): (usize, CancellationCheck<'k>),
) -> impl Iterator<Item = Result<Vec<ValueRef<'k>>>> {
    keys.iter().enumerate().map(move |(position, key)| {
        check_cancelled(position)?;
        fit_key(schema, key.as_ref()).map_err(|e| e.at(format_args!("key {}", first + position)))
    })
}

/// Removes rows; of each key whether there was one.
pub(crate) fn remove_rows<'k, S: RowSink>(
    sink: &mut S,
    keys: impl Iterator<Item = Result<Vec<ValueRef<'k>>>>,
    (first, check_cancelled): (usize, CancellationCheck<'_>),
) -> Result<Vec<bool>> {
    let remove = |sink: &mut S, key: Vec<ValueRef<'k>>, hash| remove_row(sink, &key, hash);
    each_change(sink, keys, ("key", first, check_cancelled), remove)
}

/// Removes the row with a key; false when there is none.
pub(crate) fn remove_row<S: RowSink>(
    sink: &mut S,
    key: &[ValueRef<'_>],
    hash: u64,
) -> Result<bool> {
    let slot = sink.look(key, hash)?;
    let is_there = S::is_there(&slot);
    if is_there {
        sink.remove(key, slot)?;
    }
    Ok(is_there)
}
