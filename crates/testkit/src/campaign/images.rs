//! Recovers crash images, and crashes again while that goes on.

use esker_vfs::sim::{CrashChoice, CrashImage, Generator, Options as SimOptions, Simulation};

use super::report::{DEPTH_MAX, Report};
use crate::clock_step;
use crate::history::History;
use crate::oracle::{self, Depth};
use crate::workload::{self, BackupMade, Config, Failure, Life, Plan};

/// How often a backup is opened that was not just being made, in a million.
const OTHER_BACKUPS: u32 = 60_000;

/// How often the clocks are others after a crash, in a million.
const STEPPED: u32 = 300_000;

/// How to check images.
#[derive(Clone, Debug)]
pub struct Checker {
    /// How the database is opened.
    pub config: Config,
    /// How often, in a million, a recovery is itself crashed.
    pub crash_again: u32,
    /// Whether the disk lied: then a prefix may be too short, and an error is an answer.
    pub lied: bool,
}

/// What an image must hold.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The states by commit.
    pub history: &'a History,
    /// The newest commit that must be there.
    pub promised: u64,
    /// The greatest value of the sequence that was given out.
    pub given: i64,
    /// The backups there may be.
    pub backups: &'a [BackupMade],
    /// The I/Os that had been done.
    pub ios: u64,
}

impl<'a> Expected<'a> {
    /// What a crash after so many I/Os of a life must leave.
    #[must_use]
    pub fn after(life: &'a Life, ios: u64) -> Self {
        let history = life.history.as_of(ios);
        let (promised, given) = (life.promised(ios), life.given(ios));
        Self { history, promised, given, backups: &life.backups, ios }
    }
}

