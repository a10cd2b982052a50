//! Transactions whose changes are written to files before they commit.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::time::Duration;

use esker::{
    Alteration, DataType, Database, ErrorKind, Field, FieldId, NewIndex, Options, Query, Schema,
    Ttl, Value,
};
use esker_format::schema::SchemaBuilder;
use esker_query::model::{Expr, Operator};
use esker_vfs::sim::{Options as SimOptions, Simulation};

use crate::fixture::Directory;

const ROWS: i64 = 3_000;

/// Some hundred rows are many.
fn small() -> Options {
    Options::new().background(false).transaction_limit(40_000)
}

fn row(id: i64, text: &str) -> Vec<Value> {
    vec![id.into(), format!("{text} {id}").into(), (id % 7).into()]
}

fn schema() -> SchemaBuilder {
    Schema::builder()
        .field("id", DataType::I64)
        .field("text", DataType::Text)
        .field("n", DataType::I64)
        .primary_key(["id"])
}

fn files_of_segments(dir: &Directory) -> usize {
    dir.files().iter().filter(|name| name.starts_with("segment-")).count()
}

fn all(db: &Database, table: &str) -> Vec<Vec<Value>> {
    let rows = db.table(table).unwrap().snapshot().unwrap().rows().unwrap();
    let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|(_, row)| row).collect();
    rows.sort();
    rows
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

fn count_where(transaction: &esker::Transaction, table: &str, n: i64) -> Value {
    let mut query = Query::table(table);
    query.filter = Some(Expr::field("n").binary(Operator::Eq, Expr::literal(n)));
    query.select(Expr::count());
    transaction.query(&query).unwrap().to_rows()[0][0].clone()
}

#[test]
fn rows_in_files_are_read_changed_and_committed_as_others() {
    for ordered in [false, true] {
        let dir = Directory::new("spill");
        let db = small().open(&dir.0).unwrap();
        let schema = schema().add_index(NewIndex::new("by_n", ["n"]));
        let schema = if ordered { schema.ordered_by_key() } else { schema };
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        table.insert_many(&(0..500).map(|id| row(id, "old")).collect::<Vec<_>>()).unwrap();
        let transaction = db.begin().unwrap();
        let within = transaction.table("t").unwrap();
        for id in 500..ROWS {
            within.insert(&row(id, "new")).unwrap();
        }
        assert!(files_of_segments(&dir) > 1, "{:?}", dir.files());
        assert_eq!(within.insert(&row(700, "x")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(within.count().unwrap(), ROWS.unsigned_abs());
        // Of both kinds of rows some are changed, some removed, some put again.
        for id in (0..ROWS).step_by(10) {
            assert!(within.update(&[id.into()], &[("text", "changed".into())]).unwrap());
            assert!(within.delete(&[(id + 1).into()]).unwrap());
            assert!(within.delete(&[(id + 2).into()]).unwrap());
            assert!(!within.delete(&[(id + 2).into()]).unwrap());
            within.insert(&row(id + 2, "again")).unwrap();
        }
        let expected: Vec<Vec<Value>> = (0..ROWS)
            .filter(|id| id % 10 != 1)
            .map(|id| match id % 10 {
                0 => vec![id.into(), "changed".into(), (id % 7).into()],
                2 => row(id, "again"),
                _ => row(id, if id < 500 { "old" } else { "new" }),
            })
            .collect();
        assert_eq!(within.count().unwrap(), expected.len() as u64);
        assert_eq!(within.get(&[11i64.into()]).unwrap().map(|row| row.values().to_vec()), None);
        for id in [0i64, 2, 499, 1_000, 1_002, 2_999] {
            let there = within.get(&[id.into()]).unwrap().map(|row| row.values().to_vec());
            assert_eq!(there, expected.iter().find(|row| row[0] == id.into()).cloned());
        }
        let with_n = expected.iter().filter(|row| row[2] == 3i64.into()).count() as u64;
        assert_eq!(count_where(&transaction, "t", 3), Value::Uint(with_n));
        let in_order: Vec<Vec<Value>> =
            within.range(..).unwrap().map(|row| row.unwrap().values().to_vec()).collect();
        assert_eq!(in_order, expected);
        assert_eq!(all(&db, "t").len(), 500);
        transaction.commit().unwrap();
        assert_eq!(all(&db, "t"), expected);
        is_sound(&db);
        assert_eq!(table.get(&[1_002i64.into()]).unwrap().unwrap().values(), row(1_002, "again"));
        db.wait_idle().unwrap();
        assert_eq!(all(&db, "t"), expected);
        drop((table, db));
        let db = small().open(&dir.0).unwrap();
        assert_eq!(all(&db, "t"), expected);
        is_sound(&db);
        db.compact(true, &mut |_, _| {}).unwrap();
        assert_eq!(all(&db, "t"), expected);
    }
}

#[test]
fn what_is_rolled_back_leaves_no_file() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    db.create_table("t", schema().build().unwrap()).unwrap();
    let fill = |transaction: &esker::Transaction| {
        let within = transaction.table("t").unwrap();
        within.insert_many(&(0..ROWS).map(|id| row(id, "new")).collect::<Vec<_>>()).unwrap();
    };
    let transaction = db.begin().unwrap();
    fill(&transaction);
    assert!(files_of_segments(&dir) > 0);
    transaction.rollback();
    assert_eq!(files_of_segments(&dir), 0);
    // A commit that is refused does not, either.
    let transaction = db.begin().unwrap();
    fill(&transaction);
    db.table("t").unwrap().insert(&row(2_000, "other")).unwrap();
    let refused = transaction.commit().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("id = 2000"), "{refused}");
    assert_eq!(files_of_segments(&dir), 0);
    assert_eq!(all(&db, "t"), [row(2_000, "other")]);
    // What a process leaves that dies goes when the database is opened.
    let transaction = db.begin().unwrap();
    transaction
        .table("t")
        .unwrap()
        .upsert_many(&(0..ROWS).map(|id| row(id, "new")).collect::<Vec<_>>())
        .unwrap();
    db.close().unwrap();
    drop(transaction);
    assert!(files_of_segments(&dir) > 0);
    let db = small().open(&dir.0).unwrap();
    assert_eq!(files_of_segments(&dir), 0);
    assert_eq!(all(&db, "t"), [row(2_000, "other")]);
}

