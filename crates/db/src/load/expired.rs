//! Rows that had expired, and whose keys a load gives to new rows: they end with the commit of the
//! load, so that no index entry leads to them any more.

use std::sync::PoisonError;

use esker_table::view::{Resolved, Unit, View};
use esker_table::{Location, Table as TableCore};
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::Result;
use crate::engine::Engine;

/// The rows, by number and place.
#[derive(Default)]
pub(super) struct Expired(Mutex<Vec<(u64, Location)>>);

impl Expired {
    fn rows(&self) -> MutexGuard<'_, Vec<(u64, Location)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a row if it has expired; false when it has not.
    pub fn note(&self, engine: &Engine, view: &View, (unit, row): (&Unit, usize)) -> Result<bool> {
        let Some(field) = view.schema.expiry_field() else { return Ok(false) };
        if !unit.has_expired(row, field, engine.now_us())? {
            return Ok(false);
        }
        self.rows().push((unit.row_id(row)?, Location::new(unit.id(), row)));
        Ok(true)
    }

    /// The rows that are still there: others have been dropped, or ended otherwise. Under the
    /// commit lock.
    pub fn settle(&self, core: &TableCore) -> Vec<u64> {
        let view = core.view();
        let mut rows = self.rows();
        rows.retain(|(_, location)| match view.resolve(*location) {
            Resolved::Row(unit, row) => unit.deleted(row) == 0,
            Resolved::Gone | Resolved::Unknown => false,
        });
        rows.sort_unstable();
        rows.dedup();
        rows.iter().map(|(row_id, _)| *row_id).collect()
    }

    /// Ends them. Under the commit lock, before the commit is published.
    pub fn kill(&self, core: &TableCore, commit: u64) -> esker_table::Result<()> {
        let view = core.view();
        let rows = self.rows();
        for (_, location) in rows.iter() {
            if let Resolved::Row(unit, row) = view.resolve(*location) {
                unit.kill(row, commit)?;
            }
        }
        core.add_live_rows(-i64::try_from(rows.len()).unwrap_or_default());
        Ok(())
    }
}
