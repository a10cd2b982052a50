//! What a transaction found, and what it expects of entries, has to hold at its commit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;

use crate::fixture::hand_clock::HandClock;
use esker::{Database, ErrorKind, Options, Transaction, Ttl};

const START: i64 = 1_000_000_000_000;
const END: i64 = START + 10;
const LATER: i64 = START + 20;

fn database() -> (Database, Arc<HandClock>) {
    let clock = HandClock::new(START);
    let db = Options::new().environment(clock.environment()).memory().unwrap();
    db.bucket("b").unwrap().put_with("k", "1", Ttl::At(END)).unwrap();
    (db, clock)
}

fn conflicts(outcome: esker::Result<impl Sized>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
            true
        }
    }
}

/// It was put again with the end that had come, and gone at once, though the commit succeeded.
#[test]
fn an_entry_that_ended_before_the_commit_is_not_put_again_with_its_end() {
    let (db, clock) = database();
    let b = db.bucket("b").unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.bucket("b").unwrap();
    let (value, end) = within.get_with_expiry("k").unwrap().unwrap();
    assert_eq!((value.as_slice(), end), (&b"1"[..], Some(END)));
    within.put_with("k", "2", Ttl::At(END)).unwrap();
    clock.set(LATER);
    assert!(conflicts(transaction.commit()));
    // Begun again, it finds none.
    let mut attempts = 0;
    clock.set(LATER);
    db.transact(|transaction| {
        attempts += 1;
        let within = transaction.bucket("b")?;
        let end = within.get_with_expiry("k")?.and_then(|(_, end)| end);
        within.put_with("k", "3", end.map_or(Ttl::Never, Ttl::At))
    })
    .unwrap();
    assert_eq!((attempts, b.get_copy("k").unwrap().unwrap()), (1, b"3".to_vec()));
}

/// What has come of a key between a look at it and a later transaction.
type Step = fn(&Database, &HandClock);

fn expect(db: &Database, earlier: &Transaction, key: &str) -> esker::Result<u64> {
    let is_there = earlier.bucket("b")?.contains(key)?;
    let transaction = db.begin()?;
    transaction.bucket("b")?.expect_since(key, earlier.read_at(), is_there)?;
    let valid = transaction.validate();
    let done = transaction.commit();
    assert_eq!(valid.is_ok(), done.is_ok(), "the commit looks at the same");
    done
}

#[test]
fn an_entry_is_expected_to_be_the_one_that_it_was() {
    let steps: [(&str, Step, bool, bool); 8] = [
        ("nothing", |_, _| (), false, false),
        ("put", |db, _| db.bucket("b").unwrap().put("k", "1").unwrap(), true, false),
        ("other put", |db, _| db.bucket("b").unwrap().put("other", "1").unwrap(), false, false),
        ("removed", |db, _| assert!(db.bucket("b").unwrap().remove("k").unwrap()), true, false),
        ("expired", |_, clock| clock.set(LATER), true, false),
        ("cleared", |db, _| db.bucket("b").unwrap().clear().unwrap(), true, false),
        ("new", |db, _| db.bucket("b").unwrap().put("no", "1").unwrap(), false, true),
        (
            "come and gone",
            |db, _| {
                db.bucket("b").unwrap().put("no", "1").unwrap();
                db.bucket("b").unwrap().remove("no").unwrap();
            },
            false,
            true,
        ),
    ];
    for (name, step, of_there, of_missing) in steps {
        for (key, expected) in [("k", of_there), ("no", of_missing)] {
            let (db, clock) = database();
            let earlier = db.begin().unwrap();
            step(&db, &clock);
            assert_eq!(conflicts(expect(&db, &earlier, key)), expected, "{name}, {key}");
        }
    }
}

#[test]
fn what_is_expected_is_looked_at_by_the_commit_too() {
    for step in [0, 1] {
        let (db, clock) = database();
        let earlier = db.begin().unwrap();
        let transaction = db.begin().unwrap();
        let within = transaction.bucket("b").unwrap();
        within.expect_since("k", earlier.read_at(), true).unwrap();
        within.put("result", "1").unwrap();
        transaction.validate().unwrap();
        match step {
            0 => clock.set(LATER),
            _ => db.bucket("b").unwrap().put("k", "other").unwrap(),
        }
        assert!(conflicts(transaction.commit()));
        assert!(!db.bucket("b").unwrap().contains("result").unwrap());
    }
}
