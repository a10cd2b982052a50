//! Fields that are computed from the others of their row, by every way that rows come in.

use std::sync::Arc;

use esker::{
    Alteration, Batch, Column, DataType, Database, ErrorKind, Field, FieldId, Modified, NewIndex,
    Options, Query, Record, Schema, Table, Value, check, generated,
};
use esker_query::model::{
    Change, ConflictUpdate, Expr, Function, Insert, InsertRows, OnConflict, Operator, Update,
};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};
use serde_json::json;

use crate::fixture::Directory;

fn field(name: &str) -> Expr {
    Expr::field(name)
}

/// `price * count`
fn total() -> Expr {
    field("price").binary(Operator::Multiply, field("count"))
}

/// A table of `id`, `price`, `total` and `count`: what is generated lies between the others.
fn schema() -> Schema {
    let few = field("total").binary(Operator::Lt, Expr::literal(1_000_000i64));
    let few = check("few", &few).unwrap();
    Schema::builder()
        .field("id", DataType::I64)
        .field("price", DataType::I64)
        .field("total", DataType::I64)
        .generated(generated(&total()).unwrap())
        .field("count", DataType::I32)
        .primary_key(["id"])
        .check(few.name, few.condition)
        .index("by_total", ["total"])
        .build()
        .unwrap()
}

fn row(id: i64, price: i64, count: i64) -> Vec<Value> {
    vec![id.into(), price.into(), Value::Null, count.into()]
}

fn table(db: &Database) -> Table {
    db.create_table("t", schema()).unwrap()
}

fn memory() -> Database {
    Options::new().background(false).memory().unwrap()
}

/// Every row has what comes of it, by scans, by the index and by the key.
fn holds(db: &Database, rows: usize) {
    let wrong = Expr::Apply(Operator::Neq, vec![field("total"), total()]);
    let mut query = Query::table("t");
    query.filter = Some(wrong);
    assert_eq!(db.query(&query).unwrap().to_rows(), Vec::<Vec<Value>>::new());
    let t = db.table("t").unwrap();
    assert_eq!(t.count().unwrap(), rows as u64);
    for found in t.iter().unwrap().take(100) {
        let found = found.unwrap();
        let by_key = t.get(&[found.get("id").unwrap().clone()]).unwrap().unwrap();
        assert_eq!(by_key.values(), found.values());
        let mut query = Query::table("t");
        let is = Expr::Literal(found.get("total").unwrap().clone());
        query.filter = Some(field("total").binary(Operator::Eq, is));
        let by_index = db.query(&query).unwrap().to_rows();
        assert!(by_index.contains(&found.values().to_vec()), "{:?}", found.values());
    }
    assert_eq!(db.check().unwrap().problems, []);
}

fn value(t: &Table, id: i64) -> Value {
    t.get(&[id.into()]).unwrap().unwrap().get("total").unwrap().clone()
}

