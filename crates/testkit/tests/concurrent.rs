//! Real threads on one database: what each of them sees must be consistent all the time.

#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::type_complexity
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use esker::{DataType, Database, ErrorKind, Options, Schema, Value};
use esker_vfs::sim::Generator;

const ACCOUNTS: i64 = 40;
const TOTAL: i64 = ACCOUNTS * 1_000;

fn seconds() -> Duration {
    let asked = std::env::var("ESKER_CONCURRENT_SECONDS").ok().and_then(|n| n.parse().ok());
    Duration::from_secs(asked.unwrap_or(3))
}

/// A directory that is removed when the value is dropped.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("esker-concurrent-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options() -> Options {
    Options::new()
        .group_limit(64, 1 << 20)
        .small_group_limit(0)
        .segment_limit(32)
        .log_limit(60_000)
        .merge_share(100)
}

fn accounts(db: &Database) -> esker::Table {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("balance", DataType::I64)
        .nullable("note", DataType::Text)
        .primary_key(["id"]);
    let table = db.create_table("accounts", schema.build().unwrap()).unwrap();
    let row = |id| vec![Value::Int(id), Value::Int(TOTAL / ACCOUNTS), Value::Null];
    table.insert_many(&(0..ACCOUNTS).map(row).collect::<Vec<_>>()).unwrap();
    table
}

/// Moves money between two accounts that only this thread changes, in one commit.
fn transfer(db: &Database, generator: &mut Generator, own: std::ops::Range<i64>) {
    let table = db.table("accounts").unwrap();
    let span = u64::try_from(own.end - own.start).unwrap();
    let mut pick = || own.start + i64::try_from(generator.below(span)).unwrap();
    let (from, to) = (pick(), pick());
    if from == to {
        return;
    }
    let read = |id| match table.get(&[Value::Int(id)]).unwrap().unwrap().get("balance") {
        Some(Value::Int(balance)) => *balance,
        other => panic!("{other:?}"),
    };
    let amount = i64::try_from(generator.below(100)).unwrap();
    let note = Value::Text("x".repeat(generator.index(30)));
    let rows = vec![
        vec![Value::Int(from), Value::Int(read(from) - amount), note.clone()],
        vec![Value::Int(to), Value::Int(read(to) + amount), note],
    ];
    table.upsert_many(&rows).unwrap();
}

/// Every snapshot shows all the money, by scan, by key and again later.
fn audit(db: &Database, generator: &mut Generator) {
    let snapshot = db.snapshot().unwrap();
    for _ in 0..1 + generator.below(3) {
        let table = snapshot.table("accounts").unwrap();
        let rows = table.rows().unwrap();
        assert_eq!(rows.len(), usize::try_from(ACCOUNTS).unwrap());
        assert_eq!(table.count().unwrap(), rows.len() as u64);
        let mut sum = 0;
        for (_, values) in &rows {
            let [key, Value::Int(balance), _] = values.as_slice() else { panic!("{values:?}") };
            sum += balance;
            let found = table.get(std::slice::from_ref(key)).unwrap().unwrap();
            assert_eq!(found.values(), values, "by key and by scan");
        }
        assert_eq!(sum, TOTAL, "at commit {}", snapshot.commit());
    }
}

fn workers(
    db: &Database,
    stop: &AtomicBool,
    work: &(dyn Fn(&Database, &mut Generator) + Sync),
    seed: u64,
) {
    let mut generator = Generator::new(seed, 0);
    while !stop.load(Ordering::Relaxed) {
        work(db, &mut generator);
    }
}

