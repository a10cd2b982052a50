//! Rows as structs: every type there and back, and what is said when struct and table disagree.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::net::{Ipv4Addr, Ipv6Addr};

use esker::{
    Alteration, DataType, Database, Decimal, DefaultValue, ErrorKind, Field, FieldId, FieldType,
    Options, Query, Record, Schema, Value,
};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, FieldType)]
enum Size {
    Small,
    #[esker(rename = "very large")]
    VeryLarge,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Detail {
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u64>,
}

/// A field of every type.
#[derive(Clone, Debug, PartialEq, Record)]
struct Everything {
    #[esker(key)]
    id: i64,
    flag: bool,
    tiny: i8,
    short: i16,
    int: i32,
    #[esker(rename = "unsigned tiny")]
    unsigned_tiny: u8,
    unsigned_short: u16,
    unsigned_int: u32,
    unsigned_long: u64,
    single: f32,
    double: f64,
    name: String,
    #[esker(max = 8)]
    code: Option<String>,
    bytes: Vec<u8>,
    uuid: [u8; 16],
    v4: Ipv4Addr,
    v6: Option<Ipv6Addr>,
    #[esker(type = "decimal(18,4)")]
    price: Decimal,
    #[esker(type = "decimal(38,10)")]
    exact: Option<Decimal>,
    #[esker(type = "timestamp")]
    at: i64,
    #[esker(type = "date")]
    day: Option<i32>,
    #[esker(type = "time")]
    time: i64,
    size: Size,
    #[esker(labels(red, "dark red"))]
    color: Option<String>,
    document: serde_json::Value,
    #[esker(json)]
    detail: Option<Detail>,
    #[esker(skip)]
    cached: Vec<u8>,
    r#type: Option<bool>,
}

fn decimal(digits: u32, scale: u8) -> impl Strategy<Value = Decimal> {
    let limit = 10i128.pow(digits);
    let extremes = prop_oneof![Just(0), Just(limit - 1), Just(1 - limit), 1 - limit..limit];
    extremes.prop_map(move |mantissa| Decimal::new(mantissa, scale).unwrap())
}

fn single() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(0.0),
        Just(f32::MAX),
        Just(f32::MIN_POSITIVE),
        Just(f32::INFINITY),
        any::<f32>().prop_filter("NaN equals nothing", |v| !v.is_nan())
    ]
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.1),
        Just(f64::MIN),
        Just(f64::NEG_INFINITY),
        any::<f64>().prop_filter("NaN equals nothing", |v| !v.is_nan())
    ]
}

fn extreme<T: Copy + std::fmt::Debug + Arbitrary>(least: T, most: T) -> impl Strategy<Value = T> {
    prop_oneof![Just(least), Just(most), any::<T>()]
}

prop_compose! {
    fn numbers()(
        tiny in extreme(i8::MIN, i8::MAX), short in extreme(i16::MIN, i16::MAX),
        int in extreme(i32::MIN, i32::MAX), unsigned_tiny in any::<u8>(),
        unsigned_short in any::<u16>(), unsigned_int in extreme(0, u32::MAX),
        unsigned_long in extreme(0, u64::MAX), single in single(), double in double(),
        price in decimal(18, 4), exact in proptest::option::of(decimal(38, 10)),
        flag in any::<bool>()
    ) -> Everything {
        Everything {
            id: 0, flag, tiny, short, int, unsigned_tiny, unsigned_short, unsigned_int,
            unsigned_long, single, double, name: String::new(), code: None, bytes: Vec::new(),
            uuid: [0; 16], v4: Ipv4Addr::LOCALHOST, v6: None, price, exact, at: 0, day: None,
            time: 0, size: Size::Small, color: None, document: serde_json::Value::Null,
            detail: None, cached: Vec::new(), r#type: None,
        }
    }
}

prop_compose! {
    fn everything()(
        numbers in numbers(), id in extreme(i64::MIN, i64::MAX), name in ".*",
        code in proptest::option::of("\\PC{0,8}"), bytes in any::<Vec<u8>>(),
        uuid in any::<[u8; 16]>(), v4 in any::<Ipv4Addr>(), v6 in any::<Option<Ipv6Addr>>(),
        at in extreme(-62_135_596_800_000_000, 253_402_300_799_999_999),
        day in any::<Option<i32>>(), time in 0..86_400_000_000i64
    ) -> Everything {
        Everything { id, name, code, bytes, uuid, v4, v6, at, day, time, ..numbers }
    }
}

prop_compose! {
    fn rest()(
        row in everything(), size in prop_oneof![Just(Size::Small), Just(Size::VeryLarge)],
        color in proptest::option::of(prop_oneof![Just("red"), Just("dark red")]),
        tags in proptest::collection::vec(".*", 0..3), depth in any::<Option<u64>>(),
        has_detail in any::<bool>(), number in any::<i64>(), text in ".*"
    ) -> Everything {
        let detail = has_detail.then_some(Detail { tags, depth });
        let document = serde_json::json!({ "number": number, "text": text, "list": [null, true] });
        let color = color.map(str::to_owned);
        Everything { size, color, detail, document, r#type: Some(true), ..row }
    }
}

fn memory() -> Database {
    Options::new().memory().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_type_comes_back_as_it_was(rows in proptest::collection::vec(rest(), 1..8)) {
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
    assert!(error.to_string().contains("row 1: field \"name\""), "{error}");
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
