//! The history of a rollup: what its groups came to, of events that have ended.
//!
//! ```text
//! CREATE MATERIALIZED VIEW spend WITH (retention = '730 days') AS
//! SELECT date_trunc('hour', t) AS hour, model, sum(cost) FROM calls GROUP BY 1, 2
//!
//! calls            … ended │ ████████ rows ████████
//! spend$history    groups  │         one frame ends a window of events, and has its groups
//! spend         =  groups  +  groups of the rows
//! ```
//!
//! It is a table with a row for each group and commit that has ended events of it, with the columns
//! of what is kept of the rollup for a segment; what has no order of time, or is kept for ever, is
//! a plain one, the others are streams, whose rows end as those of any.
//!
//! # Invariants
//!
//! 1. The frame that ends events of a stream has the groups of these, of each of its rollups with a
//!    history: no reader sees both, or neither. `maintenance/ended_groups.rs` upholds it.
//! 2. It goes by the name of its view, and comes and goes with it: a table is a history by its
//!    schema, which no statement gives a table.

use std::sync::Arc;

use esker_format::schema::{Alteration, Changes, Index, Stream, StreamOption};
use esker_format::{DataType, Schema};
use esker_query::{PartialAggregates, Rollup, View};
use esker_table::Table as TableCore;

use super::kept_for::KeptFor;
use super::names::{Names, history_name};

use crate::{Error, Result};

const DAY_US: u64 = 86_400_000_000;

/// The history of a view.
pub(crate) fn of<'n>(names: &'n Names, view: &str) -> Option<&'n Arc<TableCore>> {
    names.get(&history_name(view)).filter(|core| core.schema().is_history())
}

/// The table that is the history of a rollup of a stream, which is kept for so long.
pub(crate) fn schema_of(
    (rollup, view): (&Rollup, &View),
    (index, schema): (Option<&Index>, &Schema),
    kept: KeptFor,
) -> Result<Schema> {
    let Some(stream) = schema.stream() else {
        let table = &rollup.table;
        let message = "expected a stream, whose events end and are kept here: of other tables a \
                       view has the rows that there are";
        return Err(Error::invalid(format!("retention: table {table:?} is none: {message}")));
    };
    let Some(index) = index else {
        let message = "retention: of groups such as these nothing is kept: expected keys and \
                       aggregates that are, and fewer of them";
        return Err(Error::invalid(message));
    };
    let partials = PartialAggregates::of(index, schema)?;
    if let Some(field) = rollup.wide_sum(schema) {
        let message =
            format!("retention: no sums are kept of field {field:?}, of more than 18 digits");
        return Err(Error::invalid(message));
    }
    if partials.layout().types().contains(&DataType::Enum) {
        let message = "retention: expected keys and extremes of other types than enum, whose \
                       values may be named anew";
        return Err(Error::invalid(message));
    }
    let keys = rollup.key_columns();
    let step = step(rollup, schema, stream)?;
    let mut builder = Schema::builder();
    let mut time = None;
    for (at, data_type) in partials.layout().types().iter().enumerate() {
        let key = keys.get(at).filter(|_| at < partials.layout().rows()).copied();
        let Some(column) = key else {
            let name = match at.checked_sub(partials.layout().rows()) {
                Some(0) => "$rows".to_owned(),
                Some(1) => "$first".to_owned(),
                _ => format!("${at}"),
            };
            builder = builder.nullable(name, *data_type);
            continue;
        };
        let named = view.columns.get(column).map(|column| column.name.clone());
        let name = named.ok_or_else(|| Error::corrupt("a key of a rollup that is no column"))?;
        let is_time = step.is_some_and(|(at, _)| at == column) && *data_type == DataType::Timestamp;
        builder = match is_time {
            true => builder.field(name.clone(), *data_type),
            false => builder.nullable(name.clone(), *data_type),
        };
        time = time.or_else(|| is_time.then_some(name));
    }
    let builder = match (kept, time) {
        (KeptFor::Ever, None) => builder,
        (KeptFor::Ever, Some(time)) => builder.stream(time, []),
        (KeptFor::Span(_), None) => {
            let field = schema.field_of(stream.time).map(|field| field.name.as_str());
            let time = field.ok_or_else(|| Error::corrupt("a stream without a field of times"))?;
            return Err(Error::invalid(format!(
                "retention: no key says when a group was: expected {time:?}, or date_trunc of it, \
                 among the keys, or retention = 'forever'"
            )));
        }
        (KeptFor::Span(keep_us), Some(time)) => {
            expect_longer(rollup, schema, keep_us)?;
            builder.stream(time, [StreamOption::Retention(Some(keep_us))])
        }
    };
    Ok(builder.changes(Changes::History).build()?)
}

/// The column of a rollup that is the time of an event, or the shortest step of it, and how long
/// that is.
fn step(rollup: &Rollup, schema: &Schema, stream: &Stream) -> Result<Option<(usize, u64)>> {
    let lost = || Error::corrupt("a stream without a field of times");
    let time = schema.field_of(stream.time).ok_or_else(lost)?;
    Ok(rollup.step_of(&time.name))
}

/// For how long a history is kept, as a statement has it.
pub(crate) fn kept_text(schema: &Schema) -> Result<String> {
    let options = match schema.stream() {
        Some(_) => schema.stream_options()?,
        None => Vec::new(),
    };
    let retention = options.into_iter().find(|(name, _)| *name == "retention");
    // default: it has no end
    Ok(retention.map_or_else(|| "forever".to_owned(), |(_, text)| text))
}

/// Whether changes of a stream may be such that histories of its rollups would end too early.
pub(crate) fn is_concerned(schema: &Schema, alterations: &[Alteration]) -> bool {
    let is_of_stream = |alteration: &Alteration| matches!(alteration, Alteration::SetStream(_));
    let is_rolled_up = schema.indexes().iter().any(Index::is_rollup);
    schema.stream().is_some() && is_rolled_up && alterations.iter().any(is_of_stream)
}

/// Refuses a history of which a group would end before the last of its events has: these end
/// with their window, and the group by the beginning of its step.
pub(crate) fn expect_longer(rollup: &Rollup, schema: &Schema, keep_us: u64) -> Result<()> {
    let Some(stream) = schema.stream() else { return Ok(()) };
    let Some((_, step_us)) = step(rollup, schema, stream)? else { return Ok(()) };
    let kept = (0..stream.class_count()).filter_map(|class| stream.keep_us_of(class)).max();
    let Some(kept_us) = kept else { return Ok(()) };
    let needed_us = kept_us.saturating_add(step_us).saturating_add(stream.window_us());
    if needed_us <= keep_us {
        return Ok(());
    }
    let days = needed_us.div_ceil(DAY_US);
    Err(Error::invalid(format!(
        "retention: the groups of a materialized view would end before their events have: expected \
         {days} days or more, or 'forever'"
    )))
}
