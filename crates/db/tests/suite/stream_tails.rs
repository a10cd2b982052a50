//! Tails of streams: each event once, in the order of the commits, and none that a crash can take
//! back; whatever else is written, and wherever a tail goes on.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker::{
    Alteration, DataType, Database, Durability, ErrorKind, EventId, ExportQuery, Options, Row,
    Schema, Stream, Tail, TailBatch, TailFrom, Value,
};
use esker_query::model::Expr;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::Directory;

const NO_WAIT: Duration = Duration::ZERO;

fn stream_in(db: &Database) -> Stream {
    let schema = Schema::builder().field("t", DataType::Timestamp).nullable("n", DataType::I64);
    db.create_table("events", schema.stream("t", []).build().unwrap()).unwrap();
    db.stream("events").unwrap()
}

fn event(t: i64, n: i64) -> Vec<Value> {
    vec![Value::Timestamp(t), Value::Int(n)]
}

fn told(tail: &mut Tail, limit: usize, wait: Duration) -> Vec<(EventId, Row)> {
    match tail.next_batch(limit, wait).unwrap() {
        TailBatch::Events(events) => events,
        other => panic!("{other:?}"),
    }
}

/// All that there is, in batches of so many.
fn drained(tail: &mut Tail, limit: usize) -> Vec<i64> {
    let mut all = Vec::new();
    loop {
        let events = told(tail, limit, NO_WAIT);
        assert!(events.len() <= limit);
        if events.is_empty() && tail.is_at_end() {
            return all;
        }
        all.extend(events.iter().map(|(_, row)| number(row)));
    }
}

