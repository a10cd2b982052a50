//! What is done to a database and within a transaction comes to the same.

use esker::{
    ChangeOptions, DataType, Database, ErrorKind, Limits, NewIndex, Options, Result, Row, Schema,
    Scope, Value,
};
use esker_query::model::{
    Change, ConflictUpdate, Delete, Expr, Insert, OnConflict, Operator, Update,
};

fn database() -> Database {
    let db = Options::new().memory().unwrap();
    let positive = Expr::field("n").binary(Operator::Gte, Expr::literal(0i64));
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("n", DataType::I64)
        .nullable("u", DataType::I64)
        .primary_key(["id"]);
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    let check = esker::check("positive", &positive).unwrap();
    db.alter_table("t", &[esker::Alteration::AddCheck(check)]).unwrap();
    db.create_index("t", NewIndex { unique: true, ..NewIndex::new("by_u", ["u"]) }).unwrap();
    table.insert_many(&[row(1, 10, Some(100)), row(2, 20, None), row(3, 30, Some(300))]).unwrap();
    db.bucket("b").unwrap().put("a", "1").unwrap();
    db
}

fn row(id: i64, n: i64, u: Option<i64>) -> Vec<Value> {
    vec![id.into(), n.into(), u.map_or(Value::Null, Value::from)]
}

