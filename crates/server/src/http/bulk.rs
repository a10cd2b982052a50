//! Many rows at once, as they arrive.
//!
//! The rows of a request are one load: all of them or none, answered once they are durable. A body
//! is read no faster than rows are stored; what it takes in memory is bounded by the load.

use std::io::Cursor;
use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use esker::{Table, Value};
use esker_import::{Format, ImportOptions, ImportReader};
use serde_json::json;

use super::call::{Call, blocking, stalled};
use super::route::Work;
use super::write::{Written, write};
use super::{Problem, bodies, entity};
use crate::session::{Answer, Conflict, Request, Rows, Session};
use crate::tenant::Room;
use crate::{Error, Result};

/// What happens to rows whose key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnDuplicate {
    Error,
    Skip,
    Replace,
}

impl OnDuplicate {
    fn of(call: &Call) -> Result<Self> {
        match call.parameter("on_duplicate") {
            None | Some("error") => Ok(Self::Error),
            Some("skip") => Ok(Self::Skip),
            Some("replace") => Ok(Self::Replace),
            Some(text) => {
                let message =
                    format!("on_duplicate: expected error, skip or replace, found {text:?}");
                Err(Error::invalid(message))
            }
        }
    }
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
fn check_encoding(call: &Call) -> std::result::Result<(), Problem> {
    match call.header("content-encoding")? {
        None | Some("identity" | "gzip" | "zstd") => Ok(()),
        Some(text) => {
            let message = format!("content-encoding: expected gzip or zstd, found {text:?}");
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::invalid(message)))
        }
    }
}

pub(super) fn load(call: Call) -> Work {
    Box::pin(async move {
        let (format, on_duplicate) = (format_of(&call)?, OnDuplicate::of(&call)?);
        check_encoding(&call)?;
        let is_once = call.header("idempotency-key")?.is_some();
        if is_once || call.header("esker-transaction")?.is_some() {
            return insert(call, format, on_duplicate).await;
        }
        let tenant = call.tenant()?;
        let stall = call.app.gate.config.stall_timeout;
        let permit = tenant.usage.loads().begin(stall).await?;
        let (reader, has_stalled) = bodies::reader(call.take_body(), stall);
        let environment = call.app.gate.environment.clone();
        let name = call.path("table").to_owned();
        let loaded = blocking(move || {
            let _permit = permit;
            let mut room = Room::default();
            tenant.usage.expect_load_room(&tenant.database, &mut room, 1)?;
            let table = tenant.database.table(&name)?;
            let options = options(&table, format);
            let reader = ImportReader::from_reader(&environment, "body", reader, None, options)?;
            let mut load = table.load()?;
            match on_duplicate {
                OnDuplicate::Error => {}
                OnDuplicate::Skip => load.skip_existing()?,
                OnDuplicate::Replace => load.replace_existing()?,
            }
            load.reserve_input(reader.memory_bytes())?;
            let report = reader.read(|batch, _| {
                load.push(batch)?;
                tenant.usage.expect_load_room(&tenant.database, &mut room, load.rows())
            })?;
            Ok::<_, Error>((load.finish()?.rows, report.rows))
        });
        let loaded = loaded.await?;
        if loaded.is_err() && has_stalled.load(Ordering::Relaxed) {
            return Err(stalled(stall));
        }
        let (stored, read) = loaded?;
        let body = json!({ "rows": stored, "skipped": read.saturating_sub(stored) });
        entity::json(StatusCode::OK, &body)
    })
}

fn options(table: &Table, format: Format) -> ImportOptions {
    ImportOptions::default().format(format).schema((*table.schema()).clone())
}

/// The rows of a body that is read as a whole, in a transaction.
async fn insert(
    mut call: Call,
    format: Format,
    on_duplicate: OnDuplicate,
) -> super::route::Outcome {
    let conflict = match on_duplicate {
        OnDuplicate::Error => Conflict::Fail,
        OnDuplicate::Replace => Conflict::Replace,
        OnDuplicate::Skip => {
            let message = "on_duplicate: skip is not for a load with an idempotency-key or within \
                           a transaction";
            return Err(Error::invalid(message).into());
        }
    };
    let bytes = call.bytes().await?;
    let table = call.path("table").to_owned();
    let environment = call.app.gate.environment.clone();
    let body = bytes.clone();
    let act = move |session: &mut Session| {
        let within = session.database().table(&table)?;
        let (body, options) = (Cursor::new(body.clone()), options(&within, format));
        let reader = ImportReader::from_reader(&environment, "body", body, None, options)?;
        let mut rows: Vec<Vec<Value>> = Vec::new();
        reader.read(|batch, _| {
            let row = |i| batch.columns.iter().map(|c| c.value(i).to_owned()).collect();
            rows.extend((0..batch.len()).map(row));
            Ok::<_, Error>(())
        })?;
        let rows = Rows::Values(rows);
        match session.run(Request::Insert { table: table.clone(), rows, conflict })? {
            Answer::Stored { rows, .. } => {
                Ok(Written::json(200, json!({ "rows": rows, "skipped": 0 }).to_string()))
            }
            _ => Ok(Written::empty()),
        }
    };
    write(call, &bytes, None, act).await
}
