//! Snapshots that are held beside everything at once, with a model: loads that replace rows, unique
//! values, rows that expire, transactions that only read, that read and write, that go to files and
//! back to savepoints, and crashes.

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
    DataType, Database, ErrorKind, Isolation, Load, NewIndex, Options, Query, Schema, Snapshot,
    Transaction, TransactionOptions, Value,
};
use esker_query::model::Expr;
use esker_vfs::Environment;
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};

const KEYS: u64 = 14;
const SECOND: i64 = 1_000_000;
const START: i64 = 1_000_000 * SECOND;

/// What differs from one run to the next.
#[derive(Clone, Copy, Debug)]
struct Form {
    ordered_by_key: bool,
    unique: bool,
    expires: bool,
    memory: bool,
}

/// A number of the step that put it, a value that may be unique, and when it expires.
type Row = (u64, Option<u64>, Option<i64>);
type Rows = BTreeMap<u64, Row>;

fn values(id: u64, (step, unique, end): Row) -> Vec<Value> {
    let note = format!(
        "{id} by step {step}, {}",
        if step % 3 == 0 { "that long, ".repeat(4) } else { String::new() }
    );
    let unique = unique.map_or(Value::Null, Value::Uint);
    vec![id.into(), step.into(), unique, end.map_or(Value::Null, Value::Timestamp), note.into()]
}

fn all(rows: &Rows) -> Vec<Vec<Value>> {
    rows.iter().map(|(id, row)| values(*id, *row)).collect()
}

/// Another living row has the unique value of a row.
fn has_rival(rows: &Rows) -> bool {
    let mut seen = BTreeSet::new();
    !rows.values().filter_map(|(_, unique, _)| *unique).all(|unique| seen.insert(unique))
}

/// What is there at a time.
fn alive(rows: &Rows, now_us: i64) -> Rows {
    let lives = |row: &Row| row.2.is_none_or(|end| end > now_us);
    rows.iter().filter(|(_, row)| lives(row)).map(|(id, row)| (*id, *row)).collect()
}

/// A transaction that is open, and what it sees.
struct Open {
    transaction: Transaction,
    isolation: Isolation,
    read_only: bool,
    began: u64,
    /// The rows as it began, its own changes included.
    rows: Rows,
    /// Those as it began.
    first: Rows,
    written: BTreeSet<u64>,
    read: BTreeSet<u64>,
    /// It has read the table as a whole.
    read_all: bool,
    undone: BTreeSet<u64>,
}

/// A load that is open.
struct Loading {
    load: Load,
    began: u64,
    rows: Rows,
    failed: Option<ErrorKind>,
}

struct Run {
    form: Form,
    generator: Generator,
    machine: Simulation,
    clock: Arc<HandClock>,
    now_us: i64,
    db: Option<Database>,
    rows: Rows,
    snapshots: Vec<(Snapshot, Rows)>,
    transactions: Vec<Open>,
    load: Option<Loading>,
    /// When each key was changed last, in steps.
    changed: BTreeMap<u64, u64>,
    /// When a row of each key expired last, in steps.
    expired: BTreeMap<u64, u64>,
    step: u64,
    needless: u64,
}

impl Run {
    fn new(seed: u64, form: Form) -> Self {
        let mut run = Self {
            form,
            generator: Generator::new(seed, 0),
            machine: Simulation::new(seed, SimOptions::default()),
            clock: HandClock::new(START),
            now_us: START,
            db: None,
            rows: Rows::new(),
            snapshots: Vec::new(),
            transactions: Vec::new(),
            load: None,
            changed: BTreeMap::new(),
            expired: BTreeMap::new(),
            step: 0,
            needless: 0,
        };
        run.open();
        let schema = Schema::builder()
            .field("id", DataType::U64)
            .field("v", DataType::U64)
            .nullable("u", DataType::U64)
            .nullable("ends", DataType::Timestamp)
            .field("note", DataType::Text)
            .primary_key(["id"]);
        let schema = if form.ordered_by_key { schema.ordered_by_key() } else { schema };
        let schema = if form.expires { schema.expires_by("ends") } else { schema };
        let once = NewIndex::new("once", ["u"]).unique();
        let schema = if form.unique { schema.add_index(once) } else { schema };
        let table = run.db().create_table("t", schema.build().unwrap()).unwrap();
        if form.expires {
            // A transaction fixes its time when it begins once some row has an end.
            run.rows.insert(0, (0, None, Some(START + 100 * SECOND)));
            table.upsert_many(&all(&run.rows)).unwrap();
        }
        run
    }

