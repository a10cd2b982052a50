//! Transactions: what they see, what others see of them, and who wins.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{
    DataType, Database, ErrorKind, Isolation, NewIndex, Options, Query, Schema, TransactionOptions,
    Value,
};
use esker_query::model::{
    Change, Delete, Expr, Insert, InsertRows, OnConflict, Operator, OrderBy, Update,
};

fn accounts(db: &Database) -> esker::Table {
    let schema = Schema::builder().field("id", DataType::I64).field("cents", DataType::I64);
    let schema = schema.nullable("name", DataType::Text).primary_key(["id"]).build().unwrap();
    db.create_table("accounts", schema).unwrap()
}

fn row(id: i64, cents: i64, name: &str) -> Vec<Value> {
    vec![id.into(), cents.into(), name.into()]
}

fn count(table: &str, filter: Option<Expr>) -> Query {
    let mut query = Query::table(table);
    query.select(Expr::count());
    query.filter = filter;
    query
}

fn is(field: &str, value: impl Into<Value>) -> Expr {
    Expr::field(field).binary(Operator::Eq, Expr::literal(value))
}

fn one(result: esker::QueryResult) -> Value {
    result.to_rows()[0][0].clone()
}

fn serializable() -> TransactionOptions {
    TransactionOptions::new().isolation(Isolation::Serializable)
}

#[test]
fn a_transaction_sees_its_changes_and_nobody_else_does() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert_many(&[row(1, 10, "a"), row(2, 20, "b"), row(3, 30, "c")]).unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.table("accounts").unwrap();
    within.insert(&row(4, 40, "d")).unwrap();
    assert!(within.update(&[2i64.into()], &[("cents", 25i64.into())]).unwrap());
    assert!(within.delete(&[1i64.into()]).unwrap());
    assert!(!within.delete(&[1i64.into()]).unwrap());
    assert!(within.get(&[1i64.into()]).unwrap().is_none());
    assert_eq!(within.get(&[2i64.into()]).unwrap().unwrap().get("cents"), Some(&25i64.into()));
    let ids = |rows: esker::KeyRange| -> Vec<Value> {
        rows.map(|row| row.unwrap().get("id").unwrap().clone()).collect()
    };
    assert_eq!(ids(within.range(..).unwrap()), [2i64, 3, 4].map(Value::Int));
    let sum = |cents: Value| {
        let mut query = Query::table("accounts");
        query.select(Expr::aggregate(esker_query::model::Aggregate::Sum, Expr::field("cents")));
        assert_eq!(one(transaction.query(&query).unwrap()), cents);
    };
    sum(95i64.into());
    // A later change shows in a later query.
    within.upsert(&row(4, 41, "d")).unwrap();
    sum(96i64.into());
    assert_eq!(t.count().unwrap(), 3);
    assert_eq!(t.get(&[2i64.into()]).unwrap().unwrap().get("cents"), Some(&20i64.into()));
    let at = transaction.commit().unwrap();
    assert!(at > 0);
    assert_eq!(ids(t.snapshot().unwrap().range(..).unwrap()), [2i64, 3, 4].map(Value::Int));
    assert_eq!(t.get(&[4i64.into()]).unwrap().unwrap().get("cents"), Some(&41i64.into()));
}

#[test]
fn what_is_rolled_back_or_dropped_was_never_there() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert(&row(1, 10, "a")).unwrap();
    let transaction = db.begin().unwrap();
    transaction.table("accounts").unwrap().delete(&[1i64.into()]).unwrap();
    transaction.rollback();
    {
        let transaction = db.begin().unwrap();
        transaction.table("accounts").unwrap().insert(&row(2, 10, "a")).unwrap();
    }
    assert_eq!(t.count().unwrap(), 1);
    // Nothing to do is no commit.
    let transaction = db.begin().unwrap();
    let read_at = transaction.read_at();
    assert!(transaction.is_unchanged());
    assert_eq!(transaction.commit().unwrap(), read_at);
}

