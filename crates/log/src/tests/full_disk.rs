//! The disk is full from every call on: the log can be opened, takes what frees space, and goes on
//! once there is space.

use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use super::history::{Driver, Frame, Model};
use super::*;
use crate::{ErrorKind, Purpose, RESERVE_FILE};

const RESERVE_BYTES: u64 = 16 << 10;

fn driver(machine: &Simulation, seed: u64) -> Driver {
    let mut driver = Driver::new(machine.clone(), seed, Model::default());
    driver.reserve_bytes = RESERVE_BYTES;
    driver
}

/// One more frame that is on the disk.
fn commit(driver: &mut Driver, purpose: Purpose) -> crate::Result<()> {
    driver.append_frame(purpose, Frame { kind: kind::ROWS, payload: vec![7; 100] })?;
    driver.wait()
}

fn adds(driver: &mut Driver) -> crate::Result<()> {
    commit(driver, Purpose::Adds)
}

fn frees(driver: &mut Driver) -> crate::Result<()> {
    commit(driver, Purpose::Frees)
}

/// What goes on while the disk fills up.
fn work(driver: &mut Driver) {
    type Operation = fn(&mut Driver) -> crate::Result<()>;
    let rotate: Operation = |driver| driver.log().rotate();
    let add: Operation = adds;
    let part = [add, rotate, add, Driver::checkpoint, Driver::reopen];
    for operation in part.into_iter().chain([add; 150]).chain(part).chain([add; 3]) {
        if let Err(error) = operation(driver) {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            if driver.log.is_none() {
                driver.reopen().unwrap();
            }
        }
    }
}

/// Fills the disk; returns what it holds.
fn fill(driver: &mut Driver) -> u64 {
    let capacity_bytes = driver.machine.used_bytes();
    driver.machine.set_capacity_bytes(capacity_bytes);
    while adds(driver).is_ok() {}
    assert_eq!(adds(driver).unwrap_err().kind(), ErrorKind::NoSpace);
    capacity_bytes
}

/// Opens again and again, and commits what frees space.
fn empty(driver: &mut Driver) {
    for round in 0..4 {
        frees(driver).unwrap();
        if round == 2 {
            driver.close().unwrap();
        }
        driver.reopen().unwrap();
    }
    frees(driver).unwrap();
}

#[test]
fn a_full_disk_can_be_emptied_from_every_call_on() {
    for full_after in 0.. {
        let machine = Simulation::new(full_after, SimOptions::default());
        machine.fill_disk_after(full_after);
        let mut driver = driver(&machine, full_after);
        // Before the reserve is there nothing is promised.
        let created = driver.create();
        if created.is_err() || !driver.log().fill_reserve(RESERVE_BYTES).unwrap() {
            continue;
        }
        work(&mut driver);
        let is_over = machine.call_count() < full_after;
        empty(&mut driver);
        machine.set_capacity_bytes(u64::MAX);
        assert!(driver.log().fill_reserve(RESERVE_BYTES).unwrap());
        adds(&mut driver).unwrap();
        fill(&mut driver);
        empty(&mut driver);
        for choice in (0..3).map(CrashChoice::Random).chain([CrashChoice::KeepNone]) {
            let image = machine.crash_image(choice);
            let after = Simulation::from_image(&image, full_after, SimOptions::default());
            let context = || format!("full after call {full_after}");
            driver.model().check(&after.environment(), &context);
        }
        if is_over {
            return;
        }
    }
}

/// The process dies at every I/O of an open that takes the reserve file, and of the next one.
#[test]
fn a_crash_while_the_reserve_is_taken_loses_nothing() {
    for ios in 0..60 {
        let machine = Simulation::new(ios, SimOptions { record: true, ..SimOptions::default() });
        let mut driver = driver(&machine, ios);
        driver.create().unwrap();
        let capacity_bytes = fill(&mut driver);
        for _ in 0..2 {
            machine.crash_after_io(Some(machine.io_count() + ios));
            if driver.reopen().is_err() {
                driver.log = None;
            }
            machine.crash_after_io(None);
        }
        for choice in (0..8).map(CrashChoice::Random).chain([CrashChoice::KeepNone]) {
            let image = machine.crash_image(choice);
            let after = Simulation::from_image(&image, ios, SimOptions::default());
            after.set_capacity_bytes(capacity_bytes);
            let mut again = Driver::new(after, ios, driver.model());
            again.reserve_bytes = RESERVE_BYTES;
            again.reopen().unwrap();
            frees(&mut again).unwrap();
        }
    }
}

#[test]
fn what_adds_data_leaves_the_reserve_alone() {
    let machine = Simulation::new(1, SimOptions::default());
    let mut driver = driver(&machine, 1);
    driver.create().unwrap();
    fill(&mut driver);
    // Half of the reserve, for frames of 148 bytes and more.
    let frames = (0..).take_while(|_| frees(&mut driver).is_ok()).count();
    assert!((30..70).contains(&frames), "{frames} frames");
    let refused = frees(&mut driver).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    assert!(refused.to_string().contains("delete fewer rows at once"), "{refused}");
    let large = Frame { kind: kind::ROWS, payload: vec![7; 100_000] };
    assert_eq!(driver.append_frame(Purpose::Frees, large).unwrap_err().kind(), ErrorKind::NoSpace);
    // Nothing was lost, and closing succeeds without space.
    driver.log().close().unwrap();
}

#[test]
fn a_reserve_file_that_is_short_or_damaged_is_filled_again() {
    let machine = Simulation::new(3, SimOptions::default());
    let mut driver = driver(&machine, 3);
    driver.create().unwrap();
    let files = machine.environment().files;
    let path = Path::new("db").join(RESERVE_FILE);
    let file = files.open(&path, OpenMode::Write).unwrap();
    file.set_len(100).unwrap();
    file.write_all_at(&[0xff; 100], 0).unwrap();
    driver.reopen().unwrap();
    assert_eq!(file.len().unwrap(), RESERVE_BYTES);
    file.write_all_at(&[0xff; 16 << 10], 0).unwrap();
    fill(&mut driver);
    empty(&mut driver);
    // An older database has none.
    machine.set_capacity_bytes(u64::MAX);
    files.remove(&path).unwrap();
    driver.reopen().unwrap();
    assert!(files.exists(&path).unwrap());
    fill(&mut driver);
    empty(&mut driver);
}

#[test]
fn a_reserve_that_was_a_log_file_is_cleared() {
    let machine = Simulation::new(4, SimOptions::default());
    let mut driver = driver(&machine, 4);
    driver.create().unwrap();
    (0..9).for_each(|_| adds(&mut driver).unwrap());
    assert!(driver.log().release_reserve().unwrap());
    driver.log().rotate().unwrap();
    adds(&mut driver).unwrap();
    let durable = driver.log().durable();
    driver.log().remove_through(durable).unwrap();
    let file = machine.environment().files;
    let file = file.open(&Path::new("db").join(RESERVE_FILE), OpenMode::Read).unwrap();
    let bytes = || {
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let len = bytes().len();
    assert!(bytes().contains(&7), "the rows of the log file");
    driver.log().clear_reserve().unwrap();
    assert_eq!(bytes(), vec![0; len]);
    adds(&mut driver).unwrap();
}
