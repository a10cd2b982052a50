//! Updates of 64 connections that each wait for the disk, beside bare syncs before and after.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker::Durability;
use esker_client::{Call, Client};

use super::service::{Service, TABLE, load_rows};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::data::key;
use crate::machine::BareSync;
use crate::outcome::{Outcome, percentile};

const CONNECTIONS: u64 = 64;
const ROWS: u64 = 100_000;
const TIME: Duration = Duration::from_secs(2);
const BARE_TURNS: usize = 500;
const FRAME_BYTES: usize = 128;

pub(super) fn run(bench: &mut Bench) -> Result<Outcome> {
    let service = Service::start(bench, "server-durable", Durability::Sync)?;
    load_rows(&mut service.connect()?, &bench.texts, ROWS)?;
    let bare_path = bench.place("server-durable-bare")?;
    let mut bare = BareSync::create(&bare_path)?;
    let mut syncs = Vec::new();
    for _ in 0..BARE_TURNS {
        syncs.push(bare.turn(FRAME_BYTES)?);
    }
    let clients: Vec<Client> =
        (0..CONNECTIONS).map(|_| service.connect()).collect::<Result<_>>()?;
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let mut latencies = std::thread::scope(|scope| {
        let update = |connection: u64, client: Client| {
            let stop = &stop;
            move || update_until(stop, client, connection)
        };
        let threads: Vec<_> = (0..)
            .zip(clients)
            .map(|(connection, client)| scope.spawn(update(connection, client)))
            .collect();
        std::thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a panic")??);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(all)
    })?;
    let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
    for _ in 0..BARE_TURNS {
        syncs.push(bare.turn(FRAME_BYTES)?);
    }
    std::fs::remove_file(bare_path)?;
    service.stop()?;
    let base = 1e6 * syncs.len() as f64 / syncs.iter().sum::<f64>();
    let note = format!(
        "{:.1} k updates/s beside {:.2} k syncs/s; p50 {:.0} µs, p99 {:.0} µs",
        rate / 1e3,
        base / 1e3,
        percentile(&mut latencies, 50),
        percentile(&mut latencies, 99)
    );
    Ok(Outcome::default().and(rate / base, None).note(note))
}

fn update_until(stop: &AtomicBool, mut client: Client, connection: u64) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    let mut row = connection;
    while !stop.load(Ordering::Relaxed) {
        let call = Call::update(TABLE, &[key(row).into()], &[("value", "changed".into())]);
        let start = Instant::now();
        let reply = client.call(&call).map_err(boxed)?;
        latencies.push(start.elapsed().as_secs_f64() * 1e6);
        if reply.changed() != 1 {
            return Err("a row was not found".into());
        }
        row = (row + CONNECTIONS) % ROWS;
    }
    Ok(latencies)
}
