//! Events that are stored once, by column, and beside a stream that is cleared.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker::{DataType, Durability, ErrorKind, Options, Schema, Value};
use esker_format::schema::NewReference;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::Directory;
use crate::streams::{event, events, fields, is_sound, order, ready};

/// What a request says of its events: the row ids that it got, or why not.
fn told(outcomes: &[esker::Result<esker::EventId>]) -> Vec<Option<u64>> {
    outcomes.iter().map(|outcome| outcome.as_ref().ok().map(|id| id.row_id())).collect()
}

#[test]
fn events_of_a_producer_are_stored_once_and_in_order() {
    let dir = Directory::new("stream-producer");
    let db = Options::new().open(&dir.0).unwrap();
    db.create_table(
        "users",
        Schema::builder().field("id", DataType::I64).primary_key(["id"]).build().unwrap(),
    )
    .unwrap();
    db.table("users").unwrap().insert(&[1i64.into()]).unwrap();
    let refers = NewReference::new(["n"], "users").named("f");
    db.create_table("events", fields().stream("t", []).reference(refers).build().unwrap()).unwrap();
    let stream = db.stream("events").unwrap();
    let row = |n: i64| vec![Value::Timestamp(5), "x".into(), Value::Int(n)];
    let wrong = vec![Value::Null, "x".into(), Value::Null];
    let first = stream.producer("a", 3).unwrap();
    let e = first.append_from(1, &[row(1)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::SequenceGap, "{e}");
    assert!(e.to_string().contains("expected event 0, found 1"), "{e}");
    // Some are refused before the commit, and one by it: the others are one commit.
    let events = [row(1), wrong.clone(), row(2), row(1)];
    let outcomes = first.append_from(0, &events).unwrap();
    assert_eq!(
        told(&outcomes),
        [Some(1), None, None, Some(2)]
            .map(|id| id.map(|id: u64| { outcomes[0].as_ref().unwrap().row_id() + id - 1 }))
    );
    let again = first.append_from(0, &events).unwrap();
    assert_eq!(told(&again), told(&outcomes));
    assert_eq!(again[2].as_ref().unwrap_err().kind(), ErrorKind::ConstraintViolated);
    assert_eq!((order(&db).len(), first.next_seq().unwrap()), (2, 4));
    // Nothing but refused events moves the producer on as well.
    assert_eq!(told(&first.append_from(4, std::slice::from_ref(&wrong)).unwrap()), [None]);
    assert_eq!(told(&first.append_from(5, &[row(2)]).unwrap()), [None]);
    let older = first.append_from(0, &events).unwrap_err();
    assert_eq!(older.kind(), ErrorKind::AlreadyExists, "{older}");
    let overlaps = first.append_from(5, &[row(1), row(1)]).unwrap_err();
    assert_eq!(overlaps.kind(), ErrorKind::SequenceGap, "{overlaps}");
    let second = stream.producer("a", 4).unwrap();
    assert!(second.append_from(6, &[row(1)]).is_err(), "a new epoch begins with 0");
    second.append_from(0, &[row(1)]).unwrap();
    let fenced = first.append_from(6, &[row(1)]).unwrap_err();
    assert_eq!(fenced.kind(), ErrorKind::Fenced, "{fenced}");
    assert_eq!(stream.producer("b", 0).unwrap().next_seq().unwrap(), 0);
    is_sound(&db);
    drop((first, second, stream, db));
    let db = Options::new().open(&dir.0).unwrap();
    let second = db.stream("events").unwrap().producer("a", 4).unwrap();
    assert_eq!(second.next_seq().unwrap(), 1);
    second.append_from(0, &[row(1)]).unwrap();
    assert_eq!(order(&db).len(), 3);
    assert!(db.stream("events").unwrap().producer("", 0).is_err());
}

/// Requests of one producer that come at once: each event is there once, in the order of numbers.
#[test]
fn a_producer_that_sends_twice_at_once_is_stored_once() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let producer = stream.producer("a", 0).unwrap();
            scope.spawn(move || {
                for n in 0..50u64 {
                    loop {
                        match producer.append_from(n, &[event(1, &format!("{n:03}"))]) {
                            Ok(_) => break,
                            Err(e) if e.kind() == ErrorKind::AlreadyExists => break,
                            Err(e) => assert_eq!(e.kind(), ErrorKind::SequenceGap, "{e}"),
                        }
                    }
                }
            });
        }
    });
    let expected: Vec<_> = (0..50).map(|n| format!("{n:03}")).collect();
    assert_eq!(order(&db), expected);
}

