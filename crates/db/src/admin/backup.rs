//! Backups: a second database in another directory, as of one commit, beside writers.
//!
//! ```text
//! seal what is large ─► pin every table at the newest commit, durable ─► link or copy segments
//!   ─► write the checkpoint, which has the small rest ─► begin a log: from here on it is one
//!   ─► remove the file that said that the backup is not finished
//! ```
//!
//! Segments never change, so that a second name for the same file is as good as a copy, costs
//! nothing, and stays when the database removes its own. A backup is a database: it is restored
//! by opening it, or by a backup of it to its place.
//!
//! # Invariants
//!
//! 1. Until all of it is durable a directory says that its backup is not finished: `own_directory`
//!    makes the file that says so, `run` removes it last. Opening refuses such a directory.
//! 2. It has each file that its checkpoint names, at the length that is named there, and each value
//!    file that its rows refer to: asserted before the checkpoint is written, `expect_complete`.
//! 3. Nothing writes to a file that has two names: `Database::backup` ends the current value file.
//! 4. Its checkpoint names no index file and is not the first; its log goes on behind the
//!    checkpoint's commit, and epoch and checkpoint hold the invariants of their own files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::checkpoint::Checkpoint;
use esker_format::invariant;
use esker_format::segment::TRAILER_BYTES;
use esker_format::value_file::HEADER_BYTES;
use esker_log::sabotage::Bug;
use esker_table::segment::{Segment, segment_file_name, segment_path};
use esker_table::value_file::{ValueFile, value_file_name, value_file_path};
use esker_table::view::{RowGroup, View};
use esker_vfs::{File, FileLock, LockMode, OpenMode};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::maintenance::PinnedState;
use crate::recovery::LOCK_FILE;
use crate::recovery::lock_holder::LockHolder;
use crate::recovery::unfinished_backup::{UNFINISHED_FILE, unfinished};
use crate::{Database, Error, ErrorKind, Result};

/// How much is copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// How a backup is made.
#[derive(Clone, Debug, Default)]
pub struct BackupOptions {
    /// An older backup of the same database: files that it has are linked from there, where they
    /// cannot be (or must not be) from the database itself.
    pub base: Option<PathBuf>,
    /// Whether to copy what the base does not have, rather than to link it: what happens to the
    /// bytes of one does not happen to the other then.
    pub copy: bool,
    /// Whether to say only what would be done.
    pub dry_run: bool,
}

/// What a backup did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupReport {
    /// It holds exactly the commits up to this one.
    pub commit: u64,
    /// Segments and value files that became a second name of a file.
    pub linked: u64,
    /// Bytes of these.
    pub linked_bytes: u64,
    /// Segments and value files that were copied.
    pub copied: u64,
    /// Bytes of these.
    pub copied_bytes: u64,
}

impl Database {
    /// Makes a backup in a directory that does not exist, or is empty. Writers go on meanwhile.
    ///
    /// ```
    /// use esker::{BackupOptions, DataType, Options, Schema};
    ///
    /// let dir = std::env::temp_dir().join(format!("esker-backup-{}", std::process::id()));
    /// let db = Options::new().open(dir.join("db"))?;
    /// let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build()?;
    /// db.create_table("t", schema)?.insert(&[1i64.into()])?;
    /// db.backup(dir.join("monday"), &BackupOptions::default(), &mut |_, _| {})?;
    /// let copy = Options::new().read_only(true).open(dir.join("monday"))?;
    /// assert_eq!(copy.table("t")?.count()?, 1);
    /// # std::fs::remove_dir_all(dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// `progress` gets bytes done and bytes to do.
    ///
    /// # Errors
    /// `InvalidInput` for a database in memory or a directory that is not empty, `Corrupt` when a
    /// file that is copied is damaged, `NoSpace`, `Io`. A directory of a backup that failed is
    /// no database.
    pub fn backup(
        &self,
        dir: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        let (engine, dir) = (self.engine(), dir.as_ref());
        if engine.dir.as_os_str().is_empty() {
            return Err(Error::invalid(
                "a database in memory has no files to back up; save writes them",
            ));
        }
        engine.refuse_used(dir)?;
        let state = engine.exclusively(|engine| {
            if !engine.options.read_only {
                engine.freeze_large_groups()?;
                while engine.seal_frozen()? {}
            }
            let state = engine.pin_state()?;
            // A file that has a second name is never written again: none that the state refers to
            // takes values any more.
            engine.segment_files.values().finish_current();
            Ok(state)
        })?;
        Backup { engine, dir, options, base: options.base.as_deref() }.run(state, progress)
    }
}

struct Backup<'a> {
    engine: &'a Arc<Engine>,
    dir: &'a Path,
    options: &'a BackupOptions,
    base: Option<&'a Path>,
}

