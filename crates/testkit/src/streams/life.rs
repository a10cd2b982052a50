//! One life of a stream: events that come alone, by transactions and by loads, late ones, updates,
//! deletes, time that passes, seals, merges and checkpoints.

use std::sync::Arc;
use std::time::Duration;

use esker::{DataType, Database, Options, Schema, Snapshot, StreamOption, Value};
use esker_vfs::sim::{Generator, Journal, Options as SimOptions, Simulation};

use super::model::{self, Event, Events, OPTIONS, STREAM, TIERS};
use crate::oracle::said;

const HOUR_US: i64 = 3_600_000_000;

/// What the stream holds once an operation has been done.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The I/Os until then.
    pub ios: u64,
    pub events: Arc<Events>,
    /// The greatest row id that was told.
    pub row_id: u64,
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
    /// What may be there after a crash: as of the last operation that ended, or the one under way;
    /// and the greatest row id that was told before.
    pub fn after(&self, ios: u64) -> (Vec<&Entry>, u64) {
        let done = self.entries.partition_point(|entry| entry.ios <= ios);
        let from = done.saturating_sub(1);
        let until = self.entries.len().min(done + 1);
        let row_id = self.entries.get(from).map_or(0, |entry| entry.row_id);
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
    options.open("db").map_err(|e| format!("open: {}", said(&e)))
}

