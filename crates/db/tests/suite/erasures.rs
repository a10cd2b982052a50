//! Erasures: what was erased is in no file once they are done.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::path::Path;
use std::time::Duration;

use esker::{
    ChangeOptions, DataType, Database, Durability, Erased, ErasureInfo, IndexKind, NewIndex,
    NewReference, Options, ReferenceAction, Schema, StreamOption, Table, Ttl, Value,
};
use esker_format::schema::SchemaBuilder;
use esker_query::model::{Change, Delete, Expr, Operator};
use esker_vfs::sim::{
    CallKind, CrashChoice, FaultKind, FaultPlan, Options as SimOptions, Repeat, Script, Simulation,
};
use esker_vfs::{Environment, OpenMode};

const MARK: &str = "ada-lovelace-1815";

fn machine(seed: u64) -> Simulation {
    Simulation::new(seed, SimOptions { pause_probability: 0, latency_ns: 0, ..Default::default() })
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().background(false).environment(machine.environment());
    options.group_limit(64, 1 << 20).value_file_limits(256, 64 << 10).open("db").unwrap()
}

fn fields() -> SchemaBuilder {
    Schema::builder()
        .field("t", DataType::Timestamp)
        .field("n", DataType::I64)
        .field("user", DataType::Text)
        .nullable("note", DataType::Text)
}

fn user(n: i64) -> String {
    if n % 10 == 3 { MARK.to_owned() } else { format!("user-{}", n % 7) }
}

fn row(n: i64) -> Vec<Value> {
    // Some have long values, which lie in files of their own.
    let note = user(n).repeat(if n % 20 == 3 { 40 } else { 2 });
    vec![Value::Timestamp(n), n.into(), user(n).into(), note.into()]
}

fn is_marked() -> Expr {
    Expr::field("user").binary(Operator::Eq, Expr::literal(MARK))
}

fn environment_files(environment: &Environment) -> Vec<(String, Vec<u8>)> {
    let (files, dir) = (&environment.files, Path::new("db"));
    let names = files.list(dir).unwrap();
    let read = |name: String| {
        let file = files.open(&dir.join(&name), OpenMode::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        let read = file.read_at(&mut bytes, 0).unwrap();
        bytes.truncate(read);
        (name, bytes)
    };
    names.into_iter().map(read).collect()
}

/// The files that have a text.
fn with(machine: &Simulation, text: &str) -> Vec<String> {
    let all = environment_files(&machine.environment()).into_iter();
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    all.filter(|(_, bytes)| has(bytes)).map(|(name, _)| name).collect()
}

/// An event stream or a table, with indexes, in segments, an open group, checkpoint and log.
fn filled(db: &Database, kind: &str) -> Table {
    let schema = match kind {
        "stream" => fields().stream("t", [StreamOption::read("window", Some("1 day")).unwrap()]),
        "keyed" => fields().primary_key(["n"]),
        _ => fields(),
    };
    let table = db.create_table("visits", schema.build().unwrap()).unwrap();
    for kind in [IndexKind::Ordered, IndexKind::Bitmap, IndexKind::Trigram] {
        let index = NewIndex::new(kind.name(), ["user"]);
        db.create_index("visits", NewIndex { kind, ..index }).unwrap();
    }
    for n in 0..150 {
        table.insert(&row(n)).unwrap();
        if n == 140 {
            db.checkpoint().unwrap();
        }
    }
    db.wait_idle().unwrap();
    table
}

fn first(db: &Database) -> ErasureInfo {
    db.erasures().unwrap().remove(0)
}

fn expect_done(db: &Database, machine: &Simulation) {
    db.wait_idle().unwrap();
    let info = first(db);
    assert!(info.finished_us.is_some() && info.bytes_left == 0, "{info:?}");
    assert_eq!(with(machine, MARK), Vec::<String>::new());
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.table("visits").unwrap().count().unwrap(), 135);
}

#[test]
fn no_file_has_what_was_erased() {
    for kind in ["stream", "keyed", "plain"] {
        let machine = machine(1);
        let db = open(&machine);
        let table = filled(&db, kind);
        assert!(with(&machine, MARK).len() > 4, "{:?}", with(&machine, MARK));
        let erased = table.erase(Some(&is_marked())).unwrap();
        let Erased { number, rows, bytes_left } = erased;
        assert_eq!((number, rows), (1, 15));
        assert!(bytes_left.unwrap() > 0);
        let info = first(&db);
        assert_eq!((info.table.as_str(), info.rows, info.finished_us), ("visits", 15, None));
        assert!(info.waits_for.is_some() && Some(info.bytes_left) == bytes_left);
        expect_done(&db, &machine);
        // What is left is whole after the next open.
        drop((table, db));
        let db = open(&machine);
        expect_done(&db, &machine);
        assert_eq!(db.erasures().unwrap().len(), 1);
    }
}

