//! Update operators, one by one: what they do, where nothing is, and what they refuse.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and has threads of its own"
)]

use esker::operators::{OPERATORS, Operator};
use esker::{
    DataType, Database, Error, ErrorKind, Modified, NewIndex, Options, Query, Schema, Table,
    Update, Value,
};
use esker_query::model::{Expr, Operator as Compare};

fn table() -> (Database, Table) {
    let db = Options::new().memory().unwrap();
    let natural = Expr::field("n").binary(Compare::Gte, Expr::literal(0));
    let check = esker::check("not_negative", &natural).unwrap();
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("n", DataType::I64)
        .nullable("small", DataType::U8)
        .nullable("price", DataType::decimal(6, 2).unwrap())
        .nullable("ratio", DataType::F64)
        .nullable("name", DataType::Text)
        .nullable("at", DataType::Timestamp)
        .nullable("doc", DataType::Json)
        .check(check.name, check.condition)
        .primary_key(["id"])
        .build()
        .unwrap();
    let t = db.create_table("t", schema).unwrap();
    (db, t)
}

/// A row with a document.
fn put(t: &Table, doc: &str) {
    let mut row = vec![Value::Null; 8];
    row[0] = 1.into();
    row[7] = Value::json(doc).unwrap();
    t.upsert(&row).unwrap();
}

fn apply(t: &Table, update: &Update) -> Result<Vec<Value>, Error> {
    match t.apply(&[1.into()], update)? {
        Modified::Changed { new: Some(row), .. } => {
            assert_eq!(t.get(&[1.into()]).unwrap().unwrap(), row, "what is told is what is there");
            Ok(row.into_values())
        }
        other => panic!("{other:?}"),
    }
}

/// The document after an update of a document.
fn edited(t: &Table, doc: &str, update: &Update) -> String {
    put(t, doc);
    apply(t, update).unwrap()[7].to_string()
}

/// The error of an update of a document, which stays.
fn refused(t: &Table, doc: &str, update: &Update) -> String {
    put(t, doc);
    let before = t.get(&[1.into()]).unwrap();
    let e = apply(t, update).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    assert_eq!(t.get(&[1.into()]).unwrap(), before);
    e.to_string()
}

