//! Random expressions that both understand, from a table of what means the same.

use esker::Value;

use crate::dice::Dice;
use crate::table::Table;
use crate::value::{Kind, in_esker, in_sqlite};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    /// A column, by its name as it is to be written.
    Column(String),
    Constant(Value),
    Apply(&'static Rule, Vec<Self>),
}

impl Expression {
    pub(crate) fn has_column(&self) -> bool {
        match self {
            Self::Column(_) => true,
            Self::Constant(_) => false,
            Self::Apply(_, operands) => operands.iter().any(Self::has_column),
        }
    }
}

/// What means the same in both: `{0}`, `{1}`, … are the operands.
#[derive(Debug)]
pub(crate) struct Rule {
    outcome: Kind,
    operands: &'static [Kind],
    esker: &'static str,
    sqlite: &'static str,
    /// In SQLite, failing where a number does not fit.
    strict: &'static str,
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

const fn checked(
    outcome: Kind,
    operands: &'static [Kind],
    text: &'static str,
    strict: &'static str,
) -> Rule {
    Rule { outcome, operands, esker: text, sqlite: text, strict }
}

use Kind::{Bool, Bytes, Date, Float, Int, Pattern, Small, Stamp, Text};

const RULES: &[Rule] = &[
    checked(Int, &[Int, Int], "({0} + {1})", "chk_add({0}, {1})"),
    checked(Int, &[Int, Int], "({0} - {1})", "chk_sub({0}, {1})"),
    checked(Int, &[Int, Small], "({0} * {1})", "chk_mul({0}, {1})"),
    checked(Int, &[Int, Int], "({0} * {1})", "chk_mul({0}, {1})"),
    checked(Int, &[Int, Int], "({0} / {1})", "chk_div({0}, {1})"),
    same(Int, &[Int, Int], "({0} % {1})"),
    rule(Int, &[Int, Int], "mod({0}, {1})", "({0} % {1})"),
    checked(Int, &[Int], "(- {0})", "chk_sub(0, {0})"),
    same(Int, &[Int], "abs({0})"),
    rule(Int, &[Int], "sign({0})", "(({0} > 0) - ({0} < 0))"),
    rule(Int, &[Int], "round({0})", "(+ {0})"),
    rule(Int, &[Int], "floor({0})", "(+ {0})"),
    same(Int, &[Text], "length({0})"),
    same(Int, &[Bytes], "length({0})"),
    rule(Int, &[Text], "octet_length({0})", "length(CAST({0} AS BLOB))"),
    rule(Int, &[Text, Text], "strpos({0}, {1})", "instr({0}, {1})"),
    rule(Int, &[Text, Text], "position({1} IN {0})", "instr({0}, {1})"),
    rule(Int, &[Bool], "CAST({0} AS i64)", "CAST({0} AS INTEGER)"),
    Rule {
        outcome: Int,
        operands: &[Float],
        esker: "CAST({0} AS i64)",
        sqlite: "CAST({0} AS INTEGER)",
        strict: "chk_int({0})",
    },
    rule(Int, &[Date], "date_part('year', {0})", "CAST(strftime('%Y', {0}) AS INTEGER)"),
    rule(Int, &[Date], "extract(month FROM {0})", "CAST(strftime('%m', {0}) AS INTEGER)"),
    rule(Int, &[Stamp], "extract(day FROM {0})", "CAST(strftime('%d', {0}) AS INTEGER)"),
    rule(Int, &[Date], "date_part('doy', {0})", "CAST(strftime('%j', {0}) AS INTEGER)"),
    rule(Int, &[Date], "date_part('dow', {0})", "CAST(strftime('%w', {0}) AS INTEGER)"),
    rule(Int, &[Date], "date_part('isodow', {0})", "CAST(strftime('%u', {0}) AS INTEGER)"),
    rule(Int, &[Date], "date_part('week', {0})", "CAST(strftime('%V', {0}) AS INTEGER)"),
    rule(Int, &[Date], "date_part('isoyear', {0})", "CAST(strftime('%G', {0}) AS INTEGER)"),
    rule(Int, &[Stamp], "date_part('hour', {0})", "CAST(strftime('%H', {0}) AS INTEGER)"),
    rule(Int, &[Stamp], "date_part('minute', {0})", "CAST(strftime('%M', {0}) AS INTEGER)"),
    rule(Int, &[Stamp], "date_part('second', {0})", "CAST(strftime('%S', {0}) AS INTEGER)"),
    rule(Int, &[Stamp], "date_part('epoch', {0})", "CAST(strftime('%s', {0}) AS INTEGER)"),
    rule(
        Int,
        &[Date, Date],
        "({0} - {1})",
        "CAST(round(julianday({0}) - julianday({1})) AS INTEGER)",
    ),
    same(Float, &[Float, Float], "({0} + {1})"),
    same(Float, &[Float, Int], "({0} - {1})"),
    same(Float, &[Int, Float], "({0} * {1})"),
    same(Float, &[Float, Float], "({0} / {1})"),
    rule(Float, &[Int], "CAST({0} AS f64)", "CAST({0} AS REAL)"),
    same(Float, &[Float], "(- {0})"),
    same(Float, &[Float], "abs({0})"),
    same(Float, &[Float], "round({0})"),
    rule(Float, &[Float], "floor({0})", "r_floor({0})"),
    rule(Float, &[Float], "ceil({0})", "r_ceil({0})"),
    rule(Float, &[Float], "sqrt({0})", "r_sqrt({0})"),
    rule(Float, &[Float, Small], "power({0}, {1})", "r_power({0}, {1})"),
    rule(Text, &[Text], "lower({0})", "u_lower({0})"),
    rule(Text, &[Text], "upper({0})", "u_upper({0})"),
    same(Text, &[Text, Int], "substr({0}, {1})"),
    same(Text, &[Text, Int, Small], "substr({0}, {1}, {2})"),
    rule(Text, &[Text, Small], "left({0}, {1})", "substr({0}, 1, {1})"),
    rule(
        Text,
        &[Text, Small],
        "right({0}, {1})",
        "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN '' ELSE substr({0}, -({1})) END",
    ),
    // SQLite looks at the third operand only where the second is not empty.
    rule(
        Text,
        &[Text, Text, Text],
        "replace({0}, {1}, {2})",
        "CASE WHEN {2} IS NOT NULL THEN replace({0}, {1}, {2}) END",
    ),
    same(Text, &[Text], "trim({0})"),
    same(Text, &[Text, Text], "trim({0}, {1})"),
    same(Text, &[Text, Text], "ltrim({0}, {1})"),
    same(Text, &[Text], "rtrim({0})"),
    rule(Text, &[Text], "reverse({0})", "u_reverse({0})"),
    rule(Text, &[Text, Small], "repeat({0}, {1})", "replace(hex(zeroblob({1})), '00', {0})"),
    same(Text, &[Text, Text], "({0} || {1})"),
    same(Text, &[Text, Int], "({0} || {1})"),
    rule(Text, &[Text, Int], "concat({0}, {1})", "(coalesce({0}, '') || coalesce({1}, ''))"),
    rule(Text, &[Int], "CAST({0} AS text)", "CAST({0} AS TEXT)"),
    rule(Text, &[Date], "CAST({0} AS text)", "CAST({0} AS TEXT)"),
    same(Bool, &[Int, Int], "({0} = {1})"),
    same(Bool, &[Int, Int], "({0} <> {1})"),
    same(Bool, &[Int, Int], "({0} < {1})"),
    same(Bool, &[Int, Float], "({0} >= {1})"),
    same(Bool, &[Float, Int], "({0} = {1})"),
    same(Bool, &[Float, Float], "({0} <= {1})"),
    same(Bool, &[Text, Text], "({0} = {1})"),
    same(Bool, &[Text, Text], "({0} > {1})"),
    same(Bool, &[Bytes, Bytes], "({0} < {1})"),
    same(Bool, &[Date, Date], "({0} <= {1})"),
    same(Bool, &[Stamp, Stamp], "({0} > {1})"),
    same(Bool, &[Bool, Bool], "({0} = {1})"),
    same(Bool, &[Bool, Bool], "({0} AND {1})"),
    same(Bool, &[Bool, Bool], "({0} OR {1})"),
    same(Bool, &[Bool, Bool, Bool], "({0} AND {1} AND {2})"),
    same(Bool, &[Bool], "(NOT {0})"),
    same(Bool, &[Int, Int, Int, Int], "({0} IN ({1}, {2}, {3}))"),
    same(Bool, &[Text, Text, Text], "({0} NOT IN ({1}, {2}))"),
    same(Bool, &[Date, Date, Date], "({0} IN ({1}, {2}))"),
    same(Bool, &[Int, Int, Int], "({0} BETWEEN {1} AND {2})"),
    same(Bool, &[Float, Int, Int], "({0} NOT BETWEEN {1} AND {2})"),
    same(Bool, &[Text, Text, Text], "({0} BETWEEN {1} AND {2})"),
    same(Bool, &[Stamp, Stamp, Stamp], "({0} BETWEEN {1} AND {2})"),
    same(Bool, &[Int], "({0} IS NULL)"),
    same(Bool, &[Text], "({0} IS NOT NULL)"),
    same(Bool, &[Date], "({0} IS NULL)"),
    same(Bool, &[Int, Int], "({0} IS DISTINCT FROM {1})"),
    same(Bool, &[Text, Text], "({0} IS NOT DISTINCT FROM {1})"),
    same(Bool, &[Bool], "({0} IS TRUE)"),
    same(Bool, &[Bool], "({0} IS NOT FALSE)"),
    same(Bool, &[Text, Pattern], "({0} LIKE {1})"),
    same(Bool, &[Text, Pattern], "({0} NOT LIKE {1})"),
    rule(Bool, &[Text, Pattern], "({0} ILIKE {1})", "(u_lower({0}) LIKE u_lower({1}))"),
    rule(Bool, &[Text, Text], "starts_with({0}, {1})", "(substr({0}, 1, length({1})) = {1})"),
    rule(Date, &[Date, Small], "({0} + {1})", "date({0}, {1} || ' days')"),
    rule(Date, &[Date, Small], "({0} - {1})", "date({0}, '-' || {1} || ' days')"),
    rule(Date, &[Date], "date_trunc('month', {0})", "date({0}, 'start of month')"),
    rule(Date, &[Date], "date_trunc('year', {0})", "date({0}, 'start of year')"),
    rule(Date, &[Stamp], "CAST({0} AS date)", "date({0})"),
    rule(Stamp, &[Date], "CAST({0} AS timestamp)", "datetime({0})"),
    rule(Stamp, &[Stamp], "date_trunc('day', {0})", "datetime({0}, 'start of day')"),
    rule(Stamp, &[Date], "({0} + INTERVAL '1 month')", "datetime({0}, '+1 month', 'floor')"),
    rule(Stamp, &[Stamp], "({0} - INTERVAL '1' YEAR)", "datetime({0}, '-1 year', 'floor')"),
    rule(Stamp, &[Stamp], "({0} + INTERVAL '90 minutes')", "datetime({0}, '+90 minutes')"),
];

/// Templates for every kind: the operands without a kind of their own are of the outcome's.
const ANY_KIND: &[(&str, &str, &[Option<Kind>])] = &[
    ("coalesce({0}, {1})", "coalesce({0}, {1})", &[None, None]),
    ("nullif({0}, {1})", "nullif({0}, {1})", &[None, None]),
    (
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        "CASE WHEN {0} THEN {1} ELSE {2} END",
        &[Some(Bool), None, None],
    ),
    (
        "CASE {0} WHEN {1} THEN {2} END",
        "CASE {0} WHEN {1} THEN {2} END",
        &[Some(Int), Some(Int), None],
    ),
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

/// The rules of [`ANY_KIND`], for each kind that a column has.
fn general_rules() -> &'static [Rule] {
    static RULES: std::sync::OnceLock<Vec<Rule>> = std::sync::OnceLock::new();
    RULES.get_or_init(|| {
        let mut rules = Vec::new();
        for outcome in [Int, Float, Text, Bool, Bytes, Date, Stamp] {
            for (esker, sqlite, operands) in ANY_KIND {
                let operands: Vec<Kind> = operands.iter().map(|k| k.unwrap_or(outcome)).collect();
                rules.push(rule(outcome, operands.leak(), esker, sqlite));
            }
        }
        rules
    })
}

/// Which of the spellings is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Esker,
    Sqlite,
    /// SQLite, failing where a number does not fit.
    Strict,
}

