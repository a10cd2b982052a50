//! Random queries: of rows, of distinct rows, of groups, of whole tables.

use crate::columns;
use crate::dice::{Beside, Dice};
use crate::expression::{Expression, Spelling, Writer, order_key, random};
use crate::statement::{Rows, Statement, condition, statement};
use crate::table::Table;
use crate::value::Kind;
use crate::windows;

/// Kinds of what is compared and ordered alike in both.
const ORDERED: [Kind; 9] = [
    Kind::Int,
    Kind::Float,
    Kind::Text,
    Kind::Bool,
    Kind::Bytes,
    Kind::Date,
    Kind::Stamp,
    Kind::Decimal,
    Kind::Label,
];

/// Kinds of groups. Floats are none: a group of -0.0 and 0.0 may show either.
pub(crate) const GROUPED: [Kind; 7] =
    [Kind::Int, Kind::Text, Kind::Bool, Kind::Date, Kind::Stamp, Kind::Decimal, Kind::Label];

/// A query, with conditions of some depth.
pub(crate) fn any(dice: &mut Dice, table: &Table, depth: usize) -> Statement {
    match dice.below(100) {
        0..33 => select(dice, table, depth),
        33..45 => columns::any(dice, table),
        45..53 => distinct(dice, table, depth),
        53..58 => limited(dice, table, depth),
        58..68 => windows::windowed(dice, table),
        _ => grouped(dice, table, depth),
    }
}

/// One of the kinds, of which the table has a column where that takes one.
pub(crate) fn kind(dice: &mut Dice, table: &Table, kinds: &[Kind]) -> Kind {
    match dice.pick(kinds) {
        Kind::Label if table.columns_of(Kind::Label).is_empty() => Kind::Text,
        Kind::Json if table.columns_of(Kind::Json).is_empty() => Kind::Text,
        kind => kind,
    }
}

fn items(dice: &mut Dice, table: &Table, count: usize, depth: usize) -> Vec<Expression> {
    let kinds = [&ORDERED[..], &[Kind::Json]].concat();
    let item = |_| {
        let kind = kind(dice, table, &kinds);
        random(dice, kind, Some(table), depth)
    };
    (0..count).map(item).collect()
}

