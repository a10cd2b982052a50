//! `WATCH events …`: the events of a stream, a row each, as they arrive.
//!
//! It ends with Ctrl-C, when the server stops, or at the LIMIT. In a database that only this
//! process has open nothing arrives while it waits: there a script ends with the newest event.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{DataType, TailBatch, TailFrom, Value};
use esker_client::{Client, Told};
use esker_import::{RowWriter, distinct_names};
use esker_query::{QueryResult, ResultColumn, Statistics};
use esker_sql::{Session, Statement, WatchStatement};

use crate::arguments::Format;
use crate::failure::{Failure, Result};
use crate::output::Style;
use crate::sql::Settings;
use crate::{Console, remote};

/// How often it is looked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Events that are shown at once.
const BATCH_EVENTS: u64 = 1_000;

/// Shows rows, with the names of their columns before the first of them.
struct Teller<'s> {
    settings: &'s Settings,
    format: Format,
    /// What the rows before had.
    columns: Vec<ResultColumn>,
    /// How many more are shown.
    left: Option<u64>,
}

impl<'s> Teller<'s> {
    fn new(watch: &WatchStatement, settings: &'s Settings, console: &Console<'_>) -> Result<Self> {
        let default = if console.is_terminal { Format::Table } else { Format::Csv };
        let left = watch.limit().map_err(esker::Error::from)?;
        let format = settings.format.unwrap_or(default);
        Ok(Self { settings, format, columns: Vec::new(), left })
    }

    /// How many events are wanted next.
    fn wanted(&self) -> u64 {
        self.left.map_or(BATCH_EVENTS, |left| left.min(BATCH_EVENTS))
    }

    fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Shows rows, each with its id first.
    fn tell(
        &mut self,
        columns: Vec<ResultColumn>,
        mut rows: Vec<Vec<Value>>,
        console: &mut Console<'_>,
    ) -> Result<()> {
        if let Some(left) = self.left {
            rows.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            self.left = Some(left - rows.len() as u64);
        }
        if rows.is_empty() {
            return Ok(());
        }
        match self.format {
            Format::Table => {
                let batches = vec![remote::batch(&columns, &rows)?];
                let statistics = Statistics::default();
                let result = QueryResult { columns, batches, statistics };
                let style = Style { counts: false, ..self.settings.style.clone() };
                let settings = Settings { style, ..self.settings.clone() };
                settings.show(&result, console)?;
            }
            format => {
                let format = match format {
                    Format::Json => esker_import::Format::Ndjson,
                    _ => esker_import::Format::Csv,
                };
                let names = columns.iter().map(|column| column.name.as_str());
                let writer = RowWriter::new(format, b',', names);
                let mut out = Vec::new();
                if self.columns != columns {
                    out = writer.start();
                    self.columns = columns;
                }
                for row in &rows {
                    writer.write_row(&mut out, false, row.iter().map(Value::as_ref));
                }
                console.out.write_all(&out)?;
            }
        }
        Ok(console.out.flush()?)
    }

    fn tell_gap(&self, (from, to): (u64, u64), console: &mut Console<'_>) -> Result<()> {
        console.flush_before_note()?;
        let what = "are gone: retention took them before they were told";
        Ok(writeln!(console.err, "note: events with some of the row ids {from} to {to} {what}")?)
    }
}

/// The columns of events: the id, then the fields.
fn columns(schema: &esker::Schema) -> Vec<ResultColumn> {
    let fields = schema.fields();
    let names = std::iter::once("id").chain(fields.iter().map(|field| field.name.as_str()));
    let types = std::iter::once(DataType::Text).chain(fields.iter().map(|f| f.data_type));
    let shown = |data_type| if data_type == DataType::Enum { DataType::Text } else { data_type };
    let names = distinct_names(names).into_iter();
    names.zip(types).map(|(name, of)| ResultColumn { name, data_type: shown(of) }).collect()
}

/// Tells the events of a database in this process.
pub(crate) fn here(
    statement: &Statement,
    session: &Session,
    settings: &Settings,
    console: &mut Console<'_>,
) -> Result<()> {
    let Statement::Watch(watch) = statement.said() else {
        return Err(Failure::usage("expected WATCH"));
    };
    let mut teller = Teller::new(watch, settings, console)?;
    let stream = session.database().stream(&watch.query.table)?;
    let from = match &watch.after {
        None => TailFrom::Now,
        Some(text) => text.parse()?,
    };
    let mut tail = stream.tail(from, watch.query.filter.clone())?;
    let waits = console.is_terminal && !settings.statement_is_input;
    let is_wanted = || {
        let cancel = settings.limits.cancel.as_ref();
        !cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    };
    while !teller.is_done() && is_wanted() {
        let wanted = usize::try_from(teller.wanted()).unwrap_or(1);
        let patience = if waits { LOOK_EVERY } else { Duration::ZERO };
        match tail.next_batch(wanted, patience)? {
            TailBatch::Events(events) => {
                let Some((_, first)) = events.first() else {
                    if !waits && tail.is_at_end() {
                        return Ok(());
                    }
                    continue;
                };
                let columns = columns(first.schema());
                let row = |(id, row): &(esker::EventId, esker::Row)| {
                    let id = Value::from(id.to_string());
                    std::iter::once(id).chain(row.values().iter().cloned()).collect()
                };
                teller.tell(columns, events.iter().map(row).collect(), console)?;
            }
            TailBatch::Gap { from, to } => teller.tell_gap((from, to), console)?,
            _ => {}
        }
    }
    Ok(())
}

/// Tells the events of a server.
pub(crate) fn there(
    watch: &WatchStatement,
    (client, cancel): (&mut Client, &AtomicBool),
    settings: &Settings,
    console: &mut Console<'_>,
) -> Result<()> {
    let mut teller = Teller::new(watch, settings, console)?;
    if teller.is_done() {
        return Ok(());
    }
    let after = watch.after.as_deref().unwrap_or("now");
    let asked = (bare(&watch.query.table), after, watch.condition.as_deref());
    let mut done = Ok(());
    client.tail_while(
        asked,
        || !cancel.load(Ordering::Relaxed),
        |fields, told| {
            done = tell_all(&mut teller, fields, told, console);
            done.is_ok() && !teller.is_done()
        },
    )?;
    done
}

/// The name of a table, without the schema that all are in.
fn bare(table: &str) -> &str {
    let parts = table.split_once('.').filter(|(schema, _)| schema.eq_ignore_ascii_case("main"));
    parts.map_or(table, |(_, table)| table)
}

fn tell_all(
    teller: &mut Teller<'_>,
    fields: &[esker_client::Column],
    told: Vec<Told>,
    console: &mut Console<'_>,
) -> Result<()> {
    let id = esker_client::Column { name: "id".to_owned(), data_type: "text".to_owned() };
    let all: Vec<_> = std::iter::once(id).chain(fields.iter().cloned()).collect();
    let columns = remote::columns(&all);
    let mut rows = Vec::new();
    for told in told {
        match told {
            Told::Event(id, values) => {
                rows.push(std::iter::once(Value::from(id.to_string())).chain(values).collect());
            }
            Told::Gap { from, to } => {
                teller.tell(columns.clone(), std::mem::take(&mut rows), console)?;
                teller.tell_gap((from, to), console)?;
            }
        }
    }
    teller.tell(columns, rows, console)
}
