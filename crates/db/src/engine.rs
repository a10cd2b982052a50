//! The engine behind every handle: the commit lock, the watermarks, the catalogue.
//!
//! A commit, step by step (protocol rule 7; the table locks are one lock, the *commit lock*,
//! because one core's worth of applying is more than two cores can feed):
//!
//! ```text
//! lock ─► validate against newest versions ─► number + queue frame ─► apply ─► publish ─► unlock
//!                                                                                        │
//!      return ◄── visible covers it ◄── durable covers it ◄── fsync (this thread or another)
//! ```
//!
//! # Invariants
//!
//! 1. No thread waits or pauses under the commit lock. Two things may do I/O there: the log
//!    reserves disk space for a frame (so that a full disk refuses before anything has a number),
//!    and looking for a key's newest version may touch a block of a segment for the first time.
//! 2. `published` moves under the commit lock; `visible` only grows. See
//!    [`watermarks`](crate::commit::watermarks), which asserts both.
//! 3. Only the maintenance task seals, merges and makes checkpoints, one after another.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

use esker_arena::{Arena, ReadCommits, ReaderRegistry};
use esker_format::suggest::near_or_all;
use esker_format::{Schema, TableId};
use esker_table::segment::SegmentFiles;
use esker_table::{KeyHasher, Table as TableCore};
use esker_vfs::sync::{ArcSwap, AtomicBool, AtomicU64, Mutex, MutexGuard};
use esker_vfs::{Environment, Event, FileLock, TaskHandle};

use crate::catalog::checks::CheckCache;
use crate::catalog::computed_index;
use crate::catalog::names::{NameHistory, Names, TEMPORARY_PREFIX};
use crate::catalog::shared_sequence::Sequences;
use crate::catalogue::Catalogue;
use crate::channel::Channels;
use crate::commit::bound_commits::BoundCommits;
use crate::commit::gathered_events::GatheredEvents;
use crate::commit::hooks::CommitHooks;
use crate::commit::journal::Journal;
use crate::commit::times::Times;
use crate::commit::wakes::CommitWakes;
use crate::commit::watermarks::Watermarks;
use crate::files::Files;
use crate::maintenance::Work;
use crate::read::kept_lookups::KeptLookups;
use crate::{Error, ErrorKind, Options, Result};

/// Snapshots that are held for a while.
pub(crate) trait ExpiringSnapshots: Send + Sync {
    /// Lets those go that were not used lately.
    fn expire(&self);
}

/// Everything that handles share.
pub(crate) struct Engine {
    pub environment: Environment,
    pub options: Options,
    /// The directory; empty for a database in memory.
    pub dir: PathBuf,
    pub database: u128,
    pub hash_key: [u64; 2],
    pub arena: Arc<Arena>,
    /// The engine that it takes its memory from, where it is of a private database.
    pub memory_of: Option<Arc<Self>>,
    pub journal: Journal,
    pub watermarks: Arc<Watermarks>,
    /// What else takes part in commits.
    pub hooks: CommitHooks,
    /// The listeners of channels.
    pub channels: Channels,
    /// What commits become after which rows are gone that others may name.
    pub bound_commits: &'static dyn BoundCommits,
    pub registry: ReaderRegistry,
    pub segment_files: Arc<SegmentFiles>,
    pub next_row_group: AtomicU64,
    pub names: ArcSwap<NameHistory>,
    /// Events that wait for their commits, by stream.
    pub events: Mutex<BTreeMap<TableId, Arc<GatheredEvents>>>,
    /// Wakes those that wait for commits; made when the first one waits.
    pub wakes: std::sync::OnceLock<Arc<CommitWakes>>,
    /// Changed under the commit lock only.
    pub sequences: ArcSwap<Sequences>,
    /// The check constraints in use.
    pub checks: ArcSwap<CheckCache>,
    /// Rows that were looked up for fields of others.
    pub lookups: KeptLookups,
    /// Milliseconds and counter of the newest UUID.
    pub last_uuid: AtomicU64,
    pub catalogue: Mutex<Catalogue>,
    /// Signalled when maintenance has done something: writers under memory pressure wait on it.
    pub progress: Event,
    pub maintenance: Mutex<crate::maintenance::State>,
    pub maintenance_task: std::sync::OnceLock<Arc<dyn TaskHandle>>,
    pub flusher_task: std::sync::OnceLock<Arc<dyn TaskHandle>>,
    pub dirty: AtomicBool,
    pub stopping: AtomicBool,
    /// What the arena may take: the limit that was set, or less when the system has no more.
    pub memory_limit_bytes: u64,
    /// Frozen bytes that wait to be sealed.
    pub frozen_bytes: AtomicU64,
    /// Transactions that were begun.
    pub transactions: AtomicU64,
    /// What the handle holds for cursors.
    pub held_snapshots: std::sync::OnceLock<Weak<dyn ExpiringSnapshots>>,
    /// When rows expire.
    pub times: Arc<Times>,
    /// The disk was too full to log the time.
    pub time_is_owed: AtomicBool,
    pub seals: Work,
    pub merges: Work,
    /// Held until the database is closed.
    pub lock_file: Mutex<Option<Box<dyn FileLock>>>,
}

