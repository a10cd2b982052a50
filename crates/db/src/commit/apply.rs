//! Applying a frame of the log: the one place that says what each kind of edit, and a change of a
//! row, does to the catalogue and to the tables. Live commits come here once their frame has its
//! number, recovery for each frame that survived.
//!
//! ```text
//!  live commit:  stage ─► number ─► apply(edit, Source::Own)   rows are staged, segments are open
//!  recovery:     frame ─► decode ─► apply(edit, Source::Log)   rows are found by their row ids and
//!                                                              staged in pieces: `stored_rows`
//! ```
//!
//! # Invariants
//!
//! 1. Frames are applied in the order of their numbers, under the commit lock: the pipeline, or the
//!    scan of the log. The group of a row, the names and the schemas of a table refuse an older
//!    commit.
//! 2. Applying a frame again, at once or after later frames, changes nothing that lasts: a table
//!    that exists is not created, one that a later commit has defined is not altered, a sequence
//!    has the value of the frame that came last, a row that is sealed or was changed by this commit
//!    or a later one stays. So a state may be newer than the checkpoint that a replay begins with.
//! 3. Rows come after the edits of their frame: they are of the schema that these define.
//! 4. What cannot be applied whole is an error, and the catalogue takes no more commits. A table
//!    that a frame names is there, unless the frame comes from the log, or is that of a seal.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use esker_format::edit::Edit;
use esker_format::{Moment, Schema, TableId, View as StoredView};
use esker_log::sabotage::Bug;
use esker_table::table::UniqueKeys;
use esker_table::view::View;
use esker_table::{Table as TableCore, TableWriter};

use crate::catalog::altered_rows::Entered;
use crate::catalog::defined_view::DefinedView;
use crate::catalogue::{Catalogue, TableEntry};
use crate::commit::definitions::NewDefinitions;
use crate::commit::segment_rows::{end_segments, keep_row_ids};
use crate::commit::stored_rows::LoggedRows;
use crate::commit::write_set::TableWrites;
use crate::engine::Engine;
use crate::{Error, Result};

/// Makes the segments that an edit names those of its table.
pub(crate) type LinkSegments<'a> = dyn FnMut(&mut Catalogue, &Edit, u64) -> Result<()> + 'a;

/// Where a frame comes from.
pub(crate) enum Source<'a, 'r> {
    /// From this process, which has numbered it.
    Own(Own<'a, 'r>),
    /// From the log.
    Log(LoggedRows<'a>),
}

/// What a process has of its frame beside what the log says.
#[derive(Default)]
pub(crate) struct Own<'a, 'r> {
    /// Changes of rows that are staged.
    pub writes: &'a [TableWrites<'r>],
    /// What has been entered of tables that are created or altered.
    pub definitions: Option<&'a NewDefinitions>,
    /// Loads, seals and merges: the segments that this process has written.
    pub link: Option<&'a mut LinkSegments<'a>>,
}

impl Source<'_, '_> {
    fn definitions(&self) -> Option<&NewDefinitions> {
        match self {
            Self::Own(own) => own.definitions,
            Self::Log(_) => None,
        }
    }

    /// What an edit names. Frames of the log alone may name a table that is gone, as later ones
    /// have been applied.
    fn expect<T>(&self, named: Option<T>, table: TableId, commit: u64) -> Result<Option<T>> {
        match self {
            Self::Own(_) if named.is_none() => {
                let TableId(table) = table;
                Err(Error::corrupt(format!("commit {commit} names table {table}, which is gone")))
            }
            _ => Ok(named),
        }
    }
}

impl Engine {
    /// Applies the frame of a commit; true when maintenance has work.
    pub(crate) fn apply(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        edit: Option<&Edit>,
        mut source: Source<'_, '_>,
    ) -> Result<bool> {
        if let Some(edit) = edit {
            self.apply_edit(catalogue, commit, edit, &mut source)?;
            if let Some(new) = source.definitions() {
                self.publish_names(commit, catalogue)?;
                if !new.only_creates() {
                    self.recount_frozen(catalogue);
                }
            }
        }
        match source {
            Source::Own(own) => self.apply_rows(catalogue, commit, own.writes),
            Source::Log(logged) => self.apply_logged(catalogue, commit, logged),
        }
    }