#[test]
fn of_two_that_change_a_row_the_first_to_commit_wins() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert_many(&[row(1, 10, "a"), row(2, 20, "b")]).unwrap();
    let key = [Value::Int(1)];
    type Act = fn(&esker::TransactionTable<'_>, &[Value]);
    let update: Act = |t, key| assert!(t.update(key, &[("cents", 1i64.into())]).unwrap());
    let delete: Act = |t, key| assert!(t.delete(key).unwrap());
    let upsert: Act = |t, _| assert!(t.upsert(&row(1, 3, "z")).unwrap() > 0);
    for first in [update, delete, upsert] {
        for second in [update, delete, upsert] {
            t.upsert(&row(1, 10, "a")).unwrap();
            let (a, b) = (db.begin().unwrap(), db.begin().unwrap());
            first(&a.table("accounts").unwrap(), &key);
            second(&b.table("accounts").unwrap(), &key);
            b.table("accounts").unwrap().update(&[2i64.into()], &[("cents", 9i64.into())]).unwrap();
            a.commit().unwrap();
            let e = b.commit().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Conflict);
            assert!(e.is_retryable());
            let said = e.to_string();
            assert!(said.contains("\"accounts\"") && said.contains("id = 1"), "{said}");
            assert_eq!(t.get(&[2i64.into()]).unwrap().unwrap().get("cents"), Some(&20i64.into()));
        }
    }
    // Changes of no transaction count, too.
    let a = db.begin().unwrap();
    update(&a.table("accounts").unwrap(), &[2i64.into()]);
    t.update(&[2i64.into()], &[("name", "x".into())]).unwrap();
    assert_eq!(a.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn of_two_that_insert_a_key_the_first_to_commit_wins() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    let (a, b) = (db.begin().unwrap(), db.begin().unwrap());
    a.table("accounts").unwrap().insert(&row(1, 1, "a")).unwrap();
    b.table("accounts").unwrap().insert(&row(1, 2, "b")).unwrap();
    a.commit().unwrap();
    assert_eq!(b.commit().unwrap_err().kind(), ErrorKind::Conflict);
    // Put and removed since: the key is as absent as it was, but somebody has changed it.
    let a = db.begin().unwrap();
    a.table("accounts").unwrap().insert(&row(5, 2, "b")).unwrap();
    t.insert(&row(5, 1, "x")).unwrap();
    t.delete(&[5i64.into()]).unwrap();
    assert_eq!(a.commit().unwrap_err().kind(), ErrorKind::Conflict);
    // What exists is told at once.
    let a = db.begin().unwrap();
    let e = a.table("accounts").unwrap().insert(&row(1, 2, "b")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    // And is free once it is deleted in the transaction.
    a.table("accounts").unwrap().delete(&[1i64.into()]).unwrap();
    a.table("accounts").unwrap().insert(&row(1, 7, "again")).unwrap();
    a.commit().unwrap();
    assert_eq!(t.get(&[1i64.into()]).unwrap().unwrap().get("cents"), Some(&7i64.into()));
}

#[test]
fn of_two_that_take_a_unique_value_the_first_to_commit_wins() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    db.create_index("accounts", NewIndex::new("names", ["name"]).unique()).unwrap();
    t.insert(&row(1, 1, "ada")).unwrap();
    let (a, b, c) = (db.begin().unwrap(), db.begin().unwrap(), db.begin().unwrap());
    a.table("accounts").unwrap().insert(&row(2, 1, "bob")).unwrap();
    b.table("accounts").unwrap().insert(&row(3, 1, "bob")).unwrap();
    c.table("accounts").unwrap().insert(&row(4, 1, "ada")).unwrap();
    a.commit().unwrap();
    let e = b.commit().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
    assert_eq!(c.commit().unwrap_err().kind(), ErrorKind::AlreadyExists);
    // Within one transaction a value may wander.
    let a = db.begin().unwrap();
    let within = a.table("accounts").unwrap();
    within.update(&[1i64.into()], &[("name", "bob".into())]).unwrap();
    within.update(&[2i64.into()], &[("name", "ada".into())]).unwrap();
    a.commit().unwrap();
    let holds = |id: i64| t.get(&[id.into()]).unwrap().unwrap().get("name").unwrap().clone();
    assert_eq!((holds(1), holds(2)), ("bob".into(), "ada".into()));
}

