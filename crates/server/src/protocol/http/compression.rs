//! Answers in gzip or zstd, for those who take it.

use async_compression::tokio::bufread::{GzipEncoder, ZstdEncoder};
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use futures_util::TryStreamExt;
use tokio_util::io::{ReaderStream, StreamReader};

/// Shorter answers are sent as they are.
const BYTES_MIN: u64 = 1024;

/// How an answer may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Gzip,
    Zstd,
}

/// The best that a request takes.
pub(super) fn accepted(headers: &HeaderMap) -> Option<Encoding> {
    let given = headers.get_all(header::ACCEPT_ENCODING).iter();
    let given = given.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let (mut gzip, mut zstd) = (false, false);
    for part in given {
        let (name, parameters) = part.split_once(';').unwrap_or((part, ""));
        let quality = parameters.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok());
        let wanted = quality.is_none_or(|quality| quality > 0.0);
        match name.trim() {
            "gzip" => gzip = wanted,
            "zstd" => zstd = wanted,
            _ => {}
        }
    }
    if zstd { Some(Encoding::Zstd) } else { gzip.then_some(Encoding::Gzip) }
}

/// Whether an answer may be gathered before it is sent: one that tells what happens may not.
fn is_gathered(media: &str) -> bool {
    (media.starts_with("text/") || media.contains("json")) && media != "text/event-stream"
}

/// The answer, compressed where that is wanted and worth it.
pub(super) fn compress(response: Response<Body>, encoding: Option<Encoding>) -> Response<Body> {
    let headers = response.headers();
    let is_text =
        headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).is_some_and(is_gathered);
    let is_exhausted = response.body().size_hint().upper().is_some_and(|bytes| bytes < BYTES_MIN);
    let is_whole = response.status().as_u16() != 206;
    let Some(encoding) = encoding.filter(|_| is_text && !is_exhausted && is_whole) else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let name = match encoding {
        Encoding::Gzip => "gzip",
        Encoding::Zstd => "zstd",
    };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    parts.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    parts.headers.remove(header::CONTENT_LENGTH);
    // Bytes that are not the same are not the same entity.
    if let Some(tag) = parts.headers.remove(header::ETAG)
        && let Ok(text) = tag.to_str()
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{text}"))
    {
        parts.headers.insert(header::ETAG, weak);
    }
    let reader = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let body = match encoding {
        Encoding::Gzip => Body::from_stream(ReaderStream::new(GzipEncoder::new(reader))),
        Encoding::Zstd => Body::from_stream(ReaderStream::new(ZstdEncoder::new(reader))),
    };
    Response::from_parts(parts, body)
}