#[test]
fn older_versions_go_and_what_was_deleted_before() {
    let machine = machine(2);
    let db = open(&machine);
    let table = filled(&db, "keyed");
    for n in 0..150i64 {
        match user(n) == MARK {
            true if n % 20 == 3 => drop(table.delete(&[n.into()]).unwrap()),
            true => {
                let changes = [("user", "nobody".into()), ("note", Value::Null)];
                table.update(&[n.into()], &changes).unwrap();
            }
            false => {}
        }
    }
    db.wait_idle().unwrap();
    assert!(!with(&machine, MARK).is_empty());
    let nobody = Expr::field("user").binary(Operator::Eq, Expr::literal("nobody"));
    assert_eq!(table.erase(Some(&nobody)).unwrap().rows, 7);
    expect_done(&db, &machine);
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    for kind in ["stream", "keyed"] {
        let machine = machine(3);
        let db = open(&machine);
        let table = filled(&db, kind);
        let held = db.snapshot().unwrap();
        let rows = held.table("visits").unwrap();
        table.erase(Some(&is_marked())).unwrap();
        db.wait_idle().unwrap();
        let info = first(&db);
        assert_eq!((info.finished_us, info.waits_for), (None, Some("snapshots")), "{kind}");
        assert!(info.bytes_left > 0);
        assert_eq!(held.table("visits").unwrap().count().unwrap(), 150);
        drop(held);
        // It holds the snapshot, too.
        db.wait_idle().unwrap();
        assert!(first(&db).finished_us.is_none());
        drop(rows);
        expect_done(&db, &machine);
    }
}

#[test]
fn a_reader_of_a_replaced_file_is_waited_for() {
    let machine = machine(4);
    let db = open(&machine);
    let table = filled(&db, "plain");
    // It reads as of a commit before, by the files of then; the rows are still there for it alone.
    let after = || {
        table.erase(Some(&is_marked())).unwrap();
        db.snapshot().unwrap()
    };
    let held = after();
    let rows = held.table("visits").unwrap();
    let mut iterator = rows.iter();
    assert!(iterator.next().is_some());
    drop(held);
    db.wait_idle().unwrap();
    let info = first(&db);
    assert_eq!((info.finished_us, info.waits_for), (None, Some("readers")));
    assert!(!with(&machine, MARK).is_empty());
    drop(iterator);
    expect_done(&db, &machine);
}

/// It was told finished though the file was there until the next open.
#[test]
fn a_value_file_that_could_not_be_removed_goes_after_all() {
    let machine = machine(11);
    let db = open(&machine);
    let table = filled(&db, "keyed");
    let stay = Script::fault(CallKind::Remove, 0, FaultKind::NameError, Repeat::Once);
    machine.add_script(stay.on_paths_with("values-"));
    table.erase(Some(&is_marked())).unwrap();
    expect_done(&db, &machine);
    assert_eq!(machine.faults_fired().get(&FaultKind::NameError), Some(&1));
}

/// The first row group that could not be written anew held back all others, and all erasures.
#[test]
fn a_failure_holds_back_nothing_else() {
    for repeat in [Repeat::Once, Repeat::ForEver] {
        let machine = machine(14);
        let db = open(&machine);
        let table = filled(&db, "plain");
        let script = Script::fault(CallKind::Create, 0, FaultKind::NameError, repeat);
        machine.add_script(script.on_paths_with("segment-"));
        table.erase(Some(&is_marked())).unwrap();
        if repeat == Repeat::ForEver {
            assert!(db.wait_idle().is_err());
            let info = first(&db);
            assert_eq!((info.finished_us, info.waits_for), (None, Some("failure")));
            assert!(info.bytes_left > 0 && db.info().last_error.is_some());
            machine.set_faults(FaultPlan::none());
        }
        // Where it strikes once, another row group goes first.
        expect_done(&db, &machine);
        assert!(machine.faults_fired().contains_key(&FaultKind::NameError));
    }
}

