//! Many rows changed or removed by their keys, within a transaction.

use esker_format::Value;

use super::rows::{Seen, TransactionTable};
use crate::commit::fit::fit_key;
use crate::limits::{CancellationCheck, without_limits};
use crate::statement::update_many::RowUpdate;
use crate::table::fit_changes;
use crate::{Limits, Result};

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
        let mut state = self.transaction.state();
        self.done(&mut state, |state| {
            let mut found = 0;
            for (position, (key, changes)) in updates.iter().enumerate() {
                check_cancelled(position)?;
                let mut update = || -> Result<bool> {
                    let key = fit_key(self.schema(), key)?;
                    let fitted = fit_changes(self.schema(), changes)?;
                    let seen = self.see(state, &key)?;
                    let Seen { row: Some(mut row), base, new_row_id } = seen else {
                        return Ok(false);
                    };
                    for (position, value) in fitted {
                        if let Some(slot) = row.get_mut(position) {
                            *slot = value;
                        }
                    }
                    self.replace(state, &key, (row, base, new_row_id)).map(|()| true)
                };
                let updated =
                    update().map_err(|e| e.at(format_args!("update {}", first + position)))?;
                found += u64::from(updated);
            }
            Ok(found)
        })
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
        let mut state = self.transaction.state();
        self.done(&mut state, |state| {
            let mut found = 0;
            for (position, key) in keys.iter().enumerate() {
                check_cancelled(position)?;
                let mut delete = || -> Result<bool> {
                    let key = fit_key(self.schema(), key)?;
                    let seen = self.see(state, &key)?;
                    match seen.row {
                        Some(_) => self.remove(state, &key, &seen).map(|()| true),
                        None => Ok(false),
                    }
                };
                let deleted =
                    delete().map_err(|e| e.at(format_args!("key {}", first + position)))?;
                found += u64::from(deleted);
            }
            Ok(found)
        })
    }
}
