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
//! | `http`, `redis` | connections of protocols that no client library here speaks |
//! | `served` | the server |
//! | `contents`, `judge` | what is there, and whether it may be |

mod contents;
mod http;
mod http_clients;
mod judge;
mod line;
mod redis;
mod redis_clients;
mod served;
mod wire_clients;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_vfs::sim::Generator;

use line::{Counts, Kind, Line};
use served::{Place, Served};

/// Cycles on one directory, before the next begins with an empty one.
const CYCLES_EACH: u64 = 15;
/// How long a server lives under load, at most.
const LIFE_MS: u64 = 200;
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

/// What was answered, by its name, and what became of writes with idempotency keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that were answered.
    pub answered: BTreeMap<&'static str, u64>,
    /// Servers that were killed under load.
    pub kills: u64,
    /// Servers that were killed while they opened the database.
    pub early: u64,
    /// Writes that were sent again with the same key.
    pub retried: u64,
    /// Keys that were refused with another body.
    pub refused: u64,
    /// Transactions that somebody else was quicker than.
    pub conflicts: u64,
}

impl Tally {
    fn take(&mut self, line: &mut Line) {
        let counts = std::mem::take(&mut line.counts);
        let Counts { answered, retried, refused, conflicts } = counts;
        *self.answered.entry(line.kind.name()).or_default() += answered;
        self.retried += retried;
        self.refused += refused;
        self.conflicts += conflicts;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kills, early, retried, refused, conflicts, .. } = self;
        writeln!(f, "{kills} kills under load, {early} while opening; answered:")?;
        for (name, count) in &self.answered {
            writeln!(f, "  {count:>9} {name}")?;
        }
        writeln!(f, "{retried} writes sent again with their key, each done once;")?;
        writeln!(f, "{refused} keys with another body, each refused;")?;
        write!(f, "{conflicts} conflicts; lost 0, half 0, twice 0")
    }
}

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
        Kind::OnceUpdates | Kind::OnceLoads => http_clients::write_once(line, http),
        Kind::WireOnceUpdates => wire_clients::write_once(line, wire),
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
    let Some(life) = life else { return served.kill() };
    let dies = AtomicBool::new(false);
    std::thread::scope(|scope| {
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
        let killed = served.kill();
        for worker in workers {
            worker.join().map_err(|_| "a client panicked")??;
        }
        killed
    })
}

/// Kills a server so many times; what was answered.
///
/// # Errors
/// What is wrong after which kill.
#[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
pub fn kill_server(cycles: u64, seed: u64) -> Result<Tally, String> {
    let mut generator = Generator::new(seed, 81);
    let name = format!("esker-kill-server-{}-{seed}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let (mut lines, mut tally) = (Vec::new(), Tally::default());
    for number in 0..cycles {
        let at = |e: Error| format!("kill {number}: {e} ({directory:?})");
        if number % CYCLES_EACH == 0 {
            let _ = std::fs::remove_dir_all(&directory);
            lines = Line::all();
        }
        if generator.below(EARLY_OF) == 0 {
            let delay = Duration::from_millis(generator.below(OPENING_MS));
            served::kill_early(&directory, delay).map_err(at)?;
            tally.early += 1;
        }
        let life = Duration::from_millis(5 + generator.below(LIFE_MS));
        cycle(&directory, Some(life), &mut lines, seed).map_err(at)?;
        lines.iter_mut().for_each(|line| tally.take(line));
        tally.kills += 1;
        if (number + 1) % CYCLES_EACH == 0 || number + 1 == cycles {
            cycle(&directory, None, &mut lines, seed).map_err(at)?;
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    Ok(tally)
}

/// Runs the `kill_server` program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().map_err(|e| format!("{text:?}: {e}"));
    let outcome = match words.as_slice() {
        ["--child", directory] => {
            let served = served::serve(Path::new(directory));
            served.map(|()| Tally::default()).map_err(|e| e.to_string())
        }
        [] => kill_server(300, 1),
        ["--cycles", cycles] => number(cycles).and_then(|cycles| kill_server(cycles, 1)),
        ["--cycles", cycles, "--seed", seed] => number(cycles)
            .and_then(|cycles| number(seed).and_then(|seed| kill_server(cycles, seed))),
        _ => Err("usage: kill_server [--cycles N [--seed N]]".to_owned()),
    };
    match outcome {
        Ok(tally) => {
            println!("{tally}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
