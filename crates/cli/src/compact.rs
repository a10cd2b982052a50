//! `esker compact DB` and `esker recount DB`.

use std::path::Path;

use esker::{CompactReport, Database, Options};
use esker_server::session::AdminTask;
use indicatif::ProgressBar;
use serde::Deserialize;

use crate::arguments::{CompactArguments, RecountArguments};
use crate::failure::Result;
use crate::{Console, output, remote, units};

pub(crate) fn run(arguments: &CompactArguments, console: &mut Console<'_>) -> Result<()> {
    let report = match remote::address(&arguments.db) {
        Some(address) => {
            let task = AdminTask::Compact { dry_run: arguments.dry_run };
            remote::admin(&mut remote::connect(address)?, &task)?
        }
        None => compact(arguments)?,
    };
    let segments = units::counted(report.rewritten, "segment");
    if arguments.dry_run {
        let before = units::bytes(report.bytes_before);
        writeln!(console.err, "would rewrite {segments}; segments take {before} now")?;
    } else {
        let (before, after) = (units::bytes(report.bytes_before), units::bytes(report.bytes_after));
        writeln!(console.err, "rewrote {segments}: {before} before, {after} after")?;
    }
    Ok(())
}

fn compact(arguments: &CompactArguments) -> Result<CompactReport> {
    let database = open_to_write(&arguments.db)?;
    let bar = ProgressBar::new(0);
    let report = database.compact(arguments.dry_run, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    database.close()?;
    Ok(report)
}

/// What was counted anew.
#[derive(Deserialize)]
struct Recounted {
    tables: u64,
    /// Names, with what was counted before, and now.
    wrong: Vec<(String, u64, u64)>,
}

pub(crate) fn recount(arguments: &RecountArguments, console: &mut Console<'_>) -> Result<()> {
    let Recounted { tables, wrong } = match remote::address(&arguments.db) {
        Some(address) => {
            let task = AdminTask::Recount { dry_run: arguments.dry_run };
            remote::admin(&mut remote::connect(address)?, &task)?
        }
        None => {
            let database = open_to_write(&arguments.db)?;
            let wrong = database.recount(arguments.dry_run)?;
            let tables = database.tables().len() as u64;
            database.close()?;
            Recounted { tables, wrong }
        }
    };
    for (name, before, now) in &wrong {
        let (before, now) = (units::count(*before), units::count(*now));
        writeln!(console.out, "{}: {before} counted, {now} there", output::printable(name))?;
    }
    let counted = units::counted(tables, "table");
    let was = if arguments.dry_run { "is" } else { "was" };
    writeln!(console.err, "counted {counted}; {} {was} wrong", wrong.len())?;
    Ok(())
}

pub(crate) fn open_to_write(dir: &Path) -> Result<Database> {
    Ok(Options::new().create(false).open(dir)?)
}
