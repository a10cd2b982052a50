//! Streams that store an event once which comes again (`dedupe`).

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::collections::BTreeSet;

use esker::{Batch, Database, ErrorKind, EventId, Options, Schema, Value};
use esker_format::schema::StreamOption;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::Directory;
use crate::streams::{event, fields, is_sound, order, ready};

const MINUTE: i64 = 60_000_000;

/// A stream whose events are the same by `what` within a minute.
fn schema() -> Schema {
    let dedupe = StreamOption::read("dedupe", Some("what within 1 minute")).unwrap();
    fields().stream("t", [dedupe]).build().unwrap()
}

fn append(db: &Database, t: i64, what: &str) -> EventId {
    db.stream("events").unwrap().append(&event(t, what)).unwrap()
}

#[test]
fn an_event_that_comes_again_is_told_its_id() {
    let dir = Directory::new("stream-dedupe");
    let open = || Options::new().open(&dir.0).unwrap();
    let db = open();
    db.create_table("events", schema()).unwrap();
    let first = append(&db, 0, "a");
    assert_eq!(append(&db, 0, "a"), first);
    assert_eq!(append(&db, MINUTE, "a"), first, "as far as it is said");
    assert_eq!(append(&db, -MINUTE, "a"), first);
    let later = append(&db, MINUTE + 1, "a");
    let earlier = append(&db, -MINUTE - 1, "a");
    assert!(later != first && earlier != first);
    // Between two of them, it is one of these.
    assert!([later, first].contains(&append(&db, 5, "a")));
    append(&db, 0, "b");
    assert_eq!(order(&db), ["a", "a", "a", "b"]);
    drop(db);
    // What is known of the stream follows from its events.
    let db = open();
    assert_eq!(append(&db, 0, "b").row_id(), 4);
    assert_eq!(append(&db, -MINUTE - 1, "a"), earlier);
    append(&db, 0, "c");
    assert_eq!(order(&db), ["a", "a", "a", "b", "c"]);
    is_sound(&db);
}

/// Events that are in segments, were inserted by statements, were removed, or have no value.
#[test]
fn whatever_is_there_is_known_and_what_is_gone_is_not() {
    let dir = Directory::new("stream-dedupe-kinds");
    let db = Options::new().open(&dir.0).unwrap();
    let dedupe = StreamOption::read("dedupe", Some("n within 1 minute")).unwrap();
    db.create_table("events", fields().stream("t", [dedupe]).build().unwrap()).unwrap();
    let stream = db.stream("events").unwrap();
    let row = |t: i64, n: Value| vec![Value::Timestamp(t), "x".into(), n];
    let sealed = stream.append(&row(1, 7i64.into())).unwrap();
    db.checkpoint().unwrap();
    db.compact(true, &mut |_, _| ()).unwrap();
    assert_eq!(stream.append(&row(2, 7i64.into())).unwrap(), sealed);
    db.table("events").unwrap().insert(&row(3, 8i64.into())).unwrap();
    let inserted = stream.append(&row(4, 8i64.into())).unwrap();
    assert!(inserted.is_at(3), "{inserted}");
    assert!(stream.delete(sealed).unwrap());
    let again = stream.append(&row(2, 7i64.into())).unwrap();
    assert_ne!(again, sealed);
    let nothing = || stream.append(&row(1, Value::Null)).unwrap();
    assert_ne!(nothing(), nothing());
    let changed =
        db.table("events").unwrap().update(&[again.row_id().into()], &[("n", 9i64.into())]);
    let message = changed.unwrap_err().to_string();
    assert!(message.contains("is the dedupe value of an event"), "{message}");
    stream.delete_before(10).unwrap();
    assert_eq!(order(&db).len(), 0);
    assert_ne!(stream.append(&row(2, 7i64.into())).unwrap(), again);
    is_sound(&db);
}

