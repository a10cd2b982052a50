//! About how many rows each step of a program makes: what EXPLAIN shows beside what was met.

use crate::access_path::cardinality::{distinct, row_count, selectivity, share_of_value};
use crate::bind::{Program, Stage};
use crate::bound::{Bound, Node};
use crate::predicate::Predicate;
use crate::{Result, Source};

/// Of a program.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    /// Rows that are read and pass the first filter.
    pub(crate) read: u64,
    /// Rows that each step makes, in order: grouping, windows and what is shown.
    pub(crate) steps: Vec<u64>,
}

impl Estimates {
    /// `given`: about how many rows the source has, where it does not tell, because it was not made
    /// ready.
    ///
    /// # Errors
    /// When a column cannot be read.
    pub(crate) fn of(
        program: &Program,
        (predicate, source): (&Predicate, &dyn Source),
        given: Option<u64>,
    ) -> Result<Self> {
        let known = row_count(source);
        let is_there = known > 0.0;
        // default: the source tells
        let rows = given.map_or(known, |rows| rows as f64);
        let share = match program.first_step().filter() {
            None => 1.0,
            Some(_) if is_there => selectivity(predicate, source)?,
            Some(filter) => share_of_value(filter),
        };
        let read = (rows * share.clamp(0.0, 1.0)).min(rows);
        let mut steps = Vec::with_capacity(program.stages.len() + 2);
        let windows = program.windows.as_ref().map(|windows| windows.after);
        let mut rows = read;
        for (i, stage) in program.stages.iter().enumerate() {
            if windows == Some(i) {
                steps.push(whole(rows));
            }
            let fields = (i == 0 && windows != Some(0) && is_there).then_some(source);
            rows = groups(stage, fields, rows)?;
            steps.push(whole(rows));
        }
        if windows == Some(program.stages.len()) {
            steps.push(whole(rows));
        }
        let projection = &program.projection;
        let is_tested = windows.is_some() || !program.stages.is_empty();
        let later = projection.filter.as_ref().filter(|_| is_tested);
        rows *= later.map_or(1.0, share_of_value);
        rows = (rows - projection.offset as f64).max(0.0);
        // default: all rows are shown
        rows = projection.limit.map_or(rows, |limit| rows.min(limit as f64));
        steps.push(whole(rows));
        Ok(Self { read: whole(read), steps })
    }
}

/// About how many groups so many rows make.
fn groups(stage: &Stage, source: Option<&dyn Source>, rows: f64) -> Result<f64> {
    if stage.keys.is_empty() {
        return Ok(1.0);
    }
    let of_key = |key: &Bound| match (&key.node, source) {
        (Node::Field(position), Some(source)) => Ok(distinct(source, *position)?.count),
        // Of anything else nothing is known.
        _ => Ok(rows.sqrt().max(1.0)),
    };
    let of_keys = |keys: &mut dyn Iterator<Item = &Bound>| -> Result<f64> {
        let all = keys.map(of_key).product::<Result<f64>>()?;
        Ok(all.min(rows))
    };
    if stage.sets.is_empty() {
        return of_keys(&mut stage.keys.iter());
    }
    let of_set = |set: &Vec<usize>| of_keys(&mut set.iter().filter_map(|key| stage.keys.get(*key)));
    stage.sets.iter().map(of_set).sum()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of rows")]
pub(super) fn whole(estimate: f64) -> u64 {
    estimate.round().max(0.0) as u64
}
