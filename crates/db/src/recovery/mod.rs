//! Opening: find the newest checkpoint, replay the log, start the next epoch.
//!
//! ```text
//! lock ─► newest valid checkpoint ─► scan the log ─► look ahead: which segments are left
//!   ─► open them, index ─► apply each frame ─► start an epoch ─► remove leftovers
//! ```
//!
//! Nothing is modified before the replay has succeeded, and never when the open is read-only.

mod create;
mod index;
pub(crate) mod lock_holder;
mod replay;
mod runs;
pub(crate) mod unfinished_backup;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use esker_arena::{Arena, ArenaOptions, ReaderRegistry};
use esker_format::ClockRecord;
use esker_format::checkpoint::Checkpoint;
use esker_format::edit::Edit;
use esker_format::frame::kind;
use esker_log::sabotage::Bug;
use esker_log::{LogFiles, Purpose, Scan};
use esker_table::segment::{is_unnamed_run, run_file_number};
use esker_table::value_file::value_file_id;
use esker_vfs::sync::{ArcSwap, AtomicBool, AtomicU64, Mutex};
use esker_vfs::{Environment, Event, FileLock, LockMode, OpenMode};

use super::{Error, ErrorKind, Options, Result};
use crate::catalog::names::{NameHistory, Names};
use crate::catalogue::Catalogue;
use crate::channel::Channels;
use crate::commit::hooks::CommitHooks;
use crate::commit::journal::Journal;
use crate::commit::log_reserve::reserve_bytes;
use crate::commit::times::Times;
use crate::commit::watermarks::Watermarks;
use crate::engine::Engine;
use crate::maintenance::{Work, checkpoint_path, parse_number};
use crate::read::kept_lookups::KeptLookups;
use crate::recovery::lock_holder::LockHolder;
use crate::recovery::unfinished_backup::{UNFINISHED_FILE, unfinished};
use crate::transaction::TransactionCommits;
use replay::{Lookahead, Replay};

/// Row ids that a crash may take at the most, those of transactions and loads that came to nothing
/// included: more than are given out between two syncs.
const LOST_ROW_IDS_MAX: u64 = 1 << 31;

/// The name of the lock file.
pub(crate) const LOCK_FILE: &str = "LOCK";

/// What an engine is made of.
struct Parts {
    environment: Environment,
    options: Options,
    dir: PathBuf,
    lock: Option<Box<dyn FileLock>>,
    /// The database, and its hash key.
    of: (u128, [u64; 2]),
    /// What is known of time.
    clock: Option<ClockRecord>,
    journal: Journal,
    watermarks: Arc<Watermarks>,
    /// Whose memory it takes, where that is not its own.
    memory_of: Option<Arc<Engine>>,
}

impl Engine {
    /// Opens or creates the database in a directory.
    pub(crate) fn open(options: Options, dir: &Path) -> Result<Arc<Self>> {
        // default: the machine, unless a test has another
        let environment = options.environment.clone().unwrap_or_else(Environment::os);
        let files = Arc::clone(&environment.files);
        let at = |e: Error| e.at(dir.display());
        if !files.exists(dir)? {
            if options.read_only || !options.create {
                return Err(at(Error::new(ErrorKind::NotFound, "no such database")));
            }
            files.create_dir_all(dir)?;
        }
        check_ours(&environment, dir, &options)?;
        let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
        let holder = LockHolder::this(&environment, options.program.as_deref());
        let lock = match files.lock(&dir.join(LOCK_FILE), mode, &holder.text()) {
            Err(e) if e.kind() == esker_vfs::ErrorKind::Locked => {
                return Err(match LockHolder::read(&environment, dir) {
                    Some(holder) => holder.refusal(dir),
                    None => in_use(dir),
                });
            }
            lock => lock?,
        };
        let (whole, broken) = whole_checkpoints(&environment, dir)?;
        let unfinished = is_unfinished(&environment, dir)?;
        let engine = match whole.first() {
            // The log was durable before the first checkpoint was begun.
            Some(_) if !has_log(&environment, dir)? => {
                return Err(at(Error::corrupt("the log files are missing")));
            }
            // Its checkpoint may be in the page cache only, and no commit depends on it.
            Some(_) if unfinished && !options.read_only => {
                create::create(environment, options, dir, lock)?
            }
            Some(_) => recover(environment, options, dir, lock, whole)?,
            None if !unfinished => {
                // What is broken names its file.
                return Err(match broken.into_iter().next() {
                    Some(why) => Error::corrupt(why),
                    None => at(Error::corrupt("no checkpoint file is left")),
                });
            }
            None if options.read_only || !options.create => {
                return Err(at(Error::new(ErrorKind::NotFound, "no database in this directory")));
            }
            None => create::create(environment, options, dir, lock)?,
        };
        let engine = Arc::new(engine);
        engine.start_tasks();
        engine.wake_maintenance();
        Ok(engine)
    }

