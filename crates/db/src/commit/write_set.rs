//! One commit of changes to several tables (protocol rule 7): one frame has all of them, in the
//! order of the tables' numbers, so that recovery applies all or none. What is more than a frame
//! takes goes by way of segments, the largest tables first: see [`overflow`](super::overflow).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use esker_arena::ReaderGuard;
use esker_format::Schema;
use esker_format::codec::Writer;
use esker_format::edit::Edit;
use esker_log::Purpose;
use esker_log::sabotage::planted;

use crate::catalogue::Catalogue;
use crate::commit::conflict::expect_as_staged;
use crate::commit::definitions::NewDefinitions;
use crate::commit::journal::Ticket;
use crate::commit::log_reserve::purpose_of_all;
use crate::commit::private_rows::PrivateRows;
use crate::commit::staged::Staged;
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// The changes of one table within a commit.
pub(crate) struct TableWrites<'r> {
    pub current: Cow<'r, TableVersion>,
    pub staged: Staged<'r>,
    /// What a transaction has put into segments already.
    pub private: Option<PrivateRows>,
}

impl<'r> TableWrites<'r> {
    /// No changes yet.
    pub fn new(current: impl Into<Cow<'r, TableVersion>>) -> Self {
        Self { current: current.into(), staged: Staged::default(), private: None }
    }

    fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.private.is_none()
    }
}

/// On which terms changes are committed.
#[derive(Clone, Copy)]
pub(crate) struct CommitOptions<'a> {
    /// Whether the commit is acknowledged only once it is on the disk; else as the database says.
    pub sync: Option<bool>,
    /// What is to hold in addition, under the commit lock; checked again where that was let go.
    pub validate: &'a dyn Fn(&mut Catalogue) -> Result<()>,
    /// What becomes of the tables themselves.
    pub definitions: Option<&'a NewDefinitions>,
}

impl<'a> CommitOptions<'a> {
    /// The schema that the table of some changes has until the commit.
    pub fn schema_before(self, current: &'a TableVersion) -> &'a Schema {
        let other = self.definitions.and_then(|new| new.schema_before(current.core.id()));
        other.unwrap_or(&current.schema)
    }
}

impl Default for CommitOptions<'_> {
    fn default() -> Self {
        Self { sync: None, validate: &|_| Ok(()), definitions: None }
    }
}

/// The changes of a commit, by table.
pub(crate) enum WriteSet<'r> {
    /// Of one table, as nearly all commits are: nothing is allocated for it.
    One(TableWrites<'r>),
    Many(Vec<TableWrites<'r>>),
}

impl<'r> WriteSet<'r> {
    pub fn as_slice(&self) -> &[TableWrites<'r>] {
        match self {
            Self::One(writes) => std::slice::from_ref(writes),
            Self::Many(writes) => writes,
        }
    }

    pub fn as_mut_slice(&mut self) -> &mut [TableWrites<'r>] {
        match self {
            Self::One(writes) => std::slice::from_mut(writes),
            Self::Many(writes) => writes,
        }
    }

    /// How many tables there are, those without changes too.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// True when nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.as_slice().iter().all(TableWrites::is_empty)
    }

    /// Adds changes of one more table.
    #[cfg_attr(not(test), expect(dead_code, reason = "what hooks add"))]
    pub fn push(&mut self, writes: TableWrites<'r>) {
        let mut all = std::mem::replace(self, Self::Many(Vec::new())).into_vec();
        all.push(writes);
        *self = Self::Many(all);
    }

    /// The tables that are changed.
    pub fn into_changed(self) -> Vec<TableWrites<'r>> {
        let mut all = self.into_vec();
        all.retain(|writes| !writes.is_empty());
        all
    }

    fn into_vec(self) -> Vec<TableWrites<'r>> {
        match self {
            Self::One(first) => vec![first],
            Self::Many(all) => all,
        }
    }

    /// How the commit is to be acknowledged, as the staging of a single table has it.
    pub fn sync(&self) -> Option<bool> {
        match self {
            Self::One(writes) => writes.staged.sync,
            Self::Many(_) => None,
        }
    }

    /// Refuses two parts of one table.
    pub fn expect_distinct(&self) -> Result<()> {
        let Self::Many(all) = self else { return Ok(()) };
        let mut tables = BTreeSet::new();
        if all.iter().all(|writes| tables.insert(writes.current.core.id())) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "a table was cleared meanwhile; try again"))
    }

    /// What the changes of some tables are for.
    pub fn purpose_of(writes: &[TableWrites<'_>], options: CommitOptions<'_>) -> Purpose {
        let definitions = options.definitions.map(NewDefinitions::purpose);
        let rows = writes.iter().filter(|writes| !writes.is_empty());
        let rows = rows.map(|writes| match writes.private {
            Some(_) => Purpose::Adds,
            None => writes.staged.purpose(),
        });
        purpose_of_all(rows.chain(definitions))
    }
}

impl Engine {
    /// Runs a commit with the new tables of some terms entered; when it comes to nothing they are
    /// taken out again.
    pub(crate) fn defining<R, E: From<Error>>(
        &self,
        catalogue: &mut Catalogue,
        commit_options: CommitOptions<'_>,
        commit: impl FnOnce(&mut Catalogue) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let Some(definitions) = commit_options.definitions else { return commit(catalogue) };
        definitions.enter(self, catalogue)?;
        let outcome = commit(catalogue);
        let stays = planted("definitions_outlive_conflict");
        if outcome.is_err() && !catalogue.broken && !stays {
            definitions.leave(catalogue);
        }
        outcome
    }

