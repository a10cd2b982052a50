//! Many clients of one server at once, idle, busy and bad, over this machine's own sockets, in the
//! wire protocol, HTTP and Redis's protocol.
//!
//! The server is a process of its own, whose memory is read from `/proc`. Beside the bad clients of
//! one protocol a witness of each asks for rows all the time: it gets each, and none late.
//! Witnesses have a thread of their own: what they wait for is the server, not turns of other
//! clients. Bad ones stall within a request or a load, vanish with a query under way, send garbage,
//! send without an end, or ask and never read.
//!
//! | module | what it defines |
//! |---|---|
//! | `served` | the server, and what it takes |
//! | `protocol` | the same questions in each protocol |
//! | `bad` | clients that nobody wishes for |
//! | `streams` | tails, producers and senders of events |

mod bad;
mod protocol;
mod served;
mod streams;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use bad::{Bad, Manner};
use protocol::{Asker, Protocol, Question};
use served::{BUDGET_BYTES, Served};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The most memory of the server that an idle connection takes.
const IDLE_BYTES_MAX: u64 = 24 << 10;
/// What the server takes, beside the budget, while bad clients are at it: queries that they have
/// asked, and what an allocator keeps.
const BAD_BYTES_MAX: u64 = 160 << 20;
/// No answer to a witness may take longer.
const LATE: Duration = Duration::from_secs(2);
/// One that has taken so long does not come.
const NEVER: Duration = Duration::from_secs(30);

/// How many clients of which sort, of each protocol.
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
    /// What each that floods sends, in MiB.
    pub flood_mib: usize,
    /// What one sends that is alone with it, in MiB.
    pub pour_mib: usize,
    /// The events that one body has, in MiB.
    pub body_mib: usize,
}

impl Sizes {
    /// For continuous integration: seconds.
    pub const SMALL: Self = Self {
        idle: 500,
        busy: 100,
        requests: 100,
        bad: 10,
        flood_mib: 50,
        pour_mib: 500,
        body_mib: 64,
    };
    /// As many as a server is asked to bear.
    pub const LARGE: Self = Self {
        idle: 10_000,
        busy: 2_000,
        requests: 200,
        bad: 100,
        flood_mib: 100,
        pour_mib: 10 << 10,
        body_mib: 1 << 10,
    };
}

/// Lets clients come; what was found, in words.
///
/// # Errors
/// What a server does not bear.
pub fn load_server(sizes: Sizes, are_streams: bool) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let apart =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        streams::streams(apart.handle(), sizes).await?;
        if are_streams {
            return Ok(());
        }
        for protocol in Protocol::ALL {
            // What one protocol left of memory is not what the next one takes.
            let to = Clients { served: Served::start()?, apart: apart.handle(), protocol };
            let name = protocol.name();
            println!("{name}: {}", idle(&to, sizes).await?);
            println!("{name}: {}", busy(&to, sizes).await?);
            for manner in Manner::ALL {
                let many = (sizes.bad, sizes.flood_mib);
                println!("{name}: {}", beside(&to, manner, many).await?);
            }
            let alone = (1, sizes.pour_mib);
            println!("{name}: {}", beside(&to, Manner::Floods, alone).await?);
        }
        Ok(())
    })
}

/// Whom clients ask, how, and where witnesses run.
struct Clients<'r> {
    served: Served,
    apart: &'r Handle,
    protocol: Protocol,
}

async fn idle(to: &Clients<'_>, sizes: Sizes) -> Result<String, Error> {
    let (served, protocol) = (&to.served, to.protocol);
    let quiet = async || {
        let mut asker = Asker::connect(served.address(protocol), protocol).await?;
        asker.ask(Question::Ping).await?;
        asker.quieten();
        Ok::<_, Error>(asker)
    };
    // What the first ones cost is not what each costs.
    let mut all = Vec::new();
    for _ in 0..10 {
        all.push(quiet().await?);
    }
    let before = served.memory_bytes()?;
    for _ in 0..sizes.idle {
        all.push(quiet().await?);
    }
    let grown = served.memory_bytes()?.saturating_sub(before);
    let each = grown / sizes.idle as u64;
    let witnesses = Witnesses::start(to).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let seen = witnesses.stop().await?;
    drop(all);
    if each > IDLE_BYTES_MAX {
        return Err(format!("{protocol:?}: an idle connection takes {each} bytes").into());
    }
    let kib = each as f64 / 1024.0;
    Ok(format!("{} idle connections: {kib:.1} KiB of the server each; {seen}", sizes.idle))
}

