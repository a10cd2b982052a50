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
    /// A small whole number that is a constant.
    Small,
    /// The pattern of a LIKE.
    Pattern,
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
const FLOATS: [f64; 5] = [1e300, -1e300, 9_007_199_254_740_992.0, 0.0, 5e-324];

impl Kind {
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
    let start = dice.pick(&[0, 10_956, 11_016, 19_722, 19_782, -719_162, 2_932_000]);
    start + i32::try_from(dice.int(0, 6)).unwrap_or_default()
}

/// A constant as Esker reads it.
pub(crate) fn in_esker(value: &Value) -> String {
    match value {
        Value::Int(v) if *v < 0 => format!("({v})"),
        // With an exponent it is a float; else it were a decimal, which SQLite has not.
        Value::Float(v) => format!("({v:e})"),
        Value::Date(_) => format!("DATE '{value}'"),
        Value::Timestamp(_) => format!("TIMESTAMP '{value}'"),
        other => in_sqlite(other),
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
        Value::Date(_) | Value::Timestamp(_) => format!("'{value}'"),
        other => other.to_string(),
    }
}

/// A value of SQLite as one of Esker's of a type. Booleans are numbers there, dates texts.
pub(crate) fn from_sqlite(value: rusqlite::types::Value, data_type: DataType) -> Value {
    use rusqlite::types::Value as Sqlite;
    match (value, data_type) {
        (Sqlite::Null, _) => Value::Null,
        (Sqlite::Integer(v), DataType::Bool) => Value::Bool(v != 0),
        (Sqlite::Integer(v), _) => Value::Int(v),
        (Sqlite::Real(v), _) => Value::Float(v),
        (Sqlite::Blob(v), _) => Value::Bytes(v),
        (Sqlite::Text(v), DataType::Date | DataType::Timestamp) => {
            parse_value(&v, data_type).unwrap_or(Value::Text(v))
        }
        (Sqlite::Text(v), _) => Value::Text(v),
    }
}
