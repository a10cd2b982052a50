//! Feeds where their tables and they themselves are others by then: transactions of definitions,
//! cursors of other feeds, expiry, erasure, copies, crashes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::time::Duration;

use esker::{
    Alteration, ChangeKind, ChangedRows, Changes, ChangesFrom, CommitChanges, DataType, Database,
    Durability, ErrorKind, NewIndex, NewReference, Options, ReferenceAction, Schema, Value,
};
use esker_format::schema::SchemaBuilder;
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const NO_WAIT: Duration = Duration::ZERO;
const DAY_US: u64 = 86_400_000_000;
const KEPT: Changes = Changes::Kept { keep_us: DAY_US, rows: ChangedRows::Key };
const OLD: Changes = Changes::Kept { keep_us: DAY_US, rows: ChangedRows::Old };

fn fields() -> SchemaBuilder {
    Schema::builder().field("id", DataType::I64).nullable("v", DataType::Text).primary_key(["id"])
}

fn expiring() -> SchemaBuilder {
    let fields = Schema::builder().field("id", DataType::I64).nullable("v", DataType::Text);
    fields.nullable("until", DataType::Timestamp).primary_key(["id"]).expires_by("until")
}

fn row(id: i64, v: &str) -> Vec<Value> {
    vec![Value::Int(id), Value::Text(v.to_owned())]
}

fn all(db: &Database, table: &str) -> Vec<CommitChanges> {
    db.changes(table, ChangesFrom::Start).unwrap().next_commits(10_000, NO_WAIT).unwrap()
}

/// What a change is, and the key of its row.
fn short(commits: &[CommitChanges]) -> Vec<String> {
    let changes = commits.iter().flat_map(|commit| &commit.changes);
    let id = |key: &Value| key.as_ref().to_string().replace(['{', '}', '"', ':'], "");
    changes.map(|c| format!("{} {}", c.kind, id(&c.key).replace("id", ""))).collect()
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().environment(machine.environment()).background(false);
    options.open("db").unwrap()
}

fn set(keep_us: Option<u64>) -> [Alteration; 1] {
    [Alteration::SetChangesKept(keep_us)]
}

#[test]
fn a_feed_is_found_by_its_number_whatever_becomes_of_names() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", fields().changes(KEPT).build().unwrap()).unwrap();
    t.insert(&row(1, "a")).unwrap();
    // The table gets another name, and another table its own, in the commit of their rows.
    db.transact(|within| {
        within.table("t")?.insert(&row(2, "b"))?;
        within.rename_table("t", "u")?;
        within.create_table("t", fields().changes(KEPT).build()?)?;
        within.table("t")?.insert(&row(10, "new"))?;
        within.table("u")?.insert(&row(3, "c"))?;
        Ok(())
    })
    .unwrap();
    assert_eq!(short(&all(&db, "u")), ["insert 1", "insert 2", "insert 3"]);
    assert_eq!(short(&all(&db, "t")), ["insert 10"]);
    // Cleared and renamed at once, and the other way round.
    db.transact(|within| {
        within.truncate_table("u")?;
        within.rename_table("u", "w")?;
        within.table("w")?.insert(&row(4, "d")).map(drop)
    })
    .unwrap();
    db.transact(|within| {
        within.rename_table("w", "x")?;
        within.truncate_table("x")?;
        within.table("x")?.insert(&row(5, "e")).map(drop)
    })
    .unwrap();
    let told = short(&all(&db, "x"));
    assert_eq!(told[3..], ["truncate null", "insert 4", "truncate null", "insert 5"], "{told:?}");
    // Cleared, and the feed ends with the same commit, or another one begins.
    db.transact(|within| {
        within.truncate_table("x")?;
        within.alter_table("x", &set(None))
    })
    .unwrap();
    db.table("x").unwrap().insert(&row(6, "f")).unwrap();
    db.transact(|within| {
        within.truncate_table("x")?;
        within.alter_table("x", &set(Some(DAY_US)))?;
        within.table("x")?.insert(&row(7, "g")).map(drop)
    })
    .unwrap();
    assert_eq!(short(&all(&db, "x")), ["truncate null", "insert 7"]);
    // Dropped and made anew under its name.
    db.transact(|within| {
        within.drop_table("x")?;
        within.create_table("x", fields().changes(KEPT).build()?)?.insert(&row(8, "h")).map(drop)
    })
    .unwrap();
    assert_eq!(short(&all(&db, "x")), ["insert 8"]);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_cursor_of_another_feed_is_gone() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", fields().changes(KEPT).build().unwrap()).unwrap();
    t.insert(&row(1, "a")).unwrap();
    let mut reader = db.changes("t", ChangesFrom::Start).unwrap();
    let cursor = reader.next_commits(9, NO_WAIT).unwrap()[0].cursor;
    let begin_anew: [&dyn Fn(); 3] = [
        &|| {
            db.alter_table("t", &set(None)).unwrap();
            db.alter_table("t", &set(Some(DAY_US))).unwrap();
        },
        &|| {
            let both = [Alteration::SetChangesKept(None), Alteration::SetChangesKept(Some(9))];
            db.alter_table("t", &both).unwrap();
        },
        &|| {
            db.drop_table("t").unwrap();
            db.create_table("t", fields().changes(KEPT).build().unwrap()).unwrap();
        },
    ];
    for (i, begin_anew) in (0i64..).zip(begin_anew) {
        begin_anew();
        let t = db.table("t").unwrap();
        t.insert(&row(10 * i + 10, "b")).unwrap();
        let newest = db.changes("t", ChangesFrom::Now).unwrap().cursor();
        t.insert(&row(10 * i + 11, "c")).unwrap();
        let e = db.changes("t", ChangesFrom::After(cursor)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::SnapshotGone, "{e}");
        let place = db.changes("t", ChangesFrom::Now).unwrap().cursor();
        assert!(e.to_string().ends_with(&format!("go on behind {place}")), "{e}");
        let mut reader = db.changes("t", ChangesFrom::After(newest)).unwrap();
        let told = short(&reader.next_commits(9, NO_WAIT).unwrap());
        assert_eq!(told, [format!("insert {}", 10 * i + 11)]);
    }
    let e = reader.next_commits(9, NO_WAIT).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
    let ahead = db.changes("t", ChangesFrom::Now).unwrap().cursor().to_string() + "9";
    let e = db.changes("t", ChangesFrom::After(ahead.parse().unwrap())).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
}

