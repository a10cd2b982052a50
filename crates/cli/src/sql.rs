//! `esker sql DB "SELECT …"`, and the statements that change a database.

use std::path::Path;
use std::time::Duration;

use esker::{ChangeOptions, Database, Options};
use esker_query::{Query, QueryResult};
use esker_sql::{Outcome, Statement};

use crate::arguments::{Format, SqlArguments};
use crate::failure::{Failure, Result};
use crate::{Console, output, units};

pub(crate) fn run(arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    match esker_sql::parse_statement(&arguments.statement)? {
        Statement::Query(query) if arguments.explain => explain(&query, arguments, console),
        Statement::Query(query) => answer(&query, arguments, console),
        Statement::Explain(query) => explain(&query, arguments, console),
        change => {
            if arguments.explain {
                return Err(Failure::usage("--explain is for SELECT"));
            }
            execute(&change, arguments, console)
        }
    }
}

fn explain(query: &Query, arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let plan = open_to_read(&arguments.db)?.explain(query)?;
    writeln!(console.out, "{}", plan.trim_end())?;
    Ok(())
}

/// Runs a statement that changes the database; shows what it returns and says what it did.
fn execute(
    statement: &Statement,
    arguments: &SqlArguments,
    console: &mut Console<'_>,
) -> Result<()> {
    let creates = matches!(statement, Statement::CreateTable { .. }) && !arguments.dry_run;
    let database = Options::new().create(creates).open(&arguments.db)?;
    let options = ChangeOptions { dry_run: arguments.dry_run, ..ChangeOptions::default() };
    let outcome = esker_sql::run(&database, statement, &options)?;
    database.close()?;
    let (verbs, changed) = match outcome {
        Outcome::Added(changed) => (("add", "added"), changed),
        Outcome::Changed(changed) => (("change", "changed"), changed),
        Outcome::Removed(changed) => (("remove", "removed"), changed),
        Outcome::Done(done) => return Ok(writeln!(console.err, "{done}")?),
        Outcome::Plan(plan) => return Ok(writeln!(console.out, "{}", plan.trim_end())?),
        Outcome::Rows(_) | _ => return Ok(()),
    };
    if let Some(rows) = &changed.returning {
        show(rows, arguments, console)?;
    }
    let rows = units::counted(changed.rows, "row");
    match arguments.dry_run {
        true => writeln!(console.err, "would {} {rows}", verbs.0)?,
        false => writeln!(console.err, "{} {rows}", verbs.1)?,
    }
    Ok(())
}

fn show(result: &QueryResult, arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let default = if console.is_terminal { Format::Table } else { Format::Csv };
    Ok(output::write_result(console.out, result, arguments.format.unwrap_or(default))?)
}

fn answer(query: &Query, arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let result = open_to_read(&arguments.db)?.query(query)?;
    show(&result, arguments, console)?;
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
