//! Values of other crates there and back, and what neither side has.

use std::fmt::Debug;

use ::chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use ::jiff::Timestamp;
use ::jiff::civil;
use ::rust_decimal::Decimal;
use ::uuid::Uuid;
use proptest::prelude::*;

use crate::{Value, ValueRef};

/// A value by its text as the crate and as Esker have it, there and back.
fn is_the_same<T>(text: &str, parsed: T, shown: &str) -> T
where
    T: Copy + Debug + PartialEq + TryInto<Value, Error: Debug>,
    T: for<'a> TryFrom<&'a Value, Error: Debug>,
{
    let value: Value = parsed.try_into().unwrap();
    assert_eq!(value.to_string(), shown, "{text}");
    let back = T::try_from(&value).unwrap();
    assert_eq!(back, parsed);
    back
}

macro_rules! same {
    ($($rust:ty: $($text:literal => $shown:literal),*;)*) => {
        $($(is_the_same($text, $text.parse::<$rust>().unwrap(), $shown);)*)*
    };
}

#[test]
fn values_come_back_as_they_were() {
    same! {
        Timestamp: "2024-02-29T23:59:59.000001Z" => "2024-02-29 23:59:59.000001",
            "1969-12-31T23:59:59.999999Z" => "1969-12-31 23:59:59.999999";
        civil::DateTime: "2024-02-29T00:00:00.5" => "2024-02-29 00:00:00.500000",
            "1815-12-10T06:30:00" => "1815-12-10 06:30:00";
        civil::Date: "2024-02-29" => "2024-02-29", "-009999-01-01" => "-9999-01-01";
        civil::Time: "23:59:59.999999" => "23:59:59.999999", "00:00:00" => "00:00:00";
        DateTime<Utc>: "2024-02-29T23:59:59.000001Z" => "2024-02-29 23:59:59.000001";
        NaiveDateTime: "1815-12-10T06:30:00" => "1815-12-10 06:30:00";
        NaiveDate: "2024-02-29" => "2024-02-29";
        NaiveTime: "23:59:59.999999" => "23:59:59.999999";
        Uuid: "01234567-89ab-cdef-0123-456789abcdef" => "01234567-89ab-cdef-0123-456789abcdef";
        Decimal: "-19.95" => "-19.95", "79228162514264337593543950335" =>
            "79228162514264337593543950335";
    }
}

#[test]
fn what_would_be_rounded_is_refused() {
    let error = |result: crate::Result<Value>| result.unwrap_err().to_string();
    let instant: Timestamp = "2024-02-29T00:00:00.0000001Z".parse().unwrap();
    assert_eq!(
        error(instant.try_into()),
        "expected whole microseconds, found 2024-02-29T00:00:00.0000001Z: round it first"
    );
    let time: civil::Time = "00:00:00.000000001".parse().unwrap();
    assert!(error(time.try_into()).contains("whole microseconds"));
    let time: NaiveTime = "00:00:00.000000001".parse().unwrap();
    assert!(error(time.try_into()).contains("whole microseconds"));
    let leap = NaiveTime::from_hms_micro_opt(23, 59, 59, 1_500_000).unwrap();
    assert!(error(leap.try_into()).contains("without leap seconds"));
}

#[test]
fn what_a_type_does_not_have_is_refused() {
    let error = Timestamp::try_from(ValueRef::Timestamp(i64::MAX)).unwrap_err().to_string();
    assert!(error.starts_with("expected a timestamp of the years -9999 to 9999, found timestamp"));
    let error = civil::Date::try_from(ValueRef::Null).unwrap_err().to_string();
    assert_eq!(error, "expected a date of the years -9999 to 9999, found NULL");
    let error = Uuid::try_from(ValueRef::Int(1)).unwrap_err().to_string();
    assert_eq!(error, "expected a uuid, found integer 1");
    for (mantissa, scale) in [(10i128.pow(37), 0), (1, 29)] {
        let decimal = crate::Decimal::new(mantissa, scale).unwrap();
        Decimal::try_from(ValueRef::Decimal(decimal)).unwrap_err();
    }
    NaiveDate::try_from(ValueRef::Date(i32::MAX)).unwrap_err();
    DateTime::<Utc>::try_from(ValueRef::Time(0)).unwrap_err();
}

#[test]
fn a_decimal_with_more_zeros_than_the_type_has_digits_is_the_same_number() {
    for (mantissa, scale, text) in
        [(15 * 10i128.pow(28), 29, "1.5"), (-2 * 10i128.pow(37), 37, "-2"), (0, 38, "0")]
    {
        let decimal = crate::Decimal::new(mantissa, scale).unwrap();
        let found = Decimal::try_from(ValueRef::Decimal(decimal)).unwrap();
        assert_eq!(found, text.parse::<Decimal>().unwrap(), "{decimal}");
    }
}

proptest! {
    /// Both crates have the same times by other ways of counting.
    #[test]
    fn timestamps_are_those_that_the_crates_have(
        us in -377_000_000_000_000_000..253_000_000_000_000_000i64,
    ) {
        let value = Value::Timestamp(us);
        let of_jiff = Timestamp::try_from(&value).unwrap();
        prop_assert_eq!(of_jiff.as_microsecond(), us);
        prop_assert_eq!(Value::try_from(of_jiff).unwrap(), value.clone());
        let civil = civil::DateTime::try_from(&value).unwrap();
        prop_assert_eq!(civil, ::jiff::tz::Offset::UTC.to_datetime(of_jiff));
        prop_assert_eq!(Value::try_from(civil).unwrap(), value.clone());
        let of_chrono = DateTime::<Utc>::try_from(&value).unwrap();
        prop_assert_eq!(of_chrono.timestamp_micros(), us);
        prop_assert_eq!(Value::try_from(of_chrono).unwrap(), value.clone());
        let naive = NaiveDateTime::try_from(&value).unwrap();
        prop_assert_eq!(naive.and_utc(), of_chrono);
        prop_assert_eq!(Value::try_from(naive).unwrap(), value);
    }
}
