//! The times of events: how far from now they may be.
//!
//! Now is the date of the database, by which its events end, too: a wall clock that is wrong for a
//! moment neither lets an event in nor keeps one out.

use std::borrow::Cow;

use esker_format::schema::Stream;
use esker_format::{Batch, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;

use crate::engine::Engine;
use crate::{Error, Result};

impl Engine {
    /// Refuses new rows of a stream whose times are too far from now.
    pub(crate) fn expect_times_of(&self, schema: &Schema, rows: &[Cow<'_, [Value]>]) -> Result<()> {
        let Some((stream, position)) = bounded(schema) else { return Ok(()) };
        let (now_us, class_at) = (self.now().date_us, class_position(schema));
        for (i, row) in rows.iter().enumerate() {
            let Some(time) = row.get(position) else { continue };
            // default: without classes all are of none
            let class = class_at.and_then(|at| row.get(at)).map_or(ValueRef::Null, Value::as_ref);
            let class = stream.class_of(class);
            let known = schema.expect_in_bounds(stream, (time, class), now_us).map_err(violated);
            known.map_err(|e| if rows.len() == 1 { e } else { e.in_row(i as u64) })?;
        }
        Ok(())
    }

    /// The same of a batch, whose first row has a number.
    pub(crate) fn expect_times(
        &self,
        schema: &Schema,
        batch: &Batch,
        first_row: u64,
    ) -> Result<()> {
        let Some((stream, position)) = bounded(schema) else { return Ok(()) };
        let Some(times) = batch.columns.get(position) else { return Ok(()) };
        let classes = class_position(schema).and_then(|at| batch.columns.get(at));
        let (now_us, is_one) = (self.now().date_us, first_row == 0 && batch.len() == 1);
        for row in 0..batch.len() {
            let time = times.value(row).to_owned();
            // default: without classes all are of none
            let class = classes.map_or(ValueRef::Null, |classes| classes.value(row));
            let class = stream.class_of(class);
            let known = schema.expect_in_bounds(stream, (&time, class), now_us).map_err(violated);
            known.map_err(|e| if is_one { e } else { e.in_row(first_row + row as u64) })?;
        }
        Ok(())
    }
}

/// The stream, where it has bounds, and the position of its times.
fn bounded(schema: &Schema) -> Option<(&Stream, usize)> {
    let ends = |s: &Stream| s.ends_events() && !Bug::OldEventTaken.is_planted();
    let is_bounded = |s: &&Stream| s.late_us.is_some() || s.ahead_us.is_some() || ends(s);
    let stream = schema.stream().filter(is_bounded)?;
    let position = schema.fields().iter().position(|field| field.id == stream.time)?;
    Some((stream, position))
}

/// The position of the field that says of which class an event is.
fn class_position(schema: &Schema) -> Option<usize> {
    let class = schema.class_field()?.id;
    schema.fields().iter().position(|field| field.id == class)
}

fn violated(e: esker_format::Error) -> Error {
    Error::violated(e.to_string())
}
