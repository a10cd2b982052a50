//! Transactions under the scheduler: two that change one key, changes of two tables beside seals,
//! merges and readers, and two that each change what the other has read.

use std::sync::{Arc, Mutex};

use esker::{
    DataType, Database, ErrorKind, Isolation, Result, Schema, Table, Transaction,
    TransactionOptions, Value,
};
use shuttle::thread;

use super::world;

/// Keys of each table.
const KEYS: i64 = 4;
/// What both rows of a key have together.
const SUM: i64 = 20;

/// Two tables whose rows of one key belong together.
struct Pair {
    db: Database,
    left: Table,
    right: Table,
    /// What committed transactions read at, and their commits.
    committed: Mutex<Vec<(u64, u64)>>,
}

fn value(row: Option<esker::Row>) -> i64 {
    match row.as_ref().and_then(|row| row.get("value")) {
        Some(Value::Int(value)) => *value,
        other => panic!("{other:?}"),
    }
}

fn read(transaction: &Transaction, table: &str, key: i64) -> Result<i64> {
    transaction.table(table)?.get(&[key.into()]).map(value)
}

fn write(transaction: &Transaction, table: &str, key: i64, value: i64) -> Result<()> {
    transaction.table(table)?.upsert(&[key.into(), value.into()]).map(drop)
}

impl Pair {
    fn new(memory: bool) -> Self {
        let db = world::open(memory);
        let table = |name: &str| {
            let schema = Schema::builder().field("id", DataType::I64).field("value", DataType::I64);
            let schema = schema.primary_key(["id"]).build().unwrap();
            let table = db.create_table(name, schema).unwrap();
            for key in 0..KEYS {
                table.insert(&[key.into(), (SUM / 2).into()]).unwrap();
            }
            table
        };
        let (left, right) = (table("left"), table("right"));
        db.wait_idle().unwrap();
        Self { db, left, right, committed: Mutex::default() }
    }

    /// A transaction that may be refused, for a conflict alone.
    fn attempt(
        &self,
        isolation: Isolation,
        run: impl FnOnce(&Transaction) -> Result<()>,
    ) -> Option<u64> {
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = self.db.begin_with(options).unwrap();
        let read_at = transaction.read_at();
        run(&transaction).unwrap();
        match transaction.commit() {
            Ok(commit) => {
                self.committed.lock().unwrap().push((read_at, commit));
                Some(commit)
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                None
            }
        }
    }

    /// Of two that were under way at the same time one alone has committed.
    fn expect_in_turn(&self) {
        let committed = self.committed.lock().unwrap();
        for (i, (read, commit)) in committed.iter().enumerate() {
            for (other_read, other) in committed.iter().skip(i + 1) {
                let overlap = read < other && other_read < commit;
                assert!(!overlap, "two committed that changed one key: {committed:?}");
            }
        }
        assert!(!committed.is_empty(), "nobody has won");
    }

    /// Moves some of a key from one table to the other, and changes nothing else.
    fn transfer(&self, key: i64) {
        let moved = self.attempt(Isolation::Snapshot, |transaction| {
            let left = read(transaction, "left", key)?;
            let right = read(transaction, "right", key)?;
            assert_eq!(left + right, SUM, "key {key} within a transaction");
            write(transaction, "left", key, left - 1)?;
            let savepoint = transaction.savepoint();
            write(transaction, "right", key, 1_000)?;
            transaction.table("left")?.delete(&[((key + 1) % KEYS).into()])?;
            transaction.rollback_to(savepoint)?;
            write(transaction, "right", key, right + 1)
        });
        assert!(moved.is_some(), "a conflict where nobody else changes key {key}");
    }