#[test]
fn write_skew_is_allowed_by_snapshots_and_forbidden_by_serializable() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    let skew = |options: TransactionOptions, hold: bool, by_query: bool| {
        t.upsert_many(&[row(1, 50, "a"), row(2, 50, "b")]).unwrap();
        let (a, b) = (db.begin_with(options).unwrap(), db.begin_with(options).unwrap());
        for (transaction, mine, other) in [(&a, 1i64, 2i64), (&b, 2, 1)] {
            let within = transaction.table("accounts").unwrap();
            if by_query {
                transaction.query(&count("accounts", Some(is("cents", 50i64)))).unwrap();
            } else if hold {
                within.get_for_update(&[other.into()]).unwrap();
            } else {
                within.get(&[other.into()]).unwrap();
            }
            within.update(&[mine.into()], &[("cents", Value::Int(0))]).unwrap();
        }
        a.commit().unwrap();
        b.commit().map_err(|e| e.kind())
    };
    assert!(skew(TransactionOptions::new(), false, false).is_ok());
    assert!(skew(TransactionOptions::new(), false, true).is_ok());
    assert_eq!(skew(TransactionOptions::new(), true, false), Err(ErrorKind::Conflict));
    assert_eq!(skew(serializable(), false, false), Err(ErrorKind::Conflict));
    assert_eq!(skew(serializable(), false, true), Err(ErrorKind::Conflict));
}

#[test]
fn a_phantom_is_a_conflict_for_serializable() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    let log = Schema::builder().field("n", DataType::I64).build().unwrap();
    db.create_table("log", log).unwrap();
    let a = db.begin_with(serializable()).unwrap();
    assert_eq!(one(a.query(&count("accounts", Some(is("name", "new")))).unwrap()), 0u64.into());
    a.table("log").unwrap().insert(&[0i64.into()]).unwrap();
    t.insert(&row(9, 1, "new")).unwrap();
    let e = a.commit().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
    // A look-up of what is not there is a read, too.
    let a = db.begin_with(serializable()).unwrap();
    assert!(a.table("accounts").unwrap().get(&[10i64.into()]).unwrap().is_none());
    a.table("log").unwrap().insert(&[0i64.into()]).unwrap();
    t.insert(&row(10, 1, "new")).unwrap();
    assert_eq!(a.commit().unwrap_err().kind(), ErrorKind::Conflict);
    // Other keys of the table are free.
    let a = db.begin_with(serializable()).unwrap();
    assert!(a.table("accounts").unwrap().get(&[11i64.into()]).unwrap().is_none());
    a.table("log").unwrap().insert(&[0i64.into()]).unwrap();
    t.insert(&row(12, 1, "new")).unwrap();
    a.commit().unwrap();
    // Who only reads is never refused.
    let a = db.begin_with(serializable()).unwrap();
    a.query(&count("accounts", None)).unwrap();
    t.insert(&row(13, 1, "new")).unwrap();
    a.commit().unwrap();
}

#[test]
fn savepoints_lead_back() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert_many(&[row(1, 10, "a"), row(2, 20, "b")]).unwrap();
    let a = db.begin().unwrap();
    let within = a.table("accounts").unwrap();
    let ids = || {
        let mut query = Query::table("accounts");
        query.select(Expr::field("id")).select(Expr::field("cents"));
        let mut rows = a.query(&query).unwrap().to_rows();
        rows.sort();
        rows.iter().map(|row| format!("{}:{}", row[0], row[1])).collect::<Vec<_>>().join(" ")
    };
    within.update(&[1i64.into()], &[("cents", 11i64.into())]).unwrap();
    let first = a.savepoint();
    within.delete(&[2i64.into()]).unwrap();
    within.insert(&row(3, 30, "c")).unwrap();
    assert_eq!(ids(), "1:11 3:30");
    let second = a.savepoint();
    within.upsert(&row(2, 22, "b")).unwrap();
    within.update(&[3i64.into()], &[("cents", 33i64.into())]).unwrap();
    assert_eq!(ids(), "1:11 2:22 3:33");
    a.rollback_to(second).unwrap();
    assert_eq!(ids(), "1:11 3:30");
    a.rollback_to(first).unwrap();
    assert_eq!(ids(), "1:11 2:20");
    assert_eq!(a.rollback_to(second).unwrap_err().kind(), ErrorKind::InvalidInput);
    within.insert(&row(4, 40, "d")).unwrap();
    a.release(first).unwrap();
    assert_eq!(a.release(first).unwrap_err().kind(), ErrorKind::InvalidInput);
    // A failed call leaves nothing behind.
    assert!(within.insert_many(&[row(5, 1, ""), row(1, 1, "")]).is_err());
    assert_eq!(ids(), "1:11 2:20 4:40");
    a.commit().unwrap();
    assert_eq!(t.count().unwrap(), 3);
}