    fn apply_edit(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        edit: &Edit,
        source: &mut Source<'_, '_>,
    ) -> Result<()> {
        match edit {
            Edit::CreateTable { table, name, schema } => {
                self.create(catalogue, commit, (*table, name, schema), source)?;
            }
            Edit::AlterTable { table, name, schema } => {
                self.alter(catalogue, commit, (*table, name, schema), source)?;
            }
            Edit::TruncateTable { table, replacement } => {
                let old = source.expect(catalogue.tables.remove(table), *table, commit)?;
                if let Some(old) = old {
                    let (core, schema) = (old.writer.table(), old.writer.table().schema());
                    let new = (*replacement, old.name.as_str(), &*schema);
                    core.set_successor(self.create(catalogue, commit, new, source)?);
                    keep_row_ids(catalogue, old.writer.next_row_id(), *replacement)?;
                    forget_early(core, Bug::TruncateBeforeDurable.is_planted())?;
                }
            }
            Edit::DropTable { table } => {
                let old = source.expect(catalogue.tables.remove(table), *table, commit)?;
                if let Some(old) = old {
                    old.writer.table().set_dropped_at(commit);
                    forget_early(old.writer.table(), Bug::DropBeforeDurable.is_planted())?;
                }
            }
            Edit::SetSequence { name, sequence } => self.set_sequence(name, sequence.clone()),
            Edit::DropSequence { name } => self.remove_sequence(name),
            Edit::SetView { name, view } => set_view(catalogue, (name, view), source)?,
            Edit::DropView { name } => drop(catalogue.views.remove(name)),
            Edit::SetNamespace { name, namespace } => {
                catalogue.namespaces.insert(name.clone(), namespace.clone());
            }
            Edit::DropNamespace { name } => drop(catalogue.namespaces.remove(name)),
            Edit::Load { table, next_row_id, .. } => {
                let entry = source.expect(catalogue.tables.get_mut(table), *table, commit)?;
                if let Some(entry) = entry {
                    next_row_id.checked_sub(1).inspect(|last| entry.writer.note_row_id(*last));
                    entry.note_changed(commit);
                }
                self.link_segments(catalogue, commit, edit, source)?;
            }
            Edit::Seal { table, through, .. } => {
                // While its frame waits for the disk, another commit may drop the table.
                if let Some(entry) = catalogue.tables.get_mut(table) {
                    entry.sealed_through = entry.sealed_through.max(*through);
                }
                self.link_segments(catalogue, commit, edit, source)?;
            }
            Edit::Merge { .. } => self.link_segments(catalogue, commit, edit, source)?,
            Edit::EndSegments { table, .. } => end(catalogue, (*table, commit), edit, source)?,
            Edit::Checkpoint { commit, .. } => {
                // A replay may come by older ones: `make_checkpoint` sees that they rise.
                catalogue.checkpoint_commit = catalogue.checkpoint_commit.max(*commit);
            }
            // It tells an opening how time goes on.
            Edit::Clock(_) => {}
            Edit::Atomic { edits, .. } => {
                let mut edits = edits.iter();
                edits.try_for_each(|edit| self.apply_edit(catalogue, commit, edit, source))?;
            }
        }
        Ok(())
    }

    /// A table is there from this commit on. Its maker has entered it before.
    fn create(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        (id, name, schema): (TableId, &str, &Schema),
        source: &mut Source<'_, '_>,
    ) -> Result<Arc<TableCore>> {
        catalogue.next_table = catalogue.next_table.max(id.0 + 1);
        let entry = match catalogue.tables.entry(id) {
            Entry::Occupied(entered) => entered.into_mut(),
            Entry::Vacant(place) => {
                let core = self.new_table(id, name, schema.clone())?;
                let mut entry = TableEntry::new(name.to_owned(), TableWriter::new(core, 1));
                if let Source::Log(logged) = source {
                    (logged.on_created)(&mut entry)?;
                }
                place.insert(entry)
            }
        };
        entry.defined_at = entry.defined_at.max(commit);
        entry.writer.table().set_created_at(commit);
        Ok(Arc::clone(entry.writer.table()))
    }

    /// A table has this name and this schema from this commit on.
    fn alter(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        (id, name, schema): (TableId, &str, &Schema),
        source: &Source<'_, '_>,
    ) -> Result<()> {
        let is_newest = |entry: &&mut TableEntry| entry.defined_at <= commit;
        let entry = source.expect(catalogue.tables.get_mut(&id), id, commit)?;
        let Some(entry) = entry.filter(is_newest) else { return Ok(()) };
        entry.defined_at = commit;
        let core = Arc::clone(entry.writer.table());
        if *core.schema() != *schema {
            let own = source.definitions().and_then(|new| new.altered(id));
            let (schema, entered) = match own {
                Some(own) => (Arc::clone(&own.after.schema), own.rows().take_entered()),
                None => {
                    let uniques = self.empty_uniques(&core, schema)?;
                    (Arc::new(schema.clone()), Entered { uniques, standing: None })
                }
            };
            // Where rows expire by the same field as before it does not matter when that is.
            // default: as said above
            let now = entered.standing.as_ref().map_or(Moment::LAST, |standing| standing.now());
            // What was looked up by the fields of before is looked up again.
            core.note_changed(commit);
            entry.writer.alter(schema, &entered.uniques, (commit, now))?;
            if let Source::Log(_) = source {
                // There are no readers at recovery, so no older schema is needed.
                let mut view = (*core.view()).clone();
                view.forget_schemas(u64::MAX);
                core.set_view(view)?;
            }
        }
        if entry.name != name {
            name.clone_into(&mut entry.name);
            core.rename(name);
        }
        Ok(())
    }

