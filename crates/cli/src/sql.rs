//! `esker sql DB "SELECT …"`.

use std::path::Path;
use std::time::Duration;

use esker::{Database, Options};
use esker_query::QueryResult;

use crate::arguments::{Format, SqlArguments};
use crate::failure::Result;
use crate::{Console, output, units};

pub(crate) fn run(arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let query = esker_sql::parse(&arguments.statement)?;
    let database = open_to_read(&arguments.db)?;
    if arguments.explain {
        let plan = database.explain(&query)?;
        writeln!(console.out, "{}", plan.trim_end())?;
        return Ok(());
    }
    let result = database.query(&query)?;
    let default = if console.is_terminal { Format::Table } else { Format::Csv };
    output::write_result(console.out, &result, arguments.format.unwrap_or(default))?;
    if arguments.timing {
        console.out.flush()?;
        writeln!(console.err, "{}", timing(&result))?;
    }
    Ok(())
}

/// Opens a database that must exist, for reading.
pub(crate) fn open_to_read(dir: &Path) -> Result<Database> {
    Ok(Options::new().create(false).read_only(true).open(dir)?)
}

/// What a query took, in one line.
pub(crate) fn timing(result: &QueryResult) -> String {
    let statistics = &result.statistics;
    let rows = units::counted(result.row_count() as u64, "row");
    let scanned = units::count(statistics.rows_scanned);
    let time = units::duration(Duration::from_nanos(statistics.elapsed_ns));
    match statistics.zones_pruned {
        0 => format!("{rows}, {scanned} scanned, {time}"),
        pruned => {
            let zones = units::count(statistics.zones);
            let pruned = units::count(pruned);
            format!("{rows}, {scanned} scanned, {pruned} of {zones} zones skipped, {time}")
        }
    }
}
