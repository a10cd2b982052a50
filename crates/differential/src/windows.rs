//! Random window functions, over rows and over groups.
//!
//! What depends on which of equal rows comes first has the key of the table behind its order; what
//! only depends on peers has not.

use crate::dice::Dice;
use crate::expression::{Expression, Writer, order_key, random};
use crate::query::{GROUPED, kind, nulls};
use crate::statement::{Rows, Statement, condition, statement};
use crate::table::Table;
use crate::value::Kind;

/// Functions that are the same for all peers.
const OF_PEERS: [&str; 9] = [
    "rank()",
    "dense_rank()",
    "percent_rank()",
    "cume_dist()",
    "count(*)",
    "count({})",
    "min({})",
    "max({})",
    "sum({} % 1000)",
];

/// Functions of single rows.
const OF_ROWS: [&str; 8] = [
    "row_number()",
    "ntile(3)",
    "lag({})",
    "lead({}, 2)",
    "lag({}, 0)",
    "first_value({})",
    "last_value({})",
    "nth_value({}, 2)",
];

/// What is left out of a frame.
const EXCLUSIONS: [&str; 6] =
    ["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"];

/// Kinds whose values are shown as SQLite shows them.
const VALUES: [Kind; 5] = [Kind::Int, Kind::Text, Kind::Date, Kind::Bool, Kind::Decimal];

/// A call, and the window behind it.
struct Call {
    function: &'static str,
    operand: Expression,
    partition: Option<Expression>,
    order: Expression,
    nulls: &'static str,
    /// Whether the order ends with the key of the table.
    is_total: bool,
    frame: String,
}

/// Window functions over the rows of a table, or over groups of them.
pub(crate) fn windowed(dice: &mut Dice, table: &Table) -> Statement {
    if dice.chance(20) {
        return grouped(dice, table);
    }
    let calls: Vec<Call> = (0..1 + dice.below(3)).map(|_| Call::random(dice, table)).collect();
    let filter = dice.chance(60).then(|| condition(dice, table, 2));
    let (key, name) = (table.key_names().join(", "), table.name.clone());
    statement(dice, Rows::Any, move |w| {
        let calls: Vec<_> = calls.iter().map(|call| call.text(w, &key)).collect();
        let filter =
            filter.as_ref().map_or(String::new(), |f| format!(" WHERE {}", w.expression(f)));
        format!("SELECT {key}, {} FROM {name}{filter}", calls.join(", "))
    })
}

impl Call {
    fn random(dice: &mut Dice, table: &Table) -> Self {
        let is_total = dice.chance(60);
        let function = match is_total && dice.chance(60) {
            true => dice.pick(&OF_ROWS),
            false => dice.pick(&OF_PEERS),
        };
        let of = match function {
            "sum({} % 1000)" => Kind::Int,
            _ => kind(dice, table, &VALUES),
        };
        let operand = column(dice, table, of);
        let partition = dice.chance(60).then(|| {
            let kind = kind(dice, table, &GROUPED);
            random(dice, kind, Some(table), 1)
        });
        let by_distance = !is_total && dice.chance(30);
        let order = match by_distance {
            true => column(dice, table, Kind::Int),
            false => {
                let kind = kind(dice, table, &GROUPED);
                order_key(dice, kind, table)
            }
        };
        let units = match (is_total, by_distance) {
            (_, true) => "RANGE",
            (true, _) => dice.pick(&["ROWS", "ROWS", "GROUPS"]),
            (false, _) => "GROUPS",
        };
        let (nulls, frame) = (nulls(dice), frame(dice, units));
        Self { function, operand, partition, order, nulls, is_total, frame }
    }

    fn text(&self, w: &mut Writer, key: &str) -> String {
        let function = match self.function.contains("{}") {
            true => self.function.replace("{}", &w.expression(&self.operand)),
            // An operand that is not shown would leave its parameter behind.
            false => self.function.to_owned(),
        };
        let partition = self.partition.as_ref();
        let partition =
            partition.map_or(String::new(), |p| format!("PARTITION BY {} ", w.expression(p)));
        let order = w.expression(&self.order);
        let key = if self.is_total { format!(", {key}") } else { String::new() };
        let (nulls, frame) = (self.nulls, &self.frame);
        format!("{function} OVER ({partition}ORDER BY {order}{nulls}{key}{frame})")
    }
}

/// A column of a kind, or the first of all.
fn column(dice: &mut Dice, table: &Table, kind: Kind) -> Expression {
    let columns = table.columns_of(kind);
    match columns.get(dice.below(columns.len().max(1))) {
        Some(name) => Expression::Column((*name).to_owned()),
        None => Expression::Constant(Kind::Int.value(dice)),
    }
}

/// A frame, or none.
fn frame(dice: &mut Dice, units: &str) -> String {
    if dice.chance(25) {
        return String::new();
    }
    let n = dice.below(4);
    let (before, after) = (format!("{n} PRECEDING"), format!("{n} FOLLOWING"));
    let later = format!("{} FOLLOWING", n + dice.below(3));
    let first = dice.pick(&["UNBOUNDED PRECEDING", "CURRENT ROW"]).to_owned();
    let last = dice.pick(&["UNBOUNDED FOLLOWING", "CURRENT ROW"]).to_owned();
    let (start, end) = dice.pick(&[
        (first.clone(), last.clone()),
        (before.clone(), last),
        (before.clone(), later.clone()),
        (first, later.clone()),
        (after, later),
        (before, "1 PRECEDING".to_owned()),
    ]);
    format!(" {units} BETWEEN {start} AND {end}{}", dice.pick(&EXCLUSIONS))
}

/// Window functions over groups.
fn grouped(dice: &mut Dice, table: &Table) -> Statement {
    let kind = kind(dice, table, &GROUPED);
    let group = random(dice, kind, Some(table), 1);
    let group = match group.has_column() {
        true => group,
        // A constant would be the place of a column in GROUP BY of SQLite.
        false => Expression::Column(dice.pick(&table.key_names()).to_owned()),
    };
    let filter = dice.chance(60).then(|| condition(dice, table, 2));
    let having = if dice.chance(30) { " HAVING count(*) > 1" } else { "" };
    let (nulls, name) = (nulls(dice), table.name.clone());
    let function = dice.pick(&["rank()", "sum(count(*))", "max(count(*))", "cume_dist()"]);
    statement(dice, Rows::Any, move |w| {
        let group = w.expression(&group);
        let filter =
            filter.as_ref().map_or(String::new(), |f| format!(" WHERE {}", w.expression(f)));
        format!(
            "SELECT {group}, count(*), {function} OVER (ORDER BY count(*){nulls}) FROM \
             {name}{filter} GROUP BY 1{having}"
        )
    })
}
