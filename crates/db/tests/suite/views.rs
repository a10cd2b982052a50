//! Views: what they mean, what they keep from changing, and that they last.

use esker::{
    Alteration, BackupOptions, ChangeOptions, DataType, Database, ErrorKind, Field, FieldId,
    Options, Query, Schema, Semantics, TableAs, Value, ViewOptions,
};
use esker_query::model::{Expr, Operator, OrderBy};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

fn people() -> Schema {
    let schema = Schema::builder().field("id", DataType::I64).nullable("age", DataType::I64);
    schema.nullable("note", DataType::Text).primary_key(["id"]).build().unwrap()
}

fn with_people(db: &Database) {
    let table = db.create_table("people", people()).unwrap();
    for (id, age) in [(1i64, 36i64), (2, 9), (3, 41)] {
        table.insert(&[id.into(), age.into(), Value::Null]).unwrap();
    }
}

/// `SELECT id, age FROM people WHERE age >= least`.
fn older(least: i64) -> Query {
    let mut query = Query::table("people");
    query.select(Expr::field("id")).select(Expr::field("age"));
    query.filter = Some(Expr::field("age").binary(Operator::Gte, Expr::literal(least)));
    query
}

fn ids(db: &Database, name: &str) -> Vec<Value> {
    let mut query = Query::table(name);
    query.select(Expr::field("id"));
    let key = OrderBy { expr: Expr::field("id"), descending: false, nulls_first: None };
    query.order_by = vec![key];
    db.query(&query).unwrap().to_rows().into_iter().flatten().collect()
}

fn int(values: &[i64]) -> Vec<Value> {
    values.iter().map(|n| Value::Int(*n)).collect()
}

fn drop_field(name: &str) -> Alteration {
    Alteration::DropField(name.to_owned())
}

#[test]
fn a_view_is_read_as_a_table_is() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    db.create_view("adults", &older(18)).unwrap();
    assert_eq!(ids(&db, "adults"), int(&[1, 3]));
    let json = r#"{"table": "adults", "where": [{"field": "age", "op": "gt", "value": 40}]}"#;
    assert_eq!(db.query_json(json).unwrap().to_rows(), [[Value::Int(3), Value::Int(41)]]);
    let views = db.views();
    assert_eq!(views.len(), 1);
    assert_eq!(views[0].reads, ["people"]);
    assert_eq!(views[0].query, "SELECT id, age FROM people WHERE age >= 18");
    let columns = views[0].columns.iter().map(|column| column.name.as_str());
    assert_eq!(columns.collect::<Vec<_>>(), ["id", "age"]);
    assert_eq!(db.tables(), ["people"]);
    let plan = db.plan(&Query::table("adults")).unwrap().to_string();
    assert!(plan.contains("people"), "{plan}");
    for refused in [
        db.table("adults").map(drop),
        db.drop_table("adults"),
        db.truncate_table("adults"),
        db.alter_table("adults", &[drop_field("age")]),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("\"adults\" is a view"), "{error}");
    }
    db.rename_view("adults", "grown").unwrap();
    assert_eq!(ids(&db, "grown"), int(&[1, 3]));
    db.drop_view("grown").unwrap();
    assert_eq!(db.drop_view("grown").unwrap_err().kind(), ErrorKind::NotFound);
}

/// A condition on a view looks the row up by its key, as one on the table does.
#[test]
fn a_condition_on_a_view_goes_to_the_key() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    db.create_view("adults", &older(18)).unwrap();
    let by_id = |name: &str| {
        let mut query = Query::table(name);
        query.select(Expr::field("age"));
        query.filter = Some(Expr::field("id").binary(Operator::Eq, Expr::literal(3i64)));
        let explained = db.explain(&query).unwrap().to_string();
        let read = explained.lines().find(|line| line.contains("key")).map(str::to_owned);
        (db.query(&query).unwrap().to_rows(), read.is_some(), explained)
    };
    let (rows, has_key, explained) = by_id("adults");
    assert_eq!(rows, [[Value::Int(41)]]);
    assert_eq!(has_key, by_id("people").1, "{explained}");
}

