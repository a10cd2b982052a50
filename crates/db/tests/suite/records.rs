//! Rows as structs: every type there and back, and what is said when struct and table disagree.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use crate::every_type::{Everything, everything};
use esker::{
    Alteration, DataType, Database, DefaultValue, ErrorKind, Field, FieldId, Options, Query,
    Record, Schema, Value,
};
use proptest::prelude::*;

fn memory() -> Database {
    Options::new().memory().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_type_comes_back_as_it_was(rows in proptest::collection::vec(everything(), 1..8)) {
        let db = memory();
        let table = db.create_table_of::<Everything>("t").unwrap();
        for row in &rows {
            table.upsert(row).unwrap();
            let read = table.get(row.id).unwrap();
            prop_assert_eq!(read.as_ref(), Some(row));
        }
        let (by_query, mut by_scan) =
            (db.query_as::<Everything>(&Query::table("t")).unwrap(), Vec::new());
        table.for_each(|_, row| {
            by_scan.push(row);
            Ok(())
        }).unwrap();
        prop_assert_eq!(by_query, by_scan);
    }
}

#[test]
fn the_schema_is_that_of_the_struct() {
    let schema = Everything::schema().unwrap();
    let text = |name: &str| {
        let field = &schema.fields()[schema.position(name).unwrap()];
        format!("{}{}", field.type_text(), if field.nullable { "" } else { " not null" })
    };
    assert_eq!(text("unsigned tiny"), "u8 not null");
    assert_eq!(text("code"), "text(8)");
    assert_eq!(text("exact"), "decimal(38,10)");
    assert_eq!(text("at"), "timestamp not null");
    assert_eq!(text("size"), "enum(Small, 'very large') not null");
    assert_eq!(text("color"), "enum(red, 'dark red')");
    assert_eq!(text("detail"), "json");
    assert_eq!(text("document"), "json not null");
    assert_eq!(text("type"), "bool");
    assert_eq!(schema.position("cached"), None);
    assert_eq!(schema.key_positions(), [0]);
}

#[derive(Clone, Debug, PartialEq, Record)]
struct User {
    #[esker(key, default = uuid)]
    id: Option<[u8; 16]>,
    name: String,
    #[esker(default = 3)]
    stars: Option<i64>,
    #[esker(default = now, type = "timestamp")]
    since: Option<i64>,
    #[esker(default = "red", labels(red, green))]
    team: String,
    #[esker(default = -1.5)]
    balance: f64,
}

#[test]
fn none_is_written_as_the_default() {
    let db = memory();
    let users = db.create_table_of::<User>("users").unwrap();
    let (name, team) = ("Ada".to_owned(), "green".to_owned());
    let ada = User { id: None, name, stars: None, since: None, team, balance: 0.0 };
    users.insert_many(&[ada.clone(), User { stars: Some(5), ..ada }]).unwrap();
    let mut rows = Vec::new();
    let push = |_, row| {
        rows.push(row);
        Ok(())
    };
    users.for_each(push).unwrap();
    assert_eq!(rows.iter().map(|row| row.stars).collect::<Vec<_>>(), [Some(3), Some(5)]);
    assert!(rows.iter().all(|row| row.id.is_some() && row.since.is_some()));
    assert_ne!(rows[0].id, rows[1].id);
    assert_eq!(users.get(rows[0].id.unwrap()).unwrap(), Some(rows[0].clone()));
    assert!(users.table().schema().fields().iter().all(|field| !field.nullable));
    // Others that write the row get the defaults of the schema.
    users.table().insert_fields(&[("name", "Bob".into())]).unwrap();
    let schema = users.table().schema();
    let default = |name: &str| schema.fields()[schema.position(name).unwrap()].default.clone();
    assert_eq!(default("balance"), Some(DefaultValue::Literal(Value::Float(-1.5))));
}

#[derive(Debug, Record)]
struct Numbered {
    #[esker(key, default = sequence("numbers"))]
    id: Option<i64>,
}

#[test]
fn none_takes_the_next_value_of_a_sequence() {
    let db = memory();
    assert!(db.create_table_of::<Numbered>("t").is_err());
    db.create_sequence("numbers", 5, 1).unwrap();
    let table = db.create_table_of::<Numbered>("t").unwrap();
    table.insert_many(&[Numbered { id: None }, Numbered { id: Some(1) }]).unwrap();
    assert!(table.exists(5).unwrap() && table.exists(1).unwrap());
    assert_eq!(table.get(5).unwrap().and_then(|row| row.id), Some(5));
}

#[derive(Debug, Record)]
struct Person {
    #[esker(key)]
    name: String,
    born: i16,
}

