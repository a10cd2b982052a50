//! Checkpoints: the catalogue, the delete vectors and the rows of small groups as of one commit,
//! so that the log before it can go.
//!
//! ```text
//! seal groups above 1 MiB ─► rotate the log ─► fix commit c, pin every view ─► make c durable
//!   ─► write file ─► sync file, directory ─► frame that names it ─► drop log files through c
//! ```
//!
//! # Invariants
//!
//! 1. The commits of checkpoints never fall, so that the log files that are left go on from the
//!    newest: one maintenance job makes them. `make_checkpoint` refuses an older one.
//! 2. A checkpoint is of durable commits: `pin_state` waits for them.
//! 3. A frame names a checkpoint once its file is durable, and files go once the frame is.
//!
//! Those of the file are in the head of `esker_format::checkpoint`; they are asserted before it is
//! written, and when it is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::checkpoint::{Checkpoint, GroupState, SegmentState, TableState};
use esker_format::codec::Writer;
use esker_format::edit::{Edit, RowChange};
use esker_format::row::{Cell, encode_cells};
use esker_format::schema::Alteration;
use esker_format::{Field, Schema, TableId, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;
use esker_table::group::Group;
use esker_table::view::{RowGroup, View};
use esker_table::visibility::is_deleted_at;
use esker_vfs::OpenMode;

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Small groups are sealed after all when together they pass this.
const SMALL_BYTES_MAX: u64 = 64 << 20;

/// The path of a checkpoint file.
pub(crate) fn checkpoint_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("checkpoint-{number:016x}"))
}

/// The path of an index checkpoint file.
pub(crate) fn index_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("index-{number:016x}"))
}

