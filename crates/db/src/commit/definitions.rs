//! Tables that one commit creates, alters, truncates and drops, together with changes of rows: the
//! one way of definitions, by themselves or within a transaction.
//!
//! ```text
//! commit lock ─► enter: tables as they were, names free, what is new ─► stage rows
//!   ─► frame: drops, truncations, alterations, creations, then rows
//!   ─► apply: names, schemas, then rows ─► publish ─► … durable ─► settle: files go, indexes come
//! ```
//!
//! Invariants:
//! 1. What is entered is taken out again before the lock is let go, unless the frame has its
//!    number: no other reader meets a table that no commit has made.
//! 2. The rows of a table that is altered or truncated are of the new schema, and come after it.

use std::sync::{Arc, PoisonError};

use esker_format::edit::Edit;
use esker_format::{Moment, Schema, TableId};
use esker_log::Purpose;
use esker_log::sabotage::planted;
use esker_table::view::View;
use esker_table::{Table as TableCore, TableWriter};
use esker_vfs::sync::Mutex;

use crate::Result;
use crate::catalog::altered_rows::{AlteredRows, Entered};
use crate::catalog::names::Names;
use crate::catalogue::{Catalogue, TableEntry};
use crate::commit::conflict::conflict;
use crate::commit::log_reserve::{purpose_of_all, purpose_of_change};
use crate::engine::Engine;

/// What a commit makes of the tables themselves.
#[derive(Default)]
pub(crate) struct NewDefinitions {
    pub created: Vec<CreatedTable>,
    pub altered: Vec<AlteredTable>,
    pub truncated: Vec<TruncatedTable>,
    pub dropped: Vec<RemovedTable>,
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
    pub unchanged_since: Option<u64>,
    /// What is done to the rows there are, where that is more than the schema says.
    pub rows: Mutex<AlteredRows>,
}

/// A table whose rows go all at once: another takes its place.
pub(crate) struct TruncatedTable {
    pub old: RemovedTable,
    pub replacement: CreatedTable,
    /// No row may have come or changed after this commit.
    pub unchanged_since: Option<u64>,
}

/// A table that goes.
pub(crate) struct RemovedTable {
    pub core: Arc<TableCore>,
    pub before: Described,
    /// The file with its index, to be removed; 0 for none.
    index_file: Mutex<u64>,
}

/// The name and the schema of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Described {
    pub name: String,
    pub schema: Arc<Schema>,
}

impl Described {
    /// As a table is now.
    pub fn of(core: &TableCore) -> Self {
        Self { name: core.name().to_string(), schema: core.schema() }
    }
}

impl RemovedTable {
    pub fn new(core: Arc<TableCore>, before: Described) -> Self {
        Self { core, before, index_file: Mutex::new(0) }
    }

    /// Takes it out of the catalogue, once the frame has its number.
    fn apply(&self, catalogue: &mut Catalogue, is_gone_early: bool) -> Result<()> {
        let index_file = catalogue.remove(self.core.id())?.index_file;
        // default: a panic leaves what is locked as it was, or whole
        *self.index_file.lock().unwrap_or_else(PoisonError::into_inner) = index_file;
        if is_gone_early {
            self.core.view().segments().for_each(|segment| segment.mark_for_deletion());
            self.core.set_view(View::empty(self.core.schema()));
        }
        Ok(())
    }

    /// Removes its files, once the commit is durable.
    fn settle(&self, engine: &Arc<Engine>) {
        // default: a panic leaves what is locked as it was, or whole
        let index_file = *self.index_file.lock().unwrap_or_else(PoisonError::into_inner);
        engine.remove_files_of(&self.core, index_file);
    }
}

impl AlteredTable {
    /// A table that gets another name or schema, its rows as they are.
    pub fn new(core: Arc<TableCore>, before: Described, after: Described) -> Self {
        let (unchanged_since, rows) = (None, Mutex::new(AlteredRows::default()));
        Self { core, before, after, unchanged_since, rows }
    }

    fn enter(&self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        let Self { core, before, after, unchanged_since, rows } = self;
        expect_as_it_was(engine, core, before)?;
        expect_unchanged(catalogue, core, before, *unchanged_since)?;
        engine.expect_sequences(&after.schema)?;
        // default: a panic leaves what is locked as it was, or whole
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.enter(engine, catalogue, (core, &before.schema, &after.schema))
    }

    fn apply(&self, catalogue: &mut Catalogue, commit: u64) -> Result<()> {
        let Self { core, before, after, rows, .. } = self;
        let entry = catalogue.entry(core.id())?;
        if before.schema != after.schema {
            // default: a panic leaves what is locked as it was, or whole
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            let Entered { uniques, standing } = rows.take_entered();
            // Where rows expire by the same field as before it does not matter when that is.
            // default: as said above
            let now = standing.as_ref().map_or(Moment::LAST, |standing| standing.now());
            entry.writer.alter(Arc::clone(&after.schema), &uniques, (commit, now))?;
        }
        if before.name != after.name {
            after.name.clone_into(&mut entry.name);
            core.rename(&after.name);
        }
        Ok(())
    }

    fn edit(&self) -> Edit {
        let Described { name, schema } = self.after.clone();
        Edit::AlterTable { table: self.core.id(), name, schema: (*schema).clone() }
    }
}

