use super::*;

fn written(format: Format) -> String {
    let columns = vec![
        ("name", DataType::Text),
        ("n", DataType::I64),
        ("n", DataType::F64),
        ("when", DataType::Timestamp),
    ];
    let rows = [
        vec![
            ValueRef::Text("a \"b\", c\u{1b}[31m"),
            ValueRef::Int(i64::MIN),
            ValueRef::Float(0.1),
            ValueRef::Timestamp(0),
        ],
        vec![ValueRef::Text(""), ValueRef::Null, ValueRef::Float(f64::NAN), ValueRef::Null],
    ];
    let mut out = Vec::new();
    write(&mut out, Answer { columns, rows: rows.into_iter() }, format).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn as_csv() {
    let wanted = "name,n,n,when\n\"a \"\"b\"\", c\u{1b}[31m\",-9223372036854775808,0.1,\
                  1970-01-01 00:00:00\n\"\",,NaN,\n";
    assert_eq!(written(Format::Csv), wanted);
}

#[test]
fn as_json() {
    let wanted = "[\n{\"name\":\"a \\\"b\\\", c\\u001b[31m\",\"n\":-9223372036854775808,\
                  \"n_2\":0.1,\
                  \"when\":\"1970-01-01 00:00:00\"},\n\
                  {\"name\":\"\",\"n\":null,\"n_2\":\"NaN\",\"when\":null}\n]\n";
    assert_eq!(written(Format::Json), wanted);
    let mut out = Vec::new();
    let empty = Answer { columns: vec![("a", DataType::I64)], rows: std::iter::empty() };
    write(&mut out, empty, Format::Json).unwrap();
    assert_eq!(out, b"[]\n");
}

#[test]
fn as_a_table() {
    let text = written(Format::Table);
    assert!(text.contains("a \"b\", c\\u{1b}[31m"), "{text}");
    assert!(text.contains("│                      n │") || text.contains("n ┆"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn long_tables_end_with_how_much_is_left_out() {
    let mut out = Vec::new();
    let rows = (0..1_002).map(|n| vec![ValueRef::Int(n)]);
    let answer = Answer { columns: vec![("n", DataType::I64)], rows };
    write(&mut out, answer, Format::Table).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("… and 2 rows more: --format csv or json shows all\n"), "{text}");
}
