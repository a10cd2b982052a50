//! Events by the wire protocol: rows and columns of several connections, and a tail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use esker::{Database, Durability, Options, Value};
use esker_client::{AppendOptions, Call, Client, Told};
use esker_format::Batch;
use esker_server::auth::authenticator::Open;
use esker_server::{Server, ServerConfig};
use tokio::runtime::{Builder, Runtime};

use super::event::{Event, STREAM, schema};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::machine::BareSync;
use crate::outcome::{Outcome, median, percentile};

/// Connections that add events.
const CONNECTIONS: u64 = 4;
/// Events of a request.
const EVENTS: u64 = 4_000;
/// Different requests of a connection, sent over and over.
const REQUESTS: u64 = 8;
/// How long they are sent.
const TURN: Duration = Duration::from_millis(1_500);
const TURNS: usize = 3;
/// Events a second beside a tail, and how many come together.
const TAIL_RATE: u64 = 50_000;
const TAIL_BATCH: u64 = 100;
const TAIL_TIME: Duration = Duration::from_secs(3);
/// Syncs beside which a tail is measured.
const BARE_SYNCS: usize = 300;
/// Bytes of such a batch in the log, about.
const BATCH_BYTES: usize = 16 << 10;

/// A server of the wire protocol.
struct Served {
    runtime: Runtime,
    server: Server,
    database: Database,
    url: String,
}

impl Served {
    fn start(bench: &Bench, name: &str) -> Result<Self> {
        let database = Options::new().durability(Durability::Sync).open(bench.place(name)?)?;
        database.create_table(STREAM, schema()?)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServerConfig { listen: Some(any), ..ServerConfig::default() };
        let server = runtime.block_on(async {
            Server::start(config, Arc::new(Open::new(&database))).await.map_err(boxed)
        })?;
        let url = server.address().ok_or("no address")?.to_string();
        Ok(Self { runtime, server, database, url })
    }

    /// What all connections get stored a second, each asking over and over.
    fn ask(&self, calls: &[Vec<Call>]) -> Result<f64> {
        let begun = Instant::now();
        let stored = std::thread::scope(|scope| {
            let asked: Vec<_> =
                calls.iter().map(|calls| scope.spawn(|| ask(&self.url, calls))).collect();
            let stored = asked.into_iter().map(|one| one.join().map_err(|_| "a panic")?);
            stored.sum::<Result<u64>>()
        })?;
        Ok(stored as f64 / begun.elapsed().as_secs_f64())
    }

    fn stop(self) -> Result<()> {
        self.runtime.block_on(self.server.stop());
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        self.database.close()?;
        Ok(())
    }
}

/// How many events one connection gets stored.
fn ask(url: &str, calls: &[Call]) -> Result<u64> {
    let (mut client, begun, mut stored) = (Client::connect(url)?, Instant::now(), 0);
    for call in calls.iter().cycle() {
        let told = client.call(call)?.appended()?;
        if let Some(refused) = told.errors.first() {
            return Err(format!("event {}: {}", refused.item, refused.error).into());
        }
        stored += told.accepted;
        if begun.elapsed() >= TURN {
            break;
        }
    }
    Ok(stored)
}

/// The events of a request, by its number.
fn events(request: u64) -> Result<Vec<Vec<Value>>> {
    (0..EVENTS).map(|n| Event::new(request * EVENTS + n).row()).collect()
}

const HOW: AppendOptions<'static> = AppendOptions {
    is_durable: None,
    is_whole: false,
    is_minimal: true,
    producer: None,
    fields: None,
};

/// Durable requests of rows: events a second.
pub(super) fn rows(bench: &mut Bench) -> Result<Outcome> {
    measured(bench, "streams-wire-rows", |request| {
        Ok(Call::append_rows(STREAM, &events(request)?, &HOW))
    })
}

/// The same by column.
pub(super) fn columns(bench: &mut Bench) -> Result<Outcome> {
    let schema = schema()?;
    measured(bench, "streams-wire-columns", |request| {
        let mut batch = Batch::empty(&schema);
        for row in events(request)? {
            batch.push_row(&schema, &row)?;
        }
        let names = schema.fields().iter().map(|field| field.name.as_str());
        let columns: Vec<_> = names.zip(batch.columns).collect();
        Ok(Call::append_columns(STREAM, &columns, &HOW))
    })
}

fn measured(bench: &mut Bench, name: &str, call: impl Fn(u64) -> Result<Call>) -> Result<Outcome> {
    let served = Served::start(bench, name)?;
    let of = |connection: u64| (0..REQUESTS).map(|n| call(connection * REQUESTS + n)).collect();
    let calls: Vec<Vec<Call>> = (0..CONNECTIONS).map(of).collect::<Result<_>>()?;
    let mut rates = Vec::new();
    for _ in 0..TURNS {
        rates.push(served.ask(&calls)?);
    }
    served.stop()?;
    let note = format!("{CONNECTIONS} connections, {EVENTS} events a request");
    Ok(Outcome::default().and(median(&rates), None).note(note))
}

fn now_us() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(since.as_micros())?)
}

/// How long it takes from sending a durable event until a tail has it, beyond a sync.
pub(super) fn tail(bench: &mut Bench) -> Result<Outcome> {
    let path = bench.place("streams-tail-bare")?;
    let mut bare = BareSync::create(&path)?;
    let mut syncs = Vec::new();
    for _ in 0..BARE_SYNCS {
        syncs.push(bare.turn(BATCH_BYTES)?);
    }
    std::fs::remove_file(path)?;
    let served = Served::start(bench, "streams-tail")?;
    let ends = AtomicBool::new(false);
    let mut tailing = Client::connect(&served.url)?;
    let (mut times, mut count) = (Vec::new(), 0u64);
    let sent = std::thread::scope(|scope| {
        let mut tail = tailing.tail(STREAM, "now", None)?;
        let sending = scope.spawn(|| send(&served.url, &ends));
        let begun = Instant::now();
        while begun.elapsed() < TAIL_TIME {
            for told in tail.next_batch()? {
                let Told::Event(_, values) = told else { return Err("a gap".into()) };
                let Some(Value::Timestamp(sent_us)) = values.first() else {
                    return Err("an event without a time".into());
                };
                times.push((now_us()? - sent_us) as f64);
                count += 1;
            }
        }
        ends.store(true, Ordering::Relaxed);
        drop(tail);
        sending.join().map_err(|_| "a panic")?
    })?;
    served.stop()?;
    let sync = percentile(&mut syncs, 50);
    let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    let rate = sent as f64 / TAIL_TIME.as_secs_f64();
    let note = format!(
        "p50 {p50:.0} µs, p99 {p99:.0} µs, a sync {sync:.0} µs; {count} told, {:.1} k/s sent",
        rate / 1e3
    );
    Ok(Outcome::default().and((p99 - sync).max(0.0), None).note(note))
}

/// Sends events at a rate until it is to end; how many.
fn send(url: &str, ends: &AtomicBool) -> Result<u64> {
    let mut client = Client::connect(url)?;
    let mut rows: Vec<Vec<Value>> =
        (0..TAIL_BATCH).map(|n| Event::new(n).row()).collect::<Result<_>>()?;
    let (begun, mut sent) = (Instant::now(), 0u64);
    while !ends.load(Ordering::Relaxed) {
        let due = Duration::from_micros(sent * 1_000_000 / TAIL_RATE);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let at = Value::Timestamp(now_us()?);
        rows.iter_mut().filter_map(|row| row.first_mut()).for_each(|time| *time = at.clone());
        sent += client.append_many(STREAM, &rows, &HOW)?.accepted;
    }
    Ok(sent)
}
