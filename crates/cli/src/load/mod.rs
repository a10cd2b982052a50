//! `esker load DB TABLE FILE…`.
//!
//! | module | what it defines |
//! |---|---|
//! | `input` | which files are loaded, and how they are read |
//! | `matching` | files by patterns of their names |
//! | `sink` | where their rows go |
//! | `open_database` | the same into one that is open |
//! | `remote` | the same into a table of a server |
//! | `rejects` | where rows go that do not fit |

pub(crate) mod input;
mod matching;
mod open_database;
mod rejects;
mod remote;
mod sink;

use std::path::PathBuf;
use std::time::Duration;

use esker::{Batch, Database, ErrorKind, Schema, Table};
use esker_import::{ImportReader, Progress, schema_text};
use esker_vfs::Environment;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{LoadArguments, OnDuplicate, OnError};
use crate::failure::{Failure, Result, Status};
use crate::{Console, units};
pub(crate) use open_database::run_in;
use rejects::Rejects;

/// What becomes of rows that cannot be added.
struct Policy {
    on_duplicate: OnDuplicate,
    /// `None`: they stop the load.
    rejects: Option<Rejects>,
}

/// What a load did.
pub(crate) struct Loaded {
    /// Rows that were added, or took the place of others.
    pub(crate) rows: u64,
    /// Rows whose keys existed.
    skipped: u64,
    /// Rows that did not fit.
    rejected: u64,
    /// Where these are.
    rejects: Option<PathBuf>,
}

impl Policy {
    fn of(environment: &Environment, arguments: &LoadArguments) -> Result<Self> {
        let rejects = match (arguments.on_error, arguments.rejects.as_deref()) {
            (OnError::Skip, path) => Some(Rejects::new(environment, path)?),
            (OnError::Stop, None) => None,
            (OnError::Stop, Some(_)) => {
                return Err(Failure::usage("--rejects: only --on-error skip leaves rows out"));
            }
        };
        Ok(Self { on_duplicate: arguments.on_duplicate, rejects })
    }
}

pub(crate) fn run(arguments: &LoadArguments, console: &mut Console<'_>) -> Result<()> {
    if let Some(address) = crate::remote::address(&arguments.db) {
        return remote::run(address, arguments, console);
    }
    let environment = Environment::os();
    let started_ns = environment.clock.monotonic_ns();
    let name = arguments.table.as_str();
    let exists = environment.files.exists(&arguments.db)?;
    let database = if exists { Some(Database::open(&arguments.db)?) } else { None };
    let table = find_table(database.as_ref(), arguments)?;
    let existing = table.as_ref().map(|t| t.schema());
    let reader = input::open(&environment, arguments, existing.as_deref())?;
    let mut opened = database;
    let load = |schema, reader, policy| {
        let database = match &opened {
            Some(database) => database,
            None => opened.insert(Database::open(&arguments.db)?),
        };
        // When this fails, a new database stays, without a table: another process may have made it
        // since it was looked for, and may be about to use it, so it must stay.
        match &table {
            Some(table) => load_rows(table, reader, policy),
            None => load_new(database, name, schema, reader, policy),
        }
    };
    let loaded = until_it_holds(&environment, arguments, console, reader, load);
    let closed = opened.map_or(Ok(()), |database| database.close().map_err(Failure::from));
    let report = loaded?;
    closed?;
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    writeln!(console.out, "{}", report.summary(name, elapsed))?;
    Ok(())
}

/// Loads rows by types that hold all of them: again, once a row shows that those of the first rows
/// do not.
fn until_it_holds(
    environment: &Environment,
    arguments: &LoadArguments,
    console: &mut Console<'_>,
    mut reader: ImportReader,
    mut load: impl FnMut(Schema, ImportReader, Policy) -> Result<Loaded>,
) -> Result<Loaded> {
    loop {
        let policy = Policy::of(environment, arguments)?;
        let schema = input::with_indexes(reader.schema(), &arguments.indexes)?;
        show_schema(console, arguments, &schema, &reader)?;
        let again = reader.again();
        match (load(schema, reader, policy), again) {
            (Err(failure), Some(again)) if failure.is_contradicted() => {
                say_again(console, &failure)?;
                reader = again.open().map_err(input::with_advice)?;
            }
            (loaded, _) => return loaded,
        }
    }
}

/// Says why a load begins again.
fn say_again(console: &mut Console<'_>, failure: &Failure) -> Result<()> {
    let reason = failure.to_string();
    let line = reason.lines().next().unwrap_or(&reason); // default: an empty reason.
    let reason = line.split_once("; the types were inferred").map_or(line, |(reason, _)| reason);
    writeln!(console.out, "{reason}; once more, with types that hold all rows")?;
    Ok(console.out.flush()?)
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
    let rows = found.as_ref().map(Table::count).transpose()?;
    expect_append(name, rows, arguments.append)?;
    Ok(found)
}

/// Rows are added to a table that has some only when that is requested.
fn expect_append(name: &str, rows: Option<u64>, append: bool) -> Result<()> {
    match (rows, append) {
        (Some(rows), false) => {
            let rows = units::counted(rows, "row");
            let message = format!("table {name:?} exists, with {rows}; --append adds to it");
            Err(Failure::usage(message))
        }
        (None, true) => {
            let message = format!("table {name:?} does not exist; without --append it is made");
            Err(Failure::new(Status::NotFound, message))
        }
        _ => Ok(()),
    }
}

