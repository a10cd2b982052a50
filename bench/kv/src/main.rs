//! Buckets beside other embedded key-value stores: the table of LMDB's benchmark, with what it
//! hides. `cargo xtask bench kv --records 5000000`.
//!
//! Every store does every phase, one after the other, in one process run; keys and values are made
//! before the clock starts, every value that is read is compared, and each store is opened with the
//! settings that its own documentation recommends and with the same durability.

#![deny(unsafe_code)]

mod arguments;
mod data;
mod phases;
#[path = "../../src/plot.rs"]
mod plot;
mod report;
mod store;
mod stores;
mod transactions;

use std::process::ExitCode;

use arguments::Arguments;
use data::{Data, Sizes};
use report::Report;

/// Of keys and values.
const SEED: u64 = 3;

fn run() -> store::Result<bool> {
    if std::env::args().nth(1).as_deref() == Some("txn") {
        return transactions::run(&Arguments::parse(std::env::args().skip(2))?).map(|()| true);
    }
    let mut given = std::env::args().skip(1);
    if let (Some("--die"), Some(name), Some(dir)) =
        (given.next().as_deref(), given.next(), given.next())
    {
        let kind = stores::ALL.iter().find(|kind| kind.name == name).ok_or("no such store")?;
        phases::die(kind, dir.as_ref())?;
    }
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let data = Data::new(arguments.records, arguments.sizes, SEED);
    let title = {
        let Sizes { key, value } = arguments.sizes;
        format!("{} entries of {key} and {value} bytes", arguments.records)
    };
    let names = stores::ALL.iter().map(|kind| (kind.name, kind.settings)).collect();
    let mut report = Report::new(title, report::ROWS, names, arguments.runs);
    for run in 0..arguments.runs {
        for kind in stores::ALL {
            if !arguments.wants(kind.name) {
                continue;
            }
            let dir = arguments.dir.join(format!("kv-{}-{run}", kind.name));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir)?;
            eprintln!("run {} of {}: {}", run + 1, arguments.runs, kind.name);
            let outcome = phases::run(kind, &dir, &data, &arguments, &mut report);
            std::fs::remove_dir_all(&dir)?;
            outcome.map_err(|e| format!("{}: {e}", kind.name))?;
        }
    }
    report.print();
    if let Some(path) = &arguments.plot {
        std::fs::write(path, plot::svg(&report.groups()))?;
    }
    Ok(true)
}

fn main() -> ExitCode {
    match run() {
        Ok(_) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("esker-bench-kv: {e}");
            ExitCode::FAILURE
        }
    }
}
