//! The simulated machine: one thread, seeded order, a faulty disk.
//!
//! A [`Simulation`] is a whole machine made from one seed. Its [`Environment`] behaves like the
//! real one, except that nothing in it is real: files are in memory, time moves when somebody
//! waits, tasks run on the caller's thread in an order drawn from the seed, and the disk forgets
//! what was not synced whenever the driver says so. The same seed gives the same run, down to
//! the last random draw: [`Simulation::trace_hash`] proves it.
//!
//! # Crash campaigns
//!
//! Run the workload once, recorded; then visit every I/O and crash there, in as many ways as
//! wanted. A crash image holds the durable state and a chosen subset of what was pending. It
//! opens as a new machine, on which the engine recovers.
//!
//! ```
//! use esker_vfs::OpenMode;
//! use esker_vfs::sim::{CrashChoice, Options, Simulation};
//!
//! // The workload, once. Marks say what had been acknowledged after how many I/Os.
//! let machine = Simulation::new(7, Options { record: true, ..Options::default() });
//! let files = machine.environment().files;
//! files.create_dir_all("db".as_ref())?;
//! let log = files.open("db/log".as_ref(), OpenMode::CreateNew)?;
//! files.sync_dir("db".as_ref())?;
//! for commit in 1..=3_u8 {
//!     log.write_all_at(&[commit], u64::from(commit) - 1)?;
//!     log.sync_data()?;
//!     machine.mark(commit.into());
//! }
//!
//! // A crash after every I/O.
//! let journal = machine.journal().expect("it was recorded");
//! let mut cursor = journal.cursor();
//! let mut images = 0;
//! loop {
//!     let acked = journal.marks_until(cursor.position()).last().map_or(0, |mark| mark.value);
//!     let subsets = (0..1 << cursor.pending_count()).map(CrashChoice::Subset);
//!     for choice in subsets.chain((0..4).map(CrashChoice::Random)) {
//!         let image = cursor.crash_image(choice);
//!         let after = Simulation::from_image(&image, 8, Options::default());
//!         // Here the engine would recover on `after.environment()` and be checked.
//!         let files = after.environment().files;
//!         let len = match files.open("db/log".as_ref(), OpenMode::Read) {
//!             Ok(file) => file.len()?,
//!             Err(_) => 0,
//!         };
//!         assert!(len >= acked, "{} lost a commit", cursor.describe());
//!         images += 1;
//!     }
//!     if !cursor.advance() {
//!         break;
//!     }
//! }
//! assert!(images > 50);
//! # Ok::<(), esker_vfs::Error>(())
//! ```
//!
//! * The position of a cursor is a number of I/Os: calls for which [`CallKind::is_io`] holds,
//!   failed ones included. After one with [`JournalCursor::changed`] false nothing new can happen.
//! * [`CrashImage::fingerprint`] tells images apart, so that equal ones need checking once.
//! * [`CrashImage::insert`] makes images by hand, [`CrashImage::copy_to`] saves one to look at.
//! * A crash inside recovery: record the machine made from the image, and start over.
//! * [`JournalCursor`] and [`CrashImage`] are `Send` and cheap to clone.
//!
//! # Error sweeps
//!
//! [`Script::any_call`] makes call *k* fail, once or for ever; run with *k* = 0, 1, … until
//! [`Simulation::faults_fired`] stays empty, which for a failure that does not apply to every
//! call means until *k* reaches [`Simulation::call_count`]. [`FaultPlan::with`] gives odds,
//! [`FaultPlan::swarm`] draws the odds too; [`FaultKind::is_silent`] tells which faults no program
//! can withstand, only detect. [`Options::crash_after_io`] kills the machine in the
//! middle: from there on every call fails, so that the engine unwinds by errors.
//!
//! # Processes and tasks
//!
//! A process dies by being dropped or forgotten: images hold no locks and no tasks. Dropping the
//! last clone of a [`Simulation`] drops its tasks; the environment itself goes on to work.
//! Drive concurrent clients as tasks; commit paths that call [`Tasks::pause`](crate::Tasks::pause)
//! let others in there, with odds of [`Options::pause_probability`].

