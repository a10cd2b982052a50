//! Many rows at once, as they arrive.
//!
//! The rows of a request are one load: all of them or none, answered once they are durable; few
//! rows of a table with generated keys are [appended](few_rows) instead. A body is read no faster
//! than rows are stored; what it takes in memory is bounded by the load.

use std::io::{Cursor, Read};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use esker::{Batch, Schema};
use esker_import::{Format, ImportOptions, ImportReader, unpacked_bytes};
use esker_vfs::Environment;
use serde_json::json;

use super::call::{Call, CancelOnDrop, blocking, stalled, too_large};
use super::route::Outcome;
use super::write::{Written, write};
use super::{Problem, bodies, entity, few_rows};
use crate::monitor::active_sessions::ActiveSession;
use crate::session::{Answer, Conflict, Duplicates, Request, RequestSummary, Rows, Session};
use crate::tenant::QuotaReservation;
use crate::{Code, Error, Result};

fn duplicates_of(call: &Call) -> Result<Duplicates> {
    let duplicates = Duplicates::of(call.parameter("on_duplicate").unwrap_or("error"));
    duplicates.map_err(|e| e.at("on_duplicate"))
}

fn format_of(call: &Call) -> std::result::Result<Format, Problem> {
    match call.media()?.as_deref() {
        Some("text/csv") => Ok(Format::Csv),
        Some("application/x-ndjson" | "application/ndjson") => Ok(Format::Ndjson),
        Some("application/json") => Ok(Format::Json),
        _ => {
            let message = "content-type: expected text/csv, application/x-ndjson or \
                           application/json";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::invalid(message)))
        }
    }
}

/// Refuses encodings that are not undone; which of them it is, the first bytes tell.
pub(super) fn check_encoding(call: &Call) -> std::result::Result<(), Problem> {
    match call.header("content-encoding")? {
        None | Some("identity" | "gzip" | "zstd") => Ok(()),
        Some(text) => {
            let message = format!("content-encoding: expected gzip or zstd, found {text:?}");
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::invalid(message)))
        }
    }
}

pub(super) async fn load(call: Call) -> Outcome {
    let (format, on_duplicate) = (format_of(&call)?, duplicates_of(&call)?);
    check_encoding(&call)?;
    let is_once = call.header("idempotency-key")?.is_some();
    if is_once || call.header("esker-transaction")?.is_some() {
        return insert(call, format, on_duplicate).await;
    }
    if let Some(table) = few_rows::table_of(&call)? {
        return few_rows::append(call, table, format).await;
    }
    stream(call, format, on_duplicate).await
}

/// The rows of a body that was read, as if they arrived.
pub(super) async fn stream_bytes(call: Call, bytes: Bytes, format: Format) -> Outcome {
    let on_duplicate = duplicates_of(&call)?;
    *call.body.lock().unwrap_or_else(PoisonError::into_inner) = Some(Body::from(bytes));
    stream(call, format, on_duplicate).await
}

/// Refuses to go on for somebody who went away, or whose session was ended.
fn expect_wanted(session: &Session) -> Result<()> {
    if session.active_session().is_some_and(|active_session| active_session.is_ended()) {
        return Err(Error::new(Code::Cancelled, "the session was ended: nothing was loaded"));
    }
    session.expect_wanted()
}

