//! Readers and writers of all kinds beside merges that go on all the time: whoever began before
//! finds every row where it went, and nothing is left of where rows were.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use esker::{
    DataType, Database, ErrorKind, NewIndex, Options, Query, Schema, SnapshotTable, Transaction,
    Value,
};
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::Generator;

use crate::fixture::Directory;

const KEYS: u64 = 240;
/// Whose keys are those of a number, by its remainder: one thread changes them.
const PARTS: u64 = 6;

/// Numbers by key.
type Rows = BTreeMap<u64, u64>;

fn row(id: u64, n: u64) -> Vec<Value> {
    vec![id.into(), n.into(), format!("m{id}").into(), (n % 10).into()]
}

fn n_of(values: &[Value]) -> u64 {
    let Value::Uint(n) = values[1] else { unreachable!("{values:?}") };
    n
}

fn create(db: &Database, is_ordered: bool) {
    let fields = Schema::builder().field("id", DataType::U64).field("n", DataType::U64);
    let fields = fields.field("mail", DataType::Text).field("digit", DataType::U64);
    let fields = fields.primary_key(["id"]).add_index(NewIndex::new("by_digit", ["digit"]));
    let fields = fields.add_index(NewIndex::new("by_mail", ["mail"]).unique());
    let fields = if is_ordered { fields.ordered_by_key() } else { fields };
    let table = db.create_table("t", fields.build().unwrap()).unwrap();
    table.insert_many(&(0..KEYS).map(|id| row(id, 1)).collect::<Vec<_>>()).unwrap();
}

fn scan(table: &SnapshotTable) -> Rows {
    let rows = table.rows().unwrap();
    let count = rows.len();
    let found: Rows = rows
        .iter()
        .map(|(_, row)| {
            let Value::Uint(id) = row[0] else { unreachable!("{row:?}") };
            assert_eq!(*row, self::row(id, n_of(row)));
            (id, n_of(row))
        })
        .collect();
    assert_eq!(found.len(), count, "a key comes twice");
    found
}

fn by_digit(digit: u64) -> Query {
    let mut query = Query::table("t");
    query.select(Expr::count());
    let is = Expr::field("digit").binary(Operator::Eq, Expr::literal(Value::Uint(digit)));
    query.filter = Some(is);
    query
}

/// Holds snapshots, and reads them again and again in all ways.
fn read(db: &Database, mut random: Generator, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let snapshot = db.snapshot().unwrap();
        let early = snapshot.table("t").unwrap();
        let rows = scan(&early);
        let mut range = snapshot.table("t").unwrap().range(..).unwrap();
        let mut walked = Rows::new();
        for _ in 0..random.below(12) {
            thread::sleep(Duration::from_micros(random.below(8_000)));
            let late = snapshot.table("t").unwrap();
            let table = if random.below(2) == 0 { &early } else { &late };
            for _ in 0..20 {
                let id = random.below(KEYS + 20);
                let found = table.get(&[id.into()]).unwrap().map(|row| n_of(row.values()));
                assert_eq!(found, rows.get(&id).copied(), "key {id} at {}", snapshot.commit());
            }
            for row in range.by_ref().take(20) {
                let row = row.unwrap();
                let Value::Uint(id) = row.values()[0] else { unreachable!() };
                walked.insert(id, n_of(row.values()));
            }
            let digit = random.below(10);
            let count = rows.values().filter(|n| **n % 10 == digit).count() as u64;
            let found = snapshot.query(&by_digit(digit)).unwrap().to_rows();
            assert_eq!(found, [[Value::Uint(count)]]);
        }
        for row in range {
            let row = row.unwrap();
            let Value::Uint(id) = row.values()[0] else { unreachable!() };
            walked.insert(id, n_of(row.values()));
        }
        assert_eq!(walked, rows);
        assert_eq!(scan(&snapshot.table("t").unwrap()), rows);
    }
}

/// Looks keys up that are never gone and whose numbers rise.
fn look_up(db: &Database, mut random: Generator, stop: &AtomicBool) {
    let (table, mut least) = (db.table("t").unwrap(), BTreeMap::new());
    while !stop.load(Ordering::Relaxed) {
        let id = random.below(KEYS / PARTS) * PARTS;
        let found = table.get(&[id.into()]).unwrap().map(|row| n_of(row.values()));
        let n = found.unwrap();
        let before = least.insert(id, n).unwrap_or_default();
        assert!(n >= before, "key {id} was {before}, is {n}");
    }
}

fn own(random: &mut Generator, part: u64) -> u64 {
    random.below(KEYS / PARTS) * PARTS + part
}

