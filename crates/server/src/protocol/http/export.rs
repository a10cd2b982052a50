//! All events of a stream in the order in which they arrived, as of one commit, as they are read.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use esker::{EventExport, ExportQuery, TailFrom};
use esker_import::Format;
use tokio::sync::mpsc;

use super::call::Call;
use super::entity;
use super::event_pages::{Asked, EventWriter};
use super::route::Outcome;
use crate::resources::budget::Budget;
use crate::session::Session;
use crate::{Code, Error, Result};

/// Events that are read at a time.
const BATCH_EVENTS: usize = 1_000;
/// Pieces that wait for the client.
const PIECES_QUEUED: usize = 2;

/// Where pieces go.
pub(super) struct Pieces {
    sender: mpsc::Sender<Result<Bytes>>,
    budget: Arc<Budget>,
    patience: Duration,
    left: u64,
}

impl Pieces {
    /// Sends a piece once the client has taken those before; false when it has gone.
    pub fn send(&mut self, bytes: Vec<u8>) -> Result<bool> {
        let most = self.left;
        self.left = most.checked_sub(bytes.len() as u64).ok_or_else(|| {
            let message = "the answer is larger than the limit of the database allows: ask for \
                           less (of events, go on with `after` and the last id)";
            Error::new(Code::LimitExceeded, message)
        })?;
        let mut share = self.budget.share();
        share.wait_here(bytes.len(), self.patience)?;
        Ok(self.sender.blocking_send(Ok(share.hold(bytes))).is_ok())
    }
}

fn format_of(call: &Call) -> Result<(Format, &'static str)> {
    match call.parameter("format") {
        None | Some("ndjson") => Ok((Format::Ndjson, "application/x-ndjson")),
        Some("csv") => Ok((Format::Csv, "text/csv")),
        Some(other) => {
            Err(Error::invalid(format!("format: expected ndjson or csv, found {other:?}")))
        }
    }
}

/// A row id of `after`.
fn after_of(call: &Call) -> Result<Option<u64>> {
    match call.parsed("after", "the id of an event, or its row id")? {
        None | Some(TailFrom::Start) => Ok(None),
        Some(TailFrom::After(row_id)) => Ok(Some(row_id)),
        Some(TailFrom::Now) => {
            Err(Error::invalid("after: expected the id of an event, or its row id, found \"now\""))
        }
    }
}

pub(super) async fn export(call: Call) -> Outcome {
    let (asked, (format, media)) = (Asked::of(&call)?, format_of(&call)?);
    let after = after_of(&call)?;
    stream_pieces(call, media, "the export was given up", move |session, pieces| {
        let (export, writer) = begin(session, &asked, after, format)?;
        send_all(session, export, &writer, pieces)
    })
    .await
}

/// Answers with pieces as they come: an error before the first is the answer, and one after it ends
/// the body without its end.
pub(super) async fn stream_pieces(
    call: Call,
    media: &'static str,
    gone: &'static str,
    send: impl FnOnce(&mut Session, &mut Pieces) -> Result<()> + Send + 'static,
) -> Outcome {
    let access_control = &call.app.access_control;
    let (sender, mut receiver) = mpsc::channel(PIECES_QUEUED);
    let most = call.tenant()?.usage.limits().result_bytes.unwrap_or(u64::MAX);
    let mut pieces = Pieces {
        sender: sender.clone(),
        budget: Arc::clone(&access_control.budget),
        patience: access_control.config.stall_timeout,
        left: most,
    };
    let (stopped, alive) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let outcome = call.run(move |session| {
            if let Err(e) = send(session, &mut pieces) {
                let _ = pieces.sender.blocking_send(Err(e));
            }
            Ok(())
        });
        // A client that goes away lets go of `alive`.
        tokio::select! {
            outcome = outcome => {
                if let Err(e) = outcome {
                    let _ = sender.send(Err(e)).await;
                }
            }
            () = async { let mut stopped = stopped; stopped.closed().await } => {}
        }
    });
    let first = receiver.recv().await;
    let given_up = || Error::new(Code::Unavailable, gone);
    let first = first.ok_or_else(given_up)??;
    let state = (Some(first), receiver, alive);
    let stream = futures_util::stream::unfold(state, |(first, mut receiver, alive)| async move {
        let next = match first {
            Some(first) => Ok(first),
            None => receiver.recv().await?.map_err(std::io::Error::other),
        };
        Some((next, (None, receiver, alive)))
    });
    let mut response = entity::with_body(StatusCode::OK, media, Body::from_stream(stream));
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    Ok(response)
}

fn begin(
    session: &Session,
    asked: &Asked,
    after: Option<u64>,
    format: Format,
) -> Result<(EventExport, EventWriter)> {
    let stream = session.database().stream(&asked.name)?;
    let (from, to, filter) = (asked.from, asked.to, asked.filter(&stream)?);
    let export = stream.export(ExportQuery { after, from, to, filter })?;
    let writer = EventWriter::new(format, export.schema());
    Ok((export, writer))
}

fn send_all(
    session: &Session,
    mut export: EventExport,
    writer: &EventWriter,
    pieces: &mut Pieces,
) -> Result<()> {
    let _permit = session.begin_query()?;
    // The first piece tells that it has begun, however few events pass the filter.
    let mut is_wanted = pieces.send(writer.start())?;
    while is_wanted && let Some(events) = export.next_batch(BATCH_EVENTS)? {
        session.expect_wanted()?;
        let mut text = Vec::new();
        for (id, row) in &events {
            writer.write(&mut text, *id, row);
        }
        is_wanted = text.is_empty() || pieces.send(text)?;
    }
    Ok(())
}