impl CreatedTable {
    fn enter(&self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        engine.expect_sequences(&self.core.schema())?;
        let writer = TableWriter::new(Arc::clone(&self.core), self.next_row_id);
        let entry = TableEntry::new(self.core.name().to_string(), writer);
        catalogue.tables.insert(self.core.id(), entry);
        Ok(())
    }
}

impl TruncatedTable {
    fn edits(&self) -> Vec<Edit> {
        let (old, core) = (&self.old, &self.replacement.core);
        let truncation =
            Edit::TruncateTable { table: old.core.id(), replacement: self.replacement.core.id() };
        let after = Described::of(core);
        if after == old.before {
            return vec![truncation];
        }
        let Described { name, schema } = after;
        let altered = Edit::AlterTable { table: core.id(), name, schema: (*schema).clone() };
        vec![truncation, altered]
    }
}

impl NewDefinitions {
    /// True when the tables stay as they are.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty()
            && self.altered.is_empty()
            && self.truncated.is_empty()
            && self.dropped.is_empty()
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
        self.coming().map(|created| &created.core).find(|core| core.id() == table)
    }

    /// The tables that come, in the place of others too.
    fn coming(&self) -> impl Iterator<Item = &CreatedTable> {
        self.created.iter().chain(self.truncated.iter().map(|table| &table.replacement))
    }

    /// The tables that go.
    fn going(&self) -> impl Iterator<Item = &RemovedTable> {
        self.dropped.iter().chain(self.truncated.iter().map(|table| &table.old))
    }

    /// Refuses what others have come before, and enters the new tables, which have no name yet.
    pub(crate) fn enter(&self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        self.going().try_for_each(|gone| expect_as_it_was(engine, &gone.core, &gone.before))?;
        for TruncatedTable { old, unchanged_since, .. } in &self.truncated {
            expect_unchanged(catalogue, &old.core, &old.before, *unchanged_since)?;
        }
        self.names(engine.names.load().newest())?;
        self.altered.iter().try_for_each(|altered| altered.enter(engine, catalogue))?;
        let entered = self.coming().try_for_each(|table| table.enter(engine, catalogue));
        entered.inspect_err(|_| self.leave(catalogue))
    }

    /// Takes out what was entered.
    pub(crate) fn leave(&self, catalogue: &mut Catalogue) {
        for created in self.coming() {
            catalogue.tables.remove(&created.core.id());
        }
    }

    /// The names that there are afterwards.
    fn names(&self, newest: &Names) -> Result<Names> {
        let mut names = newest.clone();
        let gone = self.going().map(|table| &table.before);
        for before in gone.chain(self.altered.iter().map(|table| &table.before)) {
            names.remove(&before.name);
        }
        let created = self.coming().map(|table| (table.core.name().to_string(), &table.core));
        let altered = self.altered.iter().map(|table| (table.after.name.clone(), &table.core));
        for (name, core) in created.chain(altered) {
            if names.contains_key(&name) {
                let why = "was created by another commit meanwhile";
                return Err(conflict(format!("table {name:?} {why}")));
            }
            names.insert(name, Arc::clone(core));
        }
        Ok(names)
    }

    /// What the log says of them.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        let dropped = self.dropped.iter().map(|table| Edit::DropTable { table: table.core.id() });
        let truncated = self.truncated.iter().flat_map(TruncatedTable::edits);
        let altered = self.altered.iter().map(AlteredTable::edit);
        let created = self.created.iter().map(|table| {
            let (name, schema) = (table.core.name().to_string(), (*table.core.schema()).clone());
            Edit::CreateTable { table: table.core.id(), name, schema }
        });
        dropped.chain(truncated).chain(altered).chain(created).collect()
    }

    /// Makes them real, once the frame has its number. Rows come afterwards.
    pub(crate) fn apply(
        &self,
        engine: &Engine,
        catalogue: &mut Catalogue,
        commit: u64,
    ) -> Result<()> {
        let names = self.names(engine.names.load().newest())?;
        for dropped in &self.dropped {
            dropped.core.set_dropped();
            dropped.apply(catalogue, planted("drop_before_durable"))?;
        }
        for TruncatedTable { old, replacement, .. } in &self.truncated {
            old.core.set_successor(Arc::clone(&replacement.core));
            old.apply(catalogue, planted("truncate_before_durable"))?;
        }
        self.altered.iter().try_for_each(|altered| altered.apply(catalogue, commit))?;
        self.coming().for_each(|created| created.core.set_created_at(commit));
        engine.change_names(commit, |newest| *newest = names);
        engine.recount_frozen(catalogue);
        Ok(())
    }

    /// Removes the files of what is gone, once the commit is durable.
    pub(crate) fn settle(&self, engine: &Arc<Engine>) {
        self.going().for_each(|gone| gone.settle(engine));
    }

    /// Builds the runs of new indexes, once the commit is durable.
    pub(crate) fn build_indexes(&self, engine: &Arc<Engine>) {
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
    Err(conflict(format!("table {name:?} was {how} by another commit meanwhile")))
}

/// Refuses a table whose rows others have changed after a commit.
fn expect_unchanged(
    catalogue: &mut Catalogue,
    core: &TableCore,
    before: &Described,
    since: Option<u64>,
) -> Result<()> {
    let changed_at = catalogue.entry(core.id())?.changed_at;
    if since.is_some_and(|commit| changed_at > commit) {
        let name = &before.name;
        let why = "rows were changed since the transaction began, or had tested them";
        return Err(conflict(format!("table {name:?}: {why}")));
    }
    Ok(())
}
