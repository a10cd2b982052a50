//! Constants and types, as each of the two spells them.

use esker::{DataType, Value};
use esker_format::text::parse_value;

use crate::dice::Dice;

/// What an expression is, as far as the two have it in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Int,
    Float,
    Text,
    Bool,
    Bytes,
    Date,
    Stamp,
    /// With two digits behind the point.
    Decimal,
    /// A label of [`LABELS`]: a column, or a constant beside one.
    Label,
    Json,
    /// A small whole number that is a constant.
    Small,
    /// The pattern of a LIKE.
    Pattern,
    /// The same with `!` as its escape.
    Escaped,
    /// A column of labels.
    LabelColumn,
    /// A label that is a constant.
    LabelConstant,
    /// A column of JSON.
    JsonColumn,
    /// The name of a member of a JSON object.
    Member,
}

const EXTREMES: [i64; 8] = [
    i64::MIN,
    i64::MAX,
    i64::MIN + 1,
    1 << 53,
    (1 << 53) + 1,
    -(1 << 31) - 1,
    u32::MAX as i64,
    i64::MAX - 1,
];
const TEXTS: [&str; 14] =
    ["", "a", "ab", "AB", "b%", "a_b", "äb", "Äß", "zebra", "  x ", "é", "-1", "abab", "it's"];
const PATTERNS: [&str; 10] = ["a%", "%b", "%eb%", "_", "__", "a_b", "%a%b%", "", "%", "é%"];
const ESCAPED: [&str; 8] = ["a!_b", "b!%", "%!%%", "a!_%", "!_", "%!!%", "_!%", "!%!_"];
const FLOATS: [f64; 5] = [1e300, -1e300, 9_007_199_254_740_992.0, 0.0, 5e-324];
const MEMBERS: [&str; 4] = ["a", "b", "c", "ä"];
const DOCUMENTS: [&str; 16] = [
    r#"{"a":1,"b":"x"}"#,
    r#"{"a":null}"#,
    r#"{"a":-7,"b":"Ab","c":[1,2,3]}"#,
    r#"[1,"x",null,true]"#,
    r#"{"a":2.5,"b":"","c":{"d":"deep","e":[0]}}"#,
    r#"{"a":"1","ä":"é"}"#,
    r#"{"a":true,"b":false}"#,
    r#"{"a":3,"b":"ab","c":{"d":null}}"#,
    r#"{"a":4,"b":"a_b","c":{"d":[]}}"#,
    "7",
    r#""a""#,
    "true",
    "null",
    "{}",
    "[]",
    "[[2],{\"a\":5}]",
];
/// The labels of every enum, in their order, which is not that of their texts.
pub(crate) const LABELS: [&str; 5] = ["small", "medium", "Large", "x%l", "äb"];

/// A label as Esker holds it.
fn label(place: i64) -> Value {
    let place = usize::try_from(place).unwrap_or_default();
    let label = LABELS.get(place).copied().unwrap_or_default();
    let [low, high] = u16::try_from(place).unwrap_or_default().to_le_bytes();
    Value::Enum([&[high, low], label.as_bytes()].concat())
}

/// The place of a label.
fn place(label: &Value) -> usize {
    LABELS.iter().position(|known| *known == label.to_string()).unwrap_or_default()
}

fn decimal(hundredths: i128) -> Value {
    esker::Decimal::new(hundredths, 2).map_or(Value::Null, Value::Decimal)
}

impl Kind {
    /// The kind of column that an expression of this kind has to be.
    pub(crate) fn column(self) -> Option<Self> {
        match self {
            Self::LabelColumn => Some(Self::Label),
            Self::JsonColumn => Some(Self::Json),
            _ => None,
        }
    }

    /// Whether every expression of this kind is a constant.
    pub(crate) fn is_constant(self) -> bool {
        use Kind::{Escaped, LabelConstant, Member, Pattern, Small};
        matches!(self, Small | Pattern | Escaped | LabelConstant | Member)
    }

    /// A constant of this kind.
    pub(crate) fn value(self, dice: &mut Dice) -> Value {
        let rare = dice.chance(2);
        match self {
            Self::Int if rare => Value::Int(dice.pick(&EXTREMES)),
            Self::Int => Value::Int(dice.int(-20, 20)),
            Self::Small => Value::Int(dice.int(0, 5)),
            Self::Float if rare => Value::Float(dice.pick(&FLOATS)),
            Self::Float => Value::Float(dice.int(-40, 40) as f64 / 4.0),
            Self::Text => Value::from(dice.pick(&TEXTS)),
            Self::Pattern => Value::from(dice.pick(&PATTERNS)),
            Self::Escaped => Value::from(dice.pick(&ESCAPED)),
            Self::Member => Value::from(dice.pick(&MEMBERS)),
            Self::Decimal if rare => decimal(dice.pick(&[999_999_999, -999_999_999, 1, -1])),
            Self::Decimal => decimal((dice.int(-40, 40) * 25 + dice.int(0, 1)).into()),
            Self::Label | Self::LabelColumn | Self::LabelConstant => label(dice.int(0, 4)),
            Self::Json | Self::JsonColumn => Value::json(dice.pick(&DOCUMENTS)).unwrap_or_default(),
            Self::Bool => Value::Bool(dice.chance(50)),
            Self::Bytes => Value::Bytes(dice.pick(&[vec![], vec![0], vec![7, 255], vec![7]])),
            Self::Date => Value::Date(date(dice)),
            Self::Stamp => {
                let second = dice.pick(&[0, 1, 59, 3_600, 43_200, 86_399]);
                Value::Timestamp((i64::from(date(dice)) * 86_400 + second) * 1_000_000)
            }
        }
    }
}

