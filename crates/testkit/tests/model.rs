//! The same history under many configurations gives the same answers as plain maps.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{
    BackupOptions, Database, Durability, ErrorKind, Options, Snapshot, SnapshotTable, Value,
};
use esker_testkit::model::{ModelRow, NewRow, TableKind, TableState};
use esker_testkit::schema::FieldChange;
use esker_testkit::statement::Statement;
use esker_testkit::workload::modelled;
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64),
    Upsert(u64),
    Update(u64),
    Delete(u64),
    InsertMany(u64, u64),
    Load(u64, u64),
    Statement(u64),
    Alter(u64),
    Rename,
    Truncate,
    Backup(u64),
    Compact,
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
        4 => any::<u64>().prop_map(O::Statement),
        4 => any::<u64>().prop_map(O::Alter),
        1 => Just(O::Rename),
        1 => Just(O::Truncate),
        1 => any::<u64>().prop_map(O::Backup),
        1 => Just(O::Compact),
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

/// The names that the table has in turn.
const NAMES: [&str; 2] = ["t", "u"];

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
    name: &'static str,
    table: TableState,
    snapshots: Vec<(Snapshot, &'static str, TableState)>,
    serial: u64,
}

impl Subject {
    fn new(configuration: Configuration, kind: TableKind, seed: u64) -> Self {
        let options = SimOptions { pause_probability: 300_000, ..SimOptions::default() };
        let machine = Simulation::new(seed, options);
        let (name, table, snapshots) = (NAMES[0], TableState::new(kind, 0), Vec::new());
        let mut subject =
            Self { configuration, machine, db: None, kind, name, table, snapshots, serial: 0 };
        subject.open();
        subject.db().create_table(name, kind.schema().unwrap()).unwrap();
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

    fn row(&mut self, key: u64) -> NewRow {
        self.serial += 1;
        let generator = &mut Generator::new(key, self.serial);
        self.kind.row_of(&self.table.schema, key, self.serial, generator)
    }

    fn rows(&mut self, first: u64, count: u64) -> Vec<NewRow> {
        (first..first + count).map(|key| self.row(key)).collect()
    }

    /// Changes the model; nothing of it when that has to be refused.
    fn expect<T>(
        &mut self,
        change: impl FnOnce(&mut TableState) -> Result<T, ErrorKind>,
    ) -> Result<T, ErrorKind> {
        let mut table = self.table.clone();
        let outcome = change(&mut table)?;
        if !table.has_unique_values() {
            return Err(ErrorKind::AlreadyExists);
        }
        self.table = table;
        Ok(outcome)
    }

    fn expect_inserts(&mut self, rows: &[NewRow]) -> Result<(), ErrorKind> {
        self.expect(|table| {
            rows.iter().try_for_each(|row| table.schema.fit(&row.values).map(drop))?;
            for row in rows {
                if table.rows.contains_key(&row.ident) {
                    return Err(ErrorKind::AlreadyExists);
                }
                table.put(row)?;
            }
            Ok(())
        })
    }

    /// The outcome, as text that must be the same under every configuration.
    fn perform(&mut self, operation: &Operation) -> String {
        let table = self.db().table(self.name).unwrap();
        match operation {
            Operation::Insert(key) => {
                let row = self.row(*key);
                let result = table.insert(&row.values).map(drop).map_err(|e| modelled(e.kind()));
                assert_eq!(result, self.expect_inserts(&[row]));
                format!("{result:?}")
            }
            Operation::Upsert(key) => {
                let row = self.row(*key);
                let result = table.upsert(&row.values).map(drop).map_err(|e| modelled(e.kind()));
                assert_eq!(result, self.expect(|table| table.put(&row)));
                format!("{result:?}")
            }
            Operation::Update(key) => {
                self.serial += 1;
                let generator = &mut Generator::new(*key, self.serial);
                let changes = self.kind.changes(&self.table.schema, self.serial, generator);
                let named: Vec<_> = changes.iter().map(|(f, v)| (f.as_str(), v.clone())).collect();
                let result =
                    table.update(&self.kind.key(*key), &named).map_err(|e| modelled(e.kind()));
                assert_eq!(result, self.expect(|table| table.update(*key, &changes)));
                format!("{result:?}")
            }
            Operation::Delete(key) => {
                let deleted = table.delete(&self.kind.key(*key)).unwrap();
                assert_eq!(deleted, self.table.rows.remove(key).is_some());
                deleted.to_string()
            }
            Operation::InsertMany(first, count) => {
                let rows = self.rows(*first, *count);
                let values: Vec<_> = rows.iter().map(|row| row.values.clone()).collect();
                let result = table.insert_many(&values).map_err(|e| modelled(e.kind()));
                assert_eq!(result, self.expect_inserts(&rows));
                format!("{result:?}")
            }
            Operation::Load(first, count) => {
                let rows = self.rows(*first, *count);
                let mut load = table.load().unwrap();
                let pushed = rows.iter().try_for_each(|row| load.push_row(&row.values));
                let result =
                    pushed.and_then(|()| load.finish().map(drop)).map_err(|e| modelled(e.kind()));
                // Which of two errors comes first depends on the size of segments.
                let expected = self.expect_inserts(&rows);
                assert_eq!(result.is_ok(), expected.is_ok(), "{result:?}, expected {expected:?}");
                result.is_ok().to_string()
            }
            Operation::Statement(seed) => self.perform_statement(*seed),
            Operation::Alter(seed) => self.perform_alter(*seed),
            Operation::Rename => {
                let to = if self.name == NAMES[0] { NAMES[1] } else { NAMES[0] };
                self.db().rename_table(self.name, to).unwrap();
                self.name = to;
                String::new()
            }
            Operation::Truncate => {
                self.db().truncate_table(self.name).unwrap();
                assert_eq!(table.count().unwrap(), 0, "the handle follows");
                self.table.rows.clear();
                String::new()
            }
            whole => {
                drop(table);
                self.perform_whole(whole);
                String::new()
            }
        }
    }

    fn perform_alter(&mut self, seed: u64) -> String {
        let generator = &mut Generator::new(seed, 3);
        let changes = FieldChange::draw(self.kind, &self.table.schema, generator);
        let alterations: Vec<_> =
            changes.iter().map(|change| change.to_alteration().unwrap()).collect();
        let result = self.db().alter_table(self.name, &alterations).map_err(|e| modelled(e.kind()));
        assert_eq!(result, self.expect(|table| table.alter(&changes)), "{changes:?}");
        format!("{result:?}")
    }

    fn perform_statement(&mut self, seed: u64) -> String {
        let generator = &mut Generator::new(seed, 4);
        let (kind, serial) = (self.kind, &mut self.serial);
        let statement = Statement::draw(&self.table, generator, |generator| {
            *serial += 1;
            let key = generator.below(40);
            kind.row_of(&self.table.schema, key, *serial, generator)
        });
        let drawn = std::sync::Arc::clone(&self.table.schema);
        let change = statement.to_change(self.name, &drawn);
        let result = self.db().change(&change).map_err(|e| modelled(e.kind()));
        assert_eq!(result, self.expect(|table| statement.apply(table, &drawn)), "{statement:?}");
        format!("{result:?}")
    }

    fn perform_whole(&mut self, operation: &Operation) {
        match operation {
            Operation::Snapshot => {
                let snapshot = self.db().snapshot().unwrap();
                self.snapshots.push((snapshot, self.name, self.table.clone()));
            }
            Operation::DropSnapshots => self.snapshots.clear(),
            Operation::Checkpoint => self.db().checkpoint().unwrap(),
            Operation::WaitIdle => self.db().wait_idle().unwrap(),
            Operation::Sync => self.db().sync().unwrap(),
            Operation::Compact => {
                self.db().compact(false, &mut |_, _| {}).unwrap();
                assert_eq!(self.db().recount(true).unwrap(), []);
            }
            Operation::Backup(seed) if !self.configuration.memory => self.back_up(*seed),
            // The numbers of rows go on as where there is one.
            Operation::Backup(_) => self.serial += 1,
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

    /// Makes a backup and reads it.
    fn back_up(&mut self, seed: u64) {
        self.serial += 1;
        let dir = format!("backup-{}", self.serial);
        let options = BackupOptions { copy: seed.is_multiple_of(2), ..BackupOptions::default() };
        self.db().backup(&dir, &options, &mut |_, _| {}).unwrap();
        let environment = self.machine.environment();
        let copy = Options::new().environment(environment).read_only(true).open(&dir).unwrap();
        let name = self.configuration.name;
        compare(&copy.snapshot().unwrap().table(self.name).unwrap(), &self.table, name);
        assert!(copy.check().unwrap().is_sound());
    }

    fn verify(&self) {
        let configuration = self.configuration.name;
        for (snapshot, name, table) in &self.snapshots {
            compare(&snapshot.table(name).unwrap(), table, configuration);
            let other = NAMES.into_iter().find(|other| other != name).unwrap();
            assert!(snapshot.table(other).is_err(), "{configuration}: {other} had no table then");
        }
        let newest = self.db().snapshot().unwrap();
        compare(&newest.table(self.name).unwrap(), &self.table, configuration);
    }
}

fn compare(table: &SnapshotTable, expected: &TableState, configuration: &str) {
    expected.schema.compare(table.schema()).unwrap();
    let mut found = BTreeMap::new();
    for (_, values) in table.rows().unwrap() {
        let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
        let ident = expected.kind.ident(&refs).unwrap();
        assert!(found.insert(ident, values).is_none(), "key {ident} is there twice");
    }
    let rows = expected.rows.iter().map(|(ident, row)| (*ident, row.values.clone()));
    assert_eq!(found, rows.collect::<BTreeMap<_, _>>(), "{configuration}");
    assert_eq!(table.count().unwrap(), expected.rows.len() as u64);
    for key in 0..50 {
        let row = table.get(&expected.kind.key(key)).unwrap().map(esker::Row::into_values);
        let expected = expected.rows.get(&key).map(|row: &ModelRow| row.values.clone());
        assert_eq!(row, expected, "{configuration}: key {key}");
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
