//! Random workloads on simulated machines, recorded so that a crash after any I/O can be tried.
//!
//! A run is a chain of *lives*. In a life a driver works on the database, other clients do so
//! whenever the scheduler lets them, and background work runs; then the machine crashes, and the
//! next life begins with what the crash left. While a life goes on every answer is judged.

mod backups;
mod client;
mod config;
mod loading;
mod numbers;
mod sequences;
mod snapshots;
mod tables;
mod tiny;
mod transactions;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use esker::{Database, ErrorKind};
use esker_vfs::TaskHandle;
use esker_vfs::sim::{
    CrashChoice, CrashImage, Failure as CallFailure, FaultKind, FaultPlan, Generator, Journal,
    Options as SimOptions, Repeat, Script, Simulation,
};

use crate::clock_step;
use crate::history::History;
use crate::model::TableKind;
use crate::oracle::{self, Depth};
pub use backups::BackupMade;
use client::{Client, ClientTask};
pub use config::{Config, DIRECTORY};
pub use sequences::compare as compare_sequence;
pub use tiny::Tiny;
use world::World;
pub use world::modelled;

/// Faults after which a program can keep its promises: nothing lies.
pub const HONEST_FAULTS: [FaultKind; 14] = [
    FaultKind::ReadError,
    FaultKind::ShortRead,
    FaultKind::Interrupted,
    FaultKind::WriteError,
    FaultKind::ShortWrite,
    FaultKind::NoSpaceOnWrite,
    FaultKind::NoSpaceOnSetLen,
    FaultKind::NoSpaceOnCreate,
    FaultKind::SyncErrorExt4Ordered,
    FaultKind::SyncErrorXfs,
    FaultKind::SyncErrorBtrfs,
    FaultKind::SyncDirectoryError,
    FaultKind::NameError,
    FaultKind::Latency,
];

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Operations of the driver in each life.
    pub operations: u64,
    /// The number of lives.
    pub lives: u64,
    /// Odds of each honest fault, up to so many in a million calls; 0 for none.
    pub faults_per_million: u32,
    /// Other faults.
    pub plan: FaultPlan,
    /// One call fails, once or for ever: its number, how, and how often.
    pub failing_call: Option<(u64, CallFailure, Repeat)>,
    /// Whether operations may fail because the machine does.
    pub expect_faults: bool,
    /// Operations of an exhaustive run, in place of random ones.
    pub script: Option<Vec<Tiny>>,
    /// Whether to close the database at the end of the last life.
    pub close: bool,
    /// Whether to record what the disk does.
    pub record: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            operations: 60,
            lives: 2,
            faults_per_million: 0,
            plan: FaultPlan::none(),
            failing_call: None,
            expect_faults: false,
            script: None,
            close: false,
            record: true,
        }
    }
}

/// One life of a database.
#[derive(Clone, Debug)]
pub struct Life {
    /// What the disk did, when it was recorded.
    pub journal: Option<Journal>,
    /// What has been promised after how many I/Os: the newest commit.
    pub promises: Vec<(u64, u64)>,
    /// What had been promised before.
    pub promised_before: u64,
    /// Values of the sequence that were given out, after how many I/Os.
    pub given: Vec<(u64, i64)>,
    /// The greatest that had been given out before.
    pub given_before: i64,
    /// What the database holds after each commit.
    pub history: Arc<History>,
    /// The backups made so far, those of earlier lives included.
    pub backups: Vec<BackupMade>,
    /// I/Os of opening the database.
    pub open_ios: u64,
    /// Calls of the file system.
    pub calls: u64,
    /// What the disk holds at the end, with everything that was written.
    pub end: CrashImage,
    /// Faults that fired.
    pub faults: BTreeMap<FaultKind, u64>,
    /// What was done, after how many I/Os, in words.
    pub operations: Vec<(u64, String)>,
    /// A hash over everything that happened.
    pub trace: u64,
}

/// How many operations a report names.
const REPORTED_OPERATIONS: usize = 24;

impl Life {
    /// The last operations that ended before so many I/Os, and the one that was under way.
    #[must_use]
    pub fn operations_until(&self, ios: u64) -> Vec<String> {
        let count = self.operations.partition_point(|(io, _)| *io <= ios) + 1;
        let until = self.operations.get(..count).unwrap_or(&self.operations);
        let first = until.len().saturating_sub(REPORTED_OPERATIONS);
        let words = until.iter().skip(first);
        words.map(|(io, what)| format!("by {io} I/Os: {what}")).collect()
    }

