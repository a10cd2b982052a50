//! The executor: morsels of rows in parallel, batches of at most 8,192 rows, encoded columns.
//!
//! ```text
//! source ─ scan ─ mask ─┬─ groups ─ rows in memory ─ scan ─ …
//!    zones filter       └─ projection: sorted keys, then columns of the rows shown
//! ```
//!
//! One stage of groups for GROUP BY, one for DISTINCT; between them windows ([`window`]). UNION,
//! INTERSECT and EXCEPT are groups of the rows of several sources ([`set`]).

pub(crate) mod aggregate;
mod input;
pub(crate) mod join;
pub(crate) mod output;
pub(crate) mod profile;
pub(crate) mod scan;
pub(crate) mod set;
mod showing;
pub(crate) mod sort;
pub(crate) mod spill;
pub(crate) mod table_function;
pub(crate) mod window;

use esker_vfs::Clock;

use crate::bind::Program;
pub(crate) use crate::exec::output::Sink;
pub(crate) use crate::exec::output::copy::collect;
use crate::filter::CodeTables;
use crate::{Options, Result, Source};
use input::Input;
pub(crate) use profile::Profile;
use profile::StepStart;
use scan::ScanCounts;
use showing::show;

/// Runs a program and hands its rows to `sink`.
pub(crate) fn run(
    program: &Program,
    source: &dyn Source,
    options: &Options,
    sink: Sink<'_>,
) -> Result<Profile> {
    let clock: &dyn Clock = &*options.clock;
    let mut profile = Profile::start(clock);
    if program.projection.limit == Some(0) {
        // Nothing is shown, and what would fail is not computed.
        for _ in 0..=program.stages.len() + usize::from(program.windows.is_some()) {
            profile.push(StepStart::now(options).ended(ScanCounts::default(), 0, options));
        }
        profile.finish(clock);
        return Ok(profile);
    }
    let tables = CodeTables::default();
    let mut input = Input::Source(source);
    for (number, stage) in program.stages.iter().enumerate() {
        input = windows(program, number, input, options, &mut profile)?;
        let started = StepStart::now(options);
        let narrowed = aggregate::limit_pushdown::narrowed(program, source, options)?;
        let stage = narrowed.as_ref().unwrap_or(stage);
        let (groups, counts) = aggregate::stage::run_any(input, stage, &tables, options)?;
        profile.push(started.ended(counts, groups.row_count(), options));
        // Tables are kept by address, and the source they are of is about to go.
        tables.clear();
        input = groups;
    }
    input = windows(program, program.stages.len(), input, options, &mut profile)?;
    let projection = &program.projection;
    let started = StepStart::now(options);
    let mut rows_out = 0u64;
    let mut sink = |batch: esker_format::Batch| {
        rows_out += batch.len() as u64;
        sink(batch)
    };
    let counts = show(input, projection, &tables, options, &mut sink)?;
    profile.push(started.ended(counts, rows_out, options));
    profile.finish(clock);
    Ok(profile)
}

/// What comes of the rows behind so many grouping steps, with window functions where they are
/// computed there.
fn windows<'i>(
    program: &Program,
    after: usize,
    input: Input<'i>,
    options: &'i Options,
    profile: &mut Profile,
) -> Result<Input<'i>> {
    let Some(stage) = program.windows.as_ref().filter(|stage| stage.after == after) else {
        return Ok(input);
    };
    let started = StepStart::now(options);
    let (rows, counts) = window::run(input, stage, options)?;
    profile.push(started.ended(counts, rows.row_count(), options));
    Ok(rows)
}
