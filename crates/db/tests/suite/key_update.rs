//! Rows that get another key: by records, statements and operators, with what refers to them.

use esker::{
    DataType, Database, ErrorKind, NewReference, Options, Query, ReferenceAction, Schema, Table,
    Update as Operators, Value,
};
use esker_query::model::{Change, Expr, Operator, OrderBy, Update};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

fn numbered() -> Schema {
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    schema.primary_key(["id"]).build().unwrap()
}

/// Rows 1 to 3, of n 10, 20 and 30.
fn filled(db: &Database) -> Table {
    let table = db.create_table("t", numbered()).unwrap();
    let row = |id: i64| vec![id.into(), (id * 10).into()];
    table.insert_many(&[row(1), row(2), row(3)]).unwrap();
    table
}

fn rows(db: &Database, name: &str) -> Vec<(i64, i64)> {
    let mut query = Query::table(name);
    query.order_by =
        vec![OrderBy { expr: Expr::field("id"), descending: false, nulls_first: None }];
    let of = |row: Vec<Value>| match row.as_slice() {
        [Value::Int(id), Value::Int(n)] => (*id, *n),
        other => panic!("{other:?}"),
    };
    db.query(&query).unwrap().to_rows().into_iter().map(of).collect()
}

fn key(id: i64) -> [Value; 1] {
    [id.into()]
}

/// `UPDATE t SET id = id + …`
fn shift(by: i64) -> Change {
    let sum = Expr::field("id").binary(Operator::Add, Expr::literal(by));
    let set = vec![("id".to_owned(), sum)];
    Change::Update(Update { table: "t".into(), set, ..Update::default() })
}

#[test]
fn the_end_of_a_statement_decides() {
    let db = Options::new().memory().unwrap();
    let table = filled(&db);
    assert_eq!(db.change(&shift(1)).unwrap(), 3);
    assert_eq!(rows(&db, "t"), [(2, 10), (3, 20), (4, 30)]);
    assert!(table.update(&key(4), &[("id", 9i64.into())]).unwrap());
    assert!(!table.update(&key(4), &[("id", 5i64.into())]).unwrap());
    let e = table.update(&key(9), &[("id", 2i64.into()), ("n", 1i64.into())]).unwrap_err();
    assert_eq!(
        (e.kind(), e.to_string().as_str()),
        (ErrorKind::AlreadyExists, "key id = 2 exists already")
    );
    // Each of several sees those before it.
    let set = |from: i64, to: i64| (key(from).to_vec(), vec![("id", Value::Int(to))]);
    assert_eq!(table.update_many(&[set(9, 1), set(1, 7), set(8, 6)]).unwrap(), 2);
    table.apply(&key(7), &Operators::new().increment("id", 10)).unwrap();
    assert_eq!(rows(&db, "t"), [(2, 10), (3, 20), (17, 30)]);
    assert!(table.get(&key(7)).unwrap().is_none());
    assert_eq!(table.get(&key(17)).unwrap().unwrap().values()[1], Value::Int(30));
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn a_snapshot_and_a_transaction_see_what_they_are_to() {
    let db = Options::new().memory().unwrap();
    let table = filled(&db);
    let snapshot = db.snapshot().unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    within.insert(&[4i64.into(), 40i64.into()]).unwrap();
    within.update(&key(4), &[("id", 5i64.into())]).unwrap();
    let before = transaction.savepoint();
    transaction.change(&shift(1)).unwrap();
    assert_eq!(within.count().unwrap(), 4);
    assert!(within.get(&key(6)).unwrap().is_some() && within.get(&key(1)).unwrap().is_none());
    transaction.rollback_to(before).unwrap();
    transaction.change(&shift(-1)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(rows(&db, "t"), [(0, 10), (1, 20), (2, 30), (4, 40)]);
    let old = snapshot.table("t").unwrap();
    assert_eq!(old.get(&key(3)).unwrap().unwrap().values()[1], Value::Int(30));
    assert!(old.get(&key(0)).unwrap().is_none());
    // Another commit has changed the old key, or taken the new one.
    for other in
        [&|| table.update(&key(1), &[("n", 7i64.into())]).map(drop) as esker::Result<()>, &|| {
            table.insert(&[50i64.into(), 0i64.into()]).map(drop) as esker::Result<()>
        }] as [&dyn Fn() -> esker::Result<()>; 2]
    {
        let transaction = db.begin().unwrap();
        transaction.table("t").unwrap().update(&key(1), &[("id", 50i64.into())]).unwrap();
        other().unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    }
}

#[test]
fn rows_that_refer_to_a_key_follow_it() {
    let db = Options::new().memory().unwrap();
    filled(&db);
    let follows = NewReference::new(["id"], "t").on_update(ReferenceAction::Cascade);
    let same = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let same = same.primary_key(["id"]).reference(follows).build().unwrap();
    let same = db.create_table("same", same).unwrap();
    same.insert_many(&[vec![1i64.into(), 1i64.into()], vec![2i64.into(), 2i64.into()]]).unwrap();
    let of = NewReference::new(["n"], "same").on_update(ReferenceAction::Cascade);
    let last = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let last = last.primary_key(["id"]).reference(of).build().unwrap();
    let last = db.create_table("last", last).unwrap();
    last.insert_many(&[vec![7i64.into(), 1i64.into()], vec![8i64.into(), 2i64.into()]]).unwrap();
    db.change(&shift(1)).unwrap();
    assert_eq!(rows(&db, "same"), [(2, 1), (3, 2)]);
    assert_eq!(rows(&db, "last"), [(7, 2), (8, 3)]);
    assert!(db.check().unwrap().is_sound());
    let kept = NewReference::new(["n"], "t").named("kept");
    let kept_by = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let kept_by = kept_by.primary_key(["id"]).reference(kept).build().unwrap();
    db.create_table("kept_by", kept_by).unwrap().insert(&[1i64.into(), 4i64.into()]).unwrap();
    let e = db.change(&shift(10)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated, "{e}");
    assert_eq!(rows(&db, "t"), [(2, 10), (3, 20), (4, 30)]);
}

/// Whatever a crash leaves, each row is there once.
#[test]
fn a_crash_leaves_all_keys_as_they_were_or_none() {
    let machine = Simulation::new(3, SimOptions { record: true, ..SimOptions::default() });
    let open = |machine: &Simulation| {
        Options::new().environment(machine.environment()).open("db").unwrap()
    };
    let db = open(&machine);
    filled(&db);
    db.change(&shift(1)).unwrap();
    db.close().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let mut cursor = machine.journal().unwrap().cursor();
    loop {
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll, CrashChoice::Random(1)] {
            let after =
                Simulation::from_image(&cursor.crash_image(choice), 4, SimOptions::default());
            let db = open(&after);
            if db.table("t").is_ok() {
                seen.insert(rows(&db, "t"));
                assert!(db.check().unwrap().is_sound());
            }
        }
        if !cursor.advance() {
            break;
        }
    }
    let expected = [vec![], vec![(1, 10), (2, 20), (3, 30)], vec![(2, 10), (3, 20), (4, 30)]];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}
