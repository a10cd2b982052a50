//! Commits of several tables that are more than a frame of the log takes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use esker::{
    DataType, Database, ErrorKind, NewIndex, Options, Schema, Transaction, TransactionOptions,
    Value,
};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const NAMES: [&str; 3] = ["by arrival", "by key", "unique"];

/// Options by which some thousand bytes are too many for a frame, and by which a transaction
/// writes changes to files before it commits, or not.
fn small(machine: &Simulation, spills: bool) -> Options {
    let options = Options::new().environment(machine.environment()).background(false);
    let most = if spills { 2_000 } else { usize::MAX };
    options.commit_limit(3_000).transaction_limit(most)
}

fn row(id: i64, letter: &str) -> Vec<Value> {
    vec![id.into(), format!("{id} {}", letter.repeat(60)).into()]
}

fn fill(db: &Database) -> esker::Result<()> {
    for name in NAMES {
        let schema = Schema::builder().field("id", DataType::I64).field("text", DataType::Text);
        let schema = schema.primary_key(["id"]);
        let schema = match name {
            "by key" => schema.ordered_by_key(),
            "unique" => schema.add_index(NewIndex::new("by_text", ["text"]).unique()),
            _ => schema,
        };
        let table = db.create_table(name, schema.build()?)?;
        table.insert_many(&(0..20).map(|id| row(id, "old")).collect::<Vec<_>>())?;
    }
    let generated = Schema::builder().field("text", DataType::Text).build()?;
    db.create_table("generated", generated)?.insert_many(&[vec!["one".into()]])?;
    db.bucket("b")?.put_many([(b"gone", b"0"), (b"kept", b"0")])
}

/// Each table has rows that are new, changed and gone; `sizes` says how many are changed.
fn change(transaction: &Transaction, sizes: [i64; 3]) -> esker::Result<()> {
    for (name, size) in NAMES.into_iter().zip(sizes) {
        let table = transaction.table(name)?;
        table.upsert_many(&(10..10 + size).map(|id| row(id, "new")).collect::<Vec<_>>())?;
        table.delete(&[3i64.into()])?;
        table.update(&[4i64.into()], &[("text", "short".into())])?;
    }
    let generated = transaction.table("generated")?;
    generated.update(&[1u64.into()], &[("text", "two".into())])?;
    generated.insert(&["three".into()])?;
    let bucket = transaction.bucket("b")?;
    bucket.remove(b"gone")?;
    bucket.put(b"new", b"1")
}

/// Everything that there is, as text.
fn contents(db: &Database) -> Vec<String> {
    let mut all = Vec::new();
    for name in NAMES.into_iter().chain(["generated", "b"]) {
        let Ok(table) = db.table(name) else { continue };
        let rows = table.snapshot().unwrap().rows().unwrap();
        all.extend(rows.iter().map(|(row_id, values)| format!("{name} {row_id} {values:?}")));
    }
    all
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

fn recorded() -> Simulation {
    Simulation::new(3, SimOptions { record: true, ..SimOptions::default() })
}

/// Some tables go by way of segments, or all, or those that are largest of many small ones.
const SIZES: [[i64; 3]; 4] = [[200, 30, 90], [200, 3, 5], [25, 25, 25], [1, 1, 100]];

/// All sizes, with files that are written before the commit, and without.
fn cases() -> impl Iterator<Item = ([i64; 3], bool)> {
    SIZES.into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)])
}

#[test]
fn a_crash_leaves_all_of_a_large_commit_or_nothing() {
    for (sizes, spills) in cases() {
        let machine = recorded();
        let db = small(&machine, spills).open("db").unwrap();
        fill(&db).unwrap();
        let before = contents(&db);
        let transaction = db.begin().unwrap();
        change(&transaction, sizes).unwrap();
        let began = machine.io_count();
        transaction.commit().unwrap();
        let (ended, after) = (machine.io_count(), contents(&db));
        is_sound(&db);
        db.checkpoint().unwrap();
        drop(db);
        let mut cursor = machine.journal().unwrap().cursor();
        let (mut none, mut all) = (0, 0);
        loop {
            if cursor.position() >= began {
                for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll, CrashChoice::Random(7)]
                {
                    let image = cursor.crash_image(choice);
                    let machine = Simulation::from_image(&image, 4, SimOptions::default());
                    let db = small(&machine, spills).open("db").unwrap();
                    let found = contents(&db);
                    let is_before = found == before;
                    none += u32::from(is_before);
                    all += u32::from(!is_before);
                    assert!(is_before || found == after, "{sizes:?} {}", cursor.describe());
                    assert!(cursor.position() < ended || !is_before, "{sizes:?}: it was told of");
                    is_sound(&db);
                }
            }
            if !cursor.advance() {
                break;
            }
        }
        assert!(none > 0 && all > 0, "{sizes:?}");
    }
}

