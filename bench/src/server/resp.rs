//! `redis-benchmark` against the port of Redis's protocol, in turn with a server of Redis.

use std::time::Duration;

use esker::Durability;

use super::service::Service;
use crate::Result;
use crate::bench::Bench;
use crate::outcome::Outcome;
use crate::redis::{AppendSync, Load, Redis};

const CONNECTIONS: u64 = 50;
const VALUE_BYTES: u64 = 64;
const KEYS: u64 = 100_000;
/// Requests of a figure and a side: some seconds of them.
const ALONE: u64 = 160_000;
const PIPELINED: u64 = 1_200_000;
/// What is measured, in the order of the figures: the command and the pipeline.
const FIGURES: [(&str, u64); 4] = [("set", 1), ("get", 1), ("set", 16), ("get", 16)];

/// Answers at once, both, and has it on the disk later.
pub(super) fn later(bench: &mut Bench) -> Result<Outcome> {
    let at_most = Duration::from_millis(100);
    beside_redis(bench, Durability::Async { at_most }, AppendSync::EverySecond)
}

/// Answers once it is on the disk, both.
pub(super) fn durable(bench: &mut Bench) -> Result<Outcome> {
    beside_redis(bench, Durability::Sync, AppendSync::Always)
}

fn beside_redis(bench: &Bench, durability: Durability, sync: AppendSync) -> Result<Outcome> {
    let redis = Redis::start(&bench.place("redis")?, sync)?;
    let service = Service::with_buckets(bench, "server-resp", durability)?;
    let ours = service.resp_address()?;
    let mut outcome = Outcome::default();
    for (command, pipeline) in FIGURES {
        let most = if pipeline == 1 { ALONE } else { PIPELINED };
        let load = Load {
            command,
            requests: bench.rows.min(most) / 2,
            pipeline,
            connections: CONNECTIONS,
            value_bytes: VALUE_BYTES,
            keys: KEYS,
        };
        // Each side is first once, so that what changes evenly meanwhile is nobody's.
        let turns = [ours, redis.address, redis.address, ours];
        let rates = turns.map(|address| load.run(address));
        let [first, before, after, last] = rates;
        let (found, wanted) = (mean(first?, last?), mean(before?, after?));
        let note = format!(
            "{command}, pipeline {pipeline}: {:.1} k/s, Redis {:.1} k/s",
            found / 1e3,
            wanted / 1e3
        );
        outcome = outcome.and(found / wanted, None).note(note);
    }
    service.stop()?;
    Ok(outcome)
}

/// Of the rates of as many requests each: the rate of all.
fn mean(first: f64, second: f64) -> f64 {
    2.0 / (1.0 / first + 1.0 / second)
}
