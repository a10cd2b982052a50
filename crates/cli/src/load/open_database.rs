//! The same into a database that is open: `\copy TABLE FROM FILE` in the shell.

use std::time::Duration;

use esker::Database;
use esker_vfs::Environment;

use super::{Loading, Policy, find_table, input};
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
    let loading = Loading {
        policy: Policy::of(&environment, arguments)?,
        reader: input::open(&environment, arguments, existing.as_deref())?,
        environment: &environment,
        arguments,
        table,
    };
    let report = loading.run(database, console)?;
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    writeln!(console.out, "{}", report.summary(&arguments.table, elapsed))?;
    Ok(())
}
