//! One life of a stream: events that come alone, in requests of which some are refused, of a
//! producer that repeats itself, by transactions over a table, too, and by loads, late and early
//! ones; updates, deletes, time that passes and clocks that are stepped, other classes and windows,
//! seals, merges and checkpoints. Readers look after each operation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    Alteration, DataType, Database, Durability, ErrorKind, EventId, Options, Schema, Snapshot,
    StreamOption, Value,
};
use esker_vfs::sim::{
    CallKind, FaultKind, Generator, Journal, Options as SimOptions, Repeat, Script, Simulation,
};

use super::model::{self, BESIDE, BOUNDS, Event, HOUR_US, PRODUCER, RULES, STREAM, State, TIERS};
use super::readers::{self, Follower};
use crate::clock_step;
use crate::oracle::said;

/// How often the disk fails in the last request of a life, in a million.
const FAILS: u32 = 300_000;

/// What the stream holds once an operation has been done.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The I/Os until then.
    pub ios: u64,
    pub state: Arc<State>,
    /// The greatest row id that was told.
    pub row_id: u64,
    /// The first entry that may hold after a crash: it is durable, or what it has was told.
    pub kept: usize,
    /// The operation, in words.
    pub what: String,
}

/// What a life leaves.
#[derive(Debug)]
pub(super) struct Life {
    pub journal: Journal,
    pub entries: Vec<Entry>,
}

impl Life {
    /// What may be there after a crash: as of the last operation that ended, one before it that
    /// nobody waited for, or the one under way; and the greatest row id that was told before.
    pub fn after(&self, ios: u64) -> (Vec<&Entry>, u64) {
        let done = self.entries.partition_point(|entry| entry.ios <= ios);
        let last = done.checked_sub(1).and_then(|last| self.entries.get(last));
        let (from, row_id) = last.map_or((0, 0), |last| (last.kept, last.row_id));
        let until = self.entries.len().min(done + 1);
        (self.entries.get(from..until).unwrap_or_default().iter().collect(), row_id)
    }

    /// The last operations until so many I/Os.
    pub fn operations_until(&self, ios: u64) -> Vec<String> {
        let until = self.entries.partition_point(|entry| entry.ios <= ios) + 1;
        let shown = self.entries.get(..until).unwrap_or(&self.entries);
        let first = shown.len().saturating_sub(24);
        shown.iter().skip(first).map(|e| format!("by {} I/Os: {}", e.ios, e.what)).collect()
    }
}

/// Whether nobody waits for the disk in the lives of a seed.
fn is_async(seed: u64) -> bool {
    Generator::new(seed, 115).chance(300_000)
}

/// How the database is opened.
pub(super) fn open(seed: u64, machine: &Simulation) -> Result<Database, String> {
    let mut generator = Generator::new(seed, 110);
    let options = Options::new().background(false).environment(machine.environment());
    let options = options
        .group_limit(generator.pick([8, 16, 40]), 1 << 20)
        .small_group_limit(generator.pick([0, 2_000]))
        .segment_limit(generator.pick([8, 30]))
        .commit_limit(generator.pick([2_000, 1 << 20]))
        .transaction_limit(generator.pick([3_000, 1 << 20]));
    let options = match is_async(seed) {
        true => options.durability(Durability::Async { at_most: Duration::from_secs(3_600) }),
        false => options,
    };
    options.open("db").map_err(|e| format!("open: {}", said(&e)))
}

/// Runs a life.
pub(super) fn run(seed: u64, operations: u64) -> Result<Life, (String, Vec<String>)> {
    let options = SimOptions { record: true, ..SimOptions::default() };
    let machine = Simulation::new(seed, options);
    let mut driver = Driver {
        db: open(seed, &machine).map_err(|why| (why, Vec::new()))?,
        is_async: is_async(seed),
        machine,
        generator: Generator::new(seed, 111),
        state: State::new(),
        ids: BTreeMap::new(),
        next: 0,
        row_id: 0,
        ended_through: 0,
        entries: Vec::new(),
        held: Vec::new(),
        last_request: None,
        followers: Vec::new(),
    };
    let outcome = driver.live(operations);
    let Driver { machine, entries, .. } = driver;
    let journal = machine.journal().ok_or_else(|| "no journal".to_owned());
    let life = |journal| Life { journal, entries };
    let life = journal.map(life).map_err(|why| (why, Vec::new()))?;
    match outcome {
        Ok(()) => Ok(life),
        Err(why) => Err((why, life.operations_until(u64::MAX))),
    }
}