#[test]
fn of_two_that_change_a_row_in_a_file_the_first_wins() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    let table = db.create_table("t", schema().build().unwrap()).unwrap();
    table.insert_many(&(0..ROWS).map(|id| row(id, "old")).collect::<Vec<_>>()).unwrap();
    type Act = fn(&Database);
    let acts: [Act; 4] = [
        |db| assert!(db.table("t").unwrap().delete(&[1_500i64.into()]).unwrap()),
        |db| {
            assert!(
                db.table("t").unwrap().update(&[1_501i64.into()], &[("n", 9i64.into())]).unwrap()
            )
        },
        |db| assert!(db.table("t").unwrap().insert(&row(9_000, "other")).is_ok()),
        |db| assert!(db.table("t").unwrap().delete(&[100i64.into()]).unwrap()),
    ];
    for (at, act) in acts.into_iter().enumerate() {
        let before = all(&db, "t").len();
        let transaction = db.begin().unwrap();
        let within = transaction.table("t").unwrap();
        for id in 0..ROWS {
            match id {
                0..1_000 => drop(within.delete(&[id.into()]).unwrap()),
                _ => drop(within.update(&[id.into()], &[("text", "mine".into())]).unwrap()),
            }
        }
        within.upsert(&row(9_000, "mine")).unwrap();
        within.upsert_many(&(9_001..9_400).map(|id| row(id, "mine")).collect::<Vec<_>>()).unwrap();
        act(&db);
        let e = transaction.commit().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict, "{at}: {e}");
        assert!(all(&db, "t").len().abs_diff(before) <= 1);
        is_sound(&db);
    }
    // Nobody else is there.
    let transaction = db.begin().unwrap();
    assert!(transaction.table("t").unwrap().clear().unwrap() > 0);
    transaction.commit().unwrap();
    assert_eq!(all(&db, "t"), Vec::<Vec<Value>>::new());
    is_sound(&db);
    drop(table);
    drop(db);
    assert_eq!(all(&small().open(&dir.0).unwrap(), "t"), Vec::<Vec<Value>>::new());
}

