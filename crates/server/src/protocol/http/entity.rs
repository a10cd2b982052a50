//! Texts of requests, and the bodies of small answers.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Problem;
use super::object_text::ObjectText;
use super::route::Outcome;
use crate::{Code, Error, Result};

/// The bytes that a percent-encoded text stands for.
pub(super) fn decoded_bytes(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let value = high.zip(low).map(|(high, low)| high * 16 + low);
        let value = value.and_then(|value| u8::try_from(value).ok());
        let wrong = || Error::invalid(format!("expected two digits behind % in {text:?}"));
        bytes.push(value.ok_or_else(wrong)?);
    }
    Ok(bytes)
}

/// The text that a percent-encoded text stands for.
pub(super) fn decoded(text: &str) -> Result<String> {
    let bytes = decoded_bytes(text)?;
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("expected UTF-8 in {text:?}")))
}

/// The names and values of a query, `+` as a space.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>> {
    let pair = |text: &str| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        Ok((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

/// The last part of a path, as it was sent.
pub(super) fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Bytes of a digest that a tag tells.
const TAG_BYTES: usize = 12;

/// A strong tag of what a body has.
pub(super) fn tag(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut tag = String::with_capacity(2 * TAG_BYTES + 2);
    tag.push('"');
    for digit in digest.iter().take(TAG_BYTES).flat_map(|byte| [byte >> 4, byte & 15]) {
        tag.extend(char::from_digit(digit.into(), 16));
    }
    tag.push('"');
    tag
}

/// A header's value; what cannot stand in one is left out.
pub(super) fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// An answer with a body of a media type.
pub(super) fn with_body(
    status: StatusCode,
    media: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// An answer as JSON.
pub(super) fn json<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Outcome {
    let text = serde_json::to_vec(value)
        .map_err(|e| Problem::from(Error::new(Code::Internal, e.to_string())))?;
    Ok(with_body(status, "application/json", text))
}

/// An answer that was written as JSON.
pub(super) fn object(status: StatusCode, object: ObjectText) -> Response<Body> {
    with_body(status, "application/json", object.into_text())
}

/// An answer without a body.
pub(super) fn empty() -> Outcome {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
