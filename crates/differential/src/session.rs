//! Some statements on fresh tables, compared one by one.

use std::collections::BTreeMap;

use esker::{ErrorKind, NullsOrder, Value};

use crate::dice::{Beside, Dice};
use crate::difference::{Design, has_nan, nearly_same};
use crate::duckdb;
use crate::esker_side::{Eskers, Outcome};
use crate::query;
use crate::sqlite::{LONG_DECIMAL, Sqlite};
use crate::statement::{Rows, Statement, any, insert, question, whole};
use crate::table::{self, Table};

/// Statements between two looks at the whole tables.
const LOOK_EVERY: usize = 8;

/// Statements that both are given.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) tables: Vec<Table>,
    pub(crate) statements: Vec<Statement>,
    /// Where NULLs go in orders that do not say it.
    pub(crate) nulls_order: NullsOrder,
    beside: Beside,
}

/// Where the two differ.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The statement after which it was seen.
    pub(crate) at: usize,
    pub(crate) what: String,
}

/// What sessions met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// What is by design, by kind.
    pub(crate) designs: BTreeMap<Design, u64>,
    /// Statements that both refused.
    pub(crate) refused: u64,
    /// Rows that were compared.
    pub(crate) rows: u64,
    /// Statements that only DuckDB does not know, by the kind of its error.
    pub(crate) unknown: BTreeMap<String, u64>,
}

impl Counts {
    pub(crate) fn note(&mut self, design: Design) {
        *self.designs.entry(design).or_default() += 1;
    }

    /// Adds what other sessions met.
    pub(crate) fn add(&mut self, other: Self) {
        for (design, times) in other.designs {
            *self.designs.entry(design).or_default() += times;
        }
        for (error, times) in other.unknown {
            *self.unknown.entry(error).or_default() += times;
        }
        self.refused += other.refused;
        self.rows += other.rows;
    }
}

impl Session {
    /// Fresh tables with some rows, and then anything.
    pub(crate) fn random(dice: &mut Dice, count: usize) -> Self {
        let mut tables: Vec<Table> = (0..3).map(|number| Table::random(dice, number)).collect();
        if dice.beside == Beside::Sqlite {
            table::refer(dice, &mut tables);
        }
        let mut statements = Vec::with_capacity(count);
        for table in &tables {
            for _ in 0..6 {
                let rows = 1 + dice.below(8);
                statements.push(insert(dice, table, rows));
            }
        }
        while statements.len() < count {
            statements.push(any(dice, &tables));
        }
        statements.truncate(count);
        // SQLite has one order of them only.
        let nulls_order = match dice.beside {
            Beside::DuckDb => match dice.below(4) {
                0 => NullsOrder::Smallest,
                1 => NullsOrder::Greatest,
                2 => NullsOrder::First,
                _ => NullsOrder::Last,
            },
            Beside::Sqlite => NullsOrder::Smallest,
        };
        Self { tables, statements, nulls_order, beside: dice.beside }
    }

    /// Fresh tables with rows that have been changed, and then so many queries.
    pub(crate) fn of_queries(dice: &mut Dice, count: usize) -> Self {
        const CHANGES: usize = 140;
        let mut session = Self::random(dice, CHANGES);
        session.statements.retain(|statement| statement.is_change);
        for _ in 0..count {
            let Some(table) = session.tables.get(dice.below(session.tables.len())) else { break };
            session.statements.push(query::any(dice, table, 4));
        }
        session
    }

    /// Fresh tables with rows that have been changed, and then so many questions to all of them.
    pub(crate) fn of_questions(dice: &mut Dice, count: usize) -> Self {
        let mut session = Self::of_queries(dice, 0);
        let questions = (0..count).map(|_| question(dice, &session.tables));
        session.statements.extend(questions.collect::<Vec<_>>());
        session
    }