#[test]
fn savepoints_lead_back_over_what_is_in_files() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    let table = db.create_table("t", schema().build().unwrap()).unwrap();
    table.insert_many(&(0..1_000).map(|id| row(id, "old")).collect::<Vec<_>>()).unwrap();
    let before = all(&db, "t");
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    let first = transaction.savepoint();
    for id in 0..1_000i64 {
        match id % 3 {
            0 => drop(within.delete(&[id.into()]).unwrap()),
            1 => drop(within.update(&[id.into()], &[("text", "one".into())]).unwrap()),
            _ => drop(within.upsert(&row(id + 5_000, "one")).unwrap()),
        }
    }
    let see = || -> Vec<Vec<Value>> {
        within.range(..).unwrap().map(|row| row.unwrap().values().to_vec()).collect()
    };
    let between = see();
    let second = transaction.savepoint();
    for id in 0..1_000i64 {
        match id % 3 {
            0 => drop(within.insert(&row(id, "two")).unwrap()),
            1 => assert!(within.delete(&[id.into()]).unwrap()),
            _ => drop(within.upsert(&row(id + 5_000, "two")).unwrap()),
        }
    }
    assert_ne!(see(), between);
    transaction.rollback_to(second).unwrap();
    assert_eq!(see(), between);
    for (id, there) in [(0i64, false), (1, true), (2, true), (5_002, true), (5_003, false)] {
        assert_eq!(within.exists(&[id.into()]).unwrap(), there, "{id}");
    }
    transaction.rollback_to(first).unwrap();
    assert_eq!(see(), before);
    assert!(transaction.is_unchanged() || within.count().unwrap() == 1_000);
    within.update(&[1i64.into()], &[("text", "last".into())]).unwrap();
    transaction.commit().unwrap();
    let after = all(&db, "t");
    assert_eq!(after.len(), 1_000);
    assert_eq!(after.iter().zip(&before).filter(|(a, b)| a != b).count(), 1);
    is_sound(&db);
    // A statement that fails is taken back, whatever was written of it.
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    let rows: Vec<_> = (2_000..4_000).chain([5]).map(|id| row(id, "many")).collect();
    assert_eq!(within.insert_many(&rows).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(within.count().unwrap(), 1_000);
    assert!(!within.exists(&[2_500i64.into()]).unwrap());
    transaction.commit().unwrap();
    assert_eq!(all(&db, "t"), after);
}