/// Says which tables there are, or that a view has the name.
pub(crate) fn no_table(name: &str, names: &Names) -> Error {
    if let Some(view) = names.views.get(name) {
        let kind = view.kind();
        return Error::invalid(format!(
            "{name:?} is a {kind}: expected a table; rows are changed in the tables that it reads"
        ));
    }
    if let Some(table) = name.strip_prefix(TEMPORARY_PREFIX) {
        return Error::new(
            ErrorKind::NotFound,
            format!(
                "no temporary table {table:?} here: a session has those that it makes by CREATE \
                 TEMP TABLE, until it ends"
            ),
        );
    }
    if let Some((namespace, _)) = name.split_once('.')
        && names.in_namespace(name).is_none()
    {
        let error = names.no_namespace(namespace);
        return Error::new(error.kind(), format!("no table {name:?}: {error}"));
    }
    let all = names.keys().chain(names.views.keys());
    let known = near_or_all(name, "tables", all.map(String::as_str));
    Error::new(ErrorKind::NotFound, format!("no table {name:?}{known}"))
}

impl Engine {
    /// The events of a stream that wait for their commits.
    pub(crate) fn gathered_events(&self, table: TableId) -> Arc<GatheredEvents> {
        // default: nothing panics while the list changes
        let mut all = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = |known: &TableId| {
            let names = self.names.load();
            names.newest().values().any(|core| core.id() == *known)
        };
        all.retain(|known, events| {
            let is_used = *known == table || Arc::strong_count(events) > 1;
            is_used || (events.has_recent() && is_there(known))
        });
        Arc::clone(all.entry(table).or_default())
    }

    /// Forgets which events are there, of all streams, but for those that are looked at now.
    pub(crate) fn forget_recent_events(&self) {
        // default: nothing panics while the list changes
        let all = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().for_each(|events| events.forget_recent());
    }

    /// The bytes of events that wait for their commit, of all streams.
    pub(crate) fn waiting_event_bytes(&self) -> u64 {
        // default: nothing panics while the list changes
        let all = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(|events| events.backlog().0).sum()
    }

    /// How statements reach files.
    ///
    /// # Errors
    /// `InvalidInput` where they do not.
    pub(crate) fn file_access(&self) -> Result<Arc<dyn Files>> {
        self.options.files.clone().ok_or_else(|| {
            Error::invalid(
                "this database reaches no files: a program gives it some by Options::files, a \
                 server by the key files_dir",
            )
        })
    }

    /// The commit lock.
    pub fn lock(&self) -> MutexGuard<'_, Catalogue> {
        // default: a panic leaves what is locked as it was, or whole
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit lock, for a change.
    pub fn lock_for_change(&self) -> Result<MutexGuard<'_, Catalogue>> {
        if self.options.read_only {
            let message = "the database was opened for reading";
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        let catalogue = self.lock();
        if catalogue.closed {
            return Err(Error::invalid("the database is closed"));
        }
        if catalogue.broken {
            let message = "a commit could not be applied; open the database again";
            return Err(Error::new(ErrorKind::Poisoned, message));
        }
        Ok(catalogue)
    }

    /// A number that no group or segment has had.
    pub fn new_row_group(&self) -> u64 {
        self.next_row_group.fetch_add(1, Ordering::Relaxed)
    }

    /// No new group or segment gets a number up to this one.
    pub fn note_row_group(&self, id: u64) {
        self.next_row_group.fetch_max(id + 1, Ordering::Relaxed);
    }

    /// A number that no transaction has had.
    pub fn new_transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Ordering::Relaxed)
    }

    /// The hash of primary keys.
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.hash_key)
    }

    /// True when there are files.
    pub fn is_durable(&self) -> bool {
        matches!(self.journal, Journal::Log(_))
    }

    /// The commit that reads see.
    pub fn visible(&self) -> u64 {
        self.watermarks.visible()
    }

    /// The oldest commit that any snapshot reads at.
    pub fn oldest(&self) -> u64 {
        self.registry.oldest(self.watermarks.visible())
    }

    /// All commits that snapshots read at, or may yet.
    pub fn read_commits(&self) -> ReadCommits {
        self.registry.read_commits(self.watermarks.visible())
    }

    /// Lets snapshots of cursors go that were not used lately.
    pub(crate) fn expire_held_snapshots(&self) {
        if let Some(held) = self.held_snapshots.get().and_then(Weak::upgrade) {
            held.expire();
        }
    }

    /// From a commit on, readers find the tables of the catalogue. Under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` when newer ones are published already.
    pub fn publish_names(&self, commit: u64, catalogue: &Catalogue) -> Result<()> {
        let changed = self.names.load().changed(commit, self.oldest(), catalogue.names())?;
        self.names.store(Arc::new(changed));
        Ok(())
    }

    /// A table that no catalogue knows yet, with a number of its own.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn new_numbered_table(&self, name: &str, schema: Schema) -> Result<Arc<TableCore>> {
        let mut catalogue = self.lock_for_change()?;
        let core = self.new_table(TableId(catalogue.next_table), name, schema)?;
        catalogue.next_table += 1;
        Ok(core)
    }

    /// The same with a number that it has already.
    pub fn new_table(&self, id: TableId, name: &str, schema: Schema) -> Result<Arc<TableCore>> {
        let (schema, arena) = (Arc::new(schema), Arc::clone(&self.arena));
        let (what, hasher) = ((name.to_owned(), schema), self.hasher());
        let core = TableCore::with_compiler(id, what, arena, hasher, computed_index::compiler)?;
        Ok(Arc::new(core))
    }

    /// Tells maintenance that there may be work.
    pub fn wake_maintenance(&self) {
        if let Some(task) = self.maintenance_task.get() {
            task.wake();
        }
    }
}
