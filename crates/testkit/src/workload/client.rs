//! One client: draws an operation, does it, and notes what was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use esker::{Database, Modified, Snapshot, Table, Value};
use esker_vfs::sim::Generator;
use esker_vfs::{Step, Task};

use super::loading::Loading;
use super::world::{Begun, Done, World};
use crate::answer::Saw;
use crate::history::Action;
use crate::model::{NewRow, State, TableKind, TableState};
use crate::operators::Operators;
use crate::schema::TableSchema;

/// The names that tables may have.
pub(crate) const TABLES: [&str; 4] = ["apples", "beans", "corn", "dates"];
/// Keys of ordinary operations; loads use as many more.
pub(super) const KEYS: u64 = 40;
/// Snapshots that a client holds at a time.
pub(super) const SNAPSHOTS_MAX: usize = 3;

/// A client of the database.
pub(crate) struct Client {
    pub world: Arc<World>,
    pub generator: Generator,
    pub segment_rows: usize,
    /// Distinguishes its loads from others'.
    pub number: u64,
    /// Whether it loads and creates indexes: only a client that is not itself a task may, since
    /// these wait for tasks.
    pub waits_allowed: bool,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) loads: Vec<Loading>,
    pub(super) loads_begun: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What is below on the stack cannot go on, so nothing may wait for it.
            std::mem::take(&mut self.snapshots).into_iter().for_each(std::mem::forget);
            std::mem::take(&mut self.loads).into_iter().for_each(std::mem::forget);
        }
    }
}

/// Rows of which kind of statement.
#[derive(Clone, Copy)]
pub(super) enum Way {
    One,
    Many,
    Append,
}

impl Client {
    pub fn new(world: Arc<World>, number: u64, seed: u64, segment_rows: usize) -> Self {
        let generator = Generator::new(seed, 40 + number);
        Self {
            world,
            generator,
            segment_rows,
            number,
            waits_allowed: number == 0,
            snapshots: Vec::new(),
            loads: Vec::new(),
            loads_begun: 0,
        }
    }

    /// Lets go of snapshots and loads.
    pub fn rest(&mut self) {
        self.snapshots.clear();
        while let Some(loading) = self.loads.pop() {
            self.drop_load(loading);
        }
    }

    /// Does one operation.
    pub fn act(&mut self) {
        let state = self.world.state();
        if state.tables.is_empty() {
            return self.create_table();
        }
        match self.generator.below(100) {
            0..2 => self.create_table(),
            2..3 => self.drop_table(),
            3..7 => self.alter_table(&state),
            7..8 => self.rename_table(&state),
            8..9 => self.truncate_table(&state),
            9..16 => self.state(&state),
            16..22 => self.transact(),
            22..27 => self.write(&state, Way::One, false),
            27..36 => self.write(&state, Way::One, true),
            36..44 => self.write(&state, Way::Many, false),
            44..50 => self.write(&state, Way::Many, true),
            50..55 => self.write(&state, Way::Append, false),
            // What operators do depends on the types of fields, which others change.
            55..60 if self.world.is_alone => self.operate(&state),
            55..65 => self.update(&state),
            65..76 => self.delete(&state),
            76..86 if self.waits_allowed => self.continue_load(&state),
            86..90 => self.get(&state),
            90..97 => self.use_snapshot(&state),
            97..98 => self.scan(&state),
            98..99 => self.bad_input(&state),
            _ => self.take_values(),
        }
    }

    pub(super) fn pick_table(&mut self, state: &State) -> Option<(String, TableKind)> {
        let at = self.generator.index(state.tables.len());
        let (name, table) = state.tables.iter().nth(at)?;
        let is_known = !self.world.lock().remade.contains(name);
        is_known.then(|| (name.clone(), table.kind))
    }

    pub(super) fn change(
        &mut self,
        action: Action,
        change: impl FnOnce(&Database) -> esker::Result<Done>,
    ) {
        let Some(begun) = self.world.begin(Some(&action), None) else { return };
        let result = change(&begun.db);
        self.world.end(&begun, action, result, None);
    }