/// What a producer has sent last: from which number on, which rows, and their ids.
type Request = (u64, Vec<Vec<Value>>, Vec<EventId>);

struct Driver {
    machine: Simulation,
    db: Database,
    is_async: bool,
    generator: Generator,
    state: State,
    /// The row ids of events by their numbers, as the last look has found them.
    ids: BTreeMap<i64, u64>,
    next: i64,
    row_id: u64,
    /// The greatest row id of an event that has ended for its age.
    ended_through: u64,
    entries: Vec<Entry>,
    held: Vec<(Snapshot, Arc<State>)>,
    last_request: Option<Request>,
    followers: Vec<Follower>,
}

impl Driver {
    fn live(&mut self, operations: u64) -> Result<(), String> {
        self.create()?;
        for _ in 0..operations {
            let what = self.operate()?;
            self.note(what);
            self.look()?;
        }
        match self.generator.chance(FAILS) {
            true => self.fail(),
            false => Ok(()),
        }
    }

    /// The disk fails once in the last request, which is there as a whole then, or is not.
    fn fail(&mut self) -> Result<(), String> {
        let (call, fault) = self.generator.pick([
            (CallKind::Write, FaultKind::WriteError),
            (CallKind::Write, FaultKind::NoSpaceOnWrite),
            (CallKind::Sync, FaultKind::SyncErrorExt4Ordered),
        ]);
        let events = self.new_events(9);
        let rows: Vec<Vec<Value>> = events.iter().map(|(n, event)| event.row(*n)).collect();
        let stream = self.db.stream(STREAM).map_err(|e| said(&e))?;
        self.machine.add_script(Script::fault(call, 0, fault, Repeat::Once));
        let outcomes = stream.append_many(&rows);
        let stored = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        if stored > 0 && stored < outcomes.len() {
            return Err(format!("a part of a request beside a failing disk: {outcomes:?}"));
        }
        for id in outcomes.iter().flatten() {
            self.row_id = self.row_id.max(id.row_id());
        }
        let is_told = stored > 0 && !self.is_async;
        // Where nobody waits it meets the fault here.
        let synced = self.db.sync();
        self.state.events.extend(events);
        let before = self.entries.last().map_or(0, |last| last.kept);
        let said = synced.map_or_else(|e| said(&e), |()| "none".to_owned());
        self.note(format!("{} events beside a failing disk, error: {said}", rows.len()));
        if let Some(last) = self.entries.last_mut().filter(|_| !is_told) {
            last.kept = before;
        }
        Ok(())
    }

    fn create(&mut self) -> Result<(), String> {
        let beside = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build();
        self.db.create_table(BESIDE, beside.map_err(|e| e.to_string())?).map_err(|e| said(&e))?;
        self.db.bucket(esker::PRODUCERS).map_err(|e| said(&e))?;
        let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
        let fields = fields.nullable("tier", DataType::Text).nullable("note", DataType::Text);
        let bounds = BOUNDS.iter().map(|(name, value)| StreamOption::read(name, Some(value)));
        let bounds: Result<Vec<_>, _> = bounds.collect();
        let mut options = bounds.map_err(|e| e.to_string())?;
        options.extend(self.state.rule.options()?);
        let schema = fields.stream("t", options).build().map_err(|e| e.to_string())?;
        self.db.create_table(STREAM, schema).map_err(|e| said(&e))?;
        self.db.sync().map_err(|e| said(&e))?;
        self.note("the stream is there".to_owned());
        self.note_durable();
        Ok(())
    }

    /// An operation has ended. Where nobody waits for the disk, a crash may take it.
    fn note(&mut self, what: String) {
        let (ios, state) = (self.machine.io_count(), Arc::new(self.state.clone()));
        let before = self.entries.last().map_or(0, |last| last.kept);
        let kept = if self.is_async { before } else { self.entries.len() };
        self.entries.push(Entry { ios, state, row_id: self.row_id, kept, what });
    }

    /// All until now is on the disk.
    fn note_durable(&mut self) {
        let last = self.entries.len().saturating_sub(1);
        self.keep_from(last);
    }

    fn keep_from(&mut self, at: usize) {
        if let Some(last) = self.entries.last_mut() {
            last.kept = last.kept.max(at);
        }
    }

