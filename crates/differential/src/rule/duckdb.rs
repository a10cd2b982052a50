//! What means the same in DuckDB: the one table of where its dialect is another.
//!
//! A rule that is not listed is written for DuckDB as for Esker, with DuckDB's names of types.

use super::Rule;
use crate::value::Kind::{self, Bool, Bytes, Date, Decimal, Float, Int, Json, JsonColumn};

/// Where DuckDB is another.
struct Dialect {
    /// The kind of the first operand, where rules of several kinds have one text.
    of: Option<Kind>,
    esker: &'static str,
    /// DuckDB's text; none where it cannot say it, or means something else by it.
    duckdb: Option<&'static str>,
    why: &'static str,
}

const fn other(esker: &'static str, duckdb: &'static str, why: &'static str) -> Dialect {
    Dialect { of: None, esker, duckdb: Some(duckdb), why }
}

const fn none(esker: &'static str, why: &'static str) -> Dialect {
    Dialect { of: None, esker, duckdb: None, why }
}

const SIGN: &str = "sign() gives eight bits there, in which sums overflow";
const WHOLE: &str = "a whole number stays one here; there round() and floor() make floats";
const SECONDS: &str = "seconds are a float there, and unixepoch() is SQLite's name";
const START: &str = "a unit of a date begins on a date here; there at a timestamp";
const CUT: &str = "a cast cuts digits here, as in SQLite; there it rounds, as in PostgreSQL";
const ROUND: &str = "digits are those of the exact number here; there a float is multiplied first";
const PLACES: &str = "places before the first count here as in SQLite; there from the end";
const MODIFIERS: &str = "times with modifiers are SQLite's";
const FORMATS: &str = "these letters of formats are SQLite's";
const LOWER: &str = "there is no such function; lower() of both is the same";
const LABELS: &str = "a label is no text there in functions";
const ESCAPE: &str = "ESCAPE NULL is an error there";

