//! Streams under the scheduler: events that share commits, which any of their threads may
//! make, and a tail that is woken by what comes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use esker::{
    DataType, Database, ReadyRows, Schema, Stream, TailBatch, TailFrom, TransactionOptions, Value,
};
use shuttle::thread;

use super::world;

/// No test waits so long: who is not woken waits for ever.
const EVER: Duration = Duration::from_secs(1_000_000);

/// A row id, and the number of its event.
type Told = (u64, i64);
/// A commit that is not before that of a request, and the row ids of its events.
type Answered = (u64, Vec<u64>);

fn event(n: i64) -> Vec<Value> {
    vec![Value::Timestamp(n), n.into()]
}

fn begun(memory: bool) -> (Database, Stream) {
    let db = world::open_patient(memory);
    let fields = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    db.create_table("events", fields.stream("t", []).build().unwrap()).unwrap();
    let stream = db.stream("events").unwrap();
    (db, stream)
}

/// The numbers of the events by their row ids.
fn arrived(db: &Database) -> BTreeMap<u64, i64> {
    let rows = db.table("events").unwrap().snapshot().unwrap().rows().unwrap();
    let number = |row: &[Value]| match row {
        [_, Value::Int(n)] => *n,
        _ => panic!("{row:?}"),
    };
    rows.iter().map(|(id, row)| (*id, number(row))).collect()
}

fn together(jobs: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = jobs.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Three threads add events at once, one of them in a transaction: each is told of its own, nobody
/// is left waiting, and row ids are in the order of the commits.
fn coalesced(memory: bool) {
    let (db, stream) = begun(memory);
    let told: Arc<Mutex<Vec<Told>>> = Arc::default();
    let appends = |first: i64| -> Box<dyn FnOnce() + Send> {
        let (stream, told) = (stream.clone(), Arc::clone(&told));
        Box::new(move || {
            let mut before = 0;
            for n in first..first + 2 {
                let id = stream.append(&event(n)).unwrap().row_id();
                assert!(id > before, "row id {id} is told behind {before}");
                before = id;
                told.lock().unwrap().push((id, n));
            }
        })
    };
    let transaction: Box<dyn FnOnce() + Send> = {
        let db = db.clone();
        Box::new(move || {
            let before = arrived(&db).keys().next_back().copied().unwrap_or(0);
            let transaction = db.begin_with(TransactionOptions::new()).unwrap();
            transaction.table("events").unwrap().insert(&event(100)).unwrap();
            transaction.commit().unwrap();
            let own = arrived(&db).into_iter().find(|(_, n)| *n == 100).unwrap().0;
            assert!(own > before, "row id {own} is committed behind {before}");
        })
    };
    together(vec![appends(0), appends(10), transaction]);
    let found = arrived(&db);
    assert_eq!(found.len(), 5, "{found:?}");
    for (id, n) in told.lock().unwrap().iter() {
        assert_eq!(found.get(id), Some(n), "row id {id} was told of event {n}: {found:?}");
    }
    assert!(db.check().unwrap().is_sound());
}

/// Requests that nobody waits for: each is answered once, by any thread that leads, and what is
/// answered with a later commit has greater row ids.
fn submitted() {
    let (db, stream) = begun(false);
    let told: Arc<Mutex<Vec<Answered>>> = Arc::default();
    let submits = |first: i64| -> Box<dyn FnOnce() + Send> {
        let (stream, told) = (stream.clone(), Arc::clone(&told));
        Box::new(move || {
            for n in first..first + 2 {
                let mut rows = ReadyRows::none(&stream.schema());
                rows.push(&event(n)).unwrap();
                let told = Arc::clone(&told);
                let lead = stream.submit((rows, false), None, move |appended| {
                    let ids = appended.outcomes.into_iter().map(Result::unwrap).collect();
                    told.lock().unwrap().push((appended.newest, ids));
                });
                lead.into_iter().for_each(esker::Lead::run);
            }
        })
    };
    together(vec![submits(0), submits(10), submits(20)]);
    db.sync().unwrap();
    let told = told.lock().unwrap();
    let ids = told.iter().flat_map(|(_, ids)| ids.iter().copied());
    let ids: std::collections::BTreeSet<u64> = ids.collect();
    assert_eq!((told.len(), ids.len(), arrived(&db).len()), (6, 6, 6), "{told:?}");
    for (commit, own) in told.iter() {
        let later = told.iter().filter(|(other, _)| other > commit);
        let is_less = |(_, others): &Answered| own.iter().max() < others.iter().min();
        assert!(later.clone().all(is_less), "row ids in another order than commits: {told:?}");
    }
}

/// A tail waits for each event without an end, and another one only when it has been told.
fn followed(memory: bool) {
    let (db, stream) = begun(memory);
    const EVENTS: i64 = 4;
    let follows: Box<dyn FnOnce() + Send> = {
        let stream = stream.clone();
        Box::new(move || {
            let mut tail = stream.tail(TailFrom::Start, None).unwrap();
            let mut told = Vec::new();
            while told.len() < 4 {
                match tail.next_batch(2, EVER).unwrap() {
                    TailBatch::Events(events) => told.extend(events.iter().map(|(id, _)| *id)),
                    other => panic!("{other:?}"),
                }
            }
            let rises = told.windows(2).all(|pair| pair[0].row_id() < pair[1].row_id());
            assert!(rises, "{told:?}");
        })
    };
    let appends = |first: i64| -> Box<dyn FnOnce() + Send> {
        let stream = stream.clone();
        Box::new(move || {
            (first..first + EVENTS / 2).for_each(|n| drop(stream.append(&event(n)).unwrap()));
        })
    };
    together(vec![follows, appends(0), appends(10)]);
    assert_eq!(arrived(&db).len(), 4);
}

#[test]
fn events_of_three_threads_share_commits() {
    super::explore(|| coalesced(false));
}

#[test]
fn events_of_three_threads_in_memory() {
    super::explore(|| coalesced(true));
}

#[test]
fn requests_are_answered_by_the_thread_that_leads() {
    super::explore(submitted);
}

#[test]
fn a_tail_is_woken_by_every_event() {
    super::explore(|| followed(false));
}

#[test]
fn a_tail_in_memory_is_woken_by_every_event() {
    super::explore(|| followed(true));
}
