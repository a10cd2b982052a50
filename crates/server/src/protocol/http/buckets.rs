//! Buckets: values as bytes.

use axum::body::{Body, Bytes};
use axum::http::{Method, Response, StatusCode, header};
use esker::{BucketOptions, ScopedBucket};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::time::Duration;

use super::call::Call;
use super::entity::{self, decoded_bytes, last_segment};
use super::range::{self, Part};
use super::route::Outcome;
use super::tables::{changed, expect_name};
use super::write::{Tag, Written, expect_tag, write};
use super::{Problem, query::json_text};
use crate::session::{Answer, EntryRange, Expiry, Request, Session, lasting};
use crate::{Code, Error, Result};

const BYTES: &str = "application/octet-stream";

fn key_of(call: &Call) -> Result<Vec<u8>> {
    decoded_bytes(last_segment(call.parts.uri.path()))
}

/// A bucket that there is: putting an entry makes none here.
fn existing<'s>(session: &'s Session, name: &str) -> Result<ScopedBucket<'s>> {
    Ok(session.scope().bucket(name)?)
}

pub(super) async fn list(call: Call) -> Outcome {
    let names = match call.run(|session| session.run(Request::Buckets)).await? {
        Answer::Names(names) => names,
        _ => Vec::new(),
    };
    entity::json(StatusCode::OK, &json!({ "buckets": names }))
}

pub(super) async fn create(call: Call) -> Outcome {
    let ttl = call.parsed::<u64>("ttl_s", "a number of seconds")?.map(Duration::from_secs);
    let ttl = ttl.map(lasting).transpose()?;
    let name = call.path("bucket").to_owned();
    let act = move |session: &mut Session| {
        let none = || Error::new(Code::Internal, "a bucket made outside of a transaction");
        let options = BucketOptions::new();
        let options = ttl.map_or(options, |ttl| BucketOptions::new().ttl(ttl));
        session.transaction().ok_or_else(none)?.create_bucket(&name, &options)?;
        let ttl_s = ttl.map(|ttl| ttl.as_secs());
        let body = json!({ "bucket": name, "entries": 0, "ttl_s": ttl_s });
        Ok(Written::json(201, body.to_string()))
    };
    write(call, b"", None, act).await
}

/// How many entries a bucket has.
fn description(bucket: &ScopedBucket<'_>) -> Result<Json> {
    let ttl_s = bucket.default_ttl().map(|ttl| ttl.as_secs());
    Ok(json!({ "bucket": bucket.name(), "entries": bucket.len()?, "ttl_s": ttl_s }))
}