#[test]
fn statements_see_and_make_changes_of_the_transaction() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    db.create_index("accounts", NewIndex::new("names", ["name"]).unique()).unwrap();
    t.insert_many(&[row(1, 10, "a"), row(2, 20, "b")]).unwrap();
    let a = db.begin().unwrap();
    let more = Expr::field("cents").binary(Operator::Add, Expr::literal(1i64));
    let update =
        Update { table: "accounts".into(), set: vec![("cents".into(), more)], ..Update::default() };
    let update = Change::Update(update);
    assert_eq!(a.change(&update).unwrap(), 2);
    assert_eq!(a.change(&update).unwrap(), 2);
    let values =
        |id: i64, name: &str| vec![Expr::literal(id), Expr::literal(100i64), Expr::literal(name)];
    let insert = |rows: Vec<Vec<Expr>>, on_conflict: OnConflict, key: &[&str]| {
        Change::Insert(Insert {
            table: "accounts".into(),
            fields: Vec::new(),
            overriding: None,
            rows: InsertRows::Values(rows),
            on_conflict,
            conflict_key: key.iter().map(|name| (*name).to_owned()).collect(),
            conflict_expressions: Vec::new(),
            conflict_filter: None,
            returning: None,
        })
    };
    assert_eq!(a.change(&insert(vec![values(3, "c")], OnConflict::Fail, &[])).unwrap(), 1);
    let e = a.change(&insert(vec![values(4, "d"), values(3, "e")], OnConflict::Fail, &[]));
    assert_eq!(e.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let skipped =
        insert(vec![values(3, "x"), values(5, "a"), values(6, "f")], OnConflict::Skip, &[]);
    assert_eq!(a.change(&skipped).unwrap(), 1);
    let replaced = insert(vec![values(3, "y")], OnConflict::Replace, &[]);
    assert_eq!(a.change(&replaced).unwrap(), 1);
    let delete =
        Delete { table: "accounts".into(), filter: Some(is("cents", 12i64)), ..Delete::default() };
    assert_eq!(a.change(&Change::Delete(delete)).unwrap(), 1);
    assert_eq!(t.count().unwrap(), 2);
    a.commit().unwrap();
    let mut rows: Vec<String> = t
        .snapshot()
        .unwrap()
        .rows()
        .unwrap()
        .iter()
        .map(|(_, row)| format!("{} {} {}", row[0], row[1], row[2]))
        .collect();
    rows.sort();
    assert_eq!(rows, ["2 22 b", "3 100 y", "6 100 f"]);
}

#[test]
fn rows_with_generated_keys_keep_theirs() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("what", DataType::Text).build().unwrap();
    let events = db.create_table("events", schema).unwrap();
    let first = events.insert(&["a".into()]).unwrap();
    let a = db.begin().unwrap();
    let within = a.table("events").unwrap();
    let second = within.insert(&["b".into()]).unwrap();
    let other = events.insert(&["c".into()]).unwrap();
    assert!(within.update(&[Value::Uint(first)], &[("what", "A".into())]).unwrap());
    assert_eq!(within.get(&[Value::Uint(second)]).unwrap().unwrap().get("what"), Some(&"b".into()));
    assert!(within.get(&[Value::Uint(other)]).unwrap().is_none());
    assert_eq!(within.count().unwrap(), 2);
    a.commit().unwrap();
    let text =
        |id: u64| events.get(&[Value::Uint(id)]).unwrap().unwrap().get("what").unwrap().clone();
    assert_eq!([text(first), text(second), text(other)], ["A", "b", "c"].map(Value::from));
}

#[test]
fn tables_and_buckets_change_as_one() {
    let dir = tempfile();
    let db = Options::new().open(&dir).unwrap();
    let t = accounts(&db);
    let sessions = db.bucket("sessions").unwrap();
    sessions.put(b"old", b"1").unwrap();
    let long = vec![7u8; 200_000];
    let a = db.begin().unwrap();
    a.table("accounts").unwrap().insert(&row(1, 5, "a")).unwrap();
    let within = a.bucket("sessions").unwrap();
    within.put(b"new", &long).unwrap();
    assert!(within.remove(b"old").unwrap());
    assert_eq!(within.increment(b"count", 3).unwrap(), 3);
    assert_eq!(within.increment(b"count", 4).unwrap(), 7);
    assert_eq!(within.len().unwrap(), 2);
    let keys: Vec<_> = within.iter().unwrap().map(|e| e.unwrap().key().to_vec()).collect();
    assert_eq!(keys, [b"count".to_vec(), b"new".to_vec()]);
    assert_eq!(sessions.len().unwrap(), 1);
    a.commit().unwrap();
    drop((t, sessions));
    db.close().unwrap();
    let db = Options::new().open(&dir).unwrap();
    assert_eq!(db.table("accounts").unwrap().count().unwrap(), 1);
    let sessions = db.bucket("sessions").unwrap();
    assert_eq!(sessions.get(b"new").unwrap().unwrap().as_slice(), long);
    assert_eq!(sessions.increment(b"count", 0).unwrap(), 7);
    assert!(!sessions.contains(b"old").unwrap());
    drop(sessions);
    db.close().unwrap();
    esker_vfs::Environment::os().files.remove_dir_all(dir.as_ref()).unwrap();
}

