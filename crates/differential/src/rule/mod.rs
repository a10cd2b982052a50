//! What means the same in both.

mod core;
mod decimal;
pub(crate) mod duckdb;
mod interval;
mod json;
mod label;

use crate::table::Table;
use crate::value::Kind::{self, Bool, Bytes, Date, Decimal, Float, Int, Json, Stamp, Text};

/// What means the same in both: `{0}`, `{1}`, … are the operands.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) outcome: Kind,
    pub(crate) operands: &'static [Kind],
    pub(crate) esker: &'static str,
    pub(crate) sqlite: &'static str,
    /// In SQLite, failing where a number does not fit.
    pub(crate) strict: &'static str,
}

impl Rule {
    /// Whether SQLite leaves operands out once others have decided: then what fails there does not
    /// fail here.
    pub(crate) fn may_leave_out(&self) -> bool {
        self.strict.contains(" BETWEEN ") || self.strict.contains(" IN (")
    }

    /// Whether a table has the columns that it is about.
    pub(crate) fn fits(&self, table: Option<&Table>) -> bool {
        let has = |kind: Kind| table.is_some_and(|t| !t.columns_of(kind).is_empty());
        self.operands.iter().all(|kind| kind.column().is_none_or(has))
    }
}

const fn rule(
    outcome: Kind,
    operands: &'static [Kind],
    esker: &'static str,
    sqlite: &'static str,
) -> Rule {
    Rule { outcome, operands, esker, sqlite, strict: sqlite }
}

const fn same(outcome: Kind, operands: &'static [Kind], text: &'static str) -> Rule {
    rule(outcome, operands, text, text)
}

/// Two values of one kind are equal.
pub(crate) static EQUAL: Rule = same(Bool, &[Int, Int], "({0} = {1})");

const fn checked(
    outcome: Kind,
    operands: &'static [Kind],
    text: &'static str,
    strict: &'static str,
) -> Rule {
    Rule { outcome, operands, esker: text, sqlite: text, strict }
}

/// Esker's text, SQLite's, and the operands.
type Template = (&'static str, &'static str, &'static [Option<Kind>]);

/// Templates for every kind: the operands without a kind of their own are of the outcome's.
const ANY_KIND: &[Template] = &[
    ("coalesce({0}, {1})", "coalesce({0}, {1})", &[None, None]),
    ("nullif({0}, {1})", "nullif({0}, {1})", &[None, None]),
    (
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        &[Some(Bool), None, None],
    ),
    (SIMPLE_CASE, SIMPLE_CASE, &[Some(Int), Some(Int), None]),
];

const SIMPLE_CASE: &str = "CASE {0} WHEN {1} THEN {2} END";
/// The same, where SQLite computes both operands even if one of them is NULL.
const STRICT_CASE: &str = "CASE max({0}, {1}) WHEN min({0}, {1}) THEN {2} END";

/// The same for kinds that both order alike.
const ORDERED_KIND: &[Template] = &[
    (
        "greatest({0}, {1})",
        "CASE WHEN {0} IS NULL THEN {1} WHEN {1} > {0} THEN {1} ELSE {0} END",
        &[None, None],
    ),
    (
        "least({0}, {1})",
        "CASE WHEN {0} IS NULL THEN {1} WHEN {1} < {0} THEN {1} ELSE {0} END",
        &[None, None],
    ),
];

/// Every rule.
pub(crate) fn all() -> &'static [Rule] {
    static ALL: std::sync::OnceLock<Vec<Rule>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| {
        let moments = interval::rules();
        let lists = [core::rules(), decimal::rules(), label::rules(), json::rules(), moments];
        let mut rules: Vec<Rule> = lists.into_iter().flatten().collect();
        let ordered = [Int, Float, Text, Bool, Bytes, Date, Stamp, Decimal];
        for outcome in ordered.into_iter().chain([Json]) {
            let more = if outcome == Json { &[] } else { ORDERED_KIND };
            for (esker, sqlite, operands) in ANY_KIND.iter().chain(more) {
                let operands: Vec<Kind> = operands.iter().map(|k| k.unwrap_or(outcome)).collect();
                let strict = if *sqlite == SIMPLE_CASE { STRICT_CASE } else { *sqlite };
                let rule = rule(outcome, operands.leak(), esker, sqlite);
                rules.push(Rule { strict, ..rule });
            }
        }
        rules
    })
}
