//! A database under a model, what has been done to it, and what readers may see.
//!
//! Each writer owns some keys and notes each change before it begins and after it returned. What a
//! reader finds must be what some prefix of the writer's changes leaves: one that holds at least
//! all that had returned before the reader began, and all that the same reader has seen before. A
//! snapshot must show one prefix of each writer, by scan and by key, and the same one for ever.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use esker::{
    DataType, Database, ErrorKind, Options, Row, Schema, Snapshot, SnapshotTable, Table, Value,
};
use esker_vfs::Environment;
use esker_vfs::sim::{Options as SimOptions, Simulation};
use shuttle::rand::Rng;

use super::tasks::ModelTasks;

/// Keys that one writer owns.
const KEYS_A_WRITER: i64 = 4;
/// The first of them are changed in a model.
pub const CHANGED_KEYS: i64 = 2;
/// Keys from here on are loaded.
const LOADED: std::ops::Range<i64> = 1_000..1_005;

/// A change of a key: its new value, or that it is deleted.
type Change = (i64, Option<i64>);

/// What one writer has done.
#[derive(Default)]
struct History {
    begun: Vec<Change>,
    returned: usize,
}

impl History {
    /// What a key holds after the first `count` changes.
    fn value(&self, key: i64, count: usize) -> Option<i64> {
        self.begun[..count].iter().rev().find(|change| change.0 == key).and_then(|c| c.1)
    }

    /// What all keys hold after the first `count` changes.
    fn values(&self, count: usize) -> BTreeMap<i64, i64> {
        let mut values = BTreeMap::new();
        for (key, value) in &self.begun[..count] {
            match value {
                Some(value) => values.insert(*key, *value),
                None => values.remove(key),
            };
        }
        values
    }
}

/// Everything that the threads of a model share.
pub struct World {
    pub db: Database,
    table: Table,
    writers: Vec<Mutex<History>>,
    /// The load has begun; it has returned.
    load: Mutex<(bool, bool)>,
    /// Snapshots that last until all is done.
    left: Mutex<Vec<Snapshot>>,
}

fn row(key: i64, value: i64) -> Vec<Value> {
    vec![Value::Int(key), Value::Int(value), Value::Text(note(value))]
}

fn note(value: i64) -> String {
    format!("value {value}")
}

/// Key and value of a row that is whole.
fn parts(values: &[Value]) -> (i64, i64) {
    let [Value::Int(key), Value::Int(value), Value::Text(text)] = values else {
        panic!("{values:?}")
    };
    assert_eq!(*text, note(*value), "one version's value beside another's note");
    (*key, *value)
}

fn found(row: Option<Row>, key: i64) -> Option<i64> {
    let (at, value) = parts(row?.values());
    assert_eq!(at, key, "the row of another key");
    Some(value)
}

/// A database whose limits are so small that everything is sealed and merged.
pub fn open(memory: bool) -> Database {
    open_with(ModelTasks { is_patient: false }, memory)
}

/// The same, where who waits for some time waits until it is woken.
pub fn open_patient(memory: bool) -> Database {
    open_with(ModelTasks { is_patient: true }, memory)
}

fn open_with(tasks: ModelTasks, memory: bool) -> Database {
    let machine = Simulation::new(1, SimOptions::default());
    let environment = Environment { tasks: Arc::new(tasks), ..machine.environment() };
    let options = Options::new()
        .environment(environment)
        .background(false)
        .group_limit(3, 1 << 20)
        .small_group_limit(0)
        .segment_limit(4)
        .memory_limit(64 << 20)
        .merge_share(100);
    if memory { options.memory() } else { options.open("db") }.unwrap()
}

impl World {
    /// Every key has been inserted, most are sealed, and the version of a sealed one is dead.
    pub fn new(memory: bool, writers: usize) -> Self {
        let db = open(memory);
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("value", DataType::I64)
            .field("note", DataType::Text)
            .primary_key(["id"]);
        let table = db.create_table("rows", schema.build().unwrap()).unwrap();
        let mut histories = Vec::new();
        for writer in 0..writers {
            let mut history = History::default();
            let first = i64::try_from(writer).unwrap() * KEYS_A_WRITER;
            for key in first..first + KEYS_A_WRITER {
                table.insert(&row(key, key)).unwrap();
                history.begun.push((key, Some(key)));
                history.returned += 1;
            }
            histories.push(Mutex::new(history));
        }
        db.wait_idle().unwrap();
        // From here on a merge is due.
        for (writer, history) in histories.iter().enumerate() {
            let key = i64::try_from(writer).unwrap() * KEYS_A_WRITER + CHANGED_KEYS;
            table.upsert(&row(key, 50)).unwrap();
            let mut history = history.lock().unwrap();
            history.begun.push((key, Some(50)));
            history.returned += 1;
        }
        Self { db, table, writers: histories, load: Mutex::default(), left: Mutex::default() }
    }

    /// How many keys have an owner.
    pub fn keys(&self) -> i64 {
        i64::try_from(self.writers.len()).unwrap() * KEYS_A_WRITER
    }

    fn owner(key: i64) -> usize {
        usize::try_from(key / KEYS_A_WRITER).unwrap()
    }