mod clock;
mod contents;
mod disk;
mod effect;
mod faults;
mod file;
mod files;
mod image;
mod journal;
mod pending;
mod random;
mod scheduler;
mod tear;
mod trace;
mod world;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use faults::{CallKind, Failure, FaultKind, FaultPlan, Repeat, Script, SyncReport};
pub use image::{CrashChoice, CrashImage};
pub use journal::{Journal, JournalCursor, Mark};
pub use pending::{Pending, PendingKind};
pub use random::Generator;

use crate::Environment;
use disk::Disk;
use effect::Effect;
use world::World;

/// How to make a [`Simulation`].
#[derive(Clone, Debug)]
pub struct Options {
    /// What goes wrong. Nothing, by default.
    pub faults: FaultPlan,
    /// Keep a journal of all changes, for [`Simulation::journal`]. Off by default.
    pub record: bool,
    /// Crash after this many I/Os: every later call fails. Never, by default.
    pub crash_after_io: Option<u64>,
    /// How often in a million a [`Tasks::pause`](crate::Tasks::pause) steps a task: 100,000 by
    /// default.
    pub pause_probability: u32,
    /// A pause below this many steps on the stack does nothing: 8 by default.
    pub max_pause_depth: usize,
    /// A wait that takes more steps than this is reported as a livelock: a million by default.
    pub max_steps: u64,
    /// What [`Tasks::parallelism`](crate::Tasks::parallelism) says: 4 by default.
    pub parallelism: usize,
    /// The most that an ordinary call adds to the clock: 20,000 ns by default.
    pub latency_ns: u64,
    /// What the disk holds before it is full; without bound by default.
    pub capacity_bytes: u64,
    /// How many lines of trace to keep for [`Simulation::trace_lines`]: none by default, as they
    /// cost time.
    pub trace_lines: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            faults: FaultPlan::none(),
            record: false,
            crash_after_io: None,
            pause_probability: 100_000,
            max_pause_depth: 8,
            max_steps: 1_000_000,
            parallelism: 4,
            latency_ns: 20_000,
            capacity_bytes: u64::MAX,
            trace_lines: 0,
        }
    }
}

/// A simulated machine. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Simulation(Arc<Owner>);

/// Tasks hold on to the world and the world to tasks: the last handle cuts the knot.
#[derive(Debug)]
struct Owner(Arc<World>);

impl Drop for Owner {
    fn drop(&mut self) {
        let tasks = self.0.scheduler().kill_all();
        drop(tasks);
    }
}

impl Simulation {
    /// A machine with an empty disk.
    #[must_use]
    pub fn new(seed: u64, options: Options) -> Self {
        Self(Arc::new(Owner(World::new(Disk::new(), seed, options))))
    }

    /// A machine that starts with what a crash has left.
    #[must_use]
    pub fn from_image(image: &CrashImage, seed: u64, options: Options) -> Self {
        Self(Arc::new(Owner(World::new(image.disk.clone(), seed, options))))
    }

    fn world(&self) -> &Arc<World> {
        &self.0.0
    }

    /// The seam, for the engine.
    #[must_use]
    pub fn environment(&self) -> Environment {
        let world = self.world();
        Environment {
            files: Arc::new(files::SimFiles(Arc::clone(world))),
            clock: Arc::new(clock::SimClock(Arc::clone(world))),
            random: Arc::new(random::SimRandom(Arc::clone(world))),
            tasks: Arc::new(scheduler::SimTasks(Arc::clone(world))),
        }
    }