pub(crate) fn nulls(dice: &mut Dice) -> &'static str {
    dice.pick(&["", "", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
}

fn texts(w: &mut Writer, expressions: &[Expression]) -> Vec<String> {
    expressions.iter().map(|e| w.expression(e)).collect()
}

fn clause(w: &mut Writer, word: &str, condition: Option<&Expression>) -> String {
    condition.map_or(String::new(), |condition| format!(" {word} {}", w.expression(condition)))
}

pub(crate) fn limit_text(limit: Option<(usize, usize)>) -> String {
    match limit {
        Some((limit, 0)) => format!(" LIMIT {limit}"),
        Some((limit, offset)) => format!(" LIMIT {limit} OFFSET {offset}"),
        None => String::new(),
    }
}

pub(crate) fn limit(dice: &mut Dice, percent: usize) -> Option<(usize, usize)> {
    dice.chance(percent).then(|| (dice.below(12), dice.below(5).saturating_sub(1)))
}

/// Rows, in any order or by some expressions and then the key.
fn select(dice: &mut Dice, table: &Table, depth: usize) -> Statement {
    let count = 1 + dice.below(4);
    let mut items = items(dice, table, count, depth.min(3));
    let filter = dice.chance(85).then(|| condition(dice, table, depth));
    let mut order = Vec::new();
    for _ in 0..dice.below(3) {
        let kind = kind(dice, table, &ORDERED);
        order.push((order_key(dice, kind, table), nulls(dice)));
    }
    let key = table.key_names().join(", ");
    let limit = limit(dice, if order.is_empty() { 0 } else { 50 });
    let by_alias = !order.is_empty() && dice.chance(15);
    if by_alias && let (Some(item), Some((key, _))) = (items.first_mut(), order.first()) {
        *item = key.clone();
    }
    let name = table.name.clone();
    let rows = if order.is_empty() { Rows::Any } else { Rows::Ordered };
    statement(dice, rows, move |w| {
        let mut items = texts(w, &items);
        if let Some(item) = items.first_mut().filter(|_| by_alias) {
            item.push_str(" AS first");
        }
        let mut text = format!("SELECT {} FROM {name}", items.join(", "));
        text.push_str(&clause(w, "WHERE", filter.as_ref()));
        let mut keys = Vec::new();
        for (place, (e, nulls)) in order.iter().enumerate() {
            let is_alias = by_alias && place == 0;
            let key = if is_alias { "first".into() } else { w.expression(e) };
            keys.push(format!("{key}{nulls}"));
        }
        if !keys.is_empty() {
            text.push_str(&format!(" ORDER BY {}, {key}", keys.join(", ")));
        }
        text + &limit_text(limit)
    })
}

/// Some rows, whichever.
fn limited(dice: &mut Dice, table: &Table, depth: usize) -> Statement {
    let items = items(dice, table, 2, 1);
    let filter = condition(dice, table, depth);
    let limit = limit(dice, 100);
    let name = table.name.clone();
    statement(dice, Rows::Counted, move |w| {
        let items = texts(w, &items).join(", ");
        let filter = w.expression(&filter);
        format!("SELECT {items} FROM {name} WHERE {filter}{}", limit_text(limit))
    })
}

fn distinct(dice: &mut Dice, table: &Table, depth: usize) -> Statement {
    let count = 1 + dice.below(3);
    let kinds = [&GROUPED[..], &[Kind::Json]].concat();
    let item = |_| {
        let kind = kind(dice, table, &kinds);
        (random(dice, kind, Some(table), 1), kind != Kind::Json)
    };
    let (items, can_order): (Vec<_>, Vec<_>) = (0..count).map(item).unzip();
    let ordered = can_order.iter().all(|can| *can) && dice.chance(60);
    let (limit, nulls) = (limit(dice, if ordered { 40 } else { 0 }), nulls(dice));
    let filter = dice.chance(60).then(|| condition(dice, table, depth));
    let name = table.name.clone();
    let rows = if ordered { Rows::Ordered } else { Rows::Any };
    statement(dice, rows, move |w| {
        let items = texts(w, &items);
        let mut text = format!("SELECT DISTINCT {} FROM {name}", items.join(", "));
        text.push_str(&clause(w, "WHERE", filter.as_ref()));
        if ordered {
            let places: Vec<_> = (1..=items.len()).map(|i| format!("{i}{nulls}")).collect();
            text.push_str(&format!(" ORDER BY {}", places.join(", ")));
        }
        text + &limit_text(limit)
    })
}

/// An aggregate, in both spellings.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    esker: &'static str,
    sqlite: &'static str,
    operand: Option<Expression>,
}

impl Aggregate {
    /// Of columns mostly, since sums of floats depend on the order, and may overflow.
    pub(crate) fn random(dice: &mut Dice, table: &Table) -> Self {
        let column = |dice: &mut Dice, kinds: &[Kind]| {
            let columns: Vec<&str> = kinds.iter().flat_map(|k| table.columns_of(*k)).collect();
            let name = columns.get(dice.below(columns.len()));
            name.map(|name| Expression::Column((*name).into()))
        };
        let same = |text, operand| Self { esker: text, sqlite: text, operand };
        let counted = [&ORDERED[..], &[Kind::Json]].concat();
        let found = match dice.below(11) {
            0 => same("count(*)", None),
            1 => same("count({})", column(dice, &counted)),
            2 => same("count(DISTINCT {})", column(dice, &counted)),
            3 => same("sum({})", column(dice, &[Kind::Int, Kind::Decimal])),
            4 => same("avg({})", column(dice, &[Kind::Int])),
            5 => Self {
                esker: "avg({})",
                // Rounded once, as here.
                sqlite: "(CAST(sum({}) AS REAL) / (count({}) * 100.0))",
                operand: column(dice, &[Kind::Decimal]),
            },
            6 | 7 => same("min({})", column(dice, &ORDERED)),
            8 => same("max({})", column(dice, &ORDERED)),
            9 => {
                let kind = kind(dice, table, &ORDERED);
                same("min({})", Some(random(dice, kind, Some(table), 1)))
            }
            _ => {
                let kind = kind(dice, table, &counted);
                same("count({})", Some(random(dice, kind, Some(table), 2)))
            }
        };
        match found.operand {
            Some(_) => found,
            None => same("count(*)", None),
        }
    }

