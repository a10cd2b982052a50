use super::*;

fn inferred(fields: &[&str]) -> (DataType, bool) {
    let seen = fields.iter().fold(Kinds::default(), |seen, field| {
        let kind = if field.is_empty() {
            Kinds::NULL
        } else {
            Kinds::of(field.as_bytes(), &Notation::default())
        };
        seen.union(kind)
    });
    (seen.data_type(), seen.has_null())
}

#[test]
fn types_lose_nothing() {
    let decimal = |precision, scale| DataType::Decimal { precision, scale };
    let cases: [(&[&str], DataType); 35] = [
        (&[], DataType::Text),
        (&["true", "False"], DataType::Bool),
        (&["true", "1"], DataType::Text),
        (&["0", "1"], DataType::I64),
        (&["-5", "9223372036854775807"], DataType::I64),
        (&["18446744073709551615", "0"], DataType::U64),
        (&["18446744073709551615", "-1"], decimal(20, 0)),
        (&["18446744073709551616"], decimal(20, 0)),
        (&["123456789012345678901234567890", "1"], decimal(30, 0)),
        (&["123456789012345678901234567890123456789"], DataType::Text),
        (&["9007199254740993", "1e3"], DataType::Text),
        (&["12345678901234567890123456789012345", "0.12345"], DataType::Text),
        (&["1", "2.5"], DataType::F64),
        (&["1e3", ".5", "-.5"], DataType::F64),
        (&["NaN", "-inf", "1.5"], DataType::F64),
        (&["1e999"], DataType::Text),
        (&["9007199254740993", "2.5"], decimal(17, 1)),
        (&["9007199254740992", "2.5"], DataType::F64),
        (&["007"], DataType::Text),
        (&["00.5"], DataType::Text),
        (&["0.5", "0"], DataType::F64),
        (&["+1"], DataType::Text),
        (&["2013-01-31"], DataType::Date),
        (&["2013-01-31", "2013-01-31T05:17:00Z"], DataType::Timestamp),
        (&["2013-02-29"], DataType::Text),
        (&["2013-01-31", "1"], DataType::Text),
        (&["N14228", "1"], DataType::Text),
        (&["-"], DataType::Text),
        (&["1 "], DataType::Text),
        (&["0999-01-01"], DataType::Date),
        (&["2013/01/31", "2013-01-31T05:17:00+02:00"], DataType::Timestamp),
        (&["67e55044-10b1-426f-9247-bb680e5fe0c8"], DataType::Uuid),
        (&["67e5504410b1426f9247bb680e5fe0c8"], DataType::Text),
        (&["67e55044-10b1-426f-9247-bb680e5fe0c8", "1"], DataType::Text),
        (&["1", "NA"], DataType::Text),
    ];
    for (fields, data_type) in cases {
        assert_eq!(inferred(fields), (data_type, false), "{fields:?}");
    }
    assert_eq!(inferred(&["", "1"]), (DataType::I64, true));
    assert_eq!(inferred(&["", ""]), (DataType::Text, true));
}

/// What inference accepts, reading accepts.
#[test]
fn inferred_types_read_every_field() {
    let fields = [
        "true",
        "0",
        "-0",
        "-1",
        "12345678901234567890",
        "1.",
        ".1",
        "1e5",
        "NaN",
        "infinity",
        "2013-01-31",
        "2013-01-31 00:00",
        "2013-01-31T05:17:00.5Z",
        "12345-01-01",
        "-0001-01-01",
    ];
    for text in fields {
        let field = text.as_bytes();
        let read = match inferred(&[text]).0 {
            DataType::Bool => text::parse_bool(field).is_some(),
            DataType::I64 => text::parse_signed::<i64>(field).is_some(),
            DataType::U64 => text::parse_unsigned::<u64>(field).is_some(),
            DataType::F64 => text::parse_f64(field).is_some(),
            DataType::Date => text::parse_date(field).is_some(),
            DataType::Timestamp => text::TimestampParser::default().parse(field).is_some(),
            _ => true,
        };
        assert!(read, "{text}");
    }
}

