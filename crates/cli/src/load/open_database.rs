//! The same into a database that is open: `\copy TABLE FROM FILE` in the shell.

use std::time::Duration;

use esker::Database;
use esker_vfs::Environment;

use super::{find_table, input, load_new, load_rows, until_it_holds};
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
    let table = find_table(Some(database), arguments)?;
    let existing = table.as_ref().map(|table| table.schema());
    let reader = input::open(&environment, arguments, existing.as_deref())?;
    let load = |schema, reader, policy| match &table {
        Some(table) => load_rows(table, reader, policy),
        None => load_new(database, &arguments.table, schema, reader, policy),
    };
    let report = until_it_holds(&environment, arguments, console, reader, load)?;
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    writeln!(console.out, "{}", report.summary(&arguments.table, elapsed))?;
    Ok(())
}
