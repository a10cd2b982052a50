//! Tables that one commit creates, alters and drops, together with changes of rows.
//!
//! ```text
//! commit lock ─► expect (names free, tables as they were) ─► enter what is new ─► stage rows
//!   ─► frame: drops, alterations, creations, then rows ─► publish: names, schemas, rows
//! ```
//!
//! Invariants:
//! 1. What is entered is taken out again before the lock is let go, unless the frame has its
//!    number: no other reader meets a table that no commit has made.
//! 2. The rows of a table that is altered are of the new schema, and come after it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::edit::Edit;
use esker_format::{Moment, Schema, TableId};
use esker_log::Purpose;
use esker_table::{Table as TableCore, TableWriter};
use esker_vfs::sync::AtomicU64;

use crate::catalog::names::Names;
use crate::commit::log_reserve::{purpose_of_all, purpose_of_change};
use crate::commit::pipeline::entry;
use crate::engine::{Catalogue, Engine, TableEntry};
use crate::{Error, ErrorKind, Result};

/// What a commit makes of the tables themselves.
#[derive(Default)]
pub(crate) struct NewDefinitions {
    pub created: Vec<CreatedTable>,
    pub altered: Vec<AlteredTable>,
    pub dropped: Vec<DroppedTable>,
}

/// A table that comes.
pub(crate) struct CreatedTable {
    pub core: Arc<TableCore>,
    pub next_row_id: u64,
}

/// A table that gets another schema, another name, or both.
pub(crate) struct AlteredTable {
    pub core: Arc<TableCore>,
    /// How it was when that was decided.
    pub before: Described,
    pub after: Described,
    /// No row may have come or changed after this commit: they were tested.
    pub tested_at: Option<u64>,
}

/// A table that goes.
pub(crate) struct DroppedTable {
    pub core: Arc<TableCore>,
    pub before: Described,
    /// The file with its index, to be removed; 0 for none.
    index_file: AtomicU64,
}

/// The name and the schema of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Described {
    pub name: String,
    pub schema: Arc<Schema>,
}

impl DroppedTable {
    pub fn new(core: Arc<TableCore>, before: Described) -> Self {
        Self { core, before, index_file: AtomicU64::new(0) }
    }
}

