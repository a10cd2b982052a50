//! Answers: one object a line.

use std::ops::ControlFlow;

use esker::{Batch, Value, ValueRef};
use esker_import::{Format, RowWriter};
use esker_query::ResultColumn;

use crate::resources::budget::Share;
use crate::session::{Answer, IdempotencyKey, Request, ResultBudget, RowSink, Session};
use crate::{Code, Error, Result};

/// The answer, without the end of its line.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub id: Option<String>,
    pub out: Vec<u8>,
    /// The share of the budget that it has, where it is large.
    pub share: Option<Share>,
    /// The code of the error that it is.
    pub failed: Option<Code>,
    /// The request changes nothing.
    pub only_reads: bool,
}

impl Told {
    pub fn error(id: Option<String>, e: &Error) -> Self {
        let out = failed_line(id.as_deref(), e);
        Self { id, out, failed: Some(e.code()), ..Self::default() }
    }

    pub fn answer(id: Option<String>, answer: &Answer) -> Self {
        let out = told(id.as_deref(), answer);
        Self { id, out, ..Self::default() }
    }
}

/// Does a request, and writes its answer; rows as they are found.
pub(super) fn tell(
    session: &mut Session,
    id: Option<String>,
    request: Request,
    mut room: ResultBudget,
) -> Result<Told> {
    let most = session.result_bytes_max();
    room.begin(most);
    let only_reads = request.only_reads();
    let mut sink = LineSink::new(id.as_deref(), room);
    let answer = session.stream(request, &mut sink);
    let share = session.end_answer().into_share();
    let (out, room) = match (sink.end(), answer) {
        (Ok(None), Ok(answer)) => (told(id.as_deref(), &answer), ResultBudget::default()),
        (Ok(Some((out, room))), Ok(_)) => (out, room),
        (Err(e), Ok(_)) => return Err(if only_reads { e } else { e.though_done() }),
        (_, Err(e)) => return Err(e),
    };
    if only_reads && out.len() as u64 > most {
        return Err(Error::too_large_answer(most));
    }
    let share = room.into_share().or(share);
    Ok(Told { id, out, share, failed: None, only_reads })
}

/// Does a write once, and answers it each time that it is sent.
pub(super) fn tell_once(
    session: &mut Session,
    id: Option<String>,
    request: &Request,
    once: &IdempotencyKey,
) -> Result<Told> {
    IdempotencyKey::expect_alone(session, request)?;
    let kept = once.run(session, |session| {
        let mut sink = LineSink::new(None, ResultBudget::default());
        let answer = session.stream(request.clone(), &mut sink)?;
        let out = sink.end()?.map_or_else(|| told(None, &answer), |(out, _)| out);
        // It is in a transaction: nothing is done where this is refused.
        session.take_answer(out.len())?;
        Ok(out)
    });
    let kept = kept?;
    let share = session.end_answer().into_share();
    // It is kept without an id.
    let out = [start(id.as_deref()).as_slice(), kept.get(1..).unwrap_or_default()].concat();
    Ok(Told { id, out, share, failed: None, only_reads: false })
}

/// Writes rows as they are found.
struct LineSink {
    out: Vec<u8>,
    room: ResultBudget,
    /// How much of it there is room for.
    counted: usize,
    writer: Option<RowWriter>,
    rows: u64,
    refused: Option<Error>,
}

impl LineSink {
    fn new(id: Option<&str>, room: ResultBudget) -> Self {
        let mut out = start(id);
        out.extend_from_slice(b"\"ok\":true,\"rows\":[");
        Self { out, room, counted: 0, writer: None, rows: 0, refused: None }
    }

    fn take(&mut self) -> ControlFlow<()> {
        match self.room.take(self.out.len() - self.counted) {
            Ok(()) => {
                self.counted = self.out.len();
                ControlFlow::Continue(())
            }
            Err(e) => {
                self.refused = Some(e);
                ControlFlow::Break(())
            }
        }
    }

    /// What was written, where there were rows to write.
    fn end(mut self) -> Result<Option<(Vec<u8>, ResultBudget)>> {
        if self.writer.is_none() {
            return Ok(None);
        }
        self.out.extend_from_slice(b"]}");
        if self.refused.is_none() {
            let _ = self.take();
        }
        match self.refused {
            Some(e) => Err(e),
            None => Ok(Some((self.out, self.room))),
        }
    }
}

