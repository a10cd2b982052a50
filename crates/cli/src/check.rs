//! `esker check DB`.

use std::path::Path;
use std::time::Duration;

use esker::CheckReport;
use esker_server::session::AdminTask;
use esker_vfs::{Environment, OpenMode};

use crate::arguments::CheckArguments;
use crate::failure::Result;
use crate::{Console, Status, output, remote, sql, units};

pub(crate) fn run(arguments: &CheckArguments, console: &mut Console<'_>) -> Result<Status> {
    let clock = Environment::os().clock;
    let started_ns = clock.monotonic_ns();
    let report: CheckReport = match remote::address(&arguments.db) {
        Some(address) => remote::admin(&mut remote::connect(address)?, &AdminTask::Check {})?,
        None => esker_server::check(&sql::open_to_read(&arguments.db)?)?,
    };
    let time = units::duration(Duration::from_nanos(clock.monotonic_ns() - started_ns));
    writeln!(
        console.out,
        "checked {}, {}, {} ({}), {} in {time}",
        units::counted(report.tables as u64, "table"),
        units::counted(report.rows, "row"),
        units::counted(report.segments as u64, "segment"),
        units::bytes(report.bytes),
        units::counted(report.index_entries, "index entry").replace("entrys", "entries"),
    )?;
    for note in &report.notes {
        let (place, message) = (output::printable(&note.place), output::printable(&note.message));
        writeln!(console.out, "note: {place}: {message}")?;
    }
    if report.is_sound() {
        writeln!(console.out, "no problem found")?;
        return Ok(Status::Ok);
    }
    write_problems(&report, console)?;
    if let Some(path) = &arguments.repair_report {
        write_repair_report(&report, path)?;
        writeln!(console.out, "what can be done about them is in {}", path.display())?;
    }
    Ok(Status::Problem)
}

/// The most problems that are shown: one damaged block is the problem of each row in it.
const SHOWN_MAX: usize = 100;

/// The problems, a line each, and how many there are.
pub(crate) fn write_problems(report: &CheckReport, console: &mut Console<'_>) -> Result<()> {
    for problem in report.problems.iter().take(SHOWN_MAX) {
        let message = output::printable(&problem.message);
        writeln!(console.out, "{}: {message}", output::printable(&problem.place))?;
    }
    if let Some(more @ 1..) = report.problems.len().checked_sub(SHOWN_MAX) {
        let more = units::count(more as u64);
        writeln!(console.out, "… and {more} more: check --repair-report FILE has all")?;
    }
    let found = units::counted(report.problems.len() as u64, "problem");
    writeln!(console.out, "{found} found")?;
    Ok(())
}

/// Each problem with a remedy, as a line of JSON.
fn write_repair_report(report: &CheckReport, path: &Path) -> Result<()> {
    let file = Environment::os().files.open(path, OpenMode::CreateNew)?;
    let mut text = String::new();
    for problem in &report.problems {
        let line = serde_json::json!({
            "place": problem.place,
            "problem": problem.message,
            "remedy": remedy(&problem.message),
        });
        text.push_str(&line.to_string());
        text.push('\n');
    }
    file.write_all_at(text.as_bytes(), 0)?;
    Ok(file.sync_data()?)
}

/// What can be done about a problem.
fn remedy(problem: &str) -> &'static str {
    if problem.contains("counted") {
        "esker recount corrects the counter"
    } else if problem.contains("checksum") || problem.contains("catalogue") {
        "restore a backup with esker restore; no other copy of these bytes is known"
    } else {
        "restore a backup with esker restore, or export what can be read with esker export"
    }
}
