//! What holds of every type: a value that was printed reads back, that was stored comes back, and
//! keys, zone maps and columns order values as the values order themselves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use esker_format::codec::{Reader, Writer};
use esker_format::decimal::limit;
use esker_format::key::encode_key;
use esker_format::row::{decode_row, decode_value, encode_row, encode_value};
use esker_format::segment::encode_column;
use esker_format::text::parse_value;
use esker_format::{
    Batch, Column, ColumnSlice, DataType, Decimal, ErrorKind, FieldId, Interval, Labels, Schema,
    Value, ValueRef,
};
use proptest::prelude::*;

const DAY_US: i64 = esker_format::calendar::DAY_US;

fn labels() -> Labels {
    Labels::new(["zebra", "ant", "a b", "Ä", "ant eater, 'grown'", &"x".repeat(255)]).unwrap()
}

/// A schema of one field of a type.
fn one_field(data_type: DataType) -> Schema {
    let builder = Schema::builder().nullable("v", data_type);
    let builder = if data_type == DataType::Enum { builder.labels(labels()) } else { builder };
    builder.build().unwrap()
}

fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|v| v.to_string()),
        (-999i32..999, -9i32..9).prop_map(|(m, e)| format!("{m}.50e{e}")),
        "[a-zä ]{0,9}".prop_map(|s| format!("\"{s}\"")),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let items = prop::collection::vec(inner, 0..4);
        items.prop_map(|v| match v.as_slice() {
            [a, b] => format!("{{\"k\":{a},\"\":{b}}}"),
            _ => format!("[{}]", v.join(",")),
        })
    })
    .prop_map(|text| Value::json(&text).unwrap())
    .boxed()
}

/// Some values, and these ends of them.
fn ends<T: Clone + std::fmt::Debug + 'static>(
    usual: impl Strategy<Value = T> + 'static,
    ends: Vec<T>,
) -> BoxedStrategy<T> {
    prop_oneof![4 => usual, 1 => prop::sample::select(ends)].boxed()
}

fn any_interval() -> BoxedStrategy<Value> {
    let part = || ends(any::<i32>(), vec![i32::MIN, -1, 0, 1, 12, 30, i32::MAX]);
    let us = ends(any::<i64>(), vec![i64::MIN, -1, 0, DAY_US, i64::MAX]);
    let made = |(months, days, us)| Value::Interval(Interval::new(months, days, us));
    (part(), part(), us).prop_map(made).boxed()
}

/// Values of a type, its extremes among them.
fn value_of(data_type: DataType) -> BoxedStrategy<Value> {
    let signed = |least: i64, most: i64| {
        ends(least..=most, vec![least, least + 1, -1, 0, 1, most]).prop_map(Value::Int).boxed()
    };
    let unsigned =
        |most: u64| ends(0..=most, vec![0, 1, most / 2, most]).prop_map(Value::Uint).boxed();
    let sixteen = || ends(any::<[u8; 16]>(), vec![[0; 16], [0xff; 16], [0x80; 16]]);
    match data_type {
        DataType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        DataType::I8 => signed(i8::MIN.into(), i8::MAX.into()),
        DataType::I16 => signed(i16::MIN.into(), i16::MAX.into()),
        DataType::I32 => signed(i32::MIN.into(), i32::MAX.into()),
        DataType::I64 => signed(i64::MIN, i64::MAX),
        DataType::U8 => unsigned(u8::MAX.into()),
        DataType::U16 => unsigned(u16::MAX.into()),
        DataType::U32 => unsigned(u32::MAX.into()),
        DataType::U64 => unsigned(u64::MAX),
        DataType::F32 => {
            let extremes = vec![0.0, -0.0, f32::MIN, f32::MAX, f32::INFINITY, f32::MIN_POSITIVE];
            ends(any::<f32>(), extremes).prop_map(Value::Float32).boxed()
        }
        DataType::F64 => {
            let extremes = vec![0.0, -0.0, f64::MIN, f64::MAX, f64::NEG_INFINITY, f64::NAN];
            ends(any::<f64>(), extremes).prop_map(Value::Float).boxed()
        }
        DataType::Text => {
            let texts =
                vec![String::new(), "\0".into(), "a\0b".into(), "äöü😀".into(), "z".repeat(99)];
            ends(".{0,12}", texts).prop_map(Value::Text).boxed()
        }
        DataType::Bytes => {
            let bytes = vec![vec![], vec![0], vec![0, 0xff], vec![0xff; 40]];
            ends(any::<Vec<u8>>(), bytes).prop_map(Value::Bytes).boxed()
        }
        DataType::Date => {
            ends(any::<i32>(), vec![i32::MIN, -1, 0, i32::MAX]).prop_map(Value::Date).boxed()
        }
        DataType::Timestamp => {
            let extremes = vec![i64::MIN, -1, 0, DAY_US - 1, i64::MAX];
            ends(any::<i64>(), extremes).prop_map(Value::Timestamp).boxed()
        }
        DataType::Time => {
            ends(0..DAY_US, vec![0, 1, DAY_US - 1, DAY_US / 2]).prop_map(Value::Time).boxed()
        }
        DataType::Uuid => sixteen().prop_map(Value::Uuid).boxed(),
        DataType::Ipv4 => ends(any::<u32>(), vec![0, u32::MAX]).prop_map(Value::Ipv4).boxed(),
        DataType::Ipv6 => sixteen().prop_map(Value::Ipv6).boxed(),
        DataType::Enum => {
            let values: Vec<_> =
                labels().iter().map(|l| labels().find(l).unwrap().to_owned()).collect();
            prop::sample::select(values).boxed()
        }
        DataType::Json => any_json(),
        DataType::Interval => any_interval(),
        DataType::List(element) => {
            let null = || Just(Value::Null).boxed();
            let item = prop_oneof![1 => null(), 4 => value_of(element.data_type())];
            let made = move |items: Vec<Value>| {
                Value::list(element, items.iter().map(Value::as_ref)).unwrap()
            };
            prop::collection::vec(item, 0..4).prop_map(made).boxed()
        }
        DataType::Decimal { precision, scale } => {
            let most = limit(precision) - 1;
            ends(-most..=most, vec![-most, -most + 1, -1, 0, 1, limit(scale).min(most), most])
                .prop_map(move |m| Value::Decimal(Decimal::new(m, scale).unwrap()))
                .boxed()
        }
    }
}