    /// All readers find what they must.
    fn look(&mut self) -> Result<(), String> {
        let now = self.db.snapshot().map_err(|e| said(&e))?;
        let ids = model::expect(&now, &self.state)?;
        for (number, row_id) in &ids {
            if self.ids.get(number).is_some_and(|known| known != row_id) {
                return Err(format!("event {number} has got another row id, {row_id}"));
            }
        }
        self.ids = ids;
        for (snapshot, state) in &self.held {
            model::expect(snapshot, state).map_err(|why| format!("an older snapshot: {why}"))?;
        }
        readers::expect(&self.db, &self.state, &self.ids, &mut self.generator)?;
        model::expect_producer(&self.db, self.state.sent)?;
        self.follow()
    }

    /// One reader follows all the time, the others now and then.
    fn follow(&mut self) -> Result<(), String> {
        if self.followers.is_empty() {
            for (is_filtered, limit) in [(false, 3), (true, 2), (false, 100)] {
                self.followers.push(Follower::new(&self.db, is_filtered, limit)?);
            }
        }
        let mut last = -1;
        for (at, follower) in self.followers.iter_mut().enumerate() {
            if at == 0 || self.generator.chance(200_000) {
                let (state, ids) = (&self.state, &self.ids);
                follower.follow(state, ids, self.ended_through, !self.is_async)?;
            }
            last = last.max(follower.last());
        }
        // What was told is on the disk, and all that was committed before.
        let has = |entry: &Entry| entry.state.events.contains_key(&last);
        if let Some(at) = self.entries.iter().position(has) {
            self.keep_from(at);
        }
        Ok(())
    }

    fn new_event(&mut self) -> (i64, Event) {
        let number = self.next;
        self.next += 1;
        let hours = i64::try_from(self.generator.below(47)).unwrap_or_default();
        let late = match self.generator.below(8) {
            0 | 1 => hours * HOUR_US,
            2 => -(hours + 1) * HOUR_US / 50,
            _ => 0,
        };
        // Several have the same time.
        let t = (model::date_us(&self.db) - late).div_euclid(1_000) * 1_000 + number % 2;
        (number, Event { t, tier: self.generator.pick(TIERS), note: None })
    }

    fn new_events(&mut self, most: u64) -> Vec<(i64, Event)> {
        (0..=self.generator.below(most)).map(|_| self.new_event()).collect()
    }

    fn operate(&mut self) -> Result<String, String> {
        match self.generator.below(42) {
            0..=6 => self.append(),
            7..=9 => self.produce(),
            10..=13 => self.transact(),
            14..=16 => self.load(),
            17..=19 => self.change(),
            20 => self.delete_before(),
            21..=26 => self.pass(),
            27 => {
                clock_step::step_wall(&self.machine, &mut self.generator);
                self.idle("the wall clock is stepped")
            }
            28..=31 => self.idle("maintenance"),
            32 => {
                self.db.compact(true, &mut |_, _| ()).map_err(|e| said(&e))?;
                self.idle("compacted")
            }
            33..=34 => {
                self.db.checkpoint().map_err(|e| said(&e))?;
                Ok("a checkpoint".to_owned())
            }
            35 => {
                let snapshot = self.db.snapshot().map_err(|e| said(&e))?;
                self.held.push((snapshot, Arc::new(self.state.clone())));
                Ok("a snapshot".to_owned())
            }
            36 => {
                self.held.clear();
                Ok("snapshots end".to_owned())
            }
            37..=38 => self.alter(),
            _ => {
                self.db.sync().map_err(|e| said(&e))?;
                self.note("synced".to_owned());
                self.note_durable();
                Ok("all is on the disk".to_owned())
            }
        }
    }

    /// Events one after another, each a commit, and a request of which some are refused.
    fn append(&mut self) -> Result<String, String> {
        let stream = self.db.stream(STREAM).map_err(|e| said(&e))?;
        for (number, event) in self.new_events(6) {
            let id = stream.append(&event.row(number)).map_err(|e| said(&e))?;
            self.row_id = self.row_id.max(id.row_id());
            self.state.events.insert(number, event);
            self.note(format!("event {number}"));
        }
        let date_us = model::date_us(&self.db);
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        for (number, event) in self.new_events(9) {
            rows.push(event.row(number));
            wanted.push(Some((number, event)));
            if self.generator.chance(300_000) {
                rows.push(bad_row(date_us, &mut self.generator));
                wanted.push(None);
            }
        }
        let outcomes = stream.append_many(&rows);
        if outcomes.len() != wanted.len() {
            return Err(format!("{} outcomes of {} events", outcomes.len(), wanted.len()));
        }
        let (mut stored, mut refused) = (0, 0);
        for (outcome, wanted) in outcomes.into_iter().zip(wanted) {
            match (outcome, wanted) {
                (Ok(id), Some((number, event))) => {
                    self.row_id = self.row_id.max(id.row_id());
                    self.state.events.insert(number, event);
                    stored += 1;
                }
                (Err(_), None) => refused += 1,
                (outcome, wanted) => return Err(format!("{outcome:?} for {wanted:?}")),
            }
        }
        Ok(format!("{stored} events at once, beside {refused} that are refused"))
    }

