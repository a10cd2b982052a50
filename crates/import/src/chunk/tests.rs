use super::*;
use crate::dialect::Csv;
use crate::schema_text;

fn layout(schema: &str) -> Layout {
    let schema = schema_text::parse(schema).unwrap();
    Layout {
        dialect: Dialect::Csv(Csv::commas()),
        names: Names::default(),
        key: None,
        nulls: Nulls::new(&[String::new(), "NA".to_owned()]),
        sources: (0..schema.fields().len()).map(Some).collect(),
        columns: schema.fields().iter().map(|f| f.name.clone()).collect(),
        schema,
        note: String::new(),
        notation: Notation::default(),
        spellings: false,
        unknown: Unknown::Error,
        rest: None,
        blank: None,
        untyped: Vec::new(),
        rest_columns: Vec::new(),
    }
}

fn rows(schema: &str, text: &[u8]) -> std::result::Result<Vec<String>, String> {
    let layout = layout(schema);
    let parsed = parse(&layout, Chunk::of(text), false);
    let batch = parsed.rows.map_err(|e| format!("{e} ({:?})", e.line()))?.batch;
    let row = |i| {
        let values = batch.columns.iter().map(|c| c.value(i).to_string());
        values.collect::<Vec<_>>().join("|")
    };
    Ok((0..batch.len()).map(row).collect())
}

#[test]
fn every_type() {
    let schema = "a bool, b i8, c i16, d i32, e i64, f u8, g u16, h u32, i u64, j f32, k f64, \
                  l text, m bytes, n date, o timestamp";
    let text = b"true,-1,2,3,4,5,6,7,8,1.5,2.5,x,00ff,2013-01-31,2013-01-31T05:17:00Z\n\
                 ,,,,,,,,,,,,,,\n\
                 \"false\",\"1\",NA,3,4,5,6,7,8,1.5,2.5,\"\",\"\",\"2013-01-31\",NA\n";
    let wanted = [
        "true|-1|2|3|4|5|6|7|8|1.5|2.5|x|00ff|2013-01-31|2013-01-31 05:17:00",
        "null|null|null|null|null|null|null|null|null|null|null|null|null|null|null",
        "false|1|null|3|4|5|6|7|8|1.5|2.5|||2013-01-31|null",
    ];
    assert_eq!(rows(schema, text).unwrap(), wanted);
}

#[test]
fn quoted_fields_are_never_null() {
    let text = b"\"NA\",\"a\"\"b\"\nNA,\"\"\n";
    assert_eq!(rows("a text, b text", text).unwrap(), ["NA|a\"b", "null|"]);
}

#[test]
fn null_marks_come_only_with_nulls() {
    let text: String =
        (0..3000).map(|i| format!("{i},{}\n", if i == 2500 { "NA" } else { "1" })).collect();
    let batch = parse(&layout("a i64, b i64"), Chunk::of(text.as_bytes()), false);
    let batch = batch.rows.unwrap().batch;
    assert_eq!(batch.columns[0].nulls, None);
    let marks = batch.columns[1].nulls.as_ref().unwrap();
    assert_eq!((marks.len(), marks.iter().map(|m| usize::from(*m)).sum()), (3000, 1usize));
    assert!(batch.columns[1].is_null(2500));
}

#[test]
fn the_first_misfit_in_file_order_is_reported() {
    let schema = "a i64 not null, b i64";
    let error = |text: &[u8]| rows(schema, text).unwrap_err();
    assert_eq!(
        error(b"1,2\n3,x\nNA,1\n"),
        "column 2 \"b\": expected i64 (-9223372036854775808 to 9223372036854775807), \
         found \"x\" (Some(2))"
    );
    assert_eq!(
        error(b"1,2\n\nNA,x\n1\n"),
        "column 1 \"a\": the field is declared not null, found NULL (spelled \"NA\") (Some(3))"
    );
    assert_eq!(
        error(b"1,2\n1\nx,1\n"),
        "expected 2 fields, found 1: nothing for column 2 \"b\" (Some(2))"
    );
    assert_eq!(error(b"1,2\n1,2,3\n"), "expected 2 fields, found 3 (Some(2))");
    assert_eq!(error(b"\"1\",\"2\n"), "a quoted field starts here and is never closed (Some(1))");
    assert_eq!(
        error(b"1,2\n\"1\"x,2\n"),
        "expected a delimiter or the end of the line after a closing quote, \
         found \"x,2\" at byte 4 of the line (Some(2))"
    );
}

#[test]
fn text_must_be_utf8() {
    let error = rows("a i64, b text", b"1,ok\n2,caf\xe9\nx,y\n").unwrap_err();
    assert_eq!(error, "column 2 \"b\": expected text in UTF-8, found \"caf\u{fffd}\" (Some(2))");
    let error = rows("a i64, b text", b"x,ok\n2,caf\xe9\n").unwrap_err();
    assert!(error.starts_with("column 1 \"a\": expected i64"), "{error}");
}

#[test]
fn long_values_are_cut_in_errors() {
    let text = format!("1,{}\n", "y".repeat(500));
    let error = rows("a i64, b i64", text.as_bytes()).unwrap_err();
    assert!(error.contains("yyyy\"… (500 bytes)"), "{error}");
    assert!(error.len() < 250, "{error}");
}

#[test]
fn columns_come_in_the_order_of_the_schema() {
    let mut layout = layout("b text, a i64");
    layout.columns.reverse();
    layout.sources = vec![Some(1), Some(0)];
    let batch = parse(&layout, Chunk::of(b"1,x\n2,y\n"), false).rows.unwrap().batch;
    assert_eq!(batch.columns[0].value(1).to_string(), "y");
    assert_eq!(batch.columns[1].value(1).to_string(), "2");
}

#[test]
fn a_column_may_be_empty_in_some_blocks() {
    let line = |i: usize| format!("{i},,{}\n", if i > 2000 { "x" } else { "" });
    let text: String = (0..3000).map(line).collect();
    let parsed = |schema| parse(&layout(schema), Chunk::of(text.as_bytes()), false).rows;
    let batch = parsed("a i64, b f64, c text").unwrap().batch;
    assert!((0..3000).all(|i| batch.columns[1].is_null(i)));
    assert!((0..3000).all(|i| batch.columns[2].is_null(i) == (i <= 2000)));
    assert_eq!(batch.columns[2].value(2999).to_string(), "x");
    let error = parsed("a i64, b f64 not null, c text").unwrap_err().to_string();
    assert!(error.contains("column 2 \"b\": the field is declared not null"), "{error}");
}
