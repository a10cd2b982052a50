//! A program of operations on a table whose rows expire: transactions with savepoints, beside a
//! plain map, while others commit, rows are sealed and merged, and time passes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use esker::{
    DataType, Database, ErrorKind, Modified, NewIndex, Options, Query, Savepoint, Schema, Table,
    Transaction, Update, Value,
};
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::Simulation;

/// Operations of a program, three bytes each.
const OPERATIONS_MAX: usize = 300;
/// Keys and values are few, so that they meet.
const KEYS: u8 = 8;
const VALUES: u8 = 4;
const SECOND_US: i64 = 1_000_000;

/// A value, and the second in which it ends.
type Row = (i64, Option<i64>);
type Rows = BTreeMap<i64, Row>;

/// Any program is answered as the map answers it.
pub fn run(data: &[u8]) {
    let mut world = World::new();
    let mut operations = data.as_chunks::<3>().0.iter().take(OPERATIONS_MAX).peekable();
    while operations.peek().is_some() {
        let transaction = world.db.begin().expect("a transaction");
        let mut running = Running::new(&mut world, &transaction);
        let end = operations.by_ref().find_map(|operation| running.step(*operation));
        let Running { staged, changed, .. } = running;
        match end {
            Some(End::RollBack) => transaction.rollback(),
            Some(End::Commit) | None => world.commit(transaction, staged, &changed),
        }
        world.compare();
    }
}

/// The database, and what it must hold.
struct World {
    machine: Simulation,
    db: Database,
    table: Table,
    /// Microseconds since 1970 when everything began.
    start_us: i64,
    /// Seconds since then.
    now: i64,
    /// Rows stay here after they have expired.
    committed: Rows,
}

/// What a transaction has made of the rows.
#[derive(Clone)]
struct Staged {
    rows: Rows,
    /// Keys that it has changed.
    touched: BTreeSet<i64>,
}

/// How a transaction ends.
enum End {
    Commit,
    RollBack,
}

/// A transaction under way.
struct Running<'a> {
    world: &'a mut World,
    transaction: &'a Transaction,
    /// The second that its snapshot is of.
    began: i64,
    staged: Staged,
    savepoints: Vec<(Savepoint, Staged)>,
    /// Savepoints that are no more.
    gone: Vec<Savepoint>,
    /// Keys that others have changed since it began.
    changed: BTreeSet<i64>,
}

fn is_there(row: &Row, now: i64) -> bool {
    row.1.is_none_or(|end| end > now)
}

impl World {
    fn new() -> Self {
        let machine = Simulation::new(1, esker_vfs::sim::Options::default());
        // Groups and segments of a few rows, so that much is sealed and merged.
        let options = Options::new()
            .environment(machine.environment())
            .background(false)
            .group_limit(3, 1 << 20)
            .small_group_limit(0)
            .segment_limit(4)
            .merge_share(100);
        let db = options.memory().expect("a database in memory");
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("n", DataType::I64)
            .nullable("until", DataType::Timestamp)
            .primary_key(["id"])
            .expires_by("until");
        let table = db.create_table("rows", schema.build().expect("a schema")).expect("a table");
        db.create_index("rows", NewIndex::new("by_n", ["n"])).expect("an index");
        let start_us = machine.environment().clock.wall_us();
        let mut world = Self { machine, db, table, start_us, now: 0, committed: Rows::new() };
        // From here on every snapshot has a time.
        let probe = (0, Some(1_000_000));
        world.table.upsert(&world.values(-1, probe)).expect("a row");
        world.committed.insert(-1, probe);
        world
    }

    /// A row as it is stored. Ends are half a second away from every whole one.
    fn values(&self, id: i64, (n, end): Row) -> Vec<Value> {
        let end = end.map(|end| self.start_us + end * SECOND_US - SECOND_US / 2);
        vec![id.into(), n.into(), end.map_or(Value::Null, Value::Timestamp)]
    }

    /// Key and value of a row, which has to end when it should.
    fn row_of(&self, values: &[Value], expected: &Rows) -> (i64, i64) {
        let [Value::Int(id), Value::Int(n), _] = values else { panic!("{values:?}") };
        let wanted = expected.get(id).map(|row| self.values(*id, *row));
        assert_eq!(wanted.as_deref(), Some(values));
        (*id, *n)
    }

    fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        self.machine.advance_clock(Duration::from_secs(seconds.unsigned_abs()));
    }

    /// A commit is refused when others have changed one of its keys, or a row that it replaces has
    /// expired since.
    fn commit(&mut self, transaction: Transaction, staged: Staged, changed: &BTreeSet<i64>) {
        let Staged { rows, touched } = staged;
        let read = transaction.read_at();
        let is_unchanged = transaction.is_unchanged();
        match transaction.commit() {
            Ok(at) => {
                assert_eq!(at == read, is_unchanged, "commit {at} of what was read at {read}");
                let is_lost = !is_unchanged && touched.iter().any(|id| changed.contains(id));
                assert!(!is_lost, "{touched:?} was changed by others, too: {changed:?}");
                for id in &touched {
                    // One that came and went leaves what others have made of the key.
                    match rows.get(id) {
                        Some(row) => drop(self.committed.insert(*id, *row)),
                        None if !is_unchanged => drop(self.committed.remove(id)),
                        None => {}
                    }
                }
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                let is_met = |id: &i64| {
                    let row = self.committed.get(id);
                    changed.contains(id) || row.is_some_and(|row| !is_there(row, self.now))
                };
                assert!(touched.iter().any(is_met), "nobody was there: {e}");
            }
        }
    }

    /// Everybody sees what was committed and has not expired.
    fn compare(&self) {
        let there = self.committed.iter().filter(|(_, row)| is_there(row, self.now));
        let expected: Vec<(i64, i64)> = there.map(|(id, (n, _))| (*id, *n)).collect();
        let rows = self.table.snapshot().and_then(|snapshot| snapshot.rows()).expect("a scan");
        let mut found: Vec<_> =
            rows.iter().map(|(_, row)| self.row_of(row, &self.committed)).collect();
        found.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(self.table.count().expect("a count"), expected.len() as u64);
    }
}

impl<'a> Running<'a> {
    fn new(world: &'a mut World, transaction: &'a Transaction) -> Self {
        let staged = Staged { rows: world.committed.clone(), touched: BTreeSet::new() };
        let (began, savepoints, gone) = (world.now, Vec::new(), Vec::new());
        Self { world, transaction, began, staged, savepoints, gone, changed: BTreeSet::new() }
    }

    fn get(&self, id: i64) -> Option<Row> {
        self.staged.rows.get(&id).copied().filter(|row| is_there(row, self.began))
    }

    fn set(&mut self, id: i64, row: Option<Row>) {
        self.staged.touched.insert(id);
        match row {
            Some(row) => drop(self.staged.rows.insert(id, row)),
            None => drop(self.staged.rows.remove(&id)),
        }
    }

