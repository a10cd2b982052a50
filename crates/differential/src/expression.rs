//! Random expressions that both understand, made of [rules](crate::rule).

use esker::Value;

use crate::dice::{Beside, Dice};
use crate::rule::{self, Rule};
use crate::table::Table;
use crate::value::{Kind, in_duckdb, in_esker, in_sqlite};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    /// A column, by its name as it is to be written.
    Column(String),
    Constant(Value),
    Apply(&'static Rule, Vec<Self>),
}

impl Expression {
    /// Whether two are equal.
    pub(crate) fn equal(left: Self, right: Self) -> Self {
        Self::Apply(&rule::EQUAL, vec![left, right])
    }

    pub(crate) fn has_column(&self) -> bool {
        match self {
            Self::Column(_) => true,
            Self::Constant(_) => false,
            Self::Apply(_, operands) => operands.iter().any(Self::has_column),
        }
    }
}

/// Which of the spellings is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Esker,
    Sqlite,
    /// SQLite, failing where a number does not fit.
    Strict,
    DuckDb,
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
                let in_duckdb;
                let template = match self.spelling {
                    Spelling::Esker => rule.esker,
                    Spelling::Sqlite => rule.sqlite,
                    Spelling::Strict => rule.strict,
                    Spelling::DuckDb => {
                        in_duckdb = rule::duckdb::template(rule).unwrap_or_default();
                        &in_duckdb
                    }
                };
                let text = self.fill(rule, template, operands);
                if self.spelling != Spelling::Strict || !rule.may_leave_out() {
                    return text;
                }
                let operands: Vec<_> = operands.iter().map(|e| self.expression(e)).collect();
                format!("({text} + 0 * (max({}) IS NULL))", operands.join(", "))
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
                // The grammar wants a pattern, and some others, as a constant.
                let is_plain = rule.operands.get(place).is_some_and(|kind| kind.is_constant());
                text.push_str(&match operand {
                    Expression::Constant(value) if is_plain => self.plain(value),
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
            self.parameters.push(match value {
                // Its field knows which label it is.
                Value::Enum(_) => Value::Text(value.to_string()),
                value => value.clone(),
            });
            return "?".into();
        }
        if let (Spelling::DuckDb, Value::Int(v)) = (self.spelling, value) {
            // Short constants are of 32 bits there, in which sums overflow.
            return format!("CAST({v} AS BIGINT)");
        }
        self.plain(value)
    }

    fn plain(&self, value: &Value) -> String {
        match self.spelling {
            Spelling::Esker => in_esker(value),
            Spelling::Sqlite | Spelling::Strict => in_sqlite(value),
            Spelling::DuckDb => in_duckdb(value),
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
    if kind.is_constant() {
        return Expression::Constant(kind.value(dice));
    }
    if depth == 0 || kind.column().is_some() || dice.chance(30) {
        return leaf(dice, kind, table);
    }
    let beside = dice.beside;
    let fits = |rule: &&Rule| {
        let is_known = beside == Beside::Sqlite || rule::duckdb::template(rule).is_some();
        rule.outcome == kind && rule.fits(table) && is_known
    };
    let rules: Vec<&'static Rule> = rule::all().iter().filter(fits).collect();
    let Some(rule) = rules.get(dice.below(rules.len())) else {
        return leaf(dice, kind, table);
    };
    let operands = rule.operands.iter().map(|kind| random(dice, *kind, table, depth - 1));
    Expression::Apply(rule, operands.collect())
}

fn leaf(dice: &mut Dice, kind: Kind, table: Option<&Table>) -> Expression {
    use Kind::{Date, Json, Label, Stamp};
    let wanted = kind.column().unwrap_or(kind);
    let columns: Vec<&str> = table.map_or(Vec::new(), |table| table.columns_of(wanted));
    // A label is one beside a column only.
    let is_column = kind.column().is_some() || kind == Label;
    if !columns.is_empty() && (is_column || dice.chance(75)) {
        return Expression::Column((*columns.get(dice.below(columns.len())).unwrap_or(&"")).into());
    }
    // What is not typed is no date: `NULL - 2` is a number.
    if !matches!(kind, Date | Stamp | Json) && dice.chance(5) {
        return Expression::Constant(Value::Null);
    }
    Expression::Constant(kind.value(dice))
}