/// Tells first what the table will be.
fn show_schema(
    console: &mut Console<'_>,
    arguments: &LoadArguments,
    schema: &Schema,
    reader: &ImportReader,
) -> Result<()> {
    let origin = match reader.inference() {
        None => "as declared".to_owned(),
        Some(i) if arguments.schema.is_some() => {
            format!("as declared; the rest is inferred from all {}", units::counted(i.rows, "row"))
        }
        Some(i) if i.whole => format!("inferred from all {}", units::counted(i.rows, "row")),
        Some(i) => format!("inferred from the first {}", units::counted(i.rows, "row")),
    };
    let name = &arguments.table;
    writeln!(console.out, "table {name}, {origin}; to change it, edit and give it as --schema:")?;
    let parts = schema_text::parts(schema);
    writeln!(console.out, "  {}", parts.join(",\n  "))?;
    if let Some(form) = reader.form() {
        writeln!(console.out, "read as CSV: {form}")?;
    }
    for note in reader.notes() {
        writeln!(console.out, "note: {note}")?;
    }
    console.out.flush()?;
    Ok(())
}

/// Makes a table and fills it, as an example does; leaves none when that fails.
pub(crate) fn load_example(
    database: &Database,
    name: &str,
    existing: Option<Table>,
    reader: ImportReader,
) -> Result<Loaded> {
    let policy = Policy { on_duplicate: OnDuplicate::Error, rejects: None };
    match existing {
        Some(table) => load_rows(&table, reader, policy),
        None => load_new(database, name, reader.schema().clone(), reader, policy),
    }
}

/// Makes a table and fills it; leaves none when that fails.
fn load_new(
    database: &Database,
    name: &str,
    schema: Schema,
    reader: ImportReader,
    policy: Policy,
) -> Result<Loaded> {
    let table = database.create_table(name, schema)?;
    let loaded = load_rows(&table, reader, policy);
    if loaded.is_err() {
        // Why the load failed is what the user needs to know; at worst the table stays, empty.
        let _ = database.drop_table(name);
    }
    loaded
}

/// Adds all rows of the files to a table that fit, or none.
fn load_rows(table: &Table, reader: ImportReader, policy: Policy) -> Result<Loaded> {
    let load = sink::start(table, policy.on_duplicate, reader.memory_bytes())?;
    fill(load, reader, policy)
}

/// Something that takes rows, all or none.
trait Sink {
    fn push(&mut self, batch: Batch) -> Result<()>;

    /// How many there are, once they are on the disk.
    fn finish(self) -> Result<u64>;
}

/// Adds all rows of the files that fit, or none.
fn fill(mut load: impl Sink, reader: ImportReader, policy: Policy) -> Result<Loaded> {
    let mut rejects = policy.rejects;
    let places = reader.places();
    let bar = progress_bar();
    let consume = |batch, progress| {
        load.push(batch)?;
        show_progress(&bar, progress);
        Ok::<_, Failure>(())
    };
    let report = match &mut rejects {
        None => reader.read(consume),
        Some(rejects) => reader.read_or_reject(consume, |reject, _| rejects.add(&reject)),
    };
    let finished = report.and_then(|report| {
        bar.set_message("making it durable");
        Ok((load.finish()?, report))
    });
    bar.finish_and_clear();
    if finished.as_ref().is_err_and(Failure::is_contradicted)
        && let Some(rejects) = rejects.take()
    {
        rejects.discard()?;
    }
    let (rows, report) =
        finished.map_err(|failure| failure.in_row(|row| places.find(row)).note_what_is_loaded())?;
    let first = rejects.as_ref().and_then(Rejects::first);
    let rejects = rejects.map(Rejects::finish).transpose()?.flatten();
    if let (0, Some(first)) = (report.rows, first) {
        let rejected = units::counted(report.rejects, "row");
        let message = format!("no row fits, of {rejected}; the first: {first}; nothing was loaded");
        return Err(Failure::usage(message));
    }
    let skipped = report.rows.saturating_sub(rows);
    Ok(Loaded { rows, skipped, rejected: report.rejects, rejects })
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

impl Loaded {
    fn summary(&self, name: &str, elapsed: Duration) -> String {
        let rows = units::counted(self.rows, "row");
        let (time, rate) = (units::duration(elapsed), units::rate(self.rows, elapsed));
        let mut text = format!("loaded {rows} into {name} in {time} ({rate}), durable");
        if self.skipped > 0 {
            let skipped = units::counted(self.skipped, "row");
            text.push_str(&format!("; left out {skipped} whose key exists"));
        }
        if self.rejected > 0 {
            let rejected = units::counted(self.rejected, "row");
            text.push_str(&format!("; rejected {rejected} that did not fit"));
        }
        if let Some(path) = &self.rejects {
            text.push_str(&format!(", see {}", path.display()));
        }
        text
    }
}

impl Failure {
    fn note_what_is_loaded(self) -> Self {
        if self.status() != Status::Usage {
            return self;
        }
        let message = self.to_string();
        let advice = if message.contains(": unknown field") && message.contains("; fields: ") {
            "; --unknown says what becomes of others"
        } else if message.contains("expected text in UTF-8") && message.contains('\u{fffd}') {
            input::ENCODING
        } else {
            ""
        };
        self.with_note(advice).with_note("; nothing was loaded")
    }
}
