//! Tables that one commit creates, alters, truncates and drops, together with changes of rows: the
//! one way of definitions, by themselves or within a transaction.
//!
//! ```text
//! commit lock ─► enter: tables as they were, names free, what is new ─► stage rows
//!   ─► frame: drops, truncations, alterations, creations, then rows
//!   ─► apply: schemas, names, then rows ─► publish ─► … durable ─► settle: files go, indexes come
//! ```
//!
//! Invariants:
//! 1. What is entered is taken out again before the lock is let go, unless the frame has its
//!    number: no other reader meets a table that no commit has made.
//! 2. The rows of a table that is altered or truncated are of the new schema, and come after it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use esker_format::edit::Edit;
use esker_format::{Schema, TableId};
use esker_log::Purpose;
use esker_log::sabotage::Bug;
use esker_table::{Table as TableCore, TableWriter};
use esker_vfs::sync::{AtomicU64, Mutex, MutexGuard};

use crate::catalog::altered_rows::AlteredRows;
use crate::catalog::names::Names;
use crate::catalog::own_sequence::{self, OwnSequence, gone};
use crate::catalogue::{Catalogue, TableEntry};
use crate::commit::apply::{Own, Source};
use crate::commit::changed_namespaces::ChangedNamespace;
use crate::commit::conflict::conflict;
use crate::commit::defined_views::ChangedView;
use crate::commit::journal::Ticket;
use crate::commit::log_reserve::{purpose_of, purpose_of_all, purpose_of_change};
use crate::commit::options::CommitOptions;
use crate::commit::segment_rows::keep_row_ids;
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, Result};

/// What a commit makes of the tables themselves.
#[derive(Default)]
pub(crate) struct NewDefinitions {
    pub created: Vec<CreatedTable>,
    pub altered: Vec<AlteredTable>,
    pub truncated: Vec<TruncatedTable>,
    pub dropped: Vec<RemovedTable>,
    pub views: Vec<ChangedView>,
    pub namespaces: Vec<ChangedNamespace>,
    /// The views that were known when it was seen that none of them needs what goes or changes.
    pub views_known: Option<Arc<Names>>,
}

impl NewDefinitions {
    /// Whether tables that are there stay as they are: nothing of theirs is to be counted anew.
    pub fn only_creates(&self) -> bool {
        self.altered.is_empty() && self.truncated.is_empty() && self.dropped.is_empty()
    }

    /// Whether maintenance may have work: a new table has none, unless time makes some.
    pub fn makes_work(&self) -> bool {
        let expires = |new: &CreatedTable| new.core.schema().expiry_field().is_some();
        !self.only_creates() || self.created.iter().any(expires)
    }
}

/// A table that comes.
pub(crate) struct CreatedTable {
    pub core: Arc<TableCore>,
    pub next_row_id: u64,
    /// The sequences of its identities, which come with it.
    pub sequences: Vec<Arc<OwnSequence>>,
}

/// A table that gets another schema, another name, or both.
pub(crate) struct AlteredTable {
    pub core: Arc<TableCore>,
    /// How it was when that was decided.
    pub before: Described,
    pub after: Described,
    /// No row may have come or changed after this commit: they were tested.
    pub unchanged_since: Option<u64>,
    /// The sequences of new identities, which come with them.
    pub sequences: Vec<Arc<OwnSequence>>,
    /// What is done to the rows there are, where that is more than the schema says.
    rows: Mutex<AlteredRows>,
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
    index_file: AtomicU64,
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
        Self { core, before, index_file: AtomicU64::new(0) }
    }

    fn enter(&self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        expect_as_it_was(engine, &self.core, &self.before)?;
        let index_file = catalogue.entry(self.core.id())?.index_file;
        self.index_file.store(index_file, Ordering::Relaxed);
        Ok(())
    }

    /// Removes its files, once the commit is durable.
    fn settle(&self, engine: &Arc<Engine>) {
        engine.remove_files_of(&self.core, self.index_file.load(Ordering::Relaxed));
    }
}

impl AlteredTable {
    /// A table that gets another name or schema, its rows as they are.
    pub fn new(core: Arc<TableCore>, before: Described, after: Described) -> Self {
        let (unchanged_since, rows) = (None, Mutex::new(AlteredRows::default()));
        Self { core, before, after, unchanged_since, sequences: Vec::new(), rows }
    }

