//! What other systems store wrongly and without a word, one test each: here it is stored as it is,
//! or refused with the field, the value and what was expected, and nothing changes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use esker::{DataType, Database, ErrorKind, Schema, Value};
use esker_import::parse_value;

/// A table of one field beside its key, in memory.
fn table(field: &str) -> (Database, esker::Table) {
    let schema = esker_import::schema_text::parse(&format!("id i64, v {field}, primary key (id)"));
    let db = esker::Options::new().memory().unwrap();
    let t = db.create_table("t", schema.unwrap()).unwrap();
    (db, t)
}

/// Reads a text as the field's type and inserts it; the stored value as text.
fn store(field: &str, text: &str) -> Result<String, String> {
    let (_db, t) = table(field);
    let data_type = t.schema().fields()[1].data_type;
    let value = parse_value(text, data_type).map_err(|e| e.to_string())?;
    t.insert(&[Value::Int(1), value]).map_err(|e| {
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert_eq!(t.count().unwrap(), 0);
        e.to_string()
    })?;
    Ok(t.get(&[Value::Int(1)]).unwrap().unwrap().values()[1].to_string())
}

/// Loads a file of one row by the program; what it prints on the way to failing, or the value.
fn load(field: &str, text: &str) -> Result<String, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("esker-wrong-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("a.csv"), format!("id,v\n1,{text}\n")).unwrap();
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_esker"))
            .args(arguments)
            .current_dir(&dir)
            .output()
            .unwrap()
    };
    let schema = format!("id i64, v {field}, primary key (id)");
    let output = run(&["load", "db", "t", "a.csv", "--schema", &schema]);
    let result = if output.status.success() {
        let value = run(&["sql", "db", "SELECT v FROM t", "--format", "csv"]).stdout;
        let value = String::from_utf8(value).unwrap();
        Ok(value.trim_end().rsplit('\n').next().unwrap().to_owned())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    };
    std::fs::remove_dir_all(&dir).unwrap();
    result
}

/// Refused by the engine and by the program alike, with these words.
fn refused(field: &str, text: &str, wanted: &str) {
    let by_engine = store(field, text).unwrap_err();
    assert!(by_engine.contains(wanted), "{field} {text:?}: {by_engine}");
    let by_program = load(field, text).unwrap_err();
    assert!(by_program.contains("a.csv:2: column 2 \"v\""), "{by_program}");
    assert!(by_program.contains("nothing was loaded"), "{by_program}");
}

fn kept(field: &str, text: &str, stored: &str) {
    assert_eq!(store(field, text).as_deref(), Ok(stored), "{field}");
    assert_eq!(load(field, text).as_deref(), Ok(stored), "{field}");
}

#[test]
fn over_long_text_is_not_cut() {
    refused("varchar:5", "abcdef", "field \"v\": expected at most 5 characters, found 6");
    kept("varchar:5", "äöüßé", "äöüßé");
}

#[test]
fn a_short_does_not_wrap() {
    refused("short", "70000", "expected i16 (-32768 to 32767), found \"70000\"");
    kept("short", "-32768", "-32768");
}

#[test]
fn a_byte_does_not_wrap() {
    refused("byte", "300", "expected u8 (0 to 255), found \"300\"");
    refused("byte", "-1", "expected u8 (0 to 255), found \"-1\"");
}

#[test]
fn a_long_does_not_saturate() {
    refused("long", "9223372036854775808", "expected i64");
    kept("long", "9223372036854775807", "9223372036854775807");
}

#[test]
fn words_are_not_the_number_zero() {
    for field in ["int", "long", "short", "byte", "double"] {
        refused(field, "abc", "found \"abc\"");
        refused(field, "12abc", "found \"12abc\"");
    }
}

#[test]
fn nan_is_a_value_and_not_broken_json() {
    let (_db, t) = table("double");
    t.insert(&[Value::Int(1), Value::Float(f64::NAN)]).unwrap();
    assert!(matches!(t.get(&[Value::Int(1)]).unwrap().unwrap().values()[1],
        Value::Float(v) if v.is_nan()));
    kept("double", "nan", "NaN");
}

