//! `esker-bench engine`, `load`, `queries`, `invoice`, `slate`, `whitedb`, `txn`, `server`,
//! `streams`, `rollups` and `ycsb`: every speed and size that is asked of the engine, of what
//! brings rows into it and out of it, and of the server, measured beside what the machine can do at
//! best, with answers checked first.
//!
//! | module | what it defines |
//! |---|---|
//! | `arguments` | the command line |
//! | `machine` | the limits of this machine: memory, page faults, disk |
//! | `rows` | the rows of the table: names, figures asked for |
//! | `bench` | what the workloads share: directory, limits, the large database |
//! | `workloads` | one file a workload |
//! | `loading` | the rows and workloads of `esker-bench load` |
//! | `queries` | the queries of `esker-bench queries` |
//! | `invoice`, `slate`, `whitedb` | what the benchmarks of these names ask |
//! | `transactions`, `large_transaction` | the rows of `esker-bench txn` |
//! | `server` | what is asked of a server over sockets |
//! | `streams` | events: over HTTP, many at once, as they are stored |
//! | `rollups` | materialized views: rows that come in, questions |
//! | `ycsb` | the workloads of the Yahoo! Cloud Serving Benchmark |
//! | `redis` | a server of Redis beside ours |
//! | `timing` | the median of repeated questions |
//! | `data`, `environment`, `process` | keys and texts; one core; memory and children |
//! | `outcome`, `report`, `plot` | what a run gave; the table at the end, and a chart of it |
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark measures real files, clocks and threads"
)]

mod arguments;
mod bench;
mod child;
mod data;
mod environment;
mod invoice;
mod large_transaction;
mod loading;
mod machine;
mod outcome;
mod plot;
mod process;
mod queries;
mod redis;
mod report;
mod rollups;
mod rows;
mod server;
mod slate;
mod streams;
mod timing;
mod transactions;
mod update_operators;
mod user_rows;
mod whitedb;
mod workloads;
mod ycsb;

use std::process::ExitCode;

/// Whatever goes wrong ends the program with a message.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// That of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("esker-bench: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((name, rest)) if name == "engine" => {
            measure(&arguments::Arguments::parse(rows::ROWS, 10_000_000, rest)?)
        }
        Some((name, rest)) if name == "load" => {
            measure(&arguments::Arguments::parse(loading::ROWS, 1_000_000, rest)?)
        }
        Some((name, rest)) if name == "queries" => {
            measure(&arguments::Arguments::parse(queries::ROWS, 1_000_000, rest)?)
        }
        Some((name, rest)) if name == "invoice" => {
            measure(&arguments::Arguments::parse(invoice::ROWS, 1_000_000, rest)?)
        }
        Some((name, rest)) if name == "slate" => {
            measure(&arguments::Arguments::parse(slate::ROWS, 500_000, rest)?)
        }
        Some((name, rest)) if name == "whitedb" => {
            measure(&arguments::Arguments::parse(whitedb::ROWS, 10_000_000, rest)?)
        }
        Some((name, rest)) if name == "txn" => {
            measure(&arguments::Arguments::parse(transactions::ROWS, 1_000_000, rest)?)
        }
        Some((name, rest)) if name == "server" => {
            measure(&arguments::Arguments::parse(server::ROWS, 10_000_000, rest)?)
        }
        Some((name, rest)) if name == "streams" => {
            measure(&arguments::Arguments::parse(streams::ROWS, 10_000_000, rest)?)
        }
        Some((name, rest)) if name == "rollups" => {
            measure(&arguments::Arguments::parse(rollups::ROWS, 25_000_000, rest)?)
        }
        Some((name, rest)) if name == "ycsb" => {
            measure(&arguments::Arguments::parse(ycsb::ROWS, 1_000_000, rest)?)
        }
        Some((name, rest)) if name == "child" => child::run(rest),
        _ => Err(arguments::USAGE.into()),
    }
}

/// Runs every chosen row in turn, as often as asked, and prints the table.
fn measure(arguments: &arguments::Arguments) -> Result<()> {
    let machine = machine::Machine::measure(&arguments.dir)?;
    machine.print();
    let mut bench = bench::Bench::new(arguments, machine)?;
    let chosen: Vec<&rows::Row> = arguments.chosen().collect();
    let mut report = report::Report::new(&chosen, arguments);
    for run in 0..arguments.runs {
        for row in &chosen {
            if run > 0 && row.once {
                continue;
            }
            eprint!("run {} of {}: {} … ", run + 1, arguments.runs, row.name);
            match (row.run)(&mut bench) {
                Ok(outcome) => {
                    eprintln!("{}", outcome.line());
                    report.add(row.name, outcome);
                }
                Err(e) => {
                    eprintln!("failed: {e}");
                    report.fail(row.name, e.to_string());
                }
            }
        }
    }
    report.print(&bench.machine);
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot::svg(&report.groups()))?;
    }
    bench.finish()
}
