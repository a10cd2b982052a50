//! Histories over several lives of a simulated machine whose power fails.
//!
//! ```text
//! open ─► work … power fails in some I/O ─► under way: aborted; committing: unknown
//!  ▲                                                                │
//!  └── a new machine with what the disk kept ◄── there, and whole? ─┘
//! ```
//!
//! One commit at a time is under way. When the next life shows its writes, it committed, after all
//! before it; otherwise it never will have. A transaction that reads all of late is the first of
//! each life: by it, and by all later reads, what was acknowledged is seen to be there.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use esker::{Database, Durability, Options, TransactionOptions};
use esker_vfs::sim::{CrashChoice, CrashImage, Generator, Options as SimOptions, Simulation};

use super::client::{Client, Shared};
use super::{Drive, Driven, said, store};
use crate::clock_step;
use crate::isolation::{History, Key, Operation, Outcome, Transaction};

/// How many transactions are open at a time.
const LANES: usize = 6;
/// The most I/Os from a life's beginning to its end.
const IOS_MAX: u64 = 250;
/// A life that ends well has so many.
const NEVER: u64 = u64::MAX / 2;

/// Makes a history.
pub(super) fn run(drive: &Drive) -> Result<Driven, String> {
    let shared = Shared::new(drive);
    let mut generator = Generator::new(drive.seed, 320);
    let mut history = History::default();
    let mut image = CrashImage::empty();
    let (mut crashes, mut in_doubt) = (0, [0; 2]);
    let mut is_ready = false;
    while !is_ready || shared.begun.load(Ordering::Relaxed) < drive.transactions {
        let sim = SimOptions { pause_probability: 100_000, ..SimOptions::default() };
        let machine = Simulation::from_image(&image, generator.next_u64(), sim);
        clock_step::step_all(&machine, &mut generator);
        let ios = if is_ready { 1 + generator.below(IOS_MAX) } else { NEVER };
        machine.crash_after_io(Some(machine.io_count().saturating_add(ios)));
        let (history, in_doubt) = (&mut history, &mut in_doubt);
        let mut life = Life { shared: &shared, machine: &machine, history, in_doubt };
        is_ready |= life.live(&mut generator, is_ready)?;
        machine.crash_after_io(Some(0));
        image = machine.crash_image(CrashChoice::Random(generator.next_u64()));
        machine.kill_tasks();
        crashes += 1;
    }
    // One more life sees what the last one left.
    let machine = Simulation::from_image(&image, drive.seed, SimOptions::default());
    let (last, counts) = (&mut history, &mut in_doubt);
    Life { shared: &shared, machine: &machine, history: last, in_doubt: counts }
        .live(&mut generator, true)?;
    Ok(Driven { crashes, in_doubt, ..shared.driven(history) })
}

struct Life<'a> {
    shared: &'a Shared,
    machine: &'a Simulation,
    history: &'a mut History,
    in_doubt: &'a mut [u64; 2],
}