    /// How many calls of the file system there have been.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.world().lock().calls
    }

    /// How many of them might have changed the disk.
    #[must_use]
    pub fn io_count(&self) -> u64 {
        self.world().lock().ios
    }

    /// Leaves a note in the journal: by the I/Os so far, `value` holds.
    pub fn mark(&self, value: u64) {
        let mut state = self.world().lock();
        let mark = Mark { io: state.ios, value };
        state.marks.push(mark);
    }

    /// What has been recorded so far; nothing without [`Options::record`].
    #[must_use]
    pub fn journal(&self) -> Option<Journal> {
        self.world().lock().journal()
    }

    /// A crash now, seen from outside: the machine itself goes on.
    #[must_use]
    pub fn crash_image(&self, choice: CrashChoice) -> CrashImage {
        CrashImage::of(&self.world().lock().disk, choice)
    }

    /// The changes that a crash now may keep or lose, in the order of the bits of
    /// [`CrashChoice::Subset`].
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        self.world().lock().disk.describe_pending()
    }

    /// How many there are.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.world().lock().disk.pending().len()
    }

    /// Crashes the machine once `ios` I/Os have happened in all, or never: then, had it crashed,
    /// only the process died, and the next one finds the page cache as it was.
    pub fn crash_after_io(&self, ios: Option<u64>) {
        self.world().lock().set_crash_after(ios);
    }

    /// True once a call has failed because the machine had crashed.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.world().lock().crashed
    }

    /// Drops all tasks, as the death of their process does. Joining them returns.
    pub fn kill_tasks(&self) {
        let tasks = self.world().scheduler().kill_all();
        drop(tasks);
    }

    /// Changes what goes wrong from now on.
    pub fn set_faults(&self, plan: FaultPlan) {
        self.world().lock().faults.set_plan(plan);
    }

    /// Changes what the disk holds before it is full: what it holds already may be more.
    pub fn set_capacity_bytes(&self, bytes: u64) {
        self.world().lock().capacity = bytes;
    }

    /// What the files on the disk take, in bytes.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.world().lock().disk.used_bytes()
    }

    /// Another program fills the disk after this many calls in all, as [`Simulation::call_count`]
    /// counts them: what is freed later can be used again.
    pub fn fill_disk_after(&self, calls: u64) {
        self.world().lock().fill_after = Some(calls);
    }

    /// Adds one thing that goes wrong.
    pub fn add_script(&self, script: Script) {
        self.world().lock().faults.add_script(script);
    }

    /// How often each kind of fault has fired.
    #[must_use]
    pub fn faults_fired(&self) -> BTreeMap<FaultKind, u64> {
        self.world().lock().faults.fired.to_map()
    }

    /// Inverts one bit of a file, on the disk and in the page cache. False when there is no
    /// such byte.
    pub fn flip_bit(&self, path: impl AsRef<Path>, byte: u64, bit: u8) -> bool {
        let mut state = self.world().lock();
        let Some(node) = state.disk.resolve(path.as_ref()) else { return false };
        if state.disk.file(node).is_none_or(|file| file.current.len() <= byte) {
            return false;
        }
        state.apply(Effect::FlipBit { node, byte, bit });
        state.faults.fired.count(FaultKind::BitFlip);
        true
    }

    /// Empties the page cache: reads now see what is on the disk, or on its way there.
    pub fn drop_page_cache(&self) {
        self.world().lock().apply(Effect::DropCache);
    }

    /// Moves all clocks forward.
    pub fn advance_clock(&self, by: Duration) {
        self.world().lock().time.advance(clock::nanoseconds(by));
    }

    /// Moves the wall clock alone, back when negative.
    pub fn shift_wall_clock(&self, us: i64) {
        self.world().lock().time.shift_wall(us);
    }

    /// Moves boot time alone, back when negative: as another machine with the same boot id would
    /// show it, or one that was restored from a picture of its memory.
    pub fn shift_boottime(&self, us: i64) {
        self.world().lock().time.shift_boottime(us);
    }

    /// Boots the machine again, as far as its clocks show that: boot time begins again, and there
    /// is another boot id.
    pub fn reboot_clock(&self) {
        self.world().lock().time.reboot();
    }

    /// Sets which boot it is; `None` is a machine that does not know.
    pub fn set_boot_id(&self, boot_id: Option<u128>) {
        self.world().lock().time.set_boot_id(boot_id);
    }

    /// A hash over every call, scheduling decision, clock reading and random draw so far.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.world().lock().trace.hash()
    }

    /// The last happenings in words, up to [`Options::trace_lines`] of them.
    #[must_use]
    pub fn trace_lines(&self) -> Vec<String> {
        self.world().lock().trace.lines()
    }
}
