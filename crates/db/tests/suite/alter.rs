//! Changes of tables themselves: what older and newer readers see, and what survives.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, DefaultValue, ErrorKind, Field, FieldId, Labels, Options,
    Query, Schema, Value,
};
use esker_query::model::{Aggregate, Change, Delete, Expr, Operator};

fn schema() -> Schema {
    Schema::builder()
        .field("id", DataType::I64)
        .field("small", DataType::I16)
        .nullable("text", DataType::Text)
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn row(id: i64) -> Vec<Value> {
    vec![Value::Int(id), Value::Int(id % 100), format!("text {id}").into()]
}

fn stars() -> Alteration {
    let field = Field::new(FieldId(0), "stars".into(), DataType::U8, false);
    Alteration::AddField(Field { initial: Value::Uint(3), ..field })
}

fn drop_field(name: &str) -> Alteration {
    Alteration::DropField(name.into())
}

fn widen(field: &str, data_type: DataType) -> Alteration {
    Alteration::Widen { field: field.into(), data_type, length_max: None }
}

fn rename(from: &str, to: &str) -> Alteration {
    Alteration::RenameField { from: from.into(), to: to.into() }
}

fn rows(db: &Database, name: &str) -> Vec<Vec<Value>> {
    let rows = db.snapshot().unwrap().table(name).unwrap().rows().unwrap();
    rows.into_iter().map(|(_, row)| row).collect()
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
}

fn count(db: &Database, filter: Expr) -> Vec<Vec<Value>> {
    let mut query = Query::table("t");
    query.filter = Some(filter);
    db.query(&query).unwrap().to_rows()
}

/// A table whose rows lie in a segment, in a frozen group and in the open one.
fn table(dir: &Directory) -> Database {
    let db = Options::new().background(false).group_limit(4, 1 << 30).open(&dir.0).unwrap();
    let t = db.create_table("t", schema()).unwrap();
    for id in 0..4 {
        t.insert(&row(id)).unwrap();
    }
    db.wait_idle().unwrap();
    for id in 4..10 {
        t.insert(&row(id)).unwrap();
    }
    db
}

#[test]
fn older_rows_have_the_initial_value_wherever_they_lie() {
    let dir = Directory::new("alter-add");
    let mut db = table(&dir);
    db.alter_table("t", &[stars(), drop_field("text"), rename("small", "little")]).unwrap();
    let t = db.table("t").unwrap();
    t.insert(&[Value::Int(10), Value::Int(10), Value::Uint(5)]).unwrap();
    let expected: Vec<Vec<Value>> = (0..11)
        .map(|id| {
            let stars = if id == 10 { 5 } else { 3 };
            vec![Value::Int(id), Value::Int(id), Value::Uint(stars)]
        })
        .collect();
    for stage in ["open", "reopened", "sealed", "checkpointed"] {
        assert_eq!(rows(&db, "t"), expected, "{stage}");
        assert_eq!(db.table("t").unwrap().schema().fields()[1].name, "little");
        let three = Expr::field("stars").binary(Operator::Eq, Expr::literal(3i64));
        assert_eq!(count(&db, three).len(), 10, "{stage}");
        is_sound(&db);
        match stage {
            "open" => {
                db.close().unwrap();
                db = Options::new().background(false).group_limit(4, 1 << 30).open(&dir.0).unwrap();
            }
            "reopened" => db.wait_idle().unwrap(),
            _ => {
                db.checkpoint().unwrap();
                db.close().unwrap();
                db = Options::new().background(false).open(&dir.0).unwrap();
            }
        }
    }
}

#[test]
fn a_snapshot_keeps_its_schema_through_seals_and_merges() {
    let dir = Directory::new("alter-snapshot");
    let db = table(&dir);
    let before = db.snapshot().unwrap();
    db.alter_table("t", &[drop_field("text"), stars(), widen("small", DataType::I64)]).unwrap();
    let t = db.table("t").unwrap();
    for id in 0..10 {
        t.update(&[Value::Int(id)], &[("small", Value::Int(1 << 40))]).unwrap();
    }
    let between = db.snapshot().unwrap();
    db.alter_table("t", &[drop_field("small")]).unwrap();
    db.wait_idle().unwrap();
    let old = before.table("t").unwrap();
    assert_eq!(old.schema().fields().len(), 3);
    let expected: Vec<Vec<Value>> = (0..10).map(row).collect();
    let found: Vec<_> = old.rows().unwrap().into_iter().map(|(_, row)| row).collect();
    assert_eq!(found, expected);
    for id in 0..10 {
        let found = old.get(&[Value::Int(id)]).unwrap().unwrap();
        assert_eq!(found.values(), row(id));
    }
    let mut query = Query::table("t");
    query.select(Expr::field("text"));
    assert_eq!(before.query(&query).unwrap().to_rows().len(), 10);
    assert!(db.query(&query).unwrap_err().to_string().contains("unknown field"));
    let between = between.table("t").unwrap().rows().unwrap();
    assert!(between.iter().all(|(_, row)| row[1..] == [Value::Int(1 << 40), Value::Uint(3)]));
    assert!(rows(&db, "t").iter().all(|row| row[1..] == [Value::Uint(3)]));
    is_sound(&db);
}

/// Every widening, over every encoding that the values may have, in filters, sums and groups.
#[test]
fn widened_fields_answer_as_if_they_had_always_been_wide() {
    use DataType as T;
    let pairs = T::ALL.iter().flat_map(|from| T::ALL.iter().map(move |to| (*from, *to)));
    for (from, to) in pairs.filter(|(from, to)| from != to && from.widens_to(*to)) {
        let db = Options::new().background(false).memory().unwrap();
        let of = |i: i64| match from {
            T::F32 => Value::Float32(i as f32 / 4.0),
            _ => Value::Int(i),
        };
        let wide = |t| {
            Schema::builder().field("id", T::I64).field("n", t).primary_key(["id"]).build().unwrap()
        };
        let narrow_table = db.create_table("narrow", wide(from)).unwrap();
        let wide_table = db.create_table("wide", wide(to)).unwrap();
        for table in [&narrow_table, &wide_table] {
            for part in 0..3i64 {
                let mut load = table.load().unwrap();
                for i in 0..20_000i64 {
                    let n = match part {
                        0 => 7,
                        1 => i % 100,
                        _ => i % 5 + 10,
                    };
                    load.push_row(&[Value::Int(part * 20_000 + i), of(n)]).unwrap();
                }
                load.finish().unwrap();
            }
        }
        db.alter_table("narrow", &[widen("n", to)]).unwrap();
        let last = match to {
            T::F64 => Value::Float(1e300),
            T::I16 => Value::Int(-30_000),
            T::I32 => Value::Int(-2_000_000_000),
            T::I64 => Value::Int(i64::MIN / 2),
            _ => Value::Uint(60_000),
        };
        for table in [&narrow_table, &wide_table] {
            table.insert(&[Value::Int(-1), last.clone()]).unwrap();
        }
        let answers = |name: &str| {
            let mut answers = Vec::new();
            for literal in [7i64, 12, 50] {
                for operator in [Operator::Eq, Operator::Lt, Operator::Gt] {
                    let mut query = Query::table(name);
                    query.select(Expr::count());
                    query.select(Expr::aggregate(Aggregate::Sum, Expr::field("n")));
                    query.select(Expr::aggregate(Aggregate::Max, Expr::field("n")));
                    query.filter = Some(Expr::field("n").binary(operator, Expr::literal(literal)));
                    answers.push(db.query(&query).unwrap().to_rows());
                }
            }
            let mut query = Query::table(name);
            query.select(Expr::field("n"));
            query.select(Expr::count());
            query.group_by.push(Expr::field("n"));
            let mut groups = db.query(&query).unwrap().to_rows();
            groups.sort();
            answers.push(groups);
            answers
        };
        assert_eq!(answers("narrow"), answers("wide"), "{from} to {to}");
    }
}

/// The same of rows that lie in memory, and rows that were rewritten wide, for an older reader.
#[test]
fn widened_fields_are_selected_from_groups_and_by_older_snapshots() {
    use DataType as T;
    let pairs = T::ALL.iter().flat_map(|from| T::ALL.iter().map(move |to| (*from, *to)));
    for (from, to) in pairs.filter(|(from, to)| from != to && from.widens_to(*to)) {
        let dir = Directory::new("alter-widen-groups");
        let db = Options::new().background(false).group_limit(8, 1 << 30).open(&dir.0).unwrap();
        let fields = Schema::builder().field("id", T::I64).field("n", from).primary_key(["id"]);
        let t = db.create_table("t", fields.build().unwrap()).unwrap();
        let n =
            |i: i64| if from == T::F32 { Value::Float32(i as f32 / 4.0) } else { Value::Int(i) };
        for id in 0..20 {
            t.insert(&[Value::Int(id), n(id * 5)]).unwrap();
        }
        let mut query = Query::table("t");
        query.select(Expr::field("n"));
        query.select(Expr::field("n").binary(Operator::Add, Expr::field("n")));
        let answer = |rows: Vec<Vec<Value>>| {
            let rows = rows.into_iter().map(|row| row.iter().map(Value::to_string).collect());
            let mut rows: Vec<Vec<String>> = rows.collect();
            rows.sort();
            rows
        };
        let expected = answer(db.query(&query).unwrap().to_rows());
        let before = db.snapshot().unwrap();
        db.alter_table("t", &[widen("n", to)]).unwrap();
        for stage in ["groups", "segments"] {
            let found = db.query(&query).unwrap().to_rows();
            assert_eq!(answer(found), expected, "{from} to {to}, {stage}");
            let found = before.query(&query).unwrap().to_rows();
            assert_eq!(answer(found), expected, "{from} to {to}, {stage}, before");
            db.wait_idle().unwrap();
        }
    }
}

#[test]
fn an_older_snapshot_reads_rewritten_columns_by_its_own_type() {
    use DataType as T;
    let pairs = T::ALL.iter().flat_map(|from| T::ALL.iter().map(move |to| (*from, *to)));
    for (from, to) in pairs.filter(|(from, to)| from != to && from.widens_to(*to)) {
        let dir = Directory::new("alter-widen-older");
        let db = Options::new().background(false).group_limit(1_000, 1 << 30).open(&dir.0).unwrap();
        let fields = Schema::builder().field("id", T::I64).field("n", from).primary_key(["id"]);
        let t = db.create_table("t", fields.build().unwrap()).unwrap();
        let n =
            |i: i64| if from == T::F32 { Value::Float32(i as f32 / 4.0) } else { Value::Int(i) };
        for part in 0..2i64 {
            let mut load = t.load().unwrap();
            for i in 0..1_000 {
                load.push_row(&[Value::Int(part * 1_000 + i), n(i % 50 * part)]).unwrap();
            }
            load.finish().unwrap();
        }
        db.wait_idle().unwrap();
        let gone = Expr::field("id").binary(Operator::Gte, Expr::literal(500));
        let gone = gone.and(Expr::field("id").binary(Operator::Lt, Expr::literal(1_500)));
        let gone = Delete { table: "t".into(), filter: Some(gone), ..Delete::default() };
        db.change(&Change::Delete(gone)).unwrap();
        let before = db.snapshot().unwrap();
        let ask = || {
            let table = before.table("t").unwrap();
            let mut rows: Vec<_> = table.rows().unwrap().into_iter().map(|(_, row)| row).collect();
            rows.sort();
            let mut query = Query::table("t");
            query.select(Expr::field("n"));
            query.select(Expr::aggregate(Aggregate::Sum, Expr::field("n")));
            query.filter = Some(Expr::field("n").binary(Operator::Lt, Expr::literal(20)));
            query.group_by.push(Expr::field("n"));
            let mut groups = before.query(&query).unwrap().to_rows();
            groups.sort();
            let get = table.get(&[Value::Int(1_507)]).unwrap().unwrap();
            // Equal values of two types compare equal.
            (format!("{rows:?}"), format!("{groups:?}"), format!("{get:?}"))
        };
        let expected = ask();
        db.alter_table("t", &[widen("n", to)]).unwrap();
        assert!(db.compact(false, &mut |_, _| ()).unwrap().rewritten > 0);
        assert_eq!(ask(), expected, "{from} to {to}");
    }
}

/// Replay gave every open row a copy of it, and the database could not be opened again.
#[test]
fn an_initial_value_is_stored_once_also_after_a_crash() {
    let dir = Directory::new("alter-initial");
    let options = || Options::new().memory_limit(64 << 20).background(false);
    let db = options().open(&dir.0).unwrap();
    let t = db.create_table("t", schema()).unwrap();
    t.insert_many(&(0..1_000).map(row).collect::<Vec<_>>()).unwrap();
    let field = Field::new(FieldId(0), "long".into(), DataType::Text, true);
    let long = Value::from("x".repeat(1 << 20));
    let add = Alteration::AddField(Field { initial: long.clone(), ..field });
    db.alter_table("t", &[add]).unwrap();
    t.insert(&[Value::Int(5_000), Value::Int(1), Value::Null, Value::Null]).unwrap();
    t.update(&[Value::Int(3)], &[("small", Value::Int(9))]).unwrap();
    drop((t, db));
    let db = options().open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    assert_eq!(t.count().unwrap(), 1_001);
    assert_eq!(t.get(&[Value::Int(999)]).unwrap().unwrap().values()[3], long);
    assert_eq!(t.get(&[Value::Int(3)]).unwrap().unwrap().values()[1], Value::Int(9));
    assert_eq!(t.get(&[Value::Int(5_000)]).unwrap().unwrap().values()[3], Value::Null);
}

/// Values went to fields that had taken the place of others meanwhile.
#[test]
fn values_go_to_the_fields_that_are_named_whatever_others_do_to_the_table() {
    let db = Options::new().memory().unwrap();
    let fields = Schema::builder().field("id", DataType::I64);
    let fields = fields.nullable("a", DataType::I64).nullable("b", DataType::I64);
    let t = db.create_table("t", fields.primary_key(["id"]).build().unwrap()).unwrap();
    let new = |name: &str| Field::new(FieldId(0), name.into(), DataType::I64, true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..2_000i64 {
                let values = [("id", Value::Int(i)), ("a", Value::Int(1)), ("b", Value::Int(2))];
                t.insert_fields(&values).unwrap();
                let row = t.get(&[Value::Int(i)]).unwrap().unwrap();
                assert!(row.get("a") != Some(&Value::Int(2)), "{row:?}");
                assert!(row.get("b") != Some(&Value::Int(1)), "{row:?}");
            }
        });
        for i in 0..200 {
            let name = ["a", "b"][i % 2];
            let steps = [drop_field(name), Alteration::AddField(new(name))];
            db.alter_table("t", &steps).unwrap();
        }
    });
}