/// Frames that were queued when the log was rotated stayed in the log.
#[test]
fn what_was_not_durable_yet_goes_too() {
    let machine = machine(12);
    let durability = Durability::Async { at_most: Duration::from_secs(3_600) };
    let options = Options::new().background(false).environment(machine.environment());
    let db = options.durability(durability).open("db").unwrap();
    let create = |name| db.create_table(name, fields().build().unwrap()).unwrap();
    let (kept, dropped) = (create("visits"), create("others"));
    for n in 0..150 {
        kept.insert(&row(n)).unwrap();
        dropped.insert(&row(n)).unwrap();
    }
    kept.erase(Some(&is_marked())).unwrap();
    drop(dropped);
    db.drop_table("others").unwrap();
    expect_done(&db, &machine);
}

#[test]
fn a_crash_anywhere_only_delays_it() {
    let mut unfinished = 0;
    for kind in ["stream", "keyed"] {
        let recorded = SimOptions { record: true, pause_probability: 0, ..Default::default() };
        let machine = Simulation::new(5, recorded);
        let db = open(&machine);
        let table = filled(&db, kind);
        table.erase(Some(&is_marked())).unwrap();
        let mut cursor = machine.journal().unwrap().cursor();
        let mut steps = 1;
        while cursor.advance() {
            steps += 1;
        }
        expect_done(&db, &machine);
        let mut cursor = machine.journal().unwrap().cursor();
        (1..steps).for_each(|_| assert!(cursor.advance()));
        for step in 0.. {
            for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
                if step % 4 > 0 {
                    break;
                }
                let image = cursor.crash_image(choice);
                let quiet = SimOptions { pause_probability: 0, ..Default::default() };
                let revived = Simulation::from_image(&image, 6, quiet);
                let db = open(&revived);
                unfinished += usize::from(first(&db).finished_us.is_none());
                expect_done(&db, &revived);
            }
            if !cursor.advance() {
                break;
            }
        }
    }
    assert!(unfinished > 10, "{unfinished}");
}

#[test]
fn one_in_a_transaction_comes_with_its_commit() {
    let machine = machine(7);
    let db = open(&machine);
    filled(&db, "keyed");
    let delete = |dry_run| {
        let filter = Some(is_marked());
        let delete = Delete { table: "visits".into(), filter, erase: true, ..Delete::default() };
        (Change::Delete(delete), ChangeOptions { dry_run, ..ChangeOptions::default() })
    };
    let transaction = db.begin().unwrap();
    let (change, options) = delete(false);
    let changed = transaction.change_with(&change, &options).unwrap();
    let shown = changed.returning.unwrap();
    assert_eq!(shown.to_rows(), [[Value::Uint(1), Value::Uint(15), Value::Null]]);
    transaction.rollback();
    let (change, options) = delete(true);
    assert_eq!(db.change_with(&change, &options).unwrap().rows, 15);
    assert_eq!((db.erasures().unwrap(), db.buckets()), (Vec::new(), Vec::<String>::new()));
    let transaction = db.begin().unwrap();
    let (change, options) = delete(false);
    transaction.change_with(&change, &options).unwrap();
    transaction.commit().unwrap();
    expect_done(&db, &machine);
    assert_eq!(db.table("visits").unwrap().erase(None).unwrap().number, 2);
    db.wait_idle().unwrap();
    assert!(db.erasures().unwrap().iter().all(|info| info.finished_us.is_some()));
}

#[test]
fn it_goes_on_without_the_table_and_beside_strange_entries() {
    let machine = machine(8);
    let db = open(&machine);
    let table = filled(&db, "keyed");
    table.erase(Some(&is_marked())).unwrap();
    let held = db.snapshot().unwrap();
    db.drop_table("visits").unwrap();
    drop(table);
    db.wait_idle().unwrap();
    assert!(first(&db).finished_us.is_none(), "the snapshot holds its files");
    drop(held);
    db.wait_idle().unwrap();
    assert!(first(&db).finished_us.is_some());
    assert_eq!(with(&machine, MARK), Vec::<String>::new());
    for key in ["x", "00000000000000000007", "18446744073709551615"] {
        db.bucket(esker::ERASURES).unwrap().put(key, "y").unwrap();
    }
    assert_eq!(db.erasures().unwrap().len(), 1);
    let table = filled(&db, "plain");
    assert_eq!(table.erase(Some(&is_marked())).unwrap().number, 8);
    expect_done(&db, &machine);
    let all = db.erasures().unwrap();
    assert_eq!(all.iter().map(|info| info.number).collect::<Vec<_>>(), [1, 8]);
    assert!(all.iter().all(|info| info.finished_us.is_some()));
    db.drop_bucket(esker::ERASURES).unwrap();
    db.wait_idle().unwrap();
    assert_eq!(db.erasures().unwrap(), []);
}