    /// The unique indexes that a schema has in addition, without entries: those of the rows are
    /// made before the first commit.
    fn empty_uniques(&self, core: &TableCore, schema: &Schema) -> Result<Vec<Arc<UniqueKeys>>> {
        let known = core.uniques();
        let is_new = |id| known.iter().all(|keys| keys.index().id != id);
        let new = schema.unique_indexes().filter(|index| is_new(index.id));
        new.map(|index| Ok(Arc::new(core.new_unique(schema, index)?))).collect()
    }

    /// The segments of an edit are those of its table. Recovery has linked those that are still
    /// there before: what is left is which rows a load ends.
    fn link_segments(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        edit: &Edit,
        source: &mut Source<'_, '_>,
    ) -> Result<()> {
        match source {
            Source::Own(Own { link: Some(link), .. }) => link(catalogue, edit, commit),
            Source::Own(_) => Ok(()),
            Source::Log(logged) => {
                let writes = self.stage_ended(catalogue, commit, edit, logged)?;
                self.apply_rows(catalogue, commit, writes.as_slice()).map(drop)
            }
        }
    }

    /// Applies changes of rows that are staged; those of one table go to one group, so that sealing
    /// "through this commit" is exact.
    pub(super) fn apply_rows(
        &self,
        catalogue: &mut Catalogue,
        commit: u64,
        writes: &[TableWrites<'_>],
    ) -> Result<bool> {
        let mut has_frozen = false;
        for writes in writes.iter().filter(|writes| !writes.is_empty()) {
            let entry = catalogue.entry(writes.current.core.id())?;
            has_frozen |= self.freeze_if_full(entry, writes.staged.put_count());
            self.apply_writes(entry, commit, writes)?;
            has_frozen |= self.freeze_if_full(entry, 0);
        }
        Ok(has_frozen)
    }

    /// The same of one table, whose open group has room for them.
    pub(super) fn apply_writes(
        &self,
        entry: &mut TableEntry,
        commit: u64,
        writes: &TableWrites<'_>,
    ) -> Result<()> {
        writes.staged.apply(&mut entry.writer, commit, &mut || self.new_row_group())?;
        entry.note_changed(commit);
        Ok(())
    }
}

/// The segments that an edit names end.
fn end(
    catalogue: &mut Catalogue,
    (table, commit): (TableId, u64),
    edit: &Edit,
    source: &Source<'_, '_>,
) -> Result<()> {
    let is_lost = matches!(source, Source::Log(_)) && Bug::EndedSegmentsNotReplayed.is_planted();
    let entry = source.expect(catalogue.tables.get_mut(&table), table, commit)?;
    let entry = entry.filter(|_| !is_lost);
    entry.into_iter().for_each(|entry| end_segments(entry, commit, edit));
    Ok(())
}

/// A view is like this from this commit on.
fn set_view(
    catalogue: &mut Catalogue,
    (name, stored): (&str, &StoredView),
    source: &Source<'_, '_>,
) -> Result<()> {
    let own = source.definitions().and_then(|new| new.view(name));
    let view = match own {
        Some(own) => Arc::clone(own),
        None => Arc::new(DefinedView::of_stored(stored.clone())?),
    };
    catalogue.views.insert(name.to_owned(), view);
    Ok(())
}

/// A bug to plant: the rows of a table go before that is durable.
fn forget_early(core: &TableCore, is_planted: bool) -> Result<()> {
    if is_planted {
        core.view().segments().for_each(|segment| segment.mark_for_deletion());
        core.set_view(View::empty(core.schema()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use esker_format::DataType;

    use super::*;
    use crate::commit::stored_rows::RowLocators;
    use crate::{ErrorKind, Options};

    #[test]
    fn a_commit_that_names_a_table_that_is_gone_is_an_error() {
        let db = Options::new().memory().unwrap();
        let (engine, table) = (db.engine(), TableId(7));
        let (segments, replaced, superseded) = (Vec::new(), Vec::new(), Vec::new());
        let schema = Schema::builder().field("id", DataType::I64).build().unwrap();
        for edit in [
            Edit::DropTable { table },
            Edit::TruncateTable { table, replacement: TableId(8) },
            Edit::AlterTable { table, name: "t".to_owned(), schema },
            Edit::Load { table, segments, next_row_id: 2, replaced, superseded },
        ] {
            let mut catalogue = engine.lock();
            let own = Source::Own(Own::default());
            let error = engine.apply(&mut catalogue, 5, Some(&edit), own).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{edit:?}");
            assert!(error.to_string().contains("commit 5 names table 7"), "{error}");
            let mut locators = RowLocators::new();
            let on_created = &mut |_: &mut TableEntry| Ok(());
            let logged = LoggedRows { rows: &[], locators: &mut locators, on_created };
            engine.apply(&mut catalogue, 5, Some(&edit), Source::Log(logged)).unwrap();
            assert!(catalogue.tables.is_empty(), "{edit:?}");
        }
    }
}
