//! What a tail of HTTP reads: the events of a stream, or the changes of a table by commits.

use std::time::Duration;

use esker::{Change, ChangeReader, CommitChanges, Tail, TailBatch, Value, json};
use esker_import::Format;

use super::event_pages::EventWriter;
use crate::{Code, Error, Result};

/// Events or commits that are read at a time.
const BATCH: usize = 256;

/// A reader of what comes.
pub(super) enum Tailed {
    Events(Tail),
    Changes(ChangeReader),
}

/// What there is to send.
pub(super) struct Told {
    pub text: Vec<u8>,
    /// How many events or commits it has.
    pub count: u64,
}

impl Tailed {
    /// Where it is, as `id` has it.
    pub fn place(&self) -> String {
        match self {
            Self::Events(tail) => tail.position().to_string(),
            Self::Changes(reader) => reader.cursor().to_string(),
        }
    }

    /// Whether there may be something to tell; false is sure.
    pub fn may_have_more(&self) -> bool {
        match self {
            Self::Events(tail) => tail.may_have_more(),
            Self::Changes(reader) => reader.may_have_more(),
        }
    }

    /// Whether nothing more could be told when it was read last.
    pub fn is_at_end(&self) -> bool {
        match self {
            Self::Events(tail) => tail.is_at_end(),
            Self::Changes(reader) => reader.is_at_end(),
        }
    }

    /// Reads what there is, at most so much; `None` when there is nothing.
    pub fn read(&mut self, most: usize) -> Result<Option<Told>> {
        let most = most.min(BATCH);
        match self {
            Self::Events(tail) => read_events(tail, most),
            Self::Changes(reader) => {
                let commits = reader.next_commits(most, Duration::ZERO)?;
                let mut text = Vec::new();
                commits.iter().try_for_each(|commit| write_commit(&mut text, commit))?;
                let told = Told { text, count: commits.len() as u64 };
                Ok(Some(told).filter(|told| told.count > 0))
            }
        }
    }
}

fn read_events(tail: &mut Tail, most: usize) -> Result<Option<Told>> {
    match tail.next_batch(most, Duration::ZERO)? {
        TailBatch::Events(events) if events.is_empty() => Ok(None),
        TailBatch::Events(events) => {
            let mut text = Vec::new();
            let writer = events.first();
            let writer = writer.map(|(_, row)| EventWriter::new(Format::Ndjson, row.schema()));
            for (id, row) in &events {
                text.extend_from_slice(format!("id: {id}\ndata: ").as_bytes());
                if let Some(writer) = &writer {
                    writer.write(&mut text, *id, row);
                }
                text.extend_from_slice(b"\n");
            }
            Ok(Some(Told { text, count: events.len() as u64 }))
        }
        TailBatch::Gap { from, to } => {
            let (data, position) = (format!("{{\"from\":{from},\"to\":{to}}}"), tail.position());
            // A client that comes again goes on with what is left of these.
            let text = format!("id: {position}\nevent: gap\ndata: {data}\n\n").into_bytes();
            Ok(Some(Told { text, count: 0 }))
        }
        other => Err(Error::new(Code::Internal, format!("a tail told {other:?}"))),
    }
}

/// A commit as an event: its cursor, when it was made, and its changes.
fn write_commit(out: &mut Vec<u8>, commit: &CommitChanges) -> Result<()> {
    let (cursor, at) = (commit.cursor, Value::Timestamp(commit.at_us));
    let at = shown(&at)?;
    let head = format!("id: {cursor}\ndata: {{\"commit\":\"{cursor}\",\"at\":{at},\"changes\":[");
    out.extend_from_slice(head.as_bytes());
    for (nth, change) in commit.changes.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        let Change { kind, key, new, old, .. } = change;
        let (key, new, old) = (shown(key)?, shown(new)?, shown(old)?);
        let text = format!("{{\"op\":\"{kind}\",\"key\":{key},\"new\":{new},\"old\":{old}}}");
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(b"]}\n\n");
    Ok(())
}

/// A value as JSON.
fn shown(value: &Value) -> Result<String> {
    let document = match value {
        Value::Json(_) => return Ok(value.as_ref().to_string()),
        other => json::from_value(other.as_ref())?,
    };
    Ok(Value::Json(document).as_ref().to_string())
}