    /// The next events of a producer, the last ones again, or what is refused.
    fn produce(&mut self) -> Result<String, String> {
        let (epoch, sent) = self.state.sent;
        let stream = self.db.stream(STREAM).map_err(|e| said(&e))?;
        let producer = |epoch| stream.producer(PRODUCER, epoch).map_err(|e| said(&e));

        let refused = |outcome: esker::Result<Vec<_>>, kind| match outcome {
            Err(e) if e.kind() == kind => Ok(format!("a producer is refused: {kind:?}")),
            other => Err(format!("a producer: {other:?}, expected {kind:?}")),
        };
        match (self.generator.below(6), self.last_request.take()) {
            (0, Some((seq, rows, ids))) => {
                let again = producer(epoch)?.append_from(seq, &rows).map_err(|e| said(&e))?;
                let again: Vec<_> = again.into_iter().filter_map(Result::ok).collect();
                if again != ids {
                    return Err(format!("a request has {ids:?}, and {again:?} when sent again"));
                }
                self.last_request = Some((seq, rows, ids));
                return Ok(format!("events from {seq} on, sent again"));
            }
            (1, last) => {
                self.last_request = last;
                let (number, event) = self.new_event();
                let gap = producer(epoch)?.append_from(sent + 2, &[event.row(number)]);
                return refused(gap, ErrorKind::SequenceGap);
            }
            (2, last) if epoch > 1 => {
                self.last_request = last;
                let (number, event) = self.new_event();
                let older = producer(epoch - 1)?.append_from(0, &[event.row(number)]);
                return refused(older, ErrorKind::Fenced);
            }
            (3, _) if sent > 0 => self.state.sent = (epoch + 1, 0),
            _ => {}
        }
        let (epoch, sent) = self.state.sent;
        let events = self.new_events(5);
        let rows: Vec<Vec<Value>> = events.iter().map(|(n, event)| event.row(*n)).collect();
        let outcomes = producer(epoch)?.append_from(sent, &rows);
        let ids: esker::Result<Vec<_>> = outcomes.map_err(|e| said(&e))?.into_iter().collect();
        let ids = ids.map_err(|e| said(&e))?;
        self.row_id = ids.iter().fold(self.row_id, |most, id| most.max(id.row_id()));
        let count = events.len();
        self.state.sent = (epoch, sent + count as u64);
        self.state.events.extend(events);
        self.last_request = Some((sent, rows, ids));
        Ok(format!("{count} events of a producer, from {sent} of epoch {epoch} on"))
    }

    /// Events and a row of another table, in one commit.
    fn transact(&mut self) -> Result<String, String> {
        let db = self.db.clone();
        let transaction = db.begin().map_err(|e| said(&e))?;
        let first = self.new_event();
        let events = self.new_events(50);
        let table = transaction.table(STREAM).map_err(|e| said(&e))?;
        for (number, event) in &events {
            table.insert(&event.row(*number)).map_err(|e| said(&e))?;
        }
        let of = self.next;
        transaction.table(BESIDE).and_then(|t| t.insert(&[of.into()])).map_err(|e| said(&e))?;
        self.overtake(first)?;
        if self.generator.chance(250_000) {
            return Ok(format!("{} events that are rolled back", events.len()));
        }
        transaction.commit().map_err(|e| said(&e))?;
        let count = events.len();
        self.state.events.extend(events);
        self.state.beside.insert(of);
        Ok(format!("{count} events of a transaction, and row {of} beside"))
    }

    /// An event that is committed while others, which came before it, are not yet: now and then.
    fn overtake(&mut self, (number, event): (i64, Event)) -> Result<(), String> {
        if self.generator.chance(500_000) {
            let stream = self.db.stream(STREAM).map_err(|e| said(&e))?;
            let id = stream.append(&event.row(number)).map_err(|e| said(&e))?;
            self.row_id = self.row_id.max(id.row_id());
            self.state.events.insert(number, event);
            self.note(format!("event {number}, which overtakes others"));
        }
        Ok(())
    }