    fn enter(&self, engine: &Engine, catalogue: &mut Catalogue) -> Result<()> {
        let Self { core, before, after, unchanged_since, .. } = self;
        expect_as_it_was(engine, core, before)?;
        expect_unchanged(catalogue, core, before, *unchanged_since)?;
        engine.expect_sequences(&after.schema)?;
        self.rows().enter(engine, catalogue, (core, &before.schema, &after.schema))
    }

    /// What is done to the rows there are.
    pub fn rows(&self) -> MutexGuard<'_, AlteredRows> {
        // default: a panic leaves what is locked as it was, or whole
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
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
            && self.views.is_empty()
            && self.namespaces.is_empty()
    }

    /// What the commit is for, but for its rows.
    pub fn purpose(&self) -> Purpose {
        let created = self.created.iter().map(|_| Purpose::Adds);
        let altered = self
            .altered
            .iter()
            .map(|table| purpose_of_change(&table.before.schema, &table.after.schema));
        let views = self.views.iter().filter(|view| view.after.is_some());
        let namespaces = self.namespaces.iter().filter(|changed| changed.after.is_some());
        let others = views.map(|_| Purpose::Adds).chain(namespaces.map(|_| Purpose::Adds));
        purpose_of_all(created.chain(altered).chain(others))
    }

    /// A table that gets another schema or name, by its number.
    pub fn altered(&self, table: TableId) -> Option<&AlteredTable> {
        self.altered.iter().find(|altered| altered.core.id() == table)
    }

    /// The schema that a table has until the commit, where it gets another.
    pub fn schema_before(&self, table: TableId) -> Option<&Arc<Schema>> {
        self.altered(table).map(|altered| &altered.before.schema)
    }

    /// True when a table is there afterwards, and its rows are what they are for a version of it.
    pub fn leaves(&self, current: &TableVersion) -> bool {
        let id = current.core.id();
        let is_same =
            |altered: &AlteredTable| altered.after.schema.has_same_rows_as(&current.schema);
        self.going().all(|gone| gone.core.id() != id) && self.altered(id).is_none_or(is_same)
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
        self.going().try_for_each(|gone| gone.enter(engine, catalogue))?;
        own_sequence::refuse_in_use(catalogue, &self.dropped)?;
        for TruncatedTable { old, unchanged_since, .. } in &self.truncated {
            expect_unchanged(catalogue, &old.core, &old.before, *unchanged_since)?;
        }
        let names = engine.names.load();
        self.expect_names_free(names.newest())?;
        self.expect_views_as_known(names.newest())?;
        self.expect_lookups(names.newest())?;
        self.expect_namespaces_as_known(names.newest())?;
        self.expect_sequences_as_known(engine, catalogue)?;
        self.altered.iter().try_for_each(|altered| altered.enter(engine, catalogue))?;
        let entered = self.coming().try_for_each(|table| table.enter(engine, catalogue));
        let entered = entered.and_then(|()| {
            let mut truncated = self.truncated.iter();
            truncated.try_for_each(|TruncatedTable { old, replacement, .. }| {
                let next = catalogue.entry(old.core.id())?.writer.next_row_id();
                keep_row_ids(catalogue, next, replacement.core.id())
            })
        });
        entered.inspect_err(|_| self.leave(catalogue))
    }

    /// Takes out what was entered.
    pub(crate) fn leave(&self, catalogue: &mut Catalogue) {
        for created in self.coming() {
            catalogue.tables.remove(&created.core.id());
        }
    }

    /// The names of tables and views that come, and of those that get another name.
    pub(super) fn names_coming(&self) -> impl Iterator<Item = String> {
        let created = self.coming().map(|table| table.core.name().to_string());
        let altered = self.altered.iter().map(|table| table.after.name.clone());
        let views = self.views.iter().filter(|view| view.after.is_some());
        created.chain(altered).chain(views.map(|view| view.name.clone()))
    }

    /// The names of tables and views that go, and of tables as they were before they change.
    pub(super) fn names_given_up(&self) -> impl Iterator<Item = &str> {
        let gone = self.going().map(|table| &table.before);
        let tables = gone.chain(self.altered.iter().map(|table| &table.before));
        let views = self.views.iter().filter(|view| view.after.is_none());
        let views = views.map(|view| view.name.as_str());
        tables.map(|before| before.name.as_str()).chain(views)
    }

    /// Refuses names that other tables have afterwards.
    fn expect_names_free(&self, newest: &Names) -> Result<()> {
        let given_up: BTreeSet<&str> = self.names_given_up().collect();
        let is_view_left = |name: &str| {
            newest.views.contains_key(name) && !self.views.iter().any(|view| view.name == name)
        };
        let mut coming = BTreeSet::new();
        for name in self.names_coming() {
            let is_table_left = newest.contains_key(&name) && !given_up.contains(name.as_str());
            let is_taken = is_table_left || is_view_left(&name);
            if is_taken || coming.contains(&name) {
                let why = "was created by another commit meanwhile";
                return Err(conflict(format!("{name:?} {why}")));
            }
            coming.insert(name);
        }
        Ok(())
    }

    /// What the log says of them.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        let dropped = self.dropped.iter().map(|table| Edit::DropTable { table: table.core.id() });
        let dropped = dropped.chain(self.sequence_edits());
        let truncated = self.truncated.iter().flat_map(TruncatedTable::edits);
        let altered = self.altered.iter().map(AlteredTable::edit);
        let created = self.created.iter().map(|table| {
            let (name, schema) = (table.core.name().to_string(), (*table.core.schema()).clone());
            Edit::CreateTable { table: table.core.id(), name, schema }
        });
        let views = self.views.iter().map(ChangedView::edit);
        let namespaces = self.namespaces.iter().flat_map(ChangedNamespace::edits);
        let tables = dropped.chain(truncated).chain(altered).chain(created);
        tables.chain(views).chain(namespaces).collect()
    }

    /// What the log says of sequences that go and come with fields.
    fn sequence_edits(&self) -> Vec<Edit> {
        let dropped = self.dropped.iter().flat_map(|table| gone(&table.before.schema, None));
        let altered = self.altered.iter();
        let altered = altered.flat_map(|t| gone(&t.before.schema, Some(&*t.after.schema)));
        let going = dropped.chain(altered).map(str::to_owned).collect::<Vec<_>>();
        let mut edits: Vec<Edit> =
            going.into_iter().map(|name| Edit::DropSequence { name }).collect();
        for TruncatedTable { old, replacement, .. } in &self.truncated {
            let after = replacement.core.schema();
            let going = gone(&old.before.schema, Some(&*after)).map(str::to_owned);
            edits.extend(going.map(|name| Edit::DropSequence { name }));
        }
        let coming = self.coming().flat_map(|table| &table.sequences);
        let coming = coming.chain(self.altered.iter().flat_map(|table| &table.sequences));
        edits.extend(coming.map(|sequence| sequence.edit()));
        edits
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

/// One edit of all of these, and of changes of rows.
pub(crate) fn together(mut edits: Vec<Edit>, rows: Vec<u8>) -> Edit {
    match edits.pop() {
        Some(only) if edits.is_empty() && rows.is_empty() => only,
        last => {
            edits.extend(last);
            Edit::Atomic { edits, rows }
        }
    }
}

impl Engine {
    /// Runs a commit with the new tables of some terms entered; when it comes to nothing they are
    /// taken out again.
    pub(crate) fn defining<R, E: From<Error>>(
        &self,
        catalogue: &mut Catalogue,
        options: CommitOptions<'_>,
        commit: impl FnOnce(&mut Catalogue) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let Some(definitions) = options.definitions else { return commit(catalogue) };
        definitions.enter(self, catalogue)?;
        let outcome = commit(catalogue);
        let stays = Bug::DefinitionsOutliveConflict.is_planted();
        if outcome.is_err() && !catalogue.broken && !stays {
            definitions.leave(catalogue);
        }
        outcome
    }

    /// Removes the files of what is gone, once new definitions are durable.
    pub(crate) fn settle_definitions(self: &Arc<Self>, options: CommitOptions<'_>) {
        let gone = options.definitions.into_iter().flat_map(NewDefinitions::going);
        gone.for_each(|gone| gone.settle(self));
    }

    /// Commits an edit that says all there is: the caller has made sure that it can be made.
    pub(crate) fn commit_definition(
        &self,
        catalogue: &mut Catalogue,
        edit: &Edit,
    ) -> Result<Ticket> {
        self.commit_edit(catalogue, purpose_of(edit), edit, |catalogue, commit| {
            self.apply(catalogue, commit, Some(edit), Source::Own(Own::default())).map(drop)
        })
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