/// Commits that need no transaction: single rows, and many.
fn write(db: &Database, part: u64, mut random: Generator, stop: &AtomicBool) -> Rows {
    let table = db.table("t").unwrap();
    let mut rows: Rows = (0..KEYS).filter(|id| id % PARTS == part).map(|id| (id, 1)).collect();
    let mut n = 1;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let id = own(&mut random, part);
        match random.below(if part == 0 { 3 } else { 5 }) {
            0 => {
                table.upsert(&row(id, n)).unwrap();
                rows.insert(id, n);
            }
            1 => {
                let ids: Vec<u64> = (0..random.below(60)).map(|_| own(&mut random, part)).collect();
                let many: Vec<_> = ids.iter().map(|id| row(*id, n)).collect();
                table.upsert_many(&many).unwrap();
                rows.extend(ids.iter().map(|id| (*id, n)));
            }
            2 => {
                let digit = (n % 10).into();
                let changes = vec![("n", n.into()), ("digit", digit)];
                let updates = vec![(vec![id.into()], changes)];
                let there = table.update_many(&updates).unwrap() == 1;
                assert_eq!(there, rows.contains_key(&id));
                rows.entry(id).and_modify(|old| *old = n);
            }
            3 => {
                let there = table.delete(&[id.into()]).unwrap();
                assert_eq!(there, rows.remove(&id).is_some(), "key {id}");
            }
            _ => {
                let ids: Vec<u64> = (0..random.below(40)).map(|_| own(&mut random, part)).collect();
                let keys: Vec<_> = ids.iter().map(|id| vec![Value::Uint(*id)]).collect();
                let count = table.delete_many(&keys).unwrap();
                let gone = ids.iter().filter(|id| rows.remove(id).is_some()).count();
                assert_eq!(count, gone as u64);
            }
        }
    }
    rows
}

fn expect(transaction: &Transaction, rows: &Rows, random: &mut Generator) {
    let table = transaction.table("t").unwrap();
    for _ in 0..10 {
        let id = random.below(KEYS + 20);
        let found = table.get(&[id.into()]).unwrap().map(|row| n_of(row.values()));
        assert_eq!(found, rows.get(&id).copied(), "key {id} at {}", transaction.read_at());
    }
    if random.below(2) == 0 {
        assert_eq!(table.count().unwrap(), rows.len() as u64);
        let digit = random.below(10);
        let count = rows.values().filter(|n| **n % 10 == digit).count() as u64;
        let found = transaction.query(&by_digit(digit)).unwrap().to_rows();
        assert_eq!(found, [[Value::Uint(count)]]);
    }
    if random.below(4) == 0 {
        let found = table.range(..).unwrap().map(|row| {
            let row = row.unwrap();
            let Value::Uint(id) = row.values()[0] else { unreachable!() };
            (id, n_of(row.values()))
        });
        let (found, wanted): (Vec<_>, Vec<_>) =
            (found.collect(), rows.clone().into_iter().collect());
        assert_eq!(found, wanted);
    }
}

/// Transactions that are held for some time; nobody else changes their keys.
fn transact(db: &Database, part: u64, mut random: Generator, stop: &AtomicBool) -> Rows {
    let mut rows: Rows = (0..KEYS).filter(|id| id % PARTS == part).map(|id| (id, 1)).collect();
    let mut n = 1;
    while !stop.load(Ordering::Relaxed) {
        let transaction = db.begin().unwrap();
        let mut seen: Rows = {
            let table = transaction.table("t").unwrap();
            let all = table.range(..).unwrap().map(|row| {
                let row = row.unwrap();
                let Value::Uint(id) = row.values()[0] else { unreachable!() };
                (id, n_of(row.values()))
            });
            all.collect()
        };
        let own_rows = |seen: &Rows| -> Rows {
            seen.iter().filter(|(id, _)| *id % PARTS == part).map(|(id, n)| (*id, *n)).collect()
        };
        assert_eq!(own_rows(&seen), rows);
        let mut savepoint = None;
        for _ in 0..random.below(14) {
            n += 1;
            thread::sleep(Duration::from_micros(random.below(6_000)));
            let table = transaction.table("t").unwrap();
            for _ in 0..random.below(8) {
                let id = own(&mut random, part);
                if random.below(3) == 0 {
                    let there = table.delete(&[id.into()]).unwrap();
                    assert_eq!(there, seen.remove(&id).is_some());
                } else {
                    table.upsert(&row(id, n)).unwrap();
                    seen.insert(id, n);
                }
            }
            match random.below(5) {
                0 => savepoint = Some((transaction.savepoint(), seen.clone())),
                1 => {
                    if let Some((savepoint, then)) = savepoint.take() {
                        transaction.rollback_to(savepoint).unwrap();
                        seen = then;
                    }
                }
                _ => {}
            }
            expect(&transaction, &seen, &mut random);
        }
        if random.below(5) > 0 {
            transaction.commit().unwrap();
            rows = own_rows(&seen);
        }
    }
    rows
}

