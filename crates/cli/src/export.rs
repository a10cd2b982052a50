//! `esker export DB TABLE`.

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use esker::{Batch, Database, Snapshot};
use esker_import::{FileWriter, Format, Pipeline, RowWriter};
use esker_query::model::Expr;
use esker_query::{Query, ResultColumn};
use esker_sql::Statement;
use esker_vfs::{Environment, OpenMode};

use crate::arguments::{ExportArguments, InputFormat};
use crate::failure::{Failure, Result};

use crate::load::input::{character, format_of};
use crate::{Console, output, remote, sql, units};

/// Bytes gathered for one write.
const WRITE_BYTES: usize = 1 << 20;

pub(crate) fn run(arguments: &ExportArguments, console: &mut Console<'_>) -> Result<()> {
    if let Some(text) = &arguments.sql {
        statement(text)?;
    }
    if let Some(address) = remote::address(&arguments.db) {
        let mut client = remote::connect(address)?;
        let text = match &arguments.sql {
            Some(text) => text.clone(),
            None => {
                let name = arguments.table.as_deref().unwrap_or_default();
                format!("SELECT * FROM {}", remote::quoted(name))
            }
        };
        let mut rows = client.stream(&text, &[])?;
        let columns = remote::columns(rows.columns());
        return export(arguments, &columns, console, |take| {
            while let Some(some) = rows.next_rows()? {
                if take(remote::batch(&columns, &some)?).is_break() {
                    break;
                }
            }
            Ok(())
        });
    }
    run_in(&sql::open_to_read(&arguments.db)?, arguments, console)
}

/// The same of a database that is open.
pub(crate) fn run_in(
    database: &Database,
    arguments: &ExportArguments,
    console: &mut Console<'_>,
) -> Result<()> {
    let snapshot = database.snapshot()?;
    let query = query(arguments, &snapshot)?;
    let columns = snapshot.columns(&query)?;
    export(arguments, &columns, console, |take| {
        snapshot.stream(&query, take)?;
        Ok(())
    })
}

/// Writes what `feed` hands over, to the file that is wanted.
fn export(
    arguments: &ExportArguments,
    columns: &[ResultColumn],
    console: &mut Console<'_>,
    feed: impl FnOnce(&mut Take<'_>) -> Result<()>,
) -> Result<()> {
    let environment = Environment::os();
    let started_ns = environment.clock.monotonic_ns();
    let names = output::distinct_names(columns.iter().map(|column| column.name.as_str()));
    let writer = writer(arguments, &names)?;
    let Some(path) = &arguments.output else {
        return write(&environment, &writer, console.out, feed).map(drop);
    };
    let file = environment.files.open(path, OpenMode::CreateNew)?;
    let mut out = BufWriter::with_capacity(WRITE_BYTES, FileWriter::new(file.clone()));
    let written = write(&environment, &writer, &mut out, feed);
    let finished = written.and_then(|rows| {
        out.flush()?;
        file.sync_data()?;
        Ok(rows)
    });
    if finished.is_err() {
        // Why the export failed is what the user needs to know; at worst a part of it stays.
        let _ = environment.files.remove(path);
    }
    let rows = finished?;
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    let (count, rate) = (units::counted(rows, "row"), units::rate(rows, elapsed));
    let time = units::duration(elapsed);
    writeln!(console.out, "exported {count} to {} in {time} ({rate})", path.display())?;
    Ok(())
}

/// A SELECT in place of a table.
fn statement(text: &str) -> Result<Query> {
    match esker_sql::parse_statement(text)?.said() {
        Statement::Query(_) => Ok(esker_sql::parse(text)?),
        _ => Err(Failure::usage("--sql: expected a SELECT")),
    }
}

/// The query whose answer is written.
fn query(arguments: &ExportArguments, snapshot: &Snapshot) -> Result<Query> {
    if let Some(text) = &arguments.sql {
        return statement(text);
    }
    let name = arguments.table.as_deref().unwrap_or_default();
    let schema = snapshot.table(name)?.schema().clone();
    let mut query = Query::table(name);
    for field in schema.fields() {
        query.select(Expr::field(field.name.as_str()));
    }
    Ok(query)
}

fn writer(arguments: &ExportArguments, names: &[String]) -> Result<RowWriter> {
    if let Some(path) = &arguments.output
        && let Some(extension @ ("gz" | "zst")) = path.extension().and_then(|e| e.to_str())
    {
        return Err(Failure::usage(format!(
            "files are written plain; compress the output of `esker export`, or leave .{extension} \
             out of the name"
        )));
    }
    let by_name = || arguments.output.as_deref().map_or(InputFormat::Csv, format_of);
    let (format, delimiter) = match arguments.format.unwrap_or_else(by_name) {
        InputFormat::Csv => (Format::Csv, b','),
        InputFormat::Tsv => (Format::Csv, b'\t'),
        InputFormat::Ndjson => (Format::Ndjson, b','),
        InputFormat::Json => (Format::Json, b','),
    };
    let delimiter = match &arguments.delimiter {
        Some(text) => character("delimiter", text)?,
        None => delimiter,
    };
    if !delimiter.is_ascii() || matches!(delimiter, b'"' | b'\n' | b'\r' | 0) {
        return Err(Failure::usage(
            "--delimiter: expected another character than a quote or line end",
        ));
    }
    Ok(RowWriter::new(format, delimiter, names.iter().map(String::as_str)))
}

/// Takes rows; breaks when no one wants more.
type Take<'t> = dyn FnMut(Batch) -> ControlFlow<()> + 't;

/// Writes what `feed` hands over: batches become text in parallel, and are written in order.
fn write(
    environment: &Environment,
    writer: &RowWriter,
    out: &mut dyn Write,
    feed: impl FnOnce(&mut Take<'_>) -> Result<()>,
) -> Result<u64> {
    let shared = writer.clone();
    let mut texts = Pipeline::new(&environment.tasks, "export", move |batch: Batch| {
        let mut text = Vec::new();
        shared.write(&mut text, &batch);
        text
    });
    out.write_all(&writer.start())?;
    let mut between: &[u8] = b"";
    let mut take = |texts: &mut Pipeline<Batch, Vec<u8>>| -> Result<()> {
        let text = texts.next().ok_or_else(|| Failure::system("a worker has panicked"))?;
        out.write_all(between)?;
        out.write_all(&text)?;
        between = writer.between();
        Ok(())
    };
    let (mut rows, mut failed) = (0, None);
    feed(&mut |batch| {
        if batch.is_empty() {
            return ControlFlow::Continue(());
        }
        rows += batch.len() as u64;
        texts.push(batch);
        if texts.in_flight() < texts.depth() {
            return ControlFlow::Continue(());
        }
        match take(&mut texts) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    while texts.in_flight() > 0 {
        take(&mut texts)?;
    }
    out.write_all(writer.end())?;
    Ok(rows)
}
