//! One row a request.

use std::time::Instant;

use esker_client::{Call, Client, Value};

use super::service::{Echo, Service, TABLE};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::data::{key, mix};
use crate::outcome::{Outcome, median, percentile};

/// Bytes of an echo: about a request for a row.
const ECHO_BYTES: usize = 48;
/// Requests of one kind before those of the other.
const BLOCK: u64 = 500;
const BLOCKS: u64 = 60;
const DEPTH: u64 = 32;
const BATCHES: u64 = 20_000;
const CONNECTIONS: u64 = 5;
const EACH: u64 = 10_000;
/// Rows that are asked for; all of them where there are fewer.
const ROWS: u64 = 1_000_000;

#[derive(Clone, Copy)]
pub(super) enum Operation {
    Get,
    Exists,
    Update,
    Delete,
}

fn key_of(row: u64) -> Vec<Value> {
    vec![Value::Text(key(row))]
}

fn call(operation: Operation, row: u64) -> Call {
    let key = key_of(row);
    match operation {
        Operation::Get => Call::get(TABLE, &[key]),
        Operation::Exists => Call::exists(TABLE, &[key]),
        Operation::Update => Call::update(TABLE, &key, &[("value", "changed".into())]),
        Operation::Delete => Call::delete(TABLE, &[key]),
    }
}

fn expect(operation: Operation, reply: &esker_client::Reply) -> Result<()> {
    let is_done = match operation {
        Operation::Get => reply.found().map_err(boxed)?.first().is_some_and(Option::is_some),
        Operation::Exists => reply.flags().map_err(boxed)? == [true],
        Operation::Update | Operation::Delete => reply.changed() == 1,
    };
    if is_done { Ok(()) } else { Err("a row was not found".into()) }
}

/// Requests one after another on one connection, in turn with echoes on another.
pub(super) fn alternate(bench: &mut Bench, operation: Operation) -> Result<Outcome> {
    let rows = bench.rows.min(ROWS);
    let service = Service::with_rows(bench, "server-points", rows)?;
    let mut client = service.connect()?;
    let mut echo = Echo::connect(&service, ECHO_BYTES)?;
    let (mut echoes, mut requests) = (Vec::new(), Vec::new());
    for block in 0..BLOCKS {
        for _ in 0..BLOCK {
            let start = Instant::now();
            echo.turn()?;
            echoes.push(start.elapsed().as_secs_f64() * 1e6);
        }
        for i in 0..BLOCK {
            // Each row once: they may be deleted.
            let call = call(operation, block * BLOCK + i);
            let start = Instant::now();
            let reply = client.call(&call).map_err(boxed)?;
            requests.push(start.elapsed().as_secs_f64() * 1e6);
            expect(operation, &reply)?;
        }
    }
    drop(client);
    service.stop()?;
    let (echo, request) = (median(&echoes), median(&requests));
    let note = format!(
        "p50 {request:.1} µs, p99 {:.1} µs; echo p50 {echo:.1} µs, p99 {:.1} µs",
        percentile(&mut requests, 99),
        percentile(&mut echoes, 99)
    );
    Ok(Outcome::default().and(request / echo, None).note(note))
}

/// Requests of one connection, 32 at a time.
pub(super) fn pipelined(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows.min(ROWS);
    let service = Service::with_rows(bench, "server-pipeline", rows)?;
    let mut client = service.connect()?;
    let mut outcome = Outcome::default();
    let operations = [Operation::Get, Operation::Exists, Operation::Update, Operation::Delete];
    for operation in operations {
        // A row that is removed is gone: each is asked for once, as long as there are any.
        let calls: Vec<Call> = match operation {
            Operation::Delete => (0..DEPTH * BATCHES).map(|i| call(operation, i)).collect(),
            _ => (0..DEPTH * 64).map(|i| call(operation, mix(i) % rows)).collect(),
        };
        let rounds = calls.len() as u64 / DEPTH;
        let start = Instant::now();
        let mut answered = 0;
        for batch in 0..BATCHES {
            let mut pipeline = client.pipeline();
            let first = usize::try_from(batch % rounds * DEPTH)?;
            for call in calls.iter().skip(first).take(usize::try_from(DEPTH)?) {
                pipeline.push(call);
            }
            let count = |_, frame: &esker_wire::Frame<'_>| {
                answered += u64::from(frame.kind() == Ok(esker_wire::Kind::Done));
            };
            pipeline.run_with(count).map_err(boxed)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        if answered != BATCHES * DEPTH {
            return Err(format!("{answered} of {} answered", BATCHES * DEPTH).into());
        }
        outcome = outcome.and((BATCHES * DEPTH) as f64 / seconds, None);
    }
    if service.count()? != rows.saturating_sub(BATCHES * DEPTH) {
        return Err("not all rows were removed".into());
    }
    drop(client);
    service.stop()?;
    Ok(outcome)
}

/// Five connections, each with ten thousand requests under way.
pub(super) fn parallel(bench: &mut Bench) -> Result<Outcome> {
    let rows = bench.rows.min(ROWS);
    let service = Service::with_rows(bench, "server-parallel", rows)?;
    let mut outcome = Outcome::default();
    for operation in [Operation::Get, Operation::Update] {
        let mut clients: Vec<Client> =
            (0..CONNECTIONS).map(|_| service.connect()).collect::<Result<_>>()?;
        let start = Instant::now();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (connection, client) in (0u64..).zip(&mut clients) {
                threads.push(scope.spawn(move || {
                    let mut pipeline = client.pipeline();
                    for i in 0..EACH {
                        pipeline.push(&call(operation, mix(connection * EACH + i) % rows));
                    }
                    let replies = pipeline.run().map_err(boxed)?;
                    replies.into_iter().try_for_each(|reply| {
                        let reply = reply.map_err(boxed)?;
                        expect(operation, &reply)
                    })
                }));
            }
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a panic")?)
        })?;
        let rate = (CONNECTIONS * EACH) as f64 / start.elapsed().as_secs_f64();
        outcome = outcome.and(rate, None);
    }
    service.stop()?;
    Ok(outcome)
}
