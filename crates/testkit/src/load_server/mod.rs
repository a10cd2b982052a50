//! Many clients of one server at once, idle, busy and bad, over this machine's own sockets.
//!
//! The server is a process of its own, whose memory is read from `/proc`. Beside the bad clients a
//! witness asks for rows all the time: it gets each, and none late. Bad ones stall within a request
//! or a load, vanish with a query under way, send garbage, send without an end, or ask and never
//! read.
//!
//! | module | what it defines |
//! |---|---|
//! | `served` | the server, and what it takes |
//! | `bad` | clients that nobody wishes for |

mod bad;
mod served;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker_client::{AsyncClient, Call, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use bad::Manner;
use served::{BUDGET_BYTES, ROWS, Served};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The most memory of the server that an idle connection takes.
const IDLE_BYTES_MAX: u64 = 24 << 10;
/// What the server takes, beside the budget, while bad clients are at it: queries that they have
/// asked, and what an allocator keeps.
const BAD_BYTES_MAX: u64 = 160 << 20;
/// No answer to the witness may take longer.
const LATE: Duration = Duration::from_secs(2);

/// How many clients of which sort.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Connections that say nothing any more.
    pub idle: usize,
    /// Connections that ask one thing after another.
    pub busy: usize,
    /// Requests of each of them.
    pub requests: usize,
    /// Bad clients of each manner.
    pub bad: usize,
}

impl Sizes {
    /// For continuous integration: seconds.
    pub const SMALL: Self = Self { idle: 500, busy: 100, requests: 100, bad: 10 };
    /// As many as a server is asked to bear.
    pub const LARGE: Self = Self { idle: 10_000, busy: 2_000, requests: 200, bad: 100 };
}

/// Lets clients come; what was found, in words.
///
/// # Errors
/// What a server does not bear.
pub fn load_server(sizes: Sizes) -> Result<Vec<String>, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = Served::start()?;
    runtime.block_on(async {
        let mut found = vec![idle(&served, sizes).await?, busy(&served, sizes).await?];
        for manner in Manner::ALL {
            found.push(beside(&served, manner, sizes.bad).await?);
        }
        Ok(found)
    })
}

/// A connection that has asked once.
async fn quiet(address: &str) -> Result<TcpStream, Error> {
    let mut stream = TcpStream::connect(address).await?;
    let ping = [6, 0, 0, 0, 1, 0, 0, 0, 1, 0];
    stream.write_all(&[&b"ESKR\x01\x00"[..], &ping[..]].concat()).await?;
    let mut answer = [0; 17];
    stream.read_exact(&mut answer).await?;
    Ok(stream)
}

async fn idle(served: &Served, sizes: Sizes) -> Result<String, Error> {
    // What the first ones cost is not what each costs.
    let mut all = Vec::new();
    for _ in 0..10 {
        all.push(quiet(&served.address).await?);
    }
    let before = served.memory_bytes()?;
    for _ in 0..sizes.idle {
        all.push(quiet(&served.address).await?);
    }
    let grown = served.memory_bytes()?.saturating_sub(before);
    let each = grown / sizes.idle as u64;
    let (took, count) = witness_once(served).await?;
    drop(all);
    if each > IDLE_BYTES_MAX {
        return Err(format!("an idle connection takes {each} bytes").into());
    }
    Ok(format!(
        "{} idle connections: {:.1} KiB of the server each; {count} requests beside them, the \
         longest {:.1} ms",
        sizes.idle,
        each as f64 / 1024.0,
        took.as_secs_f64() * 1e3
    ))
}

fn key_of(number: usize) -> Vec<Value> {
    vec![Value::Int(i64::try_from(number).unwrap_or(0) % ROWS)]
}

