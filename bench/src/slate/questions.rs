//! Questions over the records of every size, and a thousand look-ups.
//!
//! A question's time has all of it: the snapshot, the plan, the whole answer, and letting go of it.

use esker::Value;

use super::SIZES;
use super::records::{TABLE, contacted, database, has_notes, id, is_active, product, record};
use crate::Result;
use crate::bench::{Bench, segments};
use crate::outcome::Outcome;
use crate::timing;

pub(super) const REPEATS: usize = 10;
pub(super) const GETS: u64 = 1_000;

/// All rows that are meant.
const ALL: (usize, usize) = (0, usize::MAX);

/// A question, and what its answer must be.
pub(super) struct Question {
    pub(super) sql: &'static str,
    pub(super) is_meant: fn(u64) -> bool,
    /// How many rows are left out, and how many are taken at most.
    pub(super) page: (usize, usize),
    pub(super) is_sorted: bool,
}

pub(super) const EVERY: Question =
    Question { sql: "SELECT * FROM bench", is_meant: |_| true, page: ALL, is_sorted: false };

pub(super) const ACTIVE: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active'",
    is_meant: is_active,
    page: ALL,
    is_sorted: false,
};

pub(super) const PRODUCT: Question = Question {
    sql: "SELECT * FROM bench WHERE product_recommendation1 = 'ProductA'",
    is_meant: |i| product(i, 2) == 0,
    page: ALL,
    is_sorted: false,
};

pub(super) const AND: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active' AND product_recommendation1 = 'ProductA' \
              AND product_recommendation2 = 'ProductX'",
    is_meant: |i| is_active(i) && product(i, 2) == 0 && product(i, 3) == 0,
    page: ALL,
    is_sorted: false,
};

pub(super) const SORT_PAGE: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active' ORDER BY contacts_count DESC \
              LIMIT 50 OFFSET 100",
    is_meant: is_active,
    page: (100, 50),
    is_sorted: true,
};

pub(super) const SORT: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active' ORDER BY contacts_count DESC",
    is_meant: is_active,
    page: ALL,
    is_sorted: true,
};

pub(super) const TAKE: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active' LIMIT 200",
    is_meant: is_active,
    page: (0, 200),
    is_sorted: false,
};

pub(super) const SORT_TAKE: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active' ORDER BY contacts_count DESC LIMIT 200",
    is_meant: is_active,
    page: (0, 200),
    is_sorted: true,
};

pub(super) const NULL: Question = Question {
    sql: "SELECT * FROM bench WHERE last_contacted_at IS NULL",
    is_meant: |i| contacted(i).is_none(),
    page: ALL,
    is_sorted: false,
};

pub(super) const NULL_NOTES: Question = Question {
    sql: "SELECT * FROM bench WHERE notes IS NULL",
    is_meant: |i| !has_notes(i),
    page: ALL,
    is_sorted: false,
};

pub(super) const NOT_NULL: Question = Question {
    sql: "SELECT * FROM bench WHERE last_contacted_at IS NOT NULL",
    is_meant: |i| contacted(i).is_some(),
    page: ALL,
    is_sorted: false,
};

pub(super) const ACTIVE_NULL: Question = Question {
    sql: "SELECT * FROM bench WHERE status = 'active' AND notes IS NULL",
    is_meant: |i| is_active(i) && !has_notes(i),
    page: ALL,
    is_sorted: false,
};

pub(super) const TWO_FIELDS: Question = Question {
    sql: "SELECT name, status FROM bench",
    is_meant: |_| true,
    page: ALL,
    is_sorted: false,
};

/// Asks it of the records of every size.
pub(super) fn measure(bench: &mut Bench, question: &Question) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (divisor, size) in SIZES {
        let rows = bench.rows / divisor;
        let database = database(bench, size, rows)?;
        let query = esker_sql::parse(question.sql)?;
        expect_answer(&database.query(&query)?.to_rows(), question, rows)?;
        let timing = timing::repeat(REPEATS, || database.query(&query))?;
        outcome = outcome.and(timing.median, None).segments(segments(&database, TABLE));
    }
    Ok(outcome)
}

/// There are as many rows as are meant, in the order that was asked for.
pub(super) fn expect_answer(found: &[Vec<Value>], question: &Question, rows: u64) -> Result<()> {
    let meant = (0..rows).filter(|i| (question.is_meant)(*i)).count();
    let (skip, take) = question.page;
    let wanted = meant.saturating_sub(skip).min(take);
    let counts: Vec<_> = found.iter().filter_map(|row| row.get(3)).collect();
    let is_ordered =
        !question.is_sorted || counts.is_sorted_by(|a, b| a.as_ref().compare(b.as_ref()).is_ge());
    if found.len() != wanted || !is_ordered {
        let (sql, found) = (question.sql, found.len());
        return Err(format!("wrong answer to {sql}: {found} rows, not {wanted}").into());
    }
    Ok(())
}

/// A thousand records by their keys, within one snapshot.
pub(super) fn gets(bench: &mut Bench) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (divisor, size) in SIZES {
        let rows = bench.rows / divisor;
        let database = database(bench, size, rows)?;
        let step = (rows / GETS).max(1);
        let keys: Vec<[Value; 1]> = (0..GETS).map(|n| [id(n * step % rows)]).collect();
        for (n, key) in (0..GETS).zip(&keys) {
            let found = database.table(TABLE)?.get(key)?;
            if found.as_ref().map(|row| row.values()) != Some(&record(n * step % rows)) {
                return Err(format!("record {n} is another").into());
            }
        }
        let timing = timing::repeat(REPEATS, || {
            let snapshot = database.snapshot()?;
            let table = snapshot.table(TABLE)?;
            keys.iter().try_for_each(|key| table.get(key).map(drop))
        })?;
        outcome = outcome.and(timing.median, Some(bench.machine.load_ns * 3.0 * GETS as f64 / 1e3));
    }
    Ok(outcome)
}
