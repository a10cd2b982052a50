//! `cargo xtask ci`: every check, each timed; the first failure ends the run.
//!
//! `STEPS` is the whole list. First come the steps that have every processor busy by themselves:
//! they run in order. Those that only run programs of the build of the tests follow, side by side,
//! since many of these wait for a disk, a clock or one long test.
//!
//! A program that does not exist yet has no row: nothing here passes by doing nothing.

use crate::pool::{self, Job};
use crate::program::{Program, target_directory};
use crate::test_build::TestBuild;
use crate::{Error, ErrorKind, Result, tidy};
use std::time::{Duration, Instant};

/// What a step came to.
enum Outcome {
    Passed,
    /// It could not run here; the reason is printed and nothing is claimed.
    Skipped(&'static str),
}

/// How a step runs.
enum Work {
    /// With nothing beside it.
    Alone(fn() -> Result<Outcome>),
    /// As programs beside those of other steps.
    Beside(fn(&TestBuild) -> Result<Vec<Program>>),
}

struct Step {
    name: &'static str,
    work: Work,
}

use Work::{Alone, Beside};

/// Long programs come first: the last one to end then ends soon after the others.
const STEPS: &[Step] = &[
    Step { name: "fmt", work: Alone(|| cargo(&["fmt", "--all", "--check"])) },
    Step { name: "tidy", work: Alone(|| tidy::run(&[]).map(|()| Outcome::Passed)) },
    Step { name: "deny", work: Alone(deny) },
    Step { name: "clippy", work: Alone(clippy) },
    Step { name: "doc", work: Alone(documentation) },
    Step { name: "quickstart", work: Beside(quickstart) },
    Step { name: "kill", work: Beside(kill_loop) },
    Step { name: "test", work: Beside(tests) },
    Step { name: "test-stores", work: Beside(tests_on_disk) },
    Step { name: "differential", work: Beside(differential) },
    Step { name: "crash", work: Beside(|b| b.campaign("crash", &["--images", "8000"])) },
    Step { name: "crash-sweep", work: Beside(|b| b.campaign("crash", &["--sweep", "2"])) },
    Step { name: "plans", work: Beside(plans) },
    Step { name: "crash-busy", work: Beside(|b| b.campaign("crash", &["--busy", "1500"])) },
    Step { name: "crash-buckets", work: Beside(|b| b.campaign("crash", &["--buckets", "3000"])) },
    Step { name: "crash-streams", work: Beside(|b| b.campaign("crash", &["--streams", "2000"])) },
    Step { name: "crash-small", work: Beside(|b| b.campaign("crash", &["--exhaustive", "100"])) },
    Step { name: "crash-rot", work: Beside(|b| b.campaign("crash", &["--rot", "5000"])) },
    Step { name: "bucket-rot", work: Beside(|b| b.campaign("crash", &["--bucket-rot", "2500"])) },
    Step { name: "crash-lies", work: Beside(|b| b.campaign("crash", &["--lying-fsync", "2500"])) },
    Step { name: "bucket-lies", work: Beside(|b| b.campaign("crash", &["--bucket-lies", "1500"])) },
    Step { name: "determinism", work: Beside(|b| b.campaign("crash", &["--determinism", "60"])) },
    Step { name: "crash-directed", work: Beside(|b| b.campaign("crash", &["--directed"])) },
    Step { name: "history-planted", work: Beside(|b| b.campaign("history", &["--planted"])) },
    Step { name: "history", work: Beside(history) },
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
    let start = Instant::now();
    let steps = chosen(arguments)?;
    let mut lines = alone(&steps)?;
    lines.extend(beside(&steps)?);
    println!("== every step");
    lines.iter().for_each(|line| println!("  {line}"));
    println!("  {}", line("in all", start.elapsed(), ""));
    Ok(())
}

/// Runs the steps that have nothing beside them; returns a line about each.
fn alone(steps: &[&Step]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for step in steps {
        let Alone(work) = step.work else { continue };
        println!("== {}", step.name);
        let start = Instant::now();
        let outcome = work().map_err(|error| {
            let message = format!("step {} failed: {error}", step.name);
            Error::new(error.kind(), message)
        })?;
        let note = match outcome {
            Outcome::Passed => String::new(),
            Outcome::Skipped(reason) => format!("  skipped: {reason}"),
        };
        let line = line(step.name, start.elapsed(), &note);
        println!("== {line}");
        lines.push(line);
    }
    Ok(lines)
}

/// Builds the tests and runs the programs of all other steps; returns a line about each.
fn beside(steps: &[&Step]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    if steps.iter().all(|step| matches!(step.work, Alone(_))) {
        return Ok(lines);
    }
    println!("== build of the tests");
    let start = Instant::now();
    let build = TestBuild::new()?;
    lines.push(line("test build", start.elapsed(), ""));
    let start = Instant::now();
    let mut jobs = Vec::new();
    for step in steps {
        let Beside(programs) = step.work else { continue };
        jobs.extend(programs(&build)?.into_iter().map(|program| Job { step: step.name, program }));
    }
    let times = pool::run(jobs)?;
    for step in steps.iter().filter(|step| matches!(step.work, Beside(_))) {
        let of_step = times.iter().filter(|(name, _)| *name == step.name);
        let sum = of_step.map(|(_, elapsed)| *elapsed).sum();
        lines.push(line(step.name, sum, "  beside others"));
    }
    lines.push(line("these at once", start.elapsed(), ""));
    Ok(lines)
}

fn line(name: &str, elapsed: Duration, note: &str) -> String {
    format!("{name:<15} {:>7.1} s{note}", elapsed.as_secs_f64())
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

fn cargo(arguments: &[&str]) -> Result<Outcome> {
    Program::cargo(arguments).without_incremental_state().run().map(|()| Outcome::Passed)
}

/// By the profile of the tests, as the documentation: what builds run is then run once for all.
fn clippy() -> Result<Outcome> {
    let check = ["clippy", "--workspace", "--all-targets", "--profile", "test", "--locked"];
    cargo(&[&check[..], &UNOPTIMISED, &["--", "-D", "warnings"]].concat())
}

/// What derives need of `esker-format` is built where nothing else is: it need not be fast there.
const UNOPTIMISED: [&str; 2] = ["--config", "profile.test.package.esker-format.opt-level=0"];

/// Every test, with the same random input each time: a change is not to fail for what it has not
/// touched. The campaigns draw others.
fn tests(build: &TestBuild) -> Result<Vec<Program>> {
    let examples = Program::cargo(&["test", "--workspace", "--locked", "--doc"]);
    let programs = build.tests()?.into_iter().chain([examples.without_incremental_state()]);
    Ok(programs.map(|program| program.environment("PROPTEST_RNG_SEED", "1")).collect())
}

/// The tests of databases in memory once more, on a disk: both stores do the same. Of SQL those
/// that change something: what only asks does not know the store.
fn tests_on_disk(build: &TestBuild) -> Result<Vec<Program>> {
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
    let of = |directory: &str, filters: &[&str]| {
        let suite = build.program(&format!("{directory}/tests/suite/main.rs"))?.arguments(filters);
        let suite = suite.environment("PROPTEST_RNG_SEED", "1");
        Ok(suite.environment("ESKER_TEST_MEMORY_ON_DISK", "1"))
    };
    let changes = ["writes::", "transaction", "tables::", "sequences::", "returning::"];
    let changes = [&changes[..], &["json_updates::", "key_", "indexes::", "places::"]].concat();
    Ok(vec![of("crates/db", &modules)?, of("crates/sql", &changes)?])
}

/// Of the libraries, with the asynchronous part of `esker-sql`. An example is documented, too:
/// asking for one gives what they depend on the features that it has for clippy, which has checked
/// it.
fn documentation() -> Result<Outcome> {
    let doc = ["doc", "--workspace", "--lib", "--example", "embedded", "--no-deps"];
    let doc = [
        &doc[..],
        &["--profile", "test", "--locked", "--features", "esker-sql/async"],
        &UNOPTIMISED,
    ]
    .concat();
    Program::cargo(&doc)
        .without_incremental_state()
        .environment("RUSTDOCFLAGS", "-D warnings")
        .run()
        .map(|()| Outcome::Passed)
}

/// What the README's first command runs, in an empty directory of its own: the program of the build
/// of the tests, since it is tested for being right, not for being fast.
fn quickstart(build: &TestBuild) -> Result<Vec<Program>> {
    let directory = target_directory("quickstart");
    let failed = |e: std::io::Error| {
        let message = format!("cannot use {}: {e}", directory.display());
        Error::new(ErrorKind::NotStarted, message)
    };
    if directory.exists() {
        std::fs::remove_dir_all(&directory).map_err(failed)?;
    }
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let program = build.program("crates/cli/src/main.rs")?.directory(&directory);
    Ok(vec![program.arguments(&["quickstart"])])
}

/// Random SQL, compared with SQLite: the program of the build of the tests. Its libraries have
/// features that `esker` does without, for which a release build would build the engine once more.
fn differential(build: &TestBuild) -> Result<Vec<Program>> {
    let program = build.program("crates/differential/src/main.rs")?;
    let arguments = ["--statements", "1000", "--queries", "10000", "--seed", "1"];
    Ok(vec![program.arguments(&arguments)])
}

/// Answers under different plans, compared.
fn plans(build: &TestBuild) -> Result<Vec<Program>> {
    build.campaign("plans", &["--cases", "40", "--seed", "1"])
}

/// Histories of transactions, judged.
fn history(build: &TestBuild) -> Result<Vec<Program>> {
    build.campaign("history", &["--transactions", "200000"])
}

/// A real process that is killed while it writes, and a server under load, a few times; and one
/// with many clients.
fn kill_loop(build: &TestBuild) -> Result<Vec<Program>> {
    let server = build.campaign("kill_server", &["--cycles", "60"])?;
    let load = build.campaign("load_server", &["--small"])?;
    let process = build.campaign("kill_loop", &["--cycles", "10"])?;
    Ok(server.into_iter().chain(load).chain(process).collect())
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