#[test]
fn events_of_one_request_are_told_of_each_other() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", schema()).unwrap();
    let stream = db.stream("events").unwrap();
    let wrong = vec![Value::Null, "a".into(), Value::Null];
    let rows = [event(0, "a"), event(1, "b"), event(2, "a"), wrong, event(3, "b"), event(4, "c")];
    let ids: Vec<_> =
        stream.append_many(&rows).into_iter().map(|id| id.ok().map(EventId::row_id)).collect();
    assert_eq!(ids, [Some(1), Some(2), Some(1), None, Some(2), Some(3)]);
    // All or none: what is there counts as done.
    let schema = stream.schema();
    let done = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&done);
    let rows = [event(9, "d"), event(9, "a"), event(9, "d")];
    drop(stream.submit((ready(&schema, &rows), true), None, move |appended| {
        noted.lock().unwrap().extend(appended.outcomes);
    }));
    let done = done.lock().unwrap();
    assert_eq!(done[0].as_ref().ok(), Some(&4));
    let duplicate = |at: usize| match done[at].as_ref().unwrap_err().kind() {
        ErrorKind::Duplicate(id) => id.row_id(),
        kind => panic!("{kind:?}"),
    };
    assert_eq!((duplicate(1), duplicate(2)), (1, 4));
    // By column, and of a producer, whose numbers go on.
    let mut batch = Batch::empty(&schema);
    for what in ["e", "a", "e", "f"] {
        batch.push_row(&schema, &event(9, what)).unwrap();
    }
    let told = stream.append_columns(&schema, batch).events;
    let told: Vec<_> = told
        .iter()
        .map(|event| match event {
            Ok(id) => (id.row_id(), false),
            Err(e) => match e.kind() {
                ErrorKind::Duplicate(id) => (id.row_id(), true),
                kind => panic!("{kind:?}"),
            },
        })
        .collect();
    assert_eq!(told, [(5, false), (1, true), (5, true), (6, false)]);
    let producer = stream.producer("p", 1).unwrap();
    let rows = [event(9, "f"), event(9, "g"), event(9, "g")];
    let ids = |told: Vec<esker::Result<EventId>>| -> Vec<u64> {
        told.into_iter().map(|id| id.unwrap().row_id()).collect()
    };
    assert_eq!(ids(producer.append_from(0, &rows).unwrap()), [6, 7, 7]);
    assert_eq!(ids(producer.append_from(0, &rows).unwrap()), [6, 7, 7]);
    assert_eq!(producer.next_seq().unwrap(), 3);
    assert_eq!(order(&db), ["a", "b", "c", "d", "e", "f", "g"]);
}

/// Senders that all send the same events, alone and in lists, and by column.
#[test]
fn senders_beside_each_other_store_each_event_once() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", schema()).unwrap();
    let stream = db.stream("events").unwrap();
    let schema = stream.schema();
    let what = |n: i64| format!("{n:03}");
    std::thread::scope(|scope| {
        for sender in 0..4i64 {
            let (stream, schema) = (stream.clone(), schema.clone());
            scope.spawn(move || {
                for start in (0..200).step_by(10) {
                    let start = if sender % 2 == 0 { start } else { 190 - start };
                    let rows: Vec<_> = (start..start + 10).map(|n| event(n, &what(n))).collect();
                    match sender {
                        0 => rows.iter().for_each(|row| {
                            stream.append(row).unwrap();
                        }),
                        1 | 2 => stream.append_many(&rows).into_iter().for_each(|id| {
                            id.unwrap();
                        }),
                        _ => {
                            let mut batch = Batch::empty(&schema);
                            rows.iter().for_each(|row| batch.push_row(&schema, row).unwrap());
                            drop(stream.append_columns(&schema, batch));
                        }
                    }
                }
            });
        }
    });
    let mut stored = order(&db);
    stored.sort();
    assert_eq!(stored, (0..200).map(what).collect::<Vec<_>>());
}

/// A crash at any moment leaves what was answered, and a sender that sends all again has each
/// event there once.
#[test]
fn after_a_crash_events_that_come_again_are_stored_once() {
    let machine = Simulation::new(11, SimOptions { record: true, ..SimOptions::default() });
    let open = |machine: &Simulation| Options::new().environment(machine.environment()).open("db");
    let db = open(&machine).unwrap();
    db.create_table("events", schema()).unwrap();
    let mut cursor = machine.journal().unwrap().cursor();
    while cursor.advance() {}
    let all: Vec<_> = (0..12).map(|n| (i64::from(n) * MINUTE / 3, format!("{:02}", n))).collect();
    for (t, what) in &all {
        append(&db, *t, what);
        append(&db, *t + 1, what);
        if what == "06" {
            db.checkpoint().unwrap();
        }
    }
    drop(db);
    let mut journal = machine.journal().unwrap().cursor();
    let mut seen = BTreeSet::new();
    loop {
        for choice in [CrashChoice::Random(1), CrashChoice::Subset(0)] {
            let image = journal.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            let db = open(&after).unwrap();
            if db.stream("events").is_err() {
                continue;
            }
            seen.insert(order(&db).len());
            for (t, what) in &all {
                append(&db, *t, what);
            }
            let expected: Vec<_> = all.iter().map(|(_, what)| what.clone()).collect();
            assert_eq!(order(&db), expected, "{}", journal.describe());
        }
        if !journal.advance() {
            break;
        }
    }
    assert_eq!(seen, (0..=12).collect());
}

