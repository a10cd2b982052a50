//! Many rows changed or removed by their keys, within a transaction.

use esker_format::{Value, ValueRef};

use super::rows::TransactionTable;
use crate::commit::by_key::{
    FittedUpdate, RowUpdate, assign, fit_keys, fit_updates, remove_rows, update_rows,
};
use crate::limits::{CancellationCheck, without_limits};
use crate::statement::conditional::modify_row;
use crate::{Error, ErrorKind, Limits, Modified, Result, Row};

impl TransactionTable<'_> {
    /// Changes some fields of the rows with some keys, all or none; returns how many of the updates
    /// found a row. Each key comes with the fields and their values; of two with one key the later
    /// one finds what the earlier one made. A key without a row is left out.
    ///
    /// # Errors
    /// As for [`TransactionTable::update`]; the message says in which update.
    pub fn update_many<N: AsRef<str>>(&self, updates: &[RowUpdate<N>]) -> Result<u64> {
        self.update_part(0, updates, &without_limits)
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has changed nothing.
    ///
    /// # Errors
    /// As for [`TransactionTable::update_many`]; `TimedOut`, `Cancelled`.
    pub fn update_many_with<N: AsRef<str>>(
        &self,
        updates: &[RowUpdate<N>],
        limits: &Limits,
    ) -> Result<u64> {
        self.within_limits(limits, |check| self.update_part(0, updates, check))
    }

    /// Does updates, of which the first is number `first` of all.
    pub(crate) fn update_part<N: AsRef<str>>(
        &self,
        first: usize,
        updates: &[RowUpdate<N>],
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<u64> {
        Ok(count(&self.update_each_of(first, updates, check_cancelled)?))
    }

    /// The same; says of each whether there was a row.
    pub(crate) fn update_each_of<N: AsRef<str>>(
        &self,
        first: usize,
        updates: &[RowUpdate<N>],
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<Vec<bool>> {
        let updates = fit_updates(self.schema(), updates, &no_hash, (first, check_cancelled));
        self.change_rows(|rows| update_rows(rows, updates, (first, check_cancelled)))
    }

    /// Removes the rows with some keys, all or none; returns how many there were.
    ///
    /// # Errors
    /// As for [`TransactionTable::delete`]; the message says which key.
    pub fn delete_many(&self, keys: &[Vec<Value>]) -> Result<u64> {
        self.delete_part(0, keys, &without_limits)
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has removed nothing.
    ///
    /// # Errors
    /// As for [`TransactionTable::delete_many`]; `TimedOut`, `Cancelled`.
    pub fn delete_many_with(&self, keys: &[Vec<Value>], limits: &Limits) -> Result<u64> {
        self.within_limits(limits, |check| self.delete_part(0, keys, check))
    }

    /// Removes rows by keys, of which the first is number `first` of all.
    pub(crate) fn delete_part(
        &self,
        first: usize,
        keys: &[Vec<Value>],
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<u64> {
        let keys = fit_keys(self.schema(), keys, &no_hash, (first, check_cancelled));
        self.change_rows(|rows| Ok(count(&remove_rows(rows, keys, (first, check_cancelled))?)))
    }
}

impl TransactionTable<'_> {
    /// Changes some fields of the row with a key, which was read before; false when it is gone.
    pub(crate) fn update_seen(
        &self,
        key: &[Value],
        seen: &Row,
        changes: &[(&str, Value)],
    ) -> Result<bool> {
        let FittedUpdate { key, changes } = FittedUpdate::of(self.schema(), key, changes)?;
        let make = |row: &[Value]| {
            let mut pairs = row.iter().zip(seen.values());
            if !pairs.all(|(now, seen)| now.as_ref().is_identical(seen.as_ref())) {
                let message = "the transaction was changed by another thread meanwhile";
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            let mut row = row.to_vec();
            assign(&mut row, changes.clone());
            Ok(Some(row))
        };
        let modified = self.change_rows(|rows| modify_row(rows, &key, None, &make))?;
        Ok(modified != Modified::Absent)
    }
}

/// Rows of a transaction are looked up by their keys themselves.
fn no_hash(_key: &[ValueRef<'_>]) -> u64 {
    0
}

fn count(found: &[bool]) -> u64 {
    found.iter().copied().map(u64::from).sum()
}