fn typed_values(count: std::ops::Range<usize>) -> impl Strategy<Value = (DataType, Vec<Value>)> {
    let digits = (1u8..=38).prop_flat_map(|p| (Just(p), 0..=p));
    let decimal = digits.prop_map(|(p, s)| DataType::decimal(p, s).unwrap());
    let lists = DataType::ALL.into_iter().filter_map(|t| DataType::list(t).ok());
    let lists = prop::sample::select(lists.collect::<Vec<_>>());
    let all = prop::sample::select(DataType::ALL.to_vec());
    prop_oneof![8 => all, 1 => decimal, 3 => lists]
        .prop_flat_map(move |t| (Just(t), prop::collection::vec(value_of(t), count.clone())))
}

fn key(data_type: DataType, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(&mut out, data_type, value.as_ref());
    out
}

/// Equal in every bit, not only in order.
fn same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Float(a), ValueRef::Float(b)) => a.to_bits() == b.to_bits(),
        (ValueRef::Float32(a), ValueRef::Float32(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b && a.kind_name() == b.kind_name(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn types_read_back_what_they_print((data_type, values) in typed_values(1..4)) {
        for value in values {
            let text = value.to_string();
            // Bytes print as digits, and so does everything else as what it is.
            let read = parse_value(&text, data_type).unwrap();
            let read = one_field(data_type).fields()[0].fit(&read).unwrap();
            prop_assert!(read == value, "{data_type} {text:?} read as {read}");
            prop_assert!(read.as_ref().coerce(data_type).is_ok());
        }
    }

    #[test]
    fn types_come_back_from_rows((data_type, values) in typed_values(1..6)) {
        let mut out = Writer::new();
        values.iter().for_each(|v| encode_value(&mut out, data_type, v.as_ref()));
        let bytes = out.into_bytes();
        let mut input = Reader::new(&bytes);
        for value in &values {
            let read = decode_value(&mut input, data_type).unwrap();
            prop_assert!(same(read, value.as_ref()), "{data_type} {value} came back as {read}");
        }
        input.finish().unwrap();
    }

    /// A row of a batch has the same stored form as its values have.
    #[test]
    fn rows_of_batches_are_stored_as_rows(
        columns in prop::collection::vec(typed_values(3..4), 1..20),
        nulls in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut schema = Schema::builder();
        for (at, (data_type, _)) in columns.iter().enumerate() {
            schema = schema.nullable(format!("f{at}"), *data_type);
            if *data_type == DataType::Enum {
                schema = schema.labels(labels());
            }
        }
        let schema = schema.build().unwrap();
        let mut batch = Batch::empty(&schema);
        for row in 0..3 {
            for (at, (column, (_, values))) in batch.columns.iter_mut().zip(&columns).enumerate() {
                let value = if nulls[3 * at + row] { Value::Null } else { values[row].clone() };
                column.push(value.as_ref()).unwrap();
            }
        }
        for row in 0..3 {
            let (mut by_value, mut by_column) = (Writer::new(), Writer::new());
            encode_row(&mut by_value, &schema, |at| batch.columns[at].value(row));
            batch.encode_row(&mut by_column, row);
            prop_assert_eq!(by_value.as_bytes(), by_column.as_bytes());
        }
    }

    #[test]
    fn types_come_back_from_columns(
        (data_type, values) in typed_values(1..60),
        null_at in 0..60usize,
    ) {
        let mut column = Column::empty(data_type);
        let nulled = |i: usize, v: &Value| if i == null_at { Value::Null } else { v.clone() };
        let values: Vec<Value> = values.iter().enumerate().map(|(i, v)| nulled(i, v)).collect();
        for value in &values {
            column.push(value.as_ref()).unwrap();
        }
        let slice = ColumnSlice::from(&column);
        for (i, value) in values.iter().enumerate() {
            prop_assert!(same(slice.value(i), value.as_ref()), "{data_type} {value}");
        }
        // A zone bounds its values, whatever their encoding.
        let encoded = encode_column(FieldId(1), &column);
        for zone in &encoded.zones {
            for value in values.iter().filter(|v| !v.is_null()) {
                prop_assert!(zone.least <= *value, "{data_type} {value} below {}", zone.least);
                if let Some(greatest) = &zone.greatest {
                    prop_assert!(value <= greatest, "{data_type} {value} above {greatest}");
                }
            }
        }
    }

    #[test]
    fn types_have_keys_that_sort_as_they_do((data_type, values) in typed_values(2..8)) {
        for (a, b) in values.iter().zip(values.iter().skip(1)) {
            let order = key(data_type, a).cmp(&key(data_type, b));
            prop_assert_eq!(a.cmp(b), order, "{} {} and {}", data_type, a, b);
            prop_assert_eq!(b.cmp(a), order.reverse());
        }
        let mut sorted = values.clone();
        sorted.sort();
        let mut by_key = values;
        by_key.sort_by_key(|v| key(data_type, v));
        prop_assert!(sorted == by_key);
    }

    #[test]
    fn types_refuse_each_others_values(
        (data_type, values) in typed_values(1..2),
        other in prop::sample::select(DataType::ALL.to_vec()),
    ) {
        let value = values.into_iter().next().unwrap();
        match value.as_ref().coerce(other) {
            // What is taken says the same.
            Ok(taken) if !(data_type.is_float() || data_type.is_decimal() && other.is_float()) => {
                prop_assert!(taken == value.as_ref());
            }
            Ok(_) => prop_assert!(other.is_float()),
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.contains(other.name()), "{message}");
                prop_assert!(data_type != other);
            }
        }
    }
}