impl RowSink for LineSink {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        let names = columns.iter().map(|column| column.name.as_str());
        self.writer = Some(RowWriter::new(Format::Json, b',', names));
        ControlFlow::Continue(())
    }

    fn rows(&mut self, batch: &Batch) -> ControlFlow<()> {
        for row in 0..batch.len() {
            let Some(writer) = &self.writer else { return ControlFlow::Break(()) };
            if self.rows > 0 {
                self.out.push(b',');
            }
            self.rows += 1;
            let values = batch.columns.iter().map(|column| column.value(row));
            writer.write_row(&mut self.out, false, values);
            self.take()?;
        }
        ControlFlow::Continue(())
    }
}

fn start(id: Option<&str>) -> Vec<u8> {
    match id {
        Some(id) => format!("{{\"id\":{id},").into_bytes(),
        None => b"{".to_vec(),
    }
}

fn json_text(out: &mut Vec<u8>, text: &str) {
    // A text is always JSON.
    let _ = serde_json::to_writer(out, text);
}

pub(super) fn failed_line(id: Option<&str>, e: &Error) -> Vec<u8> {
    let mut out = start(id);
    out.extend_from_slice(b"\"error\":{\"code\":");
    json_text(&mut out, e.code().as_str());
    out.extend_from_slice(b",\"message\":");
    json_text(&mut out, e.message());
    out.extend_from_slice(b"}}");
    out
}

fn told(id: Option<&str>, answer: &Answer) -> Vec<u8> {
    let mut out = start(id);
    out.extend_from_slice(b"\"ok\":true");
    match answer {
        Answer::Done => {}
        Answer::Text(text) => member(&mut out, "text", |out| json_text(out, text)),
        Answer::Names(names) => member(&mut out, "names", |out| {
            list(out, names, |out, name| json_text(out, name));
        }),
        Answer::Rows(rows) => member(&mut out, "rows", |out| {
            list(out, rows, |out, row| match row {
                Some(row) => {
                    let names = row.schema().fields().iter().map(|f| f.name.as_str());
                    let writer = RowWriter::new(Format::Json, b',', names);
                    writer.write_row(out, false, row.values().iter().map(Value::as_ref));
                }
                None => out.extend_from_slice(b"null"),
            });
        }),
        Answer::Flags(flags) => member(&mut out, "found", |out| {
            list(out, flags, |out, flag| out.extend_from_slice(flag.to_string().as_bytes()));
        }),
        Answer::Stored { rows, row_id } => {
            plain(&mut out, "stored", rows);
            if let Some(id) = row_id {
                plain(&mut out, "row_id", id);
            }
        }
        Answer::Changed(n) => plain(&mut out, "changed", n),
        Answer::Number(n) => plain(&mut out, "number", n),
        Answer::Report(report) => plain(&mut out, "report", report),
        // Their rows have been sent.
        Answer::Result { .. } => {}
        Answer::Page(page) => {
            result_rows(&mut out, &page.result);
            for (name, cursor) in [("next", &page.next), ("previous", &page.previous)] {
                if let Some(cursor) = cursor {
                    member(&mut out, name, |out| json_text(out, cursor));
                }
            }
            if let Some(total) = page.total {
                plain(&mut out, "total", &total);
            }
        }
        Answer::Values(values) => member(&mut out, "values", |out| {
            list(out, values, |out, value| match value {
                Some(value) => bytes(out, value),
                None => out.extend_from_slice(b"null"),
            });
        }),
        Answer::Entries(entries) => member(&mut out, "entries", |out| {
            list(out, entries, |out, (key, value)| {
                out.push(b'[');
                bytes(out, key);
                out.push(b',');
                bytes(out, value);
                out.push(b']');
            });
        }),
    }
    out.push(b'}');
    out
}

/// Bytes: as text where they are one, else in hexadecimal digits as rows have them.
fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    match std::str::from_utf8(value) {
        Ok(text) => json_text(out, text),
        Err(_) => json_text(out, &ValueRef::Bytes(value).to_string()),
    }
}

fn result_rows(out: &mut Vec<u8>, result: &esker::QueryResult) {
    member(out, "rows", |out| {
        let writer =
            RowWriter::new(Format::Json, b',', result.columns.iter().map(|c| c.name.as_str()));
        let rows: Vec<_> = result.rows().collect();
        list(out, &rows, |out, row| writer.write_row(out, false, row.iter().copied()));
    });
}

/// A member whose value is JSON as it is displayed.
fn plain(out: &mut Vec<u8>, name: &str, value: &impl std::fmt::Display) {
    member(out, name, |out| out.extend_from_slice(value.to_string().as_bytes()));
}

fn member(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    write(out);
}

fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}