#[test]
fn rows_of_a_large_commit_live_on() {
    for (sizes, spills) in cases() {
        let machine = recorded();
        let mut db = small(&machine, spills).open("db").unwrap();
        fill(&db).unwrap();
        let old = db.snapshot().unwrap();
        db.transact(|transaction| change(transaction, sizes)).unwrap();
        assert_eq!(old.table("by key").unwrap().count().unwrap(), 20);
        drop(old);
        for _ in 0..3 {
            let wanted = contents(&db);
            db.close().unwrap();
            db = small(&machine, spills).open("db").unwrap();
            assert_eq!(contents(&db), wanted);
            is_sound(&db);
            db.transact(|transaction| change(transaction, sizes)).unwrap();
            for (name, size) in NAMES.into_iter().zip(sizes) {
                let table = db.table(name).unwrap();
                assert!(table.update(&[10i64.into()], &[("text", "again".into())]).unwrap());
                assert!(table.delete(&[(9 + size).into()]).unwrap());
            }
            db.compact(false, &mut |_, _| {}).unwrap();
            is_sound(&db);
        }
    }
}

#[test]
fn a_large_commit_that_was_overtaken_changes_nothing() {
    [false, true].into_iter().for_each(overtaken);
}

fn overtaken(spills: bool) {
    let machine = recorded();
    let db = small(&machine, spills).open("db").unwrap();
    fill(&db).unwrap();
    let overtake: [fn(&Database); 4] = [
        |db| assert!(db.table("by key").unwrap().upsert(&row(12, "mine")).is_ok()),
        |db| assert!(db.table("unique").unwrap().insert(&[999i64.into(), "short".into()]).is_ok()),
        |db| assert!(db.table("generated").unwrap().delete(&[1u64.into()]).unwrap()),
        |db| assert!(db.bucket("b").unwrap().put(b"new", b"mine").is_ok()),
    ];
    for overtake in overtake {
        let transaction = db.begin_with(TransactionOptions::new()).unwrap();
        change(&transaction, [60, 40, 2]).unwrap();
        overtake(&db);
        let wanted = contents(&db);
        let e = transaction.commit().unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists), "{e}");
        assert_eq!(contents(&db), wanted);
    }
    is_sound(&db);
}

/// Without limits of its own, on a disk and in memory: 24 MiB in three tables and a batch.
#[test]
fn transactions_and_batches_of_several_tables_pass_a_frame() {
    let machine = Simulation::new(5, SimOptions::default());
    let options = || Options::new().environment(machine.environment());
    for is_durable in [true, false] {
        let open = || if is_durable { options().open("db") } else { options().memory() };
        let mut db = open().unwrap();
        let (a, b) = (db.bucket("a").unwrap(), db.bucket("b").unwrap());
        let value = vec![7u8; 8_000];
        db.transact(|transaction| {
            let (a, b) = (transaction.bucket("a")?, transaction.bucket("b")?);
            for n in 0..1_100u32 {
                a.put(n.to_le_bytes(), &value)?;
                b.put(n.to_le_bytes(), &value)?;
            }
            transaction.bucket("a")?.remove(7u32.to_le_bytes()).map(drop)
        })
        .unwrap();
        let mut batch = db.batch();
        for n in 1_000..2_200u32 {
            batch.put(&a, n.to_le_bytes(), &value).unwrap();
            batch.put(&b, n.to_le_bytes(), b"").unwrap();
        }
        batch.commit().unwrap();
        if is_durable {
            drop((a, b));
            db.close().unwrap();
            db = open().unwrap();
        }
        let len = |name| db.bucket(name).unwrap().len().unwrap();
        assert_eq!((len("a"), len("b")), (2_199, 2_200));
        is_sound(&db);
    }
}