#[test]
fn values_of_unique_indexes_are_told_apart_in_files_too() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    let unique = schema().add_index(NewIndex::new("by_text", ["text"]).unique()).build().unwrap();
    let table = db.create_table("t", unique).unwrap();
    let text = |id: i64, text: i64| -> Vec<Value> {
        vec![id.into(), format!("text {text}").into(), 0i64.into()]
    };
    table.insert_many(&(0..ROWS).map(|id| text(id, id)).collect::<Vec<_>>()).unwrap();
    // All rows exchange their values.
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.upsert_many(&(0..ROWS).map(|id| text(id, ROWS - 1 - id)).collect::<Vec<_>>()).unwrap();
    assert!(files_of_segments(&dir) > 0);
    transaction.commit().unwrap();
    is_sound(&db);
    assert_eq!(table.insert(&text(-1, 17)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    // Two rows of one transaction, and one beside a row of others.
    for (rows, kind) in [
        (vec![text(8_000, 9_000), text(8_001, 9_000)], ErrorKind::AlreadyExists),
        (vec![text(8_000, 17)], ErrorKind::AlreadyExists),
    ] {
        let transaction = db.begin().unwrap();
        let within = transaction.table("t").unwrap();
        within.insert_many(&(9_100..12_000).map(|id| text(id, id)).collect::<Vec<_>>()).unwrap();
        within.insert_many(&rows).unwrap();
        within.insert_many(&(12_100..13_000).map(|id| text(id, id)).collect::<Vec<_>>()).unwrap();
        let e = transaction.commit().unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
    }
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.insert_many(&(9_100..12_000).map(|id| text(id, id)).collect::<Vec<_>>()).unwrap();
    table.insert(&text(-2, 10_000)).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(all(&db, "t").len(), 3_001);
    is_sound(&db);
}

#[test]
fn generated_keys_buckets_and_tables_of_the_transaction_go_to_files() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    let generated = Schema::builder().field("text", DataType::Text).build().unwrap();
    let events = db.create_table("events", generated).unwrap();
    let first = events.insert(&["first".into()]).unwrap();
    let bucket = db.bucket("b").unwrap();
    bucket.put_many((0..800).map(|n| (format!("{n:05}"), "old"))).unwrap();
    let transaction = db.begin().unwrap();
    transaction.create_table("new", schema().build().unwrap()).unwrap();
    {
        let (events, new) =
            (transaction.table("events").unwrap(), transaction.table("new").unwrap());
        let entries = transaction.bucket("b").unwrap();
        for n in 0..1_500 {
            events.insert(&[format!("event {n}").into()]).unwrap();
            new.insert(&row(n, "new")).unwrap();
            entries.put(format!("{:05}", n + 400), format!("value {n}")).unwrap();
        }
        events.update(&[first.into()], &[("text", "changed".into())]).unwrap();
        for n in 0..1_500u64 {
            let text = if n % 2 == 0 { "even" } else { "odd" };
            assert!(events.update(&[(first + 1 + n).into()], &[("text", text.into())]).unwrap());
        }
        assert_eq!(entries.remove_prefix("000").unwrap(), 100);
        // A value that is too long for a segment without value files stays in memory.
        entries.put("long", vec![7; 100_000]).unwrap();
        assert_eq!(entries.len().unwrap(), 1_801);
        let more = Field::new(FieldId(0), "more".into(), DataType::I64, false);
        let more = Field { initial: Value::Int(5), ..more };
        transaction.alter_table("new", &[Alteration::AddField(more)]).unwrap();
        let new = transaction.table("new").unwrap();
        assert_eq!(new.get(&[3i64.into()]).unwrap().unwrap().values()[3], 5i64.into());
        assert_eq!(new.count().unwrap(), 1_500);
    }
    assert!(files_of_segments(&dir) > 3);
    transaction.commit().unwrap();
    let check = |db: &Database| {
        let (bucket, events) = (db.bucket("b").unwrap(), db.table("events").unwrap());
        assert_eq!(bucket.get("00399").unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(bucket.get("00400").unwrap().as_deref(), Some(&b"value 0"[..]));
        assert_eq!(bucket.get("00050").unwrap().as_deref(), None);
        assert_eq!(bucket.get("long").unwrap().unwrap().len(), 100_000);
        assert_eq!(bucket.len().unwrap(), 1_801);
        assert_eq!(events.count().unwrap(), 1_501);
        let text = |id: u64| events.get(&[id.into()]).unwrap().unwrap().values()[0].clone();
        assert_eq!((text(first), text(first + 2)), ("changed".into(), "odd".into()));
        let new = db.table("new").unwrap();
        assert_eq!(new.count().unwrap(), 1_500);
        assert_eq!(new.get(&[3i64.into()]).unwrap().unwrap().values()[3], 5i64.into());
        is_sound(db);
    };
    check(&db);
    db.wait_idle().unwrap();
    check(&db);
    drop((events, bucket));
    db.close().unwrap();
    check(&small().open(&dir.0).unwrap());
}

#[test]
fn an_answer_that_is_being_read_is_not_disturbed_by_later_changes_or_the_commit() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    db.create_table("t", schema().build().unwrap()).unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.insert_many(&(0..ROWS).map(|id| row(id, "new")).collect::<Vec<_>>()).unwrap();
    let mut rows = within.range(..).unwrap();
    assert_eq!(rows.next().unwrap().unwrap().values(), row(0, "new"));
    for id in 0..ROWS {
        match id % 2 {
            0 => drop(within.delete(&[id.into()]).unwrap()),
            _ => drop(within.update(&[id.into()], &[("n", 50i64.into())]).unwrap()),
        }
    }
    transaction.commit().unwrap();
    db.truncate_table("t").unwrap();
    let rest: Vec<Vec<Value>> = rows.map(|row| row.unwrap().values().to_vec()).collect();
    assert_eq!(rest, (1..ROWS).map(|id| row(id, "new")).collect::<Vec<_>>());
}