#[test]
fn types_have_a_stored_number_and_a_name_each() {
    for data_type in DataType::ALL {
        let mut out = Writer::new();
        data_type.encode(&mut out);
        assert_eq!(DataType::decode(&mut Reader::new(out.as_bytes())).unwrap(), data_type);
        let text = data_type.to_string();
        assert_eq!(text.parse::<DataType>().unwrap(), data_type);
        assert_eq!(text.to_uppercase().parse::<DataType>().unwrap(), data_type);
    }
    for bytes in [
        &[0][..],
        &[200],
        &[24],
        &[24, 22],
        &[24, 24, 5],
        &[24, 20, 1],
        &[20],
        &[20, 0, 0],
        &[20, 39, 0],
        &[20, 5, 6],
    ] {
        let error = DataType::decode(&mut Reader::new(bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes:?}");
    }
    let decimal = |p, s| DataType::decimal(p, s).unwrap();
    for (text, data_type) in [
        ("numeric:12,2", decimal(12, 2)),
        ("NUMERIC (12, 2)", decimal(12, 2)),
        ("decimal(5)", decimal(5, 0)),
        ("dec(38,38)", decimal(38, 38)),
        ("currency", decimal(19, 4)),
        ("integer[]", DataType::list(DataType::I64).unwrap()),
        ("decimal(5) []", DataType::list(decimal(5, 0)).unwrap()),
    ] {
        assert_eq!(text.parse::<DataType>().unwrap(), data_type, "{text}");
    }
    for text in ["decimal", "decimal()", "decimal(0,0)", "decimal(39,1)", "decimal(2,3)"] {
        text.parse::<DataType>().unwrap_err();
    }
    for text in ["i64[][]", "json[]", "enum[]"] {
        let error = text.parse::<DataType>().unwrap_err().to_string();
        assert!(error.contains("json") || error.contains("text[]"), "{text}: {error}");
    }
}

#[test]
fn types_are_refused_when_malformed() {
    let bad = [
        (DataType::Time, "24:00:00"),
        (DataType::Time, "5:00"),
        (DataType::Time, "12:60"),
        (DataType::Time, "12:00:00.1234567"),
        (DataType::Time, ""),
        (DataType::Uuid, "67e5504410b1426f9247bb680e5fe0c"),
        (DataType::Uuid, "67e55044-10b1-426f-9247-bb680e5fe0cg"),
        (DataType::Uuid, "67e55044-10b1-426f-9247bb680e5fe0c8-"),
        (DataType::Uuid, "67e55044x10b1-426f-9247-bb680e5fe0c8"),
        (DataType::Ipv4, "192.0.2"),
        (DataType::Ipv4, "192.0.2.256"),
        (DataType::Ipv4, "192.0.02.1"),
        (DataType::Ipv6, "2001:db8::1::2"),
        (DataType::Ipv6, "2001:db8"),
        (DataType::Decimal { precision: 5, scale: 2 }, "1.234"),
        (DataType::Decimal { precision: 5, scale: 2 }, "1000"),
        (DataType::Decimal { precision: 5, scale: 2 }, "nan"),
        (DataType::Decimal { precision: 5, scale: 2 }, "1,5"),
        (DataType::Decimal { precision: 38, scale: 0 }, "100000000000000000000000000000000000000"),
    ];
    for (data_type, text) in bad {
        let message = parse_value(text, data_type).unwrap_err().to_string();
        assert!(message.starts_with(&format!("expected {data_type}")), "{text:?}: {message}");
    }
    let good = [
        (DataType::Time, "23:59:59.999999", "23:59:59.999999"),
        (DataType::Time, "05:17", "05:17:00"),
        (
            DataType::Uuid,
            "67E5504410B1426F9247BB680E5FE0C8",
            "67e55044-10b1-426f-9247-bb680e5fe0c8",
        ),
        (DataType::Ipv4, "192.0.2.1", "192.0.2.1"),
        (DataType::Ipv6, "2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        (DataType::Decimal { precision: 5, scale: 2 }, "1.500", "1.50"),
        (DataType::Decimal { precision: 5, scale: 2 }, "1e2", "100.00"),
        (DataType::Decimal { precision: 38, scale: 2 }, "90071992547409.93", "90071992547409.93"),
    ];
    for (data_type, text, printed) in good {
        assert_eq!(parse_value(text, data_type).unwrap().to_string(), printed);
    }
}

#[test]
fn types_of_numbers_compare_exactly_with_each_other() {
    let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
    assert!(decimal("1.50") == decimal("1.5"));
    assert!(decimal("2.00") == Value::Int(2) && decimal("2.01") > Value::Uint(2));
    assert!(decimal("18446744073709551615.1") > Value::Uint(u64::MAX));
    assert!(decimal("0.5") == Value::Float(0.5) && decimal("0.1") < Value::Float(0.1));
    assert!(Value::Float(f64::NAN) > decimal("99999999999999999999999999999999999999"));
}

/// A stored row that no writer makes was decoded: later code takes what it holds for granted.
#[test]
fn a_row_with_a_value_that_its_field_refuses_is_damaged() {
    let schema = Schema::builder()
        .field("at", DataType::Time)
        .field("code", DataType::Text)
        .max_length(3)
        .build()
        .unwrap();
    let decoded = |at: i64, code: &str| {
        let row = [ValueRef::Time(at), ValueRef::Text(code)];
        let mut out = Writer::new();
        encode_row(&mut out, &schema, |i| row[i]);
        let bytes = out.into_bytes();
        let mut values = Vec::new();
        let decoded = decode_row(&mut Reader::new(&bytes), &schema, &mut values);
        decoded.inspect(|()| assert_eq!(values, row))
    };
    decoded(0, "").unwrap();
    decoded(DAY_US - 1, "äöü").unwrap();
    for (at, code) in [(-1, "a"), (DAY_US, "a"), (72_902_037_094_334_977, "a"), (0, "abcd")] {
        let error = decoded(at, code).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}