fn tempfile() -> std::path::PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("esker-transactions-{}-{number}", std::process::id()))
}

#[test]
fn who_only_reads_never_changes_anything() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    let a = db.begin_with(TransactionOptions::new().read_only(true)).unwrap();
    let within = a.table("accounts").unwrap();
    let e = within.insert(&row(1, 1, "a")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ReadOnly);
    let e = within.get_for_update(&[1i64.into()]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ReadOnly);
    let e = a.change(&Change::Delete(Delete { table: "accounts".into(), ..Delete::default() }));
    assert_eq!(e.unwrap(), 0, "there is nothing to delete");
    t.insert(&row(1, 1, "a")).unwrap();
    assert_eq!(within.count().unwrap(), 0);
    a.commit().unwrap();
}

#[test]
fn a_counter_that_many_transactions_raise_loses_nothing() {
    let dir = tempfile();
    let db = Options::new().open(&dir).unwrap();
    let t = accounts(&db);
    t.insert(&row(1, 0, "a")).unwrap();
    let conflicts = Arc::new(AtomicU64::new(0));
    let raise = |options: TransactionOptions| {
        db.transact_with(options, |transaction| {
            conflicts.fetch_add(1, Ordering::Relaxed);
            let within = transaction.table("accounts")?;
            let row = within.get(&[1i64.into()])?.expect("the row");
            let Some(Value::Int(cents)) = row.get("cents") else { panic!("{row:?}") };
            within.update(&[1i64.into()], &[("cents", (cents + 1).into())])?;
            Ok(())
        })
    };
    #[allow(clippy::disallowed_methods, reason = "real threads")]
    std::thread::scope(|scope| {
        for options in [TransactionOptions::new(), serializable(), TransactionOptions::new()] {
            let raise = &raise;
            scope.spawn(move || (0..100).for_each(|_| raise(options).unwrap()));
        }
    });
    assert_eq!(t.get(&[1i64.into()]).unwrap().unwrap().get("cents"), Some(&300i64.into()));
    assert!(conflicts.load(Ordering::Relaxed) >= 300);
    drop(t);
    db.close().unwrap();
    esker_vfs::Environment::os().files.remove_dir_all(dir.as_ref()).unwrap();
}