/// After a crash at any moment, events and what is kept of their producer are both there, or
/// neither; and a producer that goes on where it has to has every event stored once.
#[test]
fn a_crash_leaves_a_producer_where_its_events_end() {
    const REQUESTS: u64 = 6;
    let machine = Simulation::new(11, SimOptions { record: true, ..SimOptions::default() });
    let open = |machine: &Simulation| Options::new().environment(machine.environment()).open("db");
    let said = |seq: u64, count: u64| -> Vec<Vec<Value>> {
        (seq..seq + count).map(|n| event(n as i64, &format!("{n:03}"))).collect()
    };
    let db = open(&machine).unwrap();
    db.create_table("events", events()).unwrap();
    let mut cursor = machine.journal().unwrap().cursor();
    while cursor.advance() {}
    let producer = db.stream("events").unwrap().producer("a", 1).unwrap();
    let mut seq = 0;
    for request in 0..REQUESTS {
        producer.append_from(seq, &said(seq, request + 1)).unwrap();
        seq += request + 1;
    }
    drop((producer, db));
    let mut journal = machine.journal().unwrap().cursor();
    let mut seen = std::collections::BTreeSet::new();
    loop {
        for choice in [CrashChoice::Random(1), CrashChoice::Random(2), CrashChoice::Subset(0)] {
            let image = journal.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            let db = open(&after).unwrap();
            let Ok(stream) = db.stream("events") else { continue };
            let producer = stream.producer("a", 1).unwrap();
            let there = order(&db).len() as u64;
            assert_eq!(producer.next_seq().unwrap(), there, "{}", journal.describe());
            seen.insert(there);
            let mut at = 0;
            for request in 0..REQUESTS {
                let count = request + 1;
                match producer.append_from(at, &said(at, count)) {
                    Ok(outcomes) => assert!(outcomes.iter().all(Result::is_ok)),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}"),
                }
                at += count;
            }
            let expected: Vec<_> = (0..seq).map(|n| format!("{n:03}")).collect();
            assert_eq!(order(&db), expected, "{}", journal.describe());
        }
        if !journal.advance() {
            break;
        }
    }
    assert_eq!(seen, [0, 1, 3, 6, 10, 15, 21].into());
}

/// An error of events that are all or none names the one that the commit has refused.
#[test]
fn events_that_are_all_or_none_name_the_one_that_is_refused() {
    let db = Options::new().memory().unwrap();
    db.create_table(
        "users",
        Schema::builder().field("id", DataType::I64).primary_key(["id"]).build().unwrap(),
    )
    .unwrap();
    db.table("users").unwrap().insert(&[1i64.into()]).unwrap();
    let refers = NewReference::new(["n"], "users").named("f");
    db.create_table("events", fields().stream("t", []).reference(refers).build().unwrap()).unwrap();
    let stream = db.stream("events").unwrap();
    let rows: Vec<Vec<Value>> =
        [1, 1, 1, 2, 1].map(|n| vec![Value::Timestamp(5), "x".into(), Value::Int(n)]).into();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let lead = stream.submit((ready(&stream.schema(), &rows), true), None, move |appended| {
        noted.lock().unwrap().extend(appended.outcomes);
    });
    drop(lead);
    let seen = seen.lock().unwrap();
    let message = seen[0].as_ref().unwrap_err().to_string();
    assert!(seen.len() == 5 && message.starts_with("event 4: "), "{message}");
    assert_eq!(order(&db).len(), 0);
}

