//! `cargo xtask COMMAND`: everything one can do with this repository, in one place.
#![forbid(unsafe_code)]

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [STEP...]                    every check, timed; `--list` names the steps
  tidy [--statistics]             the rules of style that no compiler checks
  quickstart [--serve|--streams]  the example data, asked; served, to the guide's commands;
                                  `--picture FILE`: as a picture
  realfiles [--make] DIRECTORY    its files, loaded here and by DuckDB, side by side; `--make`
                                  makes some of every kind first
  crash [ARGUMENT...]             the crash campaign of esker-testkit
  differential [ARGUMENT...]      random SQL here and on SQLite, compared
  plans [--cases N] [--seed N]    answers with each index, sealed or not, old or new, compared
  history [ARGUMENT...]           histories of transactions, their anomalies by name
  load [--small]                  many clients of a server at once, and bad ones
  schemathesis [--seed N]         generated HTTP requests, answered as the server's document says
  clients                         generated HTTP clients: every operation is called by each
  kill [--cycles N] [--planted]   a server killed under load, what it answered looked for
  bench NAME [ARGUMENT...]        a benchmark of esker-bench
  compare --against COMMIT NAME…  benchmarks of a commit and of today in turn, as ratios
  hello                           a small program here and with others: time to build, size
  fuzz [--seconds N] [TARGET...]  every fuzz target, or those named, 60 s each
  tsan [PACKAGE...]               concurrent tests under the thread sanitizer
  loom [FILTER...]                the loom models of esker-arena
  model [FILTER...]               the shuttle models of the engine, and planted bugs
";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    }
    let command = arguments.remove(0);
    let outcome = match command.as_str() {
        "ci" => xtask::ci::run(&arguments),
        "tidy" => xtask::tidy::run(&arguments),
        "quickstart" => xtask::quickstart::run(&arguments),
        "realfiles" => xtask::realfiles::run(&arguments),
        "crash" => xtask::crash::run(&arguments),
        "differential" => xtask::differential::run(&arguments),
        "plans" => xtask::plans::run(&arguments),
        "history" => xtask::history::run(&arguments),
        "load" => xtask::load::run(&arguments),
        "kill" => xtask::kill::run(&arguments),
        "schemathesis" => xtask::schemathesis::run(&arguments),
        "clients" => xtask::clients::run(&arguments),
        "bench" => xtask::bench::run(&arguments),
        "compare" => xtask::compare::run(&arguments),
        "hello" => xtask::hello::run(&arguments),
        "fuzz" => xtask::fuzz::run(&arguments),
        "tsan" => xtask::tsan::run(&arguments),
        "loom" => xtask::loom::run(&arguments),
        "model" => xtask::model::run(&arguments),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(xtask::Error::usage(format!("unknown command {other:?}\n\n{USAGE}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {command}: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