    fn load(&mut self) -> Result<String, String> {
        let table = self.db.table(STREAM).map_err(|e| said(&e))?;
        let mut load = table.load().map_err(|e| said(&e))?;
        let first = self.new_event();
        let events = self.new_events(70);
        for (number, event) in &events {
            load.push_row(&event.row(*number)).map_err(|e| said(&e))?;
        }
        self.overtake(first)?;
        load.finish().map_err(|e| said(&e))?;
        let count = events.len();
        self.state.events.extend(events);
        Ok(format!("{count} events by a load"))
    }

    /// An update or a delete of an event that is there.
    fn change(&mut self) -> Result<String, String> {
        let at = self.generator.index(self.ids.len().max(1));
        let Some((number, row_id)) = self.ids.iter().nth(at).map(|(n, id)| (*n, *id)) else {
            return Ok("nothing to change".to_owned());
        };
        let table = self.db.table(STREAM).map_err(|e| said(&e))?;
        if self.generator.chance(500_000) {
            let t = self.state.events.remove(&number).map_or(0, |event| event.t);
            let stream = self.db.stream(STREAM);
            let deleted = stream.and_then(|stream| stream.delete(EventId::new(t, row_id)));
            return match deleted.map_err(|e| said(&e))? {
                true => Ok(format!("event {number} is deleted")),
                false => Err(format!("event {number} is not found by its id to be deleted")),
            };
        }
        let note = format!("note {}", self.generator.below(1_000));
        let changes = [("note", note.as_str().into())];
        table.update(&[Value::Uint(row_id)], &changes).map_err(|e| said(&e))?;
        self.state.events.entry(number).and_modify(|event| event.note = Some(note));
        Ok(format!("event {number} is changed"))
    }

    /// All before a time, of whatever class.
    fn delete_before(&mut self) -> Result<String, String> {
        let hours = i64::try_from(self.generator.below(100)).unwrap_or_default();
        let before_us = model::date_us(&self.db) - hours * HOUR_US;
        let stream = self.db.stream(STREAM).map_err(|e| said(&e))?;
        let ended = stream.delete_before(before_us).map_err(|e| said(&e))?;
        let before = self.state.clone();
        self.state.events.retain(|_, event| event.t >= before_us);
        self.note_ends(&before);
        match before.events.len() - self.state.events.len() {
            count if count as u64 == ended => Ok(format!("{count} events are deleted by time")),
            count => Err(format!("{ended} events are deleted by time, expected {count}")),
        }
    }

    /// Events end for their age.
    fn note_ends(&mut self, before: &State) {
        let gone = before.events.keys().filter(|number| !self.state.events.contains_key(number));
        let ids = gone.filter_map(|number| self.ids.get(number));
        self.ended_through = ids.copied().max().unwrap_or(0).max(self.ended_through);
    }

    fn alter(&mut self) -> Result<String, String> {
        let rule = RULES.get(self.generator.index(RULES.len())).ok_or("no rule")?;
        let changes = rule.options()?.into_iter().map(Alteration::SetStream);
        let changes: Vec<_> = changes.collect();
        self.db.alter_table(STREAM, &changes).map_err(|e| said(&e))?;
        self.state.rule = rule;
        Ok(format!("the stream is altered: {rule:?}"))
    }

    fn pass(&mut self) -> Result<String, String> {
        let hours = 1 + self.generator.below(40);
        self.machine.advance_clock(Duration::from_secs(3_600 * hours));
        self.idle(&format!("{hours} hours pass"))
    }

    fn idle(&mut self, what: &str) -> Result<String, String> {
        self.db.wait_idle().map_err(|e| said(&e))?;
        let before = self.state.clone();
        self.state.end(model::confirmed_us(&self.db));
        self.note_ends(&before);
        Ok(format!("{what}: {} events end", before.events.len() - self.state.events.len()))
    }
}

/// An event that the stream does not take.
fn bad_row(date_us: i64, generator: &mut Generator) -> Vec<Value> {
    let n = -1i64;
    match generator.below(4) {
        0 => vec![Value::Timestamp(date_us - 97 * HOUR_US), n.into(), Value::Null, Value::Null],
        1 => vec![Value::Timestamp(date_us + 3 * HOUR_US), n.into(), Value::Null, Value::Null],
        2 => vec![Value::Null, n.into(), Value::Null, Value::Null],
        _ => vec![Value::Timestamp(date_us), "no number".into(), Value::Null, Value::Null],
    }
}
