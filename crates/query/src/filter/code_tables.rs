//! Outcomes of patterns per dictionary code, computed once per dictionary and query.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use esker_format::Dictionary;

use super::text::outcomes;
use crate::Result;
use crate::meter::Meter;
use crate::predicate::Test;

/// Tables of outcomes, by the addresses of the test and the dictionary: both stay where they are
/// while a query runs.
#[derive(Debug, Default)]
pub(crate) struct CodeTables {
    tables: Mutex<BTreeMap<[usize; 4], Arc<Vec<bool>>>>,
}

impl CodeTables {
    /// Forgets everything, before what the addresses stand for goes away.
    pub(crate) fn clear(&self) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The outcome of `test` for every code.
    ///
    /// # Errors
    /// When the statement is to end.
    pub(super) fn get(
        &self,
        test: &Test,
        dictionary: Dictionary<'_>,
        meter: &Meter<'_>,
    ) -> Result<Arc<Vec<bool>>> {
        let key = [
            std::ptr::from_ref(test).addr(),
            dictionary.offsets.as_ptr().addr(),
            dictionary.offsets.len(),
            dictionary.heap.as_ptr().addr(),
        ];
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(&key) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(outcomes(&test.condition, dictionary, meter)?);
        tables.insert(key, Arc::clone(&table));
        Ok(table)
    }
}