async fn busy(to: &Clients<'_>, sizes: Sizes) -> Result<String, Error> {
    let (served, protocol) = (&to.served, to.protocol);
    let before = served.memory_bytes()?;
    let mut askers = Vec::new();
    for _ in 0..sizes.busy {
        askers.push(Asker::connect(served.address(protocol), protocol).await?);
    }
    let start = Instant::now();
    let mut tasks = Vec::new();
    for (number, mut asker) in askers.into_iter().enumerate() {
        tasks.push(tokio::spawn(async move {
            for request in 0..sizes.requests {
                let key = number * 31 + request;
                let is_change = request % 4 == 3;
                let question = if is_change { Question::Change(key) } else { Question::Get(key) };
                asker.ask(question).await?;
            }
            Ok::<_, Error>(())
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

type Witness = tokio::task::JoinHandle<Result<Duration, Error>>;

/// One of each protocol, who ask until they are told to stop.
struct Witnesses {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    tasks: Vec<Witness>,
}

impl Witnesses {
    async fn start(to: &Clients<'_>) -> Result<Self, Error> {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = Vec::new();
        for protocol in Protocol::ALL {
            let asker = to.apart.spawn(Asker::connect(to.served.address(protocol), protocol));
            let asks = witness(asker.await??, Arc::clone(&stop), Arc::clone(&count));
            tasks.push(to.apart.spawn(asks));
        }
        Ok(Self { stop, count, tasks })
    }

    fn are_well(&self) -> bool {
        self.tasks.iter().all(|task| !task.is_finished())
    }

    /// What they have seen, in words.
    async fn stop(self) -> Result<String, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let mut longest = Duration::ZERO;
        for (task, protocol) in self.tasks.into_iter().zip(Protocol::ALL) {
            let one = task.await?.map_err(|e| format!("a witness of {}: {e}", protocol.name()))?;
            longest = longest.max(one);
        }
        let (count, ms) = (self.count.load(Ordering::Relaxed), longest.as_secs_f64() * 1e3);
        Ok(format!("{count} requests of three witnesses answered, the longest in {ms:.1} ms"))
    }
}

/// Asks until it is told to stop; the longest that an answer took.
async fn witness(
    mut asker: Asker,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
) -> Result<Duration, Error> {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        let key = usize::try_from(count.fetch_add(1, Ordering::Relaxed))?;
        let mut ask = Box::pin(asker.ask(Question::Get(key)));
        match tokio::time::timeout(LATE, &mut ask).await {
            Ok(asked) => asked?,
            // One that comes late is another fault than one that never comes.
            Err(_) => {
                let came = match tokio::time::timeout(NEVER, ask).await {
                    Ok(asked) => format!("{asked:?} after {:?}", start.elapsed()),
                    Err(_) => "none came".to_owned(),
                };
                return Err(format!("waits for an answer for {LATE:?}: {came}").into());
            }
        }
        longest = longest.max(start.elapsed());
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    Ok(longest)
}

/// Bad clients of one manner and protocol, and witnesses of all beside them.
async fn beside(
    to: &Clients<'_>,
    manner: Manner,
    (many, flood_mib): (usize, usize),
) -> Result<String, Error> {
    let (served, protocol) = (&to.served, to.protocol);
    let before = served.memory_bytes()?;
    let witnesses = Witnesses::start(to).await?;
    let mut tasks = Vec::new();
    for number in 0..many {
        let flood_bytes = (flood_mib as u64) << 20;
        let bad = Bad { protocol, address: served.address(protocol), number, flood_bytes };
        tasks.push(tokio::spawn(async move { manner.be(&bad).await }));
    }
    let mut most = 0;
    while tasks.iter().any(|task| !task.is_finished()) && witnesses.are_well() {
        most = most.max(served.memory_bytes()?.saturating_sub(before));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seen = witnesses.stop().await.map_err(|e| format!("{protocol:?}, {manner:?}: {e}"))?;
    let mut sent = 0;
    for task in tasks {
        sent += task.await?.map_err(|e| format!("{protocol:?}, {manner:?}: {e}"))?;
    }
    if most > BUDGET_BYTES as u64 + BAD_BYTES_MAX {
        let message = format!("{protocol:?}, {manner:?}: the server took {most} bytes more");
        return Err(message.into());
    }
    let mib = f64::from(1 << 20);
    let flood = if sent > 0 { format!(" ({:.0} MiB)", sent as f64 / mib) } else { String::new() };
    Ok(format!(
        "{many} that {}{flood}: at most {:.1} MiB more; {seen}",
        manner.words(),
        most as f64 / mib,
    ))
}

/// What the command line asks for.
fn asked(words: &[&str]) -> Result<(Sizes, bool), Error> {
    let has = |word: &str| words.contains(&word);
    let mut sizes = if has("--small") { Sizes::SMALL } else { Sizes::LARGE };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--small" | "--streams" => {}
            "--body-mib" => sizes.body_mib = rest.next().ok_or("--body-mib N")?.parse()?,
            _ => return Err("usage: load_server [--small] [--streams] [--body-mib N]".into()),
        }
    }
    Ok((sizes, has("--streams")))
}

/// Runs the `load_server` program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child"] => served::serve(None, false),
        ["--child", directory] => served::serve(Some(directory.as_ref()), false),
        ["--child", directory, "--limited"] => served::serve(Some(directory.as_ref()), true),
        given => asked(given).and_then(|(sizes, are_streams)| load_server(sizes, are_streams)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
