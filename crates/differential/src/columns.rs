//! Random queries about which column is meant: by its place, by a name that others have, too, or
//! of two that are called the same.

use crate::dice::Dice;
use crate::expression::{Expression, Writer, random};
use crate::query::{GROUPED, kind, limit, limit_text, nulls};
use crate::statement::{Rows, Statement, condition, statement};
use crate::table::{Column, Table};

/// A query of one of the forms below.
pub(crate) fn any(dice: &mut Dice, table: &Table) -> Statement {
    match dice.below(10) {
        0..4 => placed(dice, table),
        4..6 => by_name(dice, table),
        6..8 => twins(dice, table),
        _ => nested(dice, table),
    }
}

/// Expressions that both order and group alike, each with a column in it.
fn keys(dice: &mut Dice, table: &Table, count: usize) -> Vec<Expression> {
    let key = |_| {
        let kind = kind(dice, table, &GROUPED);
        let key = random(dice, kind, Some(table), 1);
        if key.has_column() { key } else { first_column(table) }
    };
    (0..count).map(key).collect()
}

fn first_column(table: &Table) -> Expression {
    Expression::Column(table.columns.first().map_or(String::new(), |c| c.name.clone()))
}

/// Names for columns of an answer, none twice: those of fields, now and then of others.
fn names(dice: &mut Dice, table: &Table, count: usize) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = Vec::new();
    for _ in 0..count {
        let field = table.columns.get(dice.below(table.columns.len()));
        let field = field.map_or(String::new(), |column| column.name.clone());
        let name = match dice.below(10) {
            0..3 => None,
            3..8 => Some(field),
            8 => Some(field.to_uppercase()),
            _ => Some("other".to_owned()),
        };
        let is_taken =
            |name: &String| names.iter().flatten().any(|known| known.eq_ignore_ascii_case(name));
        let name = name.filter(|name| !is_taken(name));
        names.push(name);
    }
    names
}

fn named(w: &mut Writer, items: &[Expression], names: &[Option<String>]) -> Vec<String> {
    let item = |(item, name): (&Expression, &Option<String>)| {
        let text = w.expression(item);
        match name {
            Some(name) => format!("{text} AS {name}"),
            None => text,
        }
    };
    items.iter().zip(names).map(item).collect()
}

fn filter_text(w: &mut Writer, filter: Option<&Expression>) -> String {
    filter.map_or(String::new(), |filter| format!(" WHERE {}", w.expression(filter)))
}

/// All places of so many columns, in an order that begins with some of them.
fn places(dice: &mut Dice, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (1..=count).collect();
    for at in 0..count {
        all.swap(at, at + dice.below(count - at));
    }
    all
}

fn ordered(places: &[usize], nulls: &str) -> String {
    places.iter().map(|place| format!("{place}{nulls}")).collect::<Vec<_>>().join(", ")
}

/// Columns in an order by their places, whatever they and others are called; `*` among them, or
/// groups and distinct rows.
fn placed(dice: &mut Dice, table: &Table) -> Statement {
    let count = 1 + dice.below(4);
    let (items, names) = (keys(dice, table, count), names(dice, table, count));
    let (order, nulls) = (places(dice, count), nulls(dice));
    let filter = dice.chance(50).then(|| condition(dice, table, 1));
    let form = dice.below(4);
    let grouped = places(dice, count);
    // Of rows that are equal in all columns it does not matter which comes first.
    let limit = limit(dice, 40);
    let counts = dice.chance(50);
    let (table_name, stars) = (table.name.clone(), table.columns.len());
    let key: Vec<usize> = (1..=table.key).collect();
    statement(dice, Rows::Ordered, move |w| {
        let items = named(w, &items, &names).join(", ");
        let filter = filter_text(w, filter.as_ref());
        let limit = limit_text(limit);
        let tail = format!("FROM {table_name}{filter}");
        let order = ordered(&order, nulls);
        match form {
            0 => format!("SELECT {items} {tail} ORDER BY {order}{limit}"),
            1 => format!("SELECT DISTINCT {items} {tail} ORDER BY {order}{limit}"),
            2 => {
                let keys = ordered(&grouped, "");
                let count = if counts { ", count(*)" } else { "" };
                format!("SELECT {items}{count} {tail} GROUP BY {keys} ORDER BY {order}{limit}")
            }
            // The columns of `*` have places, too, and so do those behind them.
            _ => {
                let behind = stars + 1;
                let key = ordered(&key, nulls);
                format!("SELECT *, {items} {tail} ORDER BY {behind}{nulls}, {key}{limit}")
            }
        }
    })
}

