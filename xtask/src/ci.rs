//! `cargo xtask ci`: every check, in order, each timed; the first failure ends the run.
//!
//! `STEPS` is the whole list. A program that does not exist yet has no row: nothing here passes
//! by doing nothing.

use crate::program::{Program, root};
use crate::{Error, ErrorKind, Result, tidy};
use std::time::{Duration, Instant};

/// What a step came to.
enum Outcome {
    Passed,
    /// It could not run here; the reason is printed and nothing is claimed.
    Skipped(&'static str),
}

struct Step {
    name: &'static str,
    run: fn() -> Result<Outcome>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", run: || cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", run: || tidy::run(&[]).map(|()| Outcome::Passed) },
    Step { name: "clippy", run: clippy },
    Step { name: "clippy-fuzz", run: clippy_fuzz },
    Step { name: "doc", run: documentation },
    Step { name: "test", run: tests },
    Step { name: "test-stores", run: tests_on_disk },
    Step { name: "quickstart", run: quickstart },
    Step { name: "crash", run: || campaign(&["--images", "50000"]) },
    Step { name: "crash-busy", run: || campaign(&["--busy", "10000"]) },
    Step { name: "crash-buckets", run: || campaign(&["--buckets", "10000"]) },
    Step { name: "crash-directed", run: || campaign(&["--directed"]) },
    Step { name: "crash-sweep", run: || campaign(&["--sweep", "20"]) },
    Step { name: "crash-small", run: || campaign(&["--exhaustive"]) },
    Step { name: "crash-rot", run: || campaign(&["--rot", "20000"]) },
    Step { name: "bucket-rot", run: || campaign(&["--bucket-rot", "10000"]) },
    Step { name: "crash-lies", run: || campaign(&["--lying-fsync", "10000"]) },
    Step { name: "bucket-lies", run: || campaign(&["--bucket-lies", "5000"]) },
    Step { name: "determinism", run: || campaign(&["--determinism", "1000"]) },
    Step { name: "kill", run: kill_loop },
    Step { name: "differential", run: differential },
    Step { name: "plans", run: plans },
    Step { name: "history-planted", run: || history(&["--planted"]) },
    Step { name: "history", run: || history(&["--transactions", "200000"]) },
    Step { name: "deny", run: deny },
];

/// Runs every step, or those named. `--list` prints their names.
///
/// # Errors
/// When a name is unknown or a step fails.
pub fn run(arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|argument| argument == "--list") {
        STEPS.iter().for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    let mut summary = String::new();
    let start = Instant::now();
    for step in chosen(arguments)? {
        println!("== {}", step.name);
        let step_start = Instant::now();
        let outcome = (step.run)().map_err(|error| {
            let message = format!("step {} failed: {error}", step.name);
            Error::new(error.kind(), message)
        })?;
        let note = match outcome {
            Outcome::Passed => String::new(),
            Outcome::Skipped(reason) => format!("  skipped: {reason}"),
        };
        let line = format!("{:<14} {}{note}", step.name, shown(step_start.elapsed()));
        println!("== {line}");
        summary.push_str(&format!("  {line}\n"));
    }
    println!("== every step\n{summary}  {:<14} {}", "in all", shown(start.elapsed()));
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Step>> {
    let find = |name: &String| {
        STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            Error::usage(format!("unknown step {name:?}; steps: {}", known.join(", ")))
        })
    };
    if names.is_empty() { Ok(STEPS.iter().collect()) } else { names.iter().map(find).collect() }
}

fn shown(elapsed: Duration) -> String {
    format!("{:>7.1} s", elapsed.as_secs_f64())
}

/// Runs cargo. A clean machine builds everything once, so that incremental state, which costs time
/// and disk, is left out there.
fn cargo(arguments: &[&str]) -> Result<Outcome> {
    once(Program::cargo(arguments)).run().map(|()| Outcome::Passed)
}

fn once(program: Program) -> Program {
    match std::env::var_os("CI") {
        Some(_) => program.environment("CARGO_INCREMENTAL", "0"),
        None => program,
    }
}