#[test]
fn a_truncated_table_is_empty_for_newer_readers_only() {
    let dir = Directory::new("alter-truncate");
    let db = table(&dir);
    let t = db.table("t").unwrap();
    let before = db.snapshot().unwrap();
    let mut load = t.load().unwrap();
    load.push_row(&row(77)).unwrap();
    db.truncate_table("t").unwrap();
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(t.count().unwrap(), 0);
    assert_eq!(t.get(&[Value::Int(1)]).unwrap(), None);
    t.insert(&row(1)).unwrap();
    assert_eq!(before.table("t").unwrap().count().unwrap(), 10);
    assert!(before.table("t").unwrap().get(&[Value::Int(9)]).unwrap().is_some());
    is_sound(&db);
    drop(before);
    db.close().unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    assert_eq!(rows(&db, "t"), [row(1)]);
    is_sound(&db);
    db.checkpoint().unwrap();
    assert!(!dir.files().iter().any(|name| name.contains("segment")), "{:?}", dir.files());
}

/// The rows there were became NULL against the schema, and the database could not be opened again.
#[test]
fn a_new_field_without_a_value_for_older_rows_is_not_made_mandatory_at_once() {
    let dir = Directory::new("alter-mandatory");
    let db = table(&dir);
    let new = || Alteration::AddField(Field::new(FieldId(0), "x".into(), DataType::Text, true));
    let mandatory = || Alteration::SetNotNull("x".into());
    let e = db.alter_table("t", &[new(), mandatory()]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "field \"x\" must not be null: it needs a default for the rows there are"
    );
    db.alter_table("t", &[new()]).unwrap();
    assert!(db.alter_table("t", &[drop_field("x"), new(), mandatory()]).is_err());
    assert!(db.alter_table("t", &[mandatory()]).is_err());
    db.table("t").unwrap().update(&[Value::Int(1)], &[("small", Value::Int(5))]).unwrap();
    db.close().unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    assert_eq!(rows(&db, "t").len(), 10);
    is_sound(&db);
}

