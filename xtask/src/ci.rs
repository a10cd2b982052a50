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
    Step { name: "doc", run: documentation },
    Step { name: "test", run: tests },
    Step { name: "test-stores", run: tests_on_disk },
    Step { name: "quickstart", run: quickstart },
    Step { name: "crash", run: || campaign(&["--images", "15000"]) },
    Step { name: "crash-busy", run: || campaign(&["--busy", "3000"]) },
    Step { name: "crash-buckets", run: || campaign(&["--buckets", "6000"]) },
    Step { name: "crash-directed", run: || campaign(&["--directed"]) },
    Step { name: "crash-sweep", run: || campaign(&["--sweep", "3"]) },
    Step { name: "crash-small", run: || campaign(&["--exhaustive", "200"]) },
    Step { name: "crash-rot", run: || campaign(&["--rot", "10000"]) },
    Step { name: "bucket-rot", run: || campaign(&["--bucket-rot", "5000"]) },
    Step { name: "crash-lies", run: || campaign(&["--lying-fsync", "5000"]) },
    Step { name: "bucket-lies", run: || campaign(&["--bucket-lies", "3000"]) },
    Step { name: "determinism", run: || campaign(&["--determinism", "200"]) },
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

/// By the profile of the tests, as the documentation: what builds run is then run once for all.
fn clippy() -> Result<Outcome> {
    let check = ["clippy", "--workspace", "--all-targets", "--profile", "test", "--locked"];
    cargo(&[&check[..], &["--", "-D", "warnings"]].concat())
}

/// Every test, with the same random input each time: a change is not to fail for what it has not
/// touched. The campaigns draw others.
fn tests() -> Result<Outcome> {
    once(Program::cargo(&["test", "--workspace", "--locked"]))
        .environment("PROPTEST_RNG_SEED", "1")
        .run()
        .map(|()| Outcome::Passed)
}

/// What cargo says of the programs that the step of the tests has built. A build of their packages
/// alone would give them other features of their libraries, and build the engine once more.
fn test_programs() -> Result<String> {
    let build = ["test", "--workspace", "--locked", "--no-run", "--message-format", "json"];
    let built = once(Program::cargo(&build)).output()?;
    Ok(String::from_utf8_lossy(&built).into_owned())
}

/// The program that has this file as its root.
fn program<'a>(built: &'a str, file: &str) -> Result<&'a str> {
    let file = format!("/{file}\"");
    let found = built.lines().filter(|line| line.contains(&file)).find_map(|line| {
        let (_, path) = line.split_once("\"executable\":\"")?;
        path.split('"').next()
    });
    found.ok_or_else(|| {
        Error::new(ErrorKind::NotStarted, format!("cargo names no program of {file}"))
    })
}

/// The tests of databases in memory once more, on a disk: both stores do the same.
fn tests_on_disk() -> Result<Outcome> {
    let built = test_programs()?;
    let of = |directory: &str, filters: &[&str]| {
        Program::new(program(&built, &format!("{directory}/tests/suite/main.rs"))?)
            .directory(&root().join(directory))
            .arguments(filters)
            .environment("PROPTEST_RNG_SEED", "1")
            .environment("ESKER_TEST_MEMORY_ON_DISK", "1")
            .run()
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
    of("crates/db", &modules)?;
    of("crates/sql", &[])?;
    Ok(Outcome::Passed)
}

/// With the asynchronous part of `esker-sql`, as the tests have it.
fn documentation() -> Result<Outcome> {
    let doc = ["doc", "--workspace", "--no-deps", "--profile", "test", "--locked"];
    once(Program::cargo(&[&doc[..], &["--features", "esker-sql/async"]].concat()))
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

/// Runs a program of the campaigns, of the build of the tests: with its debug assertions, and
/// nothing is built for it.
fn built(name: &str, arguments: &[&str]) -> Result<Outcome> {
    let file = format!("crates/testkit/src/bin/{name}.rs");
    let program = program(&test_programs()?, &file)?.to_owned();
    Program::new(&program).arguments(arguments).run().map(|()| Outcome::Passed)
}

/// A sample of the crash campaign.
fn campaign(arguments: &[&str]) -> Result<Outcome> {
    built("crash", arguments)
}

/// Random SQL, compared with SQLite: the program of the build of the tests. Its libraries have
/// features that `esker` does without, for which a release build would build the engine once more.
fn differential() -> Result<Outcome> {
    Program::new(program(&test_programs()?, "crates/differential/src/main.rs")?)
        .arguments(&["--statements", "2000", "--queries", "20000", "--seed", "1"])
        .run()
        .map(|()| Outcome::Passed)
}

/// Answers under different plans, compared.
fn plans() -> Result<Outcome> {
    built("plans", &["--cases", "100", "--seed", "1"])
}

/// Histories of transactions, judged.
fn history(arguments: &[&str]) -> Result<Outcome> {
    built("history", arguments)
}

/// A real process that is killed while it writes, and a server under load, a few times; and one
/// with many clients.
fn kill_loop() -> Result<Outcome> {
    built("kill_loop", &["--cycles", "10"])?;
    built("load_server", &["--small"])?;
    built("kill_server", &["--cycles", "60"])
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