fn clippy() -> Result<Outcome> {
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

/// Every test, with the same random input each time: a change is not to fail for what it has not
/// touched. The campaigns draw others.
fn tests() -> Result<Outcome> {
    once(Program::cargo(&["test", "--workspace", "--locked"]))
        .environment("PROPTEST_RNG_SEED", "1")
        .run()
        .map(|()| Outcome::Passed)
}

/// The tests of databases in memory once more, on a disk: both stores do the same.
fn tests_on_disk() -> Result<Outcome> {
    let of = |package, features, filters: &[&str]| {
        let test = ["test", "--locked", "--package", package, "--features", features];
        let arguments = [&test[..], &["--test", "suite", "--"], filters].concat();
        once(Program::cargo(&arguments)).environment("PROPTEST_RNG_SEED", "1").run()
    };
    let modules = [
        "buckets::",
        "transaction",
        "unique",
        "update_",
        "records::",
        "objects::",
        "sequences::",
        "alter::",
        "checks::",
        "pages::",
        "rows::",
        "expiry::",
        "conditional::",
        "finder::",
        "timeouts::",
        "emdb_bugs::",
        "load_re",
    ];
    of("esker", "memory-on-disk", &modules)?;
    of("esker-sql", "esker/memory-on-disk", &[])?;
    Ok(Outcome::Passed)
}

/// The fuzz targets' bodies, which are no part of the workspace; the fuzzer itself is left out.
fn clippy_fuzz() -> Result<Outcome> {
    let package = ["clippy", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target"];
    let flags = ["--no-default-features", "--all-targets", "--", "-D", "warnings"];
    cargo(&[&package[..], &flags].concat())
}

fn documentation() -> Result<Outcome> {
    once(Program::cargo(&["doc", "--workspace", "--no-deps", "--locked"]))
        .environment("RUSTDOCFLAGS", "-D warnings")
        .run()
        .map(|()| Outcome::Passed)
}

/// The README's first command, in an empty directory of its own.
fn quickstart() -> Result<Outcome> {
    let directory = std::env::temp_dir().join(format!("esker-quickstart-{}", std::process::id()));
    let failed = |e: std::io::Error| {
        let message = format!("cannot use {}: {e}", directory.display());
        Error::new(ErrorKind::NotStarted, message)
    };
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let manifest = root().join("Cargo.toml");
    let program = Program::cargo(&["run", "--release", "--locked", "--bin", "esker"])
        .arguments(&["--manifest-path", &manifest.to_string_lossy(), "--", "quickstart"])
        .directory(&directory);
    let ended = once(program).run();
    std::fs::remove_dir_all(&directory).map_err(failed)?;
    ended.map(|()| Outcome::Passed)
}

/// A sample of the crash campaign.
fn campaign(arguments: &[&str]) -> Result<Outcome> {
    let package = ["run", "--release", "--locked", "--package", "esker-testkit", "--bin", "crash"];
    once(Program::cargo(&package).arguments(&["--"]).arguments(arguments))
        .run()
        .map(|()| Outcome::Passed)
}

/// Random SQL, compared with SQLite.
fn differential() -> Result<Outcome> {
    let package = ["run", "--release", "--locked", "--package", "esker-differential"];
    let amount = ["--", "--statements", "2000", "--queries", "20000", "--seed", "1"];
    once(Program::cargo(&package).arguments(&amount)).run().map(|()| Outcome::Passed)
}

/// Answers under different plans, compared.
fn plans() -> Result<Outcome> {
    let package = ["run", "--release", "--locked", "--package", "esker-testkit", "--bin", "plans"];
    once(Program::cargo(&package).arguments(&["--", "--cases", "100", "--seed", "1"]))
        .run()
        .map(|()| Outcome::Passed)
}

/// Histories of transactions, judged.
fn history(arguments: &[&str]) -> Result<Outcome> {
    let package = ["run", "--release", "--locked", "--package", "esker-testkit"];
    let program = Program::cargo(&package).arguments(&["--bin", "history", "--"]);
    once(program.arguments(arguments)).run().map(|()| Outcome::Passed)
}

/// A real process that is killed while it writes, and a server under load, a few times; and one
/// with many clients.
fn kill_loop() -> Result<Outcome> {
    let package = ["run", "--release", "--locked", "--package", "esker-testkit"];
    let program = ["--bin", "kill_loop", "--", "--cycles", "10"];
    once(Program::cargo(&package).arguments(&program)).run()?;
    let program = ["--bin", "load_server", "--", "--small"];
    once(Program::cargo(&package).arguments(&program)).run()?;
    let program = ["--bin", "kill_server", "--", "--cycles", "300"];
    once(Program::cargo(&package).arguments(&program)).run().map(|()| Outcome::Passed)
}

/// Licences, bans and sources. Advisories need a database from outside, which an offline machine
/// does not have.
fn deny() -> Result<Outcome> {
    if !Program::cargo(&["deny", "--version"]).succeeds() {
        return Ok(Outcome::Skipped("cargo-deny is not installed"));
    }
    cargo(&["deny", "--offline", "check", "licenses", "bans", "sources"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_names_are_distinct() {
        let mut names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let error = chosen(&["tidyy".to_owned()]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("fmt, tidy"), "{error}");
    }
}