impl Life<'_> {
    /// Works until the power fails or all is done; whether there was a database to work on.
    fn live(&mut self, generator: &mut Generator, is_ready: bool) -> Result<bool, String> {
        let opened = options(self.machine, generator).open("db").and_then(|db| {
            store::create(&db)?;
            Ok(db)
        });
        let db = match opened {
            Ok(db) => db,
            Err(_) if self.machine.has_crashed() => return Ok(false),
            Err(error) => return Err(said("open", &error)),
        };
        let resolved = self.resolve(&db);
        if !self.machine.has_crashed() {
            resolved?;
            self.work(&db, generator, is_ready);
        }
        self.machine.crash_after_io(Some(0));
        drop(db);
        Ok(true)
    }

    fn work(&mut self, db: &Database, generator: &mut Generator, is_ready: bool) {
        let machine = self.machine;
        let shared = self.shared;
        let seed = generator.next_u64();
        let generator = Generator::new(seed, 321);
        let has_crashed = &|| machine.has_crashed();
        let mut client = Client { shared, db, has_crashed, generator, made: Vec::new() };
        let intents = shared.workload.first();
        while !is_ready
            && !intents.is_empty()
            && !client.made.iter().any(|made| made.commit.is_some())
        {
            client.run(intents.clone());
        }
        client.run(shared.workload.audit(shared.begun.load(Ordering::Relaxed)));
        if is_ready {
            client.work(LANES);
        }
        self.history.transactions.append(&mut client.made);
    }

    /// Finds out what became of the commit that was under way.
    fn resolve(&mut self, db: &Database) -> Result<(), String> {
        let made = &mut self.history.transactions;
        // What nobody had seen has a number above all that anybody had seen.
        let seen = made.iter().filter_map(|made| made.commit.max(made.snapshot));
        let newest = seen.max().unwrap_or_default();
        let unknown: Vec<usize> = made
            .iter()
            .enumerate()
            .filter(|(_, made)| made.outcome == Outcome::Unknown)
            .map(|(at, _)| at)
            .collect();
        if unknown.len() > 1 {
            return Err(format!("{} commits were under way at once", unknown.len()));
        }
        for at in unknown {
            let Some(asked) = made.get(at) else { continue };
            let is_there = is_there(db, made, asked).map_err(|e| said("look for a commit", &e))?;
            let Some(made) = made.get_mut(at) else { continue };
            let [survived, lost] = &mut *self.in_doubt;
            match is_there {
                Some(true) => {
                    made.outcome = Outcome::Committed;
                    made.commit = Some(newest + 1);
                    made.end = self.shared.tick();
                    *survived += 1;
                }
                Some(false) => {
                    made.outcome = Outcome::Aborted;
                    *lost += 1;
                }
                None => return Err(format!("a part of a transaction is there: {made}")),
            }
        }
        Ok(())
    }
}

/// Whether a row was there when all had committed of which that is known.
fn was_there(all: &[Transaction], key: Key) -> bool {
    let write = |operation: &Operation| match operation {
        Operation::Write { key: written, cell } if *written == key => Some(cell.is_some()),
        _ => None,
    };
    let writers = all.iter().filter_map(|made| {
        let last = made.operations.iter().rev().find_map(write)?;
        Some((made.commit?, last))
    });
    writers.max_by_key(|(commit, _)| *commit).is_some_and(|(_, is_there)| is_there)
}

/// Whether all or nothing of what one of some transactions wrote is there; none for a part of it.
fn is_there(db: &Database, all: &[Transaction], made: &Transaction) -> esker::Result<Option<bool>> {
    let mut last: BTreeMap<Key, &Operation> = BTreeMap::new();
    for operation in made.operations.iter().filter(|operation| operation.writes()) {
        if let Operation::Append { key, .. } | Operation::Write { key, .. } = operation {
            last.insert(*key, operation);
        }
    }
    let reader = db.begin_with(TransactionOptions::new().read_only(true))?;
    let (mut there, mut missing) = (0, 0);
    for (key, operation) in last {
        let is_there = match operation {
            Operation::Append { value, .. } => {
                store::read_list(&reader, key)?.last() == Some(value)
            }
            Operation::Write { cell, .. } => store::read(&reader, key)? == *cell,
            _ => continue,
        };
        // A row that is gone in the end tells something if it was there before this commit: what
        // the transaction had read may have been deleted by another one since.
        let is_gone = matches!(operation, Operation::Write { cell: None, .. });
        let tells = !is_gone || was_there(all, key);
        if tells {
            *(if is_there { &mut there } else { &mut missing }) += 1;
        }
    }
    Ok((there == 0 || missing == 0).then_some(there > 0))
}

/// Limits so small that everything happens all the time.
fn options(machine: &Simulation, generator: &mut Generator) -> Options {
    let options = Options::new()
        .environment(machine.environment())
        .durability(Durability::Sync)
        .memory_limit(64 << 20);
    if generator.chance(500_000) {
        return options;
    }
    options
        .group_limit(40, 1 << 20)
        .small_group_limit(0)
        .segment_limit(20)
        .log_limit(20_000)
        .merge_share(100)
        .transaction_limit(700)
        .statement_timeout(Duration::from_secs(1_000_000))
}
