//! A server that is killed under mixed load, again and again.
//!
//! Writers on connections of their own put rows, many requests at a time; loaders load a hundred
//! rows at once; readers ask. Each writer notes what it sent and what was answered. After a kill,
//! the database is opened in this process: every row that was answered is there, nothing is there
//! that was not sent, and each load is there whole or not at all.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{Options, Value};
use esker_client::{Call, Client, Duplicates, Format};
use esker_server::admission::Open;
use esker_server::{Server, ServerConfig};
use esker_vfs::sim::Generator;

/// Cycles on one directory, before the next begins with an empty one.
const CYCLES_EACH: u64 = 15;
const WRITERS: i64 = 3;
const LOADERS: i64 = 2;
/// Requests of a writer that are under way at a time.
const DEPTH: usize = 8;
const LOAD_ROWS: i64 = 100;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// What a client sent, from one number up to another, and how far that was answered.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    sent: i64,
    answered: i64,
}

fn options() -> Options {
    Options::new().group_limit(512, 1 << 20).small_group_limit(4_000).log_limit(200_000)
}

/// The child: serves until it is killed.
fn serve(directory: &Path) -> Result<(), Error> {
    let database = options().open(directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = Server::start(ServerConfig::default(), Arc::new(Open::new(&database))).await?;
        let mut out = std::io::stdout();
        writeln!(out, "{}", server.address().ok_or("no address")?)?;
        out.flush()?;
        std::future::pending::<()>().await;
        Ok(())
    })
}

/// Puts rows until the server is gone: row `n` of a writer has the key `[writer, n]`.
fn write_rows(url: &str, writer: i64, progress: &mut Progress) -> Result<(), Error> {
    let mut client = Client::connect(url)?;
    loop {
        let mut pipeline = client.pipeline();
        for n in (progress.sent..).take(DEPTH) {
            let row = vec![writer.into(), n.into(), format!("row {n}").into()];
            pipeline.push(&Call::insert("rows", &[row]));
        }
        let first = progress.sent;
        progress.sent += i64::try_from(DEPTH)?;
        let mut answered = [false; DEPTH];
        let outcome = pipeline.run_with(|position, frame| {
            if let Some(slot) = answered.get_mut(position) {
                *slot = frame.kind() == Ok(esker_wire::Kind::Done);
            }
        });
        // What survives is a prefix: so is what was answered of one connection.
        let count = answered.iter().take_while(|answered| **answered).count();
        progress.answered = first + i64::try_from(count)?;
        outcome?;
        if progress.answered < progress.sent {
            return Err("a row was refused".into());
        }
    }
}

/// Loads a hundred rows at a time: those of load `n` have the keys `[loader, n * 100 …]`.
fn load_rows(url: &str, loader: i64, progress: &mut Progress) -> Result<(), Error> {
    let mut client = Client::connect(url)?;
    loop {
        let first = progress.sent * LOAD_ROWS;
        progress.sent += 1;
        let mut load = client.load("loads", Format::MessagePack, Duplicates::Error)?;
        for n in first..first + LOAD_ROWS {
            load.push(&[loader.into(), n.into()])?;
        }
        load.finish()?;
        progress.answered = progress.sent;
    }
}

fn read_rows(url: &str, stop: &AtomicBool) -> Result<(), Error> {
    let mut client = Client::connect(url)?;
    while !stop.load(Ordering::Relaxed) {
        client.sql("SELECT count(*), max(n) FROM rows WHERE writer = 1", &[])?;
        client.get("rows", &[0i64.into(), 5i64.into()])?;
    }
    Ok(())
}

/// What was sent and answered so far, by writer and by loader.
#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<i64, Progress>,
    loads: BTreeMap<i64, Progress>,
}

/// Lets a server run under load, and kills it.
#[allow(clippy::disallowed_methods, reason = "real processes and real time are what this is about")]
fn cycle(directory: &Path, delay: Duration, state: &mut State) -> Result<(), Error> {
    let mut child: Child = Command::new(std::env::current_exe()?)
        .args(["--child".as_ref(), directory.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
    let url = line.trim().to_owned();
    if url.is_empty() {
        return Err("the server did not start".into());
    }
    prepare(&url)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            state.rows.entry(writer).or_default();
        }
        for loader in 0..LOADERS {
            state.loads.entry(loader).or_default();
        }
        let (url, stop) = (url.as_str(), &stop);
        for (writer, progress) in &mut state.rows {
            // It ends by the server's being gone.
            scope.spawn(move || drop(write_rows(url, *writer, progress)));
        }
        for (loader, progress) in &mut state.loads {
            scope.spawn(move || drop(load_rows(url, *loader, progress)));
        }
        scope.spawn(move || drop(read_rows(url, stop)));
        std::thread::sleep(delay);
        let died = child.try_wait()?;
        stop.store(true, Ordering::Relaxed);
        child.kill()?;
        child.wait()?;
        match died {
            Some(status) => Err(format!("the server ended by itself: {status}").into()),
            None => Ok(()),
        }
    })
}

