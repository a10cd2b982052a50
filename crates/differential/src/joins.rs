//! Random statements that read several tables.

use crate::dice::Dice;
use crate::expression::{Expression, Spelling, Writer, random};
use crate::query::Aggregate;
use crate::statement::{Rows, Statement, condition, statement};
use crate::table::Table;
use crate::value::Kind;

/// Kinds whose values meet now and then.
const KEYS: [Kind; 4] = [Kind::Int, Kind::Text, Kind::Date, Kind::Bool];

const JOINS: [&str; 8] = [
    " JOIN ",
    " JOIN ",
    " LEFT JOIN ",
    " LEFT JOIN ",
    " RIGHT JOIN ",
    " FULL JOIN ",
    ", ",
    " CROSS JOIN ",
];

/// Part of FROM: how it is joined, what is read, and the condition.
struct Part {
    text: &'static str,
    table: String,
    /// What is read in place of the table.
    series: Option<Series>,
    /// A condition on the rows of a query in place of the table.
    within: Option<Expression>,
    alias: String,
    on: Vec<Expression>,
    is_or: bool,
}

/// The numbers from a start to a stop.
#[derive(Clone, Copy)]
struct Series {
    start: i64,
    stop: i64,
    step: i64,
}

impl Series {
    fn random(dice: &mut Dice) -> Self {
        let (start, stop) = (dice.int(-3, 6), dice.int(-3, 12));
        Self { start, stop, step: dice.pick(&[1, 1, 2, 3, -1, -2, 70_000, 1 << 40]) }
    }

    fn text(self, spelling: Spelling, alias: &str) -> String {
        let Self { start, stop, step } = self;
        if !matches!(spelling, Spelling::Sqlite | Spelling::Strict) {
            return format!("generate_series({start}, {stop}, {step}) AS {alias} (g)");
        }
        // It has no such function.
        let (within, left) = match step > 0 {
            true => ("<=", format!("{stop} - {step}")),
            false => (">=", format!("{stop} + {}", step.unsigned_abs())),
        };
        format!(
            "(WITH RECURSIVE s (g) AS (SELECT {start} WHERE {start} {within} {stop} UNION ALL \
             SELECT g + {step} FROM s WHERE g {within} {left}) SELECT g FROM s) AS {alias}"
        )
    }
}

/// A query over two or three tables or queries in place of them.
pub(crate) fn joined(dice: &mut Dice, tables: &[Table]) -> Statement {
    let (parts, scope) = parts(dice, tables);
    let filter = filter(dice, &scope, tables);
    if dice.chance(35) {
        return grouped(dice, parts, &scope, filter);
    }
    let kinds = [Kind::Int, Kind::Text, Kind::Bool, Kind::Date, Kind::Float];
    let items: Vec<_> = (0..=dice.below(3)).map(|_| dice.pick(&kinds)).collect();
    let items: Vec<_> = items.iter().map(|k| random(dice, *k, Some(&scope), 1)).collect();
    let stars = dice.chance(20);
    let star = if dice.chance(50) { "r0." } else { "" };
    statement(dice, Rows::Any, move |w| {
        let mut items: Vec<_> = items.iter().map(|e| w.expression(e)).collect();
        if stars {
            items.push(format!("{star}*"));
        }
        let from = from(w, &parts);
        format!("SELECT {} FROM {from}{}", items.join(", "), filter(w))
    })
}

pub(crate) type Text = Box<dyn Fn(&mut Writer) -> String>;

fn grouped(dice: &mut Dice, parts: Vec<Part>, scope: &Table, filter: Text) -> Statement {
    let key = dice.chance(70).then(|| {
        let kind = dice.pick(&KEYS);
        random(dice, kind, Some(scope), 0)
    });
    let key = key.filter(Expression::has_column);
    let aggregates: Vec<_> = (0..=dice.below(2)).map(|_| Aggregate::random(dice, scope)).collect();
    statement(dice, Rows::Any, move |w| {
        let mut items: Vec<_> = key.iter().map(|e| w.expression(e)).collect();
        items.extend(aggregates.iter().map(|a| a.text(w)));
        let from = from(w, &parts);
        let text = format!("SELECT {} FROM {from}{}", items.join(", "), filter(w));
        if key.is_some() { format!("{text} GROUP BY 1") } else { text }
    })
}

/// What FROM has, and all columns by their full names.
fn parts(dice: &mut Dice, tables: &[Table]) -> (Vec<Part>, Table) {
    let mut scope = Table::of_columns(Vec::new());
    let mut parts = Vec::new();
    let numbers = Table::of_series();
    for i in 0..1 + dice.below(3) {
        let Some(table) = tables.get(dice.below(tables.len())) else { continue };
        let alias = format!("r{i}");
        let series = dice.chance(15).then(|| Series::random(dice));
        let table = if series.is_some() { &numbers } else { table };
        let within = dice.chance(20).then(|| condition(dice, table, 1));
        let within = within.filter(|_| series.is_none());
        let own = table.aliased(&alias);
        let text = match i {
            0 => "",
            _ => {
                let is_list = parts.iter().any(|part: &Part| part.text == ", ");
                match dice.pick(&JOINS) {
                    // SQLite has a comma bind as tightly as a join.
                    " RIGHT JOIN " | " FULL JOIN " if is_list => " LEFT JOIN ",
                    text => text,
                }
            }
        };
        let mut on = Vec::new();
        if text.ends_with("N ") && !text.starts_with(" CROSS") && i > 0 {
            on.extend(equality(dice, &scope, &own));
        }
        scope.columns.extend(own.columns);
        let is_outer = [" L", " R", " F"].iter().any(|start| text.starts_with(start));
        if !on.is_empty() && dice.chance(40) || i > 0 && on.is_empty() && is_outer {
            on.push(condition(dice, &scope, 1));
        }
        let is_or = dice.chance(8);
        let table = table.name.clone();
        parts.push(Part { text, table, series, within, alias, on, is_or });
    }
    (parts, scope)
}

