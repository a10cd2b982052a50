//! Rows that expire beside a model: random changes in all the ways that there are, as time passes,
//! the field by which rows expire is set, changed and dropped, values have to be unique, rows are
//! sealed and merged, and the machine stops.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fixture::hand_clock::HandClock;
use esker::{
    Alteration, DataType, Database, ErrorKind, NewIndex, Options, Schema, Snapshot, Table, Update,
    Value,
};
use esker_vfs::Environment;
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};

const KEYS: u64 = 24;
const VALUES: u64 = 12;
const START: i64 = 1_000_000_000_000;

/// A value that is unique, and the two times by which it may expire.
type Row = (Option<i64>, [Option<i64>; 2]);
type Rows = BTreeMap<i64, Row>;

/// What there is.
#[derive(Clone)]
struct Model {
    rows: Rows,
    /// By which of the two times rows expire.
    expiry: Option<usize>,
    is_unique: bool,
}

impl Model {
    /// What has expired never comes back.
    fn settle(&mut self, now_us: i64) {
        let Some(by) = self.expiry else { return };
        self.rows.retain(|_, (_, ends)| ends[by].is_none_or(|end| end > now_us));
    }

    /// The rows after some puts, unless they are refused.
    fn put(&self, puts: &[(i64, Row)], replaces: bool) -> Option<Rows> {
        let mut after = self.rows.clone();
        for (id, row) in puts {
            if after.insert(*id, *row).is_some() && !replaces {
                return None;
            }
        }
        self.allows(&after).then_some(after)
    }

    fn allows(&self, rows: &Rows) -> bool {
        let mut seen = BTreeSet::new();
        !self.is_unique || rows.values().filter_map(|(n, _)| *n).all(|n| seen.insert(n))
    }
}

fn values((id, (n, ends)): (i64, Row)) -> Vec<Value> {
    let time = |end: Option<i64>| end.map_or(Value::Null, Value::Timestamp);
    vec![id.into(), n.map_or(Value::Null, Value::Int), time(ends[0]), time(ends[1])]
}

fn found(snapshot: &Snapshot) -> Vec<Vec<Value>> {
    let rows = snapshot.table("t").unwrap().rows().unwrap();
    let mut rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| match row[0] {
        Value::Int(id) => id,
        ref other => panic!("{other:?}"),
    });
    rows
}

fn wanted(rows: &Rows) -> Vec<Vec<Value>> {
    rows.iter().map(|(id, row)| values((*id, *row))).collect()
}

fn index() -> NewIndex {
    NewIndex::new("once", ["n"]).unique()
}

struct Run {
    seed: u64,
    generator: Generator,
    machine: Simulation,
    clock: Arc<HandClock>,
    now_us: i64,
    db: Database,
    table: Table,
    model: Model,
    /// Snapshots, and what they saw when they were taken.
    snapshots: Vec<(Snapshot, Rows)>,
}

fn open(machine: &Simulation, clock: &Arc<HandClock>, limit: usize) -> Database {
    let environment = Environment { clock: Arc::clone(clock) as _, ..machine.environment() };
    let options = Options::new().background(false).environment(environment);
    let options = options.group_limit(limit, 1 << 30).small_group_limit(0);
    options.segment_limit(2 * limit).open("db").unwrap()
}

impl Run {
    fn new(seed: u64) -> Self {
        let generator = Generator::new(seed, 0);
        let machine = Simulation::new(seed, SimOptions::default());
        let clock = HandClock::new(START);
        let db = open(&machine, &clock, 4);
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .nullable("n", DataType::I64)
            .nullable("a", DataType::Timestamp)
            .nullable("b", DataType::Timestamp)
            .primary_key(["id"]);
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        let model = Model { rows: Rows::new(), expiry: None, is_unique: false };
        let (now_us, snapshots) = (START, Vec::new());
        Self { seed, generator, machine, clock, now_us, db, table, model, snapshots }
    }

    fn below(&mut self, end: u64) -> i64 {
        i64::try_from(self.generator.below(end)).unwrap()
    }

    fn draw(&mut self) -> (i64, Row) {
        let mut end =
            || self.generator.chance(700_000).then(|| self.generator.below(12).cast_signed() - 2);
        let ends = [end(), end()].map(|end| end.map(|end| self.now_us + end));
        let n = self.generator.chance(800_000).then(|| self.below(VALUES));
        (self.below(KEYS), (n, ends))
    }

    /// A change was done or refused, as the model says.
    fn did<T>(&mut self, result: esker::Result<T>, after: Option<Rows>, what: &str) {
        let failed = result.err();
        let seed = self.seed;
        let is_refusal = |e: &esker::Error| e.kind() == ErrorKind::AlreadyExists;
        assert!(failed.as_ref().is_none_or(is_refusal), "seed {seed}, {what}: {failed:?}");
        assert_eq!(failed.is_none(), after.is_some(), "seed {seed}, {what}: {failed:?}");
        self.model.rows = after.unwrap_or_else(|| self.model.rows.clone());
    }

