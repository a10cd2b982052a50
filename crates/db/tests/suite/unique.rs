//! Unique indexes: no two rows have the same values, whoever writes them and however.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, ErrorKind, Load, NewIndex, Options, Query, Schema, Table, Value,
};
use esker_query::model::{
    Change, ConflictUpdate, Expr, Function, Insert, InsertRows, OnConflict, Operator, Update,
};

fn schema(keyed: bool) -> Schema {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("mail", DataType::Text)
        .nullable("n", DataType::I32)
        .add_index(NewIndex::new("by_mail", ["mail"]).unique())
        .add_index(NewIndex::new("by_id_n", ["id", "n"]).unique());
    if keyed { schema.primary_key(["id"]) } else { schema }.build().unwrap()
}

fn row(id: i64, mail: &str) -> Vec<Value> {
    let mail = if mail.is_empty() { Value::Null } else { mail.into() };
    vec![Value::Int(id), mail, Value::Null]
}

fn small() -> Options {
    Options::new().segment_limit(50).group_limit(40, 1 << 20)
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

fn taken<T>(result: esker::Result<T>) -> String {
    let Err(e) = result else { panic!("expected a refusal") };
    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
    e.to_string()
}

fn filled(db: &Database) -> Table {
    let t = db.create_table("t", schema(true)).unwrap();
    let rows: Vec<_> = (0..100).map(|i| row(i, &format!("m{i}"))).collect();
    t.insert_many(&rows).unwrap();
    t
}

#[test]
fn every_single_write_is_refused_that_would_give_a_value_twice() {
    for keyed in [true, false] {
        let db = Options::new().memory().unwrap();
        let t = db.create_table("t", schema(keyed)).unwrap();
        let first = t.insert(&row(1, "a")).unwrap();
        let second = t.insert(&row(2, "b")).unwrap();
        let key = |id: i64, row_id: u64| vec![if keyed { id.into() } else { Value::Uint(row_id) }];
        let e = taken(t.insert(&row(3, "a")));
        assert_eq!(e, "unique index \"by_mail\": mail = a exists already");
        taken(t.upsert(&row(3, "a")));
        taken(t.update(&key(2, second), &[("mail", "a".into())]));
        taken(t.insert_if_absent(&row(3, "a")));
        let is_b = Expr::field("mail").binary(Operator::Eq, Expr::literal("b"));
        taken(t.update_if(&key(2, second), &[("mail", "a".into())], &is_b));
        taken(t.insert_many(&[row(5, "e"), row(6, "f"), row(7, "e")]));
        taken(t.insert_many(&[row(5, "e"), row(6, "b")]));
        assert_eq!(t.count().unwrap(), 2);
        // The same row may keep its value, and NULL is never the same.
        assert!(t.update(&key(1, first), &[("mail", "a".into()), ("n", 5i32.into())]).unwrap());
        t.insert_many(&[row(8, ""), row(9, "")]).unwrap();
        // What a row gave up is free.
        assert!(t.update(&key(1, first), &[("mail", "c".into())]).unwrap());
        t.insert(&row(10, "a")).unwrap();
        assert!(t.delete(&key(2, second)).unwrap());
        t.insert(&row(11, "b")).unwrap();
        taken(t.insert(&row(12, "c")));
        is_sound(&db);
    }
}

#[test]
fn several_fields_are_compared_together() {
    let db = Options::new().memory().unwrap();
    let schema = schema(false).alter(&[Alteration::DropIndex("by_mail".into())]).unwrap();
    let t = db.create_table("t", schema).unwrap();
    t.insert(&[1i64.into(), "x".into(), 1i32.into()]).unwrap();
    t.insert(&[1i64.into(), "x".into(), 2i32.into()]).unwrap();
    t.insert(&[2i64.into(), "x".into(), 1i32.into()]).unwrap();
    t.insert_many(&[row(1, "x"), row(1, "x")]).unwrap();
    let e = taken(t.insert(&[1i64.into(), "y".into(), 2i32.into()]));
    assert_eq!(e, "unique index \"by_id_n\": id = 1, n = 2 exists already");
}

#[test]
fn rows_of_one_statement_may_exchange_their_values() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let schema = schema.primary_key(["id"]).add_index(NewIndex::new("by_n", ["n"]).unique());
    let t = db.create_table("t", schema.build().unwrap()).unwrap();
    let rows: Vec<_> = (0..50i64).map(|i| vec![i.into(), i.into()]).collect();
    t.insert_many(&rows).unwrap();
    let set = |expr: Expr| {
        let set = vec![("n".to_owned(), expr)];
        Change::Update(Update { table: "t".into(), set, ..Update::default() })
    };
    let shifted = Expr::field("n").binary(Operator::Add, Expr::literal(1i64));
    assert_eq!(db.change(&set(shifted)).unwrap(), 50);
    let e = taken(db.change(&set(Expr::Call(Function::Abs, vec![Expr::literal(7i64)]))));
    assert!(e.contains("n = 7 comes twice in one commit"), "{e}");
    let swapped = Expr::literal(51i64).binary(Operator::Subtract, Expr::field("n"));
    assert_eq!(db.change(&set(swapped)).unwrap(), 50);
    is_sound(&db);
}

