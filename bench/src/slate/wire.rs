//! A hundred thousand records over a socket, by one client that has one request under way: the
//! published table of the other database's server, each figure in a tenth of its time.
//!
//! A question's time has all of it: the request, the answer of the server, every row as values of
//! the client, and letting go of them. A get takes a whole turn over the socket, so that a thousand
//! of them one after another stand beside as many echoes; pipelined, they are only told.

use std::time::Instant;

use esker::Durability;
use esker_client::{Call, Client};

use super::questions::{self, GETS, Question, REPEATS, expect_answer};
use super::records::{TABLE, id, record, schema};
use super::writing::{BATCHES, LATE, expect_records};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::outcome::Goal::{AtMost, Told};
use crate::outcome::Unit::Microseconds;
use crate::outcome::{Asked, Outcome};
use crate::rows::ask;
use crate::server::service::{Echo, Service};
use crate::timing;

const RECORDS: u64 = 100_000;
/// Bytes of an echo beside a get.
const ECHO_BYTES: usize = 48;
/// Of a published millisecond, a tenth.
const SHARE_US: f64 = 100.0;

/// What [`run`] measures, with the published milliseconds.
pub(crate) const ASKED: &[Asked] = &[
    ask("insert", AtMost(635.0 * SHARE_US), Microseconds, ""),
    ask("all", AtMost(182.0 * SHARE_US), Microseconds, ""),
    ask("active", AtMost(125.0 * SHARE_US), Microseconds, ""),
    ask("and", AtMost(95.0 * SHARE_US), Microseconds, ""),
    ask("sort", AtMost(177.0 * SHARE_US), Microseconds, ""),
    ask("take", AtMost(91.0 * SHARE_US), Microseconds, ""),
    ask("sort-take", AtMost(139.0 * SHARE_US), Microseconds, ""),
    ask("sort-page", AtMost(139.0 * SHARE_US), Microseconds, ""),
    ask("get-1000", AtMost(39.0 * SHARE_US), Microseconds, "(a thousand echoes)"),
    ask("get-1000, pipelined", Told, Microseconds, ""),
];

const QUESTIONS: [&Question; 7] = [
    &questions::EVERY,
    &questions::ACTIVE,
    &questions::AND,
    &questions::SORT,
    &questions::TAKE,
    &questions::SORT_TAKE,
    &questions::SORT_PAGE,
];

pub(crate) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = RECORDS.min(bench.rows);
    let durability = Durability::Async { at_most: LATE };
    let service = Service::serve(bench, "server-slate", durability, TABLE, schema()?)?;
    let mut client = service.connect()?;
    let start = Instant::now();
    for batch in 0..BATCHES {
        let batch = rows * batch / BATCHES..rows * (batch + 1) / BATCHES;
        let records: Vec<_> = batch.map(record).collect();
        client.insert(TABLE, &records).map_err(boxed)?;
    }
    let mut outcome = Outcome::default().and(start.elapsed().as_secs_f64() * 1e6, None);
    expect_records(&service.table(TABLE)?, rows)?;
    service.database().wait_idle()?;
    for question in QUESTIONS {
        let answer = client.sql(question.sql, &[]).map_err(boxed)?;
        expect_answer(&answer.rows, question, rows)?;
        drop(answer);
        let timing = timing::repeat(REPEATS, || client.sql(question.sql, &[]))?;
        outcome = outcome.and(timing.median, None);
    }
    let outcome = gets(&service, &mut client, rows, outcome)?;
    drop(client);
    service.stop()?;
    Ok(outcome)
}

fn gets(service: &Service, client: &mut Client, rows: u64, outcome: Outcome) -> Result<Outcome> {
    let step = (rows / GETS).max(1);
    let number = |n: u64| n * step % rows;
    let keys: Vec<_> = (0..GETS).map(|n| [id(number(n))]).collect();
    for (n, key) in (0..GETS).zip(&keys) {
        if client.get(TABLE, key).map_err(boxed)? != Some(record(number(n))) {
            return Err(format!("record {n} is another").into());
        }
    }
    let mut echo = Echo::connect(service, ECHO_BYTES)?;
    let echoes = timing::repeat(REPEATS, || (0..GETS).try_for_each(|_| echo.turn()))?;
    let one_by_one = timing::repeat(REPEATS, || {
        keys.iter().try_for_each(|key| client.get(TABLE, key).map(drop))
    })?;
    let calls: Vec<Call> = keys.iter().map(|key| Call::get(TABLE, &[key.to_vec()])).collect();
    let pipelined = timing::repeat(REPEATS, || {
        let mut pipeline = client.pipeline();
        calls.iter().for_each(|call| pipeline.push(call));
        pipeline.run()
    })?;
    Ok(outcome.and(one_by_one.median, Some(echoes.median)).and(pipelined.median, None))
}
