//! The order is total, exact, and agrees with the key form.

use proptest::prelude::*;

use crate::key::encode_key;
use crate::{DataType, Decimal, Value, ValueRef};

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        any::<f64>().prop_map(Value::Float),
        any::<f32>().prop_map(Value::Float32),
        ".{0,8}".prop_map(Value::Text),
        any::<i32>().prop_map(Value::Date),
        any::<i64>().prop_map(Value::Timestamp),
    ]
}

#[test]
fn integers_and_floats_compare_exactly() {
    let big = 9_007_199_254_740_993i64; // 2^53 + 1: not a double
    assert!(Value::Int(big) > Value::Float(9_007_199_254_740_992.0));
    assert!(Value::Uint(u64::MAX) < Value::Float(18_446_744_073_709_551_616.0));
    assert!(Value::Int(-1) < Value::Uint(0));
    assert_eq!(Value::Float(-0.0), Value::Int(0));
    assert_eq!(Value::Float(f64::NAN), Value::Float(-f64::NAN));
    assert!(Value::Float(f64::NAN) > Value::Float(f64::INFINITY));
    assert!(Value::Int(i64::MIN) > Value::Float(f64::NEG_INFINITY));
    assert!(Value::Int(1) < Value::Float(1.5));
    assert!(Value::Int(-1) > Value::Float(-1.5));
}

#[test]
fn coerce_refuses_what_does_not_fit() {
    let message = ValueRef::Int(300).coerce(DataType::U8).unwrap_err().to_string();
    assert_eq!(message, "expected u8, found integer 300");
    assert!(ValueRef::Int(-1).coerce(DataType::U64).is_err());
    assert!(ValueRef::Text("1").coerce(DataType::I64).is_err());
    assert!(ValueRef::Int((1 << 53) + 1).coerce(DataType::F64).is_err());
    assert!(ValueRef::Float(1.0).coerce(DataType::I64).is_err());
    assert!(ValueRef::Float(1e300).coerce(DataType::F32).is_err());
    assert!(matches!(ValueRef::Int(7).coerce(DataType::U8), Ok(ValueRef::Uint(7))));
}

#[test]
fn equal_values_of_other_bytes_are_not_identical() {
    let decimal = |text: &str| text.parse::<Decimal>().map(ValueRef::Decimal).unwrap();
    let apart = [
        (ValueRef::Float(0.0), ValueRef::Float(-0.0)),
        (ValueRef::Float(1.0), ValueRef::Float32(1.0)),
        (ValueRef::Int(1), ValueRef::Uint(1)),
        (ValueRef::Text("a"), ValueRef::Bytes(b"a")),
        (ValueRef::Timestamp(1), ValueRef::Time(1)),
        (decimal("1.5"), decimal("1.50")),
        (ValueRef::Null, ValueRef::Bool(false)),
    ];
    for (a, b) in apart {
        assert!(!a.is_identical(b) && !b.is_identical(a), "{a:?} {b:?}");
        assert!(a.is_identical(a) && b.is_identical(b), "{a:?} {b:?}");
    }
    assert!(ValueRef::Float(f64::NAN).is_identical(ValueRef::Float(f64::NAN)));
    assert!(ValueRef::Text(&String::from("a")).is_identical(ValueRef::Text("a")));
}

#[test]
fn dates_and_timestamps_print_and_parse() {
    use crate::calendar::{parse_date, parse_timestamp};
    for text in ["1970-01-01", "2013-02-28", "2000-02-29", "0001-01-01", "9999-12-31"] {
        assert_eq!(Value::Date(parse_date(text).unwrap()).to_string(), text);
    }
    for text in ["2013-02-29", "2013-13-01", "13-01-01", "2013-1-1", "x", "2013-01-01-1", ""] {
        assert!(parse_date(text).is_err(), "{text}");
    }
    let stamp = parse_timestamp("2013-01-31T05:17:00.25Z").unwrap();
    assert_eq!(Value::Timestamp(stamp).to_string(), "2013-01-31 05:17:00.250000");
    assert_eq!(Value::Timestamp(-1).to_string(), "1969-12-31 23:59:59.999999");
    for text in ["2013-01-31 5:17", "2013-01-31 24:00", "2013-01-31 05:17:61", "2013-01-31 0"] {
        assert!(parse_timestamp(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn order_is_total(a in any_value(), b in any_value(), c in any_value()) {
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }

    #[test]
    fn keys_sort_as_values(a in any::<f64>(), b in any::<f64>(), i in any::<i32>(),
        j in any::<i32>(), s in any::<Vec<u8>>(), t in any::<Vec<u8>>()) {
        let key = |ty: DataType, v: Value| {
            let mut out = Vec::new();
            encode_key(&mut out, ty, v.as_ref());
            out
        };
        for (ty, a, b) in [
            (DataType::F64, Value::Float(a), Value::Float(b)),
            (DataType::I32, Value::Int(i.into()), Value::Int(j.into())),
            (DataType::Date, Value::Date(i), Value::Date(j)),
            (DataType::Bytes, Value::Bytes(s), Value::Bytes(t)),
        ] {
            prop_assert_eq!(a.cmp(&b), key(ty, a).cmp(&key(ty, b)));
        }
    }
}
