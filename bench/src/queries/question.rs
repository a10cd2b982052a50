//! Questions about users, and what their answers must be: found by a loop over the rows, made
//! anew, for all questions at once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use esker::{Column, Database, Query, Value, ValueRef};

use super::users::{User, Which};
use crate::Result;

/// A question.
pub(super) struct Question {
    pub sql: &'static str,
    pub check: Check,
}

/// How an answer is checked.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// How many rows there are.
    Count(fn(&User) -> bool),
    /// The exact sum of a field of some rows.
    Sum(fn(&User) -> bool, usize),
    /// The mean, but for its last digits.
    Mean(fn(&User) -> bool, usize),
    /// One row for each value, whose second column counts all rows.
    Groups(fn(&User) -> u64),
    /// So many rows as pass, or this many if that is less.
    Rows(usize, fn(&User) -> bool),
}

/// Questions of one kind, of which the slowest counts.
pub(super) struct Class {
    pub name: &'static str,
    pub which: Which,
    /// The most microseconds for a million rows, and for 25 million.
    pub most_us: [f64; 2],
    pub questions: &'static [Question],
}

/// What a question was answered with.
pub(super) enum Found {
    Rows(Vec<Vec<Value>>),
    /// Taken as a stream, since it may be larger than the memory that a query may have.
    Groups {
        first: Vec<Value>,
        groups: usize,
        /// The sum of the second column.
        counted: u64,
    },
}

impl Found {
    /// Asks.
    pub(super) fn ask(database: &Database, query: &Query, check: Check) -> Result<Self> {
        if !matches!(check, Check::Groups(_)) {
            return Ok(Self::Rows(database.query(query)?.to_rows()));
        }
        let (mut first, mut groups, mut counted) = (Vec::new(), 0, 0);
        database.snapshot()?.stream(query, |batch| {
            if groups == 0 {
                first = batch.columns.iter().map(|column| column.value(0).to_owned()).collect();
            }
            groups += batch.len();
            counted += batch.columns.get(1).map_or(0, sum);
            ControlFlow::Continue(())
        })?;
        Ok(Self::Groups { first, groups, counted })
    }

    /// Asks, and drops the answer.
    pub(super) fn drop_answer(
        database: &Database,
        query: &Query,
        check: Check,
    ) -> esker::Result<()> {
        match check {
            Check::Groups(_) => {
                database.snapshot()?.stream(query, |_| ControlFlow::Continue(()))?;
            }
            _ => drop(database.query(query)?),
        }
        Ok(())
    }
}

/// The sum of counts.
fn sum(column: &Column) -> u64 {
    let value = |row| match column.value(row) {
        ValueRef::Int(count) => count.unsigned_abs(),
        _ => 0,
    };
    (0..column.len()).map(value).sum()
}

/// What is found for a question.
#[derive(Clone, Debug)]
enum Answer {
    Count(u64),
    Sum(i128),
    Mean(f64, u64),
    Groups(Vec<u64>, u64),
}

/// The answers to all questions, by their texts.
pub(crate) struct Expected {
    answers: HashMap<(&'static str, bool), Answer>,
}

impl Expected {
    /// Asks every question of every row.
    pub fn of(rows: u64, classes: &[&Class]) -> Self {
        let mut asked = Vec::new();
        for class in classes {
            let is_deleted = class.which == Which::Deleted;
            for question in class.questions {
                let answer = match question.check {
                    Check::Count(_) | Check::Rows(..) => Answer::Count(0),
                    Check::Sum(..) => Answer::Sum(0),
                    Check::Mean(..) => Answer::Mean(0.0, 0),
                    Check::Groups(_) => Answer::Groups(Vec::new(), 0),
                };
                asked.push((question, is_deleted, answer));
            }
        }
        for i in 0..rows {
            let user = User::of(i);
            for (question, is_deleted, answer) in &mut asked {
                if !*is_deleted || user.is_kept() {
                    add(answer, question.check, &user);
                }
            }
        }
        let mut answers = HashMap::new();
        for (question, is_deleted, mut answer) in asked {
            if let Answer::Groups(groups, _) = &mut answer {
                groups.sort_unstable();
                groups.dedup();
            }
            answers.insert((question.sql, is_deleted), answer);
        }
        Self { answers }
    }

    /// What is wrong with an answer, if anything is.
    pub fn fault(&self, class: &Class, question: &Question, found: &Found) -> Result<()> {
        let key = (question.sql, class.which == Which::Deleted);
        let answer = self.answers.get(&key).ok_or("no answer is known")?;
        let rows = match found {
            Found::Rows(rows) => rows.as_slice(),
            Found::Groups { first, .. } => std::slice::from_ref(first),
        };
        let first = rows.first().and_then(|row| row.first()).cloned().unwrap_or_default();
        let is_right = match (answer, question.check, found) {
            (Answer::Count(count), Check::Rows(most, _), _) => {
                rows.len() == most.min(usize::try_from(*count)?)
            }
            (Answer::Count(count), ..) => first.to_string() == count.to_string(),
            (Answer::Sum(sum), ..) => match &first {
                Value::Decimal(found) => found.mantissa() == *sum,
                found => found.to_string() == sum.to_string(),
            },
            (Answer::Mean(sum, count), ..) => {
                let mean = sum / *count as f64;
                matches!(first, Value::Float(found) if (found - mean).abs() <= mean.abs() * 1e-9)
            }
            (Answer::Groups(wanted, count), _, Found::Groups { groups, counted, .. }) => {
                counted == count && *groups == wanted.len()
            }
            (Answer::Groups(..), ..) => false,
        };
        if is_right {
            return Ok(());
        }
        let shown: Vec<_> = rows.iter().take(3).collect();
        let answer = match answer {
            Answer::Groups(groups, count) => format!("{} groups of {count}", groups.len()),
            other => format!("{other:?}"),
        };
        Err(format!("wrong answer to {}: {shown:?}, not {answer}", question.sql).into())
    }
}

fn add(answer: &mut Answer, check: Check, user: &User) {
    match (answer, check) {
        (Answer::Count(count), Check::Count(is_it) | Check::Rows(_, is_it)) => {
            *count += u64::from(is_it(user));
        }
        (Answer::Sum(sum), Check::Sum(is_it, field)) if is_it(user) => *sum += user.whole(field),
        (Answer::Mean(sum, count), Check::Mean(is_it, field)) if is_it(user) => {
            *sum += user.number(field);
            *count += 1;
        }
        (Answer::Groups(groups, count), Check::Groups(group)) => {
            groups.push(group(user));
            *count += 1;
        }
        _ => {}
    }
}
