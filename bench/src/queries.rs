//! `esker-bench queries`: questions about users, asked without an index.
//!
//! Every answer is checked with what a loop over the rows, made anew, finds; then each question is
//! asked ten times, and the median counts. The figures are those asked of a million rows and grow
//! with the table.

use std::time::Instant;

use esker::{Batch, Database, Options, QueryResult, Value};
use esker_query::testing::users;

use crate::Result;
use crate::bench::{Bench, segments};
use crate::outcome::Goal::AtMost;
use crate::outcome::Outcome;
use crate::outcome::Unit::Microseconds;
use crate::rows::{Row, ask, row};

const REPEATS: usize = 10;
const BATCH_ROWS: u64 = 10_000;
/// The rows that the figures are for.
const ROWS_WANTED: f64 = 1e6;

/// A row of the table: the most microseconds for a million rows, the statement, and which rows and
/// which of their fields are counted or added up.
macro_rules! query {
    ($name:literal, $most_us:literal, $sql:literal, $check:expr) => {
        row($name, &[ask("", AtMost($most_us), Microseconds, "")], |bench| {
            measure(bench, $most_us, $sql, $check)
        })
    };
}

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    query!(
        "bio-eq",
        300.0,
        "SELECT count(*) FROM users WHERE bio = 'DevOps engineer automating everything'",
        Check::Count(|user| user.text(BIO).starts_with("DevOps"))
    ),
    query!(
        "bio-contains",
        300.0,
        "SELECT count(*) FROM users WHERE contains(bio, 'engineer')",
        Check::Count(|user| user.text(BIO).contains("engineer"))
    ),
    query!(
        "bio-icontains",
        300.0,
        "SELECT count(*) FROM users WHERE icontains(bio, 'DEVOPS')",
        Check::Count(|user| user.text(BIO).contains("DevOps"))
    ),
    query!(
        "bio-regex",
        300.0,
        "SELECT count(*) FROM users WHERE bio ~ '(engineer|developer)'",
        Check::Count(|user| ["engineer", "developer"].iter().any(|w| user.text(BIO).contains(w)))
    ),
    query!(
        "username-contains",
        3_000.0,
        "SELECT count(*) FROM users WHERE contains(username, 'baker')",
        Check::Count(|user| user.text(USERNAME).contains("baker"))
    ),
    query!(
        "username-icontains",
        4_000.0,
        "SELECT count(*) FROM users WHERE icontains(username, 'BAKER')",
        Check::Count(|user| user.text(USERNAME).contains("baker"))
    ),
    query!(
        "username-regex",
        40_000.0,
        "SELECT count(*) FROM users WHERE username ~ '^(alice|bob)\\.'",
        Check::Count(|user| ["alice.", "bob."].iter().any(|w| user.text(USERNAME).starts_with(w)))
    ),
    query!(
        "username-length",
        3_000.0,
        "SELECT count(*) FROM users WHERE length(username) BETWEEN 10 AND 15",
        Check::Count(|user| (10..=15).contains(&user.text(USERNAME).len()))
    ),
    query!(
        "field-field",
        1_000.0,
        "SELECT count(*) FROM users WHERE age < rank",
        Check::Count(|user| user.number(AGE) < user.number(RANK))
    ),
    query!(
        "float-decimal",
        1_000.0,
        "SELECT count(*) FROM users WHERE score < hourly_rate",
        Check::Count(|user| user.number(SCORE) < user.number(HOURLY_RATE))
    ),
    query!(
        "or-of-5",
        500.0,
        "SELECT count(*) FROM users WHERE age = 20 OR age = 30 OR age = 40 OR age = 50 OR age = 60",
        Check::Count(|user| user.number(AGE) % 10.0 == 0.0 && user.number(AGE) < 70.0)
    ),
    query!(
        "and-of-3",
        500.0,
        "SELECT count(*) FROM users WHERE active AND age >= 30 AND score >= 50",
        Check::Count(|user| {
            user.is_active() && user.number(AGE) >= 30.0 && user.number(SCORE) >= 50.0
        })
    ),
    query!("sum", 600.0, "SELECT sum(balance) FROM users", Check::Sum(|_| true, BALANCE)),
    query!("sum-int", 600.0, "SELECT sum(user_id) FROM users", Check::Sum(|_| true, USER_ID)),
    query!(
        "avg-half",
        1_500.0,
        "SELECT avg(balance) FROM users WHERE score > 50",
        Check::Mean(|user| user.number(SCORE) > 50.0, BALANCE)
    ),
    query!(
        "avg-hundredth",
        500.0,
        "SELECT avg(balance) FROM users WHERE rank = 42",
        Check::Mean(|user| user.number(RANK) == 42.0, BALANCE)
    ),
    query!(
        "group-bool",
        2_000.0,
        "SELECT active, count(*), avg(balance) FROM users GROUP BY active",
        Check::Groups(|user| u64::from(user.is_active()))
    ),
    query!(
        "group-int",
        2_000.0,
        "SELECT age, count(*), avg(score) FROM users GROUP BY age",
        Check::Groups(|user| user.number(AGE).to_bits())
    ),
    query!(
        "group-two",
        5_000.0,
        "SELECT age, count(*), sum(balance), rank FROM users GROUP BY age, rank",
        Check::Groups(|user| (user.number(AGE) * 1_000.0 + user.number(RANK)).to_bits())
    ),
    query!(
        "group-text",
        120_000.0,
        "SELECT email, count(*), sum(balance) FROM users GROUP BY email",
        Check::Groups(|user| user.number(USER_ID).to_bits())
    ),
    query!(
        "group-text-10",
        1_000.0,
        "SELECT email, sum(balance) FROM users GROUP BY email LIMIT 10",
        Check::Rows(10)
    ),
    query!(
        "find-10",
        200.0,
        "SELECT username, age FROM users WHERE active AND age >= 30 AND score >= 50 LIMIT 10",
        Check::Rows(10)
    ),
];