/// Columns are one commit, unless some are refused; more than a commit takes are several.
#[test]
fn events_by_column_have_outcomes_of_their_own() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    let schema = stream.schema();
    let columns = |rows: std::ops::Range<i64>| {
        let mut batch = esker::Batch::empty(&schema);
        for n in rows {
            batch.push_row(&schema, &[Value::Timestamp(n * 1_000), "x".into(), n.into()]).unwrap();
        }
        batch
    };
    let appended = stream.append_columns(&schema, columns(0..9_000));
    let ids: Vec<_> = appended.events.iter().map(|event| *event.as_ref().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(stream.get(ids[5_000]).unwrap().unwrap().get("n"), Some(&Value::Int(5_000)));
    let users = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build().unwrap();
    let users = db.create_table("users", users).unwrap();
    for id in [0, 1, 2, 4, 5] {
        users.insert(&[Value::Int(id)]).unwrap();
    }
    let refers = NewReference::new(["n"], "users").named("f");
    let refers = fields().stream("t", []).reference(refers).build().unwrap();
    db.create_table("others", refers).unwrap();
    let others = db.stream("others").unwrap();
    let appended = others.append_columns(&others.schema(), columns(0..6));
    let refused: Vec<_> = appended.events.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, false, false, true, false, false]);
    assert_eq!(db.table("others").unwrap().count().unwrap(), 5);
}

/// A stream is there while it is cleared: each event is stored, before it or behind.
#[test]
fn events_beside_a_truncate_are_stored() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let (stream, is_over) = (db.stream("events").unwrap(), AtomicBool::new(false));
    let counts: [AtomicU64; 3] = Default::default();
    let append = |count: &AtomicU64| {
        while !is_over.load(Ordering::Relaxed) {
            for outcome in stream.append_many(&[event(1, "a"), event(2, "b")]) {
                outcome.unwrap();
            }
            db.stream("events").unwrap().append(&event(3, "c")).unwrap();
            let columns = esker::Batch::empty(&stream.schema());
            assert!(stream.append_columns(&stream.schema(), columns).events.is_empty());
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let append = &append;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            counts.iter().map(|count| scope.spawn(move || append(count))).collect();
        let mut truncated = 0;
        // Where an append fails its count stays, and joining tells.
        while truncated < 200
            || (truncated < 1_000_000 && counts.iter().any(|c| c.load(Ordering::Relaxed) == 0))
        {
            db.truncate_table("events").unwrap();
            truncated += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) > 0), "{counts:?}");
    });
    is_sound(&db);
}

/// A producer does not stand still because its stream was cleared; a new one begins at 0.
#[test]
fn a_producer_goes_on_in_a_stream_that_was_cleared() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    let producer = stream.producer("a", 0).unwrap();
    producer.append_from(0, &[event(1, "a"), event(2, "b")]).unwrap();
    db.truncate_table("events").unwrap();
    assert!(producer.append_from(3, &[event(3, "c")]).is_err());
    producer.append_from(2, &[event(3, "c")]).unwrap();
    db.truncate_table("events").unwrap();
    // A request once more was stored before, unless it is the first one.
    producer.append_from(2, &[event(3, "c")]).unwrap();
    assert_eq!(order(&db), [""; 0]);
    producer.append_from(0, &[event(1, "a")]).unwrap();
    producer.append_from(0, &[event(1, "a")]).unwrap();
    producer.append_from(1, &[event(1, "b")]).unwrap();
    assert_eq!(order(&db), ["a", "b"]);
    drop((producer, stream));
    db.drop_table("events").unwrap();
    db.create_table("events", events()).unwrap();
    let producer = db.stream("events").unwrap().producer("a", 0).unwrap();
    producer.append_from(0, &[event(1, "new")]).unwrap();
    assert_eq!(order(&db), ["new"]);
}

/// Asynchronous commits wait for the disk before a crash could take more than 8 MiB.
#[test]
fn what_a_crash_may_take_is_bounded() {
    let dir = Directory::new("stream-unsynced");
    let late = Durability::Async { at_most: Duration::from_secs(3_600) };
    let db = Options::new().durability(late).open(&dir.0).unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    for n in 0..400 {
        stream.append(&event(n, &"x".repeat(50_000))).unwrap();
    }
    assert!(db.is_on_disk(db.published_commit() - 170));
    assert!(!db.is_on_disk(db.published_commit()), "nobody waits for a disk that is quick");
}

#[test]
fn events_that_wait_are_counted() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", events()).unwrap();
    let stream = db.stream("events").unwrap();
    let lead =
        stream.submit((ready(&stream.schema(), &[event(1, "abc")]), false), None, drop).unwrap();
    let (waiting, taken) = stream.backlog();
    assert!(waiting > 3 && taken == 0, "{waiting} {taken}");
    lead.run();
    assert_eq!(stream.backlog(), (0, waiting));
}
