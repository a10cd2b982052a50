//! Planted bugs: the campaigns must catch every one.
//!
//! The program calls itself once per bug, with the environment variable that plants it, since a
//! planted bug may hang or abort the process that has it.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use esker_vfs::sabotage::{Bug, Campaign};

use crate::isolation::drive;
use crate::plans;

use super::watchdog::Watchdog;
use super::{
    Report, bucket_rot_workload, bucket_workload, crash_busy_workload, crash_workload, directed,
    lying_bucket_workload, lying_workload, rot_workload, sweep_workload,
};

/// A child that prints nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(100);
/// A bug's process is looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// What the child prints before the name of the check.
const CAUGHT: &str = "CAUGHT by ";

/// The phases that a planted bug goes through, until one finds it.
#[must_use]
pub fn run_planted(seed: u64) -> Option<String> {
    type Phase = (&'static str, u64, fn(u64) -> Report);
    let phases: [Phase; 12] = [
        ("directed scenarios", 1, directed),
        ("crash campaign of buckets", 12, bucket_workload),
        ("plans", 24, |seed| plans::report(seed, 1)),
        ("histories", 8, drive::report),
        ("crash campaign", 60, crash_workload),
        ("busy crash campaign", 80, crash_busy_workload),
        ("rot", 12, rot_workload),
        ("rot of buckets", 6, bucket_rot_workload),
        ("error sweep", 8, |seed| sweep_workload(seed, 7)),
        ("lying disk", 20, lying_workload),
        ("buckets on a lying disk", 12, lying_bucket_workload),
        ("longer crash campaign", 600, |seed| crash_workload(seed + 1_000)),
    ];
    let mut images = 0;
    for (name, workloads, phase) in phases {
        for number in 0..workloads {
            let report = phase(seed + number);
            images += report.images;
            // So that the parent can tell slow from hanging.
            println!("{images} images");
            if let Some(failed) = report.failures.first() {
                let why = failed.why.lines().next().unwrap_or_default();
                let why: String = why.chars().take(160).collect();
                return Some(format!("{CAUGHT}{name} after {images} images: {why}"));
            }
        }
    }
    None
}

/// Plants each bug in a process of its own; the number of those that were missed.
///
/// # Errors
/// When the program cannot call itself, or was built without bugs to plant.
pub fn run_all(only: Option<&str>, seed: u64) -> Result<usize, String> {
    if !cfg!(feature = "sabotage") {
        return Err("build with --features sabotage".to_owned());
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let chosen = Bug::of(Campaign::Crash).filter(|bug| only.is_none_or(|only| only == bug.name()));
    let (mut missed, mut count) = (0, 0);
    for bug in chosen {
        let name = bug.name();
        count += 1;
        let mut command = Command::new(&program);
        command.arg("--planted").arg("--seed").arg(seed.to_string()).env("ESKER_SABOTAGE", name);
        let outcome = output_within(&mut command, PATIENCE)?;
        let caught = match &outcome {
            Some(text) => text.lines().find(|line| line.starts_with(CAUGHT)).map(str::to_owned),
            None => Some(format!("{CAUGHT}the watchdog: it hangs")),
        };
        match caught {
            Some(line) => println!("{name:<32} {line}"),
            None => {
                missed += 1;
                println!("{name:<32} MISSED: {}", bug.what());
            }
        }
    }
    println!("planted bugs {count}, caught {}, missed {missed}", count - missed);
    Ok(missed)
}

/// What a process printed; `None` when it printed nothing for too long and had to be killed.
#[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
fn output_within(command: &mut Command, patience: Duration) -> Result<Option<String>, String> {
    let null = std::process::Stdio::null();
    let command = command.stdout(std::process::Stdio::piped()).stderr(null);
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let out = child.stdout.take().ok_or("no pipe")?;
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
    });
    let mut text = String::new();
    let mut watchdog = Watchdog::new(child.id(), patience);
    let hangs = loop {
        match receiver.recv_timeout(LOOK) {
            Ok(line) => {
                text.push_str(&format!("{line}\n"));
                watchdog.progress();
            }
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) if watchdog.hangs() => break true,
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    if hangs {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    reader.join().map_err(|_| "the reader panicked")?;
    if !hangs && status.code().is_none() {
        text.push_str(&format!("{CAUGHT}an abort: {status}\n"));
    }
    Ok((!hangs).then_some(text))
}