/// Runs a life.
pub(super) fn run(seed: u64, operations: u64) -> Result<Life, (String, Vec<String>)> {
    let options = SimOptions { record: true, ..SimOptions::default() };
    let machine = Simulation::new(seed, options);
    let mut driver = Driver {
        db: open(seed, &machine).map_err(|why| (why, Vec::new()))?,
        machine,
        generator: Generator::new(seed, 111),
        events: Events::new(),
        next: 0,
        row_id: 0,
        entries: Vec::new(),
        held: Vec::new(),
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

struct Driver {
    machine: Simulation,
    db: Database,
    generator: Generator,
    events: Events,
    next: i64,
    row_id: u64,
    entries: Vec<Entry>,
    held: Vec<(Snapshot, Arc<Events>)>,
}

impl Driver {
    fn live(&mut self, operations: u64) -> Result<(), String> {
        self.create()?;
        for _ in 0..operations {
            let what = self.operate()?;
            self.note(what);
            self.look()?;
        }
        Ok(())
    }

    fn create(&mut self) -> Result<(), String> {
        let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
        let fields = fields.nullable("tier", DataType::Text).nullable("note", DataType::Text);
        let read = |(name, value): &(&str, &str)| StreamOption::read(name, Some(value));
        let options: Result<Vec<_>, _> = OPTIONS.iter().map(read).collect();
        let schema = fields.stream("t", options.map_err(|e| e.to_string())?).build();
        let schema = schema.map_err(|e| e.to_string())?;
        self.db.create_table(STREAM, schema).map_err(|e| said(&e))?;
        self.note("the stream is there".to_owned());
        Ok(())
    }

    fn note(&mut self, what: String) {
        let (ios, events) = (self.machine.io_count(), Arc::new(self.events.clone()));
        self.entries.push(Entry { ios, events, row_id: self.row_id, what });
    }

    /// All readers find what they must.
    fn look(&mut self) -> Result<(), String> {
        let now = self.db.snapshot().map_err(|e| said(&e))?;
        model::expect(&now, &self.events)?;
        for (snapshot, events) in &self.held {
            model::expect(snapshot, events).map_err(|why| format!("an older snapshot: {why}"))?;
        }
        Ok(())
    }

    fn new_event(&mut self) -> (i64, Event) {
        let number = self.next;
        self.next += 1;
        let late = match self.generator.below(4) {
            0 => i64::try_from(self.generator.below(47)).unwrap_or_default() * HOUR_US,
            _ => 0,
        };
        let t = model::date_us(&self.db) - late + number % 3;
        (number, Event { t, tier: self.generator.pick(TIERS), note: None })
    }

    fn new_events(&mut self, most: u64) -> Vec<(i64, Event)> {
        (0..=self.generator.below(most)).map(|_| self.new_event()).collect()
    }

    fn operate(&mut self) -> Result<String, String> {
        match self.generator.below(30) {
            0..=6 => self.append(),
            7..=9 => self.transact(),
            10..=11 => self.load(),
            12..=14 => self.change(),
            15..=20 => self.pass(),
            21..=24 => self.idle("maintenance"),
            25 => {
                self.db.compact(true, &mut |_, _| ()).map_err(|e| said(&e))?;
                self.idle("compacted")
            }
            26..=27 => {
                self.db.checkpoint().map_err(|e| said(&e))?;
                Ok("a checkpoint".to_owned())
            }
            28 => {
                let snapshot = self.db.snapshot().map_err(|e| said(&e))?;
                self.held.push((snapshot, Arc::new(self.events.clone())));
                Ok("a snapshot".to_owned())
            }
            _ => {
                self.held.clear();
                Ok("snapshots end".to_owned())
            }
        }
    }

    /// Events one after another; each is durable before the next.
    fn append(&mut self) -> Result<String, String> {
        let stream = self.db.stream(STREAM).map_err(|e| said(&e))?;
        for (number, event) in self.new_events(6) {
            let id = stream.append(&event.row(number)).map_err(|e| said(&e))?;
            self.row_id = self.row_id.max(id.row_id());
            self.events.insert(number, event);
            self.note(format!("event {number}"));
        }
        let events = self.new_events(9);
        let rows: Vec<Vec<Value>> = events.iter().map(|(n, event)| event.row(*n)).collect();
        for outcome in stream.append_many(&rows) {
            self.row_id = self.row_id.max(outcome.map_err(|e| said(&e))?.row_id());
        }
        let count = events.len();
        self.events.extend(events);
        Ok(format!("{count} events at once"))
    }

    fn transact(&mut self) -> Result<String, String> {
        let transaction = self.db.begin().map_err(|e| said(&e))?;
        let events = self.new_events(50);
        let table = transaction.table(STREAM).map_err(|e| said(&e))?;
        for (number, event) in &events {
            table.insert(&event.row(*number)).map_err(|e| said(&e))?;
        }
        if self.generator.chance(250_000) {
            return Ok(format!("{} events that are rolled back", events.len()));
        }
        transaction.commit().map_err(|e| said(&e))?;
        let count = events.len();
        self.events.extend(events);
        Ok(format!("{count} events of a transaction"))
    }

    fn load(&mut self) -> Result<String, String> {
        let table = self.db.table(STREAM).map_err(|e| said(&e))?;
        let mut load = table.load().map_err(|e| said(&e))?;
        let events = self.new_events(70);
        for (number, event) in &events {
            load.push_row(&event.row(*number)).map_err(|e| said(&e))?;
        }
        load.finish().map_err(|e| said(&e))?;
        let count = events.len();
        self.events.extend(events);
        Ok(format!("{count} events by a load"))
    }

    /// An update or a delete of an event that is there.
    fn change(&mut self) -> Result<String, String> {
        let found = model::scanned(&self.db.snapshot().map_err(|e| said(&e))?)?;
        let Some((row_id, row)) = found.get(self.generator.index(found.len().max(1))) else {
            return Ok("nothing to change".to_owned());
        };
        let Some(Value::Int(number)) = row.get(1).cloned() else {
            return Err(format!("an event without a number: {row:?}"));
        };
        let (table, key) = (self.db.table(STREAM).map_err(|e| said(&e))?, [Value::Uint(*row_id)]);
        if self.generator.chance(500_000) {
            table.delete(&key).map_err(|e| said(&e))?;
            self.events.remove(&number);
            return Ok(format!("event {number} is deleted"));
        }
        let note = format!("note {}", self.generator.below(1_000));
        table.update(&key, &[("note", note.as_str().into())]).map_err(|e| said(&e))?;
        self.events.entry(number).and_modify(|event| event.note = Some(note));
        Ok(format!("event {number} is changed"))
    }

    fn pass(&mut self) -> Result<String, String> {
        let hours = 1 + self.generator.below(40);
        self.machine.advance_clock(Duration::from_secs(3_600 * hours));
        self.idle(&format!("{hours} hours pass"))
    }

    fn idle(&mut self, what: &str) -> Result<String, String> {
        self.db.wait_idle().map_err(|e| said(&e))?;
        let before = self.events.len();
        model::end(&mut self.events, model::date_us(&self.db));
        Ok(format!("{what}: {} events end", before - self.events.len()))
    }
}