fn seen(fields: &[&str], notation: &Notation) -> Kinds {
    fields.iter().map(|f| Kinds::of(f.as_bytes(), notation)).fold(Kinds::NULL, Kinds::union)
}

#[test]
fn what_would_be_another_type_is_hinted_at() {
    let plain = Notation::default();
    let null_like = |fields: &[&str]| seen(fields, &plain).null_like();
    assert_eq!(null_like(&["1", "NA", "2"]), Some(("NA", DataType::I64)));
    assert_eq!(null_like(&["1.5", "NULL"]), Some(("NULL", DataType::F64)));
    assert_eq!(null_like(&["2013-01-31", "\\N"]), Some(("\\N", DataType::Date)));
    assert_eq!(null_like(&["x", "NA"]), None);
    assert_eq!(null_like(&["NA"]), None);
    assert_eq!(null_like(&["1"]), None);
    assert!(seen(&["1,5", "2"], &plain).is_comma_number());
    assert!(!seen(&["1,5", "2.5"], &plain).is_comma_number());
    assert!(seen(&["31/12/2013", "1.2.99"], &plain).is_day_month());
    assert!(!seen(&["31/12/2013", "x"], &plain).is_day_month());
    let comma = Notation { decimal_comma: true, ..Notation::default() };
    assert_eq!(seen(&["1,5", "2"], &comma).data_type(), DataType::F64);
    assert_eq!(seen(&["1.234,5"], &comma).data_type(), DataType::Text);
}

/// What JSON writes keeps its spelling: what no type holds is text.
#[test]
fn values_of_json_widen_in_order() {
    let plain = Notation::default();
    let of = |values: &[&str]| {
        let kinds = values.iter().map(|v| Kinds::of_json(v.as_bytes(), &plain));
        kinds.fold(Kinds::default(), Kinds::union).data_type()
    };
    assert_eq!(of(&["true", "null"]), DataType::Bool);
    assert_eq!(of(&["1", "null"]), DataType::I64);
    assert_eq!(of(&["1", "1.0"]), DataType::F64);
    assert_eq!(of(&["1", "true"]), DataType::Text);
    assert_eq!(of(&["\"007\"", "8"]), DataType::Text);
    assert_eq!(of(&["1e400"]), DataType::Text);
    assert_eq!(of(&["\"2013-01-31\""]), DataType::Date);
    assert_eq!(of(&["\"1\""]), DataType::Text);
    assert_eq!(of(&["[1]", "{\"a\": 1}", "\"x\"", "1"]), DataType::Json);
    assert_eq!(of(&["{\"a\":1,\"a\":2}", "[1]"]), DataType::Text);
    let long = DataType::Decimal { precision: 30, scale: 0 };
    assert_eq!(of(&["123456789012345678901234567890", "1"]), long);
}

#[test]
fn spellings_that_a_type_would_lose_are_told_apart() {
    let plain = Notation::default();
    let fits = |text: &str, data_type| is_spelled_as(text.as_bytes(), data_type, &plain);
    for (text, data_type) in [
        ("0", DataType::I64),
        ("-12", DataType::I64),
        ("9223372036854775807", DataType::I64),
        ("0.5", DataType::F64),
        ("-0.5", DataType::F64),
        (".5", DataType::F64),
        ("1e5", DataType::F64),
        ("NaN", DataType::F64),
        ("true", DataType::Bool),
        ("18446744073709551615", DataType::U64),
    ] {
        assert!(fits(text, data_type), "{text}");
    }
    for (text, data_type) in [
        ("007", DataType::I64),
        ("+1", DataType::I64),
        ("007.5", DataType::F64),
        ("9007199254740993", DataType::F64),
        ("1", DataType::Bool),
        ("67e5504410b1426f9247bb680e5fe0c8", DataType::Uuid),
    ] {
        assert!(!fits(text, data_type), "{text}");
    }
}
