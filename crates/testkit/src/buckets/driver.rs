//! One life: opening, one operation after the other, looking at everything now and then.

use std::sync::Arc;

use esker::{
    BucketOptions, DataType, Database, ErrorKind, Moment as Now, PutOptions, Schema, Snapshot, Ttl,
};
use esker_vfs::sim::{CrashChoice, CrashImage, Generator, Simulation};

use super::Life;
use super::clocks::{self, Clocks};
use super::lease::{self, LEASES};
use super::model::{History, NAMES, State};
use super::observe::{self, CLOCK, Found, MARGIN_US, Moments, PROBE, PROBE_TTL, TABLE, pairs};
use crate::oracle::{self, said};
use crate::workload::{Config, DIRECTORY};

/// The log may know a time that is so much older than the last commit, in microseconds.
const LAG_US: i64 = 1_000_000;
/// How often everything is looked at, in a million.
const LOOKS: u32 = 200_000;

/// A snapshot, and what it must show.
pub(super) struct Held {
    pub snapshot: Snapshot,
    pub state: Arc<State>,
    pub now: Now,
}

/// Works on the buckets through one life.
pub(super) struct Driver<'a> {
    pub machine: Simulation,
    pub generator: Generator,
    pub config: &'a Config,
    pub db: Option<Database>,
    pub state: Arc<State>,
    /// What the database said last of the time.
    pub now: Now,
    pub held: Vec<Held>,
    pub serial: u64,
    /// The database has no files: it is neither closed nor crashed.
    pub in_memory: bool,
    history: History,
    times: Vec<(u64, Now)>,
    operations: Vec<(u64, String)>,
    promised_before: u64,
    /// The newest commit that returned before it was durable.
    unsynced: u64,
    /// The latest that it has been.
    high: Now,
    /// What is known of the clocks since the database was opened.
    pub clocks: Clocks,
    open_ios: u64,
}

/// What the newest change is to be durable by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// As the database says.
    Default,
    Yes,
    No,
}

impl Synced {
    pub fn option(self) -> Option<bool> {
        match self {
            Self::Default => None,
            Self::Yes => Some(true),
            Self::No => Some(false),
        }
    }

    pub fn options(self, ttl: Ttl) -> PutOptions {
        let options = PutOptions::new().ttl(ttl);
        self.option().map_or(options, |sync| options.sync(sync))
    }
}

impl<'a> Driver<'a> {
    pub fn new(machine: Simulation, seed: u64, config: &'a Config, before: Option<&Life>) -> Self {
        let earlier = before.map(|life| Arc::clone(&life.history)).unwrap_or_default();
        Self {
            machine,
            generator: Generator::new(seed, 92),
            config,
            db: None,
            state: Arc::default(),
            now: Now::FIRST,
            held: Vec::new(),
            serial: seed << 16,
            in_memory: false,
            history: (*earlier).clone(),
            times: Vec::new(),
            operations: Vec::new(),
            promised_before: before.map_or(0, |life| life.promised(u64::MAX)),
            unsynced: 0,
            high: before.map_or(Now::FIRST, |life| life.high(u64::MAX)),
            clocks: Clocks::default(),
            open_ios: 0,
        }
    }

    pub fn live(&mut self, operations: u64) -> Result<(), String> {
        if self.high != Now::FIRST {
            clocks::wake(&self.machine, self.high, &mut self.generator);
        }
        let earlier = self.history.clone();
        self.open(self.promised_before, &earlier)?;
        self.open_ios = self.machine.io_count();
        self.set_up()?;
        self.bring_back()?;
        for _ in 0..operations {
            self.settle()?;
            self.operate()?;
            if self.generator.chance(LOOKS) {
                self.look()?;
            }
        }
        Ok(())
    }

    pub fn db(&self) -> Result<Database, String> {
        self.db.clone().ok_or_else(|| "no database is open".to_owned())
    }

    pub fn note(&mut self, what: impl Into<String>) {
        self.operations.push((self.machine.io_count(), what.into()));
    }

