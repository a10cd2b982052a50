//! Values to fill a field with: few, so that they repeat, and many at the ends of their type.

use esker::{DataType, Decimal, Interval, Labels, ListElement, Value, ValueRef};
use esker_vfs::sim::Generator;

/// The types of the fields.
pub(super) const TYPES: [DataType; 28] = [
    DataType::Bool,
    DataType::I8,
    DataType::I16,
    DataType::I32,
    DataType::I64,
    DataType::U8,
    DataType::U16,
    DataType::U32,
    DataType::U64,
    DataType::F32,
    DataType::F64,
    DataType::Text,
    DataType::Text,
    DataType::Bytes,
    DataType::Date,
    DataType::Timestamp,
    DataType::Time,
    DataType::Uuid,
    DataType::Ipv4,
    DataType::Ipv6,
    DataType::Decimal { precision: 9, scale: 2 },
    DataType::Decimal { precision: 30, scale: 4 },
    DataType::Enum,
    DataType::Json,
    DataType::Json,
    DataType::Interval,
    DataType::List(ListElement::I8),
    DataType::List(ListElement::Text),
];

/// The labels of enums.
pub(super) const LABELS: [&str; 5] = ["new", "paid", "sent", "lost", "back"];

/// A path into the documents there are, by which questions ask and indexes order.
pub(super) const PATH: [&str; 2] = ["a", "b"];

const TEXTS: [&str; 20] = [
    "",
    " ",
    "a",
    "A",
    "aa",
    "ab",
    "Ab",
    "abc",
    "b",
    "ä",
    "Ä",
    "äb",
    "ß",
    "SS",
    "日本",
    "日本語",
    "z",
    "%",
    "a_b",
    "\u{10ffff}",
];

/// A value of a type.
pub(super) fn draw(data_type: DataType, generator: &mut Generator) -> Value {
    use DataType as T;
    match data_type {
        T::Bool => Value::Bool(generator.chance(500_000)),
        T::I8 | T::I16 | T::I32 | T::I64 => signed(data_type, generator),
        T::U8 | T::U16 | T::U32 | T::U64 => unsigned(data_type, generator),
        T::F32 => Value::Float32(generator.pick([
            0.0,
            -0.0,
            0.5,
            1.0,
            -1.5,
            3.0,
            f32::MAX,
            f32::MIN,
            f32::MIN_POSITIVE,
            16_777_216.0,
        ])),
        T::F64 => Value::Float(generator.pick([
            0.0,
            -0.0,
            0.5,
            1.0,
            -1.5,
            3.0,
            f64::MAX,
            f64::MIN,
            1e-300,
            9_007_199_254_740_992.0,
        ])),
        T::Text => Value::Text(text(generator)),
        T::Bytes => {
            let mut bytes = vec![0; generator.index(4)];
            generator.fill(&mut bytes);
            let low = generator.chance(500_000);
            Value::Bytes(bytes.into_iter().map(|b| if low { b & 1 } else { b }).collect())
        }
        T::Date => Value::Date(i32::try_from(signed_below(generator, 40_000)).unwrap_or_default()),
        T::Timestamp => Value::Timestamp(signed_below(generator, 3) * 1_000_000_007),
        T::Time => Value::Time(signed_below(generator, 4).abs() * 3_600_000_000),
        T::Uuid => Value::Uuid(sixteen(generator)),
        T::Interval => {
            let part = |generator: &mut Generator| signed_below(generator, 40);
            let small = |v: i64| i32::try_from(v).unwrap_or_default();
            let (months, days) = (small(part(generator)), small(part(generator)));
            let us = part(generator) * 3_600_000_000;
            Value::Interval(Interval::new(months, days, us))
        }
        T::Ipv6 => Value::Ipv6(sixteen(generator)),
        T::Ipv4 => Value::Ipv4(u32::try_from(generator.below(1 << 32)).unwrap_or_default()),
        T::Decimal { precision, scale } => {
            let digits = u32::from(precision.min(18));
            let ends = [0, 1, -1, 10i128.pow(digits) - 1, 1 - 10i128.pow(digits), 150];
            let near = i128::from(signed_below(generator, 500));
            let mantissa = if generator.chance(400_000) { generator.pick(ends) } else { near };
            Decimal::new(mantissa, scale).map_or(Value::Null, Value::Decimal)
        }
        T::Enum => {
            let labels = Labels::new(LABELS).ok();
            let label = generator.pick(LABELS);
            labels.and_then(|l| l.find(label).map(ValueRef::to_owned)).unwrap_or_default()
        }
        T::Json => document(generator),
        T::List(element) => list(element, generator),
    }
}