impl NewDefinitions {
    /// True when the tables stay as they are.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.altered.is_empty() && self.dropped.is_empty()
    }

    /// What the commit is for, but for its rows.
    pub fn purpose(&self) -> Purpose {
        let created = self.created.iter().map(|_| Purpose::Adds);
        let altered = self
            .altered
            .iter()
            .map(|table| purpose_of_change(&table.before.schema, &table.after.schema));
        purpose_of_all(created.chain(altered))
    }

    /// The schema that a table has until the commit, where it gets another.
    pub fn schema_before(&self, table: TableId) -> Option<&Arc<Schema>> {
        let altered = self.altered.iter().find(|altered| altered.core.id() == table);
        altered.map(|altered| &altered.before.schema)
    }

    /// A table that comes, by its number.
    pub fn created(&self, table: TableId) -> Option<&Arc<TableCore>> {
        self.created.iter().map(|created| &created.core).find(|core| core.id() == table)
    }

    /// Refuses what others have come before, and enters the new tables, which have no name yet.
    pub(crate) fn enter(&self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        for AlteredTable { core, before, tested_at, .. } in &self.altered {
            expect_as_it_was(engine, core, before)?;
            let changed_at = entry(catalogue, core.id())?.changed_at;
            if tested_at.is_some_and(|commit| changed_at > commit) {
                let name = &before.name;
                let why = "rows were changed after the transaction had tested them";
                return Err(conflict(format!("table {name:?}: {why}")));
            }
        }
        for DroppedTable { core, before, .. } in &self.dropped {
            expect_as_it_was(engine, core, before)?;
        }
        self.names(engine.names.load().newest())?;
        for CreatedTable { core, .. } in &self.created {
            engine.expect_sequences(&core.schema())?;
        }
        for CreatedTable { core, next_row_id } in &self.created {
            let writer = TableWriter::new(Arc::clone(core), *next_row_id);
            catalogue.tables.insert(core.id(), TableEntry::new(core.name().to_string(), writer));
        }
        Ok(())
    }

    /// Takes out what was entered.
    pub(crate) fn leave(&self, catalogue: &mut Catalogue) {
        for CreatedTable { core, .. } in &self.created {
            catalogue.tables.remove(&core.id());
        }
    }

    /// The names that there are afterwards.
    fn names(&self, newest: &Names) -> Result<Names> {
        let mut names = newest.clone();
        let gone = self.dropped.iter().map(|table| &table.before);
        for before in gone.chain(self.altered.iter().map(|table| &table.before)) {
            names.remove(&before.name);
        }
        let created = self.created.iter().map(|table| (table.core.name().to_string(), &table.core));
        let altered = self.altered.iter().map(|table| (table.after.name.clone(), &table.core));
        for (name, core) in created.chain(altered) {
            if names.contains_key(&name) {
                let why = "was created by another commit since the transaction began";
                return Err(conflict(format!("table {name:?} {why}")));
            }
            names.insert(name, Arc::clone(core));
        }
        Ok(names)
    }

    /// What the log says of them.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        let dropped = self.dropped.iter().map(|table| Edit::DropTable { table: table.core.id() });
        let altered = self.altered.iter().map(|table| {
            let Described { name, schema } = table.after.clone();
            Edit::AlterTable { table: table.core.id(), name, schema: (*schema).clone() }
        });
        let created = self.created.iter().map(|table| {
            let (name, schema) = (table.core.name().to_string(), (*table.core.schema()).clone());
            Edit::CreateTable { table: table.core.id(), name, schema }
        });
        dropped.chain(altered).chain(created).collect()
    }

    /// Makes them real, once the frame has its number. Rows come afterwards.
    pub(crate) fn apply(
        &self,
        engine: &Engine,
        catalogue: &mut Catalogue,
        commit: u64,
    ) -> Result<()> {
        let names = self.names(engine.names.load().newest())?;
        for DroppedTable { core, index_file, .. } in &self.dropped {
            core.set_dropped();
            let entry = catalogue.tables.remove(&core.id());
            index_file.store(entry.map_or(0, |entry| entry.index_file), Ordering::Relaxed);
        }
        for AlteredTable { core, before, after, .. } in &self.altered {
            let entry = entry(catalogue, core.id())?;
            if before.schema != after.schema {
                // By which field its rows expire is changed outside of transactions.
                entry.writer.alter(Arc::clone(&after.schema), &[], (commit, Moment::LAST));
            }
            if before.name != after.name {
                after.name.clone_into(&mut entry.name);
                core.rename(&after.name);
            }
        }
        for CreatedTable { core, .. } in &self.created {
            core.set_created_at(commit);
        }
        engine.change_names(commit, |newest| *newest = names);
        engine.recount_frozen(catalogue);
        Ok(())
    }

    /// Removes the files of what was dropped, and builds new indexes, once the commit is durable.
    pub(crate) fn settle(&self, engine: &Arc<Engine>) {
        for DroppedTable { core, index_file, .. } in &self.dropped {
            engine.remove_files_of(core, index_file.load(Ordering::Relaxed));
        }
        for AlteredTable { core, before, after, .. } in &self.altered {
            let is_known = |id| before.schema.indexes().iter().any(|index| index.id == id);
            if after.schema.indexes().iter().any(|index| !is_known(index.id)) {
                engine.build_runs_or_later(core);
            }
        }
    }
}

/// Refuses a table that is another by now.
fn expect_as_it_was(engine: &Engine, core: &Arc<TableCore>, before: &Described) -> Result<()> {
    let names = engine.names.load();
    let Described { name, schema } = before;
    let is_there = names.newest().get(name).is_some_and(|table| table.id() == core.id());
    if is_there && *core.schema() == **schema {
        return Ok(());
    }
    let how = match (is_there, core.is_dropped()) {
        (true, _) => "altered",
        (false, true) => "dropped",
        (false, false) => "renamed or truncated",
    };
    Err(conflict(format!("table {name:?} was {how} by another commit since the transaction began")))
}

fn conflict(message: String) -> Error {
    Error::new(ErrorKind::Conflict, format!("{message}; begin again"))
}