    /// Does one operation; tells when the transaction ends.
    fn step(&mut self, [operation, a, b]: [u8; 3]) -> Option<End> {
        let id = i64::from(a % KEYS);
        let end = (b & 8 > 0).then(|| self.world.now - 2 + i64::from(b >> 4));
        let row = (i64::from(b % VALUES), end);
        let table = self.transaction.table("rows").expect("the table");
        let values = self.world.values(id, row);
        let key = [Value::Int(id)];
        match operation % 16 {
            0 | 1 => {
                table.upsert(&values).expect("a row that fits");
                self.set(id, Some(row));
            }
            2 => match (table.insert(&values), self.get(id)) {
                (Ok(_), None) => self.set(id, Some(row)),
                (Err(e), Some(_)) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}"),
                (answer, there) => panic!("{answer:?}, where there is {there:?}"),
            },
            3 => {
                let deleted = table.delete(&key).expect("a delete");
                assert_eq!(deleted, self.get(id).is_some());
                if deleted {
                    self.set(id, None);
                }
            }
            4 => self.increment(id),
            5 => self.delete_range(id, i64::from(b % KEYS)),
            6 => {
                let savepoint = self.transaction.savepoint();
                self.savepoints.push((savepoint, self.staged.clone()));
            }
            7 => self.go_back(a),
            8 => self.release(a),
            9 => self.read(id),
            10 => self.query(row.0),
            11 => self.world.db.wait_idle().expect("seals and merges"),
            12 => self.world.pass(i64::from(a % 4)),
            13 => self.overtake(id, row, b),
            14 => return Some(End::RollBack),
            _ => return Some(End::Commit),
        }
        None
    }

    fn increment(&mut self, id: i64) {
        let table = self.transaction.table("rows").expect("the table");
        let update = Update::new().increment("n", 1i64);
        let modified = table.apply(&[id.into()], &update).expect("an update");
        assert_eq!(modified != Modified::Absent, self.get(id).is_some());
        if let Some((n, end)) = self.get(id) {
            self.set(id, Some((n + 1, end)));
        }
    }

    fn delete_range(&mut self, from: i64, until: i64) {
        let table = self.transaction.table("rows").expect("the table");
        let (from, until) = (from.min(until), from.max(until));
        let bounds = vec![Value::Int(from)]..vec![Value::Int(until)];
        let removed = table.delete_range(bounds).expect("a range");
        let gone: Vec<i64> = (from..until).filter(|id| self.get(*id).is_some()).collect();
        assert_eq!(removed, gone.len() as u64);
        gone.into_iter().for_each(|id| self.set(id, None));
    }

    fn go_back(&mut self, which: u8) {
        let at = usize::from(which) % self.savepoints.len().max(1);
        if let Some((savepoint, staged)) = self.savepoints.get(at).cloned() {
            self.transaction.rollback_to(savepoint).expect("a savepoint");
            self.staged = staged;
            self.gone.extend(self.savepoints.drain(at + 1..).map(|(savepoint, _)| savepoint));
        }
        self.expect_gone();
    }

    fn release(&mut self, which: u8) {
        let at = usize::from(which) % self.savepoints.len().max(1);
        if let Some((savepoint, _)) = self.savepoints.get(at) {
            self.transaction.release(*savepoint).expect("a savepoint");
            self.gone.extend(self.savepoints.drain(at..).map(|(savepoint, _)| savepoint));
        }
        self.expect_gone();
    }

    /// Nobody goes back to what was released.
    fn expect_gone(&self) {
        if let Some(savepoint) = self.gone.last() {
            let e = self.transaction.rollback_to(*savepoint).expect_err("it is gone");
            assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
        }
    }

    fn read(&self, id: i64) {
        let table = self.transaction.table("rows").expect("the table");
        let found = table.get(&[id.into()]).expect("a look-up");
        let found = found.map(|row| self.world.row_of(row.values(), &self.staged.rows));
        assert_eq!(found, self.get(id).map(|(n, _)| (id, n)));
    }

    /// The rows with a value, by the index or without it, and how many rows there are.
    fn query(&self, n: i64) {
        let mut query = Query::table("rows");
        query.filter = Some(Expr::field("n").binary(Operator::Eq, Expr::literal(n)));
        let rows = self.transaction.query(&query).expect("an answer").to_rows();
        let row_of = |row: &Vec<Value>| self.world.row_of(row, &self.staged.rows);
        let mut found: Vec<_> = rows.iter().map(row_of).collect();
        found.sort_unstable();
        let there = self.staged.rows.iter().filter(|(_, row)| is_there(row, self.began));
        let expected: Vec<_> = there.clone().filter(|(_, row)| row.0 == n).collect();
        assert_eq!(found, expected.iter().map(|(id, row)| (**id, row.0)).collect::<Vec<_>>());
        let table = self.transaction.table("rows").expect("the table");
        assert_eq!(table.count().expect("a count"), there.count() as u64);
    }

    /// Somebody else changes a row.
    fn overtake(&mut self, id: i64, row: Row, choice: u8) {
        let World { table, committed, now, .. } = &mut *self.world;
        if choice & 4 == 0 {
            let deleted = table.delete(&[id.into()]).expect("a delete");
            let there = committed.get(&id).is_some_and(|row| is_there(row, *now));
            assert_eq!(deleted, there);
            if !deleted {
                return;
            }
            committed.remove(&id);
        } else {
            let values = self.world.values(id, row);
            self.world.table.upsert(&values).expect("a row that fits");
            self.world.committed.insert(id, row);
        }
        self.changed.insert(id);
    }
}
