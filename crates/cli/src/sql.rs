//! `esker sql DB "SELECT …"`, and the statements that change a database.

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use esker::{ChangeOptions, Database, Limits, Options, QueryOptions};
use esker_import::FileAccess;
use esker_query::model::Change;
use esker_query::{Explanation, Query, QueryResult};
use esker_sql::{CopyStatement, Outcome, Session, Statement};
use esker_vfs::Environment;

use crate::arguments::{Format, SqlArguments};
use crate::failure::{Failure, Result};
use crate::output::Style;
use crate::{Console, output, remote, shell, units, watch};

pub(crate) fn run(arguments: &SqlArguments, console: &mut Console<'_>) -> Result<()> {
    let style = Style::default();
    let settings = Settings {
        format: arguments.format,
        style: Style {
            null: arguments.null.clone().unwrap_or_else(|| style.null.clone()),
            ..style
        },
        timing: arguments.timing,
        explain: arguments.explain,
        dry_run: arguments.dry_run,
        limits: Limits { timeout: arguments.limits.timeout, ..Limits::default() },
        statement_is_input: arguments.statement.is_none()
            && !(console.is_terminal && std::io::stdin().is_terminal()),
    };
    let db = arguments.db.as_deref();
    let text = match &arguments.statement {
        Some(text) => text.clone(),
        None if console.is_terminal && std::io::stdin().is_terminal() => {
            return shell::run(db, settings, console);
        }
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|e| {
                Failure::usage(format!("standard input: expected statements in UTF-8: {e}"))
            })?;
            if text.lines().any(|line| line.starts_with('\\')) {
                return shell::run_script(db, &text, settings, console);
            }
            text
        }
    };
    let mut parsed = Vec::new();
    for text in esker_sql::statements(&text) {
        let statement = esker_sql::parse_statement(text);
        parsed.push((text, statement.map_err(|e| Failure::from(e).in_statement(text))?));
    }
    if parsed.is_empty() {
        return Err(Failure::usage("expected a statement, found none"));
    }
    if let Some(address) = db.and_then(remote::address) {
        return remote::run_statements(address, &parsed, &settings, console);
    }
    let cancel = Arc::default();
    let statements = parsed.iter().map(|(_, statement)| statement);
    let database = match db {
        Some(dir) => open_for(dir, statements, &settings, cancel)?,
        None => Options::new().files(files()).cancel(cancel).memory()?,
    };
    let mut session = Session::new(&database);
    for (text, statement) in &parsed {
        let done = settings.execute(&mut session, statement, console);
        done.map_err(|failure| failure.in_statement(text))?;
    }
    end(session)
}

/// Closes the database of a session.
pub(crate) fn end(session: Session) -> Result<()> {
    let (database, was_open) = session.into_database();
    database.close()?;
    match was_open {
        true => Err(Failure::usage("BEGIN without COMMIT: the transaction was rolled back")),
        false => Ok(()),
    }
}

/// Opens a database so that some statements can be run.
fn open_for<'a>(
    dir: &Path,
    statements: impl Iterator<Item = &'a Statement> + Clone,
    settings: &Settings,
    cancel: Arc<AtomicBool>,
) -> Result<Database> {
    let creates = |statement: &Statement| {
        matches!(
            statement.said(),
            Statement::CreateTable { .. }
                | Statement::CreateTableAs { .. }
                | Statement::CreateView { .. }
                | Statement::CreateSequence { .. }
        )
    };
    let creates = statements.clone().any(creates) && !settings.dry_run;
    let read_only = statements.clone().all(Statement::only_reads);
    let options = Options::new().files(files()).create(creates).read_only(read_only);
    Ok(options.cancel(cancel).open(dir)?)
}

/// The files that statements reach: all that the user may open.
pub(crate) fn files() -> Arc<FileAccess> {
    Arc::new(FileAccess::anywhere(&Environment::os()))
}

/// How statements are run and their answers shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) format: Option<Format>,
    pub(crate) style: Style,
    pub(crate) timing: bool,
    pub(crate) explain: bool,
    pub(crate) dry_run: bool,
    pub(crate) limits: Limits,
    /// Whether statements come from standard input, which then has no rows.
    pub(crate) statement_is_input: bool,
}

impl Settings {
    /// Runs a statement; shows what it answers and says what it did.
    pub(crate) fn execute(
        &self,
        session: &mut Session,
        statement: &Statement,
        console: &mut Console<'_>,
    ) -> Result<()> {
        match statement {
            Statement::Qualified(said)
                if matches!(
                    **said,
                    Statement::Query(_)
                        | Statement::Explain(_)
                        | Statement::Copy(_)
                        | Statement::Watch(_)
                ) =>
            {
                let resolved = session.resolved(statement)?.into_owned();
                self.execute(session, &resolved, console)
            }
            Statement::Explain(explain) => {
                let (query, options) = (&explain.query, self.query_options());
                let explanation = match explain.analyze {
                    true => session.explain_with(query, &options)?,
                    false => session.plan_with(query, &options)?,
                };
                let text = explain.shown(&explanation).map_err(esker::Error::from)?;
                Ok(writeln!(console.out, "{}", text.trim_end())?)
            }
            Statement::Query(query) => self.ask(session, query, console),
            Statement::Watch(_) if !self.explain => {
                let resolved = session.resolved(statement)?.into_owned();
                watch::here(&resolved, session, self, console)
            }
            Statement::Copy(copy) if copy.file().is_standard && !self.explain => {
                self.copy_standard(session, copy, console)
            }
            _ if self.explain => Err(Failure::usage("--explain is for SELECT")),
            change => self.change(session, change, console),
        }
    }