#[test]
fn dates_that_do_not_exist_are_refused() {
    refused("date", "2026-02-30", "expected date (like 2013-01-31), found \"2026-02-30\"");
    refused("date", "20260102", "expected date");
    kept("date", "2024-02-29", "2024-02-29");
}

#[test]
fn a_time_after_18_12_15_is_stored_as_it_is() {
    kept("datetime", "2026-01-02 18:12:16", "2026-01-02 18:12:16");
    kept("datetime", "2026-01-02 23:59:59", "2026-01-02 23:59:59");
    kept("datetimems", "2026-01-02 23:59:59.999", "2026-01-02 23:59:59.999000");
    kept("time", "23:59:59", "23:59:59");
}

#[test]
fn malformed_times_are_not_midnight() {
    refused("time", "25:00:00", "expected time");
    refused("time", "noon", "expected time");
}

#[test]
fn malformed_uuids_and_addresses_are_not_zero() {
    refused("uuid", "67e55044-10b1-426f-9247", "expected uuid");
    refused("ipv4", "10.0.0.256", "expected ipv4");
    refused("ipv6", "fe80::1::2", "expected ipv6");
    kept("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8", "67e55044-10b1-426f-9247-bb680e5fe0c8");
}

#[test]
fn null_is_not_a_word_and_not_nothing() {
    let (_db, t) = table("varchar:8");
    t.insert(&[Value::Int(1), "null".into()]).unwrap();
    t.insert(&[Value::Int(2), Value::Null]).unwrap();
    t.insert(&[Value::Int(3), "".into()]).unwrap();
    let stored = |id| t.get(&[Value::Int(id)]).unwrap().unwrap().values()[1].clone();
    assert_eq!((stored(1), stored(2), stored(3)), ("null".into(), Value::Null, "".into()));
    let (_db, t) = table("varchar:8 not null");
    let e = t.insert(&[Value::Int(1), Value::Null]).unwrap_err();
    assert_eq!(e.to_string(), "field \"v\" must not be null");
    let (_db, t) = table("int");
    t.insert(&[Value::Int(1), Value::Int(0)]).unwrap();
    assert_eq!(t.get(&[Value::Int(1)]).unwrap().unwrap().values()[1], Value::Int(0));
}

#[test]
fn quotes_and_backslashes_are_kept() {
    let (_db, t) = table("varchar:20");
    for (id, text) in [(1, "a\"b"), (2, "a\\nb"), (3, "a\nb"), (4, "\"\""), (5, "\\\\")] {
        t.insert(&[Value::Int(id), text.into()]).unwrap();
        assert_eq!(t.get(&[Value::Int(id)]).unwrap().unwrap().values()[1], text.into());
    }
}