/// Around leap days and ends of years.
fn date(dice: &mut Dice) -> i32 {
    let start = dice.pick(&[0, 10_956, 11_016, 19_722, 19_782, -354_285, 2_900_000]);
    start + i32::try_from(dice.int(0, 6)).unwrap_or_default()
}

/// A constant as Esker reads it.
pub(crate) fn in_esker(value: &Value) -> String {
    match value {
        Value::Int(v) if *v < 0 => format!("({v})"),
        Value::Int(v) => whole(*v),
        // With an exponent it is a float; else it were a decimal, which SQLite has not.
        Value::Float(v) => format!("({v:e})"),
        Value::Date(_) => format!("DATE '{value}'"),
        Value::Timestamp(_) => format!("TIMESTAMP '{value}'"),
        Value::Decimal(_) => format!("({value})"),
        Value::Enum(_) => format!("'{value}'"),
        Value::Json(_) => format!("CAST('{value}' AS json)"),
        other => in_sqlite(other),
    }
}

/// A whole number, some of them in another base or with its digits apart.
fn whole(v: i64) -> String {
    match v % 7 {
        1 => format!("0x{v:X}"),
        2 => format!("0o{v:o}"),
        3 => format!("0b{v:b}"),
        4 | 5 => {
            let digits: Vec<String> = v.to_string().chars().map(String::from).collect();
            digits.join("_")
        }
        _ => v.to_string(),
    }
}

/// A constant as SQLite reads it.
pub(crate) fn in_sqlite(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Int(v) if *v < 0 => format!("({v})"),
        Value::Float(v) => format!("({v:?})"),
        Value::Bytes(_) => format!("X'{value}'"),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Date(_) | Value::Timestamp(_) | Value::Json(_) => format!("'{value}'"),
        Value::Decimal(v) => format!("({})", v.mantissa()),
        Value::Enum(_) => place(value).to_string(),
        other => other.to_string(),
    }
}

/// A constant as DuckDB reads it.
pub(crate) fn in_duckdb(value: &Value) -> String {
    match value {
        Value::Int(v) if *v >= 0 => v.to_string(),
        Value::Float(v) if !v.is_finite() => format!("CAST('{v}' AS DOUBLE)"),
        Value::Bytes(_) => format!("unhex('{value}')"),
        Value::Enum(_) => format!("CAST('{value}' AS label)"),
        other => in_esker(other),
    }
}

/// A value of DuckDB, as `peer.py` writes it, as one of Esker's of a type.
pub(crate) fn from_duckdb(value: &serde_json::Value, data_type: DataType) -> Value {
    use serde_json::Value as Json;
    let parsed = |text: &str| {
        let value = parse_value(text, data_type);
        value.unwrap_or_else(|_| Value::Text(text.to_owned()))
    };
    match value {
        Json::Null => Value::Null,
        Json::Bool(v) => Value::Bool(*v),
        Json::Number(v) => parsed(&v.to_string()),
        Json::String(v) if data_type == DataType::Enum => {
            let place = LABELS.iter().position(|label| label == v);
            place.and_then(|place| i64::try_from(place).ok()).map_or(Value::Text(v.clone()), label)
        }
        Json::String(v) => Value::Text(v.clone()),
        Json::Object(members) => match members.iter().next() {
            Some((kind, Json::String(text))) => match kind.as_str() {
                "f" => text.parse().map_or_else(|_| parsed(text), Value::Float),
                _ => parsed(text),
            },
            _ => Value::Text(value.to_string()),
        },
        Json::Array(_) => Value::Text(value.to_string()),
    }
}

/// A value of SQLite as one of Esker's of a type. Booleans, decimals and labels are numbers there,
/// dates and documents texts.
pub(crate) fn from_sqlite(value: rusqlite::types::Value, data_type: DataType) -> Value {
    use rusqlite::types::Value as Sqlite;
    match (value, data_type) {
        (Sqlite::Null, _) => Value::Null,
        (Sqlite::Integer(v), DataType::Bool) => Value::Bool(v != 0),
        (Sqlite::Integer(v), DataType::Decimal { scale, .. }) => {
            esker::Decimal::new(v.into(), scale).map_or(Value::Int(v), Value::Decimal)
        }
        (Sqlite::Integer(v), DataType::Enum) => label(v),
        (Sqlite::Integer(v), _) => Value::Int(v),
        (Sqlite::Real(v), _) => Value::Float(v),
        (Sqlite::Blob(v), _) => Value::Bytes(v),
        (Sqlite::Text(v), DataType::Date | DataType::Timestamp) => {
            parse_value(&v, data_type).unwrap_or(Value::Text(v))
        }
        (Sqlite::Text(v), DataType::Json) => Value::json(&v).unwrap_or(Value::Text(v)),
        (Sqlite::Text(v), _) => Value::Text(v),
    }
}
