//! Questions over many rows, beside DuckDB and SQLite: `cargo xtask bench tpch`, `bench hits`,
//! `bench windows`, `bench joins`.
//!
//! The same files are loaded into each engine; each question is asked of all, the answers are
//! compared, and then it is timed, of one engine after the other in each run.
//!
//! | module | what it defines |
//! |---|---|
//! | `arguments` | the command line |
//! | `workload` | what is loaded, and what is asked |
//! | `tpch`, `hits`, `windows`, `joins` | the workloads |
//! | `draws` | numbers that rows are made of |
//! | `ours` | Esker |
//! | `peer` | DuckDB and SQLite, in a process of Python |
//! | `answer` | when two answers are the same |
//! | `comparison` | loads, asks, compares and times |
//! | `report` | the table at the end, and what is reached |
#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod comparison;
mod draws;
#[path = "../../src/environment.rs"]
mod environment;
mod hits;
mod joins;
mod ours;
#[path = "../../../crates/differential/src/peer.rs"]
mod peer;
#[path = "../../src/plot.rs"]
mod plot;
mod report;
mod tpch;
mod windows;
mod workload;

use std::process::ExitCode;

use arguments::{Arguments, Which};
use comparison::Comparison;

/// Whatever goes wrong ends the program with a message.
type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("esker-bench-analytics: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let scales = match arguments.which {
        Which::Tpch => arguments.scales.clone(),
        Which::Hits | Which::Windows | Which::Joins => vec![1.0],
    };
    let (mut reached, mut short, mut groups) = (0, 0, Vec::new());
    for scale in scales {
        let workload = match arguments.which {
            Which::Tpch => tpch::workload(scale),
            Which::Hits => hits::workload(arguments.rows),
            Which::Windows => windows::workload(arguments.rows),
            Which::Joins => joins::workload(),
        };
        let comparison = Comparison::new(&arguments, workload, arguments.beside(scale))?;
        if arguments.explain {
            comparison.explain()?;
            continue;
        }
        for threads in &arguments.threads {
            let report = comparison.run(*threads)?;
            let (good, bad) = report.print();
            (reached, short) = (reached + good, short + bad);
            groups.extend(report.groups());
        }
    }
    if !arguments.explain {
        println!("\n{reached} reached, {short} short");
    }
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot::svg(&groups))?;
    }
    Ok(())
}