/// A column of each that are equal.
fn equality(dice: &mut Dice, left: &Table, right: &Table) -> Option<Expression> {
    let kind = dice.pick(&KEYS);
    let column = |dice: &mut Dice, table: &Table, kind: Kind| {
        let columns = table.columns_of(kind);
        let name = columns.get(dice.below(columns.len().max(1)))?;
        Some(Expression::Column((*name).to_owned()))
    };
    let other = if kind == Kind::Int && dice.chance(20) { Kind::Float } else { kind };
    let pair = column(dice, left, kind).zip(column(dice, right, other));
    let (left, right) = match pair {
        Some(pair) if dice.chance(85) => pair,
        _ => (random(dice, Kind::Int, Some(left), 1), random(dice, Kind::Int, Some(right), 1)),
    };
    Some(Expression::equal(left, right))
}

fn from(w: &mut Writer, parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let Part { text: joint, table, series, within, alias, on, is_or } = part;
        text.push_str(joint);
        match (series, within) {
            (Some(series), _) => text.push_str(&series.text(w.spelling, alias)),
            (None, None) => text.push_str(&format!("{table} AS {alias}")),
            (None, Some(filter)) => {
                let filter = w.expression(filter);
                text.push_str(&format!("(SELECT * FROM {table} WHERE {filter}) AS {alias}"));
            }
        }
        let has_on = joint.contains("JOIN") && !joint.contains("CROSS");
        if has_on {
            let on: Vec<_> = on.iter().map(|e| w.expression(e)).collect();
            let on = on.join(if *is_or { " OR " } else { " AND " });
            text.push_str(&format!(" ON {}", if on.is_empty() { "true" } else { &on }));
        }
    }
    text
}

/// A WHERE of up to three conditions, subqueries among them.
pub(crate) fn filter(dice: &mut Dice, scope: &Table, tables: &[Table]) -> Text {
    let mut conditions: Vec<Text> = Vec::new();
    for _ in 0..dice.below(3) {
        let one = condition(dice, scope, 1);
        conditions.push(Box::new(move |w| w.expression(&one)));
    }
    for _ in 0..dice.below(2) {
        conditions.push(subquery(dice, scope, tables));
    }
    Box::new(move |w| {
        let all: Vec<_> = conditions.iter().map(|one| one(w)).collect();
        if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
    })
}

/// A condition with a query in it.
fn subquery(dice: &mut Dice, scope: &Table, tables: &[Table]) -> Text {
    let Some(table) = tables.get(dice.below(tables.len())) else {
        return Box::new(|_| "true".to_owned());
    };
    let inner = table.aliased("s");
    let name = table.name.clone();
    let not = dice.pick(&["", "NOT "]);
    let kind = dice.pick(&KEYS);
    let own = condition(dice, &inner, 1);
    let both = [scope.columns.clone(), inner.columns.clone()].concat();
    let both = Table::of_columns(both);
    let is_correlated = dice.chance(60);
    let mut across: Vec<Expression> = Vec::new();
    if is_correlated {
        across.extend(equality(dice, scope, &inner));
        if dice.chance(25) {
            across.push(condition(dice, &both, 1));
        }
    }
    let operand = random(dice, kind, Some(scope), 1);
    let item = random(dice, kind, Some(&inner), 1);
    let form = dice.below(if is_correlated { 2 } else { 3 });
    let has_own = dice.chance(50);
    Box::new(move |w| {
        let item_text = |w: &mut Writer| w.expression(&item);
        let head = match form {
            // SQLite ends at the first row, unless it has to count them.
            0 if w.spelling == Spelling::Strict => {
                let found = u8::from(not.is_empty());
                format!("{found} = (SELECT count(*) > 0")
            }
            0 => format!("{not}EXISTS (SELECT 1"),
            1 => {
                let operand = w.expression(&operand);
                format!("{operand} {not}IN (SELECT {}", item_text(w))
            }
            _ => {
                let operand = w.expression(&operand);
                format!("{operand} = (SELECT max({})", item_text(w))
            }
        };
        let mut all: Vec<_> = across.iter().map(|e| w.expression(e)).collect();
        if has_own {
            all.push(w.expression(&own));
        }
        let all =
            if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) };
        format!("{head} FROM {name} AS s{all})")
    })
}

/// A change of the rows that a subquery finds.
pub(crate) fn changed(dice: &mut Dice, table: &Table, tables: &[Table]) -> Statement {
    let scope = table.aliased(&table.name);
    let condition = subquery(dice, &scope, tables);
    let own = crate::statement::condition(dice, &scope, 1);
    let name = table.name.clone();
    statement(dice, Rows::None, move |w| {
        let condition = condition(w);
        let own = w.expression(&own);
        format!("DELETE FROM {name} WHERE {condition} AND {own}")
    })
}