fn list(element: ListElement, generator: &mut Generator) -> Value {
    let item = |generator: &mut Generator| match generator.below(6) {
        0 => Value::Null,
        _ => draw(element.data_type(), generator),
    };
    let count = generator.index(4);
    let items: Vec<_> = (0..count).map(|_| item(generator)).collect();
    Value::list(element, items.iter().map(Value::as_ref)).unwrap_or_default()
}

/// A document that has a text at [`PATH`], mostly.
fn document(generator: &mut Generator) -> Value {
    let text = esker::json::parse(&quoted(&text(generator)));
    let shown = text.map(|text| esker::json::Json::document(&text).to_string());
    let end = match generator.below(10) {
        0 => "null".to_owned(),
        1 => "17.50".to_owned(),
        2 => "[1, {\"b\": 2}]".to_owned(),
        _ => shown.unwrap_or_default(),
    };
    let document = match generator.below(12) {
        0 => end,
        1 => format!("{{\"a\": {end}}}"),
        _ => format!("{{\"z\": [], \"a\": {{\"b\": {end}, \"\": 1}}}}"),
    };
    Value::json(&document).unwrap_or_default()
}

/// The text as JSON; there are no characters in it that JSON escapes.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// The text at [`PATH`].
pub(super) fn text_at_path(document: &Value) -> Value {
    let Value::Json(document) = document else { return Value::Null };
    let text = esker::json::Json::document(document).text_at(PATH);
    text.map_or(Value::Null, Value::Text)
}

/// A text of the pieces that there are.
pub(super) fn text(generator: &mut Generator) -> String {
    let mut text = generator.pick(TEXTS).to_owned();
    if generator.chance(300_000) {
        text.push_str(generator.pick(TEXTS));
    }
    if generator.chance(250_000) {
        // Longer than what runs of texts keep beside their rows, with an equal start.
        text.insert_str(0, &"long ".repeat(14));
    }
    text
}

fn signed_below(generator: &mut Generator, bound: u64) -> i64 {
    let value = i64::try_from(generator.below(2 * bound)).unwrap_or_default();
    value - i64::try_from(bound).unwrap_or_default()
}

fn signed(data_type: DataType, generator: &mut Generator) -> Value {
    let (least, most) = match data_type {
        DataType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DataType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let near = signed_below(generator, 12);
    Value::Int(match generator.below(10) {
        0 => least,
        1 => least + 1,
        2 => most,
        3 => most - 1,
        _ => near,
    })
}

fn unsigned(data_type: DataType, generator: &mut Generator) -> Value {
    let most = match data_type {
        DataType::U8 => u64::from(u8::MAX),
        DataType::U16 => u64::from(u16::MAX),
        DataType::U32 => u64::from(u32::MAX),
        _ => u64::MAX,
    };
    let near = generator.below(15);
    Value::Uint(match generator.below(10) {
        0 => most,
        1 => most - 1,
        _ => near,
    })
}

fn sixteen(generator: &mut Generator) -> [u8; 16] {
    let mut bytes = [0; 16];
    let few = generator.chance(500_000);
    generator.fill(&mut bytes);
    bytes.map(|b| if few { b & 1 } else { b })
}
