//! Rollups: views of groups that are right at every commit, and that last.

use esker::{DataType, Database, ErrorKind, Options, Query, Schema, Value, ViewOptions};
use esker_query::model::{Aggregate, Expr};
use esker_vfs::sim::{Options as SimOptions, Simulation};

fn with_events(db: &Database) -> esker::Table {
    let schema = Schema::builder().field("id", DataType::I64).field("model", DataType::Text);
    let schema = schema.nullable("cost", DataType::I64).primary_key(["id"]);
    db.create_table("events", schema.build().unwrap()).unwrap()
}

/// `SELECT model, count(*), sum(cost) FROM events GROUP BY model`.
fn spend() -> Query {
    let sum = Expr::Aggregate {
        function: Aggregate::Sum,
        operand: Some(Box::new(Expr::field("cost"))),
        distinct: false,
        order: Vec::new(),
    };
    let mut query = Query::table("events");
    query.select(Expr::field("model")).select(Expr::count()).select(sum);
    query.group_by = vec![Expr::field("model")];
    query
}

fn rows_of(db: &Database, name: &str) -> Vec<Vec<Value>> {
    let mut rows = db.query(&Query::table(name)).unwrap().to_rows();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn row(model: &str, count: i64, sum: i64) -> Vec<Value> {
    vec![model.into(), Value::Int(count), Value::Int(sum)]
}

#[test]
fn a_rollup_follows_its_table_and_old_snapshots_keep_theirs() {
    let db = Options::new().memory().unwrap();
    let events = with_events(&db);
    db.create_rollup("spend", &spend()).unwrap();
    assert!(rows_of(&db, "spend").is_empty());
    for (id, model, cost) in [(1i64, "a", 5i64), (2, "a", 7), (3, "b", 1)] {
        events.insert(&[id.into(), model.into(), cost.into()]).unwrap();
    }
    let old = db.snapshot().unwrap();
    assert_eq!(rows_of(&db, "spend"), [row("a", 2, 12), row("b", 1, 1)]);
    events.update(&[1i64.into()], &[("model", "b".into())]).unwrap();
    events.delete(&[3i64.into()]).unwrap();
    assert_eq!(rows_of(&db, "spend"), [row("a", 1, 7), row("b", 1, 5)]);
    assert_eq!(old.query(&Query::table("spend")).unwrap().to_rows().len(), 2);
    let mut count = Query::table("spend");
    count.select(Expr::field("model")).select(Expr::field("count(*)"));
    let mut before = old.query(&count).unwrap().to_rows();
    before.sort_by_key(|row| format!("{row:?}"));
    let expected: [Vec<Value>; 2] =
        [vec!["a".into(), Value::Int(2)], vec!["b".into(), Value::Int(1)]];
    assert_eq!(before, expected);
}

#[test]
fn a_rollup_is_one_and_a_view_is_none() {
    let db = Options::new().memory().unwrap();
    with_events(&db);
    db.create_view("groups", &spend()).unwrap();
    db.create_rollup("spend", &spend()).unwrap();
    let kinds: Vec<_> = db.views().into_iter().map(|view| (view.name, view.is_rollup)).collect();
    assert_eq!(kinds, [("groups".to_owned(), false), ("spend".to_owned(), true)]);
    for refused in [db.drop_view("spend"), db.drop_rollup("groups")] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("view: expected a "), "{error}");
    }
    let replace = ViewOptions { or_replace: true, ..ViewOptions::default() };
    let error = db.create_rollup_with("groups", &spend(), &replace).unwrap_err().to_string();
    assert_eq!(error, "\"groups\" is a view: expected a materialized view");
    db.create_rollup_with("spend", &spend(), &replace).unwrap();
    let error = db.create_rollup("other", &Query::table("events")).unwrap_err().to_string();
    assert_eq!(error, "materialized view \"other\": expected GROUP BY with one key or more");
    assert!(db.drop_table("events").unwrap_err().to_string().contains("\"spend\" read"));
    db.rename_view("spend", "costs").unwrap();
    db.drop_rollup("costs").unwrap();
    assert_eq!(db.drop_rollup("costs").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_rollup_is_in_the_log_and_in_checkpoints() {
    let machine = Simulation::new(3, SimOptions::default());
    let open = || {
        let options = Options::new().environment(machine.environment()).background(false);
        options.open("db").unwrap()
    };
    let db = open();
    let events = with_events(&db);
    events.insert(&[1i64.into(), "a".into(), 5i64.into()]).unwrap();
    db.create_rollup("spend", &spend()).unwrap();
    let mut db = db;
    for is_checkpointed in [false, true] {
        if is_checkpointed {
            db.checkpoint().unwrap();
        }
        drop(db);
        db = open();
        assert!(db.views()[0].is_rollup, "after a checkpoint: {is_checkpointed}");
        assert_eq!(rows_of(&db, "spend"), [row("a", 1, 5)]);
    }
    db.drop_rollup("spend").unwrap();
    drop(db);
    assert!(open().views().is_empty());
}

/// Events of some days, sealed and merged, with rows that are gone and rows that are not sealed.
fn with_runs(db: &Database) -> esker::Table {
    let events = with_events(db);
    db.create_rollup("spend", &spend()).unwrap();
    let rows = |ids: std::ops::Range<i64>| -> Vec<Vec<Value>> {
        let cost = |id: i64| if id % 7 == 0 { Value::Null } else { Value::Int(id % 10) };
        ids.map(|id| vec![id.into(), format!("m{}", id % 5).as_str().into(), cost(id)]).collect()
    };
    events.insert_many(&rows(0..5_000)).unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
    events.insert_many(&rows(5_000..8_000)).unwrap();
    db.wait_idle().unwrap();
    events
}

fn answers(db: &Database, query: &Query) -> (Vec<Vec<Value>>, Vec<Vec<Value>>) {
    let sorted = |value: &str| {
        let semantics = esker::Semantics::default().with("use_rollups", Some(value)).unwrap();
        let options = esker::QueryOptions { semantics, ..esker::QueryOptions::default() };
        let mut rows = db.query_with(query, &options).unwrap().to_rows();
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    (sorted("on"), sorted("off"))
}

#[test]
fn groups_of_sealed_rows_are_kept_and_answer() {
    let machine = Simulation::new(3, SimOptions::default());
    let options = Options::new().environment(machine.environment()).background(false);
    let db = options.group_limit(1_000, 64 << 20).small_group_limit(1).open("db").unwrap();
    let events = with_runs(&db);
    let plan = db.explain(&spend()).unwrap().to_string();
    assert!(plan.contains("groups kept of rollup spend"), "{plan}");
    let (with, without) = answers(&db, &spend());
    assert_eq!(with, without);
    assert_eq!(with.len(), 5);
    for id in [3i64, 10, 4_999] {
        events.delete(&[id.into()]).unwrap();
    }
    events.update(&[8i64.into()], &[("cost", 1_000i64.into())]).unwrap();
    let (with, without) = answers(&db, &spend());
    assert_eq!(with, without);
    db.check().unwrap();
}

#[test]
fn an_index_of_the_kind_of_rollups_is_refused() {
    let db = Options::new().memory().unwrap();
    with_events(&db);
    let index = esker::NewIndex::new("spend", ["model"]).using(esker::IndexKind::Rollup);
    let e = db.create_index("events", index).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    db.create_rollup("spend", &spend()).unwrap();
    db.create_index("events", esker::NewIndex::new("spend", ["model"])).unwrap();
}