impl Checker {
    /// Opens an image, compares what is there, and opens what that leaves.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        image: &CrashImage,
        expected: Expected<'_>,
        seed: u64,
        depth: usize,
        report: &mut Report,
    ) -> Result<(), String> {
        report.images += 1;
        report.add_faults(&image.faults_fired());
        let mut generator = Generator::new(seed, 50);
        let again = depth < DEPTH_MAX && generator.chance(self.crash_again);
        if again && !self.lied {
            self.crash_again(image, expected, seed, depth, report)?;
        }
        let options = SimOptions { pause_probability: 100_000, ..SimOptions::default() };
        let machine = Simulation::from_image(image, seed, options);
        if generator.chance(STEPPED) {
            clock_step::step_all(&machine, &mut generator);
        }
        let db = match workload::open(&self.config, &machine, false) {
            Ok(db) => db,
            Err(_) if self.lied => {
                report.refused += 1;
                return Ok(());
            }
            Err(e) => return Err(format!("open: {:?}: {e}", e.kind())),
        };
        let commit = oracle::recovered_commit(&db, false)?;
        if commit < expected.promised && !self.lied {
            let promised = expected.promised;
            return Err(format!("recovered to commit {commit}, promised {promised}"));
        }
        if !self.lied {
            workload::compare_sequence(&db, expected.given)?;
        }
        let look = Depth {
            gets_every: 1 + generator.below(4),
            check: true,
            queries: generator.chance(125_000),
            names: true,
        };
        let state = match oracle::compare(&db, expected.history, commit, look) {
            Ok(state) => state,
            Err(why) if self.lied && says_damaged(&why) => {
                report.refused += 1;
                return Ok(());
            }
            Err(why) => return Err(why),
        };
        self.check_backups(image, expected, commit, &mut generator)?;
        // What recovery has answered is durable, and a second open changes nothing.
        let left = machine.crash_image(CrashChoice::Random(generator.next_u64()));
        drop(db);
        let machine = Simulation::from_image(&left, seed ^ 1, SimOptions::default());
        let read_only = generator.chance(500_000);
        let db = workload::open(&self.config, &machine, read_only)
            .map_err(|e| format!("second open: {:?}: {e}", e.kind()))?;
        let look = Depth { gets_every: 0, check: !read_only, queries: false, names: true };
        oracle::compare_with(&db, expected.history, &state, look)
            .map_err(|why| format!("second open, first at commit {commit}: {why}"))?;
        if read_only && machine.io_count() > 0 {
            return Err("a read-only open wrote".to_owned());
        }
        Ok(())
    }

    /// Looks at the backups that are being made, and sometimes at others.
    fn check_backups(
        &self,
        image: &CrashImage,
        expected: Expected<'_>,
        commit: u64,
        generator: &mut Generator,
    ) -> Result<(), String> {
        let Expected { history, backups, ios, .. } = expected;
        let chosen = backups.iter().filter(|backup| {
            backup.is_near(ios) || (backup.from < ios && generator.chance(OTHER_BACKUPS))
        });
        for backup in chosen.filter(|_| !self.lied) {
            backup.check(&self.config, image, ios, history, commit)?;
        }
        Ok(())
    }

    /// A short life from an image, crashed at some of its I/Os, most of them in recovery.
    fn crash_again(
        &self,
        image: &CrashImage,
        expected: Expected<'_>,
        seed: u64,
        depth: usize,
        report: &mut Report,
    ) -> Result<(), String> {
        let mut generator = Generator::new(seed, 51);
        let plan = Plan { operations: generator.below(4), ..Plan::default() };
        let history = expected.history.clone();
        let before = (expected.promised, expected.given);
        let life = workload::relive(image, seed, &self.config, &plan, history, before).map_err(
            |failure| {
                let after = failure.operations.join("\n    after: ");
                format!("in the life after: {}\n    after: {after}", failure.why)
            },
        )?;
        let Some(journal) = &life.journal else { return Ok(()) };
        let mut positions: Vec<u64> = (0..2).map(|_| generator.below(life.open_ios + 1)).collect();
        if life.open_ios < journal.io_count() {
            positions.push(generator.below(journal.io_count() + 1));
        }
        positions.sort_unstable();
        positions.dedup();
        let mut cursor = journal.cursor();
        for position in positions {
            while cursor.position() < position && cursor.advance() {}
            if !cursor.changed() {
                continue;
            }
            let choice = choose(&mut generator);
            let image = cursor.crash_image(choice);
            if position < life.open_ios
                && let Some(count) = report.in_recovery.get_mut(depth)
            {
                *count += 1;
            }
            let next = generator.next_u64();
            // No crash of a recovery can bring back what the recovery did not find.
            let expected = Expected::after(&life, position);
            self.check(&image, expected, next, depth + 1, report).map_err(|why| {
                format!("crash again at depth {}, {}: {why}", depth + 1, cursor.describe())
            })?;
        }
        Ok(())
    }
}

/// An error that says that the database is damaged, not a wrong answer.
pub(super) fn says_damaged(why: &str) -> bool {
    why.contains("Corrupt: ") || why.contains("check finds")
}

/// A way to crash: any, with a preference for odd ones.
pub fn choose(generator: &mut Generator) -> CrashChoice {
    let seed = generator.next_u64();
    match generator.below(10) {
        0 => CrashChoice::KeepNone,
        1 => CrashChoice::KeepAll,
        2 => CrashChoice::TornSubset { mask: generator.next_u64(), seed },
        3 => CrashChoice::Subset(generator.next_u64()),
        _ => CrashChoice::Random(seed),
    }
}

/// Crashes a life after every I/O that changed something, `each` times.
///
/// # Errors
/// What is wrong, with the place.
pub fn crash_everywhere(
    checker: &Checker,
    life: &Life,
    seed: u64,
    each: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    let Some(journal) = &life.journal else { return Ok(()) };
    let mut generator = Generator::new(seed, 52);
    let mut cursor = journal.cursor();
    loop {
        if cursor.changed() {
            for _ in 0..each {
                let choice = choose(&mut generator);
                let image = cursor.crash_image(choice);
                let expected = Expected::after(life, cursor.position());
                let next = generator.next_u64();
                checker.check(&image, expected, next, 0, report).map_err(|why| {
                    let why = format!("crash after {} ({choice:?}): {why}", cursor.describe());
                    Failure { why, operations: life.operations_until(cursor.position()) }
                })?;
            }
        }
        if !cursor.advance() {
            return Ok(());
        }
    }
}
