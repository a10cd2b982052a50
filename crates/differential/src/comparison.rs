//! Many sessions, on all cores.
//!
//! A session is drawn from its own seed, so that which thread runs it changes nothing. The finding
//! of the lowest seed is shown, shrunk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::dice::{Beside, Dice};
use crate::difference::{DESIGNS, DUCKDB_DESIGNS, LEFT_OUT};
use crate::rule::duckdb;
use crate::session::{Counts, Finding, Session};
use crate::shrink;

/// What is compared: statements of any kind, or queries alone.
type Draw = fn(&mut Dice, usize) -> Session;

/// So many statements, in sessions of the same length.
#[derive(Clone, Copy)]
pub(crate) struct Comparison {
    what: &'static str,
    statements: usize,
    per_session: usize,
    seed: u64,
    draw: Draw,
    beside: Beside,
}

/// A session whose answers differ.
struct Difference {
    seed: u64,
    statements: usize,
    session: Session,
    finding: Finding,
}

impl Comparison {
    pub(crate) fn new(
        what: &'static str,
        statements: usize,
        per_session: usize,
        seed: u64,
        draw: Draw,
    ) -> Self {
        Self { what, statements, per_session, seed, draw, beside: Beside::default() }
    }

    /// The same with another one beside Esker.
    pub(crate) fn beside(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// Runs the sessions and prints what they came to; false where answers differ.
    pub(crate) fn run(self) -> bool {
        if self.statements == 0 {
            return true;
        }
        let (counts, difference) = self.on_all_cores();
        match difference {
            Some(difference) => self.show(difference),
            None => {
                self.summarise(&counts);
                return true;
            }
        }
        false
    }

    fn sessions(self) -> usize {
        self.statements.div_ceil(self.per_session)
    }

    fn length(self, number: usize) -> usize {
        self.per_session.min(self.statements - number * self.per_session)
    }

    #[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
    fn on_all_cores(self) -> (Counts, Option<Difference>) {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let next = AtomicUsize::new(0);
        let ended = Mutex::new((Counts::default(), None::<Difference>));
        std::thread::scope(|scope| {
            for _ in 0..threads {
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

    /// Runs one session after the other until none is left or answers differ.
    fn work(self, next: &AtomicUsize) -> (Counts, Option<Difference>) {
        let mut counts = Counts::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= self.sessions() {
                return (counts, None);
            }
            let seed = self.seed.wrapping_add(number as u64);
            let statements = self.length(number);
            let session = (self.draw)(&mut Dice::new(seed, self.beside), statements);
            if let Err(finding) = session.run(&mut counts) {
                next.store(self.sessions(), Ordering::Relaxed);
                return (counts, Some(Difference { seed, statements, session, finding }));
            }
        }
    }

    fn show(self, difference: Difference) {
        let Self { what, .. } = self;
        let Difference { seed, statements, session, finding } = difference;
        let (session, finding) = shrink::shrink(&session, finding);
        println!("seed {seed}: answers differ\n{}\n", finding.what);
        println!("{}", shrink::script(&session));
        println!("again: cargo xtask differential --{what} {statements} --seed {seed}");
    }

    fn summarise(self, counts: &Counts) {
        let Self { what, statements, seed, .. } = self;
        let sessions = self.sessions();
        println!("{statements} {what} in {sessions} sessions, seed {seed}: no difference");
        println!("  {} rows compared, {} statements refused by both", counts.rows, counts.refused);
        let (designs, left_out) = match self.beside {
            Beside::Sqlite => (&DESIGNS[..], &LEFT_OUT[..]),
            Beside::DuckDb => (&DUCKDB_DESIGNS[..], &[][..]),
        };
        for (design, what, why) in designs {
            let times = counts.designs.get(design).copied().unwrap_or_default();
            println!("  by design {times} times: {what}: {why}");
        }
        for (error, times) in &counts.unknown {
            println!("  refused by DuckDB alone {times} times: {error}");
        }
        for (what, why) in left_out {
            println!("  not compared: {what}: {why}");
        }
        let otherwise = duckdb::reasons().filter(|_| self.beside == Beside::DuckDb);
        for (esker, theirs, why) in otherwise {
            println!("  {esker} is {}: {why}", theirs.unwrap_or("left out"));
        }
    }
}
