//! Answers, and when two of them are the same.
//!
//! Integers, decimals, texts, dates and truth are the same when they are equal. Where one of two
//! numbers is a float, as averages are in DuckDB and decimals in SQLite, they may differ by
//! [`TOLERANCE`] of the greater, and by half of the last digit of the other where that is a
//! decimal. Rows are compared in their order where `ORDER BY` leaves no choice, else as a set.
//! What a specification prints has two digits behind the point.

use std::cmp::Ordering;

use esker::Value;
use serde_json::Value as Json;

/// By how much two floats may differ, as a share of the greater.
pub const TOLERANCE: f64 = 1e-9;

/// Half of the last digit that a specification prints, and a little for its rounding.
const PRINTED: f64 = 0.0051;

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    /// A number by its digits, and how many of them are behind the point.
    Exact(i128, u32),
    Float(f64),
    /// A text, or what is written as one.
    Text(String),
}

/// Rows of an answer.
pub type Rows = Vec<Vec<Cell>>;

impl Cell {
    /// A value of Esker.
    pub fn of_esker(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Exact((*value).into(), 0),
            Value::Uint(value) => Self::Exact((*value).into(), 0),
            Value::Float32(value) => Self::Float((*value).into()),
            Value::Float(value) => Self::Float(*value),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Decimal(value) => {
                let text = value.to_string();
                exact(&text).unwrap_or(Self::Text(text))
            }
            other => Self::Text(other.to_string()),
        }
    }

    /// A value as `peer.py` writes it.
    pub fn of_peer(value: &Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(value) => Self::Exact(value.as_i64().map_or(0, i128::from), 0),
            Json::String(text) => Self::Text(text.clone()),
            Json::Object(members) => {
                let member = members.iter().next();
                let (kind, text) = member.map_or(("", ""), |(kind, text)| {
                    (kind.as_str(), text.as_str().unwrap_or_default())
                });
                let number = match kind {
                    "d" => exact(text),
                    "f" => text.parse().ok().map(Self::Float),
                    _ => None,
                };
                number.unwrap_or_else(|| Self::Text(text.to_owned()))
            }
            Json::Array(_) => Self::Text(value.to_string()),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Exact(digits, scale) => Some(*digits as f64 / 10f64.powi(scale.cast_signed())),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Half of its last digit.
    fn half_a_digit(&self) -> f64 {
        match self {
            Self::Exact(_, scale) if *scale > 0 => 0.5 / 10f64.powi(scale.cast_signed()),
            _ => 0.0,
        }
    }

    /// Whether it is the same as another.
    pub fn is_same(&self, other: &Self) -> bool {
        if let (Self::Exact(a, a_scale), Self::Exact(b, b_scale)) = (self, other) {
            let scale = *a_scale.max(b_scale);
            let scaled =
                |digits: i128, own: u32| digits.checked_mul(10i128.checked_pow(scale - own)?);
            return scaled(*a, *a_scale) == scaled(*b, *b_scale);
        }
        let (Some(a), Some(b)) = (self.number(), other.number()) else { return self == other };
        let digits = self.half_a_digit().max(other.half_a_digit());
        let most = TOLERANCE.mul_add(a.abs().max(b.abs()), digits);
        (a - b).abs() <= most || (a.is_nan() && b.is_nan())
    }

    /// An order of rows that two answers have in common: what may differ a little comes last.
    fn order(&self, other: &Self) -> Ordering {
        let rank = |cell: &Self| match cell {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Exact(..) | Self::Float(_) => 2,
            Self::Text(_) => 3,
        };
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => rank(self).cmp(&rank(other)),
            },
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Bool(value) => value.to_string(),
            Self::Exact(digits, 0) => digits.to_string(),
            Self::Exact(..) | Self::Float(_) => self.number().unwrap_or(f64::NAN).to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// How an answer differs from what a specification prints of it: names, then a row a line.
/// Numbers may differ by `tolerance`, a share of what is printed, and by half of its last digit.
pub fn difference_to_printed(rows: &[Vec<Cell>], printed: &str, tolerance: f64) -> Option<String> {
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).skip(1).collect();
    if rows.len() != lines.len() {
        return Some(format!("{} rows, not {}", rows.len(), lines.len()));
    }
    let is_printed = |cell: &Cell, text: &str| match cell.number() {
        Some(number) => text.parse().is_ok_and(|printed: f64| {
            (number - printed).abs() <= tolerance.mul_add(printed.abs(), PRINTED)
        }),
        None => cell.shown().trim() == text,
    };
    let is_same = |row: &Vec<Cell>, line: &str| {
        let texts: Vec<&str> = line.split('|').map(str::trim).collect();
        row.len() == texts.len() && row.iter().zip(texts).all(|(cell, text)| is_printed(cell, text))
    };
    let mut pairs = (1..).zip(rows.iter().zip(lines));
    let (row, (ours, printed)) = pairs.find(|(_, (row, line))| !is_same(row, line))?;
    let ours: Vec<String> = ours.iter().map(Cell::shown).collect();
    Some(format!("row {row}: {}, not {printed}", ours.join(" | ")))
}