    /// Runs it on all; the first difference ends it.
    pub(crate) fn run(&self, counts: &mut Counts) -> Result<(), Finding> {
        if self.beside == Beside::DuckDb {
            return duckdb::run(self, counts);
        }
        let failed = |at: usize| {
            move |e: &dyn std::fmt::Display| Finding { at, what: format!("not started: {e}") }
        };
        let eskers = Eskers::new(self.nulls_order).map_err(|e| failed(0)(&e))?;
        let sqlite = Sqlite::new().map_err(|e| failed(0)(&e))?;
        for table in &self.tables {
            eskers.create(table).map_err(|e| failed(0)(&e))?;
            sqlite.run(&table.create(false)).map_err(|e| failed(0)(&e))?;
        }
        let mut changes = 0;
        for (at, statement) in self.statements.iter().enumerate() {
            let next = self.statements.get(at + 1);
            self.compare(at, statement, &eskers, &sqlite, counts)?;
            changes += usize::from(statement.is_change);
            let is_last = next.is_none_or(|next| statement.is_change && !next.is_change);
            if changes >= LOOK_EVERY || (changes > 0 && is_last) {
                changes = 0;
                eskers.settle().map_err(|e| failed(at)(&e))?;
                for table in &self.tables {
                    self.compare(at, &whole(table), &eskers, &sqlite, counts)?;
                }
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        at: usize,
        statement: &Statement,
        eskers: &Eskers,
        sqlite: &Sqlite,
        counts: &mut Counts,
    ) -> Result<(), Finding> {
        let outcomes = eskers.run(statement);
        let compared = match (alike(&outcomes, statement.rows), outcomes.into_iter().next()) {
            _ if !is_shown_as_itself(&statement.esker) => {
                Err("shown as text, it is another query".into())
            }
            (Err(what), _) => Err(what),
            (Ok(()), Some((_, Ok(outcome)))) => answered(statement, &outcome, sqlite, counts)
                .and_then(|()| eskers.times_add_up(statement)),
            (Ok(()), Some((_, Err(e)))) => refused(statement, &e, eskers, sqlite, counts),
            (Ok(()), None) => Ok(()),
        };
        compared.map_err(|what| {
            let Statement { esker, parameters, sqlite, .. } = statement;
            let values: Vec<_> = parameters.iter().map(Value::to_string).collect();
            let values = values.join(", ");
            let what = format!("{what}\n  Esker:  {esker}  [{values}]\n  SQLite: {sqlite}");
            Finding { at, what }
        })
    }
}

/// Whether all of them answer alike, or refuse it alike.
pub(crate) fn alike(
    outcomes: &[(&'static str, esker::Result<Outcome>)],
    rows: Rows,
) -> Result<(), String> {
    let Some((first, expected)) = outcomes.first() else { return Ok(()) };
    for (name, outcome) in outcomes {
        let is_same = match (expected, outcome) {
            (Ok(expected), Ok(outcome)) => same(expected, outcome, rows),
            (Err(expected), Err(e)) => expected.kind() == e.kind(),
            _ => false,
        };
        if !is_same {
            let told = |outcome: &esker::Result<Outcome>| match outcome {
                Ok(outcome) => shown(outcome),
                Err(e) => e.to_string(),
            };
            let (a, b) = (told(expected), told(outcome));
            return Err(format!("{first} and {name} rows differ:\n{first}: {a}\n{name}: {b}"));
        }
    }
    Ok(())
}

/// Whether a query is the same once it has been written out and read again.
pub(crate) fn is_shown_as_itself(text: &str) -> bool {
    let Ok(query) = esker_sql::parse(text) else { return true };
    esker_sql::parse(&query.to_string()).is_ok_and(|again| again == query)
}

/// Compares a statement that Esker refused; says how the two differ.
fn refused(
    statement: &Statement,
    error: &esker::Error,
    eskers: &Eskers,
    sqlite: &Sqlite,
    counts: &mut Counts,
) -> Result<(), String> {
    if sqlite.attempt(&statement.sqlite).is_err() {
        counts.refused += 1;
        return Ok(());
    }
    let is_number = error.kind() == ErrorKind::InvalidInput;
    let strict = sqlite.attempt(&statement.strict);
    if is_number && strict.is_err() {
        counts.note(Design::Overflow);
        return Ok(());
    }
    let may_end_early =
        [" JOIN ", " LIMIT 0", "(SELECT "].iter().any(|part| statement.esker.contains(part));
    let is_query = statement.esker.starts_with("SELECT");
    let is_nothing = strict.is_ok_and(|theirs| match is_query {
        true => theirs.rows(&[]).is_empty(),
        false => statement.is_change && theirs.changed == 0,
    });
    if is_number && may_end_early && is_nothing {
        counts.note(Design::Nothing);
        return Ok(());
    }
    // The rows of an INSERT are always computed; what else it has, perhaps never.
    let message = error.to_string();
    let clauses = ["ON CONFLICT:", "SELECT:", "WHERE:"];
    let is_apart = !statement.esker.starts_with("INSERT")
        || clauses.iter().any(|clause| message.starts_with(clause));
    if is_apart && is_number && eskers.fails_without_rows(statement) {
        counts.note(Design::Constant);
        return Ok(());
    }
    Err(format!("only Esker refuses it: {message}"))
}

/// Compares a statement that Esker ran; says how the two differ.
fn answered(
    statement: &Statement,
    outcome: &Outcome,
    sqlite: &Sqlite,
    counts: &mut Counts,
) -> Result<(), String> {
    let theirs = match sqlite.run(&statement.sqlite) {
        Ok(theirs) => theirs,
        Err(e) => {
            let overflows = e.to_string().contains("integer overflow");
            if overflows && statement.esker.contains("sum(") {
                counts.note(Design::Sum);
                return Ok(());
            }
            // A change that one has made and the other has not would be met later on.
            if !statement.is_change && e.to_string().contains(LONG_DECIMAL) {
                counts.note(Design::LongDecimal);
                return Ok(());
            }
            return Err(format!("only SQLite refuses it: {e}"));
        }
    };
    let rows = theirs.rows(&outcome.types);
    let theirs = Outcome { changed: theirs.changed, rows, types: outcome.types.clone() };
    if same(outcome, &theirs, statement.rows) {
        counts.rows += outcome.rows.len() as u64;
        return Ok(());
    }
    if has_nan(&outcome.rows) {
        counts.note(Design::NotANumber);
        return Ok(());
    }
    if statement.esker.contains("avg(")
        && nearly_same(&in_order(outcome, statement.rows), &in_order(&theirs, statement.rows))
    {
        counts.note(Design::Average);
        return Ok(());
    }
    Err(format!("Esker:  {}\nSQLite: {}", shown(outcome), shown(&theirs)))
}

pub(crate) fn same(a: &Outcome, b: &Outcome, rows: Rows) -> bool {
    if a.changed != b.changed {
        return false;
    }
    match rows {
        Rows::None => true,
        Rows::Ordered => a.rows == b.rows,
        Rows::Counted => a.rows.len() == b.rows.len(),
        Rows::Any => in_order(a, rows) == in_order(b, rows),
    }
}

/// The rows in an order that two answers have in common.
pub(crate) fn in_order(outcome: &Outcome, rows: Rows) -> Vec<Vec<Value>> {
    let mut found = outcome.rows.clone();
    if rows == Rows::Any {
        found.sort();
    }
    found
}

pub(crate) fn shown(outcome: &Outcome) -> String {
    let row = |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    let rows: Vec<_> = outcome.rows.iter().take(40).map(row).collect();
    format!("changed {}, rows {}: {}", outcome.changed, outcome.rows.len(), rows.join(" ; "))
}
