use esker_format::text::parse_value;
use proptest::prelude::*;

use super::*;

fn sent(columns: &[(&str, Column)]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, columns.iter().map(|(name, column)| (*name, column)));
    out
}

fn round(name: &str, column: &Column) -> Column {
    let bytes = sent(&[(name, column.clone())]);
    let mut reader = Reader::new(&bytes);
    let mut found = read(&mut reader, column.len()).unwrap();
    reader.finish().unwrap();
    assert_eq!(found[0].name, name);
    found.remove(0).column
}

/// One column by hand.
fn by_hand(data_type: &str, nulls: Option<&[u8]>, values: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    pack::array(&mut out, 1);
    pack::array(&mut out, 4);
    pack::text(&mut out, "c");
    pack::text(&mut out, data_type);
    match nulls {
        Some(bits) => pack::bytes(&mut out, bits),
        None => pack::nil(&mut out),
    }
    values(&mut out);
    out
}

fn wrong(bytes: &[u8], rows: usize) -> String {
    read(&mut Reader::new(bytes), rows).unwrap_err().to_string()
}

#[test]
fn columns_of_every_type_come_back() {
    let list = DataType::list(DataType::I32).unwrap();
    let all = [
        (DataType::Bool, "true"),
        (DataType::I8, "-128"),
        (DataType::I16, "-7"),
        (DataType::I32, "-7"),
        (DataType::I64, "-9223372036854775808"),
        (DataType::U8, "255"),
        (DataType::U16, "65535"),
        (DataType::U32, "7"),
        (DataType::U64, "18446744073709551615"),
        (DataType::F32, "1.5"),
        (DataType::F64, "-0.25"),
        (DataType::Date, "2026-01-02"),
        (DataType::Timestamp, "2026-01-02 03:04:05"),
        (DataType::Time, "03:04:05"),
        (DataType::Text, "é"),
        (DataType::Bytes, "00ff"),
        (DataType::Uuid, "67e55044-10b1-426f-9247-bb680e5fe0c8"),
        (DataType::Ipv4, "192.0.2.1"),
        (DataType::Ipv6, "2001:db8::1"),
        (DataType::Json, "{\"a\": [1]}"),
        (DataType::Interval, "1 mon"),
        (DataType::Decimal { precision: 9, scale: 2 }, "-12.50"),
        (DataType::Decimal { precision: 38, scale: 2 }, "12345678901234567890.25"),
        (list, "{1,NULL,3}"),
    ];
    for (data_type, text) in all {
        let value = parse_value(text, data_type).unwrap();
        for values in [vec![], vec![value.clone()], vec![Value::Null, value, Value::Null]] {
            let column = column_of(data_type, &values).unwrap();
            assert_eq!(round("c", &column), column, "{data_type}");
        }
    }
}

#[test]
fn texts_come_by_codes() {
    let by_codes = |codes: &[u8]| {
        by_hand("text", Some(&[0b10]), |out| {
            pack::array(out, 3);
            pack::extension(out, ENDS, &[2, 0, 0, 0, 2, 0, 0, 0]);
            pack::bytes(out, b"ab");
            pack::bytes(out, codes);
        })
    };
    let values = [Value::from("ab"), Value::Null, Value::from("ab"), Value::from("")];
    let expected = column_of(DataType::Text, &values).unwrap();
    let codes: [&[u8]; 3] = [
        &[0, 1, 0, 1],
        &[0, 0, 1, 0, 0, 0, 1, 0],
        &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    ];
    for codes in codes {
        let bytes = by_codes(codes);
        assert_eq!(read(&mut Reader::new(&bytes), 4).unwrap()[0].column, expected);
    }
    let found = wrong(&by_codes(&[0, 1, 2, 0]), 4);
    assert_eq!(found, "column \"c\": row 3: expected a code below 2");
    let found = wrong(&by_codes(&[0, 1, 0]), 4);
    assert_eq!(found, "column \"c\": codes: expected 1, 2 or 4 bytes a row of 4, found 3");
}