/// A decimal written out.
fn exact(text: &str) -> Option<Cell> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some(Cell::Exact(digits, u32::try_from(fraction.len()).ok()?))
}

/// How the second answer differs from the first; nothing where they are the same.
pub fn difference(mut first: Rows, mut second: Rows, is_ordered: bool) -> Option<String> {
    if first.len() != second.len() {
        return Some(format!("{} rows, not {}", first.len(), second.len()));
    }
    if !is_ordered {
        let columns = first.first().map_or(0, Vec::len);
        // What is a float in one of the answers may differ a little in the other.
        let is_float = |column: usize| {
            let cells = first.iter().chain(&second).filter_map(|row| row.get(column));
            cells.into_iter().any(|cell| matches!(cell, Cell::Float(_)))
        };
        let (floats, others): (Vec<usize>, Vec<usize>) = (0..columns).partition(|c| is_float(*c));
        let order: Vec<usize> = others.into_iter().chain(floats).collect();
        let by_cells = |a: &Vec<Cell>, b: &Vec<Cell>| {
            let cells =
                order.iter().filter_map(|column| Some(a.get(*column)?.order(b.get(*column)?)));
            cells.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        first.sort_by(by_cells);
        second.sort_by(by_cells);
    }
    let same =
        |a: &[Cell], b: &[Cell]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b));
    let mut pairs = (1..).zip(first.iter().zip(&second));
    let (row, (a, b)) = pairs.find(|(_, (a, b))| !same(a, b))?;
    let shown = |row: &[Cell]| row.iter().map(Cell::shown).collect::<Vec<_>>().join(" | ");
    Some(format!("row {row}: {}, not {}", shown(a), shown(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_may_differ_a_little_and_decimals_not_at_all() {
        let decimal = |text| exact(text).unwrap();
        assert!(decimal("1.50").is_same(&decimal("1.5")));
        assert!(!decimal("1.50").is_same(&decimal("1.51")));
        assert!(decimal("1.50").is_same(&Cell::Float(1.500_000_000_1)));
        assert!(decimal("0.333333").is_same(&Cell::Float(1.0 / 3.0)));
        assert!(!decimal("0.333333").is_same(&Cell::Float(0.333_34)));
        assert!(!Cell::Float(1.0).is_same(&Cell::Float(1.000_001)));
        assert!(!Cell::Null.is_same(&Cell::Exact(0, 0)));
    }

    #[test]
    fn what_is_printed_has_two_digits() {
        let rows = vec![vec![Cell::Text("a".into()), Cell::Float(0.034)]];
        let printed = |text: &str| format!("\nname|share\n{text}\n");
        assert_eq!(difference_to_printed(&rows, &printed("a  |0.03"), TOLERANCE), None);
        assert!(difference_to_printed(&rows, &printed("a|0.02"), TOLERANCE).is_some());
        assert!(difference_to_printed(&rows, &printed("b|0.03"), TOLERANCE).is_some());
        assert_eq!(difference_to_printed(&rows, &printed("a|0.04"), 0.5), None);
        assert!(difference_to_printed(&rows, "name|share\n", TOLERANCE).is_some());
    }

    #[test]
    fn rows_without_an_order_are_compared_as_a_set() {
        let row = |text: &str, number| vec![Cell::Float(number), Cell::Text(text.to_owned())];
        let first = vec![row("a", 1.0), row("b", 1.0 + 1e-12)];
        let second = vec![row("b", 1.0), row("a", 1.0 + 1e-12)];
        assert_eq!(difference(first.clone(), second.clone(), false), None);
        assert!(difference(first.clone(), second, true).is_some());
        assert!(difference(first, vec![], false).is_some());
    }
}
