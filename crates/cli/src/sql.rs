//! `esker sql DB "SELECT …"`, and the statements that change a database.

use std::path::Path;
use std::time::Duration;

use esker::{Database, Options};
use esker_query::model::Change;
use esker_query::{Query, QueryResult};
use esker_sql::Statement;

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
            let done = execute(&change, &arguments.db)?;
            writeln!(console.err, "{done}")?;
            Ok(())
        }
    }
}

fn explain(query: &Query, arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let plan = open_to_read(&arguments.db)?.explain(query)?;
    writeln!(console.out, "{}", plan.trim_end())?;
    Ok(())
}

/// Runs a statement that changes the database; says what it did.
fn execute(statement: &Statement, dir: &Path) -> Result<String> {
    let creates = matches!(statement, Statement::CreateTable { .. });
    let database = Options::new().create(creates).open(dir)?;
    let done = match statement {
        Statement::Change(change) => {
            let rows = units::counted(database.change(change)?, "row");
            let verb = match change {
                Change::Insert(_) => "added",
                Change::Update(_) => "changed",
                Change::Delete(_) => "removed",
            };
            format!("{verb} {rows}")
        }
        Statement::CreateTable { name, if_not_exists: true, .. }
            if database.tables().contains(name) =>
        {
            format!("table {name} exists already")
        }
        Statement::CreateTable { name, schema, .. } => {
            database.create_table(name, schema.clone())?;
            format!("created table {name}")
        }
        Statement::DropTable { name, if_exists: true } if !database.tables().contains(name) => {
            format!("no table {name}")
        }
        Statement::DropTable { name, .. } => {
            database.drop_table(name)?;
            format!("dropped table {name}")
        }
        Statement::Query(_) | Statement::Explain(_) => String::new(),
    };
    database.close()?;
    Ok(done)
}

fn answer(query: &Query, arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let result = open_to_read(&arguments.db)?.query(query)?;
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
