//! `esker load DB TABLE FILE.csv`.

use std::time::Duration;

use esker::{Database, ErrorKind, Schema, Table};
use esker_import::{CsvOptions, CsvReader, ImportReport, Progress, schema_text};
use esker_vfs::Environment;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::LoadArguments;
use crate::failure::{Failure, Result, Status};
use crate::{Console, units};

pub(crate) fn run(arguments: &LoadArguments, console: &mut Console<'_>) -> Result<()> {
    let environment = Environment::os();
    let started_ns = environment.clock.monotonic_ns();
    let name = arguments.table.as_str();
    let exists = environment.files.exists(&arguments.db)?;
    let database = if exists { Some(Database::open(&arguments.db)?) } else { None };
    let table = find_table(database.as_ref(), arguments)?;
    let options = csv_options(arguments, table.as_ref().map(|t| t.schema()).as_deref())?;
    let reader = CsvReader::open(&environment, &arguments.file, options).map_err(with_advice)?;
    show_schema(console, name, &reader)?;
    let database = match database {
        Some(database) => database,
        None => Database::open(&arguments.db)?,
    };
    // When this fails, a new database stays, without a table: another process may have made it
    // since it was looked for, and may be about to use it, so it is nobody's to remove.
    let loaded = match table {
        Some(table) => load_rows(&table, reader),
        None => load_new(&database, name, reader),
    };
    let closed = database.close().map_err(Failure::from);
    let report = loaded?;
    closed?;
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    writeln!(console.out, "{}", summary(name, &report, elapsed))?;
    Ok(())
}

/// The table to add to; `None` when it is to be made.
fn find_table(database: Option<&Database>, arguments: &LoadArguments) -> Result<Option<Table>> {
    let name = &arguments.table;
    let found = match database.map(|d| d.table(name)) {
        None => None,
        Some(Ok(table)) => Some(table),
        Some(Err(e)) if e.kind() == ErrorKind::NotFound => None,
        Some(Err(e)) => return Err(e.into()),
    };
    match (&found, arguments.append) {
        (Some(table), false) => {
            let rows = units::counted(table.count()?, "row");
            let message = format!("table {name:?} exists, with {rows}; --append adds to it");
            Err(Failure::usage(message))
        }
        (None, true) => {
            let message = format!("table {name:?} does not exist; without --append it is made");
            Err(Failure::new(Status::NotFound, message))
        }
        _ => Ok(found),
    }
}

fn csv_options(arguments: &LoadArguments, existing: Option<&Schema>) -> Result<CsvOptions> {
    let delimiter = match arguments.delimiter.as_bytes() {
        b"\\t" => b'\t',
        [byte] => *byte,
        _ => {
            let found = &arguments.delimiter;
            let message = format!("--delimiter: expected one ASCII character, found {found:?}");
            return Err(Failure::usage(message));
        }
    };
    let mut options = CsvOptions::default().delimiter(delimiter).header(!arguments.no_header);
    if !arguments.nulls.is_empty() {
        options = options.nulls(&arguments.nulls);
    }
    let declared = arguments.schema.as_deref().map(schema_text::parse).transpose()?;
    let has_key = !arguments.key.is_empty();
    match (existing, declared) {
        (Some(_), Some(_)) => {
            Err(Failure::usage("--schema: the table exists and keeps its schema; leave it out"))
        }
        (Some(_), None) if has_key => {
            Err(Failure::usage("--key: the table exists and keeps its key; leave it out"))
        }
        (Some(schema), None) => Ok(options.schema(schema.clone())),
        (None, Some(schema)) if !has_key => Ok(options.schema(schema)),
        (None, Some(_)) => {
            Err(Failure::usage("--key: give the key in --schema, as in `…, primary key (a, b)`"))
        }
        (None, None) => Ok(options.key(&arguments.key)),
    }
}

/// Tells first what the table will be.
fn show_schema(console: &mut Console<'_>, name: &str, reader: &CsvReader) -> Result<()> {
    let origin = match reader.inference() {
        None => "as declared".to_owned(),
        Some(i) if i.whole => format!("inferred from all {}", units::counted(i.rows, "row")),
        Some(i) => format!("inferred from the first {}", units::counted(i.rows, "row")),
    };
    writeln!(console.out, "table {name}, {origin}; to change it, edit and give it as --schema:")?;
    let parts = schema_text::parts(reader.schema());
    writeln!(console.out, "  {}", parts.join(",\n  "))?;
    console.out.flush()?;
    Ok(())
}

/// Makes a table and fills it; leaves none when that fails.
pub(crate) fn load_new(database: &Database, name: &str, reader: CsvReader) -> Result<ImportReport> {
    let table = database.create_table(name, reader.schema().clone())?;
    let loaded = load_rows(&table, reader);
    if loaded.is_err() {
        // Why the load failed is what the user needs to know; at worst the table stays, empty.
        let _ = database.drop_table(name);
    }
    loaded
}

/// Adds all rows of a file to a table, or none.
pub(crate) fn load_rows(table: &Table, reader: CsvReader) -> Result<ImportReport> {
    let mut load = table.load()?;
    load.reserve_input(reader.memory_bytes())?;
    let bar = progress_bar();
    let report = reader.read(|batch, progress| {
        load.push(batch)?;
        show_progress(&bar, progress);
        Ok::<_, Failure>(())
    });
    let finished = report.and_then(|report| {
        bar.set_message("making it durable");
        load.finish()?;
        Ok(report)
    });
    bar.finish_and_clear();
    finished.map_err(Failure::note_nothing_loaded)
}

fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:30} {percent:>3} %  {msg}  {eta} left";
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

fn show_progress(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.file_bytes.unwrap_or(progress.file_bytes_read));
    bar.set_position(progress.file_bytes_read);
    let rate = units::rate(progress.rows, bar.elapsed());
    bar.set_message(format!("{}, {rate}", units::counted(progress.rows, "row")));
}

fn summary(name: &str, report: &ImportReport, elapsed: Duration) -> String {
    let rows = units::counted(report.rows, "row");
    let (time, rate) = (units::duration(elapsed), units::rate(report.rows, elapsed));
    format!("loaded {rows} into {name} in {time} ({rate}), durable")
}

/// Says which flag helps.
fn with_advice(error: esker_import::Error) -> Failure {
    let reason = error.reason();
    let note = if reason.contains("bad name for column") {
        "; --no-header takes the first line as a row"
    } else {
        ""
    };
    Failure::from(error).with_note(note)
}

impl Failure {
    fn note_nothing_loaded(self) -> Self {
        let is_data = self.status() == Status::Usage;
        if is_data { self.with_note("; nothing was loaded") } else { self }
    }
}
