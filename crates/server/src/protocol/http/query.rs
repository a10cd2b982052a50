//! Queries as JSON, statements in SQL, and their answers as they are found.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use esker::{Batch, Semantics};
use esker_import::{Format, RowWriter, distinct_names};
use esker_query::ResultColumn;
use esker_sql::Statement;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::Problem;
use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use super::write::{Written, write};
use crate::protocol::json_lines::value;
use crate::resources::budget::Budget;
use crate::session::{Answer, IdempotencyKey, Request, RowSink, Session, SqlText};
use crate::{Code, Error, Result};

/// Answers are sent in pieces of about this many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// A text as JSON has it.
pub(super) fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sql {
    sql: String,
    #[serde(default)]
    parameters: Vec<Box<RawValue>>,
    nulls_order: Option<String>,
    division_by_zero: Option<String>,
}

impl Sql {
    fn semantics(&self) -> Result<Semantics> {
        let nulls_order = Semantics::default().with("nulls_order", self.nulls_order.as_deref())?;
        Ok(nulls_order.with("division_by_zero", self.division_by_zero.as_deref())?)
    }
}

/// What the body asks: SQL, or the JSON form of a query.
async fn asked(call: &mut Call) -> std::result::Result<(Request, Vec<u8>), Problem> {
    let is_sql = call.media()?.as_deref() == Some("application/sql");
    let text = call.text().await?;
    let body = text.clone().into_bytes();
    if is_sql {
        return Ok((Request::Sql { text: text.into(), parameters: Vec::new() }, body));
    }
    // Its names alone: what is large, or no number of JSON's values, is read where it belongs.
    let names: Option<BTreeMap<Cow<'_, str>, IgnoredAny>> = serde_json::from_str(&text).ok();
    if names.is_some_and(|names| names.contains_key("sql")) {
        let sql: Sql =
            serde_json::from_str(&text).map_err(|e| Error::invalid(format!("body: {e}")))?;
        let parameters = sql.parameters.iter().map(|raw| value(raw)).collect::<Result<_>>()?;
        let semantics = sql.semantics()?;
        let text = SqlText::from(sql.sql).with_semantics(semantics);
        return Ok((Request::Sql { text, parameters }, body));
    }
    Ok((Request::Query { json: text }, body))
}

pub(super) async fn query(mut call: Call) -> Outcome {
    let (request, body) = asked(&mut call).await?;
    answer(call, request, Some(body)).await
}

pub(super) async fn explain(mut call: Call) -> Outcome {
    let (request, _) = asked(&mut call).await?;
    let analyze = call.parsed("analyze", "true or false")?.unwrap_or(false);
    let request = match request {
        // One that says how its plan is to look.
        Request::Sql { text, parameters }
            if matches!(text.statement().map(Statement::said), Ok(Statement::Explain(_))) =>
        {
            Request::Sql { text, parameters }
        }
        Request::Sql { text, parameters } => {
            let explain = if analyze { "EXPLAIN ANALYZE" } else { "EXPLAIN" };
            let semantics = text.semantics();
            let text = SqlText::from(format!("{explain} {}", &*text)).with_semantics(semantics);
            Request::Sql { text, parameters }
        }
        Request::Query { json } => Request::Explain { json },
        other => other,
    };
    let plan = call.run(move |session| {
        let answer = session.run(request)?;
        if let Answer::Text(plan) = &answer {
            session.take_answer(plan.len())?;
        }
        Ok(answer)
    });
    match plan.await? {
        Answer::Text(plan) => entity::json(StatusCode::OK, &json!({ "plan": plan })),
        other => Err(Error::new(Code::Internal, format!("no plan: {other:?}")).into()),
    }
}

/// True for a statement that changes nothing. Those that begin and end transactions are not for a
/// request, which is over before the next one.
fn only_reads(request: &Request) -> Result<bool> {
    match request {
        Request::Sql { text, .. } => match text.statement()?.said() {
            Statement::Transaction(_) => {
                let message = "transactions are begun and ended by routes of their own: POST \
                               transactions, POST transactions/ID/commit";
                Err(Error::invalid(message))
            }
            Statement::Setting(_) => Err(Error::invalid(
                "a request has no settings before it: write them beside the statement, as \
                 {\"sql\": \"SELECT …\", \"nulls_order\": \"last\"}",
            )),
            Statement::Named(_) | Statement::Cursor(_) => Err(Error::invalid(
                "a request has no session that keeps prepared statements or cursors: send \
                 parameters beside the statement, and read a long answer as it comes",
            )),
            statement => Ok(statement.only_reads()),
        },
        _ => Ok(true),
    }
}

