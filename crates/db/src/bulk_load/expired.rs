//! Rows that had expired, and whose keys a load gives to new rows: they end with the commit of the
//! load, so that no index entry leads to them any more.

use std::sync::{Arc, PoisonError};

use esker_table::view::{RowGroup, View};
use esker_table::{Location, PinnedLocations, Table as TableCore};
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// The rows, each by its number and that of its place.
pub(super) struct Expired {
    rows: Mutex<Vec<(u64, usize)>>,
    places: Arc<PinnedLocations>,
}

impl Expired {
    /// None yet.
    pub fn new(core: &Arc<TableCore>) -> Self {
        Self { rows: Mutex::default(), places: PinnedLocations::new(core) }
    }

    fn rows(&self) -> MutexGuard<'_, Vec<(u64, usize)>> {
        // default: a panic leaves what is locked as it was, or whole
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a row if it has expired; false when it has not. Under the commit lock.
    pub fn note(
        &self,
        engine: &Engine,
        view: &View,
        (row_group, row): (&RowGroup, usize),
    ) -> Result<bool> {
        let Some(field) = view.schema.expiry_field() else { return Ok(false) };
        if !row_group.has_expired(row, field, engine.now().of(&view.schema))? {
            return Ok(false);
        }
        let location = Location::new(row_group.id(), row);
        let nowhere = || Error::corrupt(format!("{location:?} leads nowhere"));
        let place = self.places.keep(location).ok_or_else(nowhere)?;
        self.rows().push((row_group.row_id(row)?, place));
        Ok(true)
    }

    /// The rows that are still there: others have been dropped. Under the commit lock.
    ///
    /// # Errors
    /// `Conflict` when somebody else has put an entry in the place of one.
    pub fn settle(&self) -> Result<Vec<u64>> {
        let (mut rows, located) = (self.rows(), self.places.locate());
        let mut kept = Vec::with_capacity(rows.len());
        for (row_id, place) in rows.drain(..) {
            match located.get(place) {
                Some((row_group, row)) if row_group.is_alive(row) => kept.push((row_id, place)),
                // Somebody else has ended it.
                Some((row_group, row)) if row_group.has_ended(row) => {}
                Some(_) => {
                    let message = "a key of the load was put meanwhile; try again";
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
                None => {}
            }
        }
        kept.sort_unstable();
        kept.dedup_by_key(|(row_id, _)| *row_id);
        *rows = kept;
        Ok(rows.iter().map(|(row_id, _)| *row_id).collect())
    }

    /// Ends them. Under the commit lock, before the commit is published.
    pub fn mark_deleted(&self, core: &TableCore, commit: u64) -> esker_table::Result<()> {
        let (rows, located) = (self.rows(), self.places.locate());
        for (row_group, row) in rows.iter().filter_map(|(_, place)| located.get(*place)) {
            // The load may have replaced it, too, before it expired.
            if row_group.is_alive(row) {
                row_group.mark_deleted(row, commit)?;
                core.add_live_rows(-1);
            }
        }
        Ok(())
    }
}
