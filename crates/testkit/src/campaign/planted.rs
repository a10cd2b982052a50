//! Runs the program once for each planted bug of a campaign.
//!
//! The program calls itself, with the environment variable that plants the bug, since a planted bug
//! may hang or abort the process that has it.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use esker_vfs::sabotage::{Bug, Campaign};

use super::watchdog::Watchdog;

/// A child that prints nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(100);
/// A bug's process is looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// What the child prints before the name of the check.
pub const CAUGHT: &str = "CAUGHT by ";
/// What the child prints when it found something, but not what has to find this bug.
pub const OTHERWISE: &str = "FOUND OTHERWISE ";

/// Plants each bug of a campaign, or one, in a process of its own, which gets the word `mode`; the
/// number of those that were missed.
///
/// # Errors
/// When the program cannot call itself, or was built without bugs to plant.
pub fn run_all(
    campaign: Campaign,
    mode: &str,
    only: Option<&str>,
    seed: u64,
) -> Result<usize, String> {
    if !cfg!(feature = "sabotage") {
        return Err("build with --features sabotage".to_owned());
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let chosen = Bug::of(campaign).filter(|bug| only.is_none_or(|only| only == bug.name()));
    let (mut missed, mut count) = (0, 0);
    for bug in chosen {
        let name = bug.name();
        count += 1;
        let mut command = Command::new(&program);
        command.arg(mode).arg("--seed").arg(seed.to_string()).env("ESKER_SABOTAGE", name);
        let child = output_within(&mut command, PATIENCE)?;
        let line = |start: &str| child.text.lines().find(|line| line.starts_with(start));
        let ended = child.ended.as_deref();
        // Only an assertion finds a broken invariant.
        let caught = match campaign {
            Campaign::Invariants => line(CAUGHT),
            _ => line(CAUGHT).or(ended),
        };
        match caught {
            Some(line) => println!("{name:<32} {line}"),
            None => {
                missed += 1;
                let otherwise = line(OTHERWISE).or(ended).unwrap_or_default();
                println!("{name:<32} MISSED: {} {otherwise}", bug.what());
            }
        }
    }
    println!("planted bugs {count}, caught {}, missed {missed}", count - missed);
    Ok(missed)
}

/// What came of a process.
struct Child {
    /// What it printed.
    text: String,
    /// How it ended, unless by itself.
    ended: Option<String>,
}

/// What came of a process, which is killed when it prints nothing for too long.
#[allow(clippy::disallowed_methods, reason = "the campaign itself runs on the real machine")]
fn output_within(command: &mut Command, patience: Duration) -> Result<Child, String> {
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
    let ended = if hangs {
        Some(format!("{CAUGHT}the watchdog: it hangs"))
    } else {
        status.code().is_none().then(|| format!("{CAUGHT}an abort: {status}"))
    };
    Ok(Child { text, ended })
}
