//! The wanted columns of the rows that come out of a join.

use std::ops::ControlFlow;

use esker_format::{Batch, Column, DataType, Schema, Values};

use super::fetched::{Fetched, batch_bytes, chunks};
use super::pairs::{Half, Pairs};
use super::{Input, JoinPlan};
use crate::budget::Charge;
use crate::exec::output::Materialised;
use crate::exec::scan::{Morsel, in_waves};
use crate::{Options, Result, ZONE_ROWS};

/// The wanted columns of pairs, as rows in memory.
pub(super) fn rows<'b>(
    plan: &JoinPlan<'_>,
    pairs: Pairs<'b>,
    schema: Schema,
    options: &'b Options,
) -> Result<(Materialised, Charge<'b>)> {
    let len = pairs.len();
    let mut charge = options.memory().charge();
    if schema.fields().is_empty() {
        // Rows of nothing are still counted.
        charge.set(len)?;
        let batch = |start: usize| {
            let values = Values::U8(vec![0; ZONE_ROWS.min(len - start)]);
            Batch { columns: vec![Column { data_type: DataType::Bool, values, nulls: None }] }
        };
        let batches = (0..len).step_by(ZONE_ROWS).map(batch).collect();
        return Ok((Materialised::new(&[], batches)?, charge));
    }
    let left = half(&plan.left, &pairs.left, options)?;
    let right = half(&plan.right, &pairs.right, options)?;
    let batches: Vec<Batch> = left
        .0
        .into_iter()
        .zip(right.0)
        .map(|(mut left, right)| {
            left.columns.extend(right.columns);
            left
        })
        .collect();
    drop((left.1, right.1));
    charge.set(batches.iter().map(batch_bytes).sum())?;
    Ok((Materialised::of(schema, batches), charge))
}

/// The wanted columns of one side of pairs, one row a pair.
fn half<'b>(
    input: &Input<'_>,
    half: &Half,
    options: &'b Options,
) -> Result<(Vec<Batch>, Charge<'b>)> {
    let len = half.numbers.len();
    let mut charge = options.memory().charge();
    if input.columns.is_empty() {
        return Ok((vec![Batch::default(); len.div_ceil(ZONE_ROWS)], charge));
    }
    let fetched = Fetched::new(input.source, &half.locations, &input.columns, options)?;
    let fetched_bytes = fetched.bytes();
    charge.set(fetched_bytes)?;
    if half.is_whole() {
        return Ok((fetched.into_batches(), charge));
    }
    let chunks: Vec<Morsel> = chunks(len);
    let mut batches = Vec::with_capacity(chunks.len());
    let mut bytes = fetched_bytes;
    let job =
        |chunk: &Morsel| fetched.take(half.numbers.get(chunk.rows.clone()).unwrap_or_default());
    let few = options.tasks.parallelism().max(1) * 8;
    in_waves(options, &chunks, few, job, |batch| {
        bytes += batch_bytes(&batch);
        charge.set(bytes)?;
        batches.push(batch);
        Ok(ControlFlow::Continue(()))
    })?;
    charge.set(bytes - fetched_bytes)?;
    Ok((batches, charge))
}
