use super::*;

fn inferred(fields: &[&str]) -> (DataType, bool) {
    let seen = fields.iter().fold(Kinds::default(), |seen, field| {
        let kind = if field.is_empty() { Kinds::NULL } else { Kinds::of(field.as_bytes()) };
        seen.union(kind)
    });
    (seen.data_type(), seen.has_null())
}

#[test]
fn types_lose_nothing() {
    let cases: [(&[&str], DataType); 26] = [
        (&[], DataType::Text),
        (&["true", "False"], DataType::Bool),
        (&["true", "1"], DataType::Text),
        (&["0", "1"], DataType::I64),
        (&["-5", "9223372036854775807"], DataType::I64),
        (&["18446744073709551615", "0"], DataType::U64),
        (&["18446744073709551615", "-1"], DataType::Text),
        (&["18446744073709551616"], DataType::Text),
        (&["1", "2.5"], DataType::F64),
        (&["1e3", ".5", "-.5"], DataType::F64),
        (&["NaN", "-inf", "1.5"], DataType::F64),
        (&["1e999"], DataType::Text),
        (&["9007199254740993", "2.5"], DataType::Text),
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