const USERNAME: usize = 0;
const BIO: usize = 2;
const AGE: usize = 3;
const USER_ID: usize = 4;
const RANK: usize = 5;
const SCORE: usize = 6;
const ACTIVE: usize = 7;
const BALANCE: usize = 11;
const HOURLY_RATE: usize = 12;

/// How an answer is checked.
enum Check {
    /// How many rows there are.
    Count(fn(&User) -> bool),
    /// The exact sum of a field of some rows.
    Sum(fn(&User) -> bool, usize),
    /// The mean, but for its last digits.
    Mean(fn(&User) -> bool, usize),
    /// One row for each value, whose second column counts all rows.
    Groups(fn(&User) -> u64),
    /// So many rows.
    Rows(usize),
}

struct User(Vec<Value>);

impl User {
    fn text(&self, field: usize) -> &str {
        match self.0.get(field) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    fn number(&self, field: usize) -> f64 {
        match self.0.get(field) {
            Some(Value::Int(v)) => *v as f64,
            Some(Value::Uint(v)) => *v as f64,
            Some(Value::Float(v)) => *v,
            Some(Value::Decimal(v)) => v.to_f64(),
            _ => f64::NAN,
        }
    }

    /// An integer, or the mantissa of a decimal.
    fn whole(&self, field: usize) -> i128 {
        match self.0.get(field) {
            Some(Value::Int(v)) => (*v).into(),
            Some(Value::Decimal(v)) => v.mantissa(),
            _ => 0,
        }
    }

    fn is_active(&self) -> bool {
        self.0.get(ACTIVE) == Some(&Value::Bool(true))
    }
}

/// The table, made when first asked for.
pub(crate) struct Users {
    database: Database,
}

impl Users {
    fn make(bench: &Bench) -> Result<Self> {
        let database = Options::new().open(bench.place("users")?)?;
        let table = database.create_table("users", users::schema()?)?;
        let mut load = table.load()?;
        let mut first = 0;
        while first < bench.rows {
            let end = bench.rows.min(first + BATCH_ROWS);
            let mut batch = Batch::empty(&table.schema());
            for i in first..end {
                batch.push_row(&table.schema(), &users::row(i64::try_from(i)?))?;
            }
            load.push(batch)?;
            first = end;
        }
        load.finish()?;
        database.wait_idle()?;
        Ok(Self { database })
    }
}

fn measure(bench: &mut Bench, most_us: f64, sql: &str, check: Check) -> Result<Outcome> {
    if bench.users.is_none() {
        bench.users = Some(Users::make(bench)?);
    }
    let users = bench.users.as_ref().ok_or("no users")?;
    let query = esker_sql::parse(sql)?;
    let result = users.database.query(&query)?;
    if let Some(wrong) = fault(&result, &check, bench.rows)? {
        return Err(format!("wrong answer to {sql}: {wrong}").into());
    }
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let start = Instant::now();
        let result = users.database.query(&query)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        drop(result);
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let least = times.first().copied().unwrap_or_default();
    let limit = bench.rows as f64 / bench.machine.read_rate * 1e6;
    let goal = AtMost(most_us * bench.rows as f64 / ROWS_WANTED);
    let outcome = Outcome::default().and_with_goal(median, limit, goal);
    let outcome = outcome.segments(segments(&users.database, "users"));
    Ok(outcome.note(format!("least {least:.0} µs")))
}

/// What is wrong with an answer, if anything is.
fn fault(result: &QueryResult, check: &Check, rows: u64) -> Result<Option<String>> {
    let found = result.to_rows();
    let all = || (0..rows).map(|i| User(users::row(i64::try_from(i).unwrap_or_default())));
    let first = found.first().and_then(|row| row.first()).cloned().unwrap_or_default();
    let is_wrong = match check {
        Check::Count(is_it) => {
            let count = all().filter(is_it).count();
            first.to_string() != count.to_string()
        }
        Check::Sum(is_it, field) => {
            let sum: i128 = all().filter(is_it).map(|user| user.whole(*field)).sum();
            match &first {
                Value::Decimal(found) => found.mantissa() != sum,
                found => found.to_string() != sum.to_string(),
            }
        }
        Check::Mean(is_it, field) => {
            let values: Vec<f64> = all().filter(is_it).map(|user| user.number(*field)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            !matches!(first, Value::Float(found) if (found - mean).abs() <= mean.abs() * 1e-9)
        }
        Check::Groups(group) => {
            let groups: std::collections::BTreeSet<u64> = all().map(|user| group(&user)).collect();
            let counts = found.iter().map(|row| match row.get(1) {
                Some(Value::Int(count)) => count.unsigned_abs(),
                _ => 0,
            });
            counts.sum::<u64>() != rows || found.len() != groups.len()
        }
        Check::Rows(wanted) => found.len() != *wanted,
    };
    Ok(is_wrong.then(|| format!("found {:?}", found.iter().take(3).collect::<Vec<_>>())))
}