#[test]
fn a_change_that_breaks_a_view_is_refused() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    db.create_view("adults", &older(18)).unwrap();
    db.create_view("old", &{
        let mut query = Query::table("adults");
        query.filter = Some(Expr::field("age").binary(Operator::Gt, Expr::literal(40i64)));
        query
    })
    .unwrap();
    let rename = Alteration::RenameField { from: "age".into(), to: "years".into() };
    for change in [drop_field("age"), rename] {
        let error = db.alter_table("people", &[change]).unwrap_err().to_string();
        let wanted = "table \"people\": view \"adults\" reads field \"age\"; drop that before";
        assert_eq!(error, wanted);
    }
    db.alter_table("people", &[drop_field("note")]).unwrap();
    assert!(db.rename_table("people", "all").is_err() && db.drop_table("people").is_err());
    assert!(db.drop_view("adults").is_err() && db.rename_view("adults", "x").is_err());
    let replace = ViewOptions { or_replace: true, ..ViewOptions::default() };
    let error = db.create_view_with("adults", &Query::table("old"), &replace).unwrap_err();
    assert_eq!(error.to_string(), "view \"adults\" would read itself");
    let mut fewer = Query::table("people");
    fewer.select(Expr::field("id"));
    assert!(db.create_view_with("adults", &fewer, &replace).is_err());
    db.create_view_with("adults", &older(0), &replace).unwrap();
    assert_eq!((ids(&db, "adults"), ids(&db, "old")), (int(&[1, 2, 3]), int(&[3])));
    db.begin().unwrap().alter_table_cascading("people", &[drop_field("age")]).unwrap();
    assert_eq!(db.views().len(), 2, "it was rolled back");
    db.transact(|within| within.alter_table_cascading("people", &[drop_field("age")])).unwrap();
    assert!(db.views().is_empty());
}

/// A field that a table gets later is not in a view, whatever its name.
#[test]
fn a_field_more_changes_no_view() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    db.create_view("everyone", &Query::table("people")).unwrap();
    let column = |name: &str| Field::new(FieldId(0), name.to_owned(), DataType::I64, true);
    db.alter_table("people", &[Alteration::AddField(column("more"))]).unwrap();
    assert_eq!(db.query(&Query::table("everyone")).unwrap().columns.len(), 3);
    let mut query = Query::table("everyone");
    query.select(Expr::field("more"));
    assert!(db.query(&query).is_err());
    db.alter_table("people", &[drop_field("more")]).unwrap();
    assert_eq!(ids(&db, "everyone"), int(&[1, 2, 3]));
}

#[test]
fn settings_are_those_of_the_maker() {
    let db = Options::new().semantics(Semantics::postgres()).memory().unwrap();
    with_people(&db);
    let mut query = Query::table("people");
    let zero = Expr::field("id").binary(Operator::Subtract, Expr::field("id"));
    query.select(Expr::field("id"));
    query.select_as(Expr::field("id").binary(Operator::Divide, zero), "q");
    let null = Semantics::default().with("division_by_zero", Some("null")).unwrap();
    let options = ViewOptions { semantics: null, ..ViewOptions::default() };
    db.create_view_with("nulls", &query, &options).unwrap();
    db.create_view("fails", &query).unwrap();
    let rows = db.query(&Query::table("nulls")).unwrap().to_rows();
    assert!(rows.iter().all(|row| row[1] == Value::Null), "{rows:?}");
    assert!(db.query(&Query::table("fails")).is_err());
}