fn insert(rows: &[(i64, &str, i32)], target: &[&str], on_conflict: OnConflict) -> Change {
    let value = |(id, mail, n): &(i64, &str, i32)| {
        vec![Expr::literal(*id), Expr::literal(*mail), Expr::literal(*n)]
    };
    let rows = InsertRows::Values(rows.iter().map(value).collect());
    let conflict_key = target.iter().map(ToString::to_string).collect();
    Change::Insert(Insert { rows, on_conflict, conflict_key, ..Insert::values("t", Vec::new()) })
}

fn set_n() -> OnConflict {
    let sum = Expr::field("n").binary(Operator::Add, Expr::field("excluded.n"));
    OnConflict::Update(ConflictUpdate { set: vec![("n".to_owned(), sum)], filter: None })
}

#[test]
fn a_conflict_may_be_about_a_unique_index() {
    for keyed in [true, false] {
        let db = Options::new().memory().unwrap();
        let t = db.create_table("t", schema(keyed)).unwrap();
        t.insert(&[1i64.into(), "a".into(), 10i32.into()]).unwrap();
        let n = |mail: &str| {
            let mut query = Query::table("t");
            query.select(Expr::field("n"));
            query.filter = Some(Expr::field("mail").binary(Operator::Eq, Expr::literal(mail)));
            let found = db.query(&query);
            found.unwrap().to_rows()[0][0].clone()
        };
        let rows = [(2, "a", 1), (3, "b", 2), (4, "b", 3), (5, "a", 4)];
        assert_eq!(db.change(&insert(&rows, &["mail"], set_n())).unwrap(), 4);
        assert_eq!((n("a"), n("b"), t.count().unwrap()), (15i32.into(), 5i32.into(), 2));
        assert_eq!(db.change(&insert(&rows, &["mail"], OnConflict::Skip)).unwrap(), 0);
        let rows = [(6, "c", 1), (7, "c", 2), (8, "b", 2), (9, "d", 1)];
        assert_eq!(db.change(&insert(&rows, &[], OnConflict::Skip)).unwrap(), 2);
        assert_eq!(db.change(&insert(&rows[..1], &["n", "id"], set_n())).unwrap(), 1);
        if keyed {
            // Another index than the one that is named.
            taken(db.change(&insert(&[(10, "d", 1)], &["id"], OnConflict::Skip)));
            taken(db.change(&insert(&[(9, "x", 1)], &["mail"], OnConflict::Skip)));
        }
        let e = db.change(&insert(&rows, &["n"], OnConflict::Skip)).unwrap_err();
        assert!(e.to_string().contains("unique index \"by_mail\", (mail)"), "{e}");
        is_sound(&db);
    }
}

#[test]
fn values_stay_unique_through_seals_merges_and_reopening() {
    let dir = Directory::new("unique");
    let mut db = small().open(&dir.0).unwrap();
    filled(&db);
    for round in 0..4i64 {
        let t = db.table("t").unwrap();
        for i in 0..100i64 {
            taken(t.insert(&row(1_000 + i, &format!("m{i}"))));
        }
        // Each value moves to another row, and back in the end.
        let give = |i: i64| format!("m{}", (i + round + 1) % 100);
        let rows: Vec<_> = (0..100).map(|i| row(i, &give(i))).collect();
        t.upsert_many(&rows).unwrap();
        t.upsert_many(&(0..100).map(|i| row(i, &format!("m{i}"))).collect::<Vec<_>>()).unwrap();
        t.delete(&[round.into()]).unwrap();
        t.insert(&row(round, &format!("m{round}"))).unwrap();
        match round {
            0 => db.wait_idle().unwrap(),
            1 => db.checkpoint().unwrap(),
            2 => drop(db.compact(true, &mut |_, _| ()).unwrap()),
            _ => {}
        }
        is_sound(&db);
        db.close().unwrap();
        db = small().open(&dir.0).unwrap();
        is_sound(&db);
    }
}