#[test]
fn codes_of_a_long_text_are_not_taken_at_their_word() {
    let rows = 200_000;
    let bytes = by_hand("text", None, |out| {
        pack::array(out, 3);
        pack::extension(out, ENDS, &1_000u32.to_le_bytes());
        pack::bytes(out, &[b'x'; 1_000]);
        pack::bytes(out, &vec![0; rows]);
    });
    let found = wrong(&bytes, rows);
    assert!(found.starts_with("column \"c\": the texts of the codes take more than"), "{found}");
}

#[test]
fn what_is_beside_a_null_does_not_count() {
    let bytes = by_hand("i16", Some(&[0b01]), |out| pack::bytes(out, &[7, 7, 1, 0]));
    let expected = column_of(DataType::I16, &[Value::Null, Value::Int(1)]).unwrap();
    assert_eq!(read(&mut Reader::new(&bytes), 2).unwrap()[0].column, expected);
    let bytes = by_hand("text", Some(&[0b01]), |out| {
        pack::array(out, 2);
        pack::extension(out, ENDS, &[2, 0, 0, 0, 3, 0, 0, 0]);
        pack::bytes(out, b"xyz");
    });
    let expected = column_of(DataType::Text, &[Value::Null, Value::from("z")]).unwrap();
    assert_eq!(read(&mut Reader::new(&bytes), 2).unwrap()[0].column, expected);
}

#[test]
fn what_is_wrong_is_told_with_its_column() {
    let cases: [(&str, Vec<u8>); 8] = [
        (
            "column \"c\": expected 2 values of 4 bytes, found 7 bytes",
            by_hand("u32", None, |out| pack::bytes(out, &[0; 7])),
        ),
        (
            "column \"c\": nulls: expected 1 bytes for 2 rows, found 2",
            by_hand("u8", Some(&[0, 0]), |out| pack::bytes(out, &[0; 2])),
        ),
        (
            "column \"c\": nulls: expected zeros behind the bits of 2 rows",
            by_hand("u8", Some(&[4]), |out| pack::bytes(out, &[0; 2])),
        ),
        (
            "column \"c\": expected bytes, or an array of values, found a text",
            by_hand("u8", None, |out| pack::text(out, "ab")),
        ),
        (
            "column \"c\": row 2: expected i8, found text x",
            by_hand("i8", None, |out| {
                pack::array(out, 2);
                pack::int(out, -1);
                pack::text(out, "x");
            }),
        ),
        (
            "column \"c\": row 2: expected UTF-8",
            by_hand("text", None, |out| {
                pack::array(out, 2);
                pack::extension(out, ENDS, &[1, 0, 0, 0, 2, 0, 0, 0]);
                pack::bytes(out, b"a\xff");
            }),
        ),
        (
            "column \"c\": ends: expected numbers that rise, up to the 2 bytes behind",
            by_hand("text", None, |out| {
                pack::array(out, 2);
                pack::extension(out, ENDS, &[3, 0, 0, 0, 2, 0, 0, 0]);
                pack::bytes(out, b"ab");
            }),
        ),
        (
            "column \"c\": expected 2 values, found 1",
            by_hand("text", None, |out| {
                pack::array(out, 2);
                pack::extension(out, ENDS, &[2, 0, 0, 0]);
                pack::bytes(out, b"ab");
            }),
        ),
    ];
    for (expected, bytes) in cases {
        assert_eq!(wrong(&bytes, 2), expected);
    }
    assert!(wrong(&by_hand("i9", None, pack::nil), 0).starts_with("column \"c\": unknown type"));
}

#[test]
fn a_character_cut_in_two_is_found() {
    let bytes = by_hand("text", None, |out| {
        pack::array(out, 2);
        pack::extension(out, ENDS, &[1, 0, 0, 0, 2, 0, 0, 0]);
        pack::bytes(out, "é".as_bytes());
    });
    assert_eq!(wrong(&bytes, 2), "column \"c\": row 1: expected UTF-8");
}

proptest! {
    #[test]
    fn any_bytes_are_columns_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        rows in 0usize..9,
    ) {
        if let Ok(columns) = read(&mut Reader::new(&bytes), rows) {
            for NamedColumn { name, column } in columns {
                prop_assert_eq!(column.len(), rows);
                prop_assert_eq!(round(name, &column), column);
            }
        }
    }
}
