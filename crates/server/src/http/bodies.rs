//! Bodies that are read as they arrive, in code that waits.

use std::io;
use std::time::Duration;

use axum::body::Body;
use futures_util::TryStreamExt;
use tokio_util::io::{StreamReader, SyncIoBridge};

/// A body as something that is read; whoever sends nothing for some time is taken for gone. Within
/// a runtime; to be read outside of it.
pub(super) fn reader(body: Body, stall: Duration) -> impl io::Read + Send + 'static {
    let stream = body.into_data_stream().map_err(io::Error::other);
    let stream = futures_util::stream::unfold(Some(Box::pin(stream)), move |stream| async move {
        let mut stream = stream?;
        match tokio::time::timeout(stall, stream.try_next()).await {
            Ok(Ok(Some(bytes))) => Some((Ok(bytes), Some(stream))),
            Ok(Ok(None)) => None,
            Ok(Err(e)) => Some((Err(e), None)),
            Err(_) => {
                let message = format!("nothing was sent for {} s", stall.as_secs());
                Some((Err(io::Error::new(io::ErrorKind::TimedOut, message)), None))
            }
        }
    });
    SyncIoBridge::new(StreamReader::new(Box::pin(stream)))
}
