//! Plan independence: a question has one answer, however the rows lie and whatever indexes exist.
//!
//! A case is drawn from a seed: a table, indexes, a history of inserts, updates and deletes with a
//! snapshot taken in its middle, and questions. The history is run once for each *layout* of the
//! rows, and there the questions are asked
//!
//! * of the rows of now, and of the snapshot, which knows the indexes of its time;
//! * without an index, with most indexes alone, and with all of them, in an order that is drawn;
//!   in most of the layouts the indexes are there before the rows, and they are read
//!   wherever they say anything, however much cheaper a scan were;
//! * with the tables of joins in the order written, in the one thought cheapest, and in others.
//!
//! Rollups are one more kind of index: groupings that they may answer are among the questions.
//!
//! The first answers, of open rows that are read from first to last, are those that all others must
//! equal. Beside that, each predicate parts the rows in three: those for which it is true, false
//! and NULL.

mod case;
pub mod command;
mod joined;
mod layout;
mod question;
mod rollup;
mod value;

pub use case::Case;
pub use layout::Layout;

use esker::{ErrorKind, Snapshot, Value};
use esker_query::Reading;
use esker_vfs::sim::Generator;
use question::Question;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::campaign::{Report, quietly};

/// An answer, or how the question is refused.
type Answer = Result<Vec<Vec<Value>>, ErrorKind>;

/// What a case came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Cases.
    pub cases: u64,
    /// Answers that were compared.
    pub answers: u64,
    /// Rows of them.
    pub rows: u64,
    /// Answers that were refusals.
    pub refused: u64,
    /// Answers whose plan used an index.
    pub indexed: u64,
    /// Answers whose plan looked rows up by their keys.
    pub by_key: u64,
    /// Answers whose plan read zones in the order asked for.
    pub by_zone: u64,
    /// Answers whose plan took groups that are kept of a rollup.
    pub rolled: u64,
    /// Answers about several tables, none of them refused.
    pub joined: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.answers += other.answers;
        self.rows += other.rows;
        self.refused += other.refused;
        self.indexed += other.indexed;
        self.by_key += other.by_key;
        self.by_zone += other.by_zone;
        self.rolled += other.rolled;
        self.joined += other.joined;
    }
}

/// The cases to run: the first of `seed`, and each next of the next seed.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// Seed of the first.
    pub seed: u64,
    /// How many.
    pub count: u64,
    /// Whether each table has rollups, and groupings are most of what is asked.
    pub of_rollups: bool,
}

/// A case whose answers differ.
#[derive(Debug)]
pub struct Difference {
    /// Its seed.
    pub seed: u64,
    /// The table, the layout, the indexes, the question and both answers.
    pub why: String,
}

impl Cases {
    /// Runs them on so many threads. Each thread ends after its first difference; the one of the
    /// lowest seed is returned beside what all threads counted.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
    pub fn run(self, threads: u64) -> (Counts, Option<Difference>) {
        let next = AtomicU64::new(0);
        let ended = Mutex::new((Counts::default(), None::<Difference>));
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    let (counts, difference) = self.work(&next);
                    let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                    ended.0.add(counts);
                    let found = [ended.1.take(), difference].into_iter().flatten();
                    ended.1 = found.min_by_key(|difference| difference.seed);
                });
            }
        });
        ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(self, next: &AtomicU64) -> (Counts, Option<Difference>) {
        let mut counts = Counts::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                return (counts, None);
            }
            let seed = self.seed.wrapping_add(number);
            if let Err(why) = quietly(|| run_case(seed, self.of_rollups, &mut counts)) {
                next.store(self.count, Ordering::Relaxed);
                return (counts, Some(Difference { seed, why }));
            }
        }
    }

    /// Runs them as the campaigns do that crash.
    #[must_use]
    pub fn report(self) -> Report {
        let mut report = Report { workloads: self.count, ..Report::default() };
        let (counts, difference) = self.run(1);
        if let Some(Difference { seed, why }) = difference {
            report.fail(why, format!("--cases 1 --seed {seed} (of plans)"), Vec::new());
        }
        report.images = counts.answers;
        report
    }
}

/// Runs the case of a seed.
///
/// # Errors
/// The first difference: the table, the layout, the indexes, the question and both answers.
pub fn run_case(seed: u64, of_rollups: bool, counts: &mut Counts) -> Result<(), String> {
    let case = Case::draw(seed, of_rollups);
    counts.cases += 1;
    let mut expected = Expected::default();
    for layout in Layout::ALL {
        let generator = &mut Generator::new(seed, 39 + layout as u64);
        let built = layout.build(&case, generator).map_err(|e| case.at(layout, &e))?;
        // The snapshot knows the indexes there were when it was taken, until they are dropped.
        let old = |expected: &mut Expected, counts: &mut Counts, names: &str| {
            let Some(old) = built.old.as_ref() else { return Ok(()) };
            let found = expected.judge(&case, old, true, counts);
            found.map_err(|e| case.at(layout, &format!("{names}, the older snapshot\n{e}")))
        };
        old(&mut expected, counts, "indexes as built")?;
        for indexes in case.index_sets(layout, generator) {
            built.set_indexes(&case, &indexes).map_err(|e| case.at(layout, &e))?;
            let now = built.snapshot().map_err(|e| case.at(layout, &e))?;
            let names = case.index_names(&indexes);
            expected
                .judge(&case, &now, false, counts)
                .map_err(|e| case.at(layout, &format!("indexes {names}, the rows of now\n{e}")))?;
        }
        if generator.chance(250_000) {
            old(&mut expected, counts, "indexes changed")?;
        }
    }
    Ok(())
}