/// Answers a question, or does what a statement says.
pub(super) async fn answer(call: Call, request: Request, body: Option<Vec<u8>>) -> Outcome {
    if call.header("idempotency-key")?.is_some() && !only_reads(&request)? {
        IdempotencyKey::expect_alone(&call.session()?, &request)?;
        let act = move |session: &mut Session| {
            let answer = session.run(request.clone())?;
            let text = small_answer(answer)?;
            // It is in a transaction: nothing is done where this is refused.
            session.take_answer(text.len())?;
            Ok(Written::json(200, text))
        };
        return write(call, &body.unwrap_or_default(), None, act).await;
    }
    let format = format_of(&call)?;
    let tenant = call.tenant()?;
    let most = tenant.usage.limits().result_bytes.unwrap_or(u64::MAX);
    let place =
        (Arc::clone(&call.app.access_control.budget), call.app.access_control.config.stall_timeout);
    let (sender, mut receiver) = mpsc::channel(4);
    let failed = sender.clone();
    let mut sink = Sink::new(format, most, place, sender);
    let (stopped, alive) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let outcome = call.run(move |session| {
            only_reads(&request)?;
            let outcome = session.stream(request, &mut sink);
            let outcome = outcome.and_then(|answer| sink.end(answer));
            if let Err(e) = &outcome {
                let _ = sink.sender.blocking_send(Err(e.clone()));
            }
            Ok(())
        });
        // A reader that reads no more lets go of `alive`.
        tokio::select! {
            outcome = outcome => {
                if let Err(e) = outcome {
                    let _ = failed.send(Err(e)).await;
                }
            }
            () = async { let mut stopped = stopped; stopped.closed().await } => {}
        }
    });
    let first = match receiver.recv().await {
        Some(Ok(first)) => first,
        Some(Err(e)) => return Err(e.into()),
        None => {
            let message = "the question was given up";
            return Err(Error::new(Code::Unavailable, message).into());
        }
    };
    let Piece { media, bytes } = first;
    let state = (Some(bytes), receiver, alive);
    let stream = futures_util::stream::unfold(state, |(first, mut receiver, alive)| async move {
        if let Some(first) = first {
            return Some((Ok(first), (None, receiver, alive)));
        }
        match receiver.recv().await? {
            Ok(piece) => Some((Ok(piece.bytes), (None, receiver, alive))),
            Err(e) => Some((Err(std::io::Error::other(e)), (None, receiver, alive))),
        }
    });
    let mut response = entity::with_body(StatusCode::OK, media, Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(response)
}

fn format_of(call: &Call) -> std::result::Result<Format, Problem> {
    let accepted = call.header(header::ACCEPT.as_str())?.unwrap_or("*/*");
    for part in accepted.split(',') {
        match part.split(';').next().unwrap_or("").trim() {
            "*/*" | "application/*" | "application/json" => return Ok(Format::Json),
            "application/x-ndjson" | "application/ndjson" => return Ok(Format::Ndjson),
            "text/csv" | "text/*" => return Ok(Format::Csv),
            _ => {}
        }
    }
    let message = format!(
        "accept: expected application/json, application/x-ndjson or text/csv, found {accepted:?}"
    );
    Err(Problem::new(StatusCode::NOT_ACCEPTABLE, Error::invalid(message)))
}

/// A part of an answer.
struct Piece {
    media: &'static str,
    bytes: Bytes,
}

/// Writes rows and sends them on.
struct Sink {
    format: Format,
    writer: Option<RowWriter>,
    buffer: Vec<u8>,
    rows: u64,
    sent: u64,
    most: u64,
    /// The statement has changed something.
    has_changed: bool,
    /// No more of it is sent.
    is_refused: bool,
    budget: Arc<Budget>,
    /// How long to wait for a share of it.
    patience: Duration,
    sender: mpsc::Sender<Result<Piece>>,
}

impl Sink {
    fn new(
        format: Format,
        most: u64,
        (budget, patience): (Arc<Budget>, Duration),
        sender: mpsc::Sender<Result<Piece>>,
    ) -> Self {
        Self {
            format,
            writer: None,
            buffer: Vec::new(),
            rows: 0,
            sent: 0,
            most,
            has_changed: false,
            is_refused: false,
            budget,
            patience,
            sender,
        }
    }

