//! A struct with a field of every type, and values for it, extremes included.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::net::{Ipv4Addr, Ipv6Addr};

use esker::{Decimal, FieldType, Record};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, FieldType)]
pub enum Size {
    Small,
    #[esker(rename = "very large")]
    VeryLarge,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Detail {
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
}

/// A field of every type.
#[derive(Clone, Debug, PartialEq, Record)]
pub struct Everything {
    #[esker(key)]
    pub id: i64,
    pub flag: bool,
    pub tiny: i8,
    pub short: i16,
    pub int: i32,
    #[esker(rename = "unsigned tiny")]
    pub unsigned_tiny: u8,
    pub unsigned_short: u16,
    pub unsigned_int: u32,
    pub unsigned_long: u64,
    pub single: f32,
    pub double: f64,
    pub name: String,
    #[esker(max = 8)]
    pub code: Option<String>,
    pub bytes: Vec<u8>,
    pub uuid: [u8; 16],
    pub v4: Ipv4Addr,
    pub v6: Option<Ipv6Addr>,
    #[esker(type = "decimal(18,4)")]
    pub price: Decimal,
    #[esker(type = "decimal(38,10)")]
    pub exact: Option<Decimal>,
    #[esker(type = "timestamp")]
    pub at: i64,
    #[esker(type = "date")]
    pub day: Option<i32>,
    #[esker(type = "time")]
    pub time: i64,
    pub size: Size,
    #[esker(labels(red, "dark red"))]
    pub color: Option<String>,
    pub document: serde_json::Value,
    #[esker(json)]
    pub detail: Option<Detail>,
    #[esker(skip)]
    pub cached: Vec<u8>,
    pub r#type: Option<bool>,
    pub words: Vec<String>,
    pub counts: Option<Vec<Option<i16>>>,
    pub floats: Vec<f32>,
}

fn decimal(digits: u32, scale: u8) -> impl Strategy<Value = Decimal> {
    let limit = 10i128.pow(digits);
    let extremes = prop_oneof![Just(0), Just(limit - 1), Just(1 - limit), 1 - limit..limit];
    extremes.prop_map(move |mantissa| Decimal::new(mantissa, scale).unwrap())
}

fn single() -> impl Strategy<Value = f32> {
    prop_oneof![
        Just(0.0),
        Just(f32::MAX),
        Just(f32::MIN_POSITIVE),
        Just(f32::INFINITY),
        any::<f32>().prop_filter("NaN equals nothing", |v| !v.is_nan())
    ]
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.1),
        Just(f64::MIN),
        Just(f64::NEG_INFINITY),
        any::<f64>().prop_filter("NaN equals nothing", |v| !v.is_nan())
    ]
}

fn extreme<T: Copy + std::fmt::Debug + Arbitrary>(least: T, most: T) -> impl Strategy<Value = T> {
    prop_oneof![Just(least), Just(most), any::<T>()]
}

prop_compose! {
    fn numbers()(
        tiny in extreme(i8::MIN, i8::MAX), short in extreme(i16::MIN, i16::MAX),
        int in extreme(i32::MIN, i32::MAX), unsigned_tiny in any::<u8>(),
        unsigned_short in any::<u16>(), unsigned_int in extreme(0, u32::MAX),
        unsigned_long in extreme(0, u64::MAX), single in single(), double in double(),
        price in decimal(18, 4), exact in proptest::option::of(decimal(38, 10)),
        flag in any::<bool>()
    ) -> Everything {
        Everything {
            id: 0, flag, tiny, short, int, unsigned_tiny, unsigned_short, unsigned_int,
            unsigned_long, single, double, name: String::new(), code: None, bytes: Vec::new(),
            uuid: [0; 16], v4: Ipv4Addr::LOCALHOST, v6: None, price, exact, at: 0, day: None,
            time: 0, size: Size::Small, color: None, document: serde_json::Value::Null,
            detail: None, cached: Vec::new(), r#type: None, words: Vec::new(), counts: None,
            floats: Vec::new(),
        }
    }
}

prop_compose! {
    fn texts()(
        numbers in numbers(), id in extreme(i64::MIN, i64::MAX), name in ".*",
        code in proptest::option::of("\\PC{0,8}"), bytes in any::<Vec<u8>>(),
        uuid in any::<[u8; 16]>(), v4 in any::<Ipv4Addr>(), v6 in any::<Option<Ipv6Addr>>(),
        at in extreme(-62_135_596_800_000_000, 253_402_300_799_999_999),
        day in any::<Option<i32>>(), time in 0..86_400_000_000i64
    ) -> Everything {
        Everything { id, name, code, bytes, uuid, v4, v6, at, day, time, ..numbers }
    }
}

prop_compose! {
    pub fn everything()(
        row in texts(), size in prop_oneof![Just(Size::Small), Just(Size::VeryLarge)],
        color in proptest::option::of(prop_oneof![Just("red"), Just("dark red")]),
        tags in proptest::collection::vec(".*", 0..3), depth in any::<Option<u64>>(),
        has_detail in any::<bool>(), number in any::<i64>(), text in ".*",
        words in proptest::collection::vec(".*", 0..3),
        counts in any::<Option<Vec<Option<i16>>>>(),
        floats in proptest::collection::vec(single(), 0..3)
    ) -> Everything {
        let detail = has_detail.then_some(Detail { tags, depth });
        let document = serde_json::json!({ "number": number, "text": text, "list": [null, true] });
        let color = color.map(str::to_owned);
        // A list has one zero.
        let floats = floats.into_iter().map(|v| v + 0.0).collect();
        let r#type = Some(true);
        Everything { size, color, detail, document, r#type, words, counts, floats, ..row }
    }
}
