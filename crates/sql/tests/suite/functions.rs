//! Functions: the examples of their table, and what the table cannot say.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::sync::Arc;

use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::FUNCTIONS;
use esker_query::{Options, execute};
use esker_vfs::Environment;

const WORDS: [&str; 4] = ["", "esker", "Äßc", "a b"];

fn source(encoding: Encoding) -> MemorySource {
    let schema = Schema::builder()
        .field("i", DataType::I64)
        .nullable("word", DataType::Text)
        .nullable("x", DataType::F64)
        .field("day", DataType::Date)
        .field("at", DataType::Timestamp)
        .field("big", DataType::U64)
        .nullable("raw", DataType::Bytes)
        .build()
        .unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..400i32 {
        let word = WORDS[usize::try_from(i % 4).unwrap()];
        let row = [
            Value::Int(i.into()),
            if i % 7 == 6 { Value::Null } else { word.into() },
            if i % 5 == 4 { Value::Null } else { Value::Float(f64::from(i) / 4.0 - 10.0) },
            Value::Date(19_000 + i),
            Value::Timestamp(i64::from(i) * 86_399_999_999),
            Value::Uint(u64::MAX - u64::from(i.unsigned_abs())),
            Value::Bytes(vec![0xff, u8::try_from(i % 256).unwrap()]),
        ];
        batch.push_row(&schema, &row).unwrap();
    }
    let layout = Layout { encoding, ..Layout::default() };
    MemorySource::new(schema).with_part(&batch, &layout)
}

/// Sequences that begin again each time.
#[derive(Debug)]
struct Ones;

impl esker_query::Sequences for Ones {
    fn next_value(&self, _: &str) -> esker_query::Result<i64> {
        Ok(1)
    }
}

fn rows_of(text: &str, encoding: Encoding) -> Result<String, String> {
    let query = esker_sql::parse(text).map_err(|e| e.to_string())?;
    let mut options = Options::new(&Environment::os());
    options.inputs.sequences = Some(Arc::new(Ones));
    let result = execute(&query, &source(encoding), &options).map_err(|e| e.to_string())?;
    let row = |row: Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    Ok(result.to_rows().into_iter().map(row).collect::<Vec<_>>().join("\n"))
}

pub fn rows_once(text: &str) -> Result<String, String> {
    rows_of(text, Encoding::Compact)
}

pub fn rows(text: &str) -> Result<String, String> {
    let (plain, compact) = (rows_of(text, Encoding::Plain), rows_of(text, Encoding::Compact));
    assert_eq!(plain, compact, "{text}");
    plain
}

pub fn value(expr: &str) -> Result<String, String> {
    let constant = rows(&format!("SELECT {expr} FROM t LIMIT 1"));
    // The same of a row that holds no constant: nothing is folded.
    let field = |e: &str| e.replace("'esker'", "word").replace("-7", "(i - 8)");
    let varied = rows(&format!("SELECT {} FROM t WHERE i = 1", field(expr)));
    assert_eq!(constant, varied, "{expr}");
    constant
}

#[test]
fn every_function_has_an_example_that_holds() {
    for entry in FUNCTIONS {
        let (example, wanted) = entry.example;
        assert_eq!(value(example).unwrap(), wanted, "{example}");
        assert!(!entry.meaning.is_empty(), "{}", entry.name);
        let shown = esker_sql::parse(&format!("SELECT {example} FROM t")).unwrap();
        let again = esker_sql::parse(&shown.to_string()).unwrap();
        assert_eq!(shown, again, "{example}");
        for alias in entry.aliases {
            assert_eq!(esker_query::model::Function::from_name(alias), Some(entry.function));
        }
    }
}

#[test]
fn functions_of_null_are_null_unless_the_table_says() {
    use esker_query::model::{Function as F, OperandKind as K};
    for entry in FUNCTIONS.iter().filter(|e| e.is_strict && e.operands_min > 0) {
        let operand = |kind: &K| match kind {
            K::Unit => "'month'",
            _ => "NULL",
        };
        let operands: Vec<_> =
            entry.parameters.iter().take(entry.operands_min).map(operand).collect();
        let call = match entry.function {
            F::TryCast => "TRY_CAST(NULL AS i64)".to_owned(),
            _ => format!("{}({})", entry.name, operands.join(", ")),
        };
        assert_eq!(value(&call).unwrap(), "null", "{call}");
    }
}

