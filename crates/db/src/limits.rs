//! Work on many rows that looks now and then whether it is to end.

use crate::engine::Engine;
use crate::{Limits, QueryOptions, Result};

/// How many rows are changed between two looks at the time.
pub(crate) const ROWS_PER_LOOK: usize = 256;

/// Called before each of many rows, by position: whether to go on.
pub(crate) type CancellationCheck<'a> = &'a dyn Fn(usize) -> Result<()>;

/// What is run with limits.
pub(crate) fn within_limits<R>(
    engine: &Engine,
    limits: &Limits,
    run: impl FnOnce(CancellationCheck<'_>) -> Result<R>,
) -> Result<R> {
    let options = QueryOptions { limits: limits.clone(), ..QueryOptions::default() };
    let options = engine.statement_options(&options);
    run(&|row| match row.is_multiple_of(ROWS_PER_LOOK) {
        true => Ok(options.expect_time_left()?),
        false => Ok(()),
    })
}

/// What is run without limits.
pub(crate) fn without_limits(_row: usize) -> Result<()> {
    Ok(())
}
