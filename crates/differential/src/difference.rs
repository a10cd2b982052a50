//! What differs by design, each with its reason; everything else is a finding.

use esker::Value;

/// A difference that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Design {
    Overflow,
    NotANumber,
    Average,
    Constant,
    Nothing,
    Sum,
    LongDecimal,
    Operand,
}

/// Every difference that is meant, and why.
pub(crate) const DESIGNS: [(Design, &str, &str); 7] = [
    (
        Design::Overflow,
        "a number that does not fit its type",
        "an error here, told by the same statement with checked arithmetic in SQLite, which itself \
         goes on with a rounded float",
    ),
    (
        Design::NotANumber,
        "a float that is no number",
        "a value here, greater than all numbers, and NULL in SQLite",
    ),
    (
        Design::Average,
        "the last digit of avg of large integers",
        "the exact sum rounded once here, a sum of floats in SQLite",
    ),
    (
        Design::Constant,
        "a constant that cannot be computed and that no row needs",
        "an error here, told by the same statement on empty tables; SQLite computes it for a row",
    ),
    (
        Design::Nothing,
        "an expression that cannot be computed for a row, where a side of a join is empty, the \
         limit is 0, or no row asks the subquery that has it",
        "an error here, where it is computed first; told by an answer without rows, or a change \
         of none, in SQLite",
    ),
    (
        Design::Sum,
        "a sum of integers that passes 2^63 on the way, or of unsigned ones that ends there",
        "exact here, where only the outcome has to fit; an overflow in SQLite",
    ),
    (
        Design::LongDecimal,
        "a product or a rounded number of more than 18 digits",
        "a decimal here; SQLite's integers end there",
    ),
];

/// Every difference to DuckDB that is meant, and why; what its dialect says otherwise is listed in
/// [`crate::rule::duckdb`].
pub(crate) const DUCKDB_DESIGNS: [(Design, &str, &str); 2] = [
    (
        Design::Average,
        "the last digits of means, quotients and powers",
        "the exact sum rounded once here; there sums and quotients of floats",
    ),
    (
        Design::Operand,
        "an operand that cannot be computed, in one of the two",
        "which operands are computed is not said; sums of integers end at 2^63 here, at 2^127 \
         there, and short decimals end sooner there",
    ),
];

/// What SQLite has no equivalent for, and what tests it instead.
pub(crate) const LEFT_OUT: [(&str, &str); 7] = [
    ("regular expressions", "SQLite has none; `query/src/predicate/tests.rs`, `sqllogic`"),
    ("the order of JSON", "SQLite orders its text; `format/src/json`, `sqllogic`"),
    ("decimals of more than 18 digits", "SQLite's integers end there; `sql/tests/suite/types.rs`"),
    ("comparing decimals with floats", "a float there; `query/tests/suite/against_naive.rs`"),
    (
        "intervals that are shown, and months beside days in one between two moments",
        "SQLite has no such values; their seconds are compared; `sql/tests/suite/intervals.rs`, \
         `sqllogic`",
    ),
    ("sums of floats", "they depend on the order of rows; `query/tests/suite/against_naive.rs`"),
    (
        "variance, median, quantile",
        "SQLite has none; `query/tests/suite/against_naive.rs`, `sqllogic`",
    ),
];

/// Below this, no mean comes of a sum that a float does not hold exactly.
const LARGE: f64 = (1u64 << 40) as f64;

/// True when rows are equal but for the last digits of large floats.
pub(crate) fn nearly_same(a: &[Vec<Value>], b: &[Vec<Value>]) -> bool {
    let near = |(a, b): (&Value, &Value)| match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            a == b || a.abs() >= LARGE && (a - b).abs() <= a.abs() * 1e-15
        }
        _ => a == b,
    };
    let row = |(a, b): (&Vec<Value>, &Vec<Value>)| a.iter().zip(b).all(near);
    a.len() == b.len() && a.iter().zip(b).all(row)
}

/// True when a row has a float that is no number.
pub(crate) fn has_nan(rows: &[Vec<Value>]) -> bool {
    let is_nan = |value: &Value| matches!(value, Value::Float(v) if v.is_nan());
    rows.iter().flatten().any(is_nan)
}
