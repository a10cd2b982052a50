//! Random statements of several queries: set operations, VALUES, WITH.

use crate::dice::Dice;
use crate::expression::{Expression, Spelling, Writer, random};
use crate::joins::Text;
use crate::query::nulls;
use crate::statement::{Rows, Statement, condition, statement};
use crate::table::Table;
use crate::value::Kind;

/// Kinds whose values are equal in Esker where they are in SQLite.
const KINDS: [Kind; 4] = [Kind::Int, Kind::Text, Kind::Date, Kind::Bool];

const OPERATORS: [&str; 4] = ["UNION", "UNION ALL", "INTERSECT", "EXCEPT"];

/// Rows of two or three queries, as they are, counted, or read by a name.
pub(crate) fn combined(dice: &mut Dice, tables: &[Table]) -> Statement {
    let kinds: Vec<Kind> = (0..1 + dice.below(2)).map(|_| dice.pick(&KINDS)).collect();
    let count = kinds.len();
    let first = dice.pick(&OPERATORS);
    let mut rows = branch(dice, tables, &kinds);
    for i in 0..1 + dice.below(2) {
        // INTERSECT comes first here, and from left to right in SQLite.
        let operator = match first {
            "INTERSECT" => first,
            _ if i == 0 => first,
            _ => dice.pick(&["UNION", "UNION ALL", "EXCEPT"]),
        };
        let (before, next) = (rows, branch(dice, tables, &kinds));
        rows = Box::new(move |w| {
            let before = before(w);
            format!("{before} {operator} {}", next(w))
        });
    }
    let nulls = nulls(dice);
    let limit = dice.chance(40).then(|| 1 + dice.below(9));
    let names = ["c0", "c1"].into_iter().take(count).collect::<Vec<_>>().join(", ");
    let form = dice.below(6);
    let answers = if form == 0 { Rows::Ordered } else { Rows::Any };
    statement(dice, answers, move |w| {
        let rows = rows(w);
        match form {
            0 => {
                let places: Vec<_> = (1..=count).map(|i| format!("{i}{nulls}")).collect();
                let limit = limit.map_or(String::new(), |limit| format!(" LIMIT {limit}"));
                format!("{rows} ORDER BY {}{limit}", places.join(", "))
            }
            1 => rows,
            2 => format!("SELECT count(*) FROM ({rows})"),
            3 => format!("WITH w ({names}) AS ({rows}) SELECT * FROM w"),
            4 => format!(
                "WITH w ({names}) AS ({rows}) \
                 SELECT x.c0, y.c0 FROM w AS x LEFT JOIN w AS y ON x.c0 = y.c0"
            ),
            _ => format!(
                "WITH w ({names}) AS ({rows}), v AS (SELECT c0, count(*) AS n FROM w GROUP BY c0) \
                 SELECT c0, n FROM v WHERE n IN (SELECT n FROM v) UNION ALL SELECT c0, 0 FROM v"
            ),
        }
    })
}

/// A SELECT of columns of some kinds, or VALUES.
fn branch(dice: &mut Dice, tables: &[Table], kinds: &[Kind]) -> Text {
    let Some(table) = tables.get(dice.below(tables.len())) else {
        return Box::new(|_| "SELECT 1".to_owned());
    };
    if dice.chance(12) {
        let row = |dice: &mut Dice| -> Vec<Expression> {
            kinds.iter().map(|kind| Expression::Constant(kind.value(dice))).collect()
        };
        let rows: Vec<_> = (0..=dice.below(3)).map(|_| row(dice)).collect();
        return Box::new(move |w| {
            let row = |row: &Vec<Expression>, w: &mut Writer| {
                let values: Vec<_> = row.iter().map(|e| w.expression(e)).collect();
                format!("({})", values.join(", "))
            };
            let rows: Vec<_> = rows.iter().map(|r| row(r, w)).collect();
            let values = format!("VALUES {}", rows.join(", "));
            // SQLite takes no ORDER BY behind VALUES.
            match w.spelling {
                Spelling::Esker => values,
                _ => format!("SELECT * FROM ({values})"),
            }
        });
    }
    let items: Vec<_> = kinds.iter().map(|kind| random(dice, *kind, Some(table), 1)).collect();
    let filter = dice.chance(70).then(|| condition(dice, table, 1));
    let distinct = if dice.chance(15) { "DISTINCT " } else { "" };
    let name = table.name.clone();
    Box::new(move |w| {
        let items: Vec<_> = items.iter().map(|e| w.expression(e)).collect();
        let filter =
            filter.as_ref().map_or(String::new(), |f| format!(" WHERE {}", w.expression(f)));
        format!("SELECT {distinct}{} FROM {name}{filter}", items.join(", "))
    })
}
