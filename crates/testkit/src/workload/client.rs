//! One client: draws an operation, does it, and notes what was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use esker::{Batch, Database, ErrorKind, Load, Snapshot, Table, Value};
use esker_vfs::sim::Generator;
use esker_vfs::{Step, Task};

use super::world::{Begun, Done, Holding, Saw, World};
use crate::history::{Action, Held};
use crate::model::{NewRow, State, TableKind, TableState};

/// The names that tables may have.
pub(crate) const TABLES: [&str; 4] = ["apples", "beans", "corn", "dates"];
/// Keys of ordinary operations; loads use as many more.
const KEYS: u64 = 40;
/// Snapshots that a client holds at a time.
const SNAPSHOTS_MAX: usize = 3;

/// A client of the database.
pub(crate) struct Client {
    pub world: Arc<World>,
    pub generator: Generator,
    pub segment_rows: usize,
    /// Distinguishes its loads from others'.
    pub number: u64,
    /// Whether it loads: only a client that is not itself a task may, since it waits for tasks.
    pub loads_allowed: bool,
    snapshots: Vec<Snapshot>,
    loads: Vec<Loading>,
    loads_begun: u64,
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

struct Loading {
    id: u64,
    load: Load,
    table: String,
    kind: TableKind,
    incarnation: u64,
    rows: Vec<NewRow>,
    /// The newest commit when it began: what comes later may be refused because of it.
    from: u64,
    /// Another load went into the same table for some time.
    had_rival: bool,
}

/// An operation of an exhaustive run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiny {
    /// A new row.
    Insert,
    /// A row that may be there.
    Upsert,
    /// Two fields of a row.
    Update,
    /// A row goes.
    Delete,
    /// Five new rows: the group is full.
    InsertMany,
    /// A second table.
    Create,
    /// The second table goes.
    Drop,
    /// A load of two segments.
    Load,
    /// Rows with generated keys.
    Append,
    /// A checkpoint.
    Checkpoint,
    /// Sealing and merging until nothing is left to do.
    Seal,
    /// Closing and opening.
    Reopen,
}

impl Tiny {
    /// All twelve.
    pub const ALL: [Self; 12] = [
        Self::Insert,
        Self::Upsert,
        Self::Update,
        Self::Delete,
        Self::InsertMany,
        Self::Create,
        Self::Drop,
        Self::Load,
        Self::Append,
        Self::Checkpoint,
        Self::Seal,
        Self::Reopen,
    ];
}