/// A text under way, and the values that are given apart from it.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) spelling: Spelling,
    /// Constants as parameters.
    pub(crate) with_parameters: bool,
    pub(crate) parameters: Vec<Value>,
}

impl Writer {
    pub(crate) fn new(spelling: Spelling, with_parameters: bool) -> Self {
        let with_parameters = with_parameters && spelling == Spelling::Esker;
        Self { spelling, with_parameters, parameters: Vec::new() }
    }

    /// The expression as text.
    pub(crate) fn expression(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Column(name) => name.clone(),
            Expression::Constant(value) => self.constant(value),
            Expression::Apply(rule, operands) => {
                let template = match self.spelling {
                    Spelling::Esker => rule.esker,
                    Spelling::Sqlite => rule.sqlite,
                    Spelling::Strict => rule.strict,
                };
                self.fill(rule, template, operands)
            }
        }
    }

    fn fill(&mut self, rule: &Rule, template: &str, operands: &[Expression]) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let (place, after) = after.split_once('}').unwrap_or(("0", after));
            let place: usize = place.parse().unwrap_or_default();
            if let Some(operand) = operands.get(place) {
                // The grammar wants a pattern, and nothing else, as a constant.
                let is_pattern = rule.operands.get(place) == Some(&Pattern);
                text.push_str(&match operand {
                    Expression::Constant(value) if is_pattern => self.plain(value),
                    operand => self.expression(operand),
                });
            }
            rest = after;
        }
        text.push_str(rest);
        text
    }

    fn constant(&mut self, value: &Value) -> String {
        if self.with_parameters && !value.is_null() {
            self.parameters.push(value.clone());
            return "?".into();
        }
        self.plain(value)
    }

    fn plain(&self, value: &Value) -> String {
        match self.spelling {
            Spelling::Esker => in_esker(value),
            Spelling::Sqlite | Spelling::Strict => in_sqlite(value),
        }
    }
}

