//! Random statements.

use esker::Value;

use crate::dice::{Beside, Dice};
use crate::expression::{Expression, Spelling, Writer, order_key, random};
use crate::table::{Column, Table};
use crate::value::Kind;
use crate::{beside, columns, joins, query, sets};

/// A statement, as each of the two reads it.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) esker: String,
    /// The values of Esker's parameters.
    pub(crate) parameters: Vec<Value>,
    pub(crate) sqlite: String,
    /// For SQLite, failing where a number does not fit; the same as `sqlite` where nothing can.
    pub(crate) strict: String,
    /// Empty where DuckDB is not asked.
    pub(crate) duckdb: String,
    /// Whether it answers rows, and whether their order counts.
    pub(crate) rows: Rows,
    /// Whether it may change rows.
    pub(crate) is_change: bool,
}

/// What a statement answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    None,
    Any,
    Ordered,
    /// Only their number counts: which rows they are, the statement leaves open.
    Counted,
}

/// Keys below it are moved, and so far at the most.
const MOVED_MAX: i64 = 1_000_000_000;

/// A clause or a whole statement, in the spelling that a writer has.
type Text = Box<dyn Fn(&mut Writer) -> String>;

pub(crate) fn statement(
    dice: &mut Dice,
    rows: Rows,
    text: impl Fn(&mut Writer) -> String,
) -> Statement {
    let with_parameters = dice.chance(25);
    let mut esker = Writer::new(Spelling::Esker, with_parameters);
    let esker_text = text(&mut esker);
    Statement {
        parameters: esker.parameters,
        sqlite: text(&mut Writer::new(Spelling::Sqlite, false)),
        strict: text(&mut Writer::new(Spelling::Strict, false)),
        duckdb: match dice.beside {
            Beside::Sqlite => String::new(),
            Beside::DuckDb => text(&mut Writer::new(Spelling::DuckDb, false)),
        },
        is_change: !["SELECT", "VALUES", "WITH"].iter().any(|w| esker_text.starts_with(w)),
        esker: esker_text,
        rows,
    }
}

/// A whole table, by key.
pub(crate) fn whole(table: &Table) -> Statement {
    let text = format!("SELECT * FROM {} ORDER BY {}", table.name, table.key_names().join(", "));
    Statement {
        esker: text.clone(),
        parameters: Vec::new(),
        sqlite: text.clone(),
        duckdb: text.clone(),
        strict: text,
        rows: Rows::Ordered,
        is_change: false,
    }
}

/// Any statement on one of the tables.
pub(crate) fn any(dice: &mut Dice, tables: &[Table]) -> Statement {
    let Some(table) = tables.get(dice.below(tables.len())) else { return empty() };
    let Some(other) = tables.get(dice.below(tables.len())) else { return empty() };
    match dice.below(100) {
        0..12 => insert(dice, table, 1),
        12..22 => {
            let rows = 2 + dice.below(6);
            insert(dice, table, rows)
        }
        22..26 => insert_select(dice, table, other),
        26..36 => update(dice, table),
        36..38 => move_keys(dice, table),
        38..43 => beside::changed(dice, table),
        43..50 => delete(dice, table),
        50..57 => get(dice, table),
        57..80 => query::any(dice, table, 3),
        80..85 => sets::combined(dice, tables),
        85..97 => joins::joined(dice, tables),
        97..99 => joins::changed(dice, table, tables),
        _ => truncate(dice, table),
    }
}

/// Any question to the tables.
pub(crate) fn question(dice: &mut Dice, tables: &[Table]) -> Statement {
    let Some(table) = tables.get(dice.below(tables.len())) else { return empty() };
    match dice.below(100) {
        0..5 => get(dice, table),
        5..55 => query::any(dice, table, 4),
        55..70 => sets::combined(dice, tables),
        _ => joins::joined(dice, tables),
    }
}

fn empty() -> Statement {
    Statement {
        esker: String::new(),
        parameters: Vec::new(),
        sqlite: String::new(),
        strict: String::new(),
        duckdb: String::new(),
        rows: Rows::None,
        is_change: false,
    }
}

