//! Events of streams page by page, and what all routes that read several events have in common.

use axum::http::StatusCode;
use esker::{ChangeOptions, DataType, EventId, PageQuery, Row, Schema, Stream, Value, ValueRef};
use esker_import::{Format, RowWriter, distinct_names};
use esker_query::model::{Change, Delete};

use super::call::Call;
use super::entity;
use super::route::Outcome;
use super::streams::expect_alone;
use crate::{Code, Error, Result};

/// Writes events: the id, then the fields. A field that is called `id` is written as `id_2`.
pub(super) struct EventWriter {
    rows: RowWriter,
}

impl EventWriter {
    pub fn new(format: Format, schema: &Schema) -> Self {
        let fields = schema.fields().iter().map(|field| field.name.as_str());
        let names = distinct_names(std::iter::once("id").chain(fields));
        Self { rows: RowWriter::new(format, b',', names.iter().map(String::as_str)) }
    }

    /// What stands before all events.
    pub fn start(&self) -> Vec<u8> {
        self.rows.start()
    }

    /// Appends an event, with a line end.
    pub fn write(&self, out: &mut Vec<u8>, id: EventId, row: &Row) {
        let id = id.to_string();
        let values = row.values().iter().map(Value::as_ref);
        self.rows.write_row(out, false, std::iter::once(ValueRef::Text(&id)).chain(values));
    }
}

/// Which events are asked for, as the parameters of a call have it.
pub(super) struct Asked {
    /// The stream.
    pub name: String,
    filter: Option<String>,
    /// From this time on, in microseconds since 1970.
    pub from: Option<i64>,
    /// Before this time.
    pub to: Option<i64>,
}

impl Asked {
    pub fn of(call: &Call) -> Result<Self> {
        expect_alone(call)?;
        let time = |name: &str| time_of(call, name);
        let (name, filter) = (call.path("table").to_owned(), call.parameter("where"));
        let (from, to) = (time("from").transpose()?, time("to").transpose()?);
        Ok(Self { name, filter: filter.map(str::to_owned), from, to })
    }

    /// The filter, if there is one.
    pub fn filter(&self, stream: &Stream) -> Result<Option<esker_query::model::Expr>> {
        Ok(self.filter.as_deref().map(|json| stream.parse_filter(json)).transpose()?)
    }
}

/// A time that a parameter says, in microseconds since 1970.
fn time_of(call: &Call, name: &str) -> Option<Result<i64>> {
    let text = call.parameter(name)?;
    let wrong = |found: String| {
        let expected = "expected a time such as 2026-01-02T03:04:05Z";
        Error::invalid(format!("{name}: {expected}, {found}"))
    };
    Some(match esker_import::parse_value(text, DataType::Timestamp) {
        Ok(Value::Timestamp(time_us)) => Ok(time_us),
        Ok(_) => Err(wrong(format!("found {text:?}"))),
        Err(e) => Err(wrong(e.to_string())),
    })
}

/// Removes the events before a time, or that a condition is true of; says how many. Those that are
/// erased go from all files, too.
pub(super) async fn remove_many(call: Call) -> Outcome {
    let (asked, before) = (Asked::of(&call)?, time_of(&call, "before").transpose()?);
    let erase = call.parsed("erase", "true or false")?.unwrap_or(false);
    if before.is_none() && asked.filter.is_none() {
        let message = "before, where: expected a time before which all events go, or a condition \
                       on those that do";
        return Err(Error::invalid(message).into());
    }
    let answer = call.run(move |session| {
        let stream = session.database().stream(&asked.name)?;
        let filter = asked.filter(&stream)?;
        match (before, &filter) {
            (Some(before), None) if !erase => return Ok(removed(stream.delete_before(before)?)),
            _ => {}
        }
        let filter = stream.narrowed(filter, None, before)?;
        let delete = Delete { table: asked.name, filter, erase, ..Delete::default() };
        let options = ChangeOptions { limits: session.limits(), ..ChangeOptions::default() };
        let changed = session.database().change_with(&Change::Delete(delete), &options)?;
        let Some(erased) = changed.returning.and_then(|answer| answer.to_rows().pop()) else {
            return Ok(removed(changed.rows));
        };
        match erased.as_slice() {
            [Value::Uint(erasure), Value::Uint(rows), Value::Uint(bytes_left)] => Ok(format!(
                "{{\"removed\":{rows},\"erasure\":{erasure},\"bytes_left\":{bytes_left}}}"
            )),
            other => Err(Error::new(Code::Internal, format!("an erasure answers {other:?}"))),
        }
    });
    Ok(entity::with_body(StatusCode::OK, "application/json", answer.await?))
}

fn removed(count: u64) -> String {
    format!("{{\"removed\":{count}}}")
}

/// A page, by the times of events.
pub(super) async fn page(call: Call) -> Outcome {
    let (asked, limit) = (Asked::of(&call)?, call.page_limit()?);
    let order = call.parsed("order", "newest or oldest")?.unwrap_or_default();
    let after = call.parsed("after", "what `next` of a page was")?;
    let found = call.run(move |session| {
        let _permit = session.begin_query()?;
        let stream = session.database().stream(&asked.name)?;
        let (filter, limits) = (asked.filter(&stream)?, session.limits());
        let (from, to) = (asked.from, asked.to);
        let page = stream.page(&PageQuery { order, limit, after, from, to, filter, limits })?;
        let writer = page.events.first();
        let writer = writer.map(|(_, row)| EventWriter::new(Format::Ndjson, row.schema()));
        let mut text = b"{\"events\":[".to_vec();
        for (number, (id, row)) in page.events.iter().enumerate() {
            let before = text.len();
            text.extend_from_slice(if number > 0 { b",\n" } else { b"\n" });
            if let Some(writer) = &writer {
                writer.write(&mut text, *id, row);
            }
            text.truncate(text.trim_ascii_end().len());
            session.take_answer(text.len() - before)?;
        }
        let next = page.next.map_or("null".to_owned(), |next| format!("\"{next}\""));
        text.extend_from_slice(format!("],\"next\":{next}}}\n").as_bytes());
        Ok((text, session.end_answer().into_share()))
    });
    let (text, share) = found.await?;
    let body = call.held(text, share).await?;
    Ok(entity::with_body(StatusCode::OK, "application/json", body))
}