    /// What had been promised after so many I/Os.
    #[must_use]
    pub fn promised(&self, ios: u64) -> u64 {
        let count = self.promises.partition_point(|(io, _)| *io <= ios);
        let made = self.promises.get(..count).unwrap_or_default();
        let newest = made.iter().map(|(_, commit)| *commit).fold(self.promised_before, u64::max);
        // Commit 1 is the creation itself: it may be done over as long as nothing follows it.
        if newest > 1 { newest } else { 0 }
    }
}

/// Why a run failed, and its last operations.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong.
    pub why: String,
    /// The last operations, in words.
    pub operations: Vec<String>,
}

/// The lives of one run.
///
/// # Errors
/// The first answer that cannot be right.
pub fn run(seed: u64, config: &Config, plan: &Plan) -> Result<Vec<Life>, Failure> {
    let mut lives: Vec<Life> = Vec::new();
    let mut image = CrashImage::empty();
    let mut history = History::default();
    let mut serial = 0;
    let mut given = 0;
    for number in 0..plan.lives {
        let promised = lives.last().map_or(0, |life| life.promised(u64::MAX));
        let options = SimOptions {
            record: plan.record,
            pause_probability: config.pause_probability,
            ..SimOptions::default()
        };
        let seed = seed.wrapping_mul(31).wrapping_add(number);
        let machine = Simulation::from_image(&image, seed, options);
        let mut driver = Driver::new(machine, seed, config, plan, history.clone(), serial);
        driver.world.lock().given_before = given;
        driver.backups = lives.last().map_or_else(Vec::new, BackupMade::left_by);
        driver.is_last = number + 1 == plan.lives;
        let outcome = driver.live(promised);
        let life = driver.end(promised);
        if let Err(why) = outcome {
            return Err(Failure { why, operations: life.operations_until(u64::MAX) });
        }
        serial = driver.world.serial();
        given = life.given(u64::MAX);
        history = (*life.history).clone();
        let mut generator = Generator::new(seed, 33);
        image = driver.world.machine.crash_image(CrashChoice::Random(generator.next_u64()));
        lives.push(life);
    }
    Ok(lives)
}

/// One more life from a crash image, for crashes inside recovery.
///
/// # Errors
/// The first answer that cannot be right.
pub fn relive(
    image: &CrashImage,
    seed: u64,
    config: &Config,
    plan: &Plan,
    history: History,
    (promised, given): (u64, i64),
) -> Result<Life, Failure> {
    let options = SimOptions {
        record: true,
        pause_probability: config.pause_probability,
        ..SimOptions::default()
    };
    let machine = Simulation::from_image(image, seed, options);
    // Serial numbers that no earlier life can have reached.
    let serial = (seed >> 1) | 1 << 62;
    let mut driver = Driver::new(machine, seed, config, plan, history, serial);
    driver.world.lock().given_before = given;
    let outcome = driver.live(promised);
    let life = driver.end(promised);
    match outcome {
        Ok(()) => Ok(life),
        Err(why) => Err(Failure { why, operations: life.operations_until(u64::MAX) }),
    }
}

/// Works on the database through one life.
struct Driver<'a> {
    world: Arc<World>,
    generator: Generator,
    config: &'a Config,
    plan: &'a Plan,
    client: Client,
    backups: Vec<BackupMade>,
    tasks: Vec<(Arc<dyn TaskHandle>, Arc<AtomicU32>)>,
    stopping: Arc<AtomicBool>,
    seed: u64,
    open_ios: u64,
    /// Calls made to verify something, which a failing call does not count.
    verifying_calls: u64,
    is_last: bool,
}

impl<'a> Driver<'a> {
    fn new(
        machine: Simulation,
        seed: u64,
        config: &'a Config,
        plan: &'a Plan,
        history: History,
        serial: u64,
    ) -> Self {
        let mut history = history;
        history.forget_earlier();
        let world = Arc::new(World::new(machine, history, serial, config));
        let client = Client::new(Arc::clone(&world), 0, seed, config.segment_rows);
        Self {
            world,
            generator: Generator::new(seed, 31),
            config,
            plan,
            client,
            backups: Vec::new(),
            tasks: Vec::new(),
            stopping: Arc::default(),
            seed,
            open_ios: 0,
            verifying_calls: 0,
            is_last: false,
        }
    }

