//! Rows by their keys.

use axum::http::{StatusCode, header};
use esker::{Row, Value};
use esker_import::{Format, RowWriter};
use serde_json::json;

use super::call::Call;
use super::entity::{self, decoded, last_segment};
use super::route::Outcome;
use super::write::{Tag, Written, expect_tag, write};
use crate::session::{Answer, Conflict, Fields, Key, Request, Rows, Session};
use crate::{Code, Error, Result};

/// The key of a path: the parts between commas, each percent-encoded.
fn key_of(call: &Call) -> Result<Vec<String>> {
    let segment = last_segment(call.parts.uri.path());
    segment.split(',').map(decoded).collect()
}

/// A row as an object, without a line end.
pub(super) fn row_text(row: &Row) -> String {
    let names = row.schema().fields().iter().map(|field| field.name.as_str());
    let writer = RowWriter::new(Format::Ndjson, b',', names);
    let mut text = Vec::new();
    writer.write_row(&mut text, false, row.values().iter().map(Value::as_ref));
    text.truncate(text.trim_ascii_end().len());
    String::from_utf8(text).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn find(session: &mut Session, table: &str, key: &[String]) -> Result<Option<String>> {
    let keys = vec![Key::Texts(key.to_vec())];
    match session.run(Request::Get { table: table.to_owned(), keys })? {
        Answer::Rows(rows) => Ok(rows.into_iter().next().flatten().map(|row| row_text(&row))),
        _ => Ok(None),
    }
}

fn no_row(table: &str, key: &[String]) -> Error {
    let key = key.join(", ");
    Error::new(Code::NotFound, format!("table {table:?} has no row with the key {key}"))
}

/// What tells the tag that a row has in a session.
fn tag_now(table: &str, key: &[String]) -> Option<Box<Tag>> {
    let (table, key) = (table.to_owned(), key.to_vec());
    Some(Box::new(move |session| {
        let found = session.internally(|session| find(session, &table, &key))?;
        Ok(found.as_deref().map(tag_of))
    }))
}

fn tag_of(text: &str) -> String {
    entity::tag(&[text.as_bytes()])
}

fn stored(session: &mut Session, table: &str, key: &[String], status: u16) -> Result<Written> {
    let body = find(session, table, key)?.ok_or_else(|| no_row(table, key))?;
    let tag = Some(tag_of(&body));
    Ok(Written { status, body, tag })
}

pub(super) async fn get(call: Call) -> Outcome {
    let (table, key) = (call.path("table").to_owned(), key_of(&call)?);
    let wanted = key.clone();
    let name = table.clone();
    let found = call.run_at_once(move |session| {
        let found = find(session, &name, &wanted)?;
        Ok((found, session.end_answer().into_share()))
    });
    let (text, share) = found.await?;
    let text = text.ok_or_else(|| no_row(&table, &key))?;
    let tag = tag_of(&text);
    expect_tag(&call, &tag)?;
    let is_known = call.tags("if-none-match")?.is_some_and(|tags| tags.has_weakly(&tag));
    let mut response = if is_known {
        entity::with_body(StatusCode::NOT_MODIFIED, "application/json", "")
    } else {
        let body = call.held(text.into_bytes(), share).await?;
        entity::with_body(StatusCode::OK, "application/json", body)
    };
    response.headers_mut().insert(header::ETAG, entity::header_value(&tag));
    Ok(response)
}

/// Values by the names of their fields.
type NamedRow = Vec<(String, Value)>;

/// The row of an object, with the key of the path, which the object may have, too.
fn with_key(session: &Session, table: &str, key: &[String], object: &str) -> Result<NamedRow> {
    let schema = session.scope().table(table)?.schema();
    let fields: Vec<_> = schema.key_fields().collect();
    if fields.is_empty() {
        let message = format!("table {table:?} gives its rows keys itself: POST rows instead");
        return Err(Error::invalid(message));
    }
    let mut row = esker_import::parse_json_row(object, &schema)?;
    if fields.len() != key.len() {
        let names: Vec<_> = fields.iter().map(|f| f.name.as_str()).collect();
        let (names, found) = (names.join(", "), key.len());
        return Err(Error::invalid(format!(
            "key: expected a value for each of {names}, found {found}"
        )));
    }
    for (field, text) in fields.iter().zip(key) {
        let at =
            |e: esker_import::Error| Error::from(e).at(format_args!("key field {:?}", field.name));
        let value = esker_import::parse_value(text, field.data_type).map_err(at)?;
        match row.iter().find(|(name, _)| *name == field.name) {
            Some((_, given)) if field.fit(given)? == field.fit(&value)? => {}
            Some((name, _)) => {
                let message = format!("field {name:?}: expected {text:?} as in the path");
                return Err(Error::invalid(message));
            }
            None => row.push((field.name.clone(), value)),
        }
    }
    Ok(row)
}

pub(super) async fn put(mut call: Call) -> Outcome {
    let object = call.text().await?;
    let (table, key) = (call.path("table").to_owned(), key_of(&call)?);
    let tag = tag_now(&table, &key);
    let body = object.clone().into_bytes();
    let act = move |session: &mut Session| {
        let row = with_key(session, &table, &key, &object)?;
        let was_there = session.internally(|s| find(s, &table, &key))?.is_some();
        let (rows, conflict) = (Rows::Named(vec![row]), Conflict::Replace);
        session.run(Request::Insert { table: table.clone(), rows, conflict })?;
        stored(session, &table, &key, if was_there { 200 } else { 201 })
    };
    write(call, &body, tag, act).await
}

pub(super) async fn patch(mut call: Call) -> Outcome {
    let object = call.text().await?;
    let (table, key) = (call.path("table").to_owned(), key_of(&call)?);
    let tag = tag_now(&table, &key);
    let body = object.clone().into_bytes();
    let act = move |session: &mut Session| {
        let fields = Fields::Object(object.clone());
        let (table, key) = (table.clone(), key.clone());
        let update = Request::Update { table: table.clone(), key: Key::Texts(key.clone()), fields };
        match session.run(update)? {
            Answer::Changed(0) => Err(no_row(&table, &key)),
            _ => stored(session, &table, &key, 200),
        }
    };
    write(call, &body, tag, act).await
}

pub(super) async fn delete(call: Call) -> Outcome {
    let (table, key) = (call.path("table").to_owned(), key_of(&call)?);
    let tag = tag_now(&table, &key);
    let act = move |session: &mut Session| {
        let keys = vec![Key::Texts(key.clone())];
        match session.run(Request::Delete { table: table.clone(), keys })? {
            Answer::Changed(0) => Err(no_row(&table, &key)),
            _ => Ok(Written::empty()),
        }
    };
    write(call, b"", tag, act).await
}

/// A page of rows, in the order of the table's key or of row ids.
pub(super) async fn page(call: Call) -> Outcome {
    let limit = call.page_limit()?;
    let cursor = call.parameter("cursor");
    let query = json!({ "table": call.path("table"), "limit": limit, "cursor": cursor });
    super::query::answer(call, Request::Query { json: query.to_string() }, None).await
}