    pub(super) fn new_row(&mut self, kind: TableKind, schema: &TableSchema, keys: u64) -> NewRow {
        let serial = self.world.serial();
        let ident = if kind == TableKind::Generated { serial } else { self.generator.below(keys) };
        kind.row_of(schema, ident, serial, &mut self.generator)
    }

    pub(super) fn write(&mut self, state: &State, way: Way, upsert: bool) {
        let Some((table, kind)) = self.pick_table(state) else { return };
        let count = match way {
            Way::One => 1,
            Way::Many => 1 + self.generator.below(6),
            Way::Append => 1 + self.generator.below(12),
        };
        let Some(schema) = state.table(&table).map(|t| Arc::clone(&t.schema)) else { return };
        let rows: Vec<NewRow> = (0..count).map(|_| self.new_row(kind, &schema, KEYS)).collect();
        let values: Vec<Vec<Value>> = rows.iter().map(|row| row.values.clone()).collect();
        let name = table.clone();
        let action = match upsert {
            true => Action::Upsert { table, rows },
            false => Action::Insert { table, rows },
        };
        self.change(action, |db| put(&db.table(&name)?, &values, way, upsert));
    }

    /// A row that is there, usually.
    pub(super) fn pick_row(&mut self, table: &TableState) -> (u64, Vec<Value>) {
        let at = self.generator.index(table.rows.len().max(1));
        let some = table.rows.iter().nth(at).filter(|_| self.generator.chance(850_000));
        match (table.kind, some) {
            (TableKind::Generated, Some((ident, row))) => {
                let known = self.world.lock().history.row_id(row.born);
                (*ident, vec![Value::Uint(known.unwrap_or(u64::MAX >> 1))])
            }
            (TableKind::Generated, None) => (u64::MAX, vec![Value::Uint(u64::MAX >> 2)]),
            (kind, Some((ident, _))) => (*ident, kind.key(*ident)),
            (kind, None) => {
                let ident = self.generator.below(KEYS);
                (ident, kind.key(ident))
            }
        }
    }