/// A key of an order: no constant, which would be the number of a column.
pub(crate) fn order_key(dice: &mut Dice, kind: Kind, table: &Table) -> Expression {
    let key = random(dice, kind, Some(table), 1);
    if key.has_column() {
        return key;
    }
    Expression::Column(table.columns.first().map_or(String::new(), |c| c.name.clone()))
}

/// A random expression of a kind over the columns of a table, or over none.
pub(crate) fn random(
    dice: &mut Dice,
    kind: Kind,
    table: Option<&Table>,
    depth: usize,
) -> Expression {
    if matches!(kind, Small | Pattern) {
        return Expression::Constant(kind.value(dice));
    }
    if depth == 0 || dice.chance(30) {
        return leaf(dice, kind, table);
    }
    let general = general_rules();
    let fits = |rule: &&Rule| rule.outcome == kind;
    let rules: Vec<&'static Rule> =
        RULES.iter().filter(fits).chain(general.iter().filter(fits)).collect();
    let Some(rule) = rules.get(dice.below(rules.len())) else {
        return leaf(dice, kind, table);
    };
    let operands = rule.operands.iter().map(|kind| random(dice, *kind, table, depth - 1));
    Expression::Apply(rule, operands.collect())
}

fn leaf(dice: &mut Dice, kind: Kind, table: Option<&Table>) -> Expression {
    let columns: Vec<&str> = table.map_or(Vec::new(), |table| table.columns_of(kind));
    if !columns.is_empty() && dice.chance(75) {
        return Expression::Column((*columns.get(dice.below(columns.len())).unwrap_or(&"")).into());
    }
    // What is not typed is no date: `NULL - 2` is a number.
    if !matches!(kind, Date | Stamp) && dice.chance(5) {
        return Expression::Constant(Value::Null);
    }
    Expression::Constant(kind.value(dice))
}
