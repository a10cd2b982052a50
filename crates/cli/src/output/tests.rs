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
    write(&mut out, Answer { columns, rows: rows.into_iter() }, format, &Style::default()).unwrap();
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
    write(&mut out, empty, Format::Json, &Style::default()).unwrap();
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
    write(&mut out, answer, Format::Table, &Style::default()).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("… and 2 rows more: --format csv or json shows all\n"), "{text}");
}

#[test]
fn tables_fit_the_terminal() {
    let columns = vec![("id", DataType::I64), ("text", DataType::Text), ("more", DataType::Text)];
    let rows = || {
        let row = |n| vec![ValueRef::Int(n), ValueRef::Text("a long text, \u{e9}"), ValueRef::Null];
        (0..3).map(row)
    };
    let shown = |width| {
        let mut out = Vec::new();
        let answer = Answer { columns: columns.clone(), rows: rows() };
        write(&mut out, answer, Format::Table, &Style { width: Some(width), ..Style::default() })
            .unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(shown(80).contains("a long text, \u{e9}"));
    for width in [10, 16, 20, 24, 28] {
        let text = shown(width);
        let wide = text.lines().take(5).map(|line| line.chars().count()).max();
        assert!(wide <= Some(width), "{width}: {text}");
        assert!(text.contains('\u{2026}'), "{text}");
    }
    assert!(shown(16).ends_with("\u{2026} and 1 column more: more\n"), "{}", shown(16));
}

#[test]
fn tables_have_counts_types_and_colours_on_request() {
    let columns = vec![("id", DataType::I64), ("name", DataType::Text)];
    let rows =
        || [vec![ValueRef::Int(1), ValueRef::Null], vec![ValueRef::Int(2), ValueRef::Text("b")]];
    let shown = |style: Style| {
        let mut out = Vec::new();
        let answer = Answer { columns: columns.clone(), rows: rows().into_iter() };
        write(&mut out, answer, Format::Table, &style).unwrap();
        String::from_utf8(out).unwrap()
    };
    let style = || Style { counts: true, null: "∅".to_owned(), ..Style::default() };
    let plain = shown(style());
    assert!(plain.ends_with("(2 rows)\n") && plain.contains("┆ ∅"), "{plain}");
    let types = shown(Style { types: true, ..style() });
    assert!(types.lines().nth(2).unwrap().contains("i64"), "{types}");
    let colored = shown(Style { colors: true, ..style() });
    assert!(colored.contains("\x1b[1m│ id") && colored.contains("\x1b[2m∅\x1b[0m"), "{colored}");
    let without: String = colored.replace("\x1b[1m", "").replace("\x1b[2m", "");
    assert_eq!(without.replace("\x1b[0m", ""), plain, "colours move nothing");
    let expanded = shown(Style { expanded: true, types: true, ..style() });
    let wanted = "── row 1 ──\nid i64    │ 1\nname text │ ∅\n── row 2 ──\nid i64    │ 2\n\
                  name text │ b\n(2 rows)\n";
    assert_eq!(expanded, wanted);
}
