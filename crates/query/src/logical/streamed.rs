//! The rows of several queries, handed over as they are found: where no order is wanted, an answer
//! of any size takes little memory.

use std::ops::ControlFlow;

use super::{Context, Tables};
use crate::bind::parameter::row_count;
use crate::exec::{Sink, collect};
use crate::{Error, Options, Query, Result, Statistics};

/// A set operation that runs when its rows are wanted.
pub(super) struct Streamed<'a> {
    query: Query,
    tables: &'a dyn Tables,
}

impl<'a> Streamed<'a> {
    /// `None` for what is no set operation, or has an order.
    pub(super) fn of(query: &Query, tables: &'a dyn Tables) -> Option<Self> {
        let is_streamed = query.set.is_some() && query.order_by.is_empty();
        is_streamed.then(|| Self { query: query.clone(), tables })
    }

    /// Hands its rows to `sink`.
    ///
    /// # Errors
    /// As [`crate::stream`].
    pub(super) fn run(&self, options: &Options, sink: Sink<'_>) -> Result<Statistics> {
        let (clock, query) = (&options.clock, &self.query);
        let started_ns = clock.monotonic_ns();
        let Some(set) = &query.set else {
            return Err(Error::invalid("expected a set operation, found another query"));
        };
        let offset = row_count("OFFSET", &query.offset, &options.inputs)?;
        let limit = query.limit.as_ref().map(|limit| row_count("LIMIT", limit, &options.inputs));
        let mut cut = Cut { skip: offset, left: limit.transpose()?.unwrap_or(u64::MAX) };
        if cut.left == 0 {
            return Ok(Statistics::default());
        }
        let context = Context::new(self.tables, options, true, None);
        let statistics = context.nested(|| {
            context.beside(query, || {
                let (run, schema) = context.set_run(set)?;
                let types: Vec<_> = schema.fields().iter().map(|field| field.data_type).collect();
                run.stream(set, &mut |batch| {
                    let rows = cut.range(batch.len());
                    let is_whole = rows.len() == batch.len();
                    let flow = match rows.is_empty() {
                        true => ControlFlow::Continue(()),
                        false if is_whole => sink(batch)?,
                        false => {
                            let places: Vec<_> = rows.map(|row| (0, row)).collect();
                            sink(collect(&types, std::slice::from_ref(&batch), &places)?)?
                        }
                    };
                    Ok(if cut.left == 0 { ControlFlow::Break(()) } else { flow })
                })
            })
        })?;
        Ok(statistics.after(clock.monotonic_ns() - started_ns))
    }
}

/// The rows that are left out, and those that are shown behind them.
struct Cut {
    skip: u64,
    left: u64,
}

impl Cut {
    /// Which of some more rows are shown.
    fn range(&mut self, rows: usize) -> std::ops::Range<u32> {
        let rows = rows as u64;
        let skipped = self.skip.min(rows);
        let shown = self.left.min(rows - skipped);
        self.skip -= skipped;
        self.left -= shown;
        // default: a batch has fewer rows
        let place = |row: u64| u32::try_from(row).unwrap_or(u32::MAX);
        place(skipped)..place(skipped + shown)
    }
}