#[test]
fn rows_in_files_expire() {
    let machine = Simulation::new(3, SimOptions::default());
    let db = small().environment(machine.environment()).open("db").unwrap();
    let bucket = db.bucket("b").unwrap();
    let transaction = db.begin().unwrap();
    let entries = transaction.bucket("b").unwrap();
    for n in 0..1_000 {
        let ttl = if n % 2 == 0 { Ttl::After(Duration::from_secs(60)) } else { Ttl::Never };
        entries.put_with(format!("{n:05}"), "value", ttl).unwrap();
    }
    assert_eq!(entries.len().unwrap(), 1_000);
    transaction.commit().unwrap();
    assert_eq!(bucket.len().unwrap(), 1_000);
    machine.advance_clock(Duration::from_secs(61));
    assert_eq!(bucket.len().unwrap(), 500);
    // Their keys are free.
    let transaction = db.begin().unwrap();
    let entries = transaction.bucket("b").unwrap();
    for n in 0..1_000 {
        entries.put(format!("{n:05}"), "again").unwrap();
    }
    transaction.commit().unwrap();
    assert_eq!(bucket.len().unwrap(), 1_000);
    is_sound(&db);
}

/// The shape of a bucket.
fn bucket_schema() -> Schema {
    let schema = Schema::builder().field("key", DataType::Bytes).field("value", DataType::Bytes);
    let schema = schema.nullable("expires_at", DataType::Timestamp).primary_key(["key"]);
    schema.ordered_by_key().expires_by_elapsed("expires_at").bucket().build().unwrap()
}

#[test]
fn row_ids_of_a_bucket_that_the_transaction_made_are_given_once() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    let transaction = db.begin().unwrap();
    transaction.create_table("b", bucket_schema()).unwrap();
    let entries = transaction.bucket("b").unwrap();
    for n in 0..1_003 {
        entries.put(format!("{n:05}"), format!("value {n}")).unwrap();
    }
    transaction.commit().unwrap();
    let bucket = db.bucket("b").unwrap();
    for n in 2_000..2_010 {
        bucket.put(format!("{n:05}"), "more").unwrap();
        assert!(bucket.remove(format!("{n:05}")).unwrap());
    }
    is_sound(&db);
    drop((bucket, db));
    let db = small().open(&dir.0).unwrap();
    assert_eq!(db.bucket("b").unwrap().len().unwrap(), 1_003);
    is_sound(&db);
}

#[test]
fn what_is_put_after_an_alteration_was_taken_back_has_the_fields_of_before() {
    let dir = Directory::new("spill");
    let db = small().open(&dir.0).unwrap();
    db.create_table("t", schema().build().unwrap()).unwrap();
    let transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    transaction.alter_table("t", &[Alteration::DropField("text".into())]).unwrap();
    let short = vec![1i64.into(), 2i64.into()];
    transaction.table("t").unwrap().insert(&short).unwrap();
    transaction.rollback_to(savepoint).unwrap();
    let within = transaction.table("t").unwrap();
    within.insert_many(&(0..ROWS).map(|id| row(id, "new")).collect::<Vec<_>>()).unwrap();
    assert_eq!(within.count().unwrap(), ROWS.unsigned_abs());
    let in_order: Vec<Vec<Value>> =
        within.range(..).unwrap().map(|row| row.unwrap().values().to_vec()).collect();
    assert_eq!(in_order, (0..ROWS).map(|id| row(id, "new")).collect::<Vec<_>>());
    transaction.commit().unwrap();
    assert_eq!(all(&db, "t").len(), 3_000);
    is_sound(&db);
}