    /// What goes wrong from now on.
    fn faults(&self) -> FaultPlan {
        let most = self.plan.faults_per_million;
        let plan = match most {
            0 => self.plan.plan.clone(),
            _ => FaultPlan::swarm(self.seed, &HONEST_FAULTS, most),
        };
        let Some((number, failure, repeat)) = self.plan.failing_call else { return plan };
        let made = self.world.machine.call_count() - self.verifying_calls;
        match number.checked_sub(made) {
            Some(left) => plan.script(Script::any_call(left, failure, repeat)),
            None if repeat == Repeat::ForEver => plan.script(Script::any_call(0, failure, repeat)),
            None => plan,
        }
    }

    /// Does something that the plan must not disturb.
    fn undisturbed<T>(&mut self, verify: impl FnOnce(&World) -> T) -> T {
        let machine = self.world.machine.clone();
        let before = machine.call_count();
        machine.set_faults(FaultPlan::none());
        let result = verify(&self.world);
        self.verifying_calls += machine.call_count() - before;
        machine.set_faults(self.faults());
        result
    }

    fn is_faulty(&self) -> bool {
        self.plan.faults_per_million > 0 || self.plan.expect_faults
    }

    fn live(&mut self, promised: u64) -> Result<(), String> {
        self.world.lock().history.expect_faults(self.is_faulty());
        self.world.machine.set_faults(self.faults());
        self.open(promised)?;
        if let Some(script) = &self.plan.script {
            return self.follow(script);
        }
        self.start_clients();
        for _ in 0..self.plan.operations {
            let more = 1 + self.generator.below(3);
            for (task, budget) in &self.tasks {
                budget.store(u32::try_from(more).unwrap_or(1), Ordering::Relaxed);
                task.wake();
            }
            self.operate()?;
            self.world.judge()?;
            self.verify_backup()?;
            if self.world.lock().over {
                return self.after_the_end();
            }
            if self.generator.chance(250_000) {
                self.look()?;
            }
        }
        if self.plan.close && self.is_last {
            self.stop_clients();
            self.world.judge()?;
            self.close()?;
        }
        Ok(())
    }

    /// After a failed sync what was visible can be read, and nothing can be written.
    fn after_the_end(&mut self) -> Result<(), String> {
        let Ok(db) = self.db() else { return Ok(()) };
        self.undisturbed(|world| {
            let commit = db.snapshot().map_err(|e| oracle::said(&e))?.commit();
            let history = world.lock().history.clone();
            let depth = Depth { gets_every: 2, check: false, queries: true, names: false };
            oracle::compare(&db, &history, commit, depth)
                .map_err(|why| format!("read after a failed sync: {why}"))?;
            let schema = TableKind::Text.schema().map_err(|e| e.to_string())?;
            match db.create_table("late", schema).map_err(|e| e.kind()) {
                Err(ErrorKind::Poisoned) => Ok(()),
                Err(kind) => Err(format!("a write after a failed sync: {kind:?}")),
                Ok(_) => Err("a write after a failed sync was taken".to_owned()),
            }
        })
    }

    /// Does the operations of an exhaustive run.
    fn follow(&mut self, script: &[Tiny]) -> Result<(), String> {
        self.client.tiny_tables();
        self.world.judge()?;
        self.client.tiny_rows();
        self.world.judge()?;
        for operation in script {
            match operation {
                Tiny::Checkpoint => self.whole("checkpoint", Database::checkpoint)?,
                Tiny::Seal => self.whole("wait until idle", Database::wait_idle)?,
                Tiny::Backup => self.back_up()?,
                Tiny::Reopen => self.reopen()?,
                change => self.client.tiny(*change),
            }
            self.world.judge()?;
            self.verify_backup()?;
        }
        Ok(())
    }

    /// Opens the database and finds out what is there.
    fn open(&mut self, promised: u64) -> Result<(), String> {
        let world = Arc::clone(&self.world);
        let open = |config: &Config| config.options(world.machine.environment()).open(DIRECTORY);
        let config = self.config;
        let ios_before = world.machine.io_count();
        let mut failed = false;
        let db = match open(config) {
            Ok(db) => db,
            Err(e) if self.is_faulty() => {
                check_fault(&e)?;
                failed = true;
                world.note(|| format!("open failed: {e}"));
                let again = self.undisturbed(|_| open(config));
                again.map_err(|e| format!("open again: {}", oracle::said(&e)))?
            }
            Err(e) => return Err(format!("open: {}", oracle::said(&e))),
        };
        self.open_ios = world.machine.io_count();
        let commit = oracle::recovered_commit(&db, false)?;
        world.note(|| format!("opened at commit {commit}"));
        if commit < promised {
            return Err(format!("recovered to commit {commit}, promised {promised}"));
        }
        let state = self.undisturbed(|world| {
            let compare = |at| oracle::compare(&db, &world.lock().history, at, Depth::FULL);
            // The open that failed may have started an epoch, whose first frame has a number.
            compare(commit)
                .or_else(|why| if failed { compare(commit.saturating_sub(1)) } else { Err(why) })
        })?;
        let mut inner = world.lock();
        sequences::compare(&db, inner.greatest_value())?;
        inner.history.truncate(commit, state, ios_before);
        inner.db = Some(db);
        drop(inner);
        world.machine.mark(commit);
        Ok(())
    }