/// They stayed until the next table was created, renamed or dropped.
#[test]
fn files_of_tables_that_are_gone_go_when_nobody_reads_them() {
    let dir = Directory::new("alter-gone");
    let db = table(&dir);
    db.create_table("other", schema()).unwrap();
    let segments = || dir.files().iter().filter(|name| name.starts_with("segment")).count();
    assert!(segments() > 0);
    let before = db.snapshot().unwrap();
    db.truncate_table("t").unwrap();
    db.wait_idle().unwrap();
    assert_eq!(before.table("t").unwrap().count().unwrap(), 10);
    assert!(segments() > 0);
    drop(before);
    db.wait_idle().unwrap();
    assert_eq!(segments(), 0);
    for id in 0..8 {
        db.table("t").unwrap().insert(&row(id)).unwrap();
    }
    db.wait_idle().unwrap();
    assert!(segments() > 0);
    db.drop_table("t").unwrap();
    db.wait_idle().unwrap();
    assert_eq!(segments(), 0);
}

#[test]
fn a_renamed_table_has_its_old_name_for_older_readers_only() {
    let dir = Directory::new("alter-rename");
    let db = table(&dir);
    let before = db.snapshot().unwrap();
    db.create_table("other", schema()).unwrap();
    let e = db.rename_table("t", "other").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    let t = db.table("t").unwrap();
    db.rename_table("t", "u").unwrap();
    assert_eq!(t.name(), "u");
    t.insert(&row(10)).unwrap();
    assert_eq!(before.table("t").unwrap().count().unwrap(), 10);
    assert_eq!(before.table("u").err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(db.table("t").err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(rows(&db, "u").len(), 11);
    drop(before);
    db.create_table("t", schema()).unwrap();
    db.close().unwrap();
    let db = Options::new().open(&dir.0).unwrap();
    assert_eq!((rows(&db, "u").len(), rows(&db, "t").len()), (11, 0));
}

/// Rows that were gathered for one schema do not get into another.
#[test]
fn rows_gathered_for_an_older_schema_are_refused() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema()).unwrap();
    let mut appender = t.appender();
    appender.append(&row(1)).unwrap();
    let mut load = t.load().unwrap();
    load.push_row(&row(2)).unwrap();
    db.alter_table("t", &[stars()]).unwrap();
    assert_eq!(appender.flush().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(t.insert(&row(3)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(t.count().unwrap(), 0);
    is_sound(&db);
}

#[test]
fn a_change_that_cannot_be_made_changes_nothing() {
    let db = Options::new().memory().unwrap();
    db.create_table("t", schema()).unwrap();
    let default = DefaultValue::Literal(Value::from("x"));
    let wrong = Alteration::SetDefault { field: "small".into(), default: Some(default) };
    let e = db.alter_table("t", &[stars(), wrong]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert_eq!(*db.table("t").unwrap().schema(), schema());
    assert_eq!(db.alter_table("no", &[stars()]).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_field_must_have_a_value_once_every_row_has() {
    let dir = Directory::new("not-null");
    let db = Options::new().open(&dir.0).unwrap();
    let table = db.create_table("t", schema()).unwrap();
    table.insert(&row(1)).unwrap();
    table.insert(&[2.into(), 2.into(), Value::Null]).unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
    table.insert(&[3.into(), 3.into(), Value::Null]).unwrap();
    let not_null = || [Alteration::SetNotNull("text".into())];
    let e = db.alter_table("t", &not_null()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated);
    let wanted = "field \"text\" must not be null, but is in the row with key id = 2";
    assert_eq!(e.to_string(), wanted);
    table.update(&[2.into()], &[("text", "two".into())]).unwrap();
    assert!(db.alter_table("t", &not_null()).unwrap_err().to_string().ends_with("id = 3"));
    let before = db.snapshot().unwrap();
    table.update(&[3.into()], &[("text", "three".into())]).unwrap();
    let load = table.load().unwrap();
    db.alter_table("t", &not_null()).unwrap();
    drop(load);
    let e = table.insert(&[4.into(), 4.into(), Value::Null]).unwrap_err();
    assert_eq!(e.to_string(), "field \"text\" must not be null");
    table.insert(&row(4)).unwrap();
    let read = |rows: Vec<(u64, Vec<Value>)>| -> Vec<String> {
        rows.into_iter().map(|(_, row)| row[2].to_string()).collect()
    };
    for _ in 0..2 {
        let old = read(before.table("t").unwrap().rows().unwrap());
        assert_eq!(old, ["text 1", "two", "null"]);
        let new = read(table.snapshot().unwrap().rows().unwrap());
        assert_eq!(new, ["text 1", "two", "three", "text 4"]);
        is_sound(&db);
        db.compact(false, &mut |_, _| {}).unwrap();
    }
    drop((before, table, db));
    let db = Database::open(&dir.0).unwrap();
    assert_eq!(rows(&db, "t").len(), 4);
    assert!(!db.table("t").unwrap().schema().fields()[2].nullable);
    is_sound(&db);
}

#[test]
fn rows_without_a_declared_key_are_named_by_their_number() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().nullable("n", DataType::I64).build().unwrap();
    let table = db.create_table("t", schema).unwrap();
    table.insert(&[1.into()]).unwrap();
    table.insert(&[Value::Null]).unwrap();
    let e = db.alter_table("t", &[Alteration::SetNotNull("n".into())]).unwrap_err();
    assert_eq!(e.to_string(), "field \"n\" must not be null, but is in row 2");
}

#[test]
fn an_enum_gets_labels_more() {
    let dir = Directory::new("labels");
    let db = Options::new().open(&dir.0).unwrap();
    let labels = Labels::new(["small", "large"]).unwrap();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("size", DataType::Enum)
        .labels(labels)
        .primary_key(["id"])
        .build()
        .unwrap();
    let table = db.create_table("t", schema).unwrap();
    table.insert(&[1.into(), "large".into()]).unwrap();
    let add = |label: &str| {
        let label = label.to_owned();
        db.alter_table("t", &[Alteration::AddLabel { field: "size".into(), label }])
    };
    assert!(table.insert(&[2.into(), "huge".into()]).is_err());
    let before = db.snapshot().unwrap();
    add("huge").unwrap();
    table.insert(&[2.into(), "huge".into()]).unwrap();
    let e = add("small").unwrap_err();
    assert_eq!(e.to_string(), "field \"size\": label \"small\" is declared twice");
    let none = Alteration::AddLabel { field: "id".into(), label: "x".into() };
    let e = db.alter_table("t", &[none]).unwrap_err();
    assert_eq!(e.to_string(), "field \"id\": enums alone have labels, the field is i64");
    let size = |rows: Vec<(u64, Vec<Value>)>| -> Vec<String> {
        rows.into_iter().map(|(_, row)| row[1].to_string()).collect()
    };
    for _ in 0..2 {
        let old = before.table("t").unwrap();
        assert_eq!(size(old.rows().unwrap()), ["large"]);
        assert_eq!(old.schema().fields()[1].type_text(), "enum(small, large)");
        assert_eq!(size(table.snapshot().unwrap().rows().unwrap()), ["large", "huge"]);
        db.compact(false, &mut |_, _| {}).unwrap();
    }
    drop((before, table));
    db.close().unwrap();
    let db = Database::open(&dir.0).unwrap();
    let wider = count(&db, Expr::field("size").binary(Operator::Gt, Expr::literal("large")));
    assert_eq!(wider.len(), 1);
    is_sound(&db);
}