/// The end of the first one was put in the place of the second.
#[test]
fn a_number_that_comes_again_is_of_another_erasure() {
    let machine = machine(13);
    let db = open(&machine);
    let table = filled(&db, "keyed");
    let held = db.snapshot().unwrap();
    assert_eq!(table.erase(Some(&is_marked())).unwrap().number, 1);
    db.wait_idle().unwrap();
    db.drop_bucket(esker::ERASURES).unwrap();
    let Erased { number, rows, .. } = table.erase(Some(&is_marked())).unwrap();
    assert_eq!((number, rows), (1, 0));
    db.wait_idle().unwrap();
    let info = first(&db);
    assert_eq!((info.rows, info.finished_us, info.waits_for), (0, None, Some("snapshots")));
    drop(held);
    expect_done(&db, &machine);
    assert_eq!(first(&db).rows, 0);
}

#[test]
fn rows_that_go_with_a_row_are_erased_with_it() {
    let machine = machine(9);
    let db = open(&machine);
    let users = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build().unwrap();
    let users = db.create_table("users", users).unwrap();
    users.insert(&[1i64.into()]).unwrap();
    let orders = Schema::builder().field("user", DataType::I64).field("what", DataType::Text);
    let reference = NewReference::new(["user"], "users").on_delete(ReferenceAction::Cascade);
    let orders = db.create_table("orders", orders.reference(reference).build().unwrap()).unwrap();
    for _ in 0..100 {
        orders.insert(&[1i64.into(), MARK.into()]).unwrap();
    }
    db.checkpoint().unwrap();
    assert_eq!(users.erase(None).unwrap().rows, 1);
    assert_eq!(orders.count().unwrap(), 0);
    db.wait_idle().unwrap();
    assert!(first(&db).finished_us.is_some());
    assert_eq!(with(&machine, MARK), Vec::<String>::new());
}

#[test]
fn what_has_expired_is_erased_too() {
    let machine = machine(10);
    let db = open(&machine);
    let bucket = db.bucket("sessions").unwrap();
    for n in 0..100 {
        let ttl = Ttl::After(Duration::from_secs(if n == 50 { 1 } else { 1_000 }));
        let value = if n == 50 { MARK } else { "other" };
        bucket.put_with(format!("{n}"), value, ttl).unwrap();
    }
    db.checkpoint().unwrap();
    machine.advance_clock(Duration::from_secs(2));
    let nothing = Expr::field("key").binary(Operator::Eq, Expr::literal(Value::Bytes(vec![1])));
    assert_eq!(db.table("sessions").unwrap().erase(Some(&nothing)).unwrap().rows, 0);
    db.wait_idle().unwrap();
    assert!(first(&db).finished_us.is_some());
    assert_eq!(with(&machine, MARK), Vec::<String>::new());
    assert_eq!(bucket.len().unwrap(), 99);
}

#[test]
fn one_of_a_database_in_memory_is_done_as_well() {
    let db = Options::new().background(false).group_limit(64, 1 << 20).memory().unwrap();
    let table = filled(&db, "keyed");
    assert_eq!(table.erase(Some(&is_marked())).unwrap().rows, 15);
    db.wait_idle().unwrap();
    assert!(first(&db).finished_us.is_some());
    assert_eq!(table.count().unwrap(), 135);
}

/// A program that ends at once leaves no time for the background: a compaction ends erasures, too.
#[test]
fn a_compaction_brings_erasures_to_their_end() {
    let machine = machine(19);
    let db = open(&machine);
    let table = db.create_table("visits", fields().build().unwrap()).unwrap();
    table.insert_many(&(0..40).map(row).collect::<Vec<_>>()).unwrap();
    let erased = table.erase(Some(&is_marked())).unwrap();
    assert!(erased.rows > 0 && db.erasures().unwrap()[0].finished_us.is_none());
    db.compact(false, &mut |_, _| ()).unwrap();
    assert!(db.erasures().unwrap()[0].finished_us.is_some());
    for (name, bytes) in environment_files(&machine.environment()) {
        let found = bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes());
        assert!(!found, "{name}");
    }
}
