//! Streams under crashes: what is there is what was told, or that and the operation under way; row
//! ids rise, and none is given twice; what has ended stays away.

mod life;
mod model;
mod readers;

use std::collections::BTreeMap;

use esker::Database;
use esker_vfs::sim::{CrashChoice, CrashImage, Generator, Options as SimOptions, Simulation};

use crate::campaign::{DEPTH_MAX, Report, choose, quietly};
use crate::oracle::said;
use life::Life;
use model::{Event, STREAM, State};
use readers::Follower;

/// How often a recovery is itself crashed, in a million.
const CRASH_AGAIN: u32 = 80_000;
/// How often all readers look at what a crash left, in a million.
const READ: u32 = 250_000;

/// The number of the event that is added after a crash; one within its recovery has the next.
const FIRST_AFTER_CRASH: i64 = 1 << 40;

/// Runs one workload of a stream and crashes it everywhere.
#[must_use]
pub fn stream_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let count = 12 + Generator::new(seed, 112).below(30);
        let life = life::run(seed, count).map_err(|(why, done)| {
            operations = done;
            format!("while it ran: {why}")
        })?;
        crash_everywhere(seed, &life, &mut report).map_err(|(why, ios)| {
            operations = life.operations_until(ios);
            why
        })
    });
    if let Err(why) = outcome {
        report.fail(why, format!("--stream-workload {seed}"), operations);
    }
    report
}

fn crash_everywhere(seed: u64, life: &Life, report: &mut Report) -> Result<(), (String, u64)> {
    let mut generator = Generator::new(seed, 113);
    let mut cursor = life.journal.cursor();
    loop {
        if cursor.changed() {
            let choice = choose(&mut generator);
            let (image, ios) = (cursor.crash_image(choice), cursor.position());
            let next = generator.next_u64();
            check((seed, next), &image, &Known::of(life, ios), 0, report).map_err(|why| {
                (format!("crash after {} ({choice:?}): {why}", cursor.describe()), ios)
            })?;
        }
        if !cursor.advance() {
            return Ok(());
        }
    }
}

/// What is known of an image.
#[derive(Clone)]
struct Known<'a> {
    /// What may be there; nothing, where the stream may not be there yet.
    candidates: Vec<&'a State>,
    may_be_missing: bool,
    /// The greatest row id that was told.
    row_id: u64,
}

impl<'a> Known<'a> {
    fn of(life: &'a Life, ios: u64) -> Self {
        let (entries, row_id) = life.after(ios);
        let may_be_missing = life.entries.first().is_none_or(|first| ios < first.ios);
        let candidates = entries.iter().map(|entry| &*entry.state).collect();
        Self { candidates, may_be_missing, row_id: if may_be_missing { 0 } else { row_id } }
    }

    /// Which of the states a database has, and the row ids of its events by their numbers.
    fn find(&self, db: &Database) -> Result<(&'a State, BTreeMap<i64, u64>), String> {
        let snapshot = db.snapshot().map_err(|e| said(&e))?;
        let mut outcome = Err("no state may hold".to_owned());
        for state in self.candidates.iter().rev() {
            outcome = model::expect(&snapshot, state).and_then(|ids| {
                model::expect_producer(db, state.sent)?;
                Ok((*state, ids))
            });
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

/// Opens an image, compares what is there, adds an event, and crashes that again now and then.
fn check(
    (seed, draw): (u64, u64),
    image: &CrashImage,
    known: &Known<'_>,
    depth: usize,
    report: &mut Report,
) -> Result<(), String> {
    report.images += 1;
    let mut generator = Generator::new(draw, 114);
    let options = SimOptions { record: true, ..SimOptions::default() };
    let machine = Simulation::from_image(image, draw, options);
    let db = life::open(seed, &machine)?;
    if known.may_be_missing && db.table(STREAM).is_err() {
        return Ok(());
    }
    let (state, ids) = known.find(&db)?;
    if generator.chance(READ) {
        readers::expect(&db, state, &ids, &mut generator)?;
        Follower::new(&db, generator.chance(500_000), 3)?.follow(state, &ids, 0, true)?;
    }
    let problems = db.check().map_err(|e| said(&e))?.problems;
    if let Some(problem) = problems.first() {
        return Err(format!("check finds {problem:?}"));
    }
    let left = machine.crash_image(CrashChoice::Random(generator.next_u64()));
    let stream = db.stream(STREAM).map_err(|e| said(&e))?;
    let event = Event { t: model::date_us(&db), tier: None, note: None };
    let number = FIRST_AFTER_CRASH + i64::try_from(depth).unwrap_or_default();
    let id = stream.append(&event.row(number)).map_err(|e| said(&e))?.row_id();
    if id <= known.row_id {
        return Err(format!("row id {id} was given, after {} before the crash", known.row_id));
    }
    let journal = machine.journal();
    machine.crash_after_io(Some(0));
    drop((stream, db));
    machine.kill_tasks();
    let Some(journal) = journal else { return Ok(()) };
    if depth >= DEPTH_MAX || !generator.chance(CRASH_AGAIN) {
        return Ok(());
    }
    // What recovery has answered is durable.
    let again = Known { candidates: vec![state], may_be_missing: false, row_id: known.row_id };
    let next = (seed, generator.next_u64());
    check(next, &left, &again, depth + 1, report).map_err(|why| format!("opened again: {why}"))?;
    let mut with_new = state.clone();
    with_new.events.insert(number, event);
    let either = Known { candidates: vec![state, &with_new], ..known.clone() };
    let position = generator.below(machine.io_count() + 1);
    let mut cursor = journal.cursor();
    while cursor.position() < position && cursor.advance() {}
    if let Some(count) = report.in_recovery.get_mut(depth) {
        *count += 1;
    }
    let image = cursor.crash_image(choose(&mut generator));
    // Recovery itself may be crashed before it has found which of several states holds.
    let mut either = either;
    either.candidates.extend(&known.candidates);
    check(next, &image, &either, depth + 1, report)
        .map_err(|why| format!("crash again after {}: {why}", cursor.describe()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_of_a_stream_ends_well() {
        let report = stream_workload(4);
        assert!(report.failures.is_empty() && report.images > 50, "{report}");
    }
}