fn said<T: std::fmt::Debug>(result: esker::Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn rows_that_are_given_whole_leave_it_out_or_have_what_comes_of_them() {
    let db = memory();
    let t = table(&db);
    t.insert(&row(1, 2, 3)).unwrap();
    t.insert_many(&[row(2, 5, 5), row(3, -1, 7)]).unwrap();
    t.upsert(&row(1, 4, 3)).unwrap();
    t.upsert_many(&[row(2, 1, 1), row(4, 10, 10)]).unwrap();
    assert!(t.insert_if_absent(&row(5, 6, 7)).unwrap().is_none());
    assert_eq!([1, 2, 3, 4, 5].map(|id| value(&t, id)), [12, 1, -7, 100, 42].map(Value::Int));
    // What was read is written again.
    let read = t.get(&[1i64.into()]).unwrap().unwrap().values().to_vec();
    t.upsert(&read).unwrap();
    let mut other = read.clone();
    other[1] = 5i64.into();
    let message = "field \"total\" is generated: expected nothing, or what comes of the row, 15, \
                   found 12";
    assert_eq!(said(t.upsert(&other)), message);
    assert_eq!(said(t.insert_many(&[row(9, 1, 1), other])), format!("row 2: {message}"));
    t.insert_fields(&[("id", 6i64.into()), ("price", 2i64.into()), ("count", 2i64.into())])
        .unwrap();
    t.insert_object(&json!({ "id": 7, "price": 3, "count": 3 })).unwrap();
    t.insert_object(&json!({ "id": 8, "price": 3, "count": 3, "total": 9 })).unwrap();
    let wrong = t.insert_object(&json!({ "id": 9, "price": 3, "count": 3, "total": 8 }));
    assert!(said(wrong).contains("is generated"));
    let mut batch = db.batch();
    batch.insert(&t, &row(10, 10, 10)).unwrap();
    batch.commit().unwrap();
    holds(&db, 9);
}

#[test]
fn updates_compute_it_anew_and_give_it_no_value() {
    let db = memory();
    let t = table(&db);
    t.insert_many(&[row(1, 2, 3), row(2, 5, 5), row(3, 1, 1)]).unwrap();
    let key = |id: i64| [Value::from(id)];
    t.update(&key(1), &[("price", 10i64.into())]).unwrap();
    t.update_many(&[(key(2).to_vec(), vec![("count", Value::Int(2))])]).unwrap();
    let is = field("total").binary(Operator::Eq, Expr::literal(1i64));
    let changed = t.update_if(&key(3), &[("price", 6i64.into())], &is).unwrap();
    let Modified::Changed { new: Some(new), .. } = changed else { panic!("{changed:?}") };
    assert_eq!(new.get("total"), Some(&Value::Int(6)));
    assert_eq!([1, 2, 3].map(|id| value(&t, id)), [30, 10, 6].map(Value::Int));
    let increase = esker::Update::new().increment("price", 1i64);
    t.apply(&key(3), &increase).unwrap();
    assert_eq!(value(&t, 3), Value::Int(7));
    let message = "field \"total\" is generated: it takes DEFAULT, no value";
    assert_eq!(said(t.update(&key(1), &[("total", 1i64.into())])), message);
    let set = vec![("count".to_owned(), Expr::literal(4i64))];
    let update = Update { table: "t".into(), set, ..Update::default() };
    assert_eq!(db.change(&Change::Update(update.clone())).unwrap(), 3);
    assert_eq!([1, 2, 3].map(|id| value(&t, id)), [40, 20, 28].map(Value::Int));
    let set = vec![("total".to_owned(), Expr::literal(4i64))];
    assert_eq!(said(db.change(&Change::Update(Update { set, ..update }))), message);
    holds(&db, 3);
}

fn insert(rows: Vec<Vec<i64>>, on_conflict: OnConflict) -> Change {
    let rows = rows.into_iter().map(|row| row.into_iter().map(Expr::literal).collect()).collect();
    Change::Insert(Insert {
        table: "t".into(),
        fields: ["id", "price", "count"].map(str::to_owned).to_vec(),
        overriding: None,
        rows: InsertRows::Values(rows),
        on_conflict,
        conflict_key: Vec::new(),
        conflict_expressions: Vec::new(),
        conflict_filter: None,
        returning: None,
    })
}

#[test]
fn rows_that_are_in_the_way_are_changed_with_it() {
    let db = memory();
    let t = table(&db);
    let add = || {
        let set = vec![(
            "count".to_owned(),
            field("count").binary(Operator::Add, field("excluded.total")),
        )];
        OnConflict::Update(ConflictUpdate { set, filter: None })
    };
    // In one statement, then upon what is stored, then within a transaction.
    db.change(&insert(vec![vec![1, 2, 3], vec![1, 1, 1]], add())).unwrap();
    assert_eq!(value(&t, 1), Value::Int(8));
    db.change(&insert(vec![vec![1, 3, 2]], add())).unwrap();
    assert_eq!(value(&t, 1), Value::Int(20));
    db.change(&insert(vec![vec![1, 9, 9]], OnConflict::Replace)).unwrap();
    let transaction = db.begin().unwrap();
    transaction.change(&insert(vec![vec![1, 1, 1], vec![2, 2, 2]], add())).unwrap();
    transaction.commit().unwrap();
    assert_eq!([1, 2].map(|id| value(&t, id)), [90, 4].map(Value::Int));
    holds(&db, 2);
}

#[test]
fn loads_and_appenders_compute_it() {
    for segment_rows in [4, 100_000] {
        let options = Options::new().background(false).segment_limit(segment_rows);
        let db = options.memory().unwrap();
        let t = table(&db);
        let mut load = t.load().unwrap();
        for id in 0..3_000 {
            load.push_row(&row(id, id, 2)).unwrap();
        }
        assert_eq!(load.rows(), 3_000);
        let mut batch = Batch::empty(&t.schema());
        for id in 3_000..3_010 {
            for (column, value) in batch.columns.iter_mut().zip(row(id, id, 2)) {
                match value {
                    Value::Null => column.push_missing(),
                    value => column.push(value.as_ref()).unwrap(),
                }
            }
        }
        load.push(batch).unwrap();
        assert_eq!(load.finish().unwrap().rows, 3_010);
        let mut appender = t.appender();
        (3_010..3_020).for_each(|id| appender.append(&row(id, id, 2)).unwrap());
        appender.finish().unwrap();
        holds(&db, 3_020);
        let mut load = t.load().unwrap();
        load.push_row(&row(9_000, 1, 1)).unwrap();
        load.push_row(&row(9_001, i64::MAX, 2)).unwrap();
        let e = load.finish().unwrap_err().to_string();
        assert!(e.contains("field \"total\"") && e.contains("row 2"), "{e}");
        let mut load = t.load().unwrap();
        let mut batch = Batch::empty(&t.schema());
        let wrong = vec![9_000i64.into(), 1i64.into(), 7i64.into(), 1i64.into()];
        batch.push_row(&t.schema(), &wrong).unwrap();
        assert!(said(load.push(batch)).contains("is generated"));
        holds(&db, 3_020);
    }
}

#[test]
fn a_generated_key_has_computed_fields_too() {
    let db = memory();
    let schema = Schema::builder()
        .field("text", DataType::Text)
        .field("upper", DataType::Text)
        .max_length(5)
        .generated(generated(&Expr::call(Function::Upper, [field("text")])).unwrap())
        .add_index(NewIndex::new("once", ["upper"]).unique())
        .build()
        .unwrap();
    let t = db.create_table("t", schema).unwrap();
    let row = |text: &str| vec![text.into(), Value::Null];
    t.insert(&row("a")).unwrap();
    assert_eq!(t.insert(&row("A")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let mut appender = t.appender();
    appender.append(&row("b")).unwrap();
    appender.append(&row("c")).unwrap();
    appender.finish().unwrap();
    let mut load = t.load().unwrap();
    load.push_row(&row("d")).unwrap();
    load.finish().unwrap();
    let mut load = t.load().unwrap();
    load.push_row(&row("B")).unwrap();
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
    let e = said(t.insert(&row("too long")));
    assert!(e.starts_with("field \"upper\": expected at most 5 characters"), "{e}");
    let uppers: Vec<Value> =
        t.iter().unwrap().map(|row| row.unwrap().get("upper").unwrap().clone()).collect();
    assert_eq!(uppers, ["A", "B", "C", "D"].map(Value::from));
}

#[test]
fn transactions_compute_it_in_memory_and_in_files() {
    for limit in [1 << 30, 40_000] {
        let dir = Directory::new("generated-transaction");
        let db = Options::new().background(false).transaction_limit(limit).open(&dir.0).unwrap();
        let t = table(&db);
        t.insert_many(&[row(1, 2, 3), row(2, 5, 5)]).unwrap();
        let transaction = db.begin().unwrap();
        let within = transaction.table("t").unwrap();
        within.update(&[1i64.into()], &[("price", 7i64.into())]).unwrap();
        within.upsert(&row(2, 6, 6)).unwrap();
        let rows: Vec<_> = (3..3_000).map(|id| row(id, id, 3)).collect();
        within.insert_many(&rows).unwrap();
        let set = vec![("count".to_owned(), Expr::literal(4i64))];
        let filter = Some(field("id").binary(Operator::Gt, Expr::literal(2_900i64)));
        let update = Update { table: "t".into(), set, filter, ..Update::default() };
        transaction.change(&Change::Update(update)).unwrap();
        let seen = within.get(&[2_999i64.into()]).unwrap().unwrap();
        assert_eq!(seen.get("total"), Some(&Value::Int(4 * 2_999)));
        let refused = within.update(&[1i64.into()], &[("total", 0i64.into())]);
        assert!(said(refused).contains("is generated"));
        transaction.commit().unwrap();
        holds(&db, 2_999);
        drop((t, db));
        let db = Options::new().background(false).open(&dir.0).unwrap();
        holds(&db, 2_999);
    }
}

#[test]
fn what_cannot_be_computed_refuses_the_row() {
    let db = memory();
    let t = table(&db);
    let e = t.insert(&row(1, i64::MAX, 2)).unwrap_err();
    assert!(e.to_string().starts_with("field \"total\": "), "{e}");
    let e = said(t.insert_many(&[row(1, 1, 1), row(2, i64::MAX, 2)]));
    assert!(e.starts_with("row 2: field \"total\": "), "{e}");
    // What is computed is tested, too.
    let e = t.insert(&row(1, 1_000, 1_000)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated);
    t.insert(&row(1, 1, 1)).unwrap();
    let e = t.update(&[1i64.into()], &[("price", 5_000_000i64.into())]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated);
    holds(&db, 1);
    // NULL, where the field may not be.
    let schema = Schema::builder().nullable("n", DataType::I64).field("m", DataType::I64);
    let schema = schema.generated(generated(&field("n")).unwrap()).build().unwrap();
    let m = db.create_table("m", schema).unwrap();
    let e = m.insert(&[Value::Null, Value::Null]).unwrap_err();
    assert_eq!(e.to_string(), "field \"m\" must not be null");
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated);
    m.insert(&[1i64.into(), Value::Null]).unwrap();
}

fn refused(expr: Expr) -> String {
    let schema = Schema::builder().field("a", DataType::I64).nullable("g", DataType::I64);
    let schema = schema.generated(generated(&expr).unwrap()).nullable("b", DataType::Text);
    said(memory().create_table("t", schema.build().unwrap()))
}

#[test]
fn what_is_not_of_the_row_alone_is_refused() {
    let now = Expr::Call(Function::Now, Vec::new());
    assert!(refused(now).ends_with("expected a value of the row alone, found what changes"));
    let random = Expr::Call(Function::Random, Vec::new());
    assert!(refused(random).ends_with("found what changes"));
    assert!(refused(field("c")).contains("unknown field \"c\""));
    assert!(refused(field("g")).contains("which is generated, too"));
    assert!(refused(field("b")).contains("expected i64, found text"));
    let key = Schema::builder().field("a", DataType::I64).field("g", DataType::I64);
    let key = key.generated(generated(&field("a")).unwrap()).primary_key(["g"]).build();
    assert!(key.unwrap_err().to_string().contains("a key is given"));
}

fn computed(name: &str, expr: &Expr, nullable: bool) -> Alteration {
    let field = Field::new(FieldId(0), name.into(), DataType::I64, nullable);
    let generated = Some(Arc::new(generated(expr).unwrap()));
    Alteration::AddField(Field { generated, ..field })
}

#[test]
fn a_new_one_is_computed_for_the_rows_there_are() {
    let dir = Directory::new("generated-alter");
    let db = Options::new().background(false).group_limit(4, 1 << 30).open(&dir.0).unwrap();
    let t = table(&db);
    t.insert_many(&(0..10).map(|id| row(id, id, 2)).collect::<Vec<_>>()).unwrap();
    db.wait_idle().unwrap();
    t.insert_many(&(10..20).map(|id| row(id, id, 2)).collect::<Vec<_>>()).unwrap();
    let before = db.snapshot().unwrap();
    let sum = field("PRICE").binary(Operator::Add, field("id"));
    db.alter_table("t", &[computed("sum", &sum, false)]).unwrap();
    let sums = |db: &Database| -> Vec<Value> {
        let t = db.table("t").unwrap();
        t.iter().unwrap().map(|row| row.unwrap().get("sum").unwrap().clone()).collect()
    };
    assert_eq!(sums(&db), (0..20).map(|id| Value::Int(2 * id)).collect::<Vec<_>>());
    assert_eq!(before.table("t").unwrap().rows().unwrap()[0].1.len(), 4);
    drop(before);
    // What it reads stays, and may have another name.
    let e = said(db.alter_table("t", &[Alteration::DropField("price".into())]));
    assert_eq!(e, "field \"total\" is computed from field \"price\": drop it before");
    let wider =
        Alteration::Widen { field: "count".into(), data_type: DataType::I64, length_max: None };
    let e = said(db.alter_table("t", &[wider]));
    assert_eq!(e, "field \"total\" is computed from field \"count\", whose type stays while it is");
    let rename = Alteration::RenameField { from: "price".into(), to: "cost".into() };
    db.alter_table("t", &[rename]).unwrap();
    t.update(&[3i64.into()], &[("cost", 100i64.into())]).unwrap();
    assert_eq!(sums(&db)[19], Value::Int(103), "a changed row comes last");
    // Another expression, then none.
    let product = field("id").binary(Operator::Multiply, Expr::literal(10i64));
    let set = |generated| Alteration::SetGenerated { field: "sum".into(), generated };
    db.alter_table("t", &[set(Some(generated(&product).unwrap()))]).unwrap();
    assert!(sums(&db).contains(&Value::Int(190)));
    db.alter_table("t", &[set(None)]).unwrap();
    t.update(&[3i64.into()], &[("sum", 7i64.into())]).unwrap();
    assert!(said(db.alter_table("t", &[set(None)])).contains("is not generated"));
    drop((t, db));
    let db = Options::new().background(false).open(&dir.0).unwrap();
    let found = db.table("t").unwrap().get(&[3i64.into()]).unwrap().unwrap();
    assert_eq!(found.values()[2..], [200.into(), 2.into(), 7.into()].map(|v: i64| Value::Int(v)));
    assert_eq!(db.check().unwrap().problems, []);
}

#[test]
fn a_new_one_that_cannot_be_computed_changes_nothing() {
    let db = memory();
    let t = table(&db);
    t.insert(&row(1, 999_999, 1)).unwrap();
    let large = field("price").binary(Operator::Multiply, Expr::literal(i64::MAX));
    let e = said(db.alter_table("t", &[computed("large", &large, true)]));
    assert!(e.contains("field \"large\""), "{e}");
    assert_eq!(t.schema().fields().len(), 4);
    holds(&db, 1);
}

#[test]
fn a_transaction_makes_and_changes_tables_with_them() {
    let db = memory();
    let transaction = db.begin().unwrap();
    let t = transaction.create_table("t", schema()).unwrap();
    t.insert(&row(1, 2, 3)).unwrap();
    drop(t);
    let sum = field("price").binary(Operator::Add, field("id"));
    transaction.alter_table("t", &[computed("sum", &sum, false)]).unwrap();
    let t = transaction.table("t").unwrap();
    t.update(&[1i64.into()], &[("price", 9i64.into())]).unwrap();
    assert_eq!(t.get(&[1i64.into()]).unwrap().unwrap().get("sum"), Some(&Value::Int(10)));
    drop(t);
    transaction.commit().unwrap();
    holds(&db, 1);
}

#[derive(Debug, PartialEq, Record)]
struct Line {
    #[esker(key)]
    id: i64,
    price: i64,
    count: i32,
}

#[derive(Debug, PartialEq, Record)]
struct Whole {
    #[esker(key)]
    id: i64,
    price: i64,
    count: i32,
    total: i64,
}

#[test]
fn structs_leave_it_out_or_have_what_comes_of_them() {
    let db = memory();
    table(&db);
    let lines = db.table_of::<Line>("t").unwrap();
    lines.insert(&Line { id: 1, price: 2, count: 3 }).unwrap();
    let whole = db.table_of::<Whole>("t").unwrap();
    assert_eq!(whole.get(1).unwrap(), Some(Whole { id: 1, price: 2, count: 3, total: 6 }));
    assert!(whole.update(1, |line| line.price = 10).unwrap());
    let mut read = whole.get(1).unwrap().unwrap();
    assert_eq!(read.total, 30);
    read.price = 11;
    assert!(said(whole.upsert(&read)).contains("is generated"));
    assert!(said(whole.update(1, |line| line.total = 1)).contains("is generated"));
    holds(&db, 1);
}

/// After a crash at each I/O, each row has what comes of it.
#[test]
fn no_crash_leaves_a_row_without_it() {
    let machine = Simulation::new(3, SimOptions { record: true, ..SimOptions::default() });
    let open = |machine: &Simulation| {
        let options = Options::new().background(false).group_limit(4, 1 << 20);
        options.environment(machine.environment()).open("db").unwrap()
    };
    let db = open(&machine);
    let t = table(&db);
    for id in 0..6 {
        t.insert(&row(id, id, 2)).unwrap();
    }
    let sum = field("price").binary(Operator::Add, field("id"));
    db.alter_table("t", &[computed("sum", &sum, false)]).unwrap();
    t.update(&[3i64.into()], &[("price", 30i64.into())]).unwrap();
    db.wait_idle().unwrap();
    db.checkpoint().unwrap();
    t.update(&[4i64.into()], &[("price", 40i64.into())]).unwrap();
    let mut cursor = machine.journal().unwrap().cursor();
    while cursor.advance() {
        let image = cursor.crash_image(CrashChoice::KeepNone);
        let db = open(&Simulation::from_image(&image, 4, SimOptions::default()));
        let Ok(t) = db.table("t") else { continue };
        for found in t.iter().unwrap() {
            let found = found.unwrap();
            let int = |name: &str| match found.get(name) {
                Some(Value::Int(v)) => Some(*v),
                _ => None,
            };
            assert_eq!(int("total"), Some(int("price").unwrap() * int("count").unwrap()));
            if t.schema().fields().len() == 5 {
                assert_eq!(int("sum"), Some(int("price").unwrap() + int("id").unwrap()));
            }
        }
    }
}

#[test]
fn columns_without_marks_are_computed() {
    let db = memory();
    let t = table(&db);
    let mut batch = Batch::empty(&t.schema());
    batch.push_row(&t.schema(), &row(1, 2, 3)).unwrap();
    batch.columns[2] = Column::empty(DataType::I64);
    batch.columns[2].push(Value::Int(6).as_ref()).unwrap();
    let mut load = t.load().unwrap();
    load.push(batch).unwrap();
    load.finish().unwrap();
    holds(&db, 1);
}
