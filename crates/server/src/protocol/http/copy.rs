//! `COPY`: rows of a body into a table, and the rows of a table or a query as a body, in the forms
//! that the statement names.

use std::io::{self, Cursor, Write};
use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use esker_import::unpacked_bytes;
use esker_sql::CopyStatement;
use serde_json::json;

use super::call::{Call, blocking, stalled, too_large};
use super::export::{Pieces, stream_pieces};
use super::route::Outcome;
use super::{bodies, bulk, entity};
use crate::session::{SqlText, copied, media_of};
use crate::{Code, Error, Result};

/// Pieces of an answer have about this many bytes.
const PIECE_BYTES: usize = 64 << 10;

pub(super) async fn copy(call: Call) -> Outcome {
    let text = call.parameter("sql").ok_or_else(|| {
        Error::invalid("sql: expected a statement, COPY … FROM STDIN or COPY … TO STDOUT")
    })?;
    let text = SqlText::from(text);
    let copy = copied(&text).map_err(|e| e.at("sql"))?;
    bulk::check_encoding(&call)?;
    match copy {
        CopyStatement::From { .. } => copy_in(call, text).await,
        _ => {
            let media = media_of(copy);
            stream_pieces(call, media, "the copy was given up", move |session, pieces| {
                let mut out = Out { pieces, buffer: Vec::new(), failed: None };
                let done = session.copy_out(&text, &mut out);
                match out.failed.take() {
                    Some(e) => Err(e),
                    None => done.and_then(|()| out.send()),
                }
            })
            .await
        }
    }
}

/// Rows of the body, as they arrive; within a transaction it is read whole before.
async fn copy_in(mut call: Call, text: SqlText) -> Outcome {
    let stall = call.app.access_control.config.stall_timeout;
    let tenant = call.tenant()?;
    let _permit = tenant.usage.loads().begin(stall).await?;
    if call.header("esker-transaction")?.is_some() {
        let most = call.app.access_control.config.request_bytes_max;
        let bytes = call.bytes().await?;
        let (packed, more) = (bytes.clone(), most as u64 + 1);
        if blocking(move || unpacked_bytes(&packed, more)).await? >= more {
            return Err(too_large(most));
        }
        let bytes = Box::new(Cursor::new(bytes));
        let rows = call.run(move |session| session.copy_in(&text, bytes)).await?;
        return entity::json(StatusCode::OK, &json!({ "rows": rows, "skipped": 0 }));
    }
    let (reader, has_stalled) = bodies::reader(call.take_body(), stall, None);
    let copied = call.run(move |session| session.copy_in(&text, Box::new(reader))).await;
    if copied.is_err() && has_stalled.load(Ordering::Relaxed) {
        return Err(stalled(stall));
    }
    entity::json(StatusCode::OK, &json!({ "rows": copied?, "skipped": 0 }))
}

/// What is written goes to the client in pieces.
struct Out<'p> {
    pieces: &'p mut Pieces,
    buffer: Vec<u8>,
    /// Why nothing more goes there.
    failed: Option<Error>,
}

impl Out<'_> {
    fn send(&mut self) -> Result<()> {
        match self.pieces.send(std::mem::take(&mut self.buffer))? {
            true => Ok(()),
            false => Err(Error::new(Code::Cancelled, "the client has gone")),
        }
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES
            && let Err(e) = self.send()
        {
            self.failed = Some(e);
            return Err(io::Error::other("nothing more is taken"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
