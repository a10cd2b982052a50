//! Planted bugs that the campaign has to find, each in processes of its own.

use std::path::Path;
use std::process::Command;

use esker_vfs::sabotage::{Bug, Campaign};

use super::Error;
use super::command::Options;

/// Servers that are killed until a bug is found, unless told.
const CYCLES: u64 = 60;
/// Campaigns that a bug goes through, each with the seed behind the last one's.
const CAMPAIGNS: u64 = 4;

/// Plants each bug, and says what finds it.
///
/// # Errors
/// When one is missed, something is found without one, or the program was built without any.
pub(super) fn run_all(options: Options) -> Result<(), String> {
    if !cfg!(feature = "sabotage") {
        return Err("build with --features sabotage".to_owned());
    }
    let directory = std::env::temp_dir().join(format!("esker-planted-{}", std::process::id()));
    let done = all(options, &directory);
    remove(&directory);
    match done.map_err(|e| e.to_string())? {
        0 => Ok(()),
        missed => Err(format!("{missed} planted bugs were missed")),
    }
}

/// The number of bugs that were missed.
#[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
fn all(options: Options, directory: &Path) -> Result<usize, Error> {
    std::fs::create_dir_all(directory)?;
    let cycles = options.cycles.unwrap_or(CYCLES);
    let find = |name, campaigns| {
        for seed in options.seed..options.seed.saturating_add(campaigns) {
            if let Some(why) = found(name, (cycles, seed), directory)? {
                let why: String = why.chars().take(160).collect();
                return Ok(Some(format!("seed {seed}, {why}")));
            }
        }
        Ok::<_, Error>(None)
    };
    if let Some(why) = find("", 1)? {
        return Err(format!("without a planted bug: {why}").into());
    }
    let mut missed = 0;
    for bug in Bug::of(Campaign::Kill) {
        let name = bug.name();
        match find(name, CAMPAIGNS)? {
            Some(why) => println!("{name:<24} caught: {why}"),
            None => {
                missed += 1;
                println!("{name:<24} MISSED: {}", bug.what());
            }
        }
    }
    println!("planted {}, missed {missed}", Bug::of(Campaign::Kill).count());
    Ok(missed)
}

/// What a campaign with a bug says of it; `None` when it sees nothing wrong.
#[allow(clippy::disallowed_methods, reason = "a real process is what this is about")]
fn found(
    name: &str,
    (cycles, seed): (u64, u64),
    directory: &Path,
) -> Result<Option<String>, Error> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--cycles", &cycles.to_string(), "--seed", &seed.to_string()])
        .env("ESKER_SABOTAGE", name)
        // What a campaign that fails leaves goes with it.
        .env("TMPDIR", directory)
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok((!output.status.success()).then(|| words.join(" ")))
}

#[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
fn remove(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
}