/// The rows of a body as they arrive.
async fn stream(call: Call, format: Format, on_duplicate: Duplicates) -> Outcome {
    let mut session = call.session()?;
    session.register("http");
    let active_session = session.active_session().cloned();
    let name = call.path("table").to_owned();
    let words = RequestSummary::Keys { operation: "load", place: name.clone(), count: 0 };
    let listed = session.list(words);
    let stall = call.app.access_control.config.stall_timeout;
    let tenant = call.tenant()?;
    let permit = tokio::select! {
        permit = tenant.usage.loads().begin(stall) => Some(permit?),
        () = ActiveSession::ended(active_session.as_ref()) => None,
    };
    let body = call.take_body();
    let length = body.size_hint().exact();
    let (reader, has_stalled) = bodies::reader(body, stall, active_session);
    let environment = call.app.access_control.environment.clone();
    let mut guard = CancelOnDrop(Some(session.canceller()));
    let loaded = blocking(move || {
        let _held = (permit, listed);
        expect_wanted(&session)?;
        let wanted = (name.as_str(), format, on_duplicate);
        let loaded = take_rows(&session, &environment, wanted, (reader, length));
        // What it met may have come of its end.
        loaded.map_err(|e| expect_wanted(&session).err().unwrap_or(e))
    });
    let loaded = loaded.await?;
    guard.0 = None;
    if loaded.is_err() && has_stalled.load(Ordering::Relaxed) {
        return Err(stalled(stall));
    }
    let (stored, read) = loaded?;
    let body = json!({ "rows": stored, "skipped": read.saturating_sub(stored) });
    entity::json(StatusCode::OK, &body)
}

/// Loads what is read, of a length that may be known; how many rows were stored, and how many were
/// read.
fn take_rows(
    session: &Session,
    environment: &Environment,
    (name, format, on_duplicate): (&str, Format, Duplicates),
    (body, length): (impl Read + Send + 'static, Option<u64>),
) -> Result<(u64, u64)> {
    let mut room = QuotaReservation::default();
    session.reserve_load_quota(&mut room, 1)?;
    let table = session.database().table(name)?;
    let options = options(&table.schema(), format);
    let reader = ImportReader::from_reader(environment, "body", body, length, options)?;
    let mut load = table.load()?;
    on_duplicate.tell(&mut load)?;
    load.reserve_input(reader.memory_bytes())?;
    let report = reader.read(|batch, _| {
        expect_wanted(session)?;
        load.push(batch)?;
        session.reserve_load_quota(&mut room, load.rows())
    })?;
    expect_wanted(session)?;
    session.expect_valid()?;
    Ok((load.finish()?.rows, report.rows))
}

pub(super) fn options(schema: &Schema, format: Format) -> ImportOptions {
    ImportOptions::default().format(format).schema(schema.clone())
}

/// The rows of a body that is read as a whole, in a transaction.
async fn insert(mut call: Call, format: Format, on_duplicate: Duplicates) -> Outcome {
    let conflict = match on_duplicate {
        Duplicates::Error => Conflict::Fail,
        Duplicates::Replace => Conflict::Replace,
        Duplicates::Skip => {
            let message = "on_duplicate: skip is not for a load with an idempotency-key or within \
                           a transaction";
            return Err(Error::invalid(message).into());
        }
    };
    let (bytes, most) = (call.bytes().await?, call.app.access_control.config.request_bytes_max);
    let (packed, more) = (bytes.clone(), most as u64 + 1);
    if blocking(move || unpacked_bytes(&packed, more)).await? >= more {
        return Err(too_large(most));
    }
    let table = call.path("table").to_owned();
    let environment = call.app.access_control.environment.clone();
    let body = bytes.clone();
    let act = move |session: &mut Session| {
        let schema = session.scope().table(&table)?.schema();
        let (body, options) = (Cursor::new(body.clone()), options(&schema, format));
        let reader = ImportReader::from_reader(&environment, "body", body, None, options)?;
        let mut batches: Vec<Batch> = Vec::new();
        reader.read(|batch, _| {
            batches.push(batch);
            Ok::<_, Error>(())
        })?;
        let rows = Rows::of_batches(&batches, &schema);
        match session.run(Request::Insert { table: table.clone(), rows, conflict })? {
            Answer::Stored { rows, .. } => {
                Ok(Written::json(200, json!({ "rows": rows, "skipped": 0 }).to_string()))
            }
            _ => Ok(Written::empty()),
        }
    };
    write(call, &bytes, None, act).await
}