    fn start_clients(&mut self) {
        self.stopping = Arc::default();
        // With faults, the number of a commit of unknown outcome must be told from others.
        let clients = if self.is_faulty() { 0 } else { self.config.clients };
        for number in 1..=clients {
            let world = Arc::clone(&self.world);
            let client = Client::new(world, number, self.seed, self.config.segment_rows);
            let budget = Arc::new(AtomicU32::new(0));
            let stopping = Arc::clone(&self.stopping);
            let task = ClientTask { client, budget: Arc::clone(&budget), stopping };
            let tasks = self.world.machine.environment().tasks;
            self.tasks.push((tasks.spawn("client", Box::new(task)), budget));
        }
    }

    fn stop_clients(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        for (task, _) in self.tasks.drain(..) {
            task.wake();
            task.join();
        }
        self.client.rest();
    }

    fn db(&self) -> Result<Database, String> {
        self.world.lock().db.clone().ok_or_else(|| "no database is open".to_owned())
    }

    fn operate(&mut self) -> Result<(), String> {
        match self.generator.below(100) {
            0..5 => self.whole("checkpoint", Database::checkpoint),
            5..13 => self.whole("wait until idle", Database::wait_idle),
            13..18 => self.sync(),
            18..20 => self.reopen(),
            20..23 => self.back_up(),
            23..25 => self.whole("compact", |db| db.compact(false, &mut |_, _| {}).map(drop)),
            25 => self.recount(),
            26 => {
                clock_step::step_wall(&self.world.machine, &mut self.generator);
                Ok(())
            }
            _ => {
                self.client.act();
                Ok(())
            }
        }
    }

    /// An operation on the whole database.
    fn whole(
        &mut self,
        what: &str,
        operation: impl Fn(&Database) -> esker::Result<()>,
    ) -> Result<(), String> {
        let db = self.db()?;
        self.world.note(|| format!("{what} …"));
        let result = operation(&db);
        self.world.note(|| format!("{what}: {result:?}"));
        match result {
            Ok(()) => Ok(()),
            Err(e) if self.is_faulty() => {
                let end = matches!(e.kind(), ErrorKind::Poisoned | ErrorKind::OutcomeUnknown);
                self.world.lock().over |= end;
                check_fault(&e)
            }
            Err(e) => Err(format!("{what}: {:?}: {e}", e.kind())),
        }
    }

    /// No counter was wrong.
    fn recount(&mut self) -> Result<(), String> {
        let dry_run = self.generator.chance(500_000);
        let wrong = self.db()?.recount(dry_run).map_err(|e| format!("recount: {e}"))?;
        if wrong.is_empty() { Ok(()) } else { Err(format!("recount: {wrong:?} were wrong")) }
    }

    /// Everything committed before is durable, in every mode.
    fn sync(&mut self) -> Result<(), String> {
        let before = self.db()?.info().published_commit;
        self.whole("sync", Database::sync)?;
        if !self.world.lock().over {
            self.world.machine.mark(before);
        }
        Ok(())
    }