#[test]
fn fields_that_do_not_exist_are_not_ignored() {
    let (_db, t) = table("int");
    t.insert(&[Value::Int(1), Value::Int(7)]).unwrap();
    let e = t.update(&[Value::Int(1)], &[("w", Value::Int(8))]).unwrap_err();
    assert_eq!(e.to_string(), "unknown field \"w\"; fields: id, v");
    assert_eq!(t.insert(&[Value::Int(2)]).unwrap_err().kind(), ErrorKind::InvalidInput);
    let e = t.insert(&[Value::Int(2), Value::Int(3), Value::Int(4)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn updates_are_checked_as_inserts_are() {
    let (_db, t) = table("varchar:3");
    t.insert(&[Value::Int(1), "abc".into()]).unwrap();
    let e = t.update(&[Value::Int(1)], &[("v", "abcd".into())]).unwrap_err();
    assert!(e.to_string().contains("expected at most 3 characters, found 4: \"abcd\""), "{e}");
    let e = t.upsert(&[Value::Int(1), "abcd".into()]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    let mut appender = t.appender();
    assert!(appender.append(&[Value::Int(2), "abcd".into()]).is_err());
    let mut load = t.load().unwrap();
    assert!(load.push_row(&[Value::Int(3), "abcd".into()]).is_err());
    drop((appender, load));
    assert_eq!(t.get(&[Value::Int(1)]).unwrap().unwrap().values()[1], "abc".into());
    assert_eq!(t.count().unwrap(), 1);
}

#[test]
fn a_length_survives_reopening() {
    let dir = std::env::temp_dir().join(format!("esker-wrong-length-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let schema = Schema::builder().nullable("v", DataType::Text).max_length(2).build().unwrap();
    for _ in 0..2 {
        let db = Database::open(&dir).unwrap();
        let t = match db.table("t") {
            Ok(t) => t,
            Err(_) => db.create_table("t", schema.clone()).unwrap(),
        };
        assert_eq!(*t.schema(), schema);
        assert!(t.insert(&["abc".into()]).is_err());
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn numeric_does_not_go_through_a_double() {
    kept("numeric:18,2", "90071992547409.93", "90071992547409.93");
    kept("numeric:38,2", "90071992547409.93", "90071992547409.93");
    kept("decimal(16,2)", "0.10", "0.10");
    kept(
        "numeric:38,10",
        "-1234567890123456789012345678.0123456789",
        "-1234567890123456789012345678.0123456789",
    );
}

#[test]
fn numeric_keeps_to_its_digits() {
    let wanted = "expected decimal(5,2) (at most 3 digits before the point and 2 behind it)";
    for text in ["1000", "1234567.00", "-1000.00", "1e3"] {
        refused("numeric:5,2", text, wanted);
    }
    kept("numeric:5,2", "999.99", "999.99");
    kept("numeric:5,2", "-7", "-7.00");
}

#[test]
fn numeric_and_currency_are_not_rounded() {
    refused("numeric:5,2", "1.005", "found \"1.005\"");
    refused("currency", "1.23456", "expected decimal(19,4)");
    kept("currency", "1.2346", "1.2346");
    kept("currency", "1.23460", "1.2346");
    kept("currency", "922337203685477.5807", "922337203685477.5807");
}

#[test]
fn numeric_takes_numbers_alone() {
    for text in ["nan", "inf", "abc", "1,5", "0x10", "12abc", "1.5.2"] {
        let text = if text.contains(',') { "1;5" } else { text };
        refused("numeric:9,2", text, "expected decimal(9,2)");
        refused("currency", text, "expected decimal(19,4)");
    }
}

#[test]
fn an_enum_takes_its_labels_alone() {
    let field = "enum(red, green, 'dark red')";
    refused(field, "blue", "expected one of red, green, 'dark red', found \"blue\"");
    refused(field, "Red", "expected one of red");
    refused(field, "0", "expected one of red");
    kept(field, "dark red", "dark red");
    let (_db, t) = table(field);
    t.insert(&[Value::Int(1), "green".into()]).unwrap();
    t.insert(&[Value::Int(2), "red".into()]).unwrap();
    let forged = Value::Enum(b"\0\0green".to_vec());
    t.insert(&[Value::Int(3), forged]).unwrap();
    assert_eq!(
        t.get(&[Value::Int(3)]).unwrap().unwrap().values()[1],
        t.get(&[Value::Int(1)]).unwrap().unwrap().values()[1],
    );
}

#[test]
fn json_is_stored_as_it_is_meant() {
    refused("json", "{a:1}", "expected json");
    refused("json", "nan", "expected json: line 1, character 1: expected a value");
    kept("json", "12.50", "12.50");
    let twice = store("json", r#"{"a":1,"a":2}"#).unwrap_err();
    assert!(
        twice.contains("character 8: expected a name that the object does not have"),
        "{twice}"
    );
    let escaped = store("json", r#"{"b":"\u00e4\"\n","a":null}"#);
    assert_eq!(escaped.as_deref(), Ok(r#"{"a":null,"b":"ä\"\n"}"#));
    let (_db, t) = table("json");
    let forged = t.insert(&[Value::Int(1), Value::Json(vec![9])]).unwrap_err();
    assert!(forged.to_string().contains("field \"v\": expected json"), "{forged}");
    assert_eq!(t.count().unwrap(), 0);
}