async fn busy(served: &Served, sizes: Sizes) -> Result<String, Error> {
    let before = served.memory_bytes()?;
    let mut clients = Vec::new();
    for _ in 0..sizes.busy {
        clients.push(AsyncClient::connect(&served.address).await?);
    }
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (number, client) in clients.into_iter().enumerate() {
        tasks.push(tokio::spawn(async move {
            for request in 0..sizes.requests {
                let key = key_of(number * 31 + request);
                if request % 4 == 3 {
                    let fields = [("n", Value::Int(i64::try_from(request)?))];
                    let changed = client.call(Call::update("rows", &key, &fields)).await?;
                    if changed.changed() != 1 {
                        return Err(Error::from("a row was not changed"));
                    }
                } else if client.call(Call::get("rows", &[key])).await?.found()?.len() != 1 {
                    return Err(Error::from("a row was not found"));
                }
            }
            Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    let seconds = start.elapsed().as_secs_f64();
    let grown = served.memory_bytes()?.saturating_sub(before);
    if grown > (sizes.busy as u64) * (64 << 10) + (64 << 20) {
        return Err(format!("{} busy connections take {grown} bytes", sizes.busy).into());
    }
    let count = sizes.busy * sizes.requests;
    Ok(format!(
        "{} busy connections: {count} requests answered, none wrong, {:.0} k/s; {:.1} MiB more",
        sizes.busy,
        count as f64 / seconds / 1e3,
        grown as f64 / f64::from(1 << 20)
    ))
}

/// Asks a hundred times; the longest, and how many.
async fn witness_once(served: &Served) -> Result<(Duration, u64), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let client = AsyncClient::connect(&served.address).await?;
    let task = tokio::spawn(witness(client, Arc::clone(&stop), Arc::clone(&count)));
    while count.load(Ordering::Relaxed) < 100 && !task.is_finished() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.store(true, Ordering::Relaxed);
    Ok((task.await??, count.load(Ordering::Relaxed)))
}

/// Asks until it is told to stop; the longest that an answer took.
async fn witness(
    client: AsyncClient,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
) -> Result<Duration, Error> {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        let key = key_of(usize::try_from(count.fetch_add(1, Ordering::Relaxed))?);
        let asked = client.call(Call::get("rows", &[key]));
        let reply = tokio::time::timeout(LATE, asked).await;
        let found = reply.map_err(|_| "the witness waits for an answer")??.found()?;
        if found.first().is_none_or(Option::is_none) {
            return Err("the witness misses a row".into());
        }
        longest = longest.max(start.elapsed());
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    Ok(longest)
}

/// Bad clients of one manner, and a witness beside them.
async fn beside(served: &Served, manner: Manner, many: usize) -> Result<String, Error> {
    let before = served.memory_bytes()?;
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let client = AsyncClient::connect(&served.address).await?;
    let asked = tokio::spawn(witness(client, Arc::clone(&stop), Arc::clone(&count)));
    let mut tasks = Vec::new();
    for number in 0..many {
        let address = served.address.clone();
        tasks.push(tokio::spawn(async move { manner.be(&address, number).await }));
    }
    let mut most = 0;
    while tasks.iter().any(|task| !task.is_finished()) && !asked.is_finished() {
        most = most.max(served.memory_bytes()?.saturating_sub(before));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let longest = asked.await?.map_err(|e| format!("{manner:?}: {e}"))?;
    for task in tasks {
        task.await?.map_err(|e| format!("{manner:?}: {e}"))?;
    }
    if most > BUDGET_BYTES as u64 + BAD_BYTES_MAX {
        return Err(format!("{manner:?}: the server took {most} bytes more").into());
    }
    Ok(format!(
        "{many} that {}: at most {:.1} MiB more; {} requests of a witness answered, the longest \
         {:.1} ms",
        manner.words(),
        most as f64 / f64::from(1 << 20),
        count.load(Ordering::Relaxed),
        longest.as_secs_f64() * 1e3
    ))
}

/// Runs the `load_server` program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child"] => served::serve().map(|()| Vec::new()),
        ["--small"] => load_server(Sizes::SMALL),
        [] => load_server(Sizes::LARGE),
        _ => Err("usage: load_server [--small]".into()),
    };
    match outcome {
        Ok(found) => {
            found.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
