//! The same seed gives the same run, and a journal gives every state of it.

use std::path::Path;
use std::sync::Arc;

use super::super::{
    CrashChoice, FaultKind, FaultPlan, Generator, Journal, JournalCursor, Options, Simulation,
};
use super::{contents, create, durable, files, machine};
use crate::conformance::Steps;
use crate::{OpenMode, Step};

/// A run with files, tasks, clocks and random draws, under whatever faults.
fn churn(machine: &Simulation) {
    let environment = machine.environment();
    let files = Arc::clone(&environment.files);
    let handles: Vec<_> = (0..3)
        .map(|worker| {
            let tasks = Arc::clone(&environment.tasks);
            let environment = environment.clone();
            let mut left = 12;
            let steps = Steps(move || {
                let name = format!("/{}", environment.random.next_u64() % 5);
                let path = Path::new(&name);
                let files = &environment.files;
                let file = files
                    .open(path, OpenMode::CreateNew)
                    .or_else(|_| files.open(path, OpenMode::Write));
                if let Ok(file) = file {
                    let offset = environment.clock.monotonic_ns() % 9_000;
                    let _ = file.write_all_at(&[worker; 900], offset);
                    environment.tasks.pause();
                    let _ = file.sync_data();
                    let _ = contents(&*file);
                }
                match environment.random.next_u64() % 4 {
                    0 => drop(files.rename(path, Path::new("/0"))),
                    1 => drop(files.remove(path)),
                    2 => drop(files.sync_dir(Path::new("/"))),
                    _ => {}
                }
                left -= 1;
                if left == 0 { Step::Done } else { Step::Again }
            });
            tasks.spawn("worker", Box::new(steps))
        })
        .collect();
    for handle in handles {
        handle.join();
    }
    let _ = files.list(Path::new("/"));
    environment.tasks.parallel(5, &|_| {
        environment.random.next_u64();
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed: u64, faults: FaultPlan| {
        let machine = Simulation::new(
            seed,
            Options { faults, trace_lines: 10_000, record: true, ..Options::default() },
        );
        churn(&machine);
        let image = machine.crash_image(CrashChoice::Random(seed)).fingerprint();
        (machine.trace_hash(), machine.trace_lines(), image, machine.faults_fired())
    };
    let mut hashes = Vec::new();
    for seed in 0..40 {
        let plan = || FaultPlan::swarm(seed, FaultKind::ALL, 100_000);
        let (first, second) = (run(seed, plan()), run(seed, plan()));
        assert_eq!(first, second, "seed {seed}");
        assert!(first.1.len() > 100);
        hashes.push(first.0);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 40, "and another seed another run");
}

#[test]
fn recording_and_tracing_change_nothing() {
    let run = |record, trace_lines| {
        let machine = Simulation::new(9, Options { record, trace_lines, ..Options::default() });
        churn(&machine);
        machine.trace_hash()
    };
    assert_eq!(run(true, 100), run(false, 0));
}

/// The journal's cursor is, after every I/O, where the machine itself was.
#[test]
fn a_cursor_goes_through_every_state() {
    for seed in 0..10 {
        let faults = FaultPlan::swarm(seed, FaultKind::ALL, 50_000);
        let whole = Simulation::new(
            seed,
            Options { faults: faults.clone(), record: true, ..Options::default() },
        );
        churn(&whole);
        let journal = whole.journal().unwrap();
        assert_eq!(journal.io_count(), whole.io_count());
        let mut cursor = journal.cursor();
        for io in 0..=journal.io_count() {
            assert_eq!(cursor.position(), io);
            let crash_after_io = Some(io);
            let cut = Simulation::new(
                seed,
                Options { faults: faults.clone(), crash_after_io, ..Options::default() },
            );
            churn(&cut);
            assert_eq!(cursor.pending_count(), cut.pending_count(), "after {}", cursor.describe());
            for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll, CrashChoice::Random(io)] {
                let (a, b) = (cursor.crash_image(choice), cut.crash_image(choice));
                assert_eq!(a.fingerprint(), b.fingerprint(), "after {}", cursor.describe());
            }
            assert_eq!(cursor.advance(), io < journal.io_count());
        }
    }
}

#[test]
fn marks_say_what_was_acknowledged() {
    let machine = Simulation::new(1, Options { record: true, ..Options::default() });
    let file = create(&machine, "/a");
    machine.mark(10);
    file.write_all_at(b"x", 0).unwrap();
    file.sync_data().unwrap();
    machine.mark(20);
    machine.mark(21);
    let journal = machine.journal().unwrap();
    let values = |io| journal.marks_until(io).iter().map(|m| m.value).collect::<Vec<_>>();
    assert_eq!(values(0), [0; 0]);
    assert_eq!(values(1), [10]);
    assert_eq!(values(2), [10]);
    assert_eq!(values(3), [10, 20, 21]);
    assert_eq!(journal.marks().len(), 3);
    assert!(super::machine(1).journal().is_none(), "only on request");
}

#[test]
fn a_cursor_tells_what_happened() {
    let machine = Simulation::new(1, Options { record: true, ..Options::default() });
    let file = create(&machine, "/a");
    file.write_all_at(b"xyz", 7).unwrap();
    assert!(files(&machine).remove(Path::new("/none")).is_err());
    let journal = machine.journal().unwrap();
    let mut cursor = journal.cursor();
    assert!(cursor.advance() && cursor.changed());
    assert!(cursor.describe().contains("Create"), "{}", cursor.describe());
    assert!(cursor.advance() && cursor.changed());
    assert_eq!(cursor.describe(), "I/O 2: write file 1 3 bytes at 7");
    assert_eq!(cursor.pending()[1].to_string(), "write /a 3 at 7");
    assert!(cursor.advance() && !cursor.changed(), "a failed call changes nothing");
    assert!(!cursor.advance());
}

/// Crash, recover while recording, crash inside the recovery, and once more.
#[test]
fn crashes_nest() {
    fn recover(machine: &Simulation) {
        let files = files(machine);
        let file = files.open(Path::new("/a"), OpenMode::Write).unwrap();
        let len = file.len().unwrap();
        file.write_all_at(&[9; 3], len).unwrap();
        file.sync_data().unwrap();
    }
    fn descend(journal: &Journal, depth: u32, least: u64) -> u64 {
        let (mut cursor, mut images) = (journal.cursor(), 0);
        loop {
            let image = cursor.crash_image(CrashChoice::Random(cursor.position()));
            assert!(image.file_len("/a").unwrap() >= least);
            images += 1;
            if depth > 0 {
                let options = Options { record: true, ..Options::default() };
                let after = Simulation::from_image(&image, 3, options);
                recover(&after);
                images += descend(&after.journal().unwrap(), depth - 1, least);
            }
            if !cursor.advance() {
                return images;
            }
        }
    }
    let machine = machine(1);
    durable(&machine, "/a", &[1; 50]);
    let image = machine.crash_image(CrashChoice::KeepNone);
    let options = Options { record: true, ..Options::default() };
    let after = Simulation::from_image(&image, 2, options);
    recover(&after);
    assert_eq!(descend(&after.journal().unwrap(), 2, 50), 3 + 3 * (3 + 3 * 3));
}

#[test]
fn handles_can_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<Simulation>();
    check::<Journal>();
    check::<JournalCursor>();
    check::<crate::Environment>();
}

#[test]
fn the_generator_is_even() {
    let mut generator = Generator::new(1, 2);
    let mut counts = [0_u32; 10];
    for _ in 0..100_000 {
        counts[generator.index(10)] += 1;
    }
    assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    assert_eq!((generator.below(0), generator.below(1), generator.index(0)), (0, 0, 0));
    assert!(!generator.chance(0) && generator.chance(1_000_000));
    assert_ne!(Generator::new(1, 2).next_u64(), Generator::new(1, 3).next_u64());
    assert_ne!(Generator::new(1, 2).next_u64(), Generator::new(2, 2).next_u64());
}
