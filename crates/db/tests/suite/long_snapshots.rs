//! Snapshots that are held for long beside many changes: each reads exactly what there was, and of
//! a row there are stored no more versions than snapshots see, and the newest.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::collections::BTreeMap;

use crate::fixture::hand_clock::HandClock;
use esker::{
    BucketOptions, DataType, Database, Durability, ErrorKind, Options, Query, Schema, Snapshot,
    Transaction, TransactionOptions, Value,
};
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};

/// What the rows lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Table,
    OrderedByKey,
    Generated,
    Bucket,
}

const KINDS: [Kind; 4] = [Kind::Table, Kind::OrderedByKey, Kind::Generated, Kind::Bucket];

/// Values by key.
type Rows = BTreeMap<u64, u64>;

fn bytes(key: u64) -> [u8; 8] {
    key.swap_bytes().to_le_bytes()
}

impl Kind {
    fn create(self, db: &Database) {
        let fields = Schema::builder().field("id", DataType::U64).field("v", DataType::U64);
        let fields = fields.field("note", DataType::Text).index("by_v", ["v"]);
        match self {
            Self::Table => drop(db.create_table("t", fields.primary_key(["id"]).build().unwrap())),
            Self::OrderedByKey => {
                let schema = fields.primary_key(["id"]).ordered_by_key().build().unwrap();
                drop(db.create_table("t", schema));
            }
            Self::Generated => drop(db.create_table("t", fields.build().unwrap())),
            Self::Bucket => drop(db.bucket("t")),
        }
    }

    /// The key that a row is looked up by. Where keys are generated, row ids begin with one.
    fn key(self, id: u64) -> Vec<Value> {
        vec![Value::Uint(if self == Self::Generated { id + 1 } else { id })]
    }

    fn row(id: u64, value: u64) -> Vec<Value> {
        vec![Value::Uint(id), Value::Uint(value), format!("{id} is {value}").into()]
    }

    /// Puts the values of some keys, all of them in one commit.
    fn put(self, db: &Database, rows: &[(u64, u64)]) {
        if self == Self::Bucket {
            let pairs = rows.iter().map(|(key, value)| (bytes(*key), bytes(*value)));
            db.bucket("t").unwrap().put_many(pairs).unwrap();
            return;
        }
        let table = db.table("t").unwrap();
        if self == Self::Generated {
            for (id, value) in rows {
                let row = Self::row(*id, *value);
                let changes = [("v", row[1].clone()), ("note", row[2].clone())];
                if !table.update(&self.key(*id), &changes).unwrap() {
                    assert_eq!(table.insert(&row).unwrap(), id + 1, "rows come in order");
                }
            }
            return;
        }
        let rows: Vec<_> = rows.iter().map(|(id, value)| Self::row(*id, *value)).collect();
        table.upsert_many(&rows).unwrap();
    }

    fn remove(self, db: &Database, key: u64) -> bool {
        match self {
            Self::Bucket => db.bucket("t").unwrap().remove(bytes(key)).unwrap(),
            _ => db.table("t").unwrap().delete(&self.key(key)).unwrap(),
        }
    }

    /// By key, by scan and by index.
    fn expect(self, snapshot: &Snapshot, rows: &Rows, keys: u64) {
        if self == Self::Bucket {
            let bucket = snapshot.bucket("t").unwrap();
            for key in 0..keys {
                let found = bucket.get(bytes(key)).unwrap().map(|value| value.to_vec());
                assert_eq!(found, rows.get(&key).map(|v| bytes(*v).to_vec()), "key {key}");
            }
            let pairs = bucket.iter();
            let pairs: Vec<_> = pairs.map(|entry| entry.unwrap().to_pair()).collect();
            let wanted = rows.iter().map(|(k, v)| (bytes(*k).to_vec(), bytes(*v).to_vec()));
            assert_eq!(pairs, wanted.collect::<Vec<_>>());
            return;
        }
        let table = snapshot.table("t").unwrap();
        for key in 0..keys {
            let found = table.get(&self.key(key)).unwrap().map(|row| row.values().to_vec());
            assert_eq!(found, rows.get(&key).map(|v| Self::row(key, *v)), "{self:?}, key {key}");
        }
        let mut found: Vec<_> = table.rows().unwrap().into_iter().map(|(_, row)| row).collect();
        found.sort_by_key(|row| match row[0] {
            Value::Uint(id) => id,
            ref other => panic!("{other:?}"),
        });
        let wanted: Vec<_> = rows.iter().map(|(key, value)| Self::row(*key, *value)).collect();
        assert_eq!(found, wanted, "{self:?}, by scan");
        assert_eq!(table.count().unwrap(), rows.len() as u64);
        let Some(least) = rows.values().min() else { return };
        for value in [*least, *rows.values().max().unwrap(), u64::MAX >> 2] {
            let mut query = Query::table("t");
            query.select(Expr::count());
            let literal = Expr::literal(Value::Uint(value));
            query.filter = Some(Expr::field("v").binary(Operator::Eq, literal));
            let count = rows.values().filter(|other| **other == value).count() as u64;
            let found = snapshot.query(&query).unwrap().to_rows();
            assert_eq!(found, [[Value::Uint(count)]], "{self:?}, v = {value}");
        }
    }
}