#[test]
fn others_see_a_view_with_the_commit() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    let before = db.snapshot().unwrap();
    let transaction = db.begin().unwrap();
    transaction.create_table("made", people()).unwrap();
    transaction.create_view("of_made", &Query::table("made")).unwrap();
    let savepoint = transaction.savepoint();
    transaction.create_view("adults", &older(18)).unwrap();
    assert_eq!(transaction.query(&Query::table("adults")).unwrap().row_count(), 2);
    transaction.rollback_to(savepoint).unwrap();
    assert!(transaction.query(&Query::table("adults")).is_err());
    transaction.create_view("adults", &older(40)).unwrap();
    assert!(db.query(&Query::table("adults")).is_err() && db.views().is_empty());
    transaction.commit().unwrap();
    assert_eq!(ids(&db, "adults"), int(&[3]));
    assert_eq!(ids(&db, "of_made"), []);
    assert!(before.query(&Query::table("adults")).is_err());
    let between = db.snapshot().unwrap();
    db.drop_view("adults").unwrap();
    assert_eq!(between.query(&Query::table("adults")).unwrap().row_count(), 1);
}

/// What a transaction has looked at is as it was when it commits.
#[test]
fn changes_that_meet_are_conflicts() {
    let conflicts = |first: &dyn Fn(&esker::Transaction), second: &dyn Fn(&Database)| {
        let db = Options::new().memory().unwrap();
        with_people(&db);
        db.create_view("adults", &older(18)).unwrap();
        let transaction = db.begin().unwrap();
        first(&transaction);
        second(&db);
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert!(db.query(&Query::table("people")).is_ok());
    };
    let note = || {
        let mut query = Query::table("people");
        query.select(Expr::field("note"));
        query
    };
    conflicts(&|t| t.alter_table("people", &[drop_field("note")]).unwrap(), &|db| {
        db.create_view("notes", &note()).unwrap();
    });
    conflicts(&|t| t.create_view("notes", &note()).unwrap(), &|db| {
        db.alter_table("people", &[drop_field("note")]).unwrap();
    });
    conflicts(&|t| t.create_view("more", &Query::table("adults")).unwrap(), &|db| {
        db.drop_view("adults").unwrap();
    });
    conflicts(&|t| t.drop_view("adults").unwrap(), &|db| {
        db.create_view("more", &Query::table("adults")).unwrap();
    });
    conflicts(&|t| t.create_view("x", &older(1)).unwrap(), &|db| {
        db.create_table("x", people()).unwrap();
    });
    conflicts(&|t| drop(t.create_table("x", people()).unwrap()), &|db| {
        db.create_view("x", &older(1)).unwrap();
    });
}

#[test]
fn views_lie_in_each_other_up_to_a_limit() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    let mut last = "people".to_owned();
    let error = loop {
        let name = format!("{last}_");
        match db.create_view(&name, &Query::table(&last)) {
            Ok(()) => last = name,
            Err(error) => break error,
        }
    };
    assert_eq!(last.len() - "people".len(), esker_query::VIEW_DEPTH_MAX, "{error}");
    assert!(error.to_string().contains("views lie too deep in each other"), "{error}");
    assert_eq!(ids(&db, &last), int(&[1, 2, 3]));
}

fn machine() -> Simulation {
    Simulation::new(3, SimOptions { record: true, ..SimOptions::default() })
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().environment(machine.environment()).background(false);
    options.open("db").unwrap()
}

/// The views there are, with what they answer.
fn state(db: &Database) -> String {
    let mut all = String::new();
    for view in db.views() {
        let rows = db.query(&Query::table(&view.name)).unwrap().to_rows();
        all.push_str(&format!("{} {:?}; ", view.query, rows));
    }
    format!("{:?} {all}", db.tables())
}