/// The number in a file name with this prefix.
pub(crate) fn parse_number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix).filter(|d| d.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

/// A database as of one commit. While the views live, the files of their segments do.
pub(crate) struct PinnedState {
    pub checkpoint: Checkpoint,
    pub views: Vec<Arc<View>>,
}

/// A table pinned at the checkpoint's commit.
struct Pinned {
    table: Arc<TableCore>,
    name: String,
    view: Arc<View>,
    /// The schema as of the checkpoint's commit.
    schema: Arc<Schema>,
    next_row_id: u64,
    sealed_through: u64,
    index_file: u64,
}

impl Engine {
    /// Makes a checkpoint that a caller asks for. On a full disk it may take the space of the log's
    /// reserve file, since log files go after it.
    pub(crate) fn make_requested_checkpoint(self: &Arc<Self>) -> Result<()> {
        let made = self.make_checkpoint();
        let is_full = made.as_ref().is_err_and(|e| e.kind() == ErrorKind::NoSpace);
        let Some(log) = self.journal.log().filter(|_| is_full) else { return made };
        if !log.release_reserve()? {
            return made;
        }
        let made = self.make_checkpoint();
        // What is missing is filled by maintenance.
        self.fill_log_reserve()?;
        made
    }

    /// Makes a checkpoint of everything committed so far.
    pub(crate) fn make_checkpoint(self: &Arc<Self>) -> Result<()> {
        let Some(log) = self.journal.log() else { return Ok(()) };
        self.freeze_large_groups()?;
        while self.seal_frozen()? {}
        self.write_index_files()?;
        log.rotate()?;
        let PinnedState { checkpoint, .. } = self.pin_state()?;
        let (number, commit) = (checkpoint.number, checkpoint.commit);
        if Bug::LogRemovedBeforeCheckpoint.is_planted() {
            log.remove_through(commit)?;
        }
        let name_it = || {
            self.write_checkpoint(&checkpoint)?;
            let mut catalogue = self.lock_for_change()?;
            let last = catalogue.checkpoint_commit;
            let falls = Bug::CheckpointCommitFalls.is_planted() && last > 0;
            let commit = if falls { last - 1 } else { commit };
            if commit < last {
                let message =
                    format!("checkpoint {number}: of commit {commit}, after one of {last}");
                return Err(Error::corrupt(message));
            }
            self.commit_definition(&mut catalogue, &Edit::Checkpoint { number, commit })
        };
        let path = checkpoint_path(&self.dir, number);
        // No frame names it: it would only take space, try after try.
        let ticket = name_it().inspect_err(|_: &Error| self.segment_files.remove_other(&path))?;
        self.wait_for(ticket)?;
        self.environment.tasks.pause();
        log.remove_through(commit)?;
        let old_index_files = std::mem::take(&mut self.maintenance_state().old_index_files);
        // What is still there goes with the next one.
        self.remove_old_checkpoints(number, &old_index_files)
            .inspect_err(|_| self.maintenance_state().old_index_files.extend(old_index_files))
    }

    /// Everything as of the newest commit, once that is durable.
    pub(crate) fn pin_state(&self) -> Result<PinnedState> {
        let (pinned, sequences, views, namespaces, commit, number, next_table, guard) = {
            let mut catalogue = self.lock();
            if !self.options.read_only {
                drop(catalogue);
                catalogue = self.lock_for_change()?;
            }
            let commit = self.watermarks.published();
            let guard = self.registry.register(|| commit)?;
            let tables = catalogue.tables.iter_mut();
            let pinned: Vec<Pinned> = tables.map(|(_, entry)| pin(entry)).collect();
            let sequences = self.sequences.load();
            let made = sequences.iter().filter(|(_, sequence)| !sequence.is_pending());
            let logged = made.map(|(name, s)| (name.clone(), s.logged())).collect();
            let views = catalogue.views.iter();
            let views = views.filter(|_| !Bug::ViewLostInCheckpoint.is_planted());
            let views = views.map(|(name, view)| (name.clone(), view.stored.clone())).collect();
            let namespaces = catalogue.namespaces.iter();
            let namespaces = namespaces.filter(|_| !Bug::SchemaLostInCheckpoint.is_planted());
            let namespaces = namespaces.map(|(name, of)| (name.clone(), of.clone())).collect();
            catalogue.checkpoint_number += 1;
            (
                pinned,
                logged,
                views,
                namespaces,
                commit,
                catalogue.checkpoint_number,
                catalogue.next_table,
                guard,
            )
        };
        if !Bug::BackupBeforeDurable.is_planted() {
            self.sync()?;
        }
        let late = Bug::CheckpointAheadOfLog.is_planted();
        let commit = if late { self.watermarks.published() } else { commit };
        let mut tables = pinned.iter().map(|p| p.state(commit)).collect::<Result<Vec<_>>>()?;
        if Bug::CheckpointHasTableTwice.is_planted() {
            tables.extend(tables.first().cloned());
        }
        drop(guard);
        let checkpoint = Checkpoint {
            database: self.database,
            number,
            commit,
            hash_key: self.hash_key,
            next_table,
            next_segment: self.next_row_group.load(Ordering::Relaxed),
            tables,
            sequences,
            clock: Some(self.clock_record()),
            views,
            namespaces,
        };
        Ok(PinnedState { checkpoint, views: pinned.into_iter().map(|p| p.view).collect() })
    }

    /// Groups above the small limit are sealed; so are the largest when small ones are many.
    pub(crate) fn freeze_large_groups(&self) -> Result<()> {
        let mut catalogue = self.lock_for_change()?;
        let mut open: Vec<(u64, TableId)> = Vec::new();
        for (id, entry) in &catalogue.tables {
            if let Some(group) = entry.writer.open_group() {
                open.push((group.group().byte_count(), *id));
            }
        }
        open.sort_unstable();
        let mut small = 0;
        for (bytes, id) in open {
            small += bytes;
            let large = bytes >= self.options.small_group_bytes || small > SMALL_BYTES_MAX;
            if let Some(entry) = catalogue.tables.get_mut(&id).filter(|_| large) {
                entry.writer.freeze();
                self.frozen_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Writes a checkpoint file and makes it durable with its name.
    pub(crate) fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.write_checkpoint_to(&self.dir, checkpoint)
    }

    /// The same in any directory.
    pub(crate) fn write_checkpoint_to(&self, dir: &Path, checkpoint: &Checkpoint) -> Result<()> {
        let path = checkpoint_path(dir, checkpoint.number);
        checkpoint.check().map_err(|e| Error::from(e).at(path.display()))?;
        let bytes = checkpoint.encode();
        let file = self.environment.files.open(&path, OpenMode::CreateNew)?;
        for (i, piece) in bytes.chunks(1 << 20).enumerate() {
            file.write_all_at(piece, (i as u64) << 20)?;
            self.environment.tasks.pause();
        }
        if !Bug::SkipCheckpointFsync.is_planted() {
            file.sync_data()?;
        }
        if !Bug::SkipCheckpointDirFsync.is_planted() {
            self.environment.files.sync_dir(dir)?;
        }
        Ok(())
    }

    fn remove_old_checkpoints(&self, number: u64, old_index_files: &[u64]) -> Result<()> {
        let files = &self.environment.files;
        for name in files.list(&self.dir)? {
            if parse_number(&name, "checkpoint-").is_some_and(|n| n < number) {
                files.remove(&self.dir.join(&name))?;
            }
        }
        for number in old_index_files {
            let path = index_path(&self.dir, *number);
            if files.exists(&path)? {
                files.remove(&path)?;
            }
        }
        Ok(())
    }
}

fn pin(entry: &mut crate::catalogue::TableEntry) -> Pinned {
    let table = Arc::clone(entry.writer.table());
    let view = table.view();
    Pinned {
        schema: Arc::clone(&view.schema),
        view,
        table,
        name: entry.name.clone(),
        next_row_id: entry.writer.next_row_id(),
        sealed_through: entry.sealed_through,
        index_file: entry.index_file,
    }
}

/// The schema as it is, unless a bug is planted.
fn stored(schema: &Schema) -> Result<Schema> {
    if Bug::DefaultsLostInCheckpoint.is_planted() {
        return without_defaults(schema);
    }
    if Bug::IndexesLostInCheckpoint.is_planted() {
        let names = schema.indexes().iter().map(|index| index.name.clone());
        let drop: Vec<_> = names.map(Alteration::DropIndex).collect();
        return Ok(schema.alter(&drop)?);
    }
    Ok(schema.clone())
}

/// A bug to plant.
fn without_defaults(schema: &Schema) -> Result<Schema> {
    let forget =
        |field: &Field| Alteration::SetDefault { field: field.name.clone(), default: None };
    let all: Vec<_> = schema.fields().iter().map(forget).collect();
    Ok(schema.alter(&all)?)
}

impl Pinned {
    fn state(&self, commit: u64) -> Result<TableState> {
        let mut segments = Vec::new();
        for segment in self.view.segments() {
            // A load that had not committed is not part of the table yet.
            let early = Bug::BackupTakesUnfinishedLoads.is_planted();
            if segment.newest_commit() > commit && !early {
                continue;
            }
            if segment.has_ended_at(commit) {
                continue;
            }
            let dead = (0..segment.row_count())
                .filter(|row| is_deleted_at(segment.deleted(*row), commit))
                .filter_map(|row| u32::try_from(row).ok());
            let dead = if segment.dead_count() == 0 { Vec::new() } else { dead.collect() };
            segments.push(SegmentState { entry: segment.entry(), dead });
        }
        Ok(TableState {
            table: self.table.id(),
            name: self.name.clone(),
            schema: stored(&self.schema)?,
            next_row_id: match Bug::RowIdsReused.is_planted() {
                true => 1,
                false => self.next_row_id,
            },
            sealed_through: self.sealed_through,
            segments,
            index_file: self.index_file,
            ended_row_id: self.table.ended_row_id(),
            groups: self.view.groups().map(|g| self.open_rows(g, commit)).collect::<Result<_>>()?,
        })
    }

    /// The rows of a group that are visible at the commit.
    fn open_rows(&self, group: &Arc<Group>, commit: u64) -> Result<GroupState> {
        let (mut out, mut cells) = (Writer::new(), Vec::new());
        let row_group = RowGroup::Group(Arc::clone(group));
        for row in 0..group.rows_at(commit) {
            if row_group.is_visible(row, commit) {
                cells.clear();
                for field in self.schema.fields() {
                    cells.push(match row_group.long_value(field, row)? {
                        Some(reference) => Cell::Long(reference),
                        None => Cell::Value(group.value(field, row)?),
                    });
                }
                RowChange::encode_put(&mut out, self.table.id(), group.row_id(row), |out| {
                    // default: there is a cell for each field, made above
                    let cell = |p| cells.get(p).copied().unwrap_or(Cell::Value(ValueRef::Null));
                    encode_cells(out, &self.schema, cell);
                });
            }
        }
        let newest_commit = group.newest_commit().min(commit);
        Ok(GroupState { newest_commit, rows: out.into_bytes() })
    }
}
