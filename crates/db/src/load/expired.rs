//! Rows that had expired, and whose keys a load gives to new rows: they end with the commit of the
//! load, so that no index entry leads to them any more.

use std::sync::PoisonError;

use esker_table::view::{Resolved, Unit, View};
use esker_table::{Location, Table as TableCore};
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

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

    /// The rows that are still there: others have been dropped. Under the commit lock.
    ///
    /// # Errors
    /// `Conflict` when somebody else has put an entry in the place of one.
    pub fn settle(&self, core: &TableCore) -> Result<Vec<u64>> {
        let view = core.view();
        let mut rows = self.rows();
        let mut kept = Vec::with_capacity(rows.len());
        for (row_id, location) in rows.drain(..) {
            match view.resolve(location) {
                Resolved::Row(unit, row) if unit.deleted(row) == 0 => {
                    kept.push((row_id, Location::new(unit.id(), row)));
                }
                Resolved::Row(..) => {
                    let message = "a key of the load was put meanwhile; try again";
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
                Resolved::Gone | Resolved::Unknown => {}
            }
        }
        kept.sort_unstable();
        kept.dedup();
        *rows = kept;
        Ok(rows.iter().map(|(row_id, _)| *row_id).collect())
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
