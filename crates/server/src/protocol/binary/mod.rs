//! The wire protocol, binary or JSON lines: `docs/reference/wire.md`.
//!
//! | module | what it defines |
//! |---|---|
//! | `buffers` | buffers to read into |
//! | `stream` | a socket, TCP or Unix |
//! | `encrypted` | TLS |
//! | `connection` | one client: reading, answering, holding back |
//! | `decode`, `encode` | frames to requests, answers to frames |
//! | `point` | rows by key, without a copy between socket and row |
//! | `job` | what may take long, off the runtime |
//! | `bulk` | loads of many rows |
//! | `append`, `event_rows` | events of streams, as rows or by column |
//! | `tail` | events as they arrive |
//! | `replay` | the same without a socket |
//! | `operations` | what is counted |

mod append;
mod buffers;
pub(crate) mod bulk;
mod connection;
mod decode;
#[cfg(test)]
mod definitions;
mod encode;
mod encrypted;
mod event_rows;
#[cfg(test)]
mod event_tails;
#[cfg(test)]
mod events;
#[cfg(test)]
mod golden;
#[cfg(test)]
#[path = "../../../../wire/src/golden.rs"]
mod golden_frames;
#[cfg(test)]
mod isolation;
mod job;
#[cfg(test)]
mod named;
mod operations;
#[cfg(test)]
mod pipelines;
mod point;
mod replay;
#[cfg(test)]
pub(crate) mod safety;
#[cfg(test)]
mod stopping;
mod stream;
mod tail;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::sync::Arc;

use esker_wire::frame::{GREETING_BYTES, MAGIC, greeting, parse_greeting};

pub(crate) use crate::protocol::json_lines::operations as line_operations;
use crate::shared::Shared;
pub(crate) use encrypted::Encrypted;
pub(crate) use operations::frames as frame_operations;
pub use replay::answer_frames;
pub(crate) use stream::Stream;

/// Serves one client: its first bytes say which form it speaks.
pub(crate) async fn serve(mut stream: Stream, shared: &Arc<Shared>) -> io::Result<()> {
    let (mut input, stall) = (Vec::new(), shared.config.stall_timeout);
    while input.first().is_none_or(|first| *first == b'E') && input.len() < GREETING_BYTES {
        let read = stream.read(&mut input);
        match tokio::time::timeout(stall, read).await {
            Ok(Ok(n)) if n > 0 => {}
            _ => return Ok(()),
        }
    }
    match input.first_chunk::<GREETING_BYTES>() {
        Some(found) if found.starts_with(&MAGIC) => {
            stream.write_all(&greeting(), stall).await?;
            if parse_greeting(*found).is_err() {
                return Ok(());
            }
            input.drain(..GREETING_BYTES);
            connection::serve(stream, input, shared).await
        }
        _ if input.first() == Some(&b'{') => {
            crate::protocol::json_lines::serve(stream, input, shared).await
        }
        _ => {
            let text = b"{\"error\":{\"code\":\"invalid_request\",\"message\":\"expected a JSON \
                object a line, or ESKR and a version: this is the port of the wire protocol\"}}\n";
            stream.write_all(text, stall).await
        }
    }
}