    /// A database without files.
    pub(crate) fn in_memory(options: Options) -> Result<Arc<Self>> {
        Self::in_memory_of(options, None)
    }

    /// The same, which takes its memory from another engine.
    pub(crate) fn in_memory_of(
        options: Options,
        memory_of: Option<Arc<Self>>,
    ) -> Result<Arc<Self>> {
        // default: the machine, unless a test has another
        let environment = options.environment.clone().unwrap_or_else(Environment::os);
        let random = || environment.random.next_u64();
        let database = u128::from(random()) << 64 | u128::from(random());
        let of = (database, [random(), random()]);
        let watermarks = Arc::new(Watermarks::new(0));
        let journal = Journal::Memory(Arc::clone(&watermarks), AtomicU64::new(1));
        let (dir, lock, clock) = (PathBuf::new(), None, None);
        let clock_of = memory_of.clone();
        let parts =
            Parts { environment, options, dir, lock, of, clock, journal, watermarks, memory_of };
        let engine = Arc::new(parts.assemble()?);
        if let Some(other) = clock_of {
            engine.go_by_clock_of(&other);
        }
        engine.start_tasks();
        Ok(engine)
    }
}

impl Parts {
    /// An engine without tables.
    fn assemble(self) -> Result<Engine> {
        let Self { environment, options, dir, lock, of, clock, journal, watermarks, memory_of } =
            self;
        let (database, hash_key) = of;
        let arena = match &memory_of {
            Some(other) => Arc::clone(&other.arena),
            None => new_arena(&options)?,
        };
        let registry = ReaderRegistry::new(&arena)?;
        let addressable = arena.reserved_bytes() / ARENA_RESERVE;
        let memory_limit_bytes = options.memory_limit_bytes.min(addressable);
        let times = Arc::new(Times::new(false, clock, &*environment.clock));
        Ok(Engine {
            segment_files: options.segment_files(&environment, &dir, database),
            environment,
            options,
            dir,
            database,
            names: ArcSwap::from_pointee(NameHistory::new(Names::new())),
            events: Mutex::default(),
            wakes: OnceLock::new(),
            sequences: ArcSwap::default(),
            checks: ArcSwap::default(),
            lookups: KeptLookups::default(),
            last_uuid: AtomicU64::new(0),
            hash_key,
            arena,
            memory_of,
            journal,
            watermarks,
            hooks: CommitHooks::default(),
            channels: Channels::default(),
            bound_commits: &TransactionCommits,
            registry,
            next_row_group: AtomicU64::new(1),
            catalogue: Mutex::new(Catalogue::empty()),
            progress: Event::new(),
            maintenance: Mutex::default(),
            maintenance_task: OnceLock::new(),
            flusher_task: OnceLock::new(),
            dirty: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            memory_limit_bytes,
            frozen_bytes: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            held_snapshots: OnceLock::new(),
            times,
            time_is_owed: AtomicBool::new(false),
            seals: Work::default(),
            merges: Work::default(),
            lock_file: Mutex::new(lock),
        })
    }
}

