//! A query's steps as text, with what they met.

use std::fmt::Write;

use crate::bind::{Program, Stage};
use crate::exec::Profile;
use crate::model::Query;

/// One line per step, the last step first, each indented below the step that reads its rows.
pub(crate) fn explain(query: &Query, program: &Program, profile: &Profile) -> String {
    let mut text = String::new();
    let steps = profile.steps.iter().enumerate().rev();
    for (depth, (i, step)) in steps.enumerate() {
        let indent = "  ".repeat(depth);
        let what = program.stages.get(i).map_or_else(|| shown(query), |s| grouped(query, i, s));
        let time_ms = step.elapsed_ns as f64 / 1e6;
        let (rows_in, rows_out) = (step.counts.rows_passed, step.rows_out);
        let _ = writeln!(
            text,
            "{indent}{} {what}  (rows in {rows_in}, out {rows_out}, {time_ms:.3} ms)",
            step.name
        );
    }
    let indent = "  ".repeat(profile.steps.len());
    if let Some(first) = profile.steps.first() {
        let counts = first.counts;
        let filter = query.filter.as_ref().map_or(String::new(), |f| format!(" where {f}"));
        let _ = writeln!(
            text,
            "{indent}scan {}{filter}  (parts {}, zones {}, pruned {}, rows read {}, passed {})",
            query.table,
            first.parts,
            counts.zones,
            counts.zones_pruned,
            counts.rows_scanned,
            counts.rows_passed
        );
    }
    let _ = writeln!(text, "total {:.3} ms", profile.elapsed_ns as f64 / 1e6);
    text
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn shown(query: &Query) -> String {
    let mut text = if query.select.is_empty() { "*".to_owned() } else { list(&query.select) };
    if let Some(having) = &query.having {
        let _ = write!(text, " having {having}");
    }
    if !query.order_by.is_empty() {
        let _ = write!(text, " by {}", list(&query.order_by));
    }
    if let Some(limit) = query.limit {
        let _ = write!(text, " limit {limit}");
    }
    if query.offset > 0 {
        let _ = write!(text, " offset {}", query.offset);
    }
    text
}

fn grouped(query: &Query, stage: usize, of: &Stage) -> String {
    match (stage, query.group_by.is_empty()) {
        (0, false) => format!("by {}", list(&query.group_by)),
        (0, true) if of.keys.is_empty() => "all".to_owned(),
        _ => format!("distinct {}", list(&query.select)),
    }
}