#[test]
fn each_operator_changes_its_place_of_a_document_and_nothing_else() {
    let (_db, t) = table();
    let u = Update::new;
    for (doc, update, wanted) in [
        (r#"{"a":{"b":1},"z":[1]}"#, u().set("doc.a.b", "x"), r#"{"a":{"b":"x"},"z":[1]}"#),
        (r#"{"z":1}"#, u().set("doc.a.b.c", true), r#"{"a":{"b":{"c":true}},"z":1}"#),
        (r#"{"a":[1,2]}"#, u().set("doc.a.2", 3), r#"{"a":[1,2,3]}"#),
        (r#"{"a":[1,2]}"#, u().set("doc.a.-1", Value::Null), r#"{"a":[1,null]}"#),
        (r#"{"a.b":1}"#, u().set(r"doc.a\.b", 2), r#"{"a.b":2}"#),
        (r#"{"a":1,"b":2}"#, u().unset("doc.a"), r#"{"b":2}"#),
        (r#"{"a":[1,2,3]}"#, u().unset("doc.a.1").unset("doc.x.y"), r#"{"a":[1,3]}"#),
        (r#"{"a":[{"n":1}]}"#, u().increment("doc.a.0.n", -5), r#"{"a":[{"n":-4}]}"#),
        (r#"{"a":{}}"#, u().increment("doc.a.n", 7), r#"{"a":{"n":7}}"#),
        ("[]", u().increment("doc.0", 7), "[7]"),
        (r#"{"a":6}"#, u().multiply("doc.a", 7).multiply("doc.b", 7), r#"{"a":42,"b":0}"#),
        (r#"{"a":6,"b":6}"#, u().min("doc.a", 5).min("doc.b", 7), r#"{"a":5,"b":6}"#),
        (r#"{"a":"x","b":6}"#, u().max("doc.a", "y").max("doc.b", 7), r#"{"a":"y","b":7}"#),
        (r#"{"b":1.0}"#, u().min("doc.a", 5).max("doc.b", 1), r#"{"a":5,"b":1.0}"#),
        (r#"{"a":{"b":[1]},"c":0}"#, u().rename("doc.a.b", "doc.c"), r#"{"a":{},"c":[1]}"#),
        (r#"{"a":1}"#, u().rename("doc.x", "doc.y"), r#"{"a":1}"#),
        (
            r#"{"a":{"b":1,"d":2},"e":0}"#,
            u().rename("doc.a.b", "doc.a.c"),
            r#"{"a":{"c":1,"d":2},"e":0}"#,
        ),
        (r#"{"a":{"b":1}}"#, u().rename("doc.a.b", "doc.a.c.d"), r#"{"a":{"c":{"d":1}}}"#),
        (r#"{"a":{"b":1}}"#, u().rename("doc.a.x", "doc.a.c"), r#"{"a":{"b":1}}"#),
        (r#"{"e":1}"#, u().rename("doc.a.b", "doc.a.c"), r#"{"e":1}"#),
        (r#"{"a":[7,{"b":8}]}"#, u().rename("doc.a.1.b", "doc.a.1.c"), r#"{"a":[7,{"c":8}]}"#),
        (r#"{"a":[7,8,9]}"#, u().rename("doc.a.0", "doc.a.2"), r#"{"a":[8,9,7]}"#),
        (r#"{"a":[1]}"#, u().push("doc.a", "x").push("doc.b", 2), r#"{"a":[1,"x"],"b":[2]}"#),
        (r#"{"a":[1]}"#, u().push_front("doc.a", 0), r#"{"a":[0,1]}"#),
        (r#"{"a":[1,2],"b":[]}"#, u().pop("doc.a").pop("doc.b"), r#"{"a":[1],"b":[]}"#),
        (r#"{"a":[1,2]}"#, u().pop_front("doc.a").pop("doc.x"), r#"{"a":[2]}"#),
        (r#"{"a":[1,"1",1.0,2]}"#, u().pull("doc.a", 1), r#"{"a":["1",2]}"#),
        (
            r#"{"a":[{"x":1,"y":[2]}]}"#,
            u().pull("doc.a", Value::json(r#"{"y":[2.0],"x":1e0}"#).unwrap()),
            r#"{"a":[]}"#,
        ),
        (r#"{"a":[1,2]}"#, u().add_to_set("doc.a", 2), r#"{"a":[1,2]}"#),
        (r#"{"a":[1,2]}"#, u().add_to_set("doc.a", "2"), r#"{"a":[1,2,"2"]}"#),
        ("5", u().increment("doc", 1), "6"),
        ("[5]", u().push("doc", "x"), r#"[5,"x"]"#),
    ] {
        assert_eq!(edited(&t, doc, &update), wanted, "{doc} {update:?}");
    }
}

#[test]
fn numbers_of_documents_are_exact() {
    let (_db, t) = table();
    for (number, by, sum, product) in [
        ("9007199254740993", Value::Int(2), "9007199254740995", "18014398509481986"),
        ("0.1", Value::Float(0.2), "0.3", "0.02"),
        ("1.50", Value::Int(2), "3.50", "3.00"),
        ("-1", Value::Uint(u64::MAX), "18446744073709551614", "-18446744073709551615"),
        ("1e3", Value::Int(1), "1001", "1000"),
        ("1e300", Value::Int(2), "1e300", "2e300"),
    ] {
        let update = Update::new().increment("doc.a", by.clone()).multiply("doc.b", by);
        let doc = format!(r#"{{"a":{number},"b":{number}}}"#);
        let wanted = format!(r#"{{"a":{sum},"b":{product}}}"#);
        assert_eq!(edited(&t, &doc, &update), wanted);
    }
    // A long fraction is rounded; a digit before the point is never lost.
    let tiny = Value::json("0.00000000000000000000000000000000000001").unwrap();
    let doc = edited(&t, r#"{"a":9007199254740993}"#, &Update::new().increment("doc.b", 1));
    assert_eq!(doc, r#"{"a":9007199254740993,"b":1}"#);
    assert!(refused(&t, r#"{"a":1}"#, &Update::new().increment("doc.a", tiny)).contains("number"));
    let long = "99999999999999999999999999999999999999";
    let e = refused(&t, &format!(r#"{{"a":{long}}}"#), &Update::new().increment("doc.a", 1));
    assert_eq!(e, format!(r#"increment "doc.a": {long} + 1: more than 38 digits"#));
    let e = refused(&t, r#"{"a":1e-300}"#, &Update::new().increment("doc.a", 9007199254740993i64));
    assert!(e.contains("more than 38 digits"), "{e}");
    let e = refused(&t, r#"{"a":1e308}"#, &Update::new().multiply("doc.a", 100));
    assert_eq!(e, r#"multiply "doc.a": 1e308 * 100 does not fit f64"#);
}

#[test]
fn fields_of_other_types_keep_to_their_type() {
    let (_db, t) = table();
    put(&t, "{}");
    let update = Update::new()
        .increment("n", 5)
        .increment("small", 250)
        .increment("price", 1.25)
        .increment("ratio", 0.5)
        .set("name", "Ada")
        .max("at", "2026-01-31 12:00:00");
    let row = apply(&t, &update).unwrap();
    let shown: Vec<String> = row[1..6].iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["5", "250", "1.25", "0.5", "Ada"]);
    let update = Update::new().multiply("n", 3).min("name", "Bob").max("small", 251).unset("at");
    let row = apply(&t, &update).unwrap();
    let shown: Vec<String> = row[1..7].iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["15", "251", "1.25", "0.5", "Ada", "null"]);

    for (update, wanted) in [
        (Update::new().increment("small", 10), "increment \"small\": 251 + 10 does not fit u8"),
        (Update::new().increment("n", 1.5), "increment \"n\": 15 + 1.5 does not fit i64"),
        (
            Update::new().increment("price", 9999),
            "increment \"price\": 1.25 + 9999 does not fit decimal(6,2)",
        ),
        (Update::new().multiply("ratio", 1e308).multiply("n", 2), ""),
        (
            Update::new().increment("name", 1),
            "increment \"name\": field \"name\": expected a number, or a number in json, found \
             text",
        ),
        (Update::new().increment("n", "x"), "increment \"n\": expected a number, found text x"),
        (
            Update::new().push("name", 1),
            "push \"name\": field \"name\": expected an array in json, found text",
        ),
        (
            Update::new().set("name.first", 2),
            "set \"name.first\": a path inside field \"name\": expected json, found text",
        ),
        (Update::new(), "expected at least one operator, found none"),
    ] {
        let before = t.get(&[1.into()]).unwrap();
        match apply(&t, &update) {
            Err(e) => {
                assert_eq!((e.kind(), e.to_string()), (ErrorKind::InvalidInput, wanted.into()));
                assert_eq!(t.get(&[1.into()]).unwrap(), before);
            }
            Ok(_) => assert_eq!(wanted, ""),
        }
    }
    let e = apply(&t, &Update::new().increment("n", -31)).unwrap_err();
    assert!(e.to_string().contains("not_negative"), "{e}");
    let e = apply(&t, &Update::new().set("missing", 1)).unwrap_err();
    assert!(e.to_string().contains("unknown field \"missing\""), "{e}");
}

#[test]
fn what_does_not_fit_is_named_and_changes_nothing() {
    let (_db, t) = table();
    let u = Update::new;
    for (doc, update, wanted) in [
        (r#"{"a":"x"}"#, u().increment("doc.a", 1), "expected a number, found a string"),
        (r#"{"a":null}"#, u().increment("doc.a", 1), "expected a number, found null"),
        (r#"{"a":{}}"#, u().push("doc.a", 1), "expected an array, found an object"),
        (r#"{"a":5}"#, u().pop("doc.a"), "expected an array, found a number"),
        (r#"{"a":5}"#, u().min("doc.a", "x"), "expected a string, found a number"),
        (r#"{"a":5}"#, u().max("doc.a", true), "expected a number or a string"),
        (r#"{"a":5}"#, u().set("doc.a.b", 1), "expected an object or an array before \"b\""),
        (r#"{"a":[5]}"#, u().set("doc.a.x", 1), "expected a place of an array of 1"),
        (r#"{"a":[5]}"#, u().set("doc.a.3", 1), "expected a place of an array of 1"),
        (r#"{"a":[5]}"#, u().set("doc.a.-2", 1), "expected a place of an array of 1"),
        ("{}", u().set("doc.a", f64::NAN), "expected a number that json has"),
        ("{}", u().rename("doc.a", "n"), "expected a path inside the same json field"),
        ("{}", u().rename("doc.a", "doc"), "expected a path inside the same json field"),
        ("{}", u().set("doc.a", 1).increment("doc.a", 1), "expected operators on different places"),
        ("{}", u().set("doc.a.b", 1).unset("doc"), "expected operators on different places"),
        ("{}", u().set("doc.b", 1).rename("doc.a", "doc.b"), "on different places"),
        ("{}", u().rename("doc.a", "doc.a.b"), "expected operators on different places"),
        // The first of the two is done by then, and undone.
        (r#"{"b":"x"}"#, u().set("doc.a", 1).increment("doc.b", 1), "expected a number"),
    ] {
        let e = refused(&t, doc, &update);
        assert!(e.contains(wanted), "{e}\n{wanted}");
    }
    let deep = format!("doc{}", ".a".repeat(129));
    assert!(refused(&t, "{}", &u().set(deep, 1)).contains("at most 128 levels"));
    let deepest = format!("doc{}", ".a".repeat(128));
    assert!(edited(&t, "{}", &u().set(deepest, 1)).starts_with("{\"a\":{\"a\":"));
}

#[test]
fn null_fields_are_missing_and_absent_rows_stay_absent() {
    let (_db, t) = table();
    let mut row = vec![Value::Null; 8];
    row[0] = 1.into();
    t.insert(&row).unwrap();
    let row = apply(&t, &Update::new().increment("doc.a", 1).push("doc.b", 2)).unwrap();
    assert_eq!(row[7].to_string(), r#"{"a":1,"b":[2]}"#);
    assert!(apply(&t, &Update::new().unset("doc")).unwrap()[7].is_null());
    assert!(apply(&t, &Update::new().unset("doc.a").pop("doc.b")).unwrap()[7].is_null());
    assert_eq!(t.apply(&[2.into()], &Update::new().set("n", 1)).unwrap(), Modified::Absent);
    let e = t.apply(&[2.into()], &Update::new().set("x", 1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput, "also where there is no row");
    let kept = t.apply_if(&[1.into()], &Update::new().set("n", 1), &Expr::literal(false));
    assert!(matches!(kept.unwrap(), Modified::Kept(_)));
}

#[test]
fn indexes_and_unique_values_follow() {
    let (db, t) = table();
    t.insert(&[vec![1.into(), 5.into()], vec![Value::Null; 6]].concat()).unwrap();
    t.insert(&[vec![2.into(), 6.into()], vec![Value::Null; 6]].concat()).unwrap();
    db.create_index("t", NewIndex::new("by_n", ["n"]).unique()).unwrap();
    let e = t.apply(&[1.into()], &Update::new().increment("n", 1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
    t.apply(&[1.into()], &Update::new().increment("n", 2)).unwrap();
    db.transact(|x| x.table("t")?.apply(&[2.into()], &Update::new().multiply("n", 2))).unwrap();
    let mut query = Query::table("t");
    query.select(Expr::field("id"));
    query.filter = Some(Expr::field("n").binary(Compare::Eq, Expr::literal(7)));
    assert_eq!(db.query(&query).unwrap().to_rows(), [[Value::Int(1)]]);
    query.filter = Some(Expr::field("n").binary(Compare::Eq, Expr::literal(12)));
    assert_eq!(db.query(&query).unwrap().to_rows(), [[Value::Int(2)]]);
    let large = Expr::field("n").binary(Compare::Gt, Expr::literal(10));
    let undone = db.begin().unwrap();
    assert_eq!(undone.apply_where("t", None, &Update::new().set("name", "x")).unwrap(), 2);
    drop(undone);
    let update = Update::new().set("name", "large").increment("doc.times", 1);
    assert_eq!(db.apply_where("t", Some(&large), &update).unwrap(), 1);
    assert!(t.get(&[1.into()]).unwrap().unwrap().get("name").unwrap().is_null());
    assert_eq!(t.get(&[2.into()]).unwrap().unwrap().get("name"), Some(&"large".into()));
}

#[test]
fn the_time_is_the_clocks() {
    let (_db, t) = table();
    put(&t, "{}");
    let row = apply(&t, &Update::new().current_time("at").current_time("doc.at")).unwrap();
    let Value::Timestamp(us) = row[6] else { panic!("{row:?}") };
    assert!(us > 1_700_000_000_000_000);
    assert!(row[7].to_string().starts_with(r#"{"at":"2"#), "{}", row[7]);
    let e = apply(&t, &Update::new().current_time("name")).unwrap_err();
    assert!(e.to_string().contains("expected a timestamp, a date, a time or json"), "{e}");
}

#[test]
fn threads_that_count_lose_nothing() {
    let (db, t) = table();
    put(&t, r#"{"by":{"all":0},"other":[1,2,3]}"#);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (db, t) = (db.clone(), t.clone());
            scope.spawn(move || {
                let update = Update::new().increment("doc.by.all", 1).increment("n", 1);
                for _ in 0..100 {
                    if thread % 2 == 0 {
                        t.apply(&[1.into()], &update).unwrap();
                    } else {
                        db.transact(|x| x.table("t")?.apply(&[1.into()], &update)).unwrap();
                    }
                }
            });
        }
    });
    let row = t.get(&[1.into()]).unwrap().unwrap();
    assert_eq!(row.get("n"), Some(&800.into()));
    let doc = row.get("doc").unwrap().to_string();
    assert_eq!(doc, r#"{"by":{"all":800},"other":[1,2,3]}"#);
}

#[test]
fn an_update_is_read_from_json_and_written_back() {
    let text = r#"{"push":{"doc.b":{"x":[1]}},"unset":["doc.c","n"],"set":{"name":null},"pop":[]}"#;
    let update: Update = serde_json::from_str(text).unwrap();
    let wanted = Update::new()
        .push("doc.b", Value::json(r#"{"x":[1]}"#).unwrap())
        .unset("doc.c")
        .unset("n")
        .set("name", Value::Null);
    assert_eq!(update, wanted);
    let again: Update = serde_json::from_str(&serde_json::to_string(&update).unwrap()).unwrap();
    assert_eq!(again, update);
    for (text, wanted) in [
        (r#"{"incrment":{}}"#, "unknown operator \"incrment\"; did you mean \"increment\"?"),
        (r#"{"increment":["n"]}"#, "an object of paths and operands for increment"),
        (r#"{"unset":{"n":1}}"#, "a list of paths for unset"),
    ] {
        let e = serde_json::from_str::<Update>(text).unwrap_err().to_string();
        assert!(e.contains(wanted), "{e}");
    }
}

#[test]
fn the_documented_operators_are_these() {
    let reference = include_str!("../../../../docs/reference/update-operators.md");
    let (table, _) = reference.split_once("## Rules").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<String> = OPERATORS
        .iter()
        .map(|e| {
            let operand = format!("{:?}", e.operand).to_lowercase();
            format!("| `{}` | {operand} | {} | {} | {} |", e.name, e.fields, e.does, e.missing)
        })
        .collect();
    assert_eq!(rows, wanted, "\n{}\n", wanted.join("\n"));
    for entry in OPERATORS {
        assert_eq!(Operator::from_name(entry.name), Some(entry.operator));
        assert_eq!(entry.operator.entry().name, entry.name);
    }
}