fn load(t: &Table) -> Load {
    t.load().unwrap()
}

fn push(load: &mut Load, rows: impl IntoIterator<Item = Vec<Value>>) -> esker::Result<()> {
    rows.into_iter().try_for_each(|row| load.push_row(&row))
}

fn mails(range: std::ops::Range<i64>, from: i64) -> impl Iterator<Item = Vec<Value>> {
    range.map(move |i| row(i, &format!("m{}", i - from)))
}

#[test]
fn a_load_is_refused_that_would_give_a_value_twice() {
    let dir = Directory::new("unique-load");
    let db = small().open(&dir.0).unwrap();
    let t = filled(&db);
    // In the table, within a segment, between segments, and in a load that is one commit.
    for (count, again) in [(200, 50), (300, 299), (300, 120), (10, 5)] {
        let mut load = load(&t);
        let rows =
            mails(1_000..1_000 + count, 500).chain([row(9_000, &format!("m{}", 500 + again))]);
        let e = taken(push(&mut load, rows).and_then(|()| load.finish()));
        assert!(e.contains("unique index \"by_mail\": mail = m"), "{e}");
        assert_eq!(t.count().unwrap(), 100);
        is_sound(&db);
    }
    let mut load = load(&t);
    push(&mut load, mails(1_000..1_300, 0)).unwrap();
    push(&mut load, (0..100).map(|i| row(2_000 + i, ""))).unwrap();
    load.finish().unwrap();
    is_sound(&db);
    taken(t.insert(&row(5_000, "m1299")));
    db.wait_idle().unwrap();
    taken(t.insert(&row(5_000, "m1001")));
    is_sound(&db);
}

#[test]
fn a_load_that_skips_leaves_out_rows_whose_values_exist() {
    for keyed in [true, false] {
        for count in [20, 200] {
            let db = small().memory().unwrap();
            let t = db.create_table("t", schema(keyed)).unwrap();
            t.insert_many(&mails(0..30, 0).collect::<Vec<_>>()).unwrap();
            let mut load = load(&t);
            load.skip_existing().unwrap();
            // m10 to m29 exist; what a row would have had that was left out is free.
            push(&mut load, mails(1_000..1_000 + count, 990)).unwrap();
            push(&mut load, [row(5, "free"), row(3_000, "free"), row(3_001, "free")]).unwrap();
            load.finish().unwrap();
            // Without a key, the first row with the value is 5.
            let expected = 30 + (count - 20) + 1;
            assert_eq!(t.count().unwrap(), u64::try_from(expected).unwrap(), "{keyed} {count}");
            let free = if keyed { 3_000i64 } else { 5 };
            let mut query = Query::table("t");
            query.select(Expr::field("id"));
            query.filter = Some(Expr::field("mail").binary(Operator::Eq, Expr::literal("free")));
            let found = db.query(&query);
            assert_eq!(found.unwrap().to_rows(), [[free.into()]]);
            is_sound(&db);
        }
    }
}

#[test]
fn a_load_that_replaces_may_give_values_to_other_rows() {
    for (rows, is_right) in [
        // Every row gets the value of the next one.
        ((0..100).map(|i| row(i, &format!("m{}", (i + 1) % 100))).collect::<Vec<_>>(), true),
        // The last one has nobody to give its value up.
        ((1..100).map(|i| row(i, &format!("m{}", (i + 1) % 100))).collect(), false),
        // A row of the load gives its value up to a later one.
        (mails(0..100, -1_000).chain([row(0, "x"), row(1, "m1000")]).collect(), true),
        (mails(0..100, -1_000).chain([row(1, "m1000")]).collect(), false),
    ] {
        let db = small().memory().unwrap();
        let t = filled(&db);
        let mut load = load(&t);
        load.replace_existing().unwrap();
        let result = push(&mut load, rows).and_then(|()| load.finish());
        if is_right {
            result.unwrap();
        } else {
            taken(result);
        }
        is_sound(&db);
    }
}

