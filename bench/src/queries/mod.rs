//! `esker-bench queries`: questions about users, with and without indexes.
//!
//! Every answer is checked with what a loop over the rows, made anew, finds; then each question is
//! asked ten times, and its median counts. Of several questions in a row of the table the slowest
//! counts. The figures are those asked of a million rows and of 25 million; between these they grow
//! with the table. Groups are taken as a stream. Those of a text are of a million texts, each of as
//! many rows as it takes: with more rows than that they have a table of their own.
//!
//! | module | what it defines |
//! |---|---|
//! | `users` | the tables |
//! | `requests` | rows in many small requests beside few large ones |
//! | `question` | questions, and what their answers must be |
//! | `unindexed`, `indexed` | what is asked |
//! | `pages` | a page by a cursor |
//! | `access` | rows that are passed over: dead ones, and those before an offset |
//! | `building` | loading beside indexes, and adding them |

mod access;
mod building;
mod indexed;
mod pages;
mod question;
mod requests;
mod unindexed;
mod users;

use crate::Result;
use crate::bench::{Bench, segments};
use crate::outcome::Goal::AtMost;
use crate::outcome::Outcome;
use crate::outcome::Unit::Microseconds;
use crate::rows::{Row, ask, row};
use crate::timing::{self, Timing};
use question::{Class, Expected, Found};
pub(crate) use users::Users;

const REPEATS: usize = 10;

/// A row of the table for each class.
macro_rules! classes {
    ($($class:path),* $(,)?) => {
        /// Every class of questions.
        const CLASSES: &[&Class] = &[$(&$class),*];

        /// Every row, in the order of the table.
        pub(crate) const ROWS: &[Row] = &[
            $(row(
                $class.name,
                &[ask("", AtMost($class.most_us[0]), Microseconds, "")],
                |bench| measure(bench, &$class),
            ),)*
            pages::DEEP,
            access::QUEUE,
            access::OFFSET,
            building::LOAD,
            building::ADD,
            requests::REQUESTS,
        ];
    };
}

classes![
    unindexed::BIO_EQUAL,
    unindexed::BIO_CONTAINS,
    unindexed::BIO_REGEX,
    unindexed::NAME_CONTAINS,
    unindexed::NAME_CONTAINS_ANY_CASE,
    unindexed::NAME_REGEX,
    unindexed::FIELD_FIELD,
    unindexed::SUM,
    unindexed::MEAN_HALF,
    unindexed::MEAN_HUNDREDTH,
    unindexed::GROUP_FEW,
    unindexed::GROUP_TWO,
    unindexed::GROUP_TEXT,
    indexed::EQUAL,
    indexed::RANGE,
    indexed::NOT_EQUAL,
    indexed::STARTS,
    indexed::CONTAINS,
    indexed::ENDS,
    indexed::AND_OR,
    indexed::FIND,
    indexed::GROUP_TEXT_10,
    indexed::PAGE,
    indexed::EQUAL_DELETED,
    indexed::RANGE_DELETED,
    indexed::NOT_EQUAL_DELETED,
];

/// What is asked of a table of so many rows, of what is asked of a million and of 25 million.
fn between(rows: u64, [one, many]: [f64; 2]) -> f64 {
    let share = (rows as f64 / 1e6 - 1.0) / 24.0;
    one + (many - one) * share.max(0.0)
}

fn measure(bench: &mut Bench, class: &Class) -> Result<Outcome> {
    let mut users = bench.users.take().unwrap_or_default();
    let outcome = measure_class(bench, &mut users, class);
    bench.users = Some(users);
    outcome
}

fn measure_class(bench: &Bench, users: &mut Users, class: &Class) -> Result<Outcome> {
    let database = users.table(bench, class.which)?;
    if users.expected.is_none() {
        users.expected = Some(Expected::of(bench.rows, CLASSES));
    }
    let expected = users.expected.as_ref().ok_or("no answers")?;
    let (mut slowest, mut least, mut of) = (0.0, 0.0, "");
    for question in class.questions {
        let query = esker_sql::parse(question.sql)?;
        expected.fault(class, question, &Found::ask(&database, &query, question.check)?)?;
        let Timing { median, least: quickest } =
            timing::repeat(REPEATS, || Found::drop_answer(&database, &query, question.check))?;
        if median >= slowest {
            (slowest, of) = (median, question.sql);
            least = quickest;
        }
    }
    let limit = bench.rows as f64 / bench.machine.read_rate * 1e6;
    let outcome = Outcome::default().and_with_goal(
        slowest,
        limit,
        AtMost(between(bench.rows, class.most_us)),
    );
    let outcome = outcome.segments(segments(&database, "users"));
    Ok(outcome.note(format!("least {least:.0} µs, of {of}")))
}