fn stored(db: &Database) -> u64 {
    let info = db.info();
    info.tables[0].live_rows + info.tables[0].dead_rows
}

/// What a table came to that was overwritten again and again.
#[derive(Debug)]
struct Outcome {
    versions: u64,
    memory: u64,
    visibility: u64,
    forwarding: u64,
    files: u64,
}

fn overwrite((kind, memory): (Kind, bool), (count, times): (u64, u64), held: &[u64]) -> Outcome {
    let dir = crate::fixture::Directory::new("long-snapshots");
    let at_most = std::time::Duration::from_secs(10);
    let options = Options::new().background(false).durability(Durability::Async { at_most });
    let options = options.group_limit(group_rows(count), 64 << 20).small_group_limit(1);
    let db = if memory { options.memory() } else { options.open(&dir.0) }.unwrap();
    kind.create(&db);
    let mut snapshots = Vec::new();
    for time in 0..times {
        let rows: Vec<(u64, u64)> = (0..count).map(|key| (key, key % 10 + 100 * time)).collect();
        rows.chunks(1_000).for_each(|rows| kind.put(&db, rows));
        if held.contains(&time) {
            snapshots.push((db.snapshot().unwrap(), rows.into_iter().collect::<Rows>()));
        }
        if time % 3 == 2 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
    for (snapshot, rows) in &snapshots {
        kind.expect(snapshot, rows, count);
    }
    assert_eq!(db.check().unwrap().problems, []);
    let info = db.info();
    // Nothing more is due, whoever is held: maintenance does not do the same again and again.
    db.wait_idle().unwrap();
    assert_eq!(db.info().merges.bytes, info.merges.bytes);
    Outcome {
        versions: stored(&db),
        memory: info.memory.total,
        visibility: info.memory.visibility,
        forwarding: info.memory.forwarding,
        files: info.tables[0].segment_bytes,
    }
}

/// Rows of a group, so that one has several versions of each row.
fn group_rows(count: u64) -> usize {
    usize::try_from(3 * count).unwrap()
}

/// One version more of each row for each snapshot, not one for each change.
fn stays_bounded(kind: Kind, memory: bool, (count, times): (u64, u64)) {
    let plain = overwrite((kind, memory), (count, times), &[]);
    eprintln!("{kind:?}, in memory: {memory}: without snapshots {plain:?}");
    for held in [&[0][..], &[0, 1, 7, 20]] {
        let outcome = overwrite((kind, memory), (count, times), held);
        eprintln!("{} held: {outcome:?}", held.len());
        let snapshots = held.len() as u64;
        // What is open, or below the share that makes a rewrite worth it.
        let slack = 3 * count + count;
        let most = (snapshots + 1) * count + slack;
        assert!(outcome.versions <= most, "{} versions", outcome.versions);
        // Some words of each version that is kept, and what is open.
        let more = 64 * snapshots * count + (2 << 20);
        assert!(outcome.memory <= plain.memory + more, "memory");
        assert!(outcome.visibility <= plain.visibility + more, "memory of who sees what");
        assert!(outcome.files <= plain.files + more, "files");
        assert_eq!(outcome.forwarding, 0, "where rows of rewritten units went");
    }
}

#[test]
fn a_table_that_is_overwritten_stays_bounded() {
    stays_bounded(Kind::Table, false, (5_000, 100));
}

#[test]
fn a_table_in_memory_that_is_overwritten_stays_bounded() {
    stays_bounded(Kind::Table, true, (2_000, 100));
}

#[test]
fn a_table_ordered_by_key_that_is_overwritten_stays_bounded() {
    stays_bounded(Kind::OrderedByKey, false, (2_000, 100));
    stays_bounded(Kind::OrderedByKey, true, (2_000, 100));
}

#[test]
fn a_table_with_a_generated_key_that_is_overwritten_stays_bounded() {
    stays_bounded(Kind::Generated, false, (2_000, 40));
    stays_bounded(Kind::Generated, true, (2_000, 40));
}

#[test]
fn a_bucket_that_is_overwritten_stays_bounded() {
    stays_bounded(Kind::Bucket, false, (2_000, 100));
    stays_bounded(Kind::Bucket, true, (2_000, 100));
}

/// What a snapshot costs does not grow with the number of seals and merges that it outlives. Few
/// keys are overwritten, beside many rows that every merge takes elsewhere.
#[test]
fn a_held_snapshot_costs_the_same_after_any_number_of_merges() {
    for (kind, memory) in [(Kind::Table, false), (Kind::OrderedByKey, false), (Kind::Table, true)] {
        let dir = crate::fixture::Directory::new("long-snapshots");
        let at_most = std::time::Duration::from_secs(10);
        let options = Options::new().background(false).durability(Durability::Async { at_most });
        let options = options.group_limit(500, 64 << 20).small_group_limit(1);
        let db = if memory { options.memory() } else { options.open(&dir.0) }.unwrap();
        kind.create(&db);
        let all: Rows = (0..2_000).map(|key| (key, key)).collect();
        kind.put(&db, &all.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
        let snapshot = db.snapshot().unwrap();
        let mut after = Vec::new();
        for round in 0..40u64 {
            for part in 0..4 {
                let rows = (0..300).map(|key| (key, 10_000 + 10 * round + part));
                kind.put(&db, &rows.collect::<Vec<_>>());
            }
            db.wait_idle().unwrap();
            if round % 5 == 4 {
                db.compact(true, &mut |_, _| {}).unwrap();
            }
            let info = db.info();
            assert_eq!(info.memory.forwarding, 0, "{kind:?}, round {round}");
            if round % 5 == 4 {
                after.push((info.memory.visibility, info.memory.total, stored(&db)));
            }
        }
        eprintln!("{kind:?}, in memory: {memory}: {after:?}");
        let ((visibility, total, versions), last) = (after[1], after[after.len() - 1]);
        assert!(last.0 <= visibility + (64 << 10), "{kind:?}: {after:?}");
        assert!(last.1 <= total + (256 << 10), "{kind:?}: {after:?}");
        assert!(last.2 <= versions + 100, "{kind:?}: {after:?}");
        kind.expect(&snapshot, &all, 2_000);
        assert_eq!(db.check().unwrap().problems, []);
    }
}

/// Rows that go and come back are changes like others.
#[test]
fn rows_that_are_deleted_and_inserted_again_stay_bounded() {
    for memory in [false, true] {
        let dir = crate::fixture::Directory::new("long-snapshots");
        let at_most = std::time::Duration::from_secs(10);
        let options = Options::new().background(false).durability(Durability::Async { at_most });
        let options = options.group_limit(1_000, 64 << 20).small_group_limit(1);
        let db = if memory { options.memory() } else { options.open(&dir.0) }.unwrap();
        Kind::Table.create(&db);
        let rows: Rows = (0..300).map(|key| (key, key)).collect();
        let pairs: Vec<_> = rows.iter().map(|(key, value)| (*key, *value)).collect();
        Kind::Table.put(&db, &pairs);
        let snapshot = db.snapshot().unwrap();
        for _ in 0..40 {
            (0..300).for_each(|key| assert!(Kind::Table.remove(&db, key)));
            Kind::Table.put(&db, &pairs);
            db.wait_idle().unwrap();
        }
        assert!(stored(&db) <= 2 * 300 + 1_000 + 300, "{}", stored(&db));
        Kind::Table.expect(&snapshot, &rows, 300);
        assert_eq!(db.check().unwrap().problems, []);
    }
}

/// Rows that come and go for good, as in a queue: beside a snapshot, nothing is kept of those that
/// it does not see. A transaction that may write keeps what tells it of them until it ends.
#[test]
fn a_queue_beside_a_snapshot_stays_bounded() {
    for (kind, memory) in KINDS.iter().flat_map(|kind| [(*kind, false), (*kind, true)]) {
        let dir = crate::fixture::Directory::new("long-snapshots");
        let at_most = std::time::Duration::from_secs(10);
        let options = Options::new().background(false).durability(Durability::Async { at_most });
        let options = options.group_limit(1_000, 64 << 20).small_group_limit(1);
        let db = if memory { options.memory() } else { options.open(&dir.0) }.unwrap();
        kind.create(&db);
        let (all, mut rows) = (300u64, Rows::new());
        let put = |rows: &mut Rows, from: u64| {
            let pairs: Vec<_> = (from..from + all).map(|key| (key, key)).collect();
            kind.put(&db, &pairs);
            rows.extend(pairs);
        };
        put(&mut rows, 0);
        let (snapshot, seen) = (db.snapshot().unwrap(), rows.clone());
        let transaction = db.begin().unwrap();
        let mut turn = |rounds: std::ops::Range<u64>| {
            for round in rounds {
                put(&mut rows, (round + 1) * all);
                for key in round * all..(round + 1) * all {
                    assert!(kind.remove(&db, key));
                    rows.remove(&key);
                }
                db.wait_idle().unwrap();
            }
            db.compact(false, &mut |_, _| {}).unwrap();
            stored(&db)
        };
        let beside_writer = turn(0..10);
        drop(transaction);
        let alone = turn(10..50);
        eprintln!("{kind:?}, in memory: {memory}: {beside_writer}, then {alone}");
        assert!(beside_writer >= 11 * all, "{kind:?}: {beside_writer}");
        // What the snapshot sees, what there is, and an open group.
        assert!(alone <= 2 * all + 1_000 + all, "{kind:?}: {alone}");
        kind.expect(&snapshot, &seen, 12 * all);
        kind.expect(&db.snapshot().unwrap(), &rows, 52 * all);
        assert_eq!(db.check().unwrap().problems, []);
    }
}

/// Entries that expire, as in a cache: those that came after a snapshot go, though for it the time
/// stands still.
#[test]
fn a_cache_beside_a_snapshot_stays_bounded() {
    let second = 1_000_000;
    for memory in [false, true] {
        let (dir, clock) =
            (crate::fixture::Directory::new("long-snapshots"), HandClock::new(second));
        let at_most = std::time::Duration::from_secs(10);
        let options = Options::new().environment(clock.environment()).background(false);
        let options = options.durability(Durability::Async { at_most });
        let options = options.group_limit(1_000, 64 << 20).small_group_limit(1);
        let db = if memory { options.memory() } else { options.open(&dir.0) }.unwrap();
        let ttl = std::time::Duration::from_secs(30);
        let cache = db.create_bucket("t", &BucketOptions::new().ttl(ttl)).unwrap();
        let all = 300u64;
        let put = |round: u64| {
            let keys = round * all..(round + 1) * all;
            cache.put_many(keys.map(|key| (bytes(key), bytes(round)))).unwrap();
        };
        put(0);
        let snapshot = db.snapshot().unwrap();
        for round in 1..50 {
            clock.set(i64::try_from(round).unwrap() * 20 * second);
            put(round);
            db.wait_idle().unwrap();
        }
        db.compact(false, &mut |_, _| {}).unwrap();
        eprintln!("in memory: {memory}: {}", stored(&db));
        assert!(stored(&db) <= 3 * all + 1_000 + all, "{}", stored(&db));
        let seen = snapshot.bucket("t").unwrap();
        assert_eq!(
            seen.iter().count() as u64,
            all,
            "what the snapshot sees has not expired for it"
        );
        assert_eq!(cache.iter().unwrap().count() as u64, 2 * all, "of the last two rounds");
        assert_eq!(db.check().unwrap().problems, []);
    }
}

/// A transaction that is open, and when the keys had been changed last when it began.
struct Open {
    transaction: Transaction,
    began: u64,
}

/// Random changes beside a model, with snapshots and transactions that stay.
struct Run {
    kind: Kind,
    generator: Generator,
    machine: Simulation,
    db: Option<Database>,
    memory: bool,
    rows: Rows,
    snapshots: Vec<(Snapshot, Rows)>,
    transactions: Vec<Open>,
    /// When each key was changed last, in steps.
    changed: BTreeMap<u64, u64>,
    step: u64,
}

const KEYS: u64 = 12;

impl Run {
    fn new(seed: u64, kind: Kind, memory: bool) -> Self {
        let (generator, machine) =
            (Generator::new(seed, 0), Simulation::new(seed, SimOptions::default()));
        let mut run = Self {
            kind,
            generator,
            machine,
            db: None,
            memory,
            rows: Rows::new(),
            snapshots: Vec::new(),
            transactions: Vec::new(),
            changed: BTreeMap::new(),
            step: 0,
        };
        run.open();
        kind.create(run.db());
        if kind == Kind::Generated {
            run.put(&(0..KEYS).map(|key| (key, key)).collect::<Vec<_>>());
        }
        run
    }

    fn open(&mut self) {
        let limit = usize::try_from(self.generator.below(8) + 2).unwrap();
        let options = Options::new().environment(self.machine.environment()).background(false);
        let options = options.group_limit(limit, 1 << 30).small_group_limit(0);
        let options = options.segment_limit(2 * limit);
        self.db = Some(if self.memory { options.memory() } else { options.open("db") }.unwrap());
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn put(&mut self, rows: &[(u64, u64)]) {
        self.kind.put(self.db(), rows);
        for (key, value) in rows {
            self.rows.insert(*key, *value);
            self.changed.insert(*key, self.step);
        }
    }

    fn key(&mut self) -> u64 {
        // Some keys are changed more often than others.
        let most = [2, KEYS][usize::from(self.generator.chance(400_000))];
        self.generator.below(most)
    }

    fn act(&mut self) {
        self.step += 1;
        match self.generator.below(20) {
            0..=7 => {
                let mut rows = Rows::new();
                for _ in 0..=self.generator.below(4) {
                    let key = self.key();
                    // Row ids are not given twice.
                    if self.kind != Kind::Generated || self.rows.contains_key(&key) {
                        rows.insert(key, self.step);
                    }
                }
                self.put(&rows.into_iter().collect::<Vec<_>>());
            }
            8..=10 => {
                let key = self.key();
                let is_there = self.rows.contains_key(&key);
                let is_spared = self.kind == Kind::Generated && self.rows.len() < 4;
                if !is_spared {
                    assert_eq!(self.kind.remove(self.db(), key), is_there);
                    if self.rows.remove(&key).is_some() {
                        self.changed.insert(key, self.step);
                    }
                }
            }
            11 | 12 if self.snapshots.len() < 6 => {
                self.snapshots.push((self.db().snapshot().unwrap(), self.rows.clone()));
            }
            13 if !self.snapshots.is_empty() => {
                let at = self.generator.below(self.snapshots.len() as u64);
                self.snapshots.swap_remove(usize::try_from(at).unwrap());
            }
            14 if self.transactions.len() < 3 => {
                let transaction = self.db().begin_with(TransactionOptions::default()).unwrap();
                self.transactions.push(Open { transaction, began: self.step });
            }
            15 => self.commit_one(),
            16 => drop(self.db().compact(false, &mut |_, _| {}).unwrap()),
            17 => self.verify(),
            _ => self.db().wait_idle().unwrap(),
        }
    }

    /// A transaction that puts a key commits only when nobody else has changed it since it began.
    fn commit_one(&mut self) {
        if self.transactions.is_empty() {
            return;
        }
        let at = self.generator.below(self.transactions.len() as u64);
        let Open { transaction, began } =
            self.transactions.swap_remove(usize::try_from(at).unwrap());
        let (key, value) = (self.key(), self.step);
        let was_changed = self.changed.get(&key).is_some_and(|changed| *changed > began);
        match self.kind {
            Kind::Bucket => {
                let bucket = transaction.bucket("t").unwrap();
                bucket.put(bytes(key), bytes(value)).unwrap();
            }
            Kind::Generated => {
                let row = Kind::row(key, value);
                let changes = [("v", row[1].clone()), ("note", row[2].clone())];
                let table = transaction.table("t").unwrap();
                if !table.update(&self.kind.key(key), &changes).unwrap() {
                    return;
                }
            }
            _ => drop(transaction.table("t").unwrap().upsert(&Kind::row(key, value)).unwrap()),
        }
        match transaction.commit() {
            Ok(_) => {
                assert!(!was_changed, "{:?}: key {key} was changed by another", self.kind);
                self.rows.insert(key, value);
                self.changed.insert(key, self.step);
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                assert!(was_changed, "{:?}: nobody has changed key {key}: {e}", self.kind);
            }
        }
    }

    fn verify(&self) {
        for (snapshot, rows) in &self.snapshots {
            self.kind.expect(snapshot, rows, KEYS);
        }
        self.kind.expect(&self.db().snapshot().unwrap(), &self.rows, KEYS);
        assert_eq!(self.db().check().unwrap().problems, []);
    }

    fn finish(mut self) {
        self.verify();
        self.snapshots.clear();
        self.transactions.clear();
        self.db().wait_idle().unwrap();
        self.verify();
        if self.memory {
            return;
        }
        let image = self.machine.crash_image(CrashChoice::Random(self.step));
        self.db = None;
        self.machine = Simulation::from_image(&image, self.step, SimOptions::default());
        self.open();
        self.verify();
        self.db().compact(false, &mut |_, _| {}).unwrap();
        self.verify();
    }
}

#[test]
fn snapshots_and_transactions_of_random_commits_are_exact() {
    let cases = std::env::var("ESKER_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    for seed in 0..cases {
        for kind in KINDS {
            for memory in [false, true] {
                eprintln!("seed {seed}, {kind:?}, in memory: {memory}");
                let mut run = Run::new(seed, kind, memory);
                for _ in 0..120 {
                    run.act();
                }
                run.finish();
            }
        }
    }
}