/// Loads that replace rows; nobody else changes their keys.
fn load(db: &Database, part: u64, mut random: Generator, stop: &AtomicBool) -> Rows {
    let table = db.table("t").unwrap();
    let mut rows: Rows = (0..KEYS).filter(|id| id % PARTS == part).map(|id| (id, 1)).collect();
    let mut n = 1;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let mut load = table.load().unwrap();
        load.replace_existing().unwrap();
        let mut loaded = rows.clone();
        let count = 20 + random.below(120);
        for at in 0..count {
            let id = own(&mut random, part);
            load.push_row(&row(id, n)).unwrap();
            loaded.insert(id, n);
            if at % 32 == 31 {
                thread::sleep(Duration::from_micros(random.below(4_000)));
            }
        }
        match random.below(4) {
            0 => drop(load),
            _ => match load.finish() {
                Ok(_) => rows = loaded,
                Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
            },
        }
    }
    rows
}

fn merge(db: &Database, mut random: Generator, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match random.below(8) {
            0 => drop(db.compact(false, &mut |_, _| {}).unwrap()),
            1 => db.checkpoint().unwrap(),
            2 => thread::sleep(Duration::from_millis(random.below(10))),
            _ => db.wait_idle().unwrap(),
        }
    }
}

fn run(db: &Database, seed: u64, time: Duration) -> Rows {
    let stop = AtomicBool::new(false);
    let generator = |stream| Generator::new(seed, stream);
    let stop = &stop;
    thread::scope(|scope| {
        struct Stop<'s>(&'s AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let writers = [0, 1].map(|part| {
            scope.spawn(move || {
                let _stop = Stop(stop);
                write(db, part, generator(part), stop)
            })
        });
        let held = [2, 3].map(|part| {
            scope.spawn(move || {
                let _stop = Stop(stop);
                transact(db, part, generator(part), stop)
            })
        });
        let loads = [4].map(|part| {
            scope.spawn(move || {
                let _stop = Stop(stop);
                load(db, part, generator(part), stop)
            })
        });
        for stream in [10, 11] {
            scope.spawn(move || {
                let _stop = Stop(stop);
                read(db, generator(stream), stop);
            });
        }
        scope.spawn(move || {
            let _stop = Stop(stop);
            look_up(db, generator(12), stop);
        });
        scope.spawn(move || {
            let _stop = Stop(stop);
            merge(db, generator(13), stop);
        });
        let end = Instant::now() + time;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        let all = writers.into_iter().chain(held).chain(loads);
        let mut rows: Rows = all.flat_map(|thread| thread.join().unwrap()).collect();
        rows.extend((0..KEYS).filter(|id| id % PARTS == 5).map(|id| (id, 1)));
        rows
    })
}

#[test]
fn all_find_their_rows_while_merges_go_on() {
    let time = Duration::from_millis(700);
    for (case, (is_ordered, in_memory, spills)) in (1..).zip([
        (false, false, false),
        (true, false, true),
        (false, true, false),
        (true, true, false),
        (false, false, true),
        (true, false, false),
    ]) {
        eprintln!("ordered: {is_ordered}, in memory: {in_memory}, spills: {spills}");
        let dir = Directory::new("threads");
        let options = || {
            let options = Options::new().group_limit(32, 1 << 30).small_group_limit(1);
            let options = options.segment_limit(60).merge_limit(400, 100).commit_limit(1_500);
            let options = options
                .index_file_limit(10)
                .durability(esker::Durability::Async { at_most: Duration::from_millis(5) });
            if spills { options.transaction_limit(600) } else { options }
        };
        let db = if in_memory { options().memory() } else { options().open(&dir.0) }.unwrap();
        create(&db, is_ordered);
        let rows = run(&db, case, time);
        db.wait_idle().unwrap();
        let sound = |db: &Database| {
            assert_eq!(scan(&db.snapshot().unwrap().table("t").unwrap()), rows);
            let table = db.table("t").unwrap();
            for id in 0..KEYS {
                let found = table.get(&[id.into()]).unwrap().map(|row| n_of(row.values()));
                assert_eq!(found, rows.get(&id).copied(), "key {id}");
            }
            assert_eq!(db.check().unwrap().problems, []);
            assert_eq!(db.recount(true).unwrap(), []);
            assert_eq!(db.info().memory.forwarding, 0);
        };
        sound(&db);
        if !in_memory {
            drop(db);
            sound(&options().open(&dir.0).unwrap());
        }
    }
}
