//! Decimals against their texts and against floats.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[test]
fn numbers_are_what_is_written() {
    for (text, mantissa, scale) in [
        ("0", 0, 0),
        ("-0", 0, 0),
        ("1.50", 150, 2),
        ("+.5", 5, 1),
        ("5.", 5, 0),
        ("-12.034", -12_034, 3),
        ("1e3", 1_000, 0),
        ("1.5e1", 15, 0),
        ("1.5e-3", 15, 4),
        ("0e99", 0, 0),
        ("0.00000000000000000000000000000000000001", 1, 38),
        ("99999999999999999999999999999999999999", limit(38) - 1, 0),
    ] {
        let read = decimal(text);
        assert_eq!((read.mantissa(), read.scale()), (mantissa, scale), "{text}");
    }
    for text in [
        "",
        "-",
        ".",
        "e5",
        "1e",
        "1e+",
        "nan",
        "inf",
        "0x10",
        "1,5",
        "1.5.2",
        " 1",
        "1_0",
        "--1",
        "1e99",
        "1e9999999",
        "100000000000000000000000000000000000000",
        "0.000000000000000000000000000000000000001",
    ] {
        assert!(Decimal::parse(text.as_bytes()).is_none(), "{text:?}");
    }
}

#[test]
fn a_field_takes_no_digit_that_it_cannot_keep() {
    let parse = |text: &str| Decimal::parse_mantissa(text.as_bytes(), 5, 2);
    assert_eq!(parse("123.45"), Some(12_345));
    assert_eq!(parse("1.5000000000000000000000000000000000000000000000"), Some(150));
    assert_eq!(parse("0001.5e1"), Some(1_500));
    assert_eq!(parse("12345e-2"), Some(12_345));
    assert_eq!(parse("0.000e-999"), Some(0));
    for text in ["1.234", "1000", "-1000.00", "0.001", "1e-3", "1e3", "99999e999", "nan"] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn rounding_takes_halves_away_from_zero() {
    for (text, digits, rounded) in [
        ("1.005", 2, "1.01"),
        ("-1.005", 2, "-1.01"),
        ("1.0049", 2, "1.00"),
        ("1.5", 3, "1.5"),
        ("1.5", 0, "2"),
        ("155.5", -1, "160"),
        ("149", -2, "100"),
        ("150", -2, "200"),
        ("150", -99, "0"),
        ("0.5", -1, "0"),
    ] {
        assert_eq!(decimal(text).round(digits).unwrap().to_string(), rounded, "{text} {digits}");
    }
    let nines = Decimal::new(limit(38) - 1, 0).unwrap();
    assert!(nines.round(-1).is_none());
    assert_eq!((decimal("-1.5").floor(), decimal("-1.5").ceil()), (-2, -1));
    assert_eq!((decimal("1.5").floor(), decimal("1.5").ceil()), (1, 2));
    assert_eq!((decimal("-2.0").floor(), decimal("-2.0").ceil()), (-2, -2));
}

#[test]
fn floats_become_decimals_by_their_shortest_text() {
    for (v, scale, text) in [
        (1.005, 2, Some("1.01")),
        (0.1, 20, Some("0.10000000000000000000")),
        (-2.5, 0, Some("-3")),
        (1e-300, 2, Some("0.00")),
        (4e-39, 38, Some("0.00000000000000000000000000000000000000")),
        (6e-39, 38, Some("0.00000000000000000000000000000000000001")),
        (0.09, 0, Some("0")),
        (0.9, 0, Some("1")),
        (1.5e20, 2, Some("150000000000000000000.00")),
        (0.0, 3, Some("0.000")),
        (1e38, 0, None),
        (1e37, 2, None),
        (f64::NAN, 2, None),
        (f64::INFINITY, 2, None),
    ] {
        let rounded = Decimal::round_float(v, scale).map(|d| d.to_string());
        assert_eq!(rounded.as_deref(), text, "{v}");
    }
}

#[test]
fn decimals_and_floats_compare_exactly() {
    for (text, float, order) in [
        ("0.1", 0.1, Ordering::Less),
        ("-0.1", -0.1, Ordering::Greater),
        ("0.5", 0.5, Ordering::Equal),
        ("-0.5", 0.5, Ordering::Less),
        ("0.5", -0.5, Ordering::Greater),
        ("0", -0.0, Ordering::Equal),
        ("0.0", 1e-300, Ordering::Less),
        ("0.00000000000000000000000000000000000001", 1e-300, Ordering::Greater),
        ("0.00000000000000000000000000000000000001", 1e-38, Ordering::Greater),
        ("-0.00000000000000000000000000000000000001", 0.0, Ordering::Less),
        ("3", 3.5, Ordering::Less),
        ("-3", -3.5, Ordering::Greater),
        ("99999999999999999999999999999999999999", 1e38, Ordering::Greater),
        ("1", f64::NAN, Ordering::Less),
        ("-1", f64::NEG_INFINITY, Ordering::Greater),
    ] {
        assert_eq!(decimal(text).compare_float(float), order, "{text} {float}");
    }
}

prop_compose! {
    fn any_decimal()(digits in 1u32..=38, scale in 0u8..=38, bits in any::<i128>()) -> Decimal {
        Decimal::new(bits % power(digits).unwrap(), scale).unwrap()
    }
}

proptest! {
    #[test]
    fn decimals_read_back_what_they_print(v in any_decimal()) {
        let read = decimal(&v.to_string());
        prop_assert_eq!((read.mantissa(), read.scale()), (v.mantissa(), v.scale()));
    }

    #[test]
    fn order_is_total(a in any_decimal(), b in any_decimal(), c in any_decimal()) {
        prop_assert_eq!(a.compare(b), b.compare(a).reverse());
        let mut sorted = [a, b, c];
        sorted.sort();
        prop_assert!(sorted[0] <= sorted[2]);
        if let Some(same) = a.rescale(38) {
            prop_assert_eq!(same.compare(a), Ordering::Equal);
            prop_assert_eq!(same.compare(b), a.compare(b));
        }
    }

    #[test]
    fn the_nearest_float_is_near(v in any_decimal(), other in any_decimal()) {
        let float = v.to_f64();
        let text: f64 = v.to_string().parse().unwrap();
        prop_assert_eq!(float.to_bits(), text.to_bits());
        // Exact comparison agrees with the order of floats, one step away on either side.
        prop_assert!(v.compare_float(float.next_up()) == Ordering::Less);
        prop_assert!(v.compare_float(float.next_down()) == Ordering::Greater);
        if other.to_f64() != float {
            let order = other.to_f64().partial_cmp(&float).unwrap();
            prop_assert_eq!(other.compare_float(float), order);
        }
    }

    #[test]
    fn rounding_is_to_the_nearest(v in any_decimal(), digits in 0u8..=38) {
        if let Some(rounded) = v.round(digits.into()) {
            prop_assert!(rounded.scale() <= digits);
            if v.scale() <= digits {
                prop_assert_eq!(rounded.mantissa(), v.mantissa());
            } else {
                let unit = power(u32::from(v.scale() - digits)).unwrap();
                let off = v.mantissa() - rounded.mantissa() * unit;
                prop_assert!(off.abs() <= unit / 2);
            }
        }
    }
}