pub(super) async fn describe(call: Call) -> Outcome {
    let name = call.path("bucket").to_owned();
    let found = call.run(move |session| description(&existing(session, &name)?));
    entity::json(StatusCode::OK, &found.await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BucketChange {
    rename: String,
}

pub(super) async fn rename(mut call: Call) -> Outcome {
    let BucketChange { rename: to } = call.json().await?;
    expect_name(&call, &to)?;
    let name = call.path("bucket").to_owned();
    changed(&call, StatusCode::OK, move |session| {
        existing(session, &name)?;
        session.scope().rename_table(&name, &to)?;
        description(&existing(session, &to)?)
    })
    .await
}

pub(super) async fn remove(call: Call) -> Outcome {
    let name = call.path("bucket").to_owned();
    let drop = move |session: &mut Session| {
        existing(session, &name)?;
        Ok(session.scope().drop_table(&name)?)
    };
    call.run(drop).await?;
    entity::empty()
}

/// The value of a key in a session, and how long it still has.
fn find(session: &mut Session, bucket: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let get = Request::BucketGet { bucket: bucket.to_owned(), keys: vec![key.to_vec()] };
    match session.run(get)? {
        Answer::Values(values) => Ok(values.into_iter().next().flatten()),
        _ => Ok(None),
    }
}

/// What tells the tag that an entry has in a session.
fn tag_now(bucket: &str, key: &[u8]) -> Option<Box<Tag>> {
    let (bucket, key) = (bucket.to_owned(), key.to_vec());
    Some(Box::new(move |session| {
        let found = session.internally(|session| find(session, &bucket, &key))?;
        Ok(found.map(|value| entity::tag(&[&value])))
    }))
}

fn no_entry(bucket: &str) -> Error {
    Error::new(Code::NotFound, format!("bucket {bucket:?} has no entry with this key"))
}

pub(super) async fn get(call: Call) -> Outcome {
    let (bucket, key) = (call.path("bucket").to_owned(), key_of(&call)?);
    let found = call.run_at_once(move |session| {
        let value = find(session, &bucket, &key)?.ok_or_else(|| no_entry(&bucket))?;
        let left = existing(session, &bucket)?.remaining(&key)?.flatten();
        Ok((value, left, session.end_answer().into_share()))
    });
    let (value, left, share) = found.await?;
    let tag = entity::tag(&[&value]);
    expect_tag(&call, &tag)?;
    let is_known = call.tags("if-none-match")?.is_some_and(|tags| tags.has_weakly(&tag));
    let mut response = if is_known {
        entity::with_body(StatusCode::NOT_MODIFIED, BYTES, "")
    } else {
        let value = call.held(value, share).await?;
        value_response(&call, &tag, value)?
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, entity::header_value(&tag));
    headers.insert(header::ACCEPT_RANGES, header::HeaderValue::from_static("bytes"));
    if let Some(left) = left {
        let seconds = entity::header_value(&left.as_secs().to_string());
        headers.insert("esker-ttl", seconds);
    }
    Ok(response)
}

fn value_response(call: &Call, tag: &str, value: Bytes) -> Outcome {
    let if_range = call.header(header::IF_RANGE.as_str())?;
    let wanted = call.header(header::RANGE.as_str())?;
    // Of any other method the header says nothing (RFC 9110, section 14.2).
    let wanted = wanted.filter(|_| call.parts.method == Method::GET);
    let wanted = wanted.filter(|_| if_range.is_none_or(|known| known == tag));
    let Some(wanted) = wanted else {
        return Ok(entity::with_body(StatusCode::OK, BYTES, value));
    };
    let length = value.len();
    match range::parse(wanted, length) {
        Part::Whole => Ok(entity::with_body(StatusCode::OK, BYTES, value)),
        Part::Bytes(first, end) => {
            let part = value.slice(first.min(length)..end.min(length));
            let mut response = entity::with_body(StatusCode::PARTIAL_CONTENT, BYTES, part);
            let place = format!("bytes {first}-{}/{length}", end.saturating_sub(1));
            let place = entity::header_value(&place);
            response.headers_mut().insert(header::CONTENT_RANGE, place);
            Ok(response)
        }
        Part::Outside => {
            let message = format!("range: expected bytes within {length}, found {wanted:?}");
            let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, Error::invalid(message));
            let mut response: Response<Body> = problem.into_response();
            let place = entity::header_value(&format!("bytes */{length}"));
            response.headers_mut().insert(header::CONTENT_RANGE, place);
            Ok(response)
        }
    }
}

fn expiry_of(call: &Call) -> Result<Expiry> {
    match call.header("esker-ttl")? {
        None => Ok(Expiry::Default),
        Some("never") => Ok(Expiry::Never),
        Some(text) => {
            let seconds = text.parse().map_err(|_| {
                Error::invalid(format!("esker-ttl: expected seconds or never, found {text:?}"))
            })?;
            Ok(Expiry::After(Duration::from_secs(seconds)))
        }
    }
}

pub(super) async fn put(mut call: Call) -> Outcome {
    let (bucket, key, expiry) = (call.path("bucket").to_owned(), key_of(&call)?, expiry_of(&call)?);
    let value = call.bytes().await?;
    let tag = tag_now(&bucket, &key);
    let body = value.clone();
    let act = move |session: &mut Session| {
        existing(session, &bucket)?;
        let was_there = session.internally(|s| find(s, &bucket, &key))?.is_some();
        let entries = vec![(key.clone(), value.to_vec())];
        session.run(Request::BucketPut { bucket: bucket.clone(), entries, expiry })?;
        let status = if was_there { 204 } else { 201 };
        Ok(Written { status, body: String::new(), tag: Some(entity::tag(&[&value])) })
    };
    write(call, &body, tag, act).await
}

pub(super) async fn delete(call: Call) -> Outcome {
    let (bucket, key) = (call.path("bucket").to_owned(), key_of(&call)?);
    let tag = tag_now(&bucket, &key);
    let act = move |session: &mut Session| {
        let remove = Request::BucketRemove { bucket: bucket.clone(), keys: vec![key.clone()] };
        match session.run(remove)? {
            Answer::Changed(0) => Err(no_entry(&bucket)),
            _ => Ok(Written::empty()),
        }
    };
    write(call, b"", tag, act).await
}

/// Adds to a number.
pub(super) async fn increment(call: Call) -> Outcome {
    let by: i64 = call.parsed("by", "a whole number")?.unwrap_or(1);
    let bucket = call.path("bucket").to_owned();
    // The path ends in `/increment`.
    let path = call.parts.uri.path();
    let path = path.strip_suffix("/increment").unwrap_or(path);
    let key = decoded_bytes(last_segment(path))?;
    let act = move |session: &mut Session| {
        existing(session, &bucket)?;
        let (bucket, key) = (bucket.clone(), key.clone());
        match session.run(Request::BucketIncrement { bucket, key, by })? {
            Answer::Number(number) => {
                Ok(Written::json(200, json!({ "value": number }).to_string()))
            }
            _ => Ok(Written::empty()),
        }
    };
    write(call, b"", None, act).await
}

/// A key or value as text: as it is where it is text without `%`, its other bytes as `%XX`.
fn shown(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::new(), |mut text, chunk| {
        text += &chunk.valid().replace('%', "%25");
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

pub(super) async fn entries(call: Call) -> Outcome {
    let limit = call.page_limit()?;
    let bytes = |name: &str| call.parameter(name).map(decoded_bytes).transpose();
    let (from, to, prefix) = (bytes("from")?, bytes("to")?, bytes("prefix")?);
    let reverse = call.parsed("reverse", "true or false")?.unwrap_or(false);
    let range = EntryRange { from, to, prefix, limit: Some(limit + 1), reverse };
    let bucket = call.path("bucket").to_owned();
    let found = call.run(move |session| {
        let found = session.run(Request::BucketRange { bucket, range })?;
        Ok((found, session.end_answer().into_share()))
    });
    let (Answer::Entries(mut entries), share) = found.await? else {
        return Err(Error::new(Code::Internal, "no entries").into());
    };
    // Backwards the next page ends before the last key that is sent: `to` is not part of it.
    let next = entries.get(limit).and_then(|_| entries.get(limit - usize::from(reverse)));
    let next = next.map(|(key, _)| shown(key));
    entries.truncate(limit);
    let entry = |(key, value): &(Vec<u8>, Vec<u8>)| {
        format!("{{\"key\":{},\"value\":{}}}", json_text(&shown(key)), json_text(&shown(value)))
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let next = next.map_or("null".to_owned(), |key| json_text(&key));
    let body = format!("{{\"entries\":[{}],\"next\":{next}}}", entries.join(","));
    let body = call.held(body.into_bytes(), share).await?;
    Ok(entity::with_body(StatusCode::OK, "application/json", body))
}