    /// Copies rows from standard input, or to standard output.
    fn copy_standard(
        &self,
        session: &mut Session,
        copy: &CopyStatement,
        console: &mut Console<'_>,
    ) -> Result<()> {
        let options = self.change_options();
        let outcome = match copy {
            CopyStatement::From { .. } if self.statement_is_input => {
                return Err(Failure::usage(
                    "COPY … FROM STDIN: standard input has the statements: give them as an \
                     argument, or name a file",
                ));
            }
            CopyStatement::From { .. } => {
                session.copy_in(copy, Box::new(std::io::stdin()), &options)?
            }
            _ => session.copy_out(copy, console.out, &options)?,
        };
        match outcome {
            Outcome::Added(changed) => {
                self.tell_changed(&Statement::Copy(copy.clone()), changed.rows, console)
            }
            Outcome::Done(done) => {
                console.flush_before_note()?;
                Ok(writeln!(console.err, "{done}")?)
            }
            _ => Ok(()),
        }
    }

    fn change_options(&self) -> ChangeOptions {
        let (dry_run, limits) = (self.dry_run, self.limits.clone());
        ChangeOptions { dry_run, limits, ..ChangeOptions::default() }
    }

    /// Answers a query, or shows its steps.
    pub(crate) fn ask(
        &self,
        session: &Session,
        query: &Query,
        console: &mut Console<'_>,
    ) -> Result<()> {
        match self.explain {
            true => self.explain(session, query, console),
            false => self.answer(session, query, console),
        }
    }

    fn change(
        &self,
        session: &mut Session,
        statement: &Statement,
        console: &mut Console<'_>,
    ) -> Result<()> {
        let outcome = session.run(statement, &self.change_options())?;
        let changed = match outcome {
            Outcome::Added(changed) | Outcome::Changed(changed) | Outcome::Removed(changed) => {
                changed
            }
            Outcome::Done(done) => return Ok(writeln!(console.err, "{done}")?),
            Outcome::Plan(plan) => return Ok(writeln!(console.out, "{}", plan.trim_end())?),
            Outcome::Rows(rows) => return self.show_timed(&rows, console),
            _ => return Ok(()),
        };
        if let Some(rows) = &changed.returning {
            self.show(rows, console)?;
        }
        let statement = session.meant(statement).unwrap_or(statement); // default: it is gone
        self.tell_changed(statement, changed.rows, console)
    }

    /// Says how many rows a statement has changed; nothing of one that changes none.
    pub(crate) fn tell_changed(
        &self,
        statement: &Statement,
        rows: u64,
        console: &mut Console<'_>,
    ) -> Result<()> {
        let (would, did) = match statement.said() {
            Statement::Change(Change::Insert(_))
            | Statement::CreateTableAs { .. }
            | Statement::Copy(_) => ("add", "added"),
            Statement::Change(Change::Update(_) | Change::Merge(_)) => ("change", "changed"),
            Statement::Change(Change::Delete(_)) | Statement::Truncate { .. } => {
                ("remove", "removed")
            }
            _ => return Ok(()),
        };
        let rows = units::counted(rows, "row");
        match self.dry_run {
            true => writeln!(console.err, "would {would} {rows}")?,
            false => writeln!(console.err, "{did} {rows}")?,
        }
        Ok(())
    }

    /// Writes an answer in the format that was requested.
    pub(crate) fn show(&self, result: &QueryResult, console: &mut Console<'_>) -> Result<()> {
        let default = if console.is_terminal { Format::Table } else { Format::Csv };
        let (width, colors) = (console.width(), console.colors);
        let style = Style { width, colors, ..self.style.clone() };
        let format = self.format.unwrap_or(default);
        Ok(output::write_result(console.out, result, format, &style)?)
    }

    fn query_options(&self) -> QueryOptions {
        QueryOptions { limits: self.limits.clone(), ..QueryOptions::default() }
    }

    fn explain(&self, session: &Session, query: &Query, console: &mut Console<'_>) -> Result<()> {
        shown(&session.explain_with(query, &self.query_options())?, console)
    }

    fn answer(&self, session: &Session, query: &Query, console: &mut Console<'_>) -> Result<()> {
        let result = session.query_with(query, &self.query_options())?;
        self.show_timed(&result, console)
    }

    fn show_timed(&self, result: &QueryResult, console: &mut Console<'_>) -> Result<()> {
        self.show(result, console)?;
        if self.timing {
            console.flush_before_note()?;
            writeln!(console.err, "{}", timing(result))?;
        }
        Ok(())
    }
}

fn shown(plan: &Explanation, console: &mut Console<'_>) -> Result<()> {
    Ok(writeln!(console.out, "{}", plan.to_string().trim_end())?)
}

/// Opens a database that must exist, for reading.
pub(crate) fn open_to_read(dir: &Path) -> Result<Database> {
    Ok(Options::new().files(files()).create(false).read_only(true).open(dir)?)
}

/// What a query took, in one line.
pub(crate) fn timing(result: &QueryResult) -> String {
    let statistics = &result.statistics;
    let rows = units::counted(result.row_count() as u64, "row");
    let scanned = units::count(statistics.rows_scanned);
    let time = units::duration(Duration::from_nanos(statistics.elapsed_ns));
    match statistics.zones_pruned {
        0 => format!("{rows}, {scanned} scanned, {time}"),
        pruned => {
            let zones = units::count(statistics.zones);
            let pruned = units::count(pruned);
            format!("{rows}, {scanned} scanned, {pruned} of {zones} zones skipped, {time}")
        }
    }
}