    /// Makes new definitions real, once the frame has its number.
    pub(crate) fn apply_definitions(
        &self,
        catalogue: &mut Catalogue,
        commit_options: CommitOptions<'_>,
        commit: u64,
    ) -> Result<()> {
        let Some(definitions) = commit_options.definitions else { return Ok(()) };
        definitions.apply(self, catalogue, commit)
    }

    /// What is left to do once new definitions are durable.
    pub(crate) fn settle_definitions(self: &Arc<Self>, commit_options: CommitOptions<'_>) {
        if let Some(definitions) = commit_options.definitions {
            definitions.settle(self);
        }
    }

    /// True when changes cannot be numbered before files are written.
    pub(crate) fn needs_files(&self, parts: &[TableWrites<'_>]) -> bool {
        let bytes = || parts.iter().map(|part| part.staged.byte_count()).sum::<usize>();
        parts.iter().any(|part| {
            self.is_large_part(part) || self.has_long(&part.current.schema, &part.staged)
        }) || (parts.len() > 1 && bytes() > self.options.commit_bytes_max)
    }

    fn is_large_part(&self, part: &TableWrites<'_>) -> bool {
        part.private.is_some() || part.staged.is_large(self.options.commit_bytes_max)
    }

    /// Takes out the parts that do not go into a frame: those that are too large, and of the others
    /// the largest, until the rest does.
    fn take_large<'r>(&self, parts: &mut Vec<TableWrites<'r>>) -> Vec<TableWrites<'r>> {
        let mut sized: Vec<_> = std::mem::take(parts)
            .into_iter()
            .map(|part| (self.is_large_part(&part), part.staged.byte_count(), part))
            .collect();
        sized.sort_by_key(|(is_large, bytes, _)| (*is_large, *bytes));
        let (mut large, mut together) = (Vec::new(), 0);
        for (is_large, bytes, part) in sized {
            together += bytes;
            if is_large || together > self.options.commit_bytes_max {
                large.push(part);
            } else {
                parts.push(part);
            }
        }
        let by_table = |part: &TableWrites<'_>| part.current.core.id();
        parts.sort_by_key(by_table);
        large.sort_by_key(by_table);
        large
    }

    /// Writes what does not go into the log into files, then commits, if all is as it was staged.
    /// `staged_at` has been held since.
    pub(crate) fn commit_with_files(
        self: &Arc<Self>,
        parts: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        self.write_and_commit(parts, commit_options, staged_at).or_else(|e| {
            // What a refusal rests on may have been committed meanwhile.
            if e.kind() != ErrorKind::OutcomeUnknown && e.kind() != ErrorKind::Poisoned {
                self.acknowledge_published()?;
            }
            Err(e)
        })
    }

    fn write_and_commit(
        self: &Arc<Self>,
        mut parts: Vec<TableWrites<'_>>,
        commit_options: CommitOptions<'_>,
        staged_at: &ReaderGuard,
    ) -> Result<Ticket> {
        if self.is_durable() {
            for part in &mut parts {
                self.store_long(&part.current.schema, &mut part.staged.puts)?;
            }
        }
        let large = self.take_large(&mut parts);
        if !large.is_empty() {
            let ticket = self.spill(large, parts, commit_options, staged_at)?;
            self.settle_definitions(commit_options);
            return Ok(ticket);
        }
        let ticket = {
            let mut catalogue = self.lock_for_change()?;
            (commit_options.validate)(&mut catalogue)?;
            self.defining(&mut catalogue, commit_options, |catalogue| {
                expect_as_staged(catalogue, &mut parts, commit_options, staged_at)?;
                self.commit_in_frame(catalogue, &parts, commit_options)
            })?
        };
        self.acknowledge_as(ticket, commit_options.sync)?;
        self.settle_definitions(commit_options);
        Ok(ticket)
    }

    /// Appends the changes of rows as they are in the log; nothing in a memory database.
    pub(crate) fn encode_rows(
        &self,
        out: &mut Writer,
        writes: &[TableWrites<'_>],
        options: CommitOptions<'_>,
    ) {
        let one_only = planted("batch_frame_has_one_table");
        let named = if one_only { writes.get(..1).unwrap_or_default() } else { writes };
        for TableWrites { current, staged, .. } in named.iter().filter(|_| self.is_durable()) {
            let schema = match planted("rows_logged_by_old_schema") {
                true => options.schema_before(current),
                false => &current.schema,
            };
            staged.encode(out, current.core.id(), schema);
        }
    }

    /// Freezes open groups without room for the rows that are put; true when there were some.
    pub(crate) fn make_room_for(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
    ) -> Result<bool> {
        let mut has_frozen = false;
        for part in parts {
            let entry = catalogue.entry(part.current.core.id())?;
            has_frozen |= self.freeze_if_full(entry, part.staged.put_count());
        }
        Ok(has_frozen)
    }

    /// Applies changes of rows that have their number; true when maintenance has work.
    pub(crate) fn apply_rows(
        &self,
        catalogue: &mut Catalogue,
        parts: &[TableWrites<'_>],
        commit: u64,
    ) -> Result<bool> {
        let mut is_full = false;
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let entry = catalogue.entry(part.current.core.id())?;
            part.staged.apply(&mut entry.writer, commit, &mut || self.new_row_group())?;
            entry.changed_at = commit;
            is_full |= self.freeze_if_full(entry, 0);
        }
        Ok(is_full)
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
