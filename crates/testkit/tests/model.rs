//! The same history under many configurations gives the same answers as plain maps.

#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{Database, Durability, ErrorKind, Options, Snapshot, Value};
use esker_testkit::model::TableKind;
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};
use proptest::prelude::*;

type Rows = BTreeMap<u64, Vec<Value>>;

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64),
    Upsert(u64),
    Update(u64),
    Delete(u64),
    InsertMany(u64, u64),
    Load(u64, u64),
    Snapshot,
    ReadSnapshots,
    DropSnapshots,
    Checkpoint,
    WaitIdle,
    Sync,
    Reopen,
    Crash(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let key = 0..40u64;
    prop_oneof![
        5 => key.clone().prop_map(O::Insert),
        5 => key.clone().prop_map(O::Upsert),
        5 => key.clone().prop_map(O::Update),
        5 => key.clone().prop_map(O::Delete),
        3 => (key.clone(), 1..9u64).prop_map(|(k, n)| O::InsertMany(k, n)),
        3 => (key, 1..20u64).prop_map(|(k, n)| O::Load(k, n)),
        2 => Just(O::Snapshot),
        2 => Just(O::ReadSnapshots),
        1 => Just(O::DropSnapshots),
        2 => Just(O::Checkpoint),
        3 => Just(O::WaitIdle),
        1 => Just(O::Sync),
        1 => Just(O::Reopen),
        1 => any::<u64>().prop_map(O::Crash),
    ]
}

/// A way to open the database.
#[derive(Clone, Copy, Debug)]
struct Configuration {
    name: &'static str,
    group_rows: usize,
    small_group_bytes: u64,
    segment_rows: usize,
    log_limit: u64,
    asynchronous: bool,
    background: bool,
    memory: bool,
}

const USUAL: Configuration = Configuration {
    name: "usual",
    group_rows: 1 << 20,
    small_group_bytes: 1 << 20,
    segment_rows: 1 << 20,
    log_limit: 256 << 20,
    asynchronous: false,
    background: true,
    memory: false,
};

const CONFIGURATIONS: [Configuration; 9] = [
    USUAL,
    Configuration { name: "memory", memory: true, group_rows: 6, segment_rows: 5, ..USUAL },
    Configuration { name: "tiny groups", group_rows: 3, small_group_bytes: 0, ..USUAL },
    Configuration { name: "groups in the checkpoint", group_rows: 16, log_limit: 900, ..USUAL },
    Configuration { name: "short log", log_limit: 500, small_group_bytes: 0, ..USUAL },
    Configuration { name: "small segments", segment_rows: 3, group_rows: 8, ..USUAL },
    Configuration { name: "asynchronous", asynchronous: true, group_rows: 5, ..USUAL },
    Configuration { name: "by hand", background: false, group_rows: 4, ..USUAL },
    Configuration {
        name: "everything small",
        group_rows: 2,
        small_group_bytes: 0,
        segment_rows: 2,
        log_limit: 700,
        ..USUAL
    },
];

struct Subject {
    configuration: Configuration,
    machine: Simulation,
    db: Option<Database>,
    kind: TableKind,
    rows: Rows,
    snapshots: Vec<(Snapshot, Rows)>,
    serial: u64,
}

impl Subject {
    fn new(configuration: Configuration, kind: TableKind, seed: u64) -> Self {
        let options = SimOptions { pause_probability: 300_000, ..SimOptions::default() };
        let machine = Simulation::new(seed, options);
        let (rows, snapshots) = (Rows::new(), Vec::new());
        let mut subject =
            Self { configuration, machine, db: None, kind, rows, snapshots, serial: 0 };
        subject.open();
        subject.db().create_table("t", kind.schema().unwrap()).unwrap();
        subject.db().sync().unwrap();
        subject
    }