    /// Inserts, changes, replaces or deletes a key of a writer.
    pub fn change(&self, writer: usize) {
        let mut random = shuttle::rand::thread_rng();
        let key =
            i64::try_from(writer).unwrap() * KEYS_A_WRITER + random.gen_range(0..CHANGED_KEYS);
        let history = &self.writers[writer];
        let (alive, value) = {
            let history = history.lock().unwrap();
            let count = history.begun.len();
            (history.value(key, count).is_some(), 100 + i64::try_from(count).unwrap())
        };
        let choice = random.gen_range(0..3);
        let new = (!alive || choice > 0).then_some(value);
        history.lock().unwrap().begun.push((key, new));
        let id = [Value::Int(key)];
        match (alive, new) {
            (_, None) => assert!(self.table.delete(&id).unwrap(), "key {key} was there"),
            (false, Some(value)) => drop(self.table.insert(&row(key, value)).unwrap()),
            (true, Some(value)) if choice == 1 => {
                let changes = [("value", Value::Int(value)), ("note", Value::Text(note(value)))];
                assert!(self.table.update(&id, &changes).unwrap(), "key {key} was there");
            }
            (true, Some(value)) => drop(self.table.upsert(&row(key, value)).unwrap()),
        }
        history.lock().unwrap().returned += 1;
        // Read your own write, and find that it is there or gone when you want it to be.
        assert_eq!(found(self.table.get(&id).unwrap(), key), new, "key {key}, by its writer");
        if new.is_some() {
            let refused = self.table.insert(&row(key, 0)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
        }
    }

    /// Takes a snapshot that lasts until all is done.
    pub fn leave_snapshot(&self) {
        let snapshot = self.db.snapshot().unwrap();
        self.left.lock().unwrap().push(snapshot);
    }

    /// Loads some rows, all of which are seen or none.
    pub fn load(&self) {
        self.load.lock().unwrap().0 = true;
        let mut load = self.table.load().unwrap();
        for key in LOADED {
            load.push_row(&row(key, key)).unwrap();
        }
        load.finish().unwrap();
        self.load.lock().unwrap().1 = true;
        for key in LOADED {
            assert_eq!(found(self.table.get(&[Value::Int(key)]).unwrap(), key), Some(key));
        }
    }

    /// When all is done: the last values, by key and by scan, before and after the last merges.
    pub fn finish(&self) {
        drop(std::mem::take(&mut *self.left.lock().unwrap()));
        for _ in 0..2 {
            let mut reader = Reader::new(self);
            for key in 0..self.keys() {
                reader.get(key);
            }
            reader.keep_a_snapshot(1, || {});
            self.check();
            self.db.wait_idle().unwrap();
        }
    }

    /// Nothing is wrong, whatever is under way.
    pub fn check(&self) {
        let check = self.db.check().unwrap();
        assert!(check.is_sound(), "{check:?}");
    }
}

/// Somebody who looks, and what it has seen so far: a number of changes for each writer.
pub struct Reader<'w> {
    world: &'w World,
    seen: Vec<usize>,
}

impl<'w> Reader<'w> {
    pub fn new(world: &'w World) -> Self {
        Self { world, seen: vec![0; world.writers.len()] }
    }

    /// All that has returned by now must be seen from here on.
    fn begin(&mut self) {
        for (seen, writer) in self.seen.iter_mut().zip(&self.world.writers) {
            *seen = (*seen).max(writer.lock().unwrap().returned);
        }
    }

    /// Looks up a key.
    pub fn get(&mut self, key: i64) {
        self.begin();
        let value = found(self.world.table.get(&[Value::Int(key)]).unwrap(), key);
        let writer = World::owner(key);
        let history = self.world.writers[writer].lock().unwrap();
        let (from, to) = (self.seen[writer], history.begun.len());
        let fits = (from..=to).find(|count| history.value(key, *count) == value);
        let allowed: Vec<_> = (from..=to).map(|count| history.value(key, count)).collect();
        let Some(count) = fits else { panic!("key {key} is {value:?}, not one of {allowed:?}") };
        self.seen[writer] = count;
    }

    /// Takes a snapshot, and reads it some times after something else.
    pub fn keep_a_snapshot(&mut self, times: usize, meanwhile: impl FnOnce()) {
        self.begin();
        let load_returned = self.world.load.lock().unwrap().1;
        let snapshot = self.world.db.snapshot().unwrap();
        let table = snapshot.table("rows").unwrap();
        let first = all(&table);
        for (writer, history) in self.world.writers.iter().enumerate() {
            let history = history.lock().unwrap();
            let own = |(key, _): &(&i64, &i64)| **key < 1_000 && World::owner(**key) == writer;
            let own: BTreeMap<_, _> = first.iter().filter(own).map(|(k, v)| (*k, *v)).collect();
            let (from, to) = (self.seen[writer], history.begun.len());
            let Some(count) = (from..=to).find(|count| history.values(*count) == own) else {
                let allowed: Vec<_> = (from..=to).map(|count| history.values(count)).collect();
                panic!("a snapshot shows {own:?}, not one of {allowed:?}");
            };
            self.seen[writer] = count;
        }
        let loaded = first.range(LOADED).count();
        let load_begun = self.world.load.lock().unwrap().0;
        let all_loaded = LOADED.count();
        assert!(loaded == 0 || loaded == all_loaded && load_begun, "{loaded} loaded rows");
        assert!(loaded == all_loaded || !load_returned, "a load returned and is not seen");
        meanwhile();
        for _ in 0..times {
            let table = snapshot.table("rows").unwrap();
            for key in (0..self.world.keys()).chain(LOADED) {
                let value = found(table.get(&[Value::Int(key)]).unwrap(), key);
                assert_eq!(value, first.get(&key).copied(), "key {key} of an old snapshot");
            }
            assert_eq!(all(&table), first, "an old snapshot");
        }
    }
}

/// Every row of a snapshot, by scan, and counted.
fn all(table: &SnapshotTable) -> BTreeMap<i64, i64> {
    let rows = table.rows().unwrap();
    assert_eq!(table.count().unwrap(), rows.len() as u64, "counted and scanned");
    let values: BTreeMap<_, _> = rows.iter().map(|(_, values)| parts(values)).collect();
    assert_eq!(values.len(), rows.len(), "a key twice: {rows:?}");
    values
}