fn update(id: i64, n: i64) -> (Vec<Value>, Vec<(&'static str, Value)>) {
    (vec![id.into()], vec![("n", n.into())])
}

/// An insert of rows, with what happens where a row is in the way.
fn insert(rows: &[Vec<Value>], on: &[&str], on_conflict: OnConflict) -> Change {
    let literals = |row: &Vec<Value>| row.iter().cloned().map(Expr::Literal).collect();
    Change::Insert(Insert {
        conflict_key: on.iter().map(|name| (*name).to_owned()).collect(),
        on_conflict,
        ..Insert::values("t", rows.iter().map(literals).collect())
    })
}

/// Statements, each with what it meets: rows that are there, and rows of its own.
fn statements() -> Vec<Change> {
    let sum = Expr::field("n").binary(Operator::Add, Expr::field("excluded.n"));
    let add = || {
        let set = vec![("n".to_owned(), sum.clone())];
        OnConflict::Update(ConflictUpdate { set, filter: None })
    };
    let is = |id: i64| Some(Expr::field("id").binary(Operator::Eq, Expr::literal(id)));
    let set = |id, n: i64| {
        let set = vec![("n".to_owned(), Expr::literal(n))];
        Change::Update(Update { table: "t".into(), filter: is(id), set, ..Update::default() })
    };
    vec![
        insert(&[row(7, 1, None), row(1, 1, None)], &[], OnConflict::Fail),
        insert(&[row(7, 1, None), row(1, 1, None)], &[], OnConflict::Skip),
        insert(&[row(8, 1, Some(300))], &[], OnConflict::Skip),
        insert(&[row(7, 2, None), row(7, 3, Some(700))], &[], OnConflict::Replace),
        insert(&[row(7, 4, Some(700)), row(9, 5, None)], &["id"], add()),
        insert(&[row(4, 6, Some(700))], &["u"], add()),
        insert(&[row(4, 6, Some(700))], &["u"], OnConflict::Replace),
        insert(&[row(1, 6, Some(700))], &["u"], OnConflict::Fail),
        insert(&[row(5, -1, None)], &[], OnConflict::Fail),
        insert(&[row(2, -50, None)], &["id"], add()),
        set(2, 21),
        set(2, -1),
        set(6, 1),
        Change::Delete(Delete { table: "t".into(), filter: is(9), ..Delete::default() }),
    ]
}

/// Does everything, and says what came of each.
fn run(scope: &dyn Scope) -> Vec<String> {
    fn said<R: std::fmt::Debug>(result: Result<R>) -> String {
        result.map_or_else(|e| e.to_string(), |done| format!("{done:?}"))
    }
    let (table, limits) = (scope.table("t").unwrap(), Limits::default());
    let key = |id: i64| vec![Value::from(id)];
    let mut all = Vec::new();
    for change in statements() {
        let done = scope.change_with(&change, &ChangeOptions::default());
        all.push(said(done.map(|changed| changed.rows)));
    }
    all.push(said(table.update_many(&[update(1, 11), update(1, 12), update(99, 1)], &limits)));
    all.push(said(table.update_many(&[update(1, 13), (key(2), vec![("no", 1.into())])], &limits)));
    all.push(said(table.update(&key(3), &[("n", 31.into())])));
    all.push(said(table.update(&key(3), &[("n", (-1).into())])));
    all.push(said(table.delete_many(&[key(3), key(3), key(98)], &limits)));
    all.push(said(table.delete_many(&[key(1), vec!["x".into()]], &limits)));
    all.push(said(table.delete(&key(3))));
    all.push(said(table.insert(&row(3, 32, None)).map(drop)));
    let reader = table.reader(10).unwrap();
    for id in 1..10 {
        let found = reader.get(&key(id)).map(|row| row.map(Row::into_values));
        all.push(said(found));
    }
    let bucket = scope.bucket("b").unwrap();
    all.push(said(bucket.increment(b"a", 1)));
    all.push(said(bucket.increment(b"n", 7)));
    all.push(said(bucket.put_many(
        &[("x", "1"), ("y", "2"), ("x", "3")],
        Default::default(),
        &limits,
    )));
    all.push(said(bucket.remove(b"y")));
    all.push(said(bucket.remove_many(&[b"y".to_vec(), b"a".to_vec()], &limits)));
    let long = vec![0; (64 << 10) + 1];
    all.push(said(bucket.put(&long, b"", Default::default())));
    let entries = bucket.range::<[u8], _>(..).unwrap();
    all.extend(entries.map(|entry| said(entry.map(|entry| entry.to_pair()))));
    all
}

#[test]
fn a_transaction_answers_what_the_database_does() {
    let (of_database, db) = (run(&database()), database());
    let transaction = db.begin().unwrap();
    let within = run(&transaction);
    for (a, b) in of_database.iter().zip(&within) {
        assert_eq!(a, b);
    }
    assert_eq!(of_database.len(), within.len());
    transaction.commit().unwrap();
    assert_eq!(db.table("t").unwrap().count().unwrap(), 4);
}

/// Many were changed of the table that has the name by now, and one of none.
#[test]
fn many_rows_are_of_the_table_of_their_handle_as_one_row_is() {
    let db = database();
    let scope: &dyn Scope = &db;
    let (table, bucket) = (scope.table("t").unwrap(), scope.bucket("b").unwrap());
    let many: Vec<_> = (0..100_001).map(|id| row(id, 1, None)).collect();
    let keys: Vec<_> = many.iter().map(|row| row[..1].to_vec()).collect();
    let limits = Limits::default();
    // By another name it is the same table.
    db.rename_table("t", "rows").unwrap();
    db.rename_table("b", "entries").unwrap();
    table.upsert_many(&many, &limits).unwrap();
    assert_eq!(table.count().unwrap(), 100_001);
    assert_eq!(bucket.remove_many(&[b"a".to_vec()], &limits).unwrap(), 1);
    // No other takes the place of one that is gone.
    db.drop_table("rows").unwrap();
    db.drop_table("entries").unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let schema = schema.nullable("u", DataType::I64).primary_key(["id"]).build().unwrap();
    let other = db.create_table("rows", schema).unwrap();
    let other_bucket = db.bucket("entries").unwrap();
    other.insert(&row(1, 1, None)).unwrap();
    other_bucket.put("a", "1").unwrap();
    let gone = [
        table.delete(&keys[1]).err(),
        table.delete_many(&keys, &limits).err(),
        table.upsert_many(&many, &limits).err(),
        bucket.remove(b"a").err(),
        bucket.remove_many(&[b"a".to_vec()], &limits).err(),
    ];
    assert_eq!(gone.map(|e| e.map(|e| e.kind())), [Some(ErrorKind::NotFound); 5]);
    assert_eq!((other.count().unwrap(), other_bucket.len().unwrap()), (1, 1));
}