    fn open(&mut self) {
        let c = self.configuration;
        let options = Options::new()
            .environment(self.machine.environment())
            .group_limit(c.group_rows, 1 << 20)
            .small_group_limit(c.small_group_bytes)
            .segment_limit(c.segment_rows)
            .log_limit(c.log_limit)
            .memory_limit(64 << 20)
            .background(c.background);
        let at_most = Duration::from_millis(5);
        let options = match c.asynchronous {
            true => options.durability(Durability::Async { at_most }),
            false => options,
        };
        let db = if c.memory { options.memory() } else { options.open("db") };
        self.db = Some(db.unwrap());
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn row(&mut self, key: u64) -> Vec<Value> {
        self.serial += 1;
        self.kind.row(key, self.serial, &mut Generator::new(key, self.serial)).values
    }

    /// Rows with consecutive keys, and whether any of them is taken.
    fn new_rows(&mut self, first: u64, count: u64) -> (Vec<(u64, Vec<Value>)>, bool) {
        let rows: Vec<_> = (first..first + count).map(|key| (key, self.row(key))).collect();
        let taken = rows.iter().any(|(key, _)| self.rows.contains_key(key));
        (rows, taken)
    }

    /// The outcome, as text that must be the same under every configuration.
    fn perform(&mut self, operation: &Operation) -> String {
        let table = self.db().table("t").unwrap();
        match operation {
            Operation::Insert(key) => {
                let row = self.row(*key);
                let taken = self.rows.contains_key(key);
                let result = table.insert(&row).map_err(|e| e.kind());
                assert_eq!(result.is_err(), taken);
                if !taken {
                    self.rows.insert(*key, row);
                }
                format!("{:?}", result.map(drop))
            }
            Operation::Upsert(key) => {
                let row = self.row(*key);
                table.upsert(&row).unwrap();
                self.rows.insert(*key, row);
                String::new()
            }
            Operation::Update(key) => {
                self.serial += 1;
                let serial = Value::Uint(self.serial);
                let changed = table.update(&self.kind.key(*key), &[("serial", serial.clone())]);
                let row = self.rows.get_mut(key);
                assert_eq!(changed.unwrap(), row.is_some());
                if let Some(row) = row {
                    *row.get_mut(self.kind.position("serial")).unwrap() = serial;
                }
                String::new()
            }
            Operation::Delete(key) => {
                let deleted = table.delete(&self.kind.key(*key)).unwrap();
                assert_eq!(deleted, self.rows.remove(key).is_some());
                deleted.to_string()
            }
            Operation::InsertMany(first, count) => {
                let (rows, taken) = self.new_rows(*first, *count);
                let values: Vec<_> = rows.iter().map(|(_, values)| values.clone()).collect();
                let result = table.insert_many(&values).map_err(|e| e.kind());
                assert_eq!(result, if taken { Err(ErrorKind::AlreadyExists) } else { Ok(()) });
                self.rows.extend(rows.into_iter().filter(|_| !taken));
                format!("{result:?}")
            }
            Operation::Load(first, count) => {
                let (rows, taken) = self.new_rows(*first, *count);
                let mut load = table.load().unwrap();
                let pushed = rows.iter().try_for_each(|(_, values)| load.push_row(values));
                let result = pushed.and_then(|()| load.finish().map(drop)).map_err(|e| e.kind());
                assert_eq!(result, if taken { Err(ErrorKind::AlreadyExists) } else { Ok(()) });
                self.rows.extend(rows.into_iter().filter(|_| !taken));
                format!("{result:?}")
            }
            whole => {
                drop(table);
                self.perform_whole(whole);
                String::new()
            }
        }
    }

    fn perform_whole(&mut self, operation: &Operation) {
        match operation {
            Operation::Snapshot => {
                let snapshot = self.db().snapshot().unwrap();
                self.snapshots.push((snapshot, self.rows.clone()));
            }
            Operation::DropSnapshots => self.snapshots.clear(),
            Operation::Checkpoint => self.db().checkpoint().unwrap(),
            Operation::WaitIdle => self.db().wait_idle().unwrap(),
            Operation::Sync => self.db().sync().unwrap(),
            Operation::Reopen if !self.configuration.memory => {
                self.snapshots.clear();
                self.db.take().unwrap().close().unwrap();
                self.open();
            }
            Operation::Crash(seed) if !self.configuration.memory => {
                self.snapshots.clear();
                self.db().sync().unwrap();
                let image = self.machine.crash_image(CrashChoice::Random(*seed));
                self.db = None;
                self.machine = Simulation::from_image(&image, *seed, SimOptions::default());
                self.open();
            }
            _ => {}
        }
    }

    fn verify(&self) {
        for (snapshot, rows) in &self.snapshots {
            self.compare(snapshot, rows);
        }
        self.compare(&self.db().snapshot().unwrap(), &self.rows);
    }

    fn compare(&self, snapshot: &Snapshot, rows: &Rows) {
        let table = snapshot.table("t").unwrap();
        let mut found = Rows::new();
        for (_, values) in table.rows().unwrap() {
            let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
            let ident = self.kind.ident(&refs).unwrap();
            assert!(found.insert(ident, values).is_none(), "key {ident} is there twice");
        }
        let name = self.configuration.name;
        assert_eq!(&found, rows, "{name}: at commit {}", snapshot.commit());
        assert_eq!(table.count().unwrap(), rows.len() as u64);
        for key in 0..50 {
            let row = table.get(&self.kind.key(key)).unwrap().map(esker::Row::into_values);
            assert_eq!(row.as_ref(), rows.get(&key), "{name}: key {key}");
        }
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_configuration_answers_like_a_map(
        operations in prop::collection::vec(operation(), 1..50),
        kind in prop::sample::select(vec![
            TableKind::Text, TableKind::Composite, TableKind::Integer,
        ]),
        seed in any::<u64>(),
    ) {
        let mut answers: Option<Vec<String>> = None;
        for configuration in CONFIGURATIONS {
            let mut subject = Subject::new(configuration, kind, seed);
            let mut told = Vec::new();
            for operation in &operations {
                told.push(subject.perform(operation));
                if matches!(operation, Operation::ReadSnapshots) {
                    subject.verify();
                }
            }
            subject.verify();
            let report = subject.db().check().unwrap();
            prop_assert!(report.is_sound(), "{}: {:?}", configuration.name, report.problems);
            match &answers {
                None => answers = Some(told),
                Some(first) => prop_assert_eq!(first, &told, "{}", configuration.name),
            }
        }
    }
}
