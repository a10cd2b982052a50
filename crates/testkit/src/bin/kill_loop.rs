//! `kill_loop [CYCLES] [SEED]`: kills a writing process again and again with SIGKILL, reopens what
//! it left, and compares it with what the process had said was committed.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a real process on the real disk is what this program is about"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use esker::{DataType, Database, Options, Schema, Value};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("child") => write_for_ever(Path::new(arguments.get(1).map_or("", |a| a))),
        first => {
            let cycles = first.and_then(|a| a.parse().ok()).unwrap_or(50);
            let seed = arguments.get(1).and_then(|a| a.parse().ok()).unwrap_or(1);
            kill_again_and_again(cycles, seed)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("kill_loop: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Small limits, so that seals, merges and checkpoints are killed, too.
fn open(dir: &Path) -> esker::Result<Database> {
    let options = Options::new().group_limit(500, 1 << 20).small_group_limit(16 << 10);
    options.log_limit(256 << 10).segment_limit(2_000).open(dir)
}

fn row(i: u64) -> Vec<Value> {
    vec![format!("key {i}").into(), Value::Uint(i.wrapping_mul(0x9e37_79b9))]
}

/// The child: commits row after row and says so. Every 1,000th step is a bulk load of 3,000.
fn write_for_ever(dir: &Path) -> Outcome<()> {
    let db = open(dir)?;
    let table = match db.table("rows") {
        Ok(table) => table,
        Err(_) => {
            let schema = Schema::builder().field("key", DataType::Text);
            let schema = schema.field("number", DataType::U64).primary_key(["key"]);
            db.create_table("rows", schema.build()?)?
        }
    };
    let mut out = std::io::stdout().lock();
    let mut next = table.count()?;
    loop {
        if next % 5_000 == 4_000 {
            let mut load = table.load()?;
            for i in next..next + 3_000 {
                load.push_row(&row(i))?;
            }
            load.finish()?;
            next += 3_000;
        } else {
            table.insert(&row(next))?;
            next += 1;
        }
        writeln!(out, "{next}")?;
        out.flush()?;
    }
}

/// The parent.
fn kill_again_and_again(cycles: u32, seed: u64) -> Outcome<()> {
    let name = format!("esker-kill-loop-{}", std::process::id());
    let dir: PathBuf = std::env::temp_dir().join(name);
    let mut random = seed;
    let (mut acked, mut present) = (0u64, 0u64);
    for cycle in 0..cycles {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("child")
            .arg(&dir)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("the child has no output")?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(2 + (random >> 33) % 300));
        child.kill()?;
        child.wait()?;
        for line in BufReader::new(output).lines() {
            // The last line may be cut.
            acked = line?.parse::<u64>().map_or(acked, |n| acked.max(n));
        }
        present = verify(&dir, acked).map_err(|e| format!("cycle {cycle}, seed {seed}: {e}"))?;
    }
    std::fs::remove_dir_all(&dir)?;
    println!("{cycles} kills, {acked} rows acknowledged, {present} present, 0 lost");
    Ok(())
}

/// Every acknowledged row is there; what else is there follows on without a hole.
fn verify(dir: &Path, acked: u64) -> Outcome<u64> {
    let db = open(dir)?;
    let problems = db.check()?.problems;
    if !problems.is_empty() {
        return Err(format!("the check found {problems:?}").into());
    }
    let Ok(table) = db.table("rows") else {
        return if acked == 0 { Ok(0) } else { Err("the table is gone".into()) };
    };
    let count = table.count()?;
    if count < acked {
        return Err(format!("{acked} rows acknowledged, {count} present").into());
    }
    for i in 0..count {
        let found = table.get(&[format!("key {i}").into()])?.map(esker::Row::into_values);
        if found.as_ref() != Some(&row(i)) {
            return Err(format!("row {i} of {count} is {found:?}").into());
        }
    }
    db.close()?;
    Ok(count)
}