    /// Opens the database, and finds out what is there.
    pub fn open(&mut self, promised: u64, earlier: &History) -> Result<(), String> {
        let options = self.config.options(self.machine.environment());
        let db = if self.in_memory { options.memory() } else { options.open(DIRECTORY) };
        let db = db.map_err(|e| format!("open: {}", said(&e)))?;
        let commit = oracle::recovered_commit(&db, false)?;
        self.db = Some(db.clone());
        self.clocks = Clocks::default();
        if commit < promised {
            return Err(format!("recovered to commit {commit}, promised {promised}"));
        }
        let told_us = earlier.told_us(commit);
        let now = observe::time_of(&db)?;
        self.note(format!("opened at commit {commit}, {now:?}"));
        let Some(now) = now else {
            if earlier.candidates(commit).iter().all(|state| state.is_ready) {
                return Err(format!("commit {commit}: the clock is gone"));
            }
            self.state = Arc::default();
            self.history =
                History::opened(&Arc::new(earlier.clone()), commit, told_us, Arc::default());
            return Ok(());
        };
        if now.elapsed_us < told_us {
            return Err(format!("commit {commit}: {now:?}, and the log was told {told_us}"));
        }
        self.now = now;
        let mut outcome = Err(format!("commit {commit}: no state may hold"));
        // Of two that look the same, since what was put has expired, the later one says more.
        for state in earlier.candidates(commit).into_iter().rev() {
            self.clear_of_ends(&state)?;
            let moments = Moments::until(self.now, self.high);
            outcome = observe::compare(&db, &state, moments, &mut self.generator)
                .map(|found| without_dropped(&state, &found, moments));
            if outcome.is_ok() {
                break;
            }
        }
        let state = outcome.map_err(|why| format!("after commit {commit}: {why}"))?;
        self.state = Arc::new(state);
        let earlier = Arc::new(earlier.clone());
        self.history = History::opened(&earlier, commit, told_us, Arc::clone(&self.state));
        self.machine.mark(commit);
        Ok(())
    }

    fn set_up(&mut self) -> Result<(), String> {
        if self.state.is_ready {
            return Ok(());
        }
        let db = self.db()?;
        let from = db.info().published_commit;
        let make = || {
            for name in NAMES {
                match db.create_bucket(name, &BucketOptions::new()) {
                    Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                    _ => {}
                }
            }
            let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
            match db.create_table(TABLE, schema.primary_key(["id"]).build()?) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
            match db.create_table(LEASES, lease::schema()?) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
            let options = Synced::Yes.options(Ttl::After(PROBE_TTL));
            db.bucket(CLOCK)?.put_with(PROBE, "", options)
        };
        make().map_err(|e| format!("set up: {}", said(&e)))?;
        let until = db.info().published_commit;
        self.state = Arc::new(State { is_ready: true, ..State::default() });
        self.history.push((from, until), i64::MIN, Arc::clone(&self.state));
        self.machine.mark(from + 1);
        self.note("set up");
        self.read_time()
    }

    /// Moves the clock past ends that are near: what follows meets no end.
    pub fn settle(&mut self) -> Result<(), String> {
        let state = Arc::clone(&self.state);
        self.clear_of_ends(&state)?;
        self.let_date_follow()
    }

    pub(super) fn clear_of_ends(&mut self, state: &State) -> Result<(), String> {
        self.read_time()?;
        observe::clear_of_ends(&self.db()?, &self.machine, state)?;
        self.read_time()
    }

    /// Does a change that leads to a state, once it has returned.
    pub fn change(
        &mut self,
        what: String,
        (mut state, synced): (State, Synced),
        tells_time: bool,
        run: impl FnOnce(&mut Self, &Database, &mut State) -> Result<bool, String>,
    ) -> Result<(), String> {
        let db = self.db()?;
        let from = db.info().published_commit;
        let before = self.now;
        let outcome = run(self, &db, &mut state);
        let info = db.info();
        let (until, visible) = (info.published_commit, info.visible_commit);
        self.note(format!("{what}: {outcome:?}, commits {from} to {until}"));
        self.read_time()?;
        let took = self.now.elapsed_us - before.elapsed_us;
        if took > MARGIN_US {
            self.note(format!("it took {took} us"));
        }
        let changed = outcome.map_err(|why| format!("{what}: {why}"))?;
        if !changed {
            return Ok(());
        }
        // Nobody needs the time while no entry ends.
        let tells_time = tells_time
            && (self.state.is_to_end_after(before) || self.state.leases.by != state.leases.by);
        let told_us = if tells_time { before.elapsed_us - LAG_US } else { i64::MIN };
        self.state = Arc::new(state);
        if until > from {
            self.history.push((from, until), told_us, Arc::clone(&self.state));
        }
        let is_synced = match synced {
            Synced::Default => self.config.sync,
            Synced::Yes => true,
            Synced::No => false,
        };
        if !is_synced {
            self.unsynced = until;
        } else if until > from {
            self.machine.mark(if visible > self.unsynced { visible } else { from + 1 });
        }
        Ok(())
    }