/// What is said of a table with these fields.
fn refusal(fields: &[(&str, DataType, bool)]) -> String {
    let mut schema = Schema::builder();
    for (name, data_type, nullable) in fields {
        schema = if *nullable {
            schema.nullable(*name, *data_type)
        } else {
            schema.field(*name, *data_type)
        };
    }
    let schema = schema.primary_key(["name"]).build().unwrap();
    let table = memory().create_table("people", schema).unwrap();
    let error = table.typed::<Person>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let message = error.to_string();
    message.strip_prefix("table \"people\": record Person: ").unwrap().to_owned()
}

#[test]
fn a_table_that_disagrees_is_refused_by_its_field() {
    let name = ("name", DataType::Text, false);
    for (field, expected) in [
        (("born", DataType::I64, false), "field \"born\": expected i16, found i64"),
        (("born", DataType::Text, false), "field \"born\": expected i16, found text"),
        (
            ("born", DataType::I16, true),
            "field \"born\": expected i16 not null, found i16: an Option holds its NULL",
        ),
        (("brn", DataType::I16, false), "unknown field \"born\"; did you mean \"brn\"?"),
    ] {
        assert_eq!(refusal(&[name, field]), expected);
    }
    assert_eq!(
        refusal(&[name, ("born", DataType::U8, false), ("height", DataType::F64, false)]),
        "field \"height\" of the table (f64 not null, without a default) is missing"
    );
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let db = memory();
    let schema = Schema::builder().field("name", DataType::Text).max_length(5);
    let schema = schema.field("born", DataType::U8).primary_key(["name"]).build().unwrap();
    let people = db.create_table("people", schema).unwrap().typed::<Person>().unwrap();
    let person = |name: &str, born| Person { name: name.into(), born };
    let error = people.insert(&person("Ada", 1815)).unwrap_err();
    assert_eq!(error.to_string(), "field \"born\": expected u8, found integer 1815");
    let error = people.insert_many(&[person("Ada", 1), person("Grace Hopper", 2)]).unwrap_err();
    assert!(error.to_string().contains("row 2: field \"name\""), "{error}");
    assert_eq!(people.table().count().unwrap(), 0);
    people.insert(&person("Ada", 36)).unwrap();
    assert_eq!(people.insert(&person("Ada", 37)).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let error = people.get(("Ada", 36)).unwrap_err();
    assert_eq!(error.to_string(), "expected a key of 1 values (name), found 2");
    assert_eq!(people.get("Ada").unwrap().map(|p| p.born), Some(36));
}

#[test]
fn a_handle_follows_the_changes_of_its_table() {
    let db = memory();
    let people = db.create_table_of::<Person>("people").unwrap();
    people.insert(&Person { name: "Ada".into(), born: 1815 }).unwrap();
    let field = Field::new(FieldId(0), "height".into(), DataType::F64, true);
    db.alter_table("people", &[Alteration::AddField(field)]).unwrap();
    people.insert(&Person { name: "Grace".into(), born: 1906 }).unwrap();
    assert_eq!(people.get("Grace").unwrap().map(|p| p.born), Some(1906));
    let rename = Alteration::RenameField { from: "born".into(), to: "year".into() };
    db.alter_table("people", &[rename]).unwrap();
    let error = people.insert(&Person { name: "Alan".into(), born: 1912 }).unwrap_err();
    assert!(error.to_string().contains("unknown field \"born\""), "{error}");
    assert!(people.get("Ada").is_err());
    assert_eq!(people.table().count().unwrap(), 2);
}

#[test]
fn an_answer_that_disagrees_is_refused_by_its_column() {
    let db = memory();
    let people = db.create_table_of::<Person>("people").unwrap();
    people.insert(&Person { name: "Ada".into(), born: 1815 }).unwrap();
    #[derive(Debug, Record)]
    struct Wide {
        #[allow(dead_code, reason = "never read: it is refused")]
        born: u16,
    }
    let error = db.query_as::<Wide>(&Query::table("people")).unwrap_err();
    assert_eq!(error.to_string(), "record Wide: column \"born\": expected u16, found i16");
    #[derive(Debug, Record)]
    struct Other {
        #[allow(dead_code, reason = "never read: it is refused")]
        brn: i64,
    }
    let error = db.query_as::<Other>(&Query::table("people")).unwrap_err();
    assert!(error.to_string().starts_with("record Other: the answer has no column \"brn\""));
}

#[test]
fn two_fields_of_one_name_are_refused_by_the_schema() {
    #[derive(Record)]
    struct Twice {
        #[allow(dead_code, reason = "never written")]
        a: i64,
        #[esker(rename = "a")]
        #[allow(dead_code, reason = "never written")]
        b: i64,
    }
    let error = Twice::schema().unwrap_err();
    assert!(error.to_string().contains("\"a\""), "{error}");
    #[derive(Record)]
    struct Misfit {
        #[esker(default = 300)]
        #[allow(dead_code, reason = "never written")]
        a: u8,
    }
    let error = Misfit::schema().unwrap_err();
    assert_eq!(error.to_string(), "default of \"a\": expected u8 (0 to 255), found \"300\"");
}
