//! Answers to frames.

use std::ops::ControlFlow;

use esker::{Batch, QueryResult};
use esker_query::ResultColumn;
use esker_wire::value::{write, write_values};
use esker_wire::{Frame, FrameWriter, Kind, MORE, pack};

use crate::session::{Answer, RowSink};
use crate::{Error, Result};

/// Rows of one frame, at most.
const FRAME_ROWS: usize = 1024;

/// Appends a frame with an error.
pub(super) fn error(out: &mut Vec<u8>, id: u32, error: &Error) {
    let mut frame = FrameWriter::new(out, id, Kind::Failed, 0);
    let payload = frame.payload();
    pack::array(payload, 2);
    pack::text(payload, error.code().as_str());
    pack::text(payload, error.message());
    frame.finish();
}

/// Appends the version of the server.
pub(super) fn version(out: &mut Vec<u8>) {
    pack::text(out, env!("CARGO_PKG_VERSION"));
}

/// Appends the frames of an answer.
pub(super) fn answer(out: &mut Vec<u8>, id: u32, answer: &Result<Answer>) {
    match answer {
        Err(e) => error(out, id, e),
        Ok(Answer::Result { result, changed }) => {
            rows(out, id, result);
            done(out, id, |payload| pack::uint(payload, *changed));
        }
        Ok(Answer::Page(page)) => {
            rows(out, id, &page.result);
            done(out, id, |payload| {
                pack::array(payload, 3);
                for cursor in [&page.next, &page.previous] {
                    optional(payload, cursor.as_deref(), pack::text);
                }
                optional(payload, page.total, pack::uint);
            });
        }
        Ok(other) => done(out, id, |payload| value(payload, other)),
    }
}

/// Gives all frames of an answer another id.
pub(super) fn with_id(mut frames: Vec<u8>, id: u32) -> Vec<u8> {
    let mut start = 0;
    while let Some(length) = Frame::announced(frames.get(start..).unwrap_or_default()) {
        if let Some(slot) = frames.get_mut(start + 4..start + 8) {
            slot.copy_from_slice(&id.to_le_bytes());
        }
        start = start.saturating_add(length);
    }
    frames
}

/// Appends the last frame of an answer.
pub(super) fn done(out: &mut Vec<u8>, id: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut frame = FrameWriter::new(out, id, Kind::Done, 0);
    write(frame.payload());
    frame.finish();
}

/// Appends a value, or nil.
fn optional<T>(out: &mut Vec<u8>, value: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
    match value {
        Some(value) => write(out, value),
        None => pack::nil(out),
    }
}

fn value(out: &mut Vec<u8>, answer: &Answer) {
    match answer {
        Answer::Done | Answer::Result { .. } | Answer::Page(_) => pack::nil(out),
        Answer::Text(text) => pack::text(out, text),
        Answer::Names(names) => {
            pack::array(out, names.len());
            names.iter().for_each(|name| pack::text(out, name));
        }
        Answer::Rows(found) => {
            pack::array(out, found.len());
            for row in found {
                match row {
                    Some(row) => write_values(out, row.values().iter().map(|v| v.as_ref())),
                    None => pack::nil(out),
                }
            }
        }
        Answer::Flags(flags) => {
            pack::array(out, flags.len());
            flags.iter().for_each(|flag| pack::bool(out, *flag));
        }
        Answer::Stored { rows, row_id } => {
            pack::array(out, 2);
            pack::uint(out, *rows);
            optional(out, *row_id, pack::uint);
        }
        Answer::Changed(rows) => pack::uint(out, *rows),
        Answer::Values(values) => {
            pack::array(out, values.len());
            for value in values {
                optional(out, value.as_deref(), pack::bytes);
            }
        }
        Answer::Entries(entries) => {
            pack::array(out, entries.len() * 2);
            for (key, value) in entries {
                pack::bytes(out, key);
                pack::bytes(out, value);
            }
        }
        Answer::Report(report) => pack::text(out, &report.to_string()),
        Answer::Number(number) => pack::int(out, *number),
    }
}

fn rows(out: &mut Vec<u8>, id: u32, result: &QueryResult) {
    columns(out, id, &result.columns);
    result.batches.iter().for_each(|rows| batch(out, id, rows));
}

fn columns(out: &mut Vec<u8>, id: u32, columns: &[ResultColumn]) {
    let mut frame = FrameWriter::new(out, id, Kind::Columns, MORE);
    let payload = frame.payload();
    pack::array(payload, columns.len());
    for column in columns {
        pack::array(payload, 2);
        pack::text(payload, &column.name);
        pack::text(payload, &column.data_type.to_string());
    }
    frame.finish();
}

fn batch(out: &mut Vec<u8>, id: u32, batch: &Batch) {
    let mut start = 0;
    while start < batch.len() {
        start = some_rows(out, id, batch, start);
    }
}

/// Appends a frame of rows from one on; returns the one behind them.
fn some_rows(out: &mut Vec<u8>, id: u32, batch: &Batch, start: usize) -> usize {
    let end = batch.len().min(start + FRAME_ROWS);
    let mut frame = FrameWriter::new(out, id, Kind::Rows, MORE);
    let payload = frame.payload();
    pack::array(payload, end - start);
    for row in start..end {
        pack::array(payload, batch.columns.len());
        batch.columns.iter().for_each(|column| write(payload, column.value(row)));
    }
    frame.finish();
    end
}

/// Hands frames of rows on as they come.
pub(super) struct FrameSink<'s> {
    pub id: u32,
    pub send: &'s mut dyn FnMut(Vec<u8>) -> ControlFlow<()>,
    pub gathered: Vec<u8>,
    /// Bytes that were handed on.
    pub sent: u64,
    /// The most of them.
    pub most: u64,
    /// The statement has changed something.
    pub has_changed: bool,
}

/// Frames are handed on from here on.
const GATHERED_BYTES: usize = 64 << 10;

impl RowSink for FrameSink<'_> {
    fn changed(&mut self) {
        self.has_changed = true;
    }

    fn columns(&mut self, found: &[ResultColumn]) -> ControlFlow<()> {
        columns(&mut self.gathered, self.id, found);
        ControlFlow::Continue(())
    }

    fn rows(&mut self, rows: &Batch) -> ControlFlow<()> {
        let mut start = 0;
        while start < rows.len() {
            start = some_rows(&mut self.gathered, self.id, rows, start);
            if self.gathered.len() >= GATHERED_BYTES {
                self.sent += self.gathered.len() as u64;
                if self.sent > self.most {
                    return ControlFlow::Break(());
                }
                (self.send)(std::mem::take(&mut self.gathered))?;
            }
        }
        ControlFlow::Continue(())
    }
}