fn number(row: &Row) -> i64 {
    match row.get("n") {
        Some(Value::Int(n)) => *n,
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_of_every_way_are_told_once_in_the_order_of_their_commits() {
    let dir = Directory::new("tail-ways");
    let db = Options::new().open(&dir.0).unwrap();
    let stream = stream_in(&db);
    let table = db.table("events").unwrap();
    let mut tail = stream.tail(TailFrom::Start, None).unwrap();
    // A transaction that began first and ends last.
    let late = db.begin().unwrap();
    late.table("events").unwrap().insert(&event(1, 100)).unwrap();
    let given_up = db.begin().unwrap();
    given_up.table("events").unwrap().insert(&event(1, -1)).unwrap();
    let mut load = table.load().unwrap();
    load.push_row(&event(9, 50)).unwrap();
    stream.append(&event(5, 0)).unwrap();
    stream.append_many(&[event(3, 1), event(9, 2)]);
    assert_eq!(drained(&mut tail, 2), [0, 1, 2]);
    table.insert_many(&(3..40).map(|n| event(40 - n, n)).collect::<Vec<_>>()).unwrap();
    given_up.rollback();
    db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(drained(&mut tail, 5), (3..40).collect::<Vec<_>>());
    load.finish().unwrap();
    late.commit().unwrap();
    stream.append(&event(2, 101)).unwrap();
    assert_eq!(drained(&mut tail, 1), [50, 100, 101]);
    db.compact(false, &mut |_, _| {}).unwrap();
    assert!(drained(&mut tail, 1).is_empty());
    // From every place on.
    let mut all = stream.tail(TailFrom::Start, None).unwrap();
    let all = told(&mut all, 1_000, NO_WAIT);
    for (at, (id, _)) in all.iter().enumerate() {
        let mut tail = stream.tail(id.to_string().parse().unwrap(), None).unwrap();
        let rest: Vec<i64> = all[at + 1..].iter().map(|(_, row)| number(row)).collect();
        assert_eq!(drained(&mut tail, 7), rest);
        assert_eq!(tail.position(), all.last().unwrap().0.row_id());
    }
    drop(db);
}

#[test]
fn changed_events_are_told_as_they_are_and_removed_ones_are_not() {
    let dir = Directory::new("tail-changes");
    let db = Options::new().open(&dir.0).unwrap();
    let stream = stream_in(&db);
    let table = db.table("events").unwrap();
    // Two segments, and a group.
    for some in [0..100, 100..200] {
        let mut load = table.load().unwrap();
        some.for_each(|n| load.push_row(&event(n, n)).unwrap());
        load.finish().unwrap();
    }
    assert!((200..300).all(|n| stream.append(&event(n, n)).is_ok()));
    let mut all = stream.tail(TailFrom::Start, None).unwrap();
    let ids: Vec<EventId> = told(&mut all, 300, NO_WAIT).into_iter().map(|(id, _)| id).collect();
    let key = |at: usize| [Value::Uint(ids[at].row_id())];
    let mut behind = stream.tail(TailFrom::After(ids[9].row_id()), None).unwrap();
    // In the group, in a segment, and in both: a version lies behind what came after its event.
    for (round, is_sealed) in [(0usize, false), (1, true), (2, false), (3, true)] {
        for at in (round..300).step_by(7) {
            table.update(&key(at), &[("n", Value::Int(-1 - i64::try_from(at).unwrap()))]).unwrap();
        }
        for at in (round..300).step_by(11) {
            stream.delete(ids[at]).unwrap();
        }
        if is_sealed {
            db.compact(false, &mut |_, _| {}).unwrap();
        }
    }
    let mut expected = Vec::new();
    for (at, id) in ids.iter().enumerate().skip(10) {
        if let Some(row) = stream.get(*id).unwrap() {
            let n = number(&row);
            assert!(n == i64::try_from(at).unwrap() || n == -1 - i64::try_from(at).unwrap());
            expected.push(n);
        }
    }
    assert_eq!(drained(&mut behind, 13), expected);
    let filter = || Some(Expr::field("n").gt(100i64));
    let mut some = stream.tail(TailFrom::Start, filter()).unwrap();
    let passing: Vec<i64> = expected.iter().copied().filter(|n| *n > 100).collect();
    assert_eq!(drained(&mut some, 3), passing);
    let export = ExportQuery { from: Some(50), to: Some(60), ..ExportQuery::default() };
    let mut export = stream.export(export).unwrap();
    let mut found = Vec::new();
    while let Some(events) = export.next_batch(2).unwrap() {
        found.extend(events.into_iter().map(|(id, _)| id));
    }
    let there = |id: &&EventId| stream.get(**id).unwrap().is_some();
    assert_eq!(found, ids[50..60].iter().filter(there).copied().collect::<Vec<_>>());
}

/// What every query sees may be lost yet: a tail does not tell it, nor that it was removed.
#[test]
fn what_a_crash_can_take_back_is_not_told() {
    let lazy = Durability::Async { at_most: Duration::from_secs(3_600) };
    let open = |machine: &Simulation| {
        let options = Options::new().environment(machine.environment()).background(false);
        options.durability(lazy).open("db").unwrap()
    };
    let machine = Simulation::new(3, SimOptions::default());
    let db = open(&machine);
    let stream = stream_in(&db);
    let table = db.table("events").unwrap();
    let ids: Vec<EventId> = (0..6).map(|n| stream.append(&event(n, n)).unwrap()).collect();
    let mut tail = stream.tail(TailFrom::Start, None).unwrap();
    assert_eq!(table.count().unwrap(), 6);
    assert!(drained(&mut tail, 100).is_empty(), "nothing is on the disk");
    db.sync().unwrap();
    assert_eq!(drained(&mut tail, 2), [0, 1, 2, 3, 4, 5]);
    let place = tail.position();
    // One more, and changes of what a second tail has still to tell.
    stream.append(&event(7, 7)).unwrap();
    assert!(stream.delete(ids[2]).unwrap());
    table.update(&[Value::Uint(ids[4].row_id())], &[("n", 44i64.into())]).unwrap();
    let mut second = stream.tail(TailFrom::Start, None).unwrap();
    assert!(drained(&mut tail, 100).is_empty());
    assert_eq!(drained(&mut second, 100), [0, 1], "it may come back");
    let image = machine.crash_image(CrashChoice::KeepNone);
    // Without a crash: once they are durable.
    db.sync().unwrap();
    assert_eq!(drained(&mut second, 100), [3, 44, 5, 7]);
    assert_eq!(drained(&mut tail, 100), [7]);
    // With one: nothing of it was told, and what is told goes on where it was.
    let next = Simulation::from_image(&image, 4, SimOptions::default());
    let db = open(&next);
    let stream = db.stream("events").unwrap();
    let mut tail = stream.tail(TailFrom::After(place), None).unwrap();
    let mut second = stream.tail(TailFrom::After(ids[1].row_id()), None).unwrap();
    stream.append(&event(8, 8)).unwrap();
    db.sync().unwrap();
    assert_eq!(drained(&mut tail, 100), [8]);
    assert_eq!(drained(&mut second, 100), [2, 3, 4, 5, 8]);
}

#[test]
fn a_tail_waits_for_the_next_event_and_no_longer() {
    let dir = Directory::new("tail-waits");
    for memory in [true, false] {
        let db = match memory {
            true => Options::new().memory().unwrap(),
            false => Options::new().open(&dir.0).unwrap(),
        };
        let stream = stream_in(&db);
        stream.append(&event(1, 1)).unwrap();
        let mut tail = stream.tail(TailFrom::Now, None).unwrap();
        let began = Instant::now();
        assert!(told(&mut tail, 1, Duration::from_millis(30)).is_empty());
        assert!(began.elapsed() >= Duration::from_millis(30));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| told(&mut tail, 10, Duration::from_secs(20)));
            std::thread::sleep(Duration::from_millis(30));
            stream.append(&event(2, 2)).unwrap();
            let events = waiting.join().unwrap();
            assert_eq!(events.iter().map(|(_, row)| number(row)).collect::<Vec<_>>(), [2]);
        });
        assert!(began.elapsed() < Duration::from_secs(15), "it was woken");
        assert_eq!(tail.next_batch(0, NO_WAIT).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn two_hundred_tails_beside_appends_see_every_event_once_in_order() {
    const TAILS: usize = 200;
    const WRITERS: i64 = 3;
    const EACH: i64 = 120;
    let dir = Directory::new("tail-many");
    // Groups are sealed, and segments merged, beside.
    let db = Options::new().group_limit(16, 1 << 20).open(&dir.0).unwrap();
    let stream = stream_in(&db);
    let is_over = AtomicBool::new(false);
    let seen: Vec<Vec<(EventId, i64)>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..TAILS)
            .map(|reader| {
                let (stream, is_over) = (stream.clone(), &is_over);
                scope.spawn(move || {
                    let mut tail = stream.tail(TailFrom::Start, None).unwrap();
                    let mut seen = Vec::new();
                    loop {
                        let ended = is_over.load(Ordering::SeqCst);
                        let events = told(&mut tail, 1 + reader % 9, Duration::from_millis(20));
                        if events.is_empty() && ended {
                            return seen;
                        }
                        seen.extend(events.iter().map(|(id, row)| (*id, number(row))));
                        // Some of them go on elsewhere now and then.
                        if reader % 5 == 0 && seen.len() % 10 == 0 {
                            let from = TailFrom::After(tail.position());
                            tail = stream.tail(from, None).unwrap();
                        }
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (stream, db) = (stream.clone(), db.clone());
                scope.spawn(move || {
                    for i in 0..EACH {
                        let n = writer * EACH + i;
                        match i % 3 {
                            0 => db.transact(|t| t.table("events")?.insert(&event(i, n))).unwrap(),
                            1 => stream.append(&event(-i, n)).unwrap().row_id(),
                            _ => db.table("events").unwrap().insert(&event(i, n)).unwrap(),
                        };
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let first = &seen[0];
    assert_eq!(first.len(), usize::try_from(WRITERS * EACH).unwrap());
    assert!(first.windows(2).all(|pair| pair[0].0.row_id() < pair[1].0.row_id()));
    let mut numbers: Vec<i64> = first.iter().map(|(_, n)| *n).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..WRITERS * EACH).collect::<Vec<_>>());
    assert!(seen.iter().all(|other| other == first));
}

#[test]
fn a_tail_outlasts_changes_of_its_stream_and_ends_with_it() {
    let dir = Directory::new("tail-alter");
    let db = Options::new().open(&dir.0).unwrap();
    let stream = stream_in(&db);
    let filter = || Some(Expr::field("n").gt(1i64));
    let mut tail = stream.tail(TailFrom::Start, filter()).unwrap();
    stream.append_many(&[event(1, 1), event(2, 2)]);
    assert_eq!(drained(&mut tail, 10), [2]);
    // Row ids go on.
    db.table("events").unwrap().clear().unwrap();
    assert!(drained(&mut tail, 10).is_empty());
    let stream = db.stream("events").unwrap();
    stream.append_many(&[event(3, 3), event(4, 0)]);
    assert_eq!(drained(&mut tail, 10), [3]);
    db.rename_table("events", "others").unwrap();
    db.stream("others").unwrap().append(&event(5, 5)).unwrap();
    assert_eq!(drained(&mut tail, 10), [5]);
    // The filter does not fit any more: the tail stays where it was.
    let place = tail.position();
    db.alter_table("others", &[Alteration::DropField("n".into())]).unwrap();
    let e = tail.next_batch(1, NO_WAIT).unwrap_err();
    assert!(e.to_string().contains("unknown field \"n\""), "{e}");
    assert_eq!(tail.position(), place);
    db.drop_table("others").unwrap();
    let e = tail.next_batch(1, NO_WAIT).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
}

#[test]
fn places_and_filters_that_are_none_are_refused_by_what_was_expected() {
    let db = Options::new().memory().unwrap();
    let stream = stream_in(&db);
    let id = stream.append(&event(1, 1)).unwrap();
    for text in ["", "later", "-1", "+1", "1.5", "99999999999999999999", "01J5"] {
        let e = text.parse::<TailFrom>().unwrap_err().to_string();
        assert!(e.contains("expected now, start, the id of an event, or its row id"), "{e}");
    }
    let after = |text: &str| text.parse::<TailFrom>().unwrap();
    assert_eq!(after(&id.to_string()), TailFrom::After(id.row_id()));
    assert_eq!((after("Now"), after("start")), (TailFrom::Now, TailFrom::Start));
    for row_id in [id.row_id() + 1, u64::MAX] {
        let e = stream.tail(TailFrom::After(row_id), None).unwrap_err().to_string();
        assert!(e.contains(&format!("has the row id {row_id}: expected at most")), "{e}");
        let query = ExportQuery { after: Some(row_id), ..ExportQuery::default() };
        assert!(stream.export(query).is_err());
    }
    let e = stream.tail(TailFrom::Now, Some(Expr::field("x").gt(1i64))).unwrap_err().to_string();
    assert!(e.contains("unknown field \"x\""), "{e}");
    let now = Expr::field("t").gt(Expr::Call(esker_query::model::Function::Now, Vec::new()));
    let e = stream.tail(TailFrom::Now, Some(now)).unwrap_err().to_string();
    assert!(e.contains("on the row alone"), "{e}");
}