#[test]
fn a_change_of_the_schema_or_a_dropped_table_is_a_conflict() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert(&row(1, 0, "a")).unwrap();
    let a = db.begin().unwrap();
    a.table("accounts").unwrap().insert(&row(2, 0, "b")).unwrap();
    let drop_name = esker::Alteration::DropField("name".into());
    db.alter_table("accounts", &[drop_name]).unwrap();
    // What it reads stays as it was.
    assert_eq!(a.table("accounts").unwrap().schema().fields().len(), 3);
    assert_eq!(a.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let a = db.begin().unwrap();
    a.table("accounts").unwrap().insert(&[2i64.into(), 5i64.into()]).unwrap();
    db.truncate_table("accounts").unwrap();
    assert_eq!(a.table("accounts").unwrap().count().unwrap(), 2);
    assert_eq!(a.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let a = db.begin().unwrap();
    a.table("accounts").unwrap().insert(&[2i64.into(), 5i64.into()]).unwrap();
    drop(t);
    db.drop_table("accounts").unwrap();
    assert_eq!(a.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn what_a_transaction_takes_of_memory_is_bounded() {
    if crate::is_on_disk() {
        return; // Others write to files.
    }
    let db = Options::new().memory().unwrap();
    accounts(&db);
    let a = db.begin_with(TransactionOptions::new().memory_limit(1 << 20)).unwrap();
    let within = a.table("accounts").unwrap();
    let name = "x".repeat(1_000);
    let e = (0..).find_map(|id| within.insert(&row(id, 0, &name)).err()).unwrap();
    assert_eq!(e.kind(), ErrorKind::OverBudget);
    assert!(e.to_string().contains("at most 1048576"), "{e}");
    let count = within.count().unwrap();
    assert!((500..1_000).contains(&count), "{count}");
    a.commit().unwrap();
}

#[test]
fn of_two_who_read_for_update_and_write_one_begins_again() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert_many(&[row(1, 50, "a"), row(2, 60, "b")]).unwrap();
    // Each moves what another row has: without holding it, what the other did would be lost.
    let take = |transaction: &esker::Transaction, from: i64, to: i64| {
        let mut query = Query::table("accounts");
        query.select(Expr::field("cents")).filter = Some(is("id", from));
        let cents = one(transaction.query_for_update(&query).unwrap());
        transaction.table("accounts").unwrap().update(&[to.into()], &[("cents", cents)]).unwrap();
    };
    let (a, b) = (db.begin().unwrap(), db.begin().unwrap());
    take(&a, 1, 2);
    take(&b, 2, 1);
    a.commit().unwrap();
    let e = b.commit().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert!(e.is_retryable());
    assert!(e.to_string().starts_with("table \"accounts\": key id = 2 was changed"), "{e}");
    assert_eq!(t.get(&[1i64.into()]).unwrap().unwrap().get("cents"), Some(&50i64.into()));
}

#[test]
fn a_query_for_update_holds_what_it_answers_and_nothing_else() {
    let db = Options::new().memory().unwrap();
    let t = accounts(&db);
    t.insert_many(&[row(1, 10, "a"), row(2, 20, "b"), row(3, 30, "c")]).unwrap();
    let free = Schema::builder().field("n", DataType::I64).build().unwrap();
    let free = db.create_table("free", free).unwrap();
    let id = free.insert(&[5i64.into()]).unwrap();
    let of = |table: &str, filter: Option<Expr>| Query { filter, ..Query::table(table) };
    // What changes while rows of a query are held, and whether the commit hears of it.
    let conflicts = |query: &Query, change: &dyn Fn()| {
        let transaction = db.begin().unwrap();
        transaction.table("accounts").unwrap().upsert(&row(9, 10, "own")).unwrap();
        let plain = transaction.query(query).unwrap();
        let held = transaction.query_for_update(query).unwrap();
        assert_eq!((&held.columns, held.to_rows()), (&plain.columns, plain.to_rows()));
        change();
        transaction.commit().map_err(|e| e.kind()).err() == Some(ErrorKind::Conflict)
    };
    let set = |id: i64, cents: i64| {
        t.update(&[id.into()], &[("cents", cents.into())]).unwrap();
    };
    let over = |cents: i64| Expr::field("cents").binary(Operator::Gt, Expr::literal(cents));
    assert!(conflicts(&of("accounts", Some(over(15))), &|| set(3, 31)));
    assert!(!conflicts(&of("accounts", Some(over(15))), &|| set(1, 11)));
    // One that is as it was again was changed all the same, and so was one that is gone.
    assert!(conflicts(&of("accounts", Some(over(15))), &|| {
        set(3, 1);
        set(3, 31);
    }));
    assert!(conflicts(&of("accounts", None), &|| {
        t.delete(&[2i64.into()]).unwrap();
    }));
    // Only what is answered is held.
    let mut first = of("accounts", None);
    first.select(Expr::AllFields(String::new())).select(Expr::literal(1i64)).limit = Some(1.into());
    first.order_by =
        vec![OrderBy { expr: Expr::field("id"), descending: false, nulls_first: None }];
    assert!(!conflicts(&first, &|| set(3, 32)));
    assert!(conflicts(&first, &|| set(1, 12)));
    // A subquery is read, not held.
    let mut least = Query::table("free");
    least.select(Expr::field("n"));
    let within = Expr::field("cents").binary(Operator::Gt, Expr::value_of(least));
    let within = of("accounts", Some(within.and(is("id", 1i64))));
    assert!(!conflicts(&within, &|| set(3, 33)));
    assert!(conflicts(&within, &|| set(1, 13)));
    // Keys that are generated.
    assert!(conflicts(&of("free", Some(is("n", 5i64))), &|| {
        free.update(&[id.into()], &[("n", 6i64.into())]).unwrap();
    }));
    assert!(!conflicts(&of("free", Some(is("n", 5i64))), &|| {
        free.update(&[id.into()], &[("n", 5i64.into())]).unwrap();
    }));
}