    /// Compares everything that can be read with the model.
    fn look(&mut self) -> Result<(), String> {
        let db = self.db()?;
        let commit = db.snapshot().map_err(|e| e.to_string())?.commit();
        let history = self.world.lock().history.clone();
        let check = !self.is_faulty();
        let depth = Depth { gets_every: 2, check, queries: true, names: true };
        match oracle::compare(&db, &history, commit, depth) {
            Err(why) if self.is_faulty() && why.contains("(simulated)") => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        let db = self.world.lock().db.take();
        let Some(db) = db else { return Ok(()) };
        let commit = db.info().published_commit;
        let result = db.close();
        self.world.note(|| format!("close: {result:?}"));
        match result {
            Ok(()) => self.world.machine.mark(commit),
            Err(e) if self.is_faulty() => check_fault(&e)?,
            Err(e) => return Err(format!("close: {:?}: {e}", e.kind())),
        }
        Ok(())
    }

    /// Closes the database, reads it read-only, and opens it again.
    fn reopen(&mut self) -> Result<(), String> {
        self.stop_clients();
        self.world.judge()?;
        if self.world.lock().over {
            return Ok(());
        }
        self.locked()?;
        self.close()?;
        if self.generator.chance(500_000) && !self.is_faulty() {
            self.read_only()?;
        }
        let promised = match self.is_faulty() || !self.config.sync {
            true => 0,
            false => self.world.lock().history.newest_commit(),
        };
        self.open(promised)?;
        self.start_clients();
        Ok(())
    }

    /// A second open is refused while the first lasts.
    fn locked(&self) -> Result<(), String> {
        let options = self.config.options(self.world.machine.environment());
        match options.open(DIRECTORY) {
            Err(e) if e.kind() == ErrorKind::Locked => Ok(()),
            Err(e) if self.is_faulty() => check_fault(&e),
            Err(e) => Err(format!("a second open: {:?}: {e}", e.kind())),
            Ok(_) => Err("a second open was not refused".to_owned()),
        }
    }

    /// A read-only open shows everything and writes nothing.
    fn read_only(&self) -> Result<(), String> {
        let machine = &self.world.machine;
        let ios = machine.io_count();
        let db = self.config.options(machine.environment()).read_only(true).open(DIRECTORY);
        let db = db.map_err(|e| format!("open read-only: {:?}: {e}", e.kind()))?;
        let history = self.world.lock().history.clone();
        let commit = oracle::recovered_commit(&db, true)?;
        oracle::compare(&db, &history, commit, Depth::FULL)
            .map_err(|e| format!("read-only: {e}"))?;
        match db.drop_table("apples").map_err(|e| e.kind()) {
            Err(ErrorKind::ReadOnly | ErrorKind::NotFound) => {}
            other => return Err(format!("a read-only database dropped a table: {other:?}")),
        }
        drop(db);
        if machine.io_count() == ios { Ok(()) } else { Err("a read-only open wrote".to_owned()) }
    }

    /// The machine dies here: nothing that is dropped from now on reaches the disk.
    fn end(&mut self, promised_before: u64) -> Life {
        let machine = self.world.machine.clone();
        let life_history = self.world.lock().history.clone();
        let operations = self.world.lock().operations.iter().cloned().collect();
        let journal = machine.journal();
        let (given, given_before) = {
            let mut inner = self.world.lock();
            (std::mem::take(&mut inner.given), inner.given_before)
        };
        let promises = journal.iter().flat_map(|j| j.marks()).map(|m| (m.io, m.value)).collect();
        let faults = machine.faults_fired();
        let end = machine.crash_image(CrashChoice::KeepAll);
        let trace = machine.trace_hash();
        let open_ios = self.open_ios;
        let history = Arc::new(life_history);
        machine.crash_after_io(Some(0));
        self.stop_clients();
        let db = self.world.lock().db.take();
        drop(db);
        machine.kill_tasks();
        Life {
            journal,
            promises,
            promised_before,
            given,
            given_before,
            history,
            backups: std::mem::take(&mut self.backups),
            open_ios,
            calls: machine.call_count() - self.verifying_calls,
            end,
            faults,
            operations,
            trace,
        }
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What is below on the stack cannot go on, so nothing may wait for it.
            std::mem::forget(self.world.lock().db.take());
        }
    }
}

/// An open database that is left as it is, not closed, when a panic passes.
pub struct Opened(Database);

impl std::ops::Deref for Opened {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::mem::forget(self.0.clone());
        }
    }
}

/// An error that a failing machine explains.
fn check_fault(error: &esker::Error) -> Result<(), String> {
    use ErrorKind as K;
    match error.kind() {
        K::Io | K::NoSpace | K::Poisoned | K::OutcomeUnknown => Ok(()),
        kind => Err(format!("a fault of the machine was reported as {kind:?}: {error}")),
    }
}

/// Opens the database of a machine with a configuration.
///
/// # Errors
/// What the engine says.
pub fn open(config: &Config, machine: &Simulation, read_only: bool) -> esker::Result<Opened> {
    let options = config.options(machine.environment()).read_only(read_only);
    Ok(Opened(options.open(Path::new(DIRECTORY))?))
}