/// Runs each job on a thread of its own for some seconds.
fn together(db: &Database, jobs: &[&(dyn Fn(&Database, &mut Generator) + Sync)]) {
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (seed, job) in jobs.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || workers(db, stop, *job, seed as u64));
        }
        while start.elapsed() < seconds() {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Transfers, audits, loads, seals, merges and checkpoints at once; then a crash-free reopening.
#[test]
fn money_is_neither_made_nor_lost() {
    let directory = Directory::new("money");
    let db = options().open(&directory.0).unwrap();
    accounts(&db);
    let next = AtomicU64::new(1_000);
    let load = |db: &Database, generator: &mut Generator| {
        let table = match db.table("loaded") {
            Ok(table) => table,
            Err(_) => {
                let schema = Schema::builder().field("id", DataType::U64).primary_key(["id"]);
                db.create_table("loaded", schema.build().unwrap()).unwrap()
            }
        };
        let count = 40 + generator.below(60);
        let first = next.fetch_add(count, Ordering::Relaxed);
        let mut load = table.load().unwrap();
        for id in first..first + count {
            load.push_row(&[Value::Uint(id)]).unwrap();
        }
        if generator.chance(200_000) {
            return;
        }
        let before = table.count().unwrap();
        assert_eq!(load.finish().unwrap().rows, count);
        assert!(table.count().unwrap() >= before + count);
        assert!(table.exists(&[Value::Uint(first)]).unwrap());
    };
    let half = ACCOUNTS / 2;
    together(
        &db,
        &[
            &|db, g| transfer(db, g, 0..half),
            &|db, g| transfer(db, g, half..ACCOUNTS),
            &audit,
            &audit,
            &load,
            &|db, g| if g.chance(20_000) { db.checkpoint().unwrap() } else { db.sync().unwrap() },
        ],
    );
    db.wait_idle().unwrap();
    assert!(db.check().unwrap().is_sound());
    let rows = db.table("accounts").unwrap().snapshot().unwrap().rows().unwrap();
    db.close().unwrap();
    let db = options().open(&directory.0).unwrap();
    assert_eq!(db.table("accounts").unwrap().snapshot().unwrap().rows().unwrap(), rows);
    assert!(db.check().unwrap().is_sound());
}

/// Threads insert, change and delete the same keys: every key has one fate at a time.
#[test]
fn one_key_has_one_owner() {
    let directory = Directory::new("owner");
    let db = options().open(&directory.0).unwrap();
    let schema = Schema::builder().field("id", DataType::U64).field("by", DataType::U64);
    let table = db.create_table("locks", schema.primary_key(["id"]).build().unwrap()).unwrap();
    let owners: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
    let tickets = AtomicU64::new(1);
    let compete = |_: &Database, generator: &mut Generator| {
        let id = generator.below(8);
        let me = tickets.fetch_add(1, Ordering::Relaxed);
        match table.insert(&[Value::Uint(id), Value::Uint(me)]) {
            Ok(_) => {
                let slot = &owners[usize::try_from(id).unwrap()];
                assert_eq!(slot.swap(me, Ordering::SeqCst), 0, "key {id} was inserted twice");
                let row = table.get(&[Value::Uint(id)]).unwrap().expect("read your writes");
                assert_eq!(row.get("by"), Some(&Value::Uint(me)));
                assert!(table.update(&[Value::Uint(id)], &[("by", Value::Uint(me))]).unwrap());
                assert_eq!(slot.swap(0, Ordering::SeqCst), me);
                assert!(table.delete(&[Value::Uint(id)]).unwrap(), "my own row");
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}"),
        }
    };
    together(&db, &[&compete, &compete, &compete, &compete]);
    assert_eq!(table.count().unwrap(), 0);
    assert!(db.check().unwrap().is_sound());
}

/// Closing while others work: they get errors, never a panic or a hang.
#[test]
fn closing_stops_everybody() {
    for round in 0..4 {
        let directory = Directory::new(&format!("close-{round}"));
        let db = options().open(&directory.0).unwrap();
        accounts(&db);
        std::thread::scope(|scope| {
            for seed in 0..3 {
                let db = db.clone();
                scope.spawn(move || {
                    let mut generator = Generator::new(seed, round);
                    let table = db.table("accounts").unwrap();
                    loop {
                        let id = i64::try_from(generator.below(100)).unwrap();
                        let row = [Value::Int(id), Value::Int(0), Value::Null];
                        if table.upsert(&row).is_err() {
                            break;
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(30));
            db.clone().close().unwrap();
        });
        drop(db);
        let db = options().open(&directory.0).unwrap();
        assert!(db.check().unwrap().is_sound());
    }
}
