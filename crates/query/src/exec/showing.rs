//! The last step of a program: rows of the table, or of the step before, are shown.

use super::input::Input;
use super::output::{Sink, project};
use super::scan::{Scan, ScanCounts};
use super::spill::project as project_spilled;
use crate::access_path::{Goal, ScanPlan};
use crate::bind::Projection;
use crate::filter::CodeTables;
use crate::predicate::Predicate;
use crate::{Options, Result, Source};

/// Hands the rows that are shown to `sink`.
pub(super) fn show(
    input: Input<'_>,
    projection: &Projection,
    tables: &CodeTables,
    options: &Options,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    match input {
        Input::Source(source) => project_from(source, projection, tables, options, sink),
        Input::Memory(groups, _charge) if projection.shows_fields_only() => {
            groups.show_fields(projection, options, sink)
        }
        Input::Memory(groups, _charge) => project_from(&groups, projection, tables, options, sink),
        Input::Spilled(groups, files) => project_spilled(groups, projection, options, files, sink),
    }
}

fn project_from(
    source: &dyn Source,
    projection: &Projection,
    tables: &CodeTables,
    options: &Options,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let predicate = Predicate::compile(projection.filter.as_ref());
    let goal = Goal { rows_wanted: projection.rows_read(), ..Goal::ALL };
    let plan = ScanPlan::new(&predicate, source, goal, options)?;
    let wanted = projection.after.as_ref().and_then(|after| after.condition(&projection.order));
    let wanted = wanted.as_ref().map(|condition| Predicate::compile(Some(condition)));
    let scan = Scan::new(source, &predicate, tables, &plan, options).pruned_by(wanted.as_ref());
    project::run(&scan, projection, sink)
}
