//! The same into a database that is open: `\copy TABLE FROM FILE` in the shell.

use std::time::Duration;

use esker::Database;
use esker_vfs::Environment;

use super::{Policy, find_table, input, load_new, load_rows, show_schema};
use crate::Console;
use crate::arguments::LoadArguments;
use crate::failure::Result;

pub(crate) fn run_in(
    database: &Database,
    arguments: &LoadArguments,
    console: &mut Console<'_>,
) -> Result<()> {
    let environment = Environment::os();
    let started_ns = environment.clock.monotonic_ns();
    let name = arguments.table.as_str();
    let table = find_table(Some(database), arguments)?;
    let policy = Policy::of(&environment, arguments)?;
    let existing = table.as_ref().map(|table| table.schema());
    let reader = input::open(&environment, arguments, existing.as_deref())?;
    let schema = input::with_indexes(reader.schema(), &arguments.indexes)?;
    let report = match table {
        Some(table) => load_rows(&table, reader, policy)?,
        None => {
            show_schema(console, name, &schema, &reader)?;
            load_new(database, name, schema, reader, policy)?
        }
    };
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    writeln!(console.out, "{}", report.summary(name, elapsed))?;
    Ok(())
}
