//! What a crash may take of writes that did not wait for the disk, on the simulated clock.

#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use esker::{Bucket, Database, Durability, Options, PutOptions};
use esker_vfs::Event;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const AT_MOST: Duration = Duration::from_millis(20);

fn machine() -> Simulation {
    Simulation::new(11, SimOptions::default())
}

fn open(machine: &Simulation, durability: Durability) -> (Database, Bucket) {
    let options = Options::new().environment(machine.environment()).durability(durability);
    let db = options.open("db").unwrap();
    let bucket = db.bucket("b").unwrap();
    (db, bucket)
}

/// The keys that a power failure leaves, now.
fn left(machine: &Simulation, durability: Durability) -> Vec<Vec<u8>> {
    let image = machine.crash_image(CrashChoice::KeepNone);
    let machine = Simulation::from_image(&image, 12, SimOptions::default());
    let (_db, bucket) = open(&machine, durability);
    bucket.iter().unwrap().map(|entry| entry.unwrap().key().to_vec()).collect()
}

/// Lets tasks run for so long.
fn pass(machine: &Simulation, time: Duration) {
    let event = Event::new();
    machine.environment().tasks.wait_timeout(&event, event.generation(), time);
}

fn now_ns(machine: &Simulation) -> u64 {
    machine.environment().clock.monotonic_ns()
}

#[test]
fn a_crash_takes_no_more_than_the_window() {
    let (machine, durability) = (machine(), Durability::Async { at_most: AT_MOST });
    let (db, bucket) = open(&machine, durability);
    db.sync().unwrap();
    let mut returned = Vec::new();
    let mut lost_some = false;
    for n in 0..200u64 {
        let key = n.swap_bytes().to_le_bytes().to_vec();
        bucket.put(&key, "v").unwrap();
        assert!(bucket.contains(&key).unwrap(), "a write that returned is seen");
        returned.push((now_ns(&machine), key));
        pass(&machine, Duration::from_micros(n * 37 % 2_000));
        if n % 9 != 0 {
            continue;
        }
        let now = now_ns(&machine);
        let found = left(&machine, durability);
        let written: Vec<_> = returned.iter().map(|(_, key)| key.clone()).collect();
        assert!(written.starts_with(&found), "what is left is no prefix");
        lost_some |= found.len() < written.len();
        let old =
            returned.iter().filter(|(at, _)| now - at > u64::try_from(AT_MOST.as_nanos()).unwrap());
        assert!(found.len() >= old.count(), "{} of {} are left", found.len(), written.len());
    }
    assert!(lost_some, "nothing was ever at stake");
    pass(&machine, AT_MOST);
    assert_eq!(left(&machine, durability).len(), 200);
}

#[test]
fn a_write_waits_when_it_is_asked_to() {
    let (machine, durability) = (machine(), Durability::Async { at_most: AT_MOST });
    let (db, bucket) = open(&machine, durability);
    db.sync().unwrap();
    bucket.put("a", "v").unwrap();
    assert!(left(&machine, durability).is_empty());
    bucket.put_with("b", "v", PutOptions::new().sync(true)).unwrap();
    assert_eq!(left(&machine, durability), [b"a", b"b"], "and all before it");
    bucket.put("c", "v").unwrap();
    let mut batch = bucket.batch();
    batch.put(&bucket, "d", "v").unwrap().sync(true);
    batch.commit().unwrap();
    assert_eq!(left(&machine, durability).len(), 4);
    let long = vec![7; 100_000];
    bucket.put_with("e", &long, PutOptions::new().sync(true)).unwrap();
    assert_eq!(left(&machine, durability).len(), 5, "a value in a file of its own, too");
}

#[test]
fn a_write_does_not_wait_when_it_is_asked_not_to() {
    let machine = machine();
    let (db, bucket) = open(&machine, Durability::Sync);
    bucket.put("a", "v").unwrap();
    let other = db.bucket("other").unwrap();
    bucket.put_with("b", "v", PutOptions::new().sync(false)).unwrap();
    let mut batch = db.batch();
    batch.put(&bucket, "c", "v").unwrap().put(&other, "c", "v").unwrap().sync(false);
    batch.commit().unwrap();
    assert_eq!(bucket.len().unwrap(), 3, "it is seen at once");
    assert_eq!(left(&machine, Durability::Sync), [b"a"]);
    // Nobody else writes, and still it is durable soon.
    pass(&machine, Duration::from_millis(200));
    assert_eq!(left(&machine, Durability::Sync), [b"a", b"b", b"c"]);
    bucket.put_with("d", "v", PutOptions::new().sync(false)).unwrap();
    bucket.put("e", "v").unwrap();
    assert_eq!(left(&machine, Durability::Sync).len(), 5, "a later write takes it along");
}