    /// Compares everything, and what snapshots show.
    pub fn look(&mut self) -> Result<(), String> {
        self.settle()?;
        let db = self.db()?;
        let state = Arc::clone(&self.state);
        observe::compare(&db, &state, Moments::at(self.now), &mut self.generator)
            .map_err(|why| format!("while it ran: {why}"))?;
        let report = db.check().map_err(|e| format!("check: {}", said(&e)))?;
        if let Some(problem) = report.problems.first() {
            return Err(format!("check finds {problem:?}"));
        }
        self.held.iter().try_for_each(Held::compare)
    }

    /// The machine dies here.
    pub fn end(mut self, left: CrashChoice) -> (Life, CrashImage) {
        let image = self.machine.crash_image(left);
        let journal = self.machine.journal();
        self.machine.crash_after_io(Some(0));
        self.held.clear();
        self.db = None;
        self.machine.kill_tasks();
        let life = Life {
            journal,
            promised_before: self.promised_before,
            open_ios: self.open_ios,
            history: Arc::new(std::mem::take(&mut self.history)),
            times: std::mem::take(&mut self.times),
            faults: self.machine.faults_fired(),
            operations: std::mem::take(&mut self.operations),
        };
        (life, image)
    }

    /// It may have been so late.
    pub fn rise_high(&mut self, now: Now) {
        self.high = observe::latest(self.high, now);
        self.times.push((self.machine.io_count(), self.high));
    }

    /// The state holds after a commit between two.
    pub fn push_history(&mut self, (from, until): (u64, u64)) {
        if until > from {
            self.history.push((from, until), i64::MIN, Arc::clone(&self.state));
        }
    }

    /// What there was before a close, to be opened again.
    pub fn history(&self) -> History {
        self.history.clone()
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What is below on the stack cannot go on, so nothing may wait for it.
            std::mem::forget((self.db.take(), std::mem::take(&mut self.held)));
        }
    }
}

impl Held {
    /// It shows what it showed, whatever has been merged or has expired since.
    pub fn compare(&self) -> Result<(), String> {
        let moments = Moments::at(self.now);
        let at = self.snapshot.commit();
        for number in 0..NAMES.len() {
            let Some(name) = self.state.name(number) else { continue };
            let expected = self.state.bucket(number);
            let bucket = self.snapshot.bucket(name).map_err(|e| said(&e))?;
            let found = pairs(bucket.iter())?;
            let of = |why: String| format!("snapshot of {at}, {name}: {why}");
            observe::expect(&found, expected, moments.elapsed).map_err(of)?;
            let count = self.snapshot.table(name).and_then(|table| table.count());
            if count.map_err(|e| said(&e))? != found.len() as u64 {
                return Err(of("its count is wrong".to_owned()));
            }
            for key in expected.entries.keys() {
                let got = bucket.get(key).map_err(|e| said(&e))?;
                let want =
                    expected.get(key, self.now.elapsed_us).map(|entry| entry.value.as_slice());
                if got.as_deref() != want {
                    return Err(of(format!("{key:?}: got {got:?}, expected {want:?}")));
                }
            }
        }
        let leases = self.snapshot.table(LEASES).map_err(|e| said(&e))?;
        let of = |why: String| format!("snapshot of {at}, {LEASES}: {why}");
        lease::expect_field(&leases, &self.state.leases).map_err(of)?;
        let found = lease::rows(&leases)?;
        lease::expect(&found, &self.state.leases, moments.date).map_err(of)?;
        match leases.count().map_err(|e| said(&e))? == found.len() as u64 {
            true => Ok(()),
            false => Err(of("its count is wrong".to_owned())),
        }
    }
}

/// A state without the entries that had expired before a crash and are gone for good.
fn without_dropped(state: &State, found: &Found, moments: Moments) -> State {
    let mut state = state.clone();
    for (bucket, found) in state.buckets.iter_mut().zip(&found.buckets) {
        bucket.entries.retain(|key, entry| {
            let is_gone = entry.is_there(moments.elapsed.now_us)
                && found.binary_search_by(|(there, _)| there.cmp(key)).is_err();
            !is_gone
        });
    }
    lease::without_dropped(&mut state.leases, &found.leases, moments.date);
    state
}