#[test]
fn rows_that_expire_are_told_in_commits_that_a_frame_holds() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = open(&machine);
    let t = db.create_table("t", expiring().changes(OLD).build().unwrap()).unwrap();
    let end = Value::Timestamp(machine.environment().clock.wall_us() + 60_000_000);
    // Together more than a frame, a group and the memory of a commit hold; one is too long.
    for id in 0..300i64 {
        let v = Value::Text("x".repeat(if id == 7 { 100_000 } else { 60_000 }));
        t.insert(&[id.into(), v, end.clone()]).unwrap();
    }
    machine.advance_clock(Duration::from_secs(120));
    db.alter_table("t", &[Alteration::SetExpiry(None)]).unwrap();
    t.insert(&[1000i64.into(), Value::Null, Value::Null]).unwrap();
    let told = all(&db, "t");
    let expired = told.iter().flat_map(|commit| &commit.changes);
    let expired: Vec<_> = expired.filter(|c| c.kind == ChangeKind::Expire).collect();
    assert_eq!(expired.len(), 300);
    let without: Vec<_> = expired.iter().filter(|c| c.old == Value::Null).collect();
    assert_eq!(without.len(), 1, "a long row is left out");
    assert_eq!(without[0].key, Value::json(r#"{"id":7}"#).unwrap());
    assert_eq!(short(&told).last().unwrap(), "insert 1000");
    drop((t, db));
    assert_eq!(all(&open(&machine), "t"), told);
}

#[test]
fn rows_of_a_table_with_a_feed_go_from_a_full_disk() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = open(&machine);
    let t = db.create_table("t", expiring().changes(KEPT).build().unwrap()).unwrap();
    let end = Value::Timestamp(machine.environment().clock.wall_us() + 60_000_000);
    for id in 0..90i64 {
        t.insert(&[id.into(), Value::Text("x".repeat(500)), end.clone()]).unwrap();
    }
    machine.set_capacity_bytes(machine.used_bytes());
    let filler = |id: i64| [id.into(), Value::Text("y".repeat(50)), Value::Null];
    let full = (1_000..).find_map(|id| t.insert(&filler(id)).err()).unwrap();
    assert_eq!(full.kind(), ErrorKind::NoSpace, "{full}");
    assert!(t.delete(&[Value::Int(1_000)]).unwrap());
    machine.advance_clock(Duration::from_secs(120));
    let ends = [Alteration::SetExpiry(None), Alteration::DropField("until".into())];
    db.alter_table("t", &ends).unwrap();
    let told = short(&all(&db, "t"));
    assert_eq!(told.iter().filter(|told| *told == "delete 1000").count(), 1);
    assert_eq!(told.iter().filter(|told| told.starts_with("expire")).count(), 90);
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_feed_begins_in_a_transaction_that_ends_expired_rows() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = open(&machine);
    let unique = NewIndex::new("one_v", ["v"]).unique();
    let t = db.create_table("t", expiring().add_index(unique).build().unwrap()).unwrap();
    let end = Value::Timestamp(machine.environment().clock.wall_us() + 60_000_000);
    t.insert(&[1i64.into(), "taken".into(), end.clone()]).unwrap();
    machine.advance_clock(Duration::from_secs(120));
    db.transact(|within| {
        within.alter_table("t", &set(Some(DAY_US)))?;
        within.table("t")?.insert(&[2i64.into(), "taken".into(), end.clone()]).map(drop)
    })
    .unwrap();
    assert_eq!(short(&all(&db, "t")), ["insert 2"]);
    // Once there is a feed, it tells that the other one had expired, before.
    db.transact(|within| {
        within.rename_table("t", "u")?;
        within.table("u")?.upsert(&[3i64.into(), "free".into(), Value::Null]).map(drop)
    })
    .unwrap();
    let u = db.table("u").unwrap();
    u.upsert(&[3i64.into(), "held".into(), end]).unwrap();
    u.upsert(&[4i64.into(), "held".into(), Value::Null]).unwrap();
    let told = short(&all(&db, "u"));
    assert_eq!(told[1..], ["insert 3", "update 3", "expire 3", "insert 4"], "{told:?}");
}