    fn put(&mut self) {
        let replaces = self.generator.chance(500_000);
        let puts: Vec<_> = (0..=self.generator.below(3)).map(|_| self.draw()).collect();
        let rows: Vec<_> = puts.iter().map(|put| values(*put)).collect();
        // Of a key that comes twice the last row counts, as that of a transaction does.
        let last: Rows = puts.iter().copied().collect();
        let last: Vec<_> = last.into_iter().collect();
        match self.generator.below(4) {
            0 if !replaces => {
                let after = self.model.put(&puts, false);
                let mut load = self.table.load().unwrap();
                let pushed = rows.iter().try_for_each(|row| load.push_row(row));
                self.did(pushed.and_then(|()| load.finish()), after, "load");
            }
            1 if replaces => {
                let after = self.model.put(&last, true);
                let transaction = self.db.begin().unwrap();
                let table = transaction.table("t").unwrap();
                let put = rows.iter().try_for_each(|row| table.upsert(row).map(drop));
                self.did(put.and_then(|()| transaction.commit()), after, "transaction");
            }
            _ if replaces => {
                let after = self.model.put(&last, true);
                self.did(self.table.upsert_many(&rows), after, "upsert_many");
            }
            _ => {
                let after = self.model.put(&puts, false);
                self.did(self.table.insert_many(&rows), after, "insert_many");
            }
        }
    }

    fn change(&mut self) {
        let (id, row) = self.draw();
        let there = self.model.rows.contains_key(&id);
        if self.generator.chance(300_000) {
            assert_eq!(self.table.delete(&[id.into()]).unwrap(), there, "seed {}", self.seed);
            self.model.rows.remove(&id);
            return;
        }
        let after = match there {
            true => self.model.put(&[(id, row)], true),
            false => Some(self.model.rows.clone()),
        };
        let row = values((id, row));
        let update = Update::new()
            .set("n", row[1].clone())
            .set("a", row[2].clone())
            .set("b", row[3].clone());
        self.did(self.table.apply(&[id.into()], &update), after, "apply");
    }

    fn alter(&mut self) {
        if self.generator.chance(500_000) {
            let expiry = self.generator.pick([None, Some(0), Some(1)]);
            let name = expiry.map(|by| ["a", "b"][by].to_owned());
            self.db.alter_table("t", &[Alteration::SetExpiry(name)]).unwrap();
            self.model.expiry = expiry;
        } else if self.model.is_unique {
            self.db.drop_index("t", "once").unwrap();
            self.model.is_unique = false;
        } else {
            let with = Model { is_unique: true, ..self.model.clone() };
            let made = self.db.create_index("t", index());
            assert_eq!(made.is_ok(), with.allows(&with.rows), "seed {}: {made:?}", self.seed);
            self.model.is_unique = made.is_ok();
        }
    }

    fn reopen(&mut self, crashes: bool) {
        self.snapshots.clear();
        let limit = 2 + self.generator.index(8);
        let other = Options::new().memory().unwrap();
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        self.table = other.create_table("other", schema).unwrap();
        drop(std::mem::replace(&mut self.db, other));
        if crashes {
            let image = self.machine.crash_image(CrashChoice::KeepNone);
            self.machine = Simulation::from_image(&image, self.seed, SimOptions::default());
        }
        self.db = open(&self.machine, &self.clock, limit);
        self.table = self.db.table("t").unwrap();
    }

    fn step(&mut self) {
        match self.generator.below(24) {
            0 => self.db.wait_idle().unwrap(),
            1 => drop(self.db.compact(false, &mut |_, _| {}).unwrap()),
            2 => self.reopen(false),
            3 => self.reopen(true),
            4 | 5 => self.alter(),
            6..9 => {
                self.now_us += self.below(4);
                self.clock.set(self.now_us);
            }
            9 | 10 => {
                let seen = self.model.rows.clone();
                self.snapshots.push((self.db.snapshot().unwrap(), seen));
            }
            11 if !self.snapshots.is_empty() => {
                let at = self.generator.index(self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            12..15 => self.change(),
            _ => self.put(),
        }
        self.model.settle(self.now_us);
    }

    fn check(&self, step: usize) {
        let place = format!("seed {}, step {step}", self.seed);
        let snapshot = self.db.snapshot().unwrap();
        assert_eq!(found(&snapshot), wanted(&self.model.rows), "{place}");
        assert_eq!(self.table.count().unwrap(), self.model.rows.len() as u64, "{place}");
        for id in 0..KEYS.cast_signed() {
            let there = self.table.get(&[id.into()]).unwrap().is_some();
            assert_eq!(there, self.model.rows.contains_key(&id), "{place}: {id}");
        }
        for (snapshot, rows) in &self.snapshots {
            assert_eq!(found(snapshot), wanted(rows), "{place}: snapshot {}", snapshot.commit());
        }
    }
}

fn run(seed: u64) {
    let mut run = Run::new(seed);
    for step in 0..120 {
        run.step();
        run.check(step);
    }
    run.db.wait_idle().unwrap();
    assert_eq!(run.db.check().unwrap().problems, [], "seed {seed}");
    assert_eq!(run.db.recount(true).unwrap(), [], "seed {seed}");
}

#[test]
fn what_has_expired_stays_so_whatever_else_changes() {
    (0..60).for_each(run);
}
