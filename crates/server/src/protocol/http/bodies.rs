//! Bodies that are read as they arrive, in code that waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use futures_util::TryStreamExt;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::monitor::active_sessions::ActiveSession;

/// Becomes true once nothing of a body has come for too long.
pub(super) type Stalled = Arc<AtomicBool>;

/// A body as something that is read; a client that sends nothing for some time counts as gone, and
/// nothing is read any more once the seat is ended. Within a runtime; to be read outside of it.
pub(super) fn reader(
    body: Body,
    stall: Duration,
    active_session: Option<Arc<ActiveSession>>,
) -> (impl io::Read + Send + 'static, Stalled) {
    let has_stalled = Stalled::default();
    let noted = Arc::clone(&has_stalled);
    let stream = body.into_data_stream().map_err(io::Error::other);
    let stream = futures_util::stream::unfold(Some(Box::pin(stream)), move |stream| {
        let (noted, active_session) = (Arc::clone(&noted), active_session.clone());
        async move {
            let mut stream = stream?;
            let next = tokio::select! {
                next = tokio::time::timeout(stall, stream.try_next()) => next,
                () = ActiveSession::ended(active_session.as_ref()) => {
                    return Some((Err(io::Error::other("the session was ended")), None));
                }
            };
            match next {
                Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(stream))),
                Ok(Ok(None)) => None,
                Ok(Err(e)) => Some((Err(e), None)),
                Err(_) => {
                    noted.store(true, Ordering::Relaxed);
                    let message = format!("nothing was sent for {} s", stall.as_secs());
                    Some((Err(io::Error::new(io::ErrorKind::TimedOut, message)), None))
                }
            }
        }
    });
    (SyncIoBridge::new(StreamReader::new(Box::pin(stream))), has_stalled)
}
