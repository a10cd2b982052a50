//! Changes of a table beside rows that it is joined with: `UPDATE … FROM`, `DELETE … USING`.
//!
//! The others are rows of the same table by its key, so each row has one match at most: which of
//! several counts, no standard says. SQLite has no USING, and is asked by EXISTS.

use crate::dice::Dice;
use crate::expression::Spelling;
use crate::statement::{Rows, Statement, assignments, condition, set, statement};
use crate::table::Table;

pub(crate) fn changed(dice: &mut Dice, table: &Table) -> Statement {
    let inner = condition(dice, table, 2);
    let also = dice.chance(60).then(|| condition(dice, table, 1));
    let mut updates = assignments(dice, table, table);
    let (removes, takes) = (dice.chance(35), dice.chance(60));
    let taken = updates.first().cloned().filter(|_| takes);
    if taken.is_some() {
        updates.remove(0);
    }
    let name = table.name.clone();
    let keys: Vec<String> = table.key_names().into_iter().map(str::to_owned).collect();
    let each = move |one: &dyn Fn(usize, &str) -> String, between: &str| {
        let all = keys.iter().enumerate().map(|(i, key)| one(i, key));
        all.collect::<Vec<_>>().join(between)
    };
    statement(dice, Rows::None, move |w| {
        let mut clauses = Vec::new();
        if !removes {
            clauses.extend(taken.iter().map(|(column, _)| format!("{column} = v.x_0")));
            clauses.extend((!updates.is_empty()).then(|| set(w, &updates)));
        }
        let shown = each(&|i, key| format!("{key} AS k_{i}"), ", ");
        let taken = taken.as_ref().filter(|_| !removes);
        let taken = taken.map_or(String::new(), |(_, e)| format!(", {} AS x_0", w.expression(e)));
        let inner = w.expression(&inner);
        let others = format!("(SELECT {shown}{taken} FROM {name} WHERE {inner}) AS v");
        let same = each(&|i, key| format!("v.k_{i} = {name}.{key}"), " AND ");
        let also = also.as_ref().map_or(String::new(), |e| format!(" AND ({})", w.expression(e)));
        match (removes, w.spelling) {
            (true, Spelling::Sqlite | Spelling::Strict) => {
                let exists = format!("EXISTS (SELECT 1 FROM {others} WHERE {same})");
                format!("DELETE FROM {name} WHERE {exists}{also}")
            }
            (true, _) => format!("DELETE FROM {name} USING {others} WHERE {same}{also}"),
            (false, _) => {
                let set = clauses.join(", ");
                format!("UPDATE {name} SET {set} FROM {others} WHERE {same}{also}")
            }
        }
    })
}