/// Address space per byte of memory, so that either part of the arena can take most of the limit.
pub(crate) const ARENA_RESERVE: u64 = 3;

/// The memory of one database.
fn new_arena(options: &Options) -> Result<Arc<Arena>> {
    let limit_bytes = options.memory_limit_bytes;
    let defaults = ArenaOptions::default();
    let reserve_bytes = defaults.reserve_bytes.max(limit_bytes.saturating_mul(ARENA_RESERVE));
    Ok(Arena::new(ArenaOptions { limit_bytes, reserve_bytes })?)
}

/// The refusal where nothing says who has a database open: readers do not.
fn in_use(dir: &Path) -> Error {
    let dir = dir.display();
    let message = format!(
        "{dir} is open in another process, or by another handle of this one: end it, and try again"
    );
    Error::new(ErrorKind::Locked, message)
}

/// Refuses a directory that holds other people's files and none of ours.
fn check_ours(environment: &Environment, dir: &Path, options: &Options) -> Result<()> {
    let names = match environment.files.list(dir) {
        Ok(names) => names,
        Err(_) if is_file(environment, dir) => {
            let dir = dir.display();
            return Err(Error::invalid(format!("{dir}: not an Esker database, but a file")));
        }
        Err(e) => return Err(e.into()),
    };
    let ours = |name: &String| {
        name == LOCK_FILE || ["log-", "checkpoint-"].iter().any(|p| parse_number(name, p).is_some())
    };
    match names.first() {
        _ if options.unfinished => Ok(()),
        Some(_) if names.iter().any(|name| name == UNFINISHED_FILE) => {
            Err(Error::corrupt(unfinished(&dir.display())))
        }
        Some(first) if !names.iter().any(ours) => {
            let dir = dir.display();
            let message = format!("{dir}: not an Esker database; it holds {first:?}");
            Err(Error::invalid(message))
        }
        None if options.read_only || !options.create => {
            let message = format!("{}: no database in this directory", dir.display());
            Err(Error::new(ErrorKind::NotFound, message))
        }
        _ => Ok(()),
    }
}

fn is_file(environment: &Environment, path: &Path) -> bool {
    let file = environment.files.open(path, OpenMode::Read);
    file.is_ok_and(|file| file.read_exact_at(&mut [0], 0).is_ok())
}

fn has_log(environment: &Environment, dir: &Path) -> Result<bool> {
    let names = environment.files.list(dir)?;
    Ok(names.iter().any(|name| parse_number(name, "log-").is_some()))
}

/// True when a directory without a whole checkpoint holds at most what a crash left of a creation:
/// no commit can ever have been taken.
fn is_unfinished(environment: &Environment, dir: &Path) -> Result<bool> {
    let names = environment.files.list(dir)?;
    let later = |name: &String| parse_number(name, "checkpoint-").is_some_and(|n| n != 1);
    Ok(!names.iter().any(later) && esker_log::unused(environment, dir)?)
}

/// The checkpoints that are whole, newest first, and why others are not.
fn whole_checkpoints(
    environment: &Environment,
    dir: &Path,
) -> Result<(Vec<Checkpoint>, Vec<String>)> {
    let names = environment.files.list(dir)?;
    let mut numbers: Vec<u64> =
        names.iter().filter_map(|name| parse_number(name, "checkpoint-")).collect();
    numbers.sort_unstable();
    let (mut whole, mut broken) = (Vec::new(), Vec::new());
    for number in numbers.into_iter().rev() {
        let path = checkpoint_path(dir, number);
        match read_checkpoint(environment, &path, number)? {
            Ok(checkpoint) => {
                // It is whole, so what it says is what was written: no older one is better.
                checkpoint.check().map_err(|e| Error::from(e).at(path.display()))?;
                whole.push(checkpoint);
            }
            Err(e) if e.kind() == esker_format::ErrorKind::UnknownVersion => {
                return Err(Error::from(e).at(path.display()));
            }
            Err(e) => broken.push(format!("{}: {e}", path.display())),
        }
    }
    Ok((whole, broken))
}