#[test]
fn erasing_is_refused_where_a_feed_of_another_table_keeps_the_values() {
    let db = Options::new().memory().unwrap();
    let id = || Schema::builder().field("id", DataType::I64).primary_key(["id"]);
    db.create_table("p", id().build().unwrap()).unwrap();
    let child = |action, name: &str, of: &str| {
        let reference = NewReference::new(["r"], of).on_delete(action);
        let schema = id().nullable("r", DataType::I64).reference(reference);
        db.create_table(name, schema.build().unwrap()).unwrap()
    };
    child(ReferenceAction::Cascade, "c", "p");
    child(ReferenceAction::SetNull, "g", "c");
    child(ReferenceAction::Restrict, "other", "p");
    let p = db.table("p").unwrap();
    p.insert(&[1i64.into()]).unwrap();
    p.insert(&[2i64.into()]).unwrap();
    let one = Expr::field("id").binary(Operator::Eq, Expr::literal(1i64));
    db.alter_table("other", &set(Some(DAY_US))).unwrap();
    assert_eq!(p.erase(Some(&one)).unwrap().rows, 1);
    for table in ["c", "g"] {
        db.alter_table(table, &set(Some(DAY_US))).unwrap();
        let e = p.erase(None).unwrap_err().to_string();
        assert!(e.contains(&format!("ERASE in table \"p\": that of \"{table}\"")), "{e}");
        db.alter_table(table, &set(None)).unwrap();
    }
    db.alter_table("p", &set(Some(DAY_US))).unwrap();
    assert!(p.erase(None).unwrap_err().to_string().contains("its feed would keep the values"));
    assert_eq!(p.count().unwrap(), 1);
}

#[test]
fn copies_have_the_tables_and_their_feeds() {
    let machine = Simulation::new(1, SimOptions::default());
    let db = Options::new().environment(machine.environment()).memory().unwrap();
    let t = db.create_table("t", fields().changes(OLD).build().unwrap()).unwrap();
    t.insert(&row(1, "a")).unwrap();
    t.insert_many(&[row(2, "b"), row(3, "c")]).unwrap();
    assert!(t.delete(&[Value::Int(2)]).unwrap());
    let told = all(&db, "t");
    db.save("saved").unwrap();
    let memory = Options::new().environment(machine.environment()).memory_from("saved").unwrap();
    let saved = Options::new().environment(machine.environment()).open("saved").unwrap();
    for copy in [memory, saved] {
        let again = all(&copy, "t");
        let changes = |told: &[CommitChanges]| -> Vec<_> {
            told.iter().map(|commit| (commit.at_us, commit.changes.clone())).collect()
        };
        assert_eq!(changes(&again), changes(&told));
        // Row ids are others there.
        let e = copy.changes("t", ChangesFrom::After(told[0].cursor)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::SnapshotGone, "{e}");
        copy.table("t").unwrap().insert(&row(4, "d")).unwrap();
        let last = again.last().unwrap().cursor;
        let mut reader = copy.changes("t", ChangesFrom::After(last)).unwrap();
        assert_eq!(short(&reader.next_commits(9, NO_WAIT).unwrap()), ["insert 4"]);
        assert_eq!(copy.check().unwrap().problems, []);
    }
}

#[test]
fn no_crash_takes_back_what_a_cursor_of_now_is_behind() {
    let machine = Simulation::new(1, SimOptions::default());
    let options = |machine: &Simulation| {
        let options = Options::new().environment(machine.environment()).background(false);
        let at_most = Duration::from_secs(3_600);
        options.durability(Durability::Async { at_most }).open("db").unwrap()
    };
    let db = options(&machine);
    let t = db.create_table("t", fields().changes(KEPT).build().unwrap()).unwrap();
    for id in 0..5 {
        t.insert(&row(id, "before")).unwrap();
    }
    let cursor = db.changes("t", ChangesFrom::Now).unwrap().cursor();
    t.insert(&row(5, "lost")).unwrap();
    let image = machine.crash_image(CrashChoice::KeepNone);
    let machine = Simulation::from_image(&image, 1, SimOptions::default());
    let db = options(&machine);
    let t = db.table("t").unwrap();
    assert_eq!(t.count().unwrap(), 5);
    t.insert(&row(6, "after")).unwrap();
    db.sync().unwrap();
    let mut reader = db.changes("t", ChangesFrom::After(cursor)).unwrap();
    assert_eq!(short(&reader.next_commits(9, NO_WAIT).unwrap()), ["insert 6"]);
}