fn prepare(url: &str) -> Result<(), Error> {
    let mut client = Client::connect(url)?;
    for statement in [
        "CREATE TABLE IF NOT EXISTS rows (writer i64, n i64, text text, PRIMARY KEY (writer, n))",
        "CREATE TABLE IF NOT EXISTS loads (loader i64, n i64, PRIMARY KEY (loader, n))",
    ] {
        client.sql(statement, &[])?;
    }
    Ok(())
}

/// What the database holds is what was answered, and perhaps more of what was sent. From here on,
/// all goes on behind what was sent. Returns how many answers there were.
fn compare(directory: &Path, state: &mut State) -> Result<(), Error> {
    let db = options().open(directory)?;
    if let Some(problem) = db.check()?.problems.first() {
        return Err(format!("check: {problem:?}").into());
    }
    let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (_, row) in db.table("rows")?.snapshot()?.rows()? {
        let [Value::Int(writer), Value::Int(n), text] = row.as_slice() else {
            return Err(format!("a row {row:?}").into());
        };
        if *text != Value::from(format!("row {n}")) {
            return Err(format!("row {writer}, {n}: {text}").into());
        }
        found.entry(*writer).or_default().push(*n);
    }
    for (writer, progress) in &mut state.rows {
        let mut rows = found.remove(writer).unwrap_or_default();
        rows.sort_unstable();
        let outside = rows.iter().find(|n| **n >= progress.sent);
        let first_missing = (0..).zip(&rows).find(|(i, n)| i != *n).map(|(i, _)| i);
        let whole = first_missing.unwrap_or(i64::try_from(rows.len())?);
        if outside.is_some() || whole < progress.answered || whole != i64::try_from(rows.len())? {
            let count = rows.len();
            let message = format!("writer {writer}: {count} rows, whole to {whole}: {progress:?}");
            return Err(message.into());
        }
        // What was sent and is not there is sent again.
        *progress = Progress { sent: whole, answered: whole };
    }
    let mut counts: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for (_, row) in db.table("loads")?.snapshot()?.rows()? {
        let [Value::Int(loader), Value::Int(n)] = row.as_slice() else {
            return Err(format!("a row {row:?}").into());
        };
        *counts.entry((*loader, n / LOAD_ROWS)).or_default() += 1;
    }
    for (loader, progress) in &mut state.loads {
        for load in 0..progress.sent {
            let count = counts.remove(&(*loader, load)).unwrap_or(0);
            let is_whole = count == LOAD_ROWS || (count == 0 && load >= progress.answered);
            if !is_whole {
                return Err(format!("load {loader}, {load}: {count} rows: {progress:?}").into());
            }
            if count > 0 {
                progress.answered = load + 1;
            }
        }
        *progress = Progress { sent: progress.answered, answered: progress.answered };
    }
    match counts.first_key_value() {
        Some(((loader, load), _)) => Err(format!("load {loader}, {load} was not sent").into()),
        None => Ok(db.close()?),
    }
}

/// Kills a server so many times; the number of rows and loads that were answered.
///
/// # Errors
/// What is wrong after which kill.
#[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
pub fn kill_server(cycles: u64, seed: u64) -> Result<(i64, i64), String> {
    let mut generator = Generator::new(seed, 81);
    let name = format!("esker-kill-server-{}-{seed}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let (mut state, mut all) = (State::default(), (0, 0));
    for number in 0..cycles {
        if number % CYCLES_EACH == 0 {
            let _ = std::fs::remove_dir_all(&directory);
            state = State::default();
        }
        let answered = |state: &State| {
            let sum = |progress: &BTreeMap<i64, Progress>| -> i64 {
                progress.values().map(|progress| progress.answered).sum()
            };
            (sum(&state.rows), sum(&state.loads))
        };
        let before = answered(&state);
        let delay = Duration::from_millis(5 + generator.below(200));
        let outcome = cycle(&directory, delay, &mut state);
        let after = answered(&state);
        all = (all.0 + after.0 - before.0, all.1 + after.1 - before.1);
        outcome
            .and_then(|()| compare(&directory, &mut state))
            .map_err(|e| format!("kill {number} after {delay:?}: {e} ({directory:?})"))?;
    }
    let _ = std::fs::remove_dir_all(&directory);
    Ok(all)
}

/// Runs the `kill_server` program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child", directory] => {
            serve(Path::new(directory)).map(|()| (0, 0)).map_err(|e| e.to_string())
        }
        [] => kill_server(30, 1),
        ["--cycles", cycles] => kill_server(cycles.parse().unwrap_or(30), 1),
        ["--cycles", cycles, "--seed", seed] => {
            kill_server(cycles.parse().unwrap_or(30), seed.parse().unwrap_or(1))
        }
        _ => Err("usage: kill_server [--cycles N [--seed N]]".to_owned()),
    };
    match outcome {
        Ok((rows, loads)) => {
            println!("answered {rows} rows and {loads} loads, lost 0, half 0");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