    pub(super) fn update(&mut self, state: &State) {
        let Some((name, kind)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let (ident, key) = self.pick_row(table);
        if kind == TableKind::Generated && key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        let serial = self.world.serial();
        let changes = kind.changes(&table.schema, serial, &mut self.generator);
        let action = Action::Update { table: name.clone(), ident, changes: changes.clone() };
        self.change(action, |db| update(db, &name, &key, &changes));
    }

    fn operate(&mut self, state: &State) {
        let Some((name, kind)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let (ident, key) = self.pick_row(table);
        if kind == TableKind::Generated && key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        let operators = Operators::draw(table, self.world.serial(), &mut self.generator);
        let update = operators.to_update();
        let action = Action::Operate { table: name.clone(), ident, operators };
        self.change(action, |db| {
            let modified = db.table(&name)?.apply(&key, &update)?;
            Ok(changed(modified != Modified::Absent))
        });
    }

    pub(super) fn delete(&mut self, state: &State) {
        let Some((name, _)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let (ident, key) = self.pick_row(table);
        if key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        let action = Action::Delete { table: name.clone(), ident };
        self.change(action, |db| Ok(changed(db.table(&name)?.delete(&key)?)));
    }

    /// A row that does not fit.
    fn bad_input(&mut self, state: &State) {
        let Some((table, kind)) = self.pick_table(state) else { return };
        let Some(schema) = state.table(&table).map(|t| Arc::clone(&t.schema)) else { return };
        let mut row = self.new_row(kind, &schema, KEYS);
        let values = &mut row.values;
        match self.generator.below(4) {
            0 => drop(values.pop()),
            1 => values.push(Value::Null),
            2 => values.iter_mut().for_each(|value| *value = Value::Null),
            _ => values.iter_mut().for_each(|value| *value = Value::Text("zebra".to_owned())),
        }
        let (name, values) = (table.clone(), vec![row.values.clone()]);
        let upsert = self.generator.chance(500_000);
        let action = match upsert {
            true => Action::Upsert { table, rows: vec![row] },
            false => Action::Insert { table, rows: vec![row] },
        };
        self.change(action, |db| put(&db.table(&name)?, &values, Way::One, upsert));
    }

    fn get(&mut self, state: &State) {
        let Some((name, _)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let (ident, key) = self.pick_row(table);
        if key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        let Some(Begun { db, .. }) = self.world.begin(None, None) else { return };
        // Finding a table may wait until it is durable.
        let table = db.table(&name);
        let at = db.info().visible_commit;
        let found = table.and_then(|table| table.get(&key));
        match found {
            Ok(row) => {
                let row = row.map(esker::Row::into_values);
                self.world.note(|| format!("get {name} {key:?} at {at}: {row:?}"));
                self.world.saw(at, &name, Saw::Row(ident, row));
            }
            Err(e) => self.read_failed(&e),
        }
    }

    fn scan(&mut self, state: &State) {
        let Some((name, _)) = self.pick_table(state) else { return };
        let Some(Begun { db, .. }) = self.world.begin(None, None) else { return };
        let read = || -> esker::Result<_> {
            let snapshot = db.snapshot()?;
            Ok((snapshot.commit(), snapshot.table(&name)?.rows()?))
        };
        match read() {
            Ok((at, rows)) => self.world.saw(at, &name, Saw::Rows(rows)),
            Err(e) => self.read_failed(&e),
        }
    }

    pub(super) fn read_failed(&self, error: &esker::Error) {
        use esker::ErrorKind as K;
        let inner = self.world.lock();
        let faulty = inner.history.is_faulty();
        drop(inner);
        match error.kind() {
            // Somebody dropped the table between.
            K::NotFound => {}
            K::Io | K::NoSpace if faulty => {}
            kind => self.world.fail(format!("a read failed: {kind:?}: {error}")),
        }
    }
}

pub(super) fn changed(changed: bool) -> Done {
    if changed { Done::Changed { row_id: None, commit: None } } else { Done::Unchanged }
}

/// Updates a row.
pub(super) fn update(
    db: &Database,
    name: &str,
    key: &[Value],
    changes: &[(String, Value)],
) -> esker::Result<Done> {
    let changes: Vec<_> = changes.iter().map(|(f, value)| (f.as_str(), value.clone())).collect();
    Ok(changed(db.table(name)?.update(key, &changes)?))
}

/// Writes rows.
pub(super) fn put(
    table: &Table,
    rows: &[Vec<Value>],
    way: Way,
    upsert: bool,
) -> esker::Result<Done> {
    let mut row_id = None;
    match (way, rows) {
        (Way::One, [row]) if upsert => row_id = Some(table.upsert(row)?),
        (Way::One, [row]) => row_id = Some(table.insert(row)?),
        (Way::Append, _) => {
            let mut appender = table.appender();
            rows.iter().try_for_each(|row| appender.append(row))?;
            appender.finish()?;
        }
        _ if upsert => table.upsert_many(rows)?,
        _ => table.insert_many(rows)?,
    }
    Ok(Done::Changed { row_id, commit: None })
}

/// A client that the simulator's scheduler runs: so many operations each time it is woken.
pub(crate) struct ClientTask {
    pub client: Client,
    pub budget: Arc<AtomicU32>,
    pub stopping: Arc<AtomicBool>,
}

impl Task for ClientTask {
    fn step(&mut self) -> Step {
        if self.stopping.load(Ordering::Relaxed) {
            self.client.rest();
            return Step::Done;
        }
        let left = self.budget.load(Ordering::Relaxed);
        if left == 0 {
            return Step::Idle;
        }
        self.budget.store(left - 1, Ordering::Relaxed);
        self.client.act();
        Step::Again
    }
}