/// Rows of which kind of statement.
#[derive(Clone, Copy)]
enum Way {
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
            loads_allowed: number == 0,
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
            3..22 => self.write(&state, Way::One, false),
            22..36 => self.write(&state, Way::One, true),
            36..44 => self.write(&state, Way::Many, false),
            44..50 => self.write(&state, Way::Many, true),
            50..55 => self.write(&state, Way::Append, false),
            55..65 => self.update(&state),
            65..76 => self.delete(&state),
            76..86 if self.loads_allowed => self.continue_load(&state),
            86..90 => self.get(&state),
            90..97 => self.use_snapshot(&state),
            97..98 => self.scan(&state),
            _ => self.bad_input(&state),
        }
    }

    /// Does one change of an exhaustive run.
    pub fn tiny(&mut self, operation: Tiny) {
        let [first, second, generated, _] = TABLES;
        let kind = TableKind::Integer;
        let insert = |rows: Vec<NewRow>| Action::Insert { table: first.to_owned(), rows };
        let serial = self.world.serial();
        match operation {
            Tiny::Insert => {
                let row = kind.row(100 + serial, serial, &mut self.generator);
                let values = vec![row.values.clone()];
                self.change(insert(vec![row]), |db| {
                    put(&db.table(first)?, &values, Way::One, false)
                });
            }
            Tiny::Upsert => {
                let row = kind.row(2, serial, &mut self.generator);
                let values = vec![row.values.clone()];
                let action = Action::Upsert { table: first.to_owned(), rows: vec![row] };
                self.change(action, |db| put(&db.table(first)?, &values, Way::One, true));
            }
            Tiny::Update => {
                let changes = TableKind::changes(serial, &mut self.generator);
                let (table, ident) = (first.to_owned(), 1);
                let action = Action::Update { table, ident, changes: changes.clone() };
                self.change(action, |db| {
                    Ok(changed(db.table(first)?.update(&kind.key(1), &changes)?))
                });
            }
            Tiny::Delete => {
                let action = Action::Delete { table: first.to_owned(), ident: 3 };
                self.change(action, |db| Ok(changed(db.table(first)?.delete(&kind.key(3))?)));
            }
            Tiny::InsertMany => {
                let rows = self.fresh_rows(kind, 5);
                let values: Vec<_> = rows.iter().map(|row| row.values.clone()).collect();
                self.change(insert(rows), |db| put(&db.table(first)?, &values, Way::Many, false));
            }
            Tiny::Append => {
                let rows = self.fresh_rows(TableKind::Generated, 3);
                let values: Vec<_> = rows.iter().map(|row| row.values.clone()).collect();
                let action = Action::Insert { table: generated.to_owned(), rows };
                self.change(action, |db| put(&db.table(generated)?, &values, Way::Append, false));
            }
            Tiny::Create => self.create_named(second, TableKind::Text),
            Tiny::Drop => self.drop_named(second),
            Tiny::Load => {
                let state = self.world.state();
                let rows = self.fresh_rows(kind, 5);
                self.load_whole(&state, first, rows);
            }
            Tiny::Checkpoint | Tiny::Seal | Tiny::Reopen => {}
        }
    }

    /// Makes the tables that exhaustive runs begin with.
    pub fn tiny_tables(&mut self) {
        let [first, _, generated, _] = TABLES;
        self.create_named(first, TableKind::Integer);
        self.create_named(generated, TableKind::Generated);
    }

    /// Fills the first of them.
    pub fn tiny_rows(&mut self) {
        let [first, ..] = TABLES;
        for ident in 1..4 {
            let serial = self.world.serial();
            let row = TableKind::Integer.row(ident, serial, &mut self.generator);
            let values = vec![row.values.clone()];
            let action = Action::Insert { table: first.to_owned(), rows: vec![row] };
            self.change(action, |db| put(&db.table(first)?, &values, Way::One, false));
        }
    }

    fn fresh_rows(&mut self, kind: TableKind, count: u64) -> Vec<NewRow> {
        let mut row = |_| {
            let serial = self.world.serial();
            let ident = if kind == TableKind::Generated { serial } else { 100 + serial };
            kind.row(ident, serial, &mut self.generator)
        };
        (0..count).map(&mut row).collect()
    }

    fn load_whole(&mut self, state: &State, name: &str, rows: Vec<NewRow>) {
        let Some(table) = state.table(name) else { return };
        let Some(Begun { db, from, .. }) = self.world.begin(None, None) else { return };
        let Ok(load) = db.table(name).and_then(|table| table.load()) else { return };
        let (kind, incarnation) = (table.kind, table.incarnation);
        let (table, id, had_rival) = (name.to_owned(), 0, false);
        let mut loading = Loading { id, load, table, kind, incarnation, rows, from, had_rival };
        let rows = loading.rows.clone();
        match push_rows(&mut loading, &rows, false) {
            Ok(()) => self.finish(loading),
            Err(e) => self.read_failed(&e),
        }
    }

    fn pick_table(&mut self, state: &State) -> Option<(String, TableKind)> {
        let at = self.generator.index(state.tables.len());
        let (name, table) = state.tables.iter().nth(at)?;
        let is_known = !self.world.lock().remade.contains(name);
        is_known.then(|| (name.clone(), table.kind))
    }

    fn change(&mut self, action: Action, change: impl FnOnce(&Database) -> esker::Result<Done>) {
        let Some(begun) = self.world.begin(Some(&action), None) else { return };
        let result = change(&begun.db);
        self.world.end(&begun, action, result, None);
    }

    fn create_table(&mut self) {
        let name = self.generator.pick(TABLES);
        let kind = self.generator.pick(TableKind::ALL);
        self.create_named(name, kind);
    }

    fn create_named(&mut self, name: &'static str, kind: TableKind) {
        let incarnation = self.world.serial();
        let action = Action::Create { name: name.to_owned(), kind, incarnation };
        self.change(action, |db| {
            db.create_table(name, kind.schema()?)?;
            Ok(Done::Changed { row_id: None, commit: None })
        });
    }

    fn drop_table(&mut self) {
        let name = self.generator.pick(TABLES);
        self.drop_named(name);
    }

    fn drop_named(&mut self, name: &'static str) {
        self.change(Action::Drop { name: name.to_owned() }, |db| {
            db.drop_table(name)?;
            Ok(Done::Changed { row_id: None, commit: None })
        });
    }

    fn new_row(&mut self, kind: TableKind, keys: u64) -> NewRow {
        let serial = self.world.serial();
        let ident = if kind == TableKind::Generated { serial } else { self.generator.below(keys) };
        kind.row(ident, serial, &mut self.generator)
    }

    fn write(&mut self, state: &State, way: Way, upsert: bool) {
        let Some((table, kind)) = self.pick_table(state) else { return };
        let count = match way {
            Way::One => 1,
            Way::Many => 1 + self.generator.below(6),
            Way::Append => 1 + self.generator.below(12),
        };
        let rows: Vec<NewRow> = (0..count).map(|_| self.new_row(kind, KEYS)).collect();
        let values: Vec<Vec<Value>> = rows.iter().map(|row| row.values.clone()).collect();
        let name = table.clone();
        let action = match upsert {
            true => Action::Upsert { table, rows },
            false => Action::Insert { table, rows },
        };
        self.change(action, |db| put(&db.table(&name)?, &values, way, upsert));
    }

    /// A row that is there, usually.
    fn pick_row(&mut self, table: &TableState) -> (u64, Vec<Value>) {
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

    fn update(&mut self, state: &State) {
        let Some((name, kind)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let (ident, key) = self.pick_row(table);
        if kind == TableKind::Generated && key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        let changes = TableKind::changes(self.world.serial(), &mut self.generator);
        let action = Action::Update { table: name.clone(), ident, changes: changes.clone() };
        self.change(action, |db| Ok(changed(db.table(&name)?.update(&key, &changes)?)));
    }

    fn delete(&mut self, state: &State) {
        let Some((name, _)) = self.pick_table(state) else { return };
        let Some(table) = state.table(&name) else { return };
        let (ident, key) = self.pick_row(table);
        if key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        let action = Action::Delete { table: name.clone(), ident };
        self.change(action, |db| Ok(changed(db.table(&name)?.delete(&key)?)));
    }

    fn bad_input(&mut self, state: &State) {
        let Some((name, kind)) = self.pick_table(state) else { return };
        let mut row = self.new_row(kind, KEYS).values;
        match self.generator.below(4) {
            0 => drop(row.pop()),
            1 => row.push(Value::Null),
            2 => row.iter_mut().for_each(|value| *value = Value::Null),
            _ => row.iter_mut().for_each(|value| *value = Value::Text("zebra".to_owned())),
        }
        self.change(Action::BadInput { table: name.clone() }, |db| {
            db.table(&name)?.insert(&row)?;
            Ok(Done::Changed { row_id: None, commit: None })
        });
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

    /// Takes a snapshot, reads one, or lets one go.
    fn use_snapshot(&mut self, state: &State) {
        let Some(Begun { db, .. }) = self.world.begin(None, None) else { return };
        let draw = self.generator.below(10);
        if self.snapshots.is_empty() || (draw < 3 && self.snapshots.len() < SNAPSHOTS_MAX) {
            match db.snapshot() {
                Ok(snapshot) => {
                    self.world.note(|| format!("snapshot at {}", snapshot.commit()));
                    self.snapshots.push(snapshot);
                }
                Err(e) => self.read_failed(&e),
            }
            return;
        }
        let chosen = self.generator.index(self.snapshots.len());
        if draw > 7 {
            let snapshot = self.snapshots.remove(chosen);
            self.world.note(|| format!("drop the snapshot at {}", snapshot.commit()));
            return;
        }
        let Some((name, _)) = self.pick_table(state) else { return };
        let Some(snapshot) = self.snapshots.get(chosen) else { return };
        let at = snapshot.commit();
        let read = || -> esker::Result<_> {
            let table = snapshot.table(&name)?;
            Ok((table.rows()?, table.count()?))
        };
        match read() {
            Ok((rows, count)) => {
                self.world.note(|| format!("read {name} at {at}"));
                self.world.saw(at, &name, Saw::Rows(rows));
                self.world.saw(at, &name, Saw::Count(count));
            }
            Err(e) => self.read_failed(&e),
        }
        self.get_at(&name, chosen);
    }

    /// Looks one row up as of a snapshot.
    fn get_at(&mut self, name: &str, chosen: usize) {
        let Some(snapshot) = self.snapshots.get(chosen) else { return };
        let state = Arc::clone(self.world.lock().history.at(snapshot.commit()));
        let Some(table) = state.table(name) else { return };
        let (ident, key) = self.pick_row(table);
        let Some(snapshot) = self.snapshots.get(chosen) else { return };
        if key == [Value::Uint(u64::MAX >> 1)] {
            return;
        }
        match snapshot.table(name).and_then(|table| table.get(&key)) {
            Ok(row) => {
                let row = row.map(esker::Row::into_values);
                self.world.saw(snapshot.commit(), name, Saw::Row(ident, row));
            }
            Err(e) => self.read_failed(&e),
        }
    }

    fn read_failed(&self, error: &esker::Error) {
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

    fn continue_load(&mut self, state: &State) {
        let begin =
            self.loads.is_empty() || (self.loads.len() < 2 && self.generator.chance(200_000));
        if begin {
            return self.begin_load(state);
        }
        let chosen = self.generator.index(self.loads.len());
        let loading = self.loads.remove(chosen);
        match self.generator.below(10) {
            0 => {
                self.world.note(|| format!("drop the load into {}", loading.table));
                self.drop_load(loading);
            }
            6.. if !loading.rows.is_empty() => self.finish(loading),
            _ => self.push(loading),
        }
    }

    fn begin_load(&mut self, state: &State) {
        let Some((table, kind)) = self.pick_table(state) else { return };
        let Some(Begun { db, from, .. }) = self.world.begin(None, None) else { return };
        let Some(incarnation) = state.table(&table).map(|t| t.incarnation) else { return };
        match db.table(&table).and_then(|table| table.load()) {
            Ok(load) => {
                self.loads_begun += 1;
                let id = self.number << 32 | self.loads_begun;
                let holding = Holding { table: table.clone(), ..Holding::default() };
                self.world.lock().loads.insert(id, holding);
                self.world.note(|| format!("begin a load into {table}"));
                let (rows, had_rival) = (Vec::new(), false);
                self.push(Loading { id, load, table, kind, incarnation, rows, from, had_rival });
            }
            Err(e) => self.read_failed(&e),
        }
    }

    fn rows_to_push(&mut self, loading: &Loading) -> Vec<NewRow> {
        let count = 1 + self.generator.below(14);
        let state = self.world.state();
        let table = state.table(&loading.table);
        let mut fresh: Vec<NewRow> = Vec::new();
        for _ in 0..count {
            let row = self.new_row(loading.kind, KEYS * 2);
            let twice = loading.rows.iter().chain(&fresh).any(|r| r.ident == row.ident);
            let taken = table.is_some_and(|table| table.rows.contains_key(&row.ident));
            if !(twice || taken) || self.generator.chance(15_000) {
                fresh.push(row);
            }
        }
        fresh
    }

    fn push(&mut self, mut loading: Loading) {
        let fresh = self.rows_to_push(&loading);
        if fresh.is_empty() {
            return self.loads.push(loading);
        }
        loading.rows.extend(fresh.iter().cloned());
        self.meet_rivals(&mut loading);
        self.hold(&loading, 0);
        let mut result = push_rows(&mut loading, &fresh, self.generator.chance(500_000));
        let wait = self.generator.chance(500_000);
        if wait && result.is_ok() {
            result = loading.load.wait();
        }
        self.world.note(|| format!("push {} rows: {result:?}", fresh.len()));
        match result {
            Ok(()) => {
                if wait {
                    let indexed = loading.rows.len() / self.segment_rows * self.segment_rows;
                    self.hold(&loading, indexed);
                }
                self.loads.push(loading);
            }
            Err(e) => {
                let rows = loading.rows.clone();
                let action = Action::Insert { table: loading.table.clone(), rows };
                let begun = self.begin_for(&action, &loading);
                let incarnation = loading.incarnation;
                self.drop_load(loading);
                if let Some(begun) = begun {
                    self.world.end(&begun, action, Err(e), Some(incarnation));
                }
            }
        }
    }

    /// Two loads into one table may refuse each other.
    fn meet_rivals(&mut self, loading: &mut Loading) {
        for other in self.loads.iter_mut().filter(|other| other.table == loading.table) {
            other.had_rival = true;
            loading.had_rival = true;
        }
    }

    /// Begins an operation whose answer may rest on all that happened since the load began.
    fn begin_for(&self, action: &Action, loading: &Loading) -> Option<Begun> {
        let mut begun = self.world.begin(Some(action), Some(loading.id))?;
        begun.from = loading.from;
        begun.held = if loading.had_rival { Held::Perhaps } else { Held::No };
        Some(begun)
    }

    /// Notes which keys a load holds: the first `indexed` surely, the others perhaps.
    fn hold(&self, loading: &Loading, indexed: usize) {
        if loading.kind == TableKind::Generated {
            return;
        }
        let mut inner = self.world.lock();
        let Some(holding) = inner.loads.get_mut(&loading.id) else { return };
        let indexed = if holding.dropped { 0 } else { indexed };
        let (held, rest) = loading.rows.split_at(indexed.min(loading.rows.len()));
        holding.surely.extend(held.iter().map(|row| row.ident));
        holding.perhaps.extend(rest.iter().map(|row| row.ident));
    }

    fn finish(&mut self, mut loading: Loading) {
        self.meet_rivals(&mut loading);
        let rows = loading.rows.clone();
        let action = Action::Insert { table: loading.table.clone(), rows };
        let Some(mut begun) = self.begin_for(&action, &loading) else { return };
        // A small load is an ordinary commit: it gets the number after the newest.
        let newest = begun.db.info().published_commit;
        let Loading { id, load, incarnation, .. } = loading;
        if let Some(holding) = self.world.lock().loads.get_mut(&id) {
            let surely = std::mem::take(&mut holding.surely);
            holding.perhaps.extend(surely);
        }
        let result = load.finish().map(|report| {
            let commit = if report.commit > 0 { report.commit } else { newest + 1 };
            Done::Changed { row_id: None, commit: Some(commit) }
        });
        self.world.lock().loads.remove(&id);
        if matches!(&result, Err(e) if e.kind() == ErrorKind::OutcomeUnknown) {
            begun.from = newest;
        }
        self.world.end(&begun, action, result, Some(incarnation));
    }

    fn drop_load(&mut self, loading: Loading) {
        let Loading { id, load, .. } = loading;
        drop(load);
        self.world.lock().loads.remove(&id);
    }
}

fn changed(changed: bool) -> Done {
    if changed { Done::Changed { row_id: None, commit: None } } else { Done::Unchanged }
}

fn put(table: &Table, rows: &[Vec<Value>], way: Way, upsert: bool) -> esker::Result<Done> {
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

fn push_rows(loading: &mut Loading, rows: &[NewRow], by_batch: bool) -> esker::Result<()> {
    if !by_batch {
        return rows.iter().try_for_each(|row| loading.load.push_row(&row.values));
    }
    let schema = loading.kind.schema()?;
    let mut batch = Batch::empty(&schema);
    for row in rows {
        batch.push_row(&schema, &row.values)?;
    }
    loading.load.push(batch)
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