/// The newest checkpoint that is known to be durable, and the log from there.
///
/// A checkpoint that no frame names may be whole in the page cache only: its sync may have failed,
/// or not have been reached. The one before it is there until a frame names the newer one.
fn choose_checkpoint(
    environment: &Environment,
    dir: &Path,
    whole: Vec<Checkpoint>,
) -> Result<(Checkpoint, Scan)> {
    let trusting = Bug::UnnamedCheckpointTrusted.is_planted();
    // default: without a checkpoint opening has failed above
    let oldest_commit = whole.iter().map(|c| c.commit).min().unwrap_or_default();
    let mut whole = whole.into_iter();
    let mut checkpoint =
        whole.next().ok_or_else(|| Error::corrupt("no checkpoint file is left"))?;
    // Read once for all of them.
    let files = LogFiles::read(environment, dir, checkpoint.database, oldest_commit)?;
    loop {
        let log = files.scan(checkpoint.commit)?;
        let Some(older) = whole.next() else { return Ok((checkpoint, log)) };
        if trusting || is_named(&log, checkpoint.number)? {
            return Ok((checkpoint, log));
        }
        if older.database != checkpoint.database {
            let (older, newer) = (older.number, checkpoint.number);
            let message = format!("checkpoints {older} and {newer} are of two databases");
            return Err(Error::corrupt(message));
        }
        checkpoint = older;
    }
}