/// Rows of constants, so many, and what happens to those whose key exists.
pub(crate) fn insert(dice: &mut Dice, table: &Table, count: usize) -> Statement {
    let columns = given_columns(dice, table);
    let row = |dice: &mut Dice| -> Vec<Expression> {
        columns.iter().map(|column| new_value(dice, column)).collect()
    };
    let rows: Vec<Vec<Expression>> = (0..count).map(|_| row(dice)).collect();
    let values = move |w: &mut Writer| {
        let row = |row: &Vec<Expression>, w: &mut Writer| {
            let values: Vec<_> = row.iter().map(|e| w.expression(e)).collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<_> = rows.iter().map(|r| row(r, w)).collect();
        format!("VALUES {}", rows.join(", "))
    };
    finish_insert(dice, table, &columns, Box::new(values))
}

/// The key and most others.
fn given_columns(dice: &mut Dice, table: &Table) -> Vec<Column> {
    let columns = table.given().enumerate();
    let given = columns.filter(|(i, c)| *i < table.key || !c.nullable || dice.chance(85));
    given.map(|(_, c)| c.clone()).collect()
}

fn new_value(dice: &mut Dice, column: &Column) -> Expression {
    if column.nullable && dice.chance(20) || dice.chance(1) {
        return Expression::Constant(Value::Null);
    }
    match column.kind {
        // Mostly what every integer type holds.
        Kind::Int if dice.chance(80) => Expression::Constant(Value::Int(dice.int(0, 40))),
        kind if dice.chance(15) => random(dice, kind, None, 2),
        kind => Expression::Constant(kind.value(dice)),
    }
}

fn insert_select(dice: &mut Dice, table: &Table, from: &Table) -> Statement {
    let columns = given_columns(dice, table);
    let values: Vec<_> = columns.iter().map(|c| random(dice, c.kind, Some(from), 1)).collect();
    // SQLite reads ON CONFLICT behind FROM as a join unless there is a WHERE.
    let (filter, name) = (condition(dice, from, 1), from.name.clone());
    let key = from.key_names().join(", ");
    let has_twins = dice.chance(30);
    let query = move |w: &mut Writer| {
        if has_twins {
            // Of two new rows with one key, the order says which is first: a limit keeps it.
            // Parameters are numbered as they are written: those of the values come first.
            let twins = columns::twins_of(w, &values);
            let filter = w.expression(&filter);
            let rows = format!("{twins} FROM {name} WHERE {filter} ORDER BY {key} LIMIT 1000");
            return format!("SELECT * FROM ({rows}) AS d WHERE true");
        }
        let values: Vec<_> = values.iter().map(|e| w.expression(e)).collect();
        let filter = w.expression(&filter);
        // Of two new rows with one key, the order says which is first.
        format!("SELECT {} FROM {name} WHERE {filter} ORDER BY {key}", values.join(", "))
    };
    finish_insert(dice, table, &columns, Box::new(query))
}

fn finish_insert(dice: &mut Dice, table: &Table, columns: &[Column], rows: Text) -> Statement {
    // A row that REPLACE takes the place of was deleted first, where others refer to it.
    let conflict = dice.below(4);
    let conflict = if conflict == 2 && table.is_referenced { 1 } else { conflict };
    finish_insert_with(dice, table, columns, rows, conflict)
}

fn finish_insert_with(
    dice: &mut Dice,
    table: &Table,
    columns: &[Column],
    rows: Text,
    conflict: usize,
) -> Statement {
    let key = table.key_names().join(", ");
    let names: Vec<_> = columns.iter().map(|c| c.name.as_str()).collect();
    let (name, names) = (table.name.clone(), names.join(", "));
    let verb = if conflict == 2 { "INSERT OR REPLACE" } else { "INSERT" };
    let both = table.with_excluded();
    let updates = if conflict == 3 { assignments(dice, table, &both) } else { Vec::new() };
    let filter = dice.chance(40).then(|| condition(dice, &both, 1));
    let (returning, answers) = returning(dice, table);
    statement(dice, answers, move |w| {
        let rows = rows(w);
        let on_conflict = match conflict {
            1 => format!(" ON CONFLICT ({key}) DO NOTHING"),
            3 if !updates.is_empty() => {
                let set = set(w, &updates);
                let filter = filter
                    .as_ref()
                    .map_or(String::new(), |f| format!(" WHERE {}", w.expression(f)));
                format!(" ON CONFLICT ({key}) DO UPDATE SET {set}{filter}")
            }
            _ => String::new(),
        };
        format!("{verb} INTO {name} ({names}) {rows}{on_conflict}{}", returning(w))
    })
}

/// New values for one or two columns that are not of the key.
pub(crate) fn assignments(
    dice: &mut Dice,
    table: &Table,
    scope: &Table,
) -> Vec<(String, Expression)> {
    let mut set: Vec<(String, Expression)> = Vec::new();
    for _ in 0..=dice.below(2) {
        let place = table.key + dice.below(table.given().count() - table.key);
        let Some(column) = table.given().nth(place) else { continue };
        if set.iter().all(|(name, _)| *name != column.name) {
            let value = match column.kind {
                Kind::Label if dice.chance(50) => Expression::Constant(column.kind.value(dice)),
                kind => random(dice, kind, Some(scope), 2),
            };
            set.push((column.name.clone(), value));
        }
    }
    set
}

pub(crate) fn set(w: &mut Writer, assignments: &[(String, Expression)]) -> String {
    let one = |(name, e): &(String, Expression)| format!("{name} = {}", w.expression(e));
    assignments.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What a change answers, now and then.
fn returning(dice: &mut Dice, table: &Table) -> (Text, Rows) {
    if dice.chance(75) {
        return (Box::new(|_| String::new()), Rows::None);
    }
    let kinds = [Kind::Int, Kind::Text, Kind::Bool];
    let items: Vec<_> = (0..2).map(|_| dice.pick(&kinds)).collect();
    let items: Vec<_> = items.iter().map(|k| random(dice, *k, Some(table), 1)).collect();
    let all = dice.chance(50);
    let text = move |w: &mut Writer| {
        if all {
            return " RETURNING *".into();
        }
        let items: Vec<_> = items.iter().map(|e| w.expression(e)).collect();
        format!(" RETURNING {}", items.join(", "))
    };
    (Box::new(text), Rows::Any)
}

pub(crate) fn condition(dice: &mut Dice, table: &Table, depth: usize) -> Expression {
    random(dice, Kind::Bool, Some(table), depth)
}

/// A WHERE, for SQLite with the limit inside.
fn matching(dice: &mut Dice, table: &Table) -> (Text, Text) {
    let filter = dice.chance(85).then(|| condition(dice, table, 2));
    let limit = dice.chance(25).then(|| dice.below(5));
    let first = dice.pick(&[Kind::Int, Kind::Text, Kind::Float]);
    let (first, descending) = (order_key(dice, first, table), dice.chance(50));
    let (key, name) = (table.key_names().join(", "), table.name.clone());
    let order = move |w: &mut Writer| {
        let descending = if descending { " DESC" } else { "" };
        let first = w.expression(&first);
        format!(" ORDER BY {first}{descending}, {key} LIMIT {}", limit.unwrap_or_default())
    };
    let order = std::rc::Rc::new(order);
    let behind = std::rc::Rc::clone(&order);
    let before = move |w: &mut Writer| {
        let filter =
            filter.as_ref().map_or(String::new(), |f| format!(" WHERE {}", w.expression(f)));
        match (limit, w.spelling) {
            (None, _) | (_, Spelling::Esker) => filter,
            _ => format!(" WHERE rowid IN (SELECT rowid FROM {name}{filter}{})", order(w)),
        }
    };
    let behind = move |w: &mut Writer| match (limit, w.spelling) {
        (Some(_), Spelling::Esker) => behind(w),
        _ => String::new(),
    };
    (Box::new(before), Box::new(behind))
}

fn update(dice: &mut Dice, table: &Table) -> Statement {
    let updates = assignments(dice, table, table);
    let (filter, order) = matching(dice, table);
    let (returning, answers) = returning(dice, table);
    let name = table.name.clone();
    statement(dice, answers, move |w| {
        let (set, filter) = (set(w, &updates), filter(w));
        format!("UPDATE {name} SET {set}{filter}{}{}", returning(w), order(w))
    })
}

/// Another key for some rows: so far away that SQLite, which looks at one row after another, meets
/// none of the others.
fn move_keys(dice: &mut Dice, table: &Table) -> Statement {
    let mut numbers = table.columns.iter().take(table.key).filter(|c| c.kind == Kind::Int);
    let Some(column) = numbers.next_back().filter(|_| !table.is_referenced) else {
        return update(dice, table);
    };
    let (name, key) = (table.name.clone(), column.name.clone());
    let by = dice.int(1_000_000, MOVED_MAX);
    let filter = condition(dice, table, 2);
    let (returning, answers) = returning(dice, table);
    statement(dice, answers, move |w| {
        let filter = format!("{key} < {MOVED_MAX} AND ({})", w.expression(&filter));
        format!("UPDATE {name} SET {key} = {key} + {by} WHERE {filter}{}", returning(w))
    })
}

fn delete(dice: &mut Dice, table: &Table) -> Statement {
    let (filter, order) = matching(dice, table);
    let (returning, answers) = returning(dice, table);
    let name = table.name.clone();
    statement(dice, answers, move |w| {
        let filter = filter(w);
        format!("DELETE FROM {name}{filter}{}{}", returning(w), order(w))
    })
}

fn truncate(dice: &mut Dice, table: &Table) -> Statement {
    let name = table.name.clone();
    statement(dice, Rows::None, move |w| match w.spelling {
        Spelling::Esker => format!("DELETE FROM {name} WHERE true"),
        _ => format!("DELETE FROM {name}"),
    })
}

/// The row of a key.
fn get(dice: &mut Dice, table: &Table) -> Statement {
    let keys: Vec<(String, Expression)> = table
        .columns
        .iter()
        .take(table.key)
        .map(|c| (c.name.clone(), new_value(dice, c)))
        .collect();
    let name = table.name.clone();
    statement(dice, Rows::Any, move |w| {
        let keys: Vec<_> =
            keys.iter().map(|(name, e)| format!("{name} = {}", w.expression(e))).collect();
        format!("SELECT * FROM {name} WHERE {}", keys.join(" AND "))
    })
}