    /// Every key has its sum, however it is read.
    fn look(&self) {
        let snapshot = self.db.snapshot().unwrap();
        let (left, right) = (snapshot.table("left").unwrap(), snapshot.table("right").unwrap());
        let scanned = |table: &esker::SnapshotTable| {
            let rows = table.rows().unwrap();
            assert_eq!(rows.len() as u64, table.count().unwrap(), "counted and scanned");
            let value = |row: &Vec<Value>| match row[..] {
                [_, Value::Int(value)] => value,
                _ => panic!("{row:?}"),
            };
            rows.iter().map(|(_, row)| value(row)).sum::<i64>()
        };
        assert_eq!(scanned(&left) + scanned(&right), SUM * KEYS, "half of a transaction");
        for key in 0..KEYS {
            let by_key = |table: &esker::SnapshotTable| value(table.get(&[key.into()]).unwrap());
            assert_eq!(by_key(&left) + by_key(&right), SUM, "half of a transaction, key {key}");
        }
    }
}

fn together(pair: &Arc<Pair>, jobs: Vec<Box<dyn FnOnce(&Pair) + Send>>) {
    let start = |job: Box<dyn FnOnce(&Pair) + Send>| {
        let pair = Arc::clone(pair);
        thread::spawn(move || job(&pair))
    };
    let threads: Vec<_> = jobs.into_iter().map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let check = pair.db.check().unwrap();
    assert!(check.is_sound(), "{check:?}");
}

/// Two threads count with one row; a merge may come between.
fn count() {
    let pair = Arc::new(Pair::new(false));
    let counts = |pair: &Pair| {
        for _ in 0..2 {
            pair.attempt(Isolation::Snapshot, |transaction| {
                let counted = read(transaction, "left", 0)?;
                write(transaction, "left", 0, counted + 1)
            });
        }
    };
    let idles = |pair: &Pair| pair.db.wait_idle().unwrap();
    together(&pair, vec![Box::new(counts), Box::new(counts), Box::new(idles)]);
    let counted = value(pair.left.get(&[0i64.into()]).unwrap());
    let committed = pair.committed.lock().unwrap().len();
    assert_eq!(counted, SUM / 2 + i64::try_from(committed).unwrap(), "an update is lost");
    pair.expect_in_turn();
}

/// Two threads change both tables, while all is sealed and merged, and somebody looks.
fn transfer(memory: bool) {
    let pair = Arc::new(Pair::new(memory));
    let transfers = |key: i64| move |pair: &Pair| (0..2).for_each(|_| pair.transfer(key));
    let idles = |pair: &Pair| (0..2).for_each(|_| pair.db.wait_idle().unwrap());
    let looks = |pair: &Pair| (0..3).for_each(|_| pair.look());
    together(
        &pair,
        vec![Box::new(transfers(0)), Box::new(transfers(2)), Box::new(idles), Box::new(looks)],
    );
    pair.look();
    assert_eq!(value(pair.right.get(&[2i64.into()]).unwrap()), SUM / 2 + 2);
}

/// Each of two takes its own row away, unless the other one is gone: one must be left.
fn skew() {
    let pair = Arc::new(Pair::new(true));
    let takes = |own: &'static str, other: &'static str| {
        move |pair: &Pair| {
            pair.attempt(Isolation::Serializable, |transaction| {
                if read(transaction, other, 0)? > 0 {
                    write(transaction, own, 0, 0)?;
                }
                Ok(())
            });
        }
    };
    together(&pair, vec![Box::new(takes("left", "right")), Box::new(takes("right", "left"))]);
    let left = [&pair.left, &pair.right].map(|table| value(table.get(&[0i64.into()]).unwrap()));
    assert!(left.iter().sum::<i64>() > 0, "both have gone: write skew");
    assert!(!pair.committed.lock().unwrap().is_empty(), "nobody has won");
}

#[test]
fn transactions_that_count_with_one_row() {
    super::explore(count);
}

#[test]
fn transactions_of_two_tables_beside_merges_and_snapshots() {
    super::explore(|| transfer(false));
}

#[test]
fn transactions_of_two_tables_in_memory() {
    super::explore(|| transfer(true));
}

#[test]
fn serializable_transactions_that_change_what_the_other_has_read() {
    super::explore(skew);
}