#[test]
fn values_of_functions() {
    let cases = [
        ("substr('esker', 0, 2)", "e"),
        ("substr('esker', -3)", "ker"),
        ("substr('esker', -9, 6)", "es"),
        ("substr('esker', 3, 0)", ""),
        ("substr('äöü', 2, 9223372036854775807)", "öü"),
        ("substr('esker', -9223372036854775808, 3)", ""),
        ("SUBSTRING('esker' FROM 2 FOR 2)", "sk"),
        ("substr(X'010203', 2, 1)", "02"),
        ("left('äöü', 2)", "äö"),
        ("left('äöü', -9)", ""),
        ("right('äöü', -1)", "öü"),
        ("right('äöü', 9)", "äöü"),
        ("replace('aaa', 'aa', 'b')", "ba"),
        ("replace('abc', '', 'x')", "abc"),
        ("trim(BOTH 'xy' FROM 'xyaxy')", "a"),
        ("trim(LEADING '  a ')", "a "),
        ("rtrim('äöä', 'ä')", "äö"),
        ("trim('xxx', 'x')", ""),
        ("repeat('ab', -1)", ""),
        ("repeat('', 9223372036854775807)", ""),
        ("strpos('äöü', 'ü')", "3"),
        ("strpos('äöü', '')", "1"),
        ("POSITION('ö' IN 'äöü')", "2"),
        ("starts_with('esker', '')", "true"),
        ("'a' || 'b' || 1 || true", "ab1true"),
        ("'a' || NULL", "null"),
        ("X'01' || X'02'", "0102"),
        ("concat(1, DATE '2024-01-01', NULL)", "12024-01-01"),
        ("upper('straße')", "STRASSE"),
    ];
    for (expr, wanted) in cases {
        assert_eq!(value(expr).as_deref(), Ok(wanted), "{expr}");
    }
}

#[test]
fn values_of_functions_of_numbers_and_times() {
    let cases = [
        ("nullif(1, 2)", "1"),
        ("nullif(1, 1.0)", "null"),
        ("greatest('b', 'a')", "b"),
        ("greatest(1, 2.5)", "2.5"),
        ("least(NULL, NULL)", "null"),
        ("round(25, -1)", "30"),
        ("round(-25, -1)", "-30"),
        ("round(2.5)", "3"),
        ("round(2.5e0)", "3.0"),
        ("round(-0.125, 2)", "-0.13"),
        ("round(5, -400)", "0"),
        ("abs(-0.0)", "0.0"),
        ("sign(0)", "0"),
        ("floor(7)", "7"),
        ("mod(7, 0)", "null"),
        ("sqrt(-1)", "null"),
        ("power(0, -1)", "inf"),
        ("power(-8, 0.5)", "null"),
        ("7 IS DISTINCT FROM NULL", "true"),
        ("NULL IS NOT DISTINCT FROM NULL", "true"),
        ("DATE '2024-01-31' + INTERVAL '1 month'", "2024-02-29 00:00:00"),
        ("TIMESTAMP '2024-03-31 12:00:00' - INTERVAL '1 month 2 hours'", "2024-02-29 10:00:00"),
        ("DATE '2024-01-01' + INTERVAL '1' DAY", "2024-01-02 00:00:00"),
        ("INTERVAL 3 WEEK + DATE '2024-01-01'", "2024-01-22 00:00:00"),
        ("TIMESTAMP '2024-01-01' + 1", "2024-01-01 00:00:00.000001"),
        ("TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01'", "1 day"),
        ("TIMESTAMP '2024-01-02' - DATE '2024-01-01'", "1 day"),
        ("EXTRACT(YEAR FROM DATE '-0001-03-01')", "-1"),
        ("EXTRACT(WEEK FROM DATE '2021-01-03')", "53"),
        ("EXTRACT(isoyear FROM DATE '2021-01-03')", "2020"),
        ("EXTRACT(dow FROM DATE '2021-01-03')", "0"),
        ("EXTRACT(isodow FROM DATE '2021-01-03')", "7"),
        ("EXTRACT(EPOCH FROM TIMESTAMP '1969-12-31 23:59:59.5')", "-1"),
        ("EXTRACT(HOUR FROM TIME '13:14:15')", "13"),
        ("date_part('milliseconds', TIME '13:14:15.678')", "15678"),
        ("date_trunc('week', DATE '2024-02-29')", "2024-02-26"),
        ("date_trunc('quarter', TIMESTAMP '2024-05-29 10:00')", "2024-04-01 00:00:00"),
        ("date_trunc('hour', TIMESTAMP '1969-12-31 23:59:59')", "1969-12-31 23:00:00"),
        ("typeof(NULL)", "null"),
        ("typeof(1 + 1.0)", "decimal(3,1)"),
        ("typeof(1 + 1e0)", "f64"),
    ];
    for (expr, wanted) in cases {
        assert_eq!(value(expr).as_deref(), Ok(wanted), "{expr}");
    }
}

