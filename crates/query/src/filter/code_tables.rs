//! Outcomes of patterns per dictionary code, computed once per dictionary and query.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use esker_format::Dictionary;

use crate::Result;
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
    /// What `passes` fails with.
    pub(super) fn get(
        &self,
        test: &Test,
        dictionary: Dictionary<'_>,
        passes: impl Fn(&[u8]) -> Result<bool>,
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
        let outcomes = (0..dictionary.len()).map(|code| passes(dictionary.get(code)));
        let table = Arc::new(outcomes.collect::<Result<_>>()?);
        tables.insert(key, Arc::clone(&table));
        Ok(table)
    }
}