/// The first answers: of the rows of now, and of the older snapshot.
#[derive(Default)]
struct Expected([Option<Vec<Answer>>; 2]);

impl Expected {
    /// Asks everything, and compares with the first answers.
    fn judge(
        &mut self,
        case: &Case,
        snapshot: &Snapshot,
        is_old: bool,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let Some(first) = self.0.get_mut(usize::from(is_old)) else { return Ok(()) };
        match first {
            Some(first) => {
                let asked = case.asked().zip(first.iter());
                // How many rows there are, whatever the predicate, no index tells.
                let told = asked.enumerate().filter(|(i, _)| (i + 1) % question::ASKED != 0);
                told.map(|(_, asked)| asked).try_for_each(|(question, first)| {
                    let found = ask(snapshot, question, counts);
                    compare(question, first, &found)
                })
            }
            None => {
                let found: Vec<Answer> = case.asked().map(|q| ask(snapshot, q, counts)).collect();
                parts(&case.questions, &found)?;
                *first = Some(found);
                Ok(())
            }
        }
    }
}

fn ask(snapshot: &Snapshot, question: &Question, counts: &mut Counts) -> Answer {
    let answer = snapshot.query(&question.query).map_err(|e| e.kind());
    let plan = snapshot.plan(&question.query);
    let parts = plan.map(|plan| plan.parts).unwrap_or_default();
    counts.indexed += u64::from(parts.iter().any(|part| !part.indexes.is_empty()));
    counts.by_key += u64::from(parts.iter().any(|part| part.reading == Reading::Key));
    counts.by_zone += u64::from(parts.iter().any(|part| part.reading == Reading::Zones));
    counts.rolled += u64::from(parts.iter().any(|part| part.reading == Reading::Rollup));
    counts.answers += 1;
    counts.refused += u64::from(answer.is_err());
    counts.joined += u64::from(answer.is_ok() && !question.query.joins.is_empty());
    let mut rows = answer?.to_rows();
    counts.rows += rows.len() as u64;
    if !question.is_ordered {
        rows.sort();
    }
    Ok(rows)
}

fn compare(question: &Question, expected: &Answer, found: &Answer) -> Result<(), String> {
    // Where memory is little, an answer may be too large.
    if expected == found || *found == Err(ErrorKind::OverBudget) {
        return Ok(());
    }
    let (expected, found) = (shown(expected), shown(found));
    let query = &question.query;
    Err(format!("{query}\n  expected {expected}\n  found    {found}"))
}

fn shown(answer: &Answer) -> String {
    const ROWS: usize = 12;
    match answer {
        Err(kind) => format!("{kind:?}"),
        Ok(rows) => {
            let row = |row: &Vec<Value>| {
                row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            };
            let some: Vec<String> = rows.iter().take(ROWS).map(row).collect();
            let more = if rows.len() > ROWS { ", …" } else { "" };
            format!("{} rows: {}{more}", rows.len(), some.join(", "))
        }
    }
}

/// True, false and NULL are all there is, and a count counts the rows.
fn parts(questions: &[Question], answers: &[Answer]) -> Result<(), String> {
    for (question, answers) in
        questions.chunks(question::ASKED).zip(answers.chunks(question::ASKED))
    {
        let [yes, no, unknown, count, ..] = answers else { continue };
        let Some(Question { query, .. }) = question.first() else { continue };
        let (Ok(yes), Ok(no), Ok(unknown), Ok(count)) = (yes, no, unknown, count) else {
            continue;
        };
        let said = count.first().and_then(|row| row.first()).cloned();
        if said != Some(Value::Uint(yes.len() as u64)) {
            return Err(format!("{query}\n  {} rows, count(*) says {said:?}", yes.len()));
        }
        let mut all = [yes.as_slice(), no, unknown].concat();
        let rows = all.len();
        all.sort();
        all.dedup();
        let there = answers.last().and_then(|all| all.as_ref().ok());
        let there = there.and_then(|rows| rows.first()?.first().cloned());
        if all.len() != rows || there != Some(Value::Uint(rows as u64)) {
            let (yes, no, unknown) = (yes.len(), no.len(), unknown.len());
            return Err(format!(
                "{query}\n  true {yes}, false {no}, NULL {unknown}, {} different, of {there:?}",
                all.len()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_cases_have_one_answer_each() {
        let mut counts = Counts::default();
        for seed in [5, 8, 12, 14] {
            run_case(seed, false, &mut counts).unwrap();
        }
        assert!(counts.joined * 12 > counts.answers, "{counts:?}");
        counts.answers -= counts.joined;
        assert!(counts.rows > 1_000 && counts.refused * 5 < counts.answers, "{counts:?}");
        let planned = counts.indexed + counts.by_key;
        assert!(planned * 5 > counts.answers && counts.by_key > 0, "{counts:?}");
        assert!(counts.by_zone * 50 > counts.answers, "{counts:?}");
    }

    #[test]
    fn groupings_have_one_answer_with_and_without_rollups() {
        let mut counts = Counts::default();
        for seed in 1..8 {
            run_case(seed, true, &mut counts).unwrap();
        }
        assert!(counts.rolled * 8 > counts.answers, "{counts:?}");
    }

    #[test]
    fn a_wrong_answer_is_told() {
        let case = Case::draw(1, false);
        let right: Answer = Ok(vec![vec![Value::Int(1)]]);
        let e = compare(&case.questions[0], &right, &Ok(Vec::new())).unwrap_err();
        assert!(e.contains("expected 1 rows: 1\n  found    0 rows"), "{e}");
    }
}