impl Backup<'_> {
    fn run(&self, state: PinnedState, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupReport> {
        let PinnedState { mut checkpoint, views } = state;
        let named = checkpoint.tables.iter().flat_map(|table| &table.segments);
        let named: BTreeSet<u64> = named.map(|segment| segment.entry.id).collect();
        let segments = views.iter().flat_map(|view| view.segments());
        let segments: Vec<_> = segments.filter(|s| named.contains(&s.id())).collect();
        let value_files = self.value_files(&views, &segments, checkpoint.commit)?;
        let values: u64 = value_files.iter().map(|file| file.byte_count()).sum();
        let total: u64 = segments.iter().map(|s| s.file_bytes()).sum::<u64>() + values;
        let files = &self.engine.environment.files;
        let mut report = BackupReport { commit: checkpoint.commit, ..BackupReport::default() };
        let _lock = if self.options.dry_run { None } else { Some(self.own_directory()?) };
        let mut done = 0;
        progress(done, total);
        let mut note = |is_linked: bool, bytes: u64| {
            let (count, sum) = match is_linked {
                true => (&mut report.linked, &mut report.linked_bytes),
                false => (&mut report.copied, &mut report.copied_bytes),
            };
            *count += 1;
            *sum += bytes;
            done += bytes;
            progress(done, total);
            self.engine.environment.tasks.pause();
        };
        let lacking = usize::from(Bug::BackupLacksFile.is_planted());
        for segment in segments.into_iter().skip(lacking) {
            note(self.take(segment)?, segment.file_bytes());
        }
        for file in &value_files {
            note(self.take_values(file)?, file.byte_count());
        }
        if self.options.dry_run {
            return Ok(report);
        }
        // The saved indexes stay behind; they are made again from the keys.
        checkpoint.tables.iter_mut().for_each(|table| table.index_file = 0);
        // One would be taken for what is left of a creation.
        checkpoint.number = checkpoint.number.max(2);
        files.sync_dir(self.dir)?;
        self.expect_complete(&checkpoint, &value_files)?;
        self.engine.write_checkpoint_to(self.dir, &checkpoint)?;
        let (environment, database) = (&self.engine.environment, self.engine.database);
        esker_log::create_after(environment, self.dir, database, checkpoint.commit)?;
        files.remove(&self.dir.join(UNFINISHED_FILE))?;
        files.sync_dir(self.dir)?;
        Ok(report)
    }

    /// Asserts that all files are there.
    fn expect_complete(&self, checkpoint: &Checkpoint, values: &[Arc<ValueFile>]) -> Result<()> {
        let files = &self.engine.environment.files;
        let names: BTreeSet<String> = files.list(self.dir)?.into_iter().collect();
        let segments = checkpoint.tables.iter().flat_map(|table| &table.segments);
        for entry in segments.map(|segment| &segment.entry) {
            let path = segment_path(self.dir, entry.id);
            let is_there = names.contains(&segment_file_name(entry.id));
            invariant!(is_there, path.display(), "the checkpoint of the backup names it");
            let (len, named) = (files.open(&path, OpenMode::Read)?.len()?, entry.file_bytes);
            invariant!(len == named, path.display(), "{len} bytes, the checkpoint says {named}");
        }
        for file in values {
            let path = value_file_path(self.dir, file.id());
            let is_there = names.contains(&value_file_name(file.id()));
            invariant!(is_there, path.display(), "rows of the backup refer to it");
        }
        Ok(())
    }

    /// Makes the directory, and holds its lock.
    fn own_directory(&self) -> Result<Box<dyn FileLock>> {
        let files = &self.engine.environment.files;
        files.create_dir_all(self.dir)?;
        let holder = LockHolder::this(&self.engine.environment, Some("a backup")).text();
        let lock = files.lock(&self.dir.join(LOCK_FILE), LockMode::Exclusive, &holder)?;
        self.engine.refuse_used(self.dir)?;
        // Durable before anything else is: what a crash leaves is no database.
        files.open(&self.dir.join(UNFINISHED_FILE), OpenMode::CreateNew)?.sync_data()?;
        files.sync_dir(self.dir)?;
        Ok(lock)
    }

    /// The value files that the rows of the backup refer to.
    fn value_files(
        &self,
        views: &[Arc<View>],
        segments: &[&Arc<Segment>],
        commit: u64,
    ) -> Result<Vec<Arc<ValueFile>>> {
        let of_segments = segments.iter().flat_map(|segment| segment.value_files());
        let mut files: Vec<_> = of_segments.cloned().collect();
        for view in views {
            for row_group in
                view.row_groups.iter().filter(|row_group| matches!(row_group, RowGroup::Group(_)))
            {
                files.extend(row_group.value_files_at(view.schema.fields(), commit)?);
                if self.options.copy {
                    row_group.verify_long(view.schema.fields())?;
                }
            }
        }
        files.sort_by_key(|file| file.id());
        files.dedup_by_key(|file| file.id());
        Ok(files)
    }

    /// Brings a segment over; true when no byte had to be copied.
    fn take(&self, segment: &Segment) -> Result<bool> {
        let from = self.engine.segment_files.path(segment.id());
        let to = segment_path(self.dir, segment.id());
        let in_base = self.base.map(|base| segment_path(base, segment.id()));
        let in_base = match in_base {
            Some(path) if self.is_same(&from, &path)? => Some(path),
            _ => None,
        };
        if self.link(in_base.as_deref(), &from, &to) {
            return Ok(true);
        }
        if !self.options.dry_run {
            segment.verify_all()?;
            self.copy(&from, &to, segment.file_bytes())?;
        }
        Ok(false)
    }

    /// Brings a value file over; true when no byte had to be copied.
    fn take_values(&self, file: &ValueFile) -> Result<bool> {
        // Others than those of the state may be under way. What is copied, or found to be of equal
        // length, has no holes.
        file.wait_written();
        let to = value_file_path(self.dir, file.id());
        let in_base = self.base.map(|base| value_file_path(base, file.id()));
        let in_base = match in_base {
            Some(path) if self.has_same_values(file, &path)? => Some(path),
            _ => None,
        };
        if self.link(in_base.as_deref(), file.path(), &to) {
            return Ok(true);
        }
        if !self.options.dry_run {
            let len = self.engine.environment.files.open(file.path(), OpenMode::Read)?.len()?;
            self.copy(file.path(), &to, len)?;
        }
        Ok(false)
    }

    /// Links a file, from the base where it has it; true when that was done, or would be.
    fn link(&self, in_base: Option<&Path>, from: &Path, to: &Path) -> bool {
        let files = &self.engine.environment.files;
        let own = Some(from).filter(|_| !self.options.copy);
        let mut places = in_base.into_iter().chain(own);
        places.any(|place| self.options.dry_run || files.link(place, to).is_ok())
    }

    fn has_same_values(&self, file: &ValueFile, other: &Path) -> Result<bool> {
        let files = &self.engine.environment.files;
        if !files.exists(other)? {
            return Ok(false);
        }
        let other = files.open(other, OpenMode::Read)?;
        let (len, mut header) = (other.len()?, [0; HEADER_BYTES]);
        if len < header.len() as u64 {
            return Ok(false);
        }
        other.read_exact_at(&mut header, 0)?;
        Ok(file.is_same(len, &header)?)
    }

    /// True when two segment files are of the same bytes: the trailer has a checksum over all of
    /// their checksums.
    fn is_same(&self, one: &Path, other: &Path) -> Result<bool> {
        let files = &self.engine.environment.files;
        if !files.exists(other)? {
            return Ok(false);
        }
        let tail = |path: &Path| {
            let file = files.open(path, OpenMode::Read)?;
            let len = file.len()?;
            let mut bytes = vec![0; TRAILER_BYTES];
            file.read_exact_at(&mut bytes, len.saturating_sub(TRAILER_BYTES as u64))?;
            Ok::<_, Error>((len, bytes))
        };
        Ok(tail(one)? == tail(other)?)
    }

    fn copy(&self, from: &Path, to: &Path, len: u64) -> Result<()> {
        let files = &self.engine.environment.files;
        let source: Arc<dyn File> = files.open(from, OpenMode::Read)?;
        let target = files.open(to, OpenMode::CreateNew)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < len {
            // default: more than a piece is read in pieces
            let bytes = usize::try_from(len - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            // default: more than a piece is read in pieces
            let piece = piece.get_mut(..bytes).unwrap_or_default();
            source.read_exact_at(piece, at)?;
            target.write_all_at(piece, at)?;
            at += bytes as u64;
            self.engine.environment.tasks.pause();
        }
        if Bug::BackupCopyNotSynced.is_planted() {
            return Ok(());
        }
        Ok(target.sync_data()?)
    }
}

impl Engine {
    /// Refuses a directory that holds anything.
    pub(crate) fn refuse_used(&self, dir: &Path) -> Result<()> {
        let files = &self.environment.files;
        if !files.exists(dir)? {
            return Ok(());
        }
        let names = files.list(dir)?;
        match names.iter().find(|name| *name != LOCK_FILE) {
            None => Ok(()),
            Some(name) => {
                let dir = dir.display();
                let message = match names.iter().any(|name| name == UNFINISHED_FILE) {
                    true => unfinished(&dir),
                    false => format!("{dir}: expected an empty directory; it holds {name:?}"),
                };
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
        }
    }
}
