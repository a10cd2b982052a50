//! Few rows of a table whose keys are generated: they share a commit with those of other requests,
//! as events do, and take neither a thread nor the memory of a load.

use std::sync::Arc;

use axum::http::StatusCode;
use esker::{Batch, ReadyRows, Schema, Stream};
use esker_import::{Format, ImportReader, unpacked_bytes};
use serde_json::json;

use super::super::event_outcomes::{of_commit, stored};
use super::call::Call;
use super::event_lines::reader_of;
use super::route::Outcome;
use super::streams::{commit_gathered, content_length, wait};
use super::{bulk, entity};
use crate::session::Session;
use crate::{Error, Result};

/// Bytes of a body that is read as a whole.
const BYTES_MAX: usize = 64 << 10;

/// Where few rows go; `None` for a body that is not short, or not plain, and for a table with keys
/// of its own, or other unique values.
pub(super) fn table_of(call: &Call) -> Result<Option<Stream>> {
    let is_short = content_length(call)?.is_some_and(|length| length <= BYTES_MAX);
    let is_plain = call.header("content-encoding")?.is_none_or(|coding| coding == "identity");
    match is_short && is_plain {
        true => {
            let table = call.tenant()?.database.without_keys(call.path("table"))?;
            // Rows of a table are not asked about, however many come.
            Ok(table.filter(|table| table.schema().dedupe().is_none()))
        }
        false => Ok(None),
    }
}

/// Adds the rows of a body: all of them or none.
pub(super) async fn append(mut call: Call, table: Stream, format: Format) -> Outcome {
    let bytes = call.bytes().await?;
    if unpacked_bytes(&bytes, 1) > 0 {
        return bulk::stream_bytes(call, bytes, format).await;
    }
    let (session, schema) = (call.session()?, table.schema());
    let rows = {
        let environment = &call.app.access_control.environment;
        let options = bulk::options(&schema, format);
        let (length, body) = (Some(bytes.len() as u64), reader_of(bytes));
        let reader = ImportReader::from_reader(environment, "body", body, length, options)?;
        rows_of(&session, (&table, &schema), reader)?
    };
    let count = rows.len();
    if count > 0 {
        let appended = commit_gathered(&table, (rows, true), None, true).await?;
        let commit = appended.commit;
        // A refusal rests on what was committed before, too.
        if let Some(commit) = commit {
            wait(&call, commit, None).await?;
        }
        appended.outcomes.first().map_or(Ok(()), |row| stored(row, of_commit).map(|_| ()))?;
    }
    session.release_room();
    entity::json(StatusCode::OK, &json!({ "rows": count, "skipped": 0 }))
}

/// The rows that a reader has, whole and tested.
fn rows_of(
    session: &Session,
    (table, schema): (&Stream, &Arc<Schema>),
    reader: ImportReader,
) -> Result<ReadyRows> {
    let mut rows = ReadyRows::none(schema);
    reader.read(|batch: Batch, _| {
        session.reserve_quota(batch.len(), 0)?;
        let ready = table.ready_columns(schema, batch);
        for (at, tested) in (rows.len() + 1..).zip(ready.tested) {
            tested.map_err(|e| Error::from(e).at(format_args!("row {at}")))?;
        }
        Ok::<_, Error>(rows.append(ready.rows)?)
    })?;
    Ok(rows)
}