    fn open(&mut self) {
        let limit = self.generator.index(8) + 2;
        let clock = Arc::clone(&self.clock);
        let environment = Environment { clock, ..self.machine.environment() };
        let options = Options::new().environment(environment).background(false);
        let options = options.group_limit(limit, 1 << 30).small_group_limit(0);
        let mut options = options.segment_limit(self.generator.index(4) + 1);
        if self.generator.chance(400_000) {
            options = options.transaction_limit(1);
        }
        if self.generator.chance(300_000) {
            options = options.commit_limit(60);
        }
        if self.generator.chance(300_000) {
            options = options.value_file_limits(24, 1 << 10);
        }
        let is_in_memory = self.form.memory;
        self.db = Some(if is_in_memory { options.memory() } else { options.open("db") }.unwrap());
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn key(&mut self) -> u64 {
        // Some keys are changed more often than others.
        let most = [3, KEYS][usize::from(self.generator.chance(400_000))];
        self.generator.below(most)
    }

    fn row(&mut self) -> Row {
        let unique =
            (self.form.unique && self.generator.chance(500_000)).then(|| self.generator.below(10));
        let end = (self.form.expires && self.generator.chance(600_000))
            .then(|| self.now_us + (self.generator.below(14).cast_signed() - 1) * SECOND);
        (self.step, unique, end)
    }

    /// What there is after a change of some keys.
    fn becomes(&mut self, rows: Rows, keys: impl IntoIterator<Item = u64>) {
        assert!(!has_rival(&alive(&rows, self.now_us)), "step {}: unique values", self.step);
        self.rows = rows;
        let step = self.step;
        self.changed.extend(keys.into_iter().map(|key| (key, step)));
        self.settle();
    }

    fn settle(&mut self) {
        let rows = alive(&self.rows, self.now_us);
        let gone = self.rows.keys().filter(|key| !rows.contains_key(key));
        self.expired.extend(gone.map(|key| (*key, self.step)));
        self.rows = rows;
    }

    /// A change is refused only where somebody is in its way.
    fn is_refused(&self, e: &esker::Error, after: &Rows) {
        let by_load = e.kind() == ErrorKind::Conflict && self.load.is_some();
        let by_rival = e.kind() == ErrorKind::AlreadyExists && has_rival(after);
        assert!(by_load || by_rival, "step {}: {e}", self.step);
    }

    fn put(&mut self) {
        let mut puts = Rows::new();
        for _ in 0..=self.generator.below(4) {
            let key = self.key();
            puts.insert(key, self.row());
        }
        let mut after = self.rows.clone();
        after.extend(puts.clone());
        // What had expired when it is put is in nobody's way, but has its value in the commit.
        match self.db().table("t").unwrap().upsert_many(&all(&puts)) {
            Ok(_) => self.becomes(after, puts.into_keys()),
            Err(e) => self.is_refused(&e, &after),
        }
    }

    fn remove(&mut self) {
        let key = self.key();
        match self.db().table("t").unwrap().delete(&[key.into()]) {
            Ok(was_there) => {
                assert_eq!(was_there, self.rows.remove(&key).is_some(), "step {}", self.step);
                if was_there {
                    self.changed.insert(key, self.step);
                }
            }
            Err(e) => self.is_refused(&e, &Rows::new()),
        }
    }

    fn begin(&mut self) {
        let isolation = self.generator.pick([Isolation::Snapshot, Isolation::Serializable]);
        let read_only = self.generator.chance(300_000);
        let options = TransactionOptions::new().isolation(isolation).read_only(read_only);
        let transaction = self.db().begin_with(options).unwrap();
        let (began, rows) = (self.step, self.rows.clone());
        let (written, read, undone) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let open = Open {
            transaction,
            isolation,
            read_only,
            began,
            first: rows.clone(),
            rows,
            written,
            read,
            read_all: false,
            undone,
        };
        self.transactions.push(open);
    }

    /// A transaction goes on.
    fn go_on(&mut self) {
        if self.transactions.is_empty() {
            return;
        }
        let at = self.generator.index(self.transactions.len());
        let mut open = self.transactions.swap_remove(at);
        if open.read_only {
            let (key, row) = (self.key(), self.row());
            let table = open.transaction.table("t").unwrap();
            let error = table.upsert(&values(key, row)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnly);
            self.read(&mut open);
            self.transactions.push(open);
            return;
        }
        for _ in 0..=self.generator.below(3) {
            match self.generator.below(8) {
                0 | 1 => self.read(&mut open),
                2 => {
                    let (savepoint, rows) = (open.transaction.savepoint(), open.rows.clone());
                    let written = open.written.clone();
                    self.write(&mut open);
                    self.write(&mut open);
                    if self.generator.chance(500_000) {
                        open.transaction.rollback_to(savepoint).unwrap();
                        open.undone.append(&mut open.written);
                        (open.rows, open.written) = (rows, written);
                    }
                }
                _ => self.write(&mut open),
            }
        }
        self.transactions.push(open);
    }

    fn read(&mut self, open: &mut Open) {
        let table = open.transaction.table("t").unwrap();
        if self.generator.chance(800_000) {
            let key = self.key();
            let found = table.get(&[key.into()]).unwrap().map(|row| row.values().to_vec());
            let wanted = open.rows.get(&key).map(|row| values(key, *row));
            assert_eq!(found, wanted, "step {}: key {key} of a transaction", self.step);
            open.read.insert(key);
            return;
        }
        let mut query = Query::table("t");
        query.select(Expr::count());
        let found = open.transaction.query(&query).unwrap().to_rows();
        assert_eq!(found, [[Value::Uint(open.rows.len() as u64)]], "step {}", self.step);
        open.read_all = true;
    }

    fn write(&mut self, open: &mut Open) {
        let (key, mut row) = (self.key(), self.row());
        // It is there for the transaction, whose time stands still.
        row.2 = row.2.map(|end| end.max(self.now_us + SECOND));
        let table = open.transaction.table("t").unwrap();
        if self.generator.chance(300_000) {
            let was_there = table.delete(&[key.into()]).unwrap();
            assert_eq!(was_there, open.rows.remove(&key).is_some(), "step {}", self.step);
            let noted = if was_there { &mut open.written } else { &mut open.read };
            noted.insert(key);
            return;
        }
        let mut after = open.rows.clone();
        after.insert(key, row);
        match table.upsert(&values(key, row)) {
            Ok(_) => {
                open.rows = after;
                open.written.insert(key);
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
                assert!(has_rival(&after), "step {}: {e}", self.step);
            }
        }
    }

    fn commit(&mut self) {
        if self.transactions.is_empty() {
            return;
        }
        let at = self.generator.index(self.transactions.len());
        let open = self.transactions.swap_remove(at);
        let since = |when: &BTreeMap<u64, u64>, key: &u64| {
            when.get(key).is_some_and(|step| *step > open.began)
        };
        let serializable = open.isolation == Isolation::Serializable && !open.read_only;
        let any = |when: &BTreeMap<u64, u64>| when.values().any(|step| *step > open.began);
        let counts = |key: &&u64| open.written.contains(*key) || serializable;
        let mut keys = open.written.iter().chain(&open.read).filter(counts);
        // A row that came and went within it changes nothing.
        let is_nothing = |key: &u64| !open.rows.contains_key(key) && !open.first.contains_key(key);
        let changes = || open.written.iter().filter(|key| !is_nothing(key)).copied();
        let is_unchanged = changes().next().is_none();
        let must = !is_unchanged
            && (keys.clone().any(|key| since(&self.changed, key))
                || (serializable && open.read_all && any(&self.changed)));
        // A row that it changes has expired meanwhile.
        let has_expired = keys.any(|key| since(&self.expired, key))
            || (serializable && open.read_all && any(&self.expired));
        let undone = open.undone.iter().chain(&open.read).any(|key| since(&self.changed, key));
        let mut after = self.rows.clone();
        for key in changes() {
            match open.rows.get(&key) {
                Some(row) => after.insert(key, *row),
                None => after.remove(&key),
            };
        }
        let changed: Vec<u64> = changes().collect();
        let rival = has_rival(&after);
        let by_load = self.load.is_some();
        match open.transaction.commit() {
            Ok(_) => {
                assert!(!must, "step {}: of {:?}, {:?}", self.step, open.written, open.read);
                if !open.read_only {
                    self.becomes(after, changed);
                }
            }
            Err(e) => {
                let kinds = [ErrorKind::Conflict, ErrorKind::AlreadyExists];
                assert!(kinds.contains(&e.kind()), "step {}: {e}", self.step);
                if !(must || undone || rival || by_load || has_expired) {
                    let unique = self.form.unique && any(&self.changed);
                    assert!(unique, "step {}: nobody was in the way: {e}", self.step);
                    self.needless += 1;
                }
            }
        }
    }

    fn load(&mut self) {
        let Some(mut loading) = self.load.take() else {
            let mut load = self.db().table("t").unwrap().load().unwrap();
            load.replace_existing().unwrap();
            let (began, rows, failed) = (self.step, Rows::new(), None);
            self.load = Some(Loading { load, began, rows, failed });
            return;
        };
        for _ in 0..self.generator.below(8) {
            let (key, row) = (self.key(), self.row());
            if loading.failed.is_none() {
                loading.rows.insert(key, row);
                let pushed = loading.load.push_row(&values(key, row));
                let waited = pushed.and_then(|()| loading.load.wait());
                loading.failed = waited.err().map(|e| e.kind());
            }
        }
        if self.generator.chance(500_000) {
            self.load = Some(loading);
            return;
        }
        self.finish_load(loading);
    }

    fn finish_load(&mut self, loading: Loading) {
        let Loading { load, began, rows, failed } = loading;
        let since = |when: &BTreeMap<u64, u64>| {
            rows.keys().any(|key| when.get(key).is_some_and(|step| *step > began))
        };
        let any = |when: &BTreeMap<u64, u64>| when.values().any(|step| *step > began);
        let mut after = self.rows.clone();
        after.extend(rows.clone());
        let failed = match failed {
            Some(kind) => Some(kind),
            None => load.finish().err().map(|e| e.kind()),
        };
        match failed {
            None => self.becomes(after, rows.into_keys()),
            Some(ErrorKind::AlreadyExists) => assert!(self.form.unique, "step {}", self.step),
            Some(kind) => {
                assert_eq!(kind, ErrorKind::Conflict, "step {}", self.step);
                let unique = self.form.unique && (any(&self.changed) || any(&self.expired));
                let is_reason = since(&self.changed) || since(&self.expired) || unique;
                assert!(is_reason, "step {}: nobody was in the way of a load", self.step);
            }
        }
    }

    fn act(&mut self) {
        self.step += 1;
        match self.generator.below(32) {
            0..=5 => self.put(),
            6..=9 => self.remove(),
            10 | 11 if self.snapshots.len() < 5 => {
                self.snapshots.push((self.db().snapshot().unwrap(), self.rows.clone()));
            }
            12 if !self.snapshots.is_empty() => {
                let at = self.generator.index(self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            13 | 14 if self.transactions.len() < 4 => self.begin(),
            15..=17 => self.go_on(),
            18 | 19 => self.commit(),
            20..=22 => self.load(),
            23 if self.load.is_none() => {
                let _ = self.db().compact(false, &mut |_, _| {}).unwrap();
            }
            24 if self.generator.chance(150_000) => self.crash(),
            25..=27 if self.form.expires => {
                self.now_us += self.generator.below(8).cast_signed() * SECOND;
                self.clock.set(self.now_us);
                self.settle();
            }
            28 => self.verify(),
            _ => self.db().wait_idle().unwrap(),
        }
    }

    fn verify(&self) {
        for (snapshot, rows) in &self.snapshots {
            self.expect(snapshot, rows, "held");
        }
        self.expect(&self.db().snapshot().unwrap(), &self.rows, "new");
        let table = self.db().table("t").unwrap();
        for key in 0..KEYS {
            let found = table.get(&[key.into()]).unwrap().map(|row| row.values().to_vec());
            assert_eq!(found, self.rows.get(&key).map(|row| values(key, *row)), "key {key}");
        }
        assert_eq!(self.db().check().unwrap().problems, [], "step {}", self.step);
    }

    fn expect(&self, snapshot: &Snapshot, rows: &Rows, which: &str) {
        let place = format!("step {}, {which}, commit {}", self.step, snapshot.commit());
        let table = snapshot.table("t").unwrap();
        for key in 0..KEYS {
            let found = table.get(&[key.into()]).unwrap().map(|row| row.values().to_vec());
            let wanted = rows.get(&key).map(|row| values(key, *row));
            assert_eq!(found, wanted, "{place}: key {key}");
        }
        let mut found: Vec<_> = table.rows().unwrap().into_iter().map(|(_, row)| row).collect();
        found.sort_by(|a, b| a[0].partial_cmp(&b[0]).unwrap());
        assert_eq!(found, all(rows), "{place}");
        assert_eq!(table.count().unwrap(), rows.len() as u64, "{place}");
    }

    fn let_go(&mut self) {
        self.snapshots.clear();
        self.transactions.clear();
        self.load = None;
    }

    fn crash(&mut self) {
        self.let_go();
        if self.form.memory {
            return;
        }
        let image = self.machine.crash_image(CrashChoice::Random(self.step));
        self.db = None;
        self.machine = Simulation::from_image(&image, self.step, SimOptions::default());
        self.open();
        self.verify();
    }

    fn finish(mut self) -> u64 {
        self.verify();
        if let Some(loading) = self.load.take() {
            self.finish_load(loading);
        }
        self.let_go();
        self.db().wait_idle().unwrap();
        self.verify();
        assert_eq!(self.db().recount(true).unwrap(), []);
        self.crash();
        self.db().compact(false, &mut |_, _| {}).unwrap();
        self.verify();
        assert_eq!(self.db().info().memory.forwarding, 0);
        self.needless
    }
}

#[test]
fn whatever_comes_together_is_exact() {
    let number =
        |name, other| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(other);
    let (first, cases) = (number("ESKER_SEED", 0), number("ESKER_CASES", 25));
    let mut needless = 0;
    for seed in first..first + cases {
        for bits in 0..16u32 {
            let has = |bit: u32| bits >> bit & 1 == 1;
            let form =
                Form { ordered_by_key: has(0), unique: has(1), expires: has(2), memory: has(3) };
            eprintln!("seed {seed}, {form:?}");
            let mut run = Run::new(seed, form);
            for _ in 0..150 {
                run.act();
            }
            needless += run.finish();
        }
    }
    eprintln!("{needless} conflicts about unique values");
}