#[test]
fn what_is_stored_once_may_be_said_and_taken_back() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", fields().stream("t", []).build().unwrap()).unwrap();
    append(&db, 0, "a");
    append(&db, 0, "a");
    let set = |value: Option<&str>| {
        let option = StreamOption::read("dedupe", value).unwrap();
        db.alter_table("events", &[esker::Alteration::SetStream(option)])
    };
    set(Some("what within 1 minute")).unwrap();
    append(&db, 0, "a");
    set(Some("what within 1 second")).unwrap();
    append(&db, MINUTE / 2, "a");
    assert_eq!(order(&db).len(), 3);
    let message = set(Some("nothing within 1 second")).unwrap_err().to_string();
    assert!(message.contains("nothing"), "{message}");
    let dropped = db.alter_table("events", &[esker::Alteration::DropField("what".into())]);
    let message = dropped.unwrap_err().to_string();
    assert!(message.contains("RESET (dedupe) ends that"), "{message}");
    set(None).unwrap();
    append(&db, 0, "a");
    assert_eq!(order(&db).len(), 4);
}

/// Alterations change what is there, and a truncation makes another table of the stream.
#[test]
fn what_is_known_follows_alterations_and_truncations() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", schema()).unwrap();
    let stream = db.stream("events").unwrap();
    let first = append(&db, 0, "a");
    let set = |value: Option<&str>| {
        let option = StreamOption::read("dedupe", value).unwrap();
        db.alter_table("events", &[esker::Alteration::SetStream(option)]).unwrap();
    };
    set(None);
    let events = db.table("events").unwrap();
    events.update(&[first.row_id().into()], &[("what", "b".into())]).unwrap();
    set(Some("what within 1 minute"));
    assert_eq!(append(&db, 0, "b"), first, "by its value of now");
    assert_ne!(append(&db, 0, "a"), first);
    // A handle of before, and one of after.
    db.truncate_table("events").unwrap();
    let old = stream.append(&event(0, "a")).unwrap();
    assert_eq!(append(&db, 1, "a"), old);
    let new = append(&db, 0, "c");
    assert_eq!(stream.append(&event(1, "c")).unwrap(), new);
    assert_eq!(order(&db), ["a", "c"]);
}

/// Rows that others insert may all have one value: they are found, and cost no more than others.
#[test]
fn many_rows_of_one_value_are_found() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", schema()).unwrap();
    let rows: Vec<_> = (0..20_000).map(|n| event(n, "same")).collect();
    db.table("events").unwrap().insert_many(&rows).unwrap();
    let id = append(&db, 20_000 + MINUTE - 1, "same");
    assert!(id.is_at(19_999), "only the last is near: {id}");
    assert_ne!(append(&db, 20_000 + MINUTE, "same"), id, "none is near");
    assert_eq!(order(&db).len(), 20_001);
}

/// Events of many times at once, and parts of requests that are there, in the order in which they
/// came.
#[test]
fn many_spans_and_mixed_requests_keep_their_order() {
    let db = Options::new().memory().unwrap();
    db.create_table("events", schema()).unwrap();
    let stream = db.stream("events").unwrap();
    let far: Vec<_> = (0..500).map(|n| event(n * 10 * MINUTE, "x")).collect();
    for _ in 0..2 {
        assert!(stream.append_many(&far).iter().all(Result::is_ok));
    }
    assert_eq!(order(&db).len(), 500);
    let schema = stream.schema();
    let mut leads = Vec::new();
    for rows in [[event(0, "x"), event(1, "first")], [event(1, "second"), event(1, "third")]] {
        leads.extend(stream.submit((ready(&schema, &rows), false), None, |_| ()));
    }
    drop(leads);
    assert_eq!(order(&db)[500..], ["first", "second", "third"]);
}
