//! `esker check DB`.

use std::time::Duration;

use esker_vfs::Environment;

use crate::arguments::CheckArguments;
use crate::failure::Result;
use crate::{Console, Status, output, sql, units};

pub(crate) fn run(arguments: &CheckArguments, console: &mut Console<'_>) -> Result<Status> {
    let clock = Environment::os().clock;
    let started_ns = clock.monotonic_ns();
    let database = sql::open_to_read(&arguments.db)?;
    let report = database.check()?;
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
    for problem in &report.problems {
        let message = output::printable(&problem.message);
        writeln!(console.out, "{}: {message}", output::printable(&problem.place))?;
    }
    let found = units::counted(report.problems.len() as u64, "problem");
    writeln!(console.out, "{found} found")?;
    Ok(Status::Problem)
}