/// True when a frame names a checkpoint.
fn is_named(log: &Scan, wanted: u64) -> Result<bool> {
    for frame in log.edits() {
        let frame = frame?;
        if matches!(Edit::decode(frame.kind, frame.payload),
            Ok(Edit::Checkpoint { number, .. }) if number == wanted)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_checkpoint(
    environment: &Environment,
    path: &Path,
    number: u64,
) -> Result<esker_format::Result<Checkpoint>> {
    let file = environment.files.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let too_long = |_| Error::corrupt(format!("{}: {len} bytes", path.display()));
    let mut bytes = vec![0; usize::try_from(len).map_err(too_long)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Checkpoint::decode(&bytes, number))
}

fn recover(
    environment: Environment,
    options: Options,
    dir: &Path,
    lock: Box<dyn FileLock>,
    whole: Vec<Checkpoint>,
) -> Result<Engine> {
    // default: without a whole checkpoint numbers begin at 1
    let last_number = whole.first().map_or(0, |newest| newest.number);
    let (checkpoint, scan) = choose_checkpoint(&environment, dir, whole)?;
    let number = checkpoint.number;
    let found = (checkpoint, &scan);
    let mut was_closed = false;
    let mut engine = replay_with((environment, options, dir), Some(lock), found, |replay| {
        scan.frames().try_for_each(|frame| {
            let frame = frame?;
            was_closed = frame.kind == kind::CLOSE;
            replay.apply(&frame)
        })
    })?;
    engine.lock().checkpoint_number = last_number;
    runs::attach(&engine)?;
    if !engine.options.read_only {
        let bytes = engine.segment_bytes() + scan.bytes();
        let log = scan.start(log_options(&engine.watermarks, bytes, &engine.options))?;
        let last = log.next_commit() - 1;
        engine.watermarks.start_at(last);
        remove_leftovers(&engine, number)?;
        engine.journal = Journal::Log(Box::new(log));
        if !was_closed && !Bug::RowIdsGivenAgainAfterCrash.is_planted() {
            skip_lost_row_ids(&engine)?;
        }
    }
    Ok(engine)
}

/// Skips the row ids that a crash may have lost. Clients know events by their row ids, also those
/// of commits that were answered before their sync, so no row id is used twice. A synced frame
/// records the skip, since another crash may follow. On a full disk there is no such frame: the
/// database opens all the same, so that rows can be deleted.
fn skip_lost_row_ids(engine: &Engine) -> Result<()> {
    let mut catalogue = engine.lock();
    let streams = catalogue.tables.iter_mut();
    let streams = streams.filter(|(_, entry)| entry.writer.table().schema().stream().is_some());
    let skipped: Vec<Edit> = streams
        .map(|(table, entry)| {
            entry.writer.reserve_row_ids(LOST_ROW_IDS_MAX);
            Edit::Load {
                table: *table,
                segments: Vec::new(),
                next_row_id: entry.writer.next_row_id(),
                replaced: Vec::new(),
                superseded: Vec::new(),
            }
        })
        .collect();
    let logged = skipped.iter().try_for_each(|edit| engine.log_before(Purpose::Frees, edit));
    drop(catalogue);
    match logged {
        Ok(()) if skipped.is_empty() => Ok(()),
        Ok(()) => engine.sync(),
        Err(e) if e.kind() == ErrorKind::NoSpace => Ok(()),
        Err(e) => Err(e),
    }
}

/// An engine as a checkpoint and the frames above it have it, which `apply` applies.
fn replay_with(
    (environment, options, dir): (Environment, Options, &Path),
    lock: Option<Box<dyn FileLock>>,
    (mut checkpoint, scan): (Checkpoint, &Scan),
    apply: impl FnOnce(&mut Replay<'_>) -> Result<()>,
) -> Result<Engine> {
    let ahead = Lookahead::read(&mut checkpoint, scan)?;
    let watermarks = Arc::new(Watermarks::new(scan.last_commit()));
    // What a reader keeps; who writes starts an epoch once all is applied.
    let next = AtomicU64::new(scan.last_commit() + 1);
    let journal = Journal::Memory(Arc::clone(&watermarks), next);
    let (dir, of, clock) =
        (dir.to_owned(), (checkpoint.database, checkpoint.hash_key), ahead.clock);
    let memory_of = None;
    let parts =
        Parts { environment, options, dir, lock, of, clock, journal, watermarks, memory_of };
    let engine = parts.assemble()?;
    let mut replay = Replay::start(&engine, checkpoint, ahead)?;
    apply(&mut replay)?;
    replay.finish()?;
    Ok(engine)
}

/// How the log of a database runs that takes so many bytes on the disk.
fn log_options(
    watermarks: &Arc<Watermarks>,
    database_bytes: u64,
    options: &Options,
) -> esker_log::Options {
    let marks = Arc::clone(watermarks);
    esker_log::Options {
        on_durable: Some(Arc::new(move |commit, frames| marks.make_durable(commit, frames))),
        reserve_bytes: reserve_bytes(database_bytes, options.log_reserve_bytes),
    }
}

/// Removes files of ours that no catalogue names.
fn remove_leftovers(engine: &Engine, checkpoint: u64) -> Result<()> {
    let catalogue = engine.lock();
    let runs = runs::files(&catalogue);
    let views = catalogue.tables.values().map(|entry| entry.writer.table().view());
    let segments: BTreeSet<u64> =
        views.flat_map(|view| view.segments().map(|s| s.id()).collect::<Vec<_>>()).collect();
    for name in engine.environment.files.list(&engine.dir)? {
        let is_run = run_file_number(&name).is_some() || is_unnamed_run(&name);
        let stale_run = is_run && !runs.contains(&name);
        let stale_checkpoint = parse_number(&name, "checkpoint-").is_some_and(|n| n != checkpoint);
        let stale_segment =
            esker_table::segment::segment_file_id(&name).is_some_and(|id| !segments.contains(&id));
        let stale_index = parse_number(&name, "index-")
            .is_some_and(|n| catalogue.tables.values().all(|t| t.index_file != n));
        let stale_values =
            value_file_id(&name).is_some_and(|id| !engine.segment_files.values().contains(id));
        let is_temporary = name.starts_with(esker_query::TEMPORARY_PREFIX);
        if is_temporary
            || stale_checkpoint
            || stale_segment
            || stale_index
            || stale_run
            || stale_values
        {
            engine.environment.files.remove(&engine.dir.join(&name))?;
        }
    }
    Ok(())
}