/// What is made of constants is one, however deep, and a NULL that nothing types has every type.
#[test]
fn constants_of_every_form_are_constants() {
    let cases = [
        ("'ab' NOT LIKE 'a%'", "false"),
        ("3 NOT IN (1, 2)", "true"),
        ("3 NOT BETWEEN 1 AND 2", "true"),
        ("1 IS NOT NULL", "true"),
        ("- NULL", "null"),
        ("NULL - DATE '2024-01-01'", "null"),
        ("1 + CASE WHEN 2 > 1 THEN NULL END", "null"),
        ("1.5 / coalesce(NULL, NULL)", "null"),
        ("lower(nullif(NULL, 1)) || greatest(NULL, NULL)", "null"),
    ];
    for (expr, wanted) in cases {
        assert_eq!(value(expr).as_deref(), Ok(wanted), "{expr}");
        let call = esker_sql::parse_statement(&format!("INSERT INTO t VALUES ({expr})")).unwrap();
        let esker_sql::Statement::Change(esker_query::model::Change::Insert(insert)) = call else {
            continue;
        };
        if let esker_query::model::InsertRows::Values(rows) = insert.rows {
            let found = esker_query::constant(&rows[0][0], &esker_query::Inputs::default());
            assert_eq!(found.unwrap().to_string(), wanted, "{expr}");
        }
    }
}

#[test]
fn what_functions_refuse_is_named() {
    let cases = [
        ("lowr('a')", "unknown function lowr; did you mean \"lower\"?"),
        ("lower(1)", "SELECT: lower(1): expected text, found i64 '1'"),
        ("lower()", "SELECT: lower(): lower(text) takes 1 operand, found 0"),
        (
            "substr('a')",
            "SELECT: substr('a'): substr(text, start [, count]) takes 2 to 3 operands, found 1",
        ),
        (
            "substr('a', 1, -1)",
            "SELECT: substr('a', 1, -1): substr: expected a count of at least 0, found -1",
        ),
        ("repeat('abc', 9999999)", "repeat: 29999997 bytes, at most 8388608"),
        ("abs(-9223372036854775808)", "abs: -9223372036854775808 has none in i64"),
        ("round(9223372036854775807, -1)", "round: 9223372036854775810 does not fit i64"),
        ("date_part('fortnight', DATE '2024-01-01')", "unknown unit \"fortnight\" of a date"),
        ("date_part('day', TIME '01:00')", "unknown unit \"day\" of a time"),
        ("date_trunc('dow', DATE '2024-01-01')", "unknown unit \"dow\""),
        ("date_trunc(word, day)", "expected the name of a unit as a constant"),
        ("INTERVAL '1 day' / INTERVAL '1 day'", "expected a number, found interval"),
        ("DATE '2024-01-01' + INTERVAL '1 moon'", "expected an interval like"),
        ("1 + INTERVAL '1 day'", "+ is not defined for i64 and interval"),
        ("greatest(1, 'a')", "have no common type"),
        ("sqrt('a')", "expected a number, found text"),
    ];
    for (expr, wanted) in cases {
        let found = rows(&format!("SELECT {expr} FROM t LIMIT 1")).unwrap_err();
        assert!(found.contains(wanted), "{expr}: {found}");
    }
}

#[test]
fn functions_work_in_every_clause_and_over_every_encoding() {
    let cases = [
        ("SELECT count(*) FROM t WHERE upper(word) = 'ESKER'", "86"),
        ("SELECT count(*) FROM t WHERE length(word) > 3 AND starts_with(word, 'es')", "86"),
        (
            "SELECT coalesce(upper(word), '-') AS w, count(*) FROM t GROUP BY w ORDER BY w",
            "|86\n-|57\nA B|86\nESKER|86\nÄSSC|85",
        ),
        (
            "SELECT length(word), count(*) FROM t GROUP BY length(word) ORDER BY 1 LIMIT 2",
            "null|57\n0|86",
        ),
        ("SELECT DISTINCT left(word, 1) || '.' FROM t ORDER BY 1", "null\n.\na.\ne.\nÄ."),
        ("SELECT i FROM t ORDER BY reverse(word) DESC NULLS LAST, i LIMIT 1", "1"),
        ("SELECT date_part('year', day), count(*) FROM t GROUP BY 1", "2022|358\n2023|42"),
        (
            "SELECT max(big), max(abs(big)), min(sign(big)) FROM t",
            "18446744073709551615|18446744073709551615|1",
        ),
        ("SELECT count(*) FROM t WHERE greatest(x, 0) = 0", "113"),
        ("SELECT sum(CASE word WHEN 'esker' THEN 1 ELSE 0 END) FROM t", "86"),
        ("SELECT max(length(raw || raw)) FROM t", "4"),
        ("SELECT count(*) FROM t WHERE date_trunc('month', at) = DATE '1970-02-01'", "28"),
    ];
    for (text, wanted) in cases {
        assert_eq!(rows(text).as_deref(), Ok(wanted), "{text}");
    }
}
