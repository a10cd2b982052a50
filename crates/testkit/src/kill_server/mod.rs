//! A server that is killed under mixed load, again and again.
//!
//! ```text
//!  process: Gate, wire protocol, Redis's, HTTP ──► kill -9
//!     ▲ rows, loads, transfers, entries, increments,        │
//!     │ writes with idempotency keys, each on its own       ▼
//!     │ connection; each notes what was answered       process: the same directory
//!  line ◄──────────── judge ◄──────── contents ◄────────────┘
//! ```
//!
//! Each client does numbered operations, and notes how many it has sent and how many were answered.
//! After a kill, the next server tells what is there: every operation that was answered, whole; of
//! those under way each whole or not at all, and the first ones of them; nothing twice. Then the
//! clients go on behind what is there; those with idempotency keys send again what was not
//! answered.
//!
//! | module | what it has |
//! |---|---|
//! | `line` | what each client does, from the seed |
//! | `wire_clients`, `http_clients`, `redis_clients` | doing it |
//! | `families` | rows that refer to rows |
//! | `stream_clients` | events, and a reader that follows them |
//! | `ending_keys` | keys that end, and what they have to be when |
//! | `http`, `redis` | connections of protocols that no client library here speaks |
//! | `served` | the server |
//! | `contents`, `judge` | what is there, and whether it may be |
//! | `tally` | what was seen |
//! | `command`, `planted` | the program, and planted bugs that it has to find |

mod command;
mod contents;
mod ending_keys;
mod families;
mod http;
mod http_clients;
mod judge;
mod line;
mod planted;
mod redis;
mod redis_clients;
mod served;
mod stream_clients;
mod tally;
mod wire_clients;

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use esker_vfs::sim::Generator;

use line::{Kind, Line};
use served::{Place, Served};

pub use command::run;
pub use tally::Tally;

/// Cycles on one directory, before the next begins with an empty one.
const CYCLES_EACH: u64 = 15;
/// How long a server lives under load, at most.
const LIFE_MS: u64 = 200;
/// The same where clients are those of streams.
const STREAMS_LIFE_MS: u64 = 500;
/// One of so many servers is killed while it opens the database.
const EARLY_OF: u64 = 8;
const OPENING_MS: u64 = 25;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Why a client ended.
#[derive(Debug)]
enum Ended {
    /// The server has gone.
    Gone,
    /// The server did what it must not.
    Wrong(String),
}

/// A client goes on until it is ended.
type Outcome = Result<Infallible, Ended>;

impl From<std::io::Error> for Ended {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

impl From<esker_client::Error> for Ended {
    fn from(e: esker_client::Error) -> Self {
        match e.code() {
            None => Self::Gone,
            Some(code) => Self::Wrong(format!("{}: {e}", code.as_str())),
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("the connection broke"),
            Self::Wrong(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Ended {}

/// Lets a client work until the server has gone.
fn work(line: &mut Line, place: &Place, seed: u64) -> Ended {
    let (wire, redis, http) = (&place.wire, &place.redis, &place.http);
    let outcome = match line.kind {
        Kind::Rows => wire_clients::write_rows(line, wire, seed),
        Kind::PipelinedRows => wire_clients::pipeline_rows(line, wire, seed),
        Kind::WireLoads => wire_clients::load_rows_of_all_forms(line, wire),
        Kind::HttpLoads => http_clients::load_bodies(line, http),
        Kind::WireTransfers => wire_clients::transfer_money(line, wire, seed),
        Kind::HttpTransfers => http_clients::transfer_money(line, http, seed),
        Kind::WireEntries => wire_clients::put_entries(line, wire, seed),
        Kind::HttpEntries => http_clients::put_entries(line, http, seed),
        Kind::Increments => redis_clients::increment(line, redis),
        Kind::RedisTransactions => redis_clients::transact(line, redis, seed),
        Kind::WatchedCounts => redis_clients::count_by_watch(line, redis),
        Kind::EndingKeys => ending_keys::work(line, redis, seed),
        Kind::OnceUpdates | Kind::OnceLoads => http_clients::write_once(line, http),
        Kind::WireOnceUpdates => wire_clients::write_once(line, wire),
        Kind::Families => families::work(line, wire),
        Kind::Events => stream_clients::append(line, http),
        Kind::LaterEvents => stream_clients::append_later(line, http),
        Kind::ProducedEvents => stream_clients::produce(line, http),
        Kind::FollowedEvents => stream_clients::follow(line, http),
    };
    match outcome {
        Ok(never) => match never {},
        Err(ended) => ended,
    }
}

/// Starts a server, looks at what it has, lets clients work for a while, and kills it.
#[allow(clippy::disallowed_methods, reason = "real processes and real time are what this is about")]
fn cycle(
    directory: &Path,
    life: Option<Duration>,
    lines: &mut [Line],
    seed: u64,
) -> Result<(), Error> {
    let mut served = Served::start(directory)?;
    let place = served.place()?;
    contents::prepare(&place, lines)?;
    let found = contents::read(&place, lines, seed)?;
    judge::judge(lines, &found, seed)?;
    let Some(life) = life else {
        contents::catch_up(&place, lines)?;
        return served.kill();
    };
    let dies = AtomicBool::new(false);
    let killed = std::thread::scope(|scope| {
        let (place, dies) = (&place, &dies);
        let mut workers = Vec::new();
        for line in lines.iter_mut() {
            let (client, kind) = (line.client, line.kind);
            workers.push(scope.spawn(move || match work(line, place, seed) {
                Ended::Gone if dies.load(Ordering::SeqCst) => Ok(()),
                ended => Err(format!("client {client} ({kind:?}): {ended}")),
            }));
        }
        std::thread::sleep(life);
        dies.store(true, Ordering::SeqCst);
        let at = Instant::now();
        let killed = served.kill();
        for worker in workers {
            worker.join().map_err(|_| "a client panicked")??;
        }
        killed.map(|()| at)
    })?;
    lines.iter_mut().for_each(|line| line.stream.note_kill(killed));
    Ok(())
}

/// Kills a server so many times, under load of all kinds, or of streams alone; what was answered.
///
/// # Errors
/// What is wrong after which kill.
#[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
pub fn kill_server(cycles: u64, seed: u64, are_streams: bool) -> Result<Tally, String> {
    let mut generator = Generator::new(seed, 81);
    let name = format!("esker-kill-server-{}-{seed}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let life_ms = if are_streams { STREAMS_LIFE_MS } else { LIFE_MS };
    let (mut lines, mut tally, mut seed) = (Vec::new(), Tally::default(), seed);
    for number in 0..cycles {
        let at = |e: Error| format!("kill {number}: {e} ({directory:?})");
        if number % CYCLES_EACH == 0 {
            let _ = std::fs::remove_dir_all(&directory);
            lines = if are_streams { Line::of_streams() } else { Line::all() };
            seed = generator.next_u64();
        }
        if generator.below(EARLY_OF) == 0 {
            let delay = Duration::from_millis(generator.below(OPENING_MS));
            served::kill_early(&directory, delay).map_err(at)?;
            tally.early += 1;
        }
        let life = Duration::from_millis(5 + generator.below(life_ms));
        cycle(&directory, Some(life), &mut lines, seed).map_err(at)?;
        lines.iter_mut().for_each(|line| tally.take(line));
        tally.kills += 1;
        if (number + 1) % CYCLES_EACH == 0 || number + 1 == cycles {
            cycle(&directory, None, &mut lines, seed).map_err(at)?;
            lines.iter_mut().for_each(|line| tally.take(line));
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    Ok(tally)
}