#[test]
fn an_expired_row_holds_no_value_against_rows_in_files() {
    let machine = Simulation::new(3, SimOptions::default());
    let db = small().environment(machine.environment()).open("db").unwrap();
    let unique = Schema::builder()
        .field("id", DataType::I64)
        .field("text", DataType::Text)
        .nullable("ends", DataType::Timestamp)
        .primary_key(["id"])
        .expires_by("ends")
        .add_index(NewIndex::new("by_text", ["text"]).unique());
    let table = db.create_table("t", unique.build().unwrap()).unwrap();
    let row = |id: i64, text: i64, ends: Value| -> Vec<Value> {
        vec![id.into(), format!("text {text}").into(), ends]
    };
    let end = Value::Timestamp(machine.environment().clock.wall_us() + 60_000_000);
    table.insert_many(&(0..500).map(|id| row(id, id, end.clone())).collect::<Vec<_>>()).unwrap();
    machine.advance_clock(Duration::from_secs(61));
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within
        .insert_many(&(0..1_000).map(|id| row(id + 5_000, id, Value::Null)).collect::<Vec<_>>())
        .unwrap();
    transaction.commit().unwrap();
    assert_eq!(table.count().unwrap(), 1_000);
    is_sound(&db);
}

/// A version that was hidden once the table had been altered, in a file, was not known before that.
#[test]
fn what_is_hidden_after_an_alteration_is_hidden_when_that_is_taken_back() {
    let dir = Directory::new("spill");
    let db = small().transaction_limit(4_000).open(&dir.0).unwrap();
    let key = |n: u64| n.to_le_bytes();
    let row = |n: u64, value: &[u8]| vec![key(n).to_vec().into(), value.to_vec().into()];
    let schema = Schema::builder().field("key", DataType::Bytes).field("value", DataType::Bytes);
    let schema = schema.primary_key(["key"]).ordered_by_key();
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    table.insert_many(&(0..20).map(|n| row(n, b"old")).collect::<Vec<_>>()).unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.upsert(&row(3, b"one")).unwrap();
    let savepoint = transaction.savepoint();
    within.upsert(&row(3, b"two")).unwrap();
    let more = Field::new(FieldId(0), "more".into(), DataType::I64, false);
    let more = Field { initial: Value::Int(5), ..more };
    transaction.alter_table("t", &[Alteration::AddField(more)]).unwrap();
    let altered = transaction.table("t").unwrap();
    for n in 1_000..1_100 {
        altered.upsert(&[row(n, &[1; 100]), vec![1i64.into()]].concat()).unwrap();
    }
    assert!(files_of_segments(&dir) > 0, "{:?}", dir.files());
    transaction.rollback_to(savepoint).unwrap();
    let within = transaction.table("t").unwrap();
    let third = [Value::from(key(3).to_vec())];
    let one = Value::from(b"one".to_vec());
    assert_eq!(within.get(&third).unwrap().unwrap().get("value"), Some(&one));
    assert_eq!(within.count().unwrap(), 20);
    transaction.commit().unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(table.get(&third).unwrap().unwrap().get("value"), Some(&one));
    is_sound(&db);
}

/// First committer wins for a row that was added and removed again, too, wherever that was noted.
#[test]
fn a_key_that_came_and_went_is_a_conflict_when_another_puts_it() {
    for is_spilled in [false, true] {
        let dir = Directory::new("spill-came-and-went");
        let db = small().open(&dir.0).unwrap();
        let table = db.create_table("t", schema().build().unwrap()).unwrap();
        let transaction = db.begin().unwrap();
        let within = transaction.table("t").unwrap();
        within.insert(&row(-1, "mine")).unwrap();
        assert!(within.delete(&[(-1i64).into()]).unwrap());
        for id in 0..if is_spilled { ROWS } else { 1 } {
            within.insert(&row(id, "new")).unwrap();
        }
        assert_eq!(files_of_segments(&dir) > 1, is_spilled, "{:?}", dir.files());
        table.insert(&row(-1, "theirs")).unwrap();
        let error = transaction.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}, spilled: {is_spilled}");
        assert_eq!(all(&db, "t"), [row(-1, "theirs")]);
        is_sound(&db);
    }
}