#[test]
fn a_writer_and_a_load_do_not_get_one_value_both() {
    let db = small().memory().unwrap();
    let t = filled(&db);
    let mut first = load(&t);
    push(&mut first, mails(1_000..1_100, 500)).unwrap();
    first.wait().unwrap();
    let e = t.insert(&row(1, "m510")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "the key comes first: {e}");
    let e = t.insert(&row(5_000, "m510")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    t.insert(&row(5_001, "later")).unwrap();
    let pushed = push(&mut first, [row(5_002, "later")]).and_then(|()| first.finish());
    assert_eq!(pushed.unwrap_err().kind(), ErrorKind::Conflict);
    // What it held is free.
    t.insert(&row(5_000, "m510")).unwrap();
    is_sound(&db);
}

#[test]
fn of_two_that_race_one_has_the_value() {
    let dir = Directory::new("unique-race");
    let db = small().open(&dir.0).unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    let (won, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let (t, won, lost) = (&t, &won, &lost);
            scope.spawn(move || {
                for i in 0..100i64 {
                    let counter = match t.insert(&row(thread * 1_000 + i, &format!("m{i}"))) {
                        Ok(_) => won,
                        Err(e) if e.kind() == ErrorKind::AlreadyExists => lost,
                        Err(e) => panic!("{e}"),
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((won.into_inner(), lost.into_inner()), (100, 300));
    is_sound(&db);
}

#[test]
fn large_commits_and_streams_are_refused_likewise() {
    let dir = Directory::new("unique-large");
    let db = small().commit_limit(1_000).open(&dir.0).unwrap();
    let t = filled(&db);
    let fresh: Vec<_> = mails(1_000..1_500, 0).collect();
    taken(t.insert_many(&[fresh.clone(), vec![row(8_000, "m7")]].concat()));
    taken(t.insert_many(&[fresh.clone(), vec![row(8_000, "m1007")]].concat()));
    t.insert_many(&fresh).unwrap();
    taken(t.insert(&row(8_000, "m1499")));
    let exchanged: Vec<_> = (0..100).map(|i| row(i, &format!("m{}", 99 - i))).collect();
    t.upsert_many(&exchanged).unwrap();
    is_sound(&db);
    for keyed in [true, false] {
        let name = if keyed { "a" } else { "b" };
        let t = db.create_table(name, schema(keyed)).unwrap();
        let mut appender = t.appender();
        appender.append(&row(1, "x")).unwrap();
        appender.flush().unwrap();
        appender.append(&row(2, "x")).unwrap();
        taken(appender.finish());
    }
}

#[test]
fn creating_an_index_refuses_rows_that_collide_and_changes_nothing() {
    let dir = Directory::new("unique-create");
    let db = small().open(&dir.0).unwrap();
    let plain = Schema::builder()
        .field("id", DataType::I64)
        .nullable("mail", DataType::Text)
        .nullable("n", DataType::I32)
        .primary_key(["id"]);
    let t = db.create_table("t", plain.build().unwrap()).unwrap();
    let mut load = load(&t);
    push(&mut load, mails(0..300, 0)).unwrap();
    load.finish().unwrap();
    t.insert_many(&[row(1_000, ""), row(1_001, ""), row(1_002, "m7")]).unwrap();
    let by_mail = NewIndex::new("by_mail", ["mail"]).unique();
    let version = t.schema().version();
    let e = db.create_index("t", by_mail.clone()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    let expected =
        "unique index \"by_mail\": mail = m7 is in two rows, key id = 7 and key id = 1002";
    assert_eq!(e.to_string(), expected);
    assert_eq!(t.schema().version(), version);
    t.insert(&row(1_003, "m7")).unwrap();
    // A load under way did not know of it.
    let mut late = t.load().unwrap();
    push(&mut late, mails(2_000..2_100, 0)).unwrap();
    late.wait().unwrap();
    t.delete(&[1_002i64.into()]).unwrap();
    t.update(&[1_003i64.into()], &[("mail", "other".into())]).unwrap();
    db.create_index("t", by_mail).unwrap();
    taken(t.insert(&row(1_004, "m7")));
    assert_eq!(late.finish().unwrap_err().kind(), ErrorKind::Conflict);
    is_sound(&db);
    db.close().unwrap();
    let db = small().open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    taken(t.insert(&row(1_004, "m7")));
    is_sound(&db);
    db.drop_index("t", "by_mail").unwrap();
    t.insert(&row(1_004, "m7")).unwrap();
    is_sound(&db);
}

#[test]
fn an_index_is_created_beside_writers() {
    let db = small().memory().unwrap();
    let t = filled(&db);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..2i64 {
            let (t, done) = (&t, &done);
            scope.spawn(move || {
                for i in 0.. {
                    let n = [("n", Value::Int(i % 1_000 * 2 + thread))];
                    t.update(&[(i % 40 + 50 * thread).into()], &n).unwrap();
                    if done.load(Ordering::Relaxed) > 0 {
                        break;
                    }
                }
            });
        }
        for _ in 0..20 {
            // The rows of a thread never have one value twice among 40 in a row.
            db.create_index("t", NewIndex::new("by_n", ["n"]).unique()).unwrap();
            db.drop_index("t", "by_n").unwrap();
        }
        done.store(1, Ordering::Relaxed);
    });
    is_sound(&db);
}

#[test]
fn an_update_beside_a_replacing_load_does_not_let_it_have_the_value() {
    let db = small().memory().unwrap();
    let t = filled(&db);
    let mut replacing = load(&t);
    replacing.replace_existing().unwrap();
    // Row 7 has the value, and a later row of the load might replace it.
    push(&mut replacing, [row(5_000, "m7")]).unwrap();
    push(&mut replacing, mails(1_000..1_100, 500)).unwrap();
    replacing.wait().unwrap();
    let e = t.update(&[Value::Int(7)], &[("n", Value::Int(1))]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
    taken(replacing.finish());
    t.update(&[Value::Int(7)], &[("n", Value::Int(1))]).unwrap();
    is_sound(&db);
}

#[test]
fn a_large_load_may_replace_rows_that_keep_their_values() {
    let db = Options::new().background(false).memory().unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    let rows = 70_000i64;
    for n in [1, 2] {
        let mut replacing = load(&t);
        replacing.replace_existing().unwrap();
        let filled = (0..rows).map(|id| vec![id.into(), format!("m{id}").into(), Value::Int(n)]);
        push(&mut replacing, filled).unwrap();
        replacing.finish().unwrap();
    }
    assert_eq!(t.count().unwrap(), rows.unsigned_abs());
    taken(t.insert(&row(rows, "m9")));
    is_sound(&db);
}

#[test]
fn a_row_that_is_updated_often_is_found_by_its_value_after_reopening() {
    let dir = Directory::new("unique-often");
    let db = small().group_limit(100_000, 64 << 20).open(&dir.0).unwrap();
    let t = filled(&db);
    for n in 0..3_000 {
        t.update(&[Value::Int(7)], &[("n", Value::Int(n))]).unwrap();
    }
    drop((t, db));
    let db = small().group_limit(100_000, 64 << 20).open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    taken(t.insert(&row(500, "m7")));
    t.update(&[Value::Int(7)], &[("mail", "other".into())]).unwrap();
    t.insert(&row(500, "m7")).unwrap();
    is_sound(&db);
}

/// Each time a value came back it had one more entry, all of which were looked at from then on.
#[test]
fn a_value_that_comes_and_goes_has_one_entry() {
    let dir = Directory::new("unique-again");
    let options = || small().group_limit(100_000, 64 << 20).background(false);
    let entries = |db: &Database| db.check().unwrap().index_entries;
    let db = options().open(&dir.0).unwrap();
    let t = db.create_table("t", schema(false)).unwrap();
    for i in 0..9 {
        t.insert(&row(i, &format!("m{i}"))).unwrap();
    }
    let last = t.insert(&row(9, "m9")).unwrap();
    let before = entries(&db);
    for i in 0..1_000 {
        let again = t.insert(&row(1_000, "again")).unwrap();
        t.delete(&[Value::Uint(again)]).unwrap();
        let mail = if i % 2 == 0 { "one" } else { "other" };
        t.update(&[Value::Uint(last)], &[("mail", mail.into())]).unwrap();
    }
    assert!(entries(&db) < before + 10, "{} entries, {before} before", entries(&db));
    t.insert(&row(1_000, "again")).unwrap();
    for mail in ["again", "other", "m8"] {
        taken(t.insert(&row(1_001, mail)));
    }
    t.insert(&row(1_001, "one")).unwrap();
    is_sound(&db);
    drop((t, db));
    let db = options().open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    assert!(entries(&db) < before + 10, "{} entries, {before} before", entries(&db));
    t.insert(&row(2_000, "m9")).unwrap();
    for compacted in [false, true] {
        for mail in ["again", "one", "other", "m8", "m9"] {
            taken(t.insert(&row(3_000, mail)));
        }
        is_sound(&db);
        if !compacted {
            db.compact(true, &mut |_, _| ()).unwrap();
        }
    }
}

/// An entry that a snapshot's row had is another's now, while segments are written anew.
#[test]
fn values_that_come_back_stay_unique_beside_snapshots_and_merges() {
    let dir = Directory::new("unique-back");
    let db = small().background(false).open(&dir.0).unwrap();
    let t = filled(&db);
    let mut snapshots = Vec::new();
    for round in 0..30i64 {
        for i in 0..20 {
            let (from, to) = (round * 20 + i, (round + 1) * 20 + i);
            t.delete(&[Value::Int(1_000 + from)]).unwrap();
            t.insert(&row(1_000 + to, &format!("back {i}"))).unwrap();
            taken(t.insert(&row(9_999, &format!("back {i}"))));
        }
        if round % 3 == 0 {
            snapshots.push(db.snapshot().unwrap());
        }
        if round % 4 == 0 {
            snapshots.drain(..snapshots.len() / 2);
            db.compact(true, &mut |_, _| ()).unwrap();
            is_sound(&db);
        }
    }
    drop(snapshots);
    db.compact(true, &mut |_, _| ()).unwrap();
    is_sound(&db);
    assert_eq!(t.count().unwrap(), 120);
}

#[test]
fn a_unique_index_that_comes_during_a_transaction_is_asked() {
    let schema = Schema::builder().field("id", DataType::I64).field("text", DataType::Text);
    let schema = schema.primary_key(["id"]).build().unwrap();
    let row = |id: i64| -> Vec<Value> { vec![id.into(), "same".into()] };
    let db = Options::new().memory().unwrap();
    let table = db.create_table("t", schema).unwrap();
    table.insert(&row(1)).unwrap();
    let transaction = db.begin().unwrap();
    transaction.table("t").unwrap().insert(&row(2)).unwrap();
    db.create_index("t", NewIndex::new("by_text", ["text"]).unique()).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(table.count().unwrap(), 1);
    let again = db.begin().unwrap();
    again.table("t").unwrap().insert(&row(2)).unwrap();
    assert_eq!(again.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(db.recount(true).unwrap(), []);
}

/// What a unique index leads to keeps its key: its row was found by neither key afterwards.
#[test]
fn a_row_of_another_key_takes_no_place_that_a_unique_index_finds() {
    let db = Options::new().memory().unwrap();
    let table = db.create_table("t", schema(true)).unwrap();
    table.insert(&row(1, "a")).unwrap();
    let insert = |rows: &[(i64, &str)]| {
        let values = rows.iter().map(|(id, mail)| row(*id, mail).into_iter().map(Expr::literal));
        let mut insert = Insert::values("t", values.map(Iterator::collect).collect());
        insert.on_conflict = OnConflict::Replace;
        insert.conflict_key = vec!["mail".into()];
        Change::Insert(insert)
    };
    for rows in [&[(2, "a")][..], &[(3, "b"), (4, "b")]] {
        let e = db.change(&insert(rows)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
        let transaction = db.begin().unwrap();
        let e = transaction.change(&insert(rows)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
        transaction.commit().unwrap();
    }
    assert_eq!(db.change(&insert(&[(1, "a"), (5, "c"), (5, "c")])).unwrap(), 3);
    for (id, mail) in [(1, "a"), (5, "c")] {
        assert_eq!(table.get(&[id.into()]).unwrap().unwrap().values(), row(id, mail));
    }
    assert_eq!(table.count().unwrap(), 2);
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}