/// Whatever the disk keeps of it, what is found is what one of the commits had made.
#[test]
fn a_crash_leaves_all_of_a_change_of_views_or_nothing() {
    let machine = machine();
    let db = open(&machine);
    with_people(&db);
    let mut states = vec![state(&db)];
    let replace = ViewOptions { or_replace: true, ..ViewOptions::default() };
    let mut steps: Vec<Box<dyn Fn()>> = vec![
        Box::new(|| db.create_view("adults", &older(18)).unwrap()),
        Box::new(|| db.create_view("old", &Query::table("adults")).unwrap()),
        Box::new(|| db.create_view_with("adults", &older(40), &replace).unwrap()),
        Box::new(|| db.checkpoint().unwrap()),
        Box::new(|| db.rename_view("old", "aged").unwrap()),
        Box::new(|| {
            let made = TableAs::default();
            let options = ChangeOptions::default();
            db.create_table_as("copy", &Query::table("aged"), &made, &options).map(drop).unwrap();
        }),
    ];
    steps.push(Box::new(|| {
        db.transact(|within| {
            within.drop_view("aged")?;
            within.drop_view("adults")?;
            within.drop_table("people")
        })
        .unwrap();
    }));
    for step in steps {
        step();
        states.push(state(&db));
    }
    let first = machine.journal().unwrap().cursor().position();
    let mut cursor = machine.journal().unwrap().cursor();
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let subsets = 0..1 << cursor.pending_count().min(3);
        for choice in subsets.map(CrashChoice::Subset) {
            let image = cursor.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            let options = Options::new().environment(after.environment()).background(false);
            let Ok(db) = options.open("db") else { continue };
            if db.tables().is_empty() || ids_or_none(&db) != Some(3) && db.tables() != ["copy"] {
                continue;
            }
            let found = state(&db);
            let place = cursor.describe();
            let at = states.iter().position(|known| *known == found);
            seen.insert(at.unwrap_or_else(|| panic!("{place}: {found}, of {states:#?}")));
        }
        if !cursor.advance() {
            break;
        }
    }
    assert!(seen.len() >= 6, "from {first}: {seen:?}");
}

fn ids_or_none(db: &Database) -> Option<usize> {
    db.query(&Query::table("people")).ok().map(|found| found.row_count())
}

#[test]
fn views_are_in_checkpoints_backups_and_saves() {
    let machine = machine();
    let db = open(&machine);
    with_people(&db);
    db.create_view("adults", &older(18)).unwrap();
    db.create_view("old", &Query::table("adults")).unwrap();
    db.checkpoint().unwrap();
    let wanted = state(&db);
    db.backup("copy", &BackupOptions::default(), &mut |_, _| ()).unwrap();
    db.save("saved").unwrap();
    drop(db);
    for dir in ["db", "copy", "saved"] {
        let options = Options::new().environment(machine.environment()).background(false);
        let db = options.open(dir).unwrap();
        assert_eq!(state(&db), wanted, "{dir}");
        let error = db.alter_table("people", &[drop_field("age")]).unwrap_err().to_string();
        assert!(error.contains("view \"adults\" reads field \"age\""), "{dir}: {error}");
        db.create_view("more", &Query::table("old")).unwrap();
    }
}

#[test]
fn a_table_has_the_rows_that_a_query_answers() {
    let db = Options::new().memory().unwrap();
    with_people(&db);
    let (made, options) = (TableAs::default(), ChangeOptions::default());
    assert_eq!(db.create_table_as("copy", &older(18), &made, &options).unwrap(), 2);
    let schema = db.table("copy").unwrap().schema();
    assert!(schema.key_positions().is_empty() && schema.fields().iter().all(|f| f.nullable));
    assert_eq!(schema.fields()[1].data_type, DataType::I64);
    let taken = db.create_table_as("copy", &older(18), &made, &options).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    let keyed = TableAs { primary_key: vec!["id".into()], or_replace: true, ..made };
    db.create_table_as("copy", &Query::table("copy"), &keyed, &options).unwrap();
    assert_eq!(
        db.table("copy").unwrap().get(&[3i64.into()]).unwrap().unwrap().values()[1],
        41.into()
    );
    db.create_view("v", &Query::table("copy")).unwrap();
    let error = db.create_table_as("copy", &older(0), &keyed, &options).unwrap_err();
    assert!(error.to_string().contains("view \"v\" reads it"), "{error}");
}