/// Every rule that DuckDB reads otherwise, or not.
const DIALECT: &[Dialect] = &[
    Dialect {
        of: Some(Int),
        esker: "({0} / {1})",
        duckdb: Some("({0} // {1})"),
        why: "integers divide to an integer here, as in PostgreSQL and SQLite; there to a float",
    },
    other("sign({0})", "CAST(sign({0}) AS BIGINT)", SIGN),
    Dialect { of: Some(Int), esker: "round({0})", duckdb: Some("({0})"), why: WHOLE },
    Dialect { of: Some(Int), esker: "floor({0})", duckdb: Some("({0})"), why: WHOLE },
    other("octet_length({0})", "strlen({0})", "octet_length() is for bytes alone there"),
    other("ascii({0})", "CASE WHEN {0} = '' THEN 0 ELSE unicode({0}) END", "of '' it is -1 there"),
    other("iif({0}, {1}, {2})", "CASE WHEN {0} THEN {1} ELSE {2} END", "there is no iif()"),
    other("unixepoch({0})", "CAST(epoch({0}) AS BIGINT)", SECONDS),
    other(
        "unixepoch({0}, 'start of month')",
        "CAST(epoch(date_trunc('month', {0})) AS BIGINT)",
        MODIFIERS,
    ),
    Dialect {
        of: Some(Date),
        esker: "date_trunc('month', {0})",
        duckdb: Some("CAST(date_trunc('month', {0}) AS DATE)"),
        why: START,
    },
    Dialect {
        of: Some(Date),
        esker: "date_trunc('year', {0})",
        duckdb: Some("CAST(date_trunc('year', {0}) AS DATE)"),
        why: START,
    },
    other("date_part('epoch', {0})", "CAST(date_part('epoch', {0}) AS BIGINT)", SECONDS),
    Dialect {
        of: Some(Bytes),
        esker: "length({0})",
        duckdb: Some("octet_length({0})"),
        why: "length() is for texts alone there",
    },
    Dialect {
        of: Some(Float),
        esker: "CAST({0} AS i64)",
        duckdb: Some("CAST(trunc({0}) AS BIGINT)"),
        why: CUT,
    },
    Dialect {
        of: Some(Decimal),
        esker: "CAST({0} AS i64)",
        duckdb: Some("CAST(trunc({0}) AS BIGINT)"),
        why: CUT,
    },
    none("julianday({0})", "its days begin at midnight there"),
    none("round({0}, {1})", ROUND),
    none("round({0}, - {1})", ROUND),
    none("round({0} * 1.115e0, 2)", ROUND),
    none("round({0} + 42.12345e0, 4)", ROUND),
    other(
        "sqrt({0})",
        "CASE WHEN {0} >= 0 THEN sqrt({0}) END",
        "NULL of a negative number here, as in SQLite; there an error",
    ),
    other("upper({0})", "replace(upper({0}), 'ẞ', 'SS')", "ß becomes ẞ there"),
    none("substr({0}, {1}, {2})", PLACES),
    none("substr({0}, {1})", PLACES),
    none("printf('%s|%5d', {0}, {1})", FORMATS),
    none("printf('%,d %+05d', {0}, {1})", FORMATS),
    none("format('%-8x%X', {0}, {1})", FORMATS),
    none("printf('%!6.2s|%Q', {0}, {0})", FORMATS),
    other(
        "quote_literal({0})",
        "('''' || replace({0}, '''', '''''') || '''')",
        "there is no quote_literal()",
    ),
    other(
        "strftime('%Y/%m/%d %H-%M-%S %%', {0})",
        "strftime({0}, '%Y/%m/%d %H-%M-%S %%')",
        "the time comes first there",
    ),
    none("strftime('%j %W %w %u %G-%V %F %e', {0})", FORMATS),
    none("strftime('%s %I %p %P %k %l %R', {0}, '+40 days')", FORMATS),
    none("({0} LIKE {1} ESCAPE NULL)", ESCAPE),
    none("({0} NOT LIKE {1} ESCAPE NULL)", ESCAPE),
    other("({0} NOT NULL)", "({0} IS NOT NULL)", "NOT NULL is no condition there"),
    other("icontains({0}, {1})", "contains(lower({0}), lower({1}))", LOWER),
    other("istarts_with({0}, {1})", "starts_with(lower({0}), lower({1}))", LOWER),
    other("date({0}, {1} || ' days')", "CAST({0} + {1} AS DATE)", MODIFIERS),
    none("date({0}, '+1 month')", MODIFIERS),
    none("date({0}, 'start of year', '-1 month', 'weekday 0')", MODIFIERS),
    other("date({0}, '-36 hours')", "CAST({0} - INTERVAL '36 hours' AS DATE)", MODIFIERS),
    none("datetime({0}, '+1 year', '-90.5 minutes')", MODIFIERS),
    other("datetime({0}, '+01:30')", "(CAST({0} AS TIMESTAMP) + INTERVAL '90 minutes')", MODIFIERS),
    other("contains({0}, {1})", "contains(CAST({0} AS VARCHAR), {1})", LABELS),
    Dialect {
        of: Some(Decimal),
        esker: "CAST(({0} * {1}) AS decimal(38,2))",
        duckdb: None,
        why: "a product of wide decimals has no room for its digits there",
    },
];

/// The text of a rule for DuckDB; none where there is none.
pub(crate) fn template(rule: &Rule) -> Option<String> {
    let has_json = |kind: &Kind| matches!(kind, Json | JsonColumn);
    if has_json(&rule.outcome) || rule.operands.iter().any(has_json) {
        // Documents are texts there, as they were written.
        return None;
    }
    let is_listed = |entry: &&Dialect| {
        entry.esker == rule.esker
            && entry.of.is_none_or(|kind| rule.operands.first() == Some(&kind))
    };
    if let Some(entry) = DIALECT.iter().find(is_listed) {
        return entry.duckdb.map(str::to_owned);
    }
    // Numbers of two kinds are compared exactly here; there as floats, or as far as they fit.
    let has = |kind| rule.operands.contains(&kind);
    if rule.outcome == Bool && has(Int) && (has(Float) || has(Decimal)) {
        return None;
    }
    Some(rule.esker.replace("AS i64)", "AS BIGINT)").replace("AS f64)", "AS DOUBLE)"))
}

/// What is left out or written otherwise, each with its reason.
pub(crate) fn reasons() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)>
{
    DIALECT.iter().map(|entry| (entry.esker, entry.duckdb, entry.why))
}

/// An entry that is about no rule, since the rule has changed.
pub(crate) fn stale() -> Option<&'static str> {
    let is_known = |esker: &str| super::all().iter().any(|rule| rule.esker == esker);
    DIALECT.iter().map(|entry| entry.esker).find(|esker| !is_known(esker))
}
