//! What functions make of usual values and of extremes. Where PostgreSQL, SQLite or DuckDB has the
//! function, the values are theirs.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use crate::functions::{rows, value};
use esker_query::model::{FUNCTIONS, Function, OperandKind};
use esker_sql::Sql;

fn expect(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (expr, wanted) in cases {
        match value(expr) {
            Ok(found) if found == *wanted => {}
            found => wrong.push_str(&format!("{expr}: found {found:?}, wanted {wanted:?}\n")),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn expect_refused(cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (expr, wanted) in cases {
        match rows(&format!("SELECT {expr} FROM t LIMIT 1")) {
            Err(found) if found.contains(wanted) => {}
            found => wrong.push_str(&format!("{expr}: found {found:?}, wanted {wanted:?}\n")),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn numbers() {
    expect(&[
        ("ln(0)", "null"),
        ("ln(-1)", "null"),
        ("log(100)", "2.0"),
        ("log(3, 1)", "0.0"),
        ("log(1, 5)", "null"),
        ("log10(0)", "null"),
        ("log2(0.5)", "-1.0"),
        ("exp(1e0 * 1000)", "inf"),
        ("asin(2)", "null"),
        ("acosh(0.5)", "null"),
        ("atanh(1)", "inf"),
        ("cot(0)", "null"),
        ("power(2, 0.5) = sqrt(2)", "true"),
        ("trunc(2.789, 2)", "2.78"),
        ("trunc(-6.9)", "-6"),
        ("trunc(1234.5, -2)", "1200"),
        ("trunc(1299, -2)", "1200"),
        ("trunc(-9223372036854775808, -30)", "0"),
        ("trunc(0.3e0, 1)", "0.3"),
        ("trunc(-0.39e0, 1)", "-0.3"),
        ("trunc(1e300, -299)", "1e300"),
        ("trunc(5e0, -9223372036854775808)", "0.0"),
        ("gcd(0, 0)", "0"),
        ("lcm(0, 5)", "0"),
        ("gcd(-9223372036854775808, 6)", "2"),
        ("degrees(3.141592653589793e0)", "180.0"),
        ("typeof(trunc(2.345, 1))", "decimal(2,1)"),
    ]);
    expect_refused(&[
        ("gcd(-9223372036854775808, 0)", "gcd: "),
        ("lcm(9223372036854775807, 2)", "lcm: "),
        ("ln('a')", "expected a number, found text"),
        ("log(1, 2, 3)", "log([base,] x) takes 1 to 2 operands, found 3"),
    ]);
}

#[test]
fn texts() {
    expect(&[
        ("split_part('a,b,c', ',', -1)", "c"),
        ("split_part('a,b,c', ',', 4)", ""),
        ("split_part('a,b,c', ',', -4)", ""),
        ("split_part('abc', '', 1)", "abc"),
        ("split_part('abc', '', 2)", ""),
        ("split_part('äöü', 'ö', 9223372036854775807)", ""),
        ("split_part('äöü', 'ö', -9223372036854775808)", ""),
        ("lpad('äbc', 2)", "äb"),
        ("lpad('7', -1)", ""),
        ("lpad('7', 4, '')", "7"),
        ("lpad('7', 6, 'äö')", "äöäöä7"),
        ("rpad('7', 5, 'xyz')", "7xyzx"),
        ("translate('äbcä', 'äc', 'ö')", "öbö"),
        ("translate('abc', '', 'x')", "abc"),
        ("translate('aaa', 'aa', 'xy')", "xxx"),
        ("translate('abcdefghijklmnopqrst', 'tsrqponmlkjihgfedcba', 'TSRQ')", "QRST"),
        ("initcap('hello wORLD ßx')", "Hello World SSx"),
        ("ascii('')", "0"),
        ("chr(8364)", "€"),
        ("concat_ws('-', 'a', 1, true)", "a-1-true"),
        ("concat_ws(NULL, 'a', 'b')", "null"),
        ("concat_ws(',', NULL, NULL)", ""),
        ("to_hex(-1)", "ffffffffffffffff"),
        ("hex('')", ""),
        ("unhex('abc')", "null"),
        ("unhex('zz')", "null"),
        ("encode(X'00ff5c61', 'escape')", "\\000\\377\\\\a"),
        ("decode('\\000\\377\\\\a', 'escape')", "00ff5c61"),
        ("encode(X'', 'base64')", ""),
        ("decode('YQ==', 'base64')", "61"),
        ("decode('0 1 0 2', 'hex')", "0102"),
        ("length(encode(decode(repeat('00', 100), 'hex'), 'base64'))", "137"),
        ("to_base64('abc')", "YWJj"),
        ("md5('')", "d41d8cd98f00b204e9800998ecf8427e"),
        ("quote_literal(5)", "'5'"),
        ("quote_ident('abc')", "abc"),
        ("quote_ident('select')", "\"select\""),
        ("bit_length('äb')", "24"),
        ("if(1 > 2, 'a', 'b')", "b"),
        ("iif(1 > 2, 'a')", "null"),
    ]);
    expect_refused(&[
        ("split_part('a', ',', 0)", "split_part: expected a place of 1 or more"),
        ("lpad('a', 9000000)", "at most 8388608"),
        ("rpad('a', 9223372036854775807)", "at most 8388608"),
        ("chr(0)", "chr: expected the number of a character, found 0"),
        ("chr(55296)", "chr: expected the number of a character"),
        ("encode(X'00', 'x')", "unknown form 'x'; known: hex, base64, escape"),
        ("decode('abc', 'hex')", "decode: expected pairs"),
        ("from_base64('a')", "expected a text in base 64"),
        ("iif(1 > 2)", "unknown function iif"),
    ]);
}

#[test]
fn formats() {
    expect(&[
        ("format('%s', NULL)", ""),
        ("format(NULL, 1)", "null"),
        ("format('%d%%', 5)", "5%"),
        ("format('%5d|%-5d|%05d|%+d', 42, 42, 42, 42)", "   42|42   |00042|+42"),
        ("format('%x %X %o %#x', 255, 255, 8, 255)", "ff FF 10 0xff"),
        ("format('%.2f', 2.345)", "2.35"),
        ("format('%.2f', 2.345e0)", "2.35"),
        ("format('%08.3f', -1.5)", "-001.500"),
        ("format('%f', 1e0)", "1.000000"),
        ("format('%e', 12345.678e0)", "1.234568e+04"),
        ("format('%g %g %g', 100000, 1000000, 0.0001)", "100000 1e+06 0.0001"),
        ("format('%,d', -1234567)", "-1,234,567"),
        ("format('%,.1f', 1234.56)", "1,234.6"),
        ("format('%c%c', 'äb', 'c')", "äc"),
        ("format('%q', 'it''s')", "it''s"),
        ("format('%Q %Q', 'it''s', NULL)", "'it''s' NULL"),
        ("format('%L', 'x')", "'x'"),
        ("format('%I', 'A b')", "\"A b\""),
        ("format('%2$s %1$s', 'a', 'b')", "b a"),
        ("format('%*d', 4, 7)", "   7"),
        ("format('%.*f', 1, 2.25)", "2.3"),
        ("format('%-4s|', 'ä')", "ä   |"),
        ("format('%.2s', 'äöü')", "äö"),
        ("printf('%d', -9223372036854775808)", "-9223372036854775808"),
        ("format('%u', -1)", "18446744073709551615"),
        ("format('%i', 2.9)", "2"),
        ("format('%d', '12')", "12"),
    ]);
    expect_refused(&[
        ("format('%s')", "format: the format wants operand 1, found 0"),
        ("format('%y', 1)", "format: unknown letter 'y' of %"),
        ("format('%d', 'x')", "%d: expected an integer, found text 'x'"),
        ("format('a%', 1)", "format: expected a letter behind the last %"),
        ("format('%9000000d', 1)", "at most 8388608"),
        ("format('%I', NULL)", "format: unknown letter 'I'"),
    ]);
}

#[test]
fn regular_expressions() {
    expect(&[
        ("regexp_replace('hello world', 'o', '0')", "hell0 world"),
        ("regexp_replace('hello world', 'o', '0', 'g')", "hell0 w0rld"),
        ("regexp_replace('Hello', 'hEL', '<\\&>', 'i')", "<Hel>lo"),
        ("regexp_replace('abc', '(.)(.)', '\\2\\1', 'g')", "bac"),
        ("regexp_replace('äöü', '', '-', 'g')", "-ä-ö-ü-"),
        ("regexp_replace('abc', 'x*', '-', 'g')", "-a-b-c-"),
        ("regexp_replace('abc', 'b', '\\\\')", "a\\c"),
        ("regexp_replace('abc', 'z', 'y')", "abc"),
        ("regexp_replace(NULL, 'z', 'y')", "null"),
        ("regexp_extract('abc', 'z')", ""),
        ("regexp_extract('abc', 'b(z)?', 1)", ""),
        ("regexp_extract('Äbc', 'ä', 0, 'i')", "Ä"),
        ("regexp_substr('abc', 'z')", "null"),
        ("regexp_substr('foobarbaz', 'ba.', 5)", "baz"),
        ("regexp_count('123123', '3')", "2"),
        ("regexp_count('äöü', '')", "4"),
        ("regexp_count('abc', '', 5)", "0"),
        ("regexp_count('aBcb', 'B', 1, 'i')", "2"),
        ("regexp_instr('äöü', 'ü')", "3"),
        ("regexp_instr('abc', 'z')", "0"),
        ("regexp_matches('abc', 'b')", "true"),
    ]);
    expect_refused(&[
        ("regexp_replace('a', '(', 'b')", "regular expression '('"),
        ("regexp_replace('a', 'a', 'b', 'q')", "unknown flag 'q'; flags: g, i, s, m, x"),
        ("regexp_replace('a', 'a', '\\1')", "the expression has 0 parts, found \\1"),
        ("regexp_extract('a', 'a', 1)", "the expression has 0 parts, found part 1"),
        ("regexp_extract('a', 'a', -1)", "found part -1"),
        ("regexp_count('a', 'a', 0)", "expected a start of at least 1, found 0"),
        ("regexp_replace('a', word, 'b')", "expected a regular expression as a constant"),
    ]);
}

#[test]
fn parts_of_times() {
    expect(&[
        ("date_part('decade', DATE '1999-12-31')", "199"),
        ("date_part('century', DATE '2000-12-16')", "20"),
        ("date_part('century', DATE '2001-02-16')", "21"),
        ("date_part('century', DATE '-0001-02-16')", "-1"),
        ("date_part('millennium', DATE '2001-02-16')", "3"),
        ("date_part('julian', DATE '2006-01-01')", "2453737"),
        ("extract(isoyear FROM DATE '2006-01-01')", "2005"),
        ("date_trunc('century', DATE '2024-05-05')", "2001-01-01"),
        ("date_trunc('millennium', DATE '2024-05-05')", "2001-01-01"),
        ("date_trunc('decade', TIMESTAMP '2024-05-05 10:00')", "2020-01-01 00:00:00"),
        ("date_trunc('isoyear', DATE '2021-01-03')", "2019-12-30"),
        ("weekday(DATE '2024-02-25')", "0"),
        ("weekofyear(DATE '2021-01-03')", "53"),
        ("dayofyear(TIMESTAMP '2024-12-31 10:00')", "366"),
        ("hour(TIMESTAMP '2024-12-31 10:00')", "10"),
        ("epoch(TIMESTAMP '1969-12-31 23:59:59')", "-1"),
        ("date_diff('year', DATE '2023-12-31', DATE '2024-01-01')", "1"),
        ("date_diff('week', DATE '2024-02-25', DATE '2024-02-26')", "1"),
        ("datediff('day', TIMESTAMP '2024-01-01 23:00', TIMESTAMP '2024-01-02 01:00')", "1"),
        ("date_diff('hour', DATE '2024-01-02', DATE '2024-01-01')", "-24"),
        ("date_diff('century', DATE '1999-01-01', DATE '2000-01-01')", "1"),
        ("date_sub('year', DATE '2023-12-31', DATE '2024-01-01')", "0"),
        ("date_sub('month', DATE '2024-03-31', DATE '2024-02-29')", "-1"),
        ("date_sub('day', TIMESTAMP '2024-01-01 23:00', TIMESTAMP '2024-01-02 01:00')", "0"),
        ("date_sub(DATE '2024-03-31', INTERVAL '1 month')", "2024-02-29 00:00:00"),
        ("date_add(DATE '2024-01-31', INTERVAL 1 DAY)", "2024-02-01 00:00:00"),
        ("last_day(DATE '2023-02-01')", "2023-02-28"),
        ("monthname(TIMESTAMP '2024-12-31 10:00')", "December"),
        ("make_date(-1, 1, 1)", "-0001-01-01"),
        ("make_time(23, 59, 59.999999)", "23:59:59.999999"),
        ("to_timestamp(-0.5)", "1969-12-31 23:59:59.500000"),
        ("to_timestamp(0)", "1970-01-01 00:00:00"),
    ]);
    expect_refused(&[
        ("make_date(2023, 2, 29)", "make_date: there is no such date"),
        ("make_date(9223372036854775807, 1, 1)", "make_date: there is no such date"),
        ("make_time(24, 0, 0)", "make_time: there is no such time"),
        ("make_time(1, 0, 'NaN'::f64)", "make_time: there is no such time"),
        ("to_timestamp(1e300)", "to_timestamp: there is no such timestamp"),
        ("to_timestamp('x')", "expected a number, or text and its template"),
        ("year('2024-01-01'::text)", "expected a date or timestamp, found text"),
        ("date_diff('doy', DATE '2024-01-01', DATE '2024-01-01')", "unknown unit \"doy\""),
    ]);
}

#[test]
fn times_as_text() {
    let at = "TIMESTAMP '2024-02-29 13:04:05.067089'";
    let cases = [
        ("strftime(@, '%Y-%m-%d %H:%M:%S')", "2024-02-29 13:04:05"),
        ("strftime(@, '%f %g %n')", "067089 067 067089000"),
        ("strftime('%f', @)", "05.067"),
        ("strftime(@, '%-m/%-d/%y %-I:%M %p')", "2/29/24 1:04 PM"),
        (
            "strftime(@, '%A %a %B %b %j %U %W %V %G %u %w')",
            "Thursday Thu February Feb 060 08 09 09 2024 4 4",
        ),
        (
            "strftime(@, '%c|%x|%X|%F|%T|%R|%D')",
            "2024-02-29 13:04:05|2024-02-29|13:04:05|2024-02-29|13:04:05|13:04|02/29/24",
        ),
        ("strftime('%s %J', DATE '1970-01-01')", "0 2440587.5"),
        ("strftime('%Q', @)", "null"),
        ("strftime('%d.%m.%Y', '2024-02-29', '+1 day')", "01.03.2024"),
        ("to_char(@, 'YYYY-MM-DD HH24:MI:SS.US')", "2024-02-29 13:04:05.067089"),
        (
            "to_char(@, 'Day|DAY|FMday|Dy|Month|FMMON')",
            "Thursday |THURSDAY |thursday|Thu|February |FEB",
        ),
        ("to_char(@, 'Q W WW IW DDD D ID J CC')", "1 5 09 09 060 5 4 2460370 21"),
        ("to_char(@, 'FMHH12:MI p.m.')", "1:04 p.m."),
        ("to_char(@, '\"Day\" DDth FMMMTH')", "Day 29th 2ND"),
        ("to_char(@, 'Y,YYY YYY YY Y')", "2,024 024 24 4"),
        ("to_char(@, 'MS FF2 SSSSS')", "067 06 47045"),
        ("strptime('2024-02-29', '%Y-%m-%d')", "2024-02-29 00:00:00"),
        (
            "strptime('Thu, 29 Feb 2024 01:04:05.5 PM', '%a, %d %b %Y %I:%M:%S.%f %p')",
            "2024-02-29 13:04:05.500000",
        ),
        ("strptime('2024-02-29 13:04+02:00', '%F %R%z')", "2024-02-29 11:04:00"),
        ("strptime('24-060', '%y-%j')", "2024-02-29 00:00:00"),
        ("try_strptime('2023-02-29', '%Y-%m-%d')", "null"),
        ("to_date('20240229', 'YYYYMMDD')", "2024-02-29"),
        ("to_date('February 29, 24', 'Month DD, YY')", "2024-02-29"),
        (
            "to_timestamp('2024/2/9 1:2:3.5 pm', 'YYYY-MM-DD HH12:MI:SS.MS AM')",
            "2024-02-09 13:02:03.500000",
        ),
    ];
    let cases: Vec<_> = cases.iter().map(|(e, v)| (e.replace('@', at), *v)).collect();
    let cases: Vec<_> = cases.iter().map(|(e, v)| (e.as_str(), *v)).collect();
    expect(&cases);
    expect_refused(&[
        ("strptime('2023-02-29', '%Y-%m-%d')", "strptime: '2023-02-29' is no moment"),
        ("strptime('x', '%')", "is no moment of the format '%'"),
        ("strftime(DATE '2024-01-01', '%Q')", "strftime: unknown %Q in the format"),
        ("to_date('2024-13-01', 'YYYY-MM-DD')", "to_date: '2024-13-01' is no moment"),
        ("to_char(1, '999')", "expected a date, timestamp, time or interval, found i64"),
    ]);
}

#[test]
fn times_of_sqlite() {
    expect(&[
        ("date('2024-01-31', '+1 month')", "2024-03-02"),
        ("date('2024-02-29', '+1 year')", "2025-03-01"),
        ("date('2024-02-29', 'weekday 0')", "2024-03-03"),
        ("date('2024-02-29', 'weekday 4')", "2024-02-29"),
        ("date('nonsense')", "null"),
        ("date('2024-02-29', 'nonsense')", "null"),
        ("date('2024-02-30')", "null"),
        ("date(NULL)", "null"),
        ("date(TIMESTAMP '2024-02-29 23:00', '+1 hours')", "2024-03-01"),
        ("datetime('2024-02-29 10:00', '+1.5 hours')", "2024-02-29 11:30:00"),
        ("datetime('2024-02-29 10:00:00.75')", "2024-02-29 10:00:00"),
        ("datetime('2024-02-29 10:00:00.75', 'subsec')", "2024-02-29 10:00:00.750000"),
        ("datetime('12:30')", "2000-01-01 12:30:00"),
        ("datetime(2451545)", "2000-01-01 12:00:00"),
        ("datetime(1e300)", "null"),
        ("datetime(0, 'unixepoch', '+1 month')", "1970-02-01 00:00:00"),
        ("time('10:00:00', '-00:30')", "09:30:00"),
        ("julianday('1970-01-01')", "2440587.5"),
        ("unixepoch('2024-02-29 00:00:01')", "1709164801"),
        ("date('2024-02-29', '+9223372036854775807 days')", "null"),
        ("date('2024-02-29', '-99999999 years')", "null"),
        ("date('2024-02-29', '+-1e300 months')", "null"),
        ("date('now') = current_date", "true"),
        ("date() = current_date", "true"),
        ("datetime('now') <= now()", "true"),
    ]);
    expect_refused(&[("date(true)", "expected a date, timestamp, time, text or number")]);
}

#[test]
fn casts_that_may_fail() {
    expect(&[
        ("TRY_CAST('12' AS i64)", "12"),
        ("TRY_CAST('x' AS date)", "null"),
        ("TRY_CAST(300 AS u8)", "null"),
        ("TRY_CAST(NULL AS i64)", "null"),
        ("TRY_CAST('{' AS json)", "null"),
        ("TRY_CAST(1.5 AS i64)", "1"),
        ("TRY_CAST('a' AS text)", "a"),
        ("TRY_CAST('12.345' AS decimal(4,2))", "null"),
        ("SAFE_CAST('x' AS bool)", "null"),
        ("typeof(TRY_CAST('x' AS i32))", "i32"),
    ]);
    expect_refused(&[("TRY_CAST(DATE '2024-01-01' AS i64)", "cannot cast date to i64")]);
    let counted = rows("SELECT count(TRY_CAST(word AS i64)), count(word) FROM t").unwrap();
    assert_eq!(counted, "0|343");
}

/// Operands of a kind as they are written, the extremes among them.
fn extremes(kind: OperandKind) -> &'static [&'static str] {
    use OperandKind as K;
    const NUMBERS: &[&str] = &[
        "0",
        "-1",
        "9223372036854775807",
        "(-9223372036854775807 - 1)",
        "0.5",
        "1e308",
        "'NaN'::f64",
        "'-inf'::f64",
        "18446744073709551615",
        "99999999999999999999.99",
        "NULL",
    ];
    const INTEGERS: &[&str] =
        &["0", "1", "-1", "9223372036854775807", "(-9223372036854775807 - 1)", "i", "NULL"];
    const TEXTS: &[&str] = &[
        "''",
        "'ä€😀'",
        "'%'",
        "'%-5.3d%s%9999999999999999999d'",
        "'YYYYFM\"x'",
        "'-1'",
        "word",
        "'12:61'",
        "'\\'",
        "'$1(['",
        "NULL",
        "'+99999999999 days'",
        "'base64'",
    ];
    const MOMENTS: &[&str] = &[
        "DATE '2024-02-29'",
        "'-5877641-06-24'::date",
        "'5881580-07-11'::date",
        "at",
        "day",
        "(0::timestamp - 9223372036854775807)",
        "TIMESTAMP '294246-01-10'",
        "NULL",
    ];
    match kind {
        K::Number | K::Float | K::TextOrNumber => NUMBERS,
        K::Integer => INTEGERS,
        K::Moment | K::MomentOrTime => MOMENTS,
        K::TimeValue => &["'2024-02-29'", "1e308", "-1", "at", "day", "'25:00'", "'x'", "NULL"],
        K::Unit => &["'month'", "'week'", "'century'", "'microsecond'", "'epoch'", "'isoyear'"],
        K::Expression => &["''", "'.*'", "'(a)|(b*)'", "'i'", "'('", "NULL"],
        K::Json => &["'{\"a\":[1]}'", "NULL"],
        K::Step => &["'a'", "-9223372036854775807", "''", "'$[0]'", "NULL"],
        _ => TEXTS,
    }
}

/// Whatever the operands: a value or an error, the same for constants and columns.
#[test]
fn every_function_takes_extremes() {
    let mut dice = 1u64;
    let mut pick = |all: &[&str]| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all[usize::try_from(dice >> 33).unwrap() % all.len()].to_owned()
    };
    let mut values = 0;
    for entry in FUNCTIONS.iter().filter(|e| e.function != Function::Nextval) {
        for round in 0..20 {
            let more = round % (entry.operands_max - entry.operands_min + 1).min(4);
            let count = entry.operands_min + more;
            let operands: Vec<_> =
                (0..count).map(|i| pick(extremes(entry.kind(i, count)))).collect();
            let call = match entry.function {
                Function::TryCast => {
                    format!("TRY_CAST({} AS {})", operands[0], pick(&["i8", "date"]))
                }
                _ => format!("{}({})", entry.name, operands.join(", ")),
            };
            let text = format!("SELECT {call} FROM t WHERE i > 395");
            // Others each time.
            match entry.function.is_random() || count == 0 {
                true => drop(crate::functions::rows_once(&text)),
                false => values += usize::from(rows(&text).is_ok()),
            }
        }
    }
    assert!(values > 1_000, "{values}");
}

/// It is another value for each row, in a filter and behind joins too, and none is taken for a
/// constant.
#[test]
fn chance_is_another_value_for_each_row() {
    let numbers = |text: &str| -> Vec<i64> {
        // The two encodings have other values.
        let row = crate::functions::rows_once(text).unwrap();
        row.split('|').map(|n| n.parse().unwrap()).collect()
    };
    assert_eq!(numbers("SELECT count(DISTINCT random()) FROM t"), [400]);
    assert_eq!(numbers("SELECT count(DISTINCT uuid()) FROM t"), [400]);
    assert_eq!(numbers("SELECT count(DISTINCT word || random()) FROM t"), [343]);
    let some = numbers("SELECT count(*) FROM t WHERE random() < 0.5")[0];
    assert!((100..300).contains(&some), "{some}");
    assert_eq!(numbers("SELECT count(*) FROM t WHERE random() >= 0 AND random() < 1"), [400]);

    let db = esker::Options::new().memory().unwrap();
    let rows: Vec<_> = (0..400).map(|i| format!("({i})")).collect();
    for table in ["a", "b"] {
        db.sql(&format!("CREATE TABLE {table} (i i64 PRIMARY KEY)"), ()).unwrap();
        db.sql(&format!("INSERT INTO {table} VALUES {}", rows.join(", ")), ()).unwrap();
    }
    let count = |text: &str| {
        let outcome = db.sql(text, ()).unwrap().into_rows().unwrap();
        outcome.to_rows()[0][0].to_string().parse::<i64>().unwrap()
    };
    let some = count("SELECT count(*) FROM a JOIN b ON a.i = b.i WHERE random() < 0.5");
    assert!((100..300).contains(&some), "{some}");
    db.sql("CREATE TABLE c (i i64 PRIMARY KEY, x f64)", ()).unwrap();
    db.sql("INSERT INTO c VALUES (1, random()), (2, random())", ()).unwrap();
    assert_eq!(count("SELECT count(DISTINCT x) FROM c"), 2);
    db.sql("UPDATE c SET x = random()", ()).unwrap();
    assert_eq!(count("SELECT count(DISTINCT x) FROM c"), 2);
    db.sql("CREATE TABLE e (i i64 PRIMARY KEY, x f64 DEFAULT random())", ()).unwrap();
    db.sql("INSERT INTO e (i) VALUES (1), (2)", ()).unwrap();
    assert_eq!(count("SELECT count(DISTINCT x) FROM e"), 2);
    for refused in [
        "CREATE TABLE d (i i64 PRIMARY KEY, x f64, CHECK (x < random()))",
        "CREATE TABLE d (i i64 PRIMARY KEY, x date, CHECK (x < date('now')))",
    ] {
        assert!(db.sql(refused, ()).is_err(), "{refused}");
    }
}