/// An order and groups by names that columns of the answer and of the table have, alone and within
/// expressions.
fn by_name(dice: &mut Dice, table: &Table) -> Statement {
    let count = 2 + dice.below(2);
    let items = keys(dice, table, count);
    // Without a name, a column that is a field has that field's: then two would have one.
    let names: Vec<Option<String>> = names(dice, table, count)
        .into_iter()
        .enumerate()
        .map(|(at, name)| Some(name.unwrap_or_else(|| format!("o{at}"))))
        .collect();
    let chosen = names.get(dice.below(count)).cloned().flatten().unwrap_or_default();
    let (rest, nulls) = (places(dice, count), nulls(dice));
    // Within an expression the name is the field's: one of JSON has no order that both know.
    let is_comparable = |column: &Column| {
        !column.name.eq_ignore_ascii_case(&chosen) || GROUPED.contains(&column.kind)
    };
    let form = if table.columns.iter().all(is_comparable) { dice.below(3) } else { 0 };
    let table_name = table.name.clone();
    statement(dice, Rows::Ordered, move |w| {
        let items = named(w, &items, &names).join(", ");
        let rest = ordered(&rest, "");
        let key = match form {
            0 => chosen.clone(),
            1 => format!("coalesce({chosen}, NULL)"),
            _ => format!("({chosen} IS NULL)"),
        };
        format!("SELECT {items} FROM {table_name} ORDER BY {key}{nulls}, {rest}")
    })
}

/// Columns of one name in a query that is read in place of a table.
fn twins(dice: &mut Dice, table: &Table) -> Statement {
    let count = 2 + dice.below(3);
    let items = keys(dice, table, count);
    let pool = ["a", "a", "b", "A"];
    let mut names: Vec<Option<String>> =
        (0..count).map(|_| Some(dice.pick(&pool).to_owned())).collect();
    if let [first, second, ..] = names.as_mut_slice() {
        second.clone_from(first);
    }
    let (star, order) = (dice.pick(&["*", "d.*"]), places(dice, count));
    let filter = dice.chance(40).then(|| condition(dice, table, 1));
    let form = dice.below(5);
    let table_name = table.name.clone();
    statement(dice, Rows::Ordered, move |w| {
        let items = named(w, &items, &names).join(", ");
        let filter = filter_text(w, filter.as_ref());
        let inner = format!("(SELECT {items} FROM {table_name}{filter}) AS d");
        let order = ordered(&order, "");
        match form {
            0 => format!("SELECT DISTINCT {star} FROM {inner} ORDER BY {order}"),
            1 => format!("SELECT {star} FROM (SELECT * FROM {inner}) AS d ORDER BY {order}"),
            2 => {
                format!(
                    "SELECT {star} FROM {inner} JOIN (SELECT 1 AS one) AS e ON e.one = 1 \
                         ORDER BY {order}"
                )
            }
            _ => format!("SELECT {star} FROM {inner} ORDER BY {order}"),
        }
    })
}

/// Groups and distinct rows of groups and distinct rows.
fn nested(dice: &mut Dice, table: &Table) -> Statement {
    let count = 1 + dice.below(3);
    let items = keys(dice, table, count);
    let names: Vec<Option<String>> = (0..count).map(|at| Some(format!("n{at}"))).collect();
    let filter = dice.chance(50).then(|| condition(dice, table, 1));
    let (inner, outer) = (dice.below(3), dice.below(4));
    let (order, nulls) = (places(dice, count), nulls(dice));
    let chosen = dice.below(count);
    let limit = limit(dice, 30);
    let table_name = table.name.clone();
    statement(dice, Rows::Ordered, move |w| {
        let items = named(w, &items, &names).join(", ");
        let filter = filter_text(w, filter.as_ref());
        let tail = format!("FROM {table_name}{filter}");
        let inner = match inner {
            0 => format!("SELECT DISTINCT {items} {tail}"),
            1 => {
                let places: Vec<usize> = (1..=names.len()).collect();
                format!("SELECT {items} {tail} GROUP BY {}", ordered(&places, ""))
            }
            _ => format!("SELECT {items} {tail}"),
        };
        let one = format!("n{chosen}");
        let all: Vec<_> = names.iter().flatten().cloned().collect();
        let (all, order) = (all.join(", "), ordered(&order, nulls));
        let limit = limit_text(limit);
        match outer {
            0 => format!("SELECT DISTINCT {all} FROM ({inner}) AS d ORDER BY {order}{limit}"),
            1 => format!(
                "SELECT {one}, count(*), count(DISTINCT {one}) FROM ({inner}) AS d GROUP BY {one} \
                 ORDER BY 1{nulls}{limit}"
            ),
            2 => format!(
                "SELECT c, count(*) FROM (SELECT {one}, count(*) AS c FROM ({inner}) AS d \
                 GROUP BY 1) AS e GROUP BY c ORDER BY 1{limit}"
            ),
            _ => format!("SELECT {all} FROM ({inner}) AS d GROUP BY {all} ORDER BY {order}{limit}"),
        }
    })
}

/// A select list whose columns have one name.
pub(crate) fn twins_of(w: &mut Writer, values: &[Expression]) -> String {
    let values: Vec<_> = values.iter().map(|e| format!("{} AS v", w.expression(e))).collect();
    format!("SELECT {}", values.join(", "))
}
