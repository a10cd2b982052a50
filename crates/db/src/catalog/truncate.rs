//! Removing all rows of a table at once: another table takes its place.

use std::sync::Arc;

use esker_format::TableId;
use esker_format::edit::Edit;
use esker_log::sabotage::planted;
use esker_table::Table as TableCore;
use esker_table::view::View;
use esker_vfs::sync::MutexGuard;

use crate::commit::journal::Ticket;
use crate::engine::{Catalogue, Engine, no_table};
use crate::{Error, ErrorKind, Result, Table};

impl Engine {
    /// Removes all rows of the table that has a name.
    pub(crate) fn truncate(self: &Arc<Self>, name: &str) -> Result<()> {
        let (catalogue, core) = self.lock_table(name)?;
        self.truncate_locked(catalogue, core)
    }

    /// Removes all rows of the table that a handle stands for, whatever its name is now.
    pub(crate) fn truncate_core(self: &Arc<Self>, table: &Table) -> Result<()> {
        let catalogue = self.lock_for_change()?;
        let core = Arc::clone(table.core());
        if !catalogue.tables.contains_key(&core.id()) {
            drop(catalogue);
            self.acknowledge_published()?;
            return Err(Error::new(ErrorKind::NotFound, "the table has been dropped"));
        }
        self.truncate_locked(catalogue, core)
    }

    fn truncate_locked(
        self: &Arc<Self>,
        mut catalogue: MutexGuard<'_, Catalogue>,
        old: Arc<TableCore>,
    ) -> Result<()> {
        let (ticket, index_file) = {
            let replacement = TableId(catalogue.next_table);
            // Nothing may fail once the frame has its number.
            let new = self.new_table(replacement, &old.name(), (*old.schema()).clone())?;
            let edit = Edit::TruncateTable { table: old.id(), replacement };
            let ticket = self.append_edit(&edit)?;
            catalogue.next_table += 1;
            let entry = catalogue.tables.remove(&old.id());
            self.add_table(&mut catalogue, &new, ticket.commit());
            old.set_successor(new);
            let ticket = self.publish_edit(&catalogue, ticket);
            (ticket, entry.map_or(0, |entry| entry.index_file))
        };
        drop(catalogue);
        if planted("truncate_before_durable") {
            old.view().segments().for_each(|segment| segment.mark_for_deletion());
            old.set_view(View::empty(old.schema()));
        }
        self.acknowledge(ticket)?;
        self.remove_files_of(&old, index_file);
        Ok(())
    }

    /// The commit lock, and the table that has a name.
    pub(crate) fn lock_table(
        &self,
        name: &str,
    ) -> Result<(MutexGuard<'_, Catalogue>, Arc<TableCore>)> {
        let catalogue = self.lock_for_change()?;
        let history = self.names.load();
        match history.newest().get(name) {
            Some(core) => Ok((catalogue, Arc::clone(core))),
            None => {
                drop(catalogue);
                self.acknowledge_published()?;
                Err(no_table(name, history.newest()))
            }
        }
    }

    /// Publishes an edit of the catalogue that has been applied.
    pub(crate) fn publish_edit(&self, catalogue: &Catalogue, ticket: Ticket) -> Ticket {
        self.recount_frozen(catalogue);
        self.watermarks.publish(ticket.commit());
        self.wake_maintenance();
        ticket
    }
}