    pub(crate) fn text(&self, w: &mut Writer) -> String {
        let template = match w.spelling {
            Spelling::Esker | Spelling::DuckDb => self.esker,
            Spelling::Sqlite | Spelling::Strict => self.sqlite,
        };
        match &self.operand {
            Some(operand) => template.replace("{}", &w.expression(operand)),
            None => template.into(),
        }
    }
}

/// A condition on groups: how many rows, and other numbers.
fn having(dice: &mut Dice, table: &Table) -> impl Fn(&mut Writer) -> String + use<> {
    let least = dice.int(1, 4);
    let other = Aggregate {
        esker: "count({})",
        sqlite: "count({})",
        operand: Some(random(dice, Kind::Text, Some(table), 1)),
    };
    let ints = table.columns_of(Kind::Int);
    let int = (*ints.get(dice.below(ints.len())).unwrap_or(&"1")).to_owned();
    let (form, most) = (dice.below(6), dice.int(-5, 30));
    move |w| match form {
        0 | 1 => format!("count(*) >= {least}"),
        2 => format!("{} < {least} OR max({int}) > {most}", other.text(w)),
        3 => format!("min({int}) <= {most} AND count(*) > 1"),
        4 => format!("NOT (max({int}) BETWEEN {least} AND {most})"),
        _ => format!("min({int}) IS NOT NULL AND count(DISTINCT {int}) <> {least}"),
    }
}

fn grouped(dice: &mut Dice, table: &Table, depth: usize) -> Statement {
    let mut keys = Vec::new();
    for _ in 0..dice.below(3) {
        let kind = kind(dice, table, &GROUPED);
        keys.push(random(dice, kind, Some(table), 1));
    }
    keys.retain(Expression::has_column);
    let count = 1 + dice.below(4);
    let aggregates: Vec<_> = (0..count).map(|_| Aggregate::random(dice, table)).collect();
    let filter = dice.chance(65).then(|| condition(dice, table, depth));
    let having = dice.chance(30).then(|| having(dice, table));
    let nulls = nulls(dice);
    let by_aggregate = dice.chance(30).then(|| keys.len() + 1 + dice.below(count));
    let has_sets = dice.beside == Beside::DuckDb && !keys.is_empty() && dice.chance(50);
    let sets = has_sets.then(|| grouping_sets(dice, keys.len()));
    let limit = limit(dice, if has_sets { 0 } else { 25 });
    let name = table.name.clone();
    statement(dice, if has_sets { Rows::Any } else { Rows::Ordered }, move |w| {
        let mut items = texts(w, &keys);
        items.extend(aggregates.iter().map(|a| a.text(w)));
        items.extend(sets.iter().map(|_| "GROUPING()".to_owned()));
        let mut text = format!("SELECT {} FROM {name}", items.join(", "));
        text.push_str(&clause(w, "WHERE", filter.as_ref()));
        let places: Vec<_> = (1..=keys.len()).map(|i| i.to_string()).collect();
        if !keys.is_empty() {
            let groups = sets.clone().unwrap_or_else(|| places.join(", "));
            text.push_str(&format!(" GROUP BY {groups}"));
        }
        if let Some(having) = &having {
            text.push_str(&format!(" HAVING {}", having(w)));
        }
        if !keys.is_empty() && sets.is_none() {
            let order = by_aggregate.map(|place| place.to_string());
            let order: Vec<_> =
                order.iter().chain(&places).map(|p| format!("{p}{nulls}")).collect();
            text.push_str(&format!(" ORDER BY {}", order.join(", ")));
        }
        text + &limit_text(limit)
    })
}

/// Grouping sets of keys by their places, each of which is in one at least.
fn grouping_sets(dice: &mut Dice, keys: usize) -> String {
    let places: Vec<_> = (1..=keys).map(|place| place.to_string()).collect();
    let whole = places.join(", ");
    let first = dice.pick(&["1", "()", "(1, 1)", "ROLLUP (1)"]);
    match dice.below(5) {
        0 => format!("ROLLUP ({whole})"),
        1 => format!("CUBE ({whole})"),
        2 => format!("GROUPING SETS (({whole}), {first}, (), ())"),
        3 => format!("GROUPING SETS (({whole}), ROLLUP ({whole}), CUBE ({whole}))"),
        _ => format!("{first}, ROLLUP (({whole}), 1)"),
    }
}