    fn media(&self) -> &'static str {
        match (&self.writer, self.format) {
            (None, _) | (_, Format::Json) => "application/json",
            (_, Format::Ndjson) => "application/x-ndjson",
            (_, Format::Csv) => "text/csv",
        }
    }

    fn send(&mut self) -> ControlFlow<()> {
        let piece = self.piece();
        let piece = piece.map_err(|e| if self.has_changed { e.though_done() } else { e });
        self.is_refused = piece.is_err();
        match self.sender.blocking_send(piece) {
            Ok(()) if !self.is_refused => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// What has been gathered, with a share of the budget until it is sent.
    fn piece(&mut self) -> Result<Piece> {
        let bytes = std::mem::take(&mut self.buffer);
        self.sent = self.sent.saturating_add(bytes.len() as u64);
        if self.sent > self.most {
            return Err(Error::too_large_answer(self.most));
        }
        let mut share = self.budget.share();
        share.wait_here(bytes.len(), self.patience)?;
        Ok(Piece { media: self.media(), bytes: share.hold(bytes) })
    }

    /// What stands behind the rows, or the answer that has none.
    fn end(&mut self, answer: Answer) -> Result<()> {
        if self.is_refused {
            return Ok(());
        }
        match (&self.writer, self.format, &answer) {
            (Some(writer), Format::Json, Answer::Changed(changed)) => {
                if self.rows == 0 {
                    self.buffer.truncate(self.buffer.len().saturating_sub(1));
                    self.buffer.extend_from_slice(b"]");
                } else {
                    self.buffer.extend_from_slice(writer.end().trim_ascii_end());
                }
                self.buffer.extend_from_slice(format!(",\"changed\":{changed}}}\n").as_bytes());
            }
            (Some(_), ..) => {}
            (None, ..) => {
                let text = small_answer(answer)?;
                self.buffer.extend_from_slice(text.as_bytes());
            }
        }
        let _ = self.send();
        Ok(())
    }
}

impl RowSink for Sink {
    fn changed(&mut self) {
        self.has_changed = true;
    }

    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        let names = distinct_names(columns.iter().map(|column| column.name.as_str()));
        let writer = RowWriter::new(self.format, b',', names.iter().map(String::as_str));
        if self.format == Format::Json {
            self.buffer.extend_from_slice(b"{\"columns\":");
            self.buffer.extend_from_slice(columns_text(columns).as_bytes());
            self.buffer.extend_from_slice(b",\"rows\":");
        }
        self.buffer.extend_from_slice(&writer.start());
        self.writer = Some(writer);
        ControlFlow::Continue(())
    }

    fn rows(&mut self, batch: &Batch) -> ControlFlow<()> {
        let Some(writer) = &self.writer else { return ControlFlow::Break(()) };
        if self.rows > 0 {
            self.buffer.extend_from_slice(writer.between());
        }
        writer.write(&mut self.buffer, batch);
        self.rows += batch.len() as u64;
        if self.buffer.len() < PIECE_BYTES { ControlFlow::Continue(()) } else { self.send() }
    }
}

fn columns_text(columns: &[ResultColumn]) -> String {
    let names = distinct_names(columns.iter().map(|column| column.name.as_str()));
    let column = |(name, column): (&String, &ResultColumn)| {
        let data_type = column.data_type.to_string();
        json!({ "name": name, "type": data_type })
    };
    serde_json::Value::from_iter(names.iter().zip(columns).map(column)).to_string()
}

/// An answer that fits in memory, as JSON.
fn small_answer(answer: Answer) -> Result<String> {
    let rows = |result: &esker::QueryResult| {
        let names = distinct_names(result.columns.iter().map(|column| column.name.as_str()));
        let writer = RowWriter::new(Format::Json, b',', names.iter().map(String::as_str));
        let mut text = writer.start();
        for (number, batch) in result.batches.iter().enumerate() {
            if number > 0 {
                text.extend_from_slice(writer.between());
            }
            writer.write(&mut text, batch);
        }
        if result.batches.is_empty() {
            text = b"[]".to_vec();
        } else {
            text.extend_from_slice(writer.end().trim_ascii_end());
        }
        let columns = columns_text(&result.columns);
        format!("\"columns\":{columns},\"rows\":{}", String::from_utf8_lossy(&text))
    };
    let cursor = |cursor: Option<String>| cursor.map_or("null".to_owned(), |c| json_text(&c));
    match answer {
        Answer::Page(page) => {
            let total = page.total.map_or("null".to_owned(), |total| total.to_string());
            let (rows, next) = (rows(&page.result), cursor(page.next));
            let previous = cursor(page.previous);
            Ok(format!("{{{rows},\"next\":{next},\"previous\":{previous},\"total\":{total}}}\n"))
        }
        Answer::Result { result, changed } => {
            Ok(format!("{{{},\"changed\":{changed}}}\n", rows(&result)))
        }
        Answer::Changed(changed) => Ok(json!({ "changed": changed }).to_string()),
        Answer::Text(text) => Ok(json!({ "text": text }).to_string()),
        Answer::Done => Ok(json!({}).to_string()),
        other => Err(Error::new(Code::Internal, format!("unexpected answer {other:?}"))),
    }
}

/// Slow statements, the slowest of the last ones first.
pub(super) async fn slow(call: Call) -> Outcome {
    let access_control = Arc::clone(&call.app.access_control);
    let name = call.tenant()?.name.clone();
    let slow = blocking(move || access_control.metrics.slow_statements(&name)).await?;
    entity::json(StatusCode::OK, &json!({ "statements": slow }))
}
