//! What a line that was typed does.

use std::sync::{Arc, Mutex, PoisonError};

use esker::Database;
use esker_server::session::{AdminTask, DatabaseFigures, TableFigures};

use super::words::Words;
use crate::failure::{Failure, Result};
use crate::remote::Remote;
use crate::sql::Settings;
use crate::{Console, info, units};

const HELP: &str = "\
statement;      run it; it may take several lines
\\d              list the tables
\\d TABLE        list the fields and indexes of a table
\\timing         say, or no longer say, what queries take
\\timeout TIME   end statements that take longer: 500ms, 30s, 5m; off
\\?              list the commands
\\q              end; so does Ctrl-D
Tab             complete a table, a field or a word of SQL
Ctrl-C          end the statement that runs, or forget the line";

/// What comes after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    End,
}

/// What the user wants to know.
enum Target {
    Here(Box<esker_sql::Session>),
    There(Remote),
}

/// A database, or a server, and how its answers are shown.
pub(super) struct Session {
    target: Target,
    settings: Settings,
    words: Arc<Mutex<Words>>,
}

impl Session {
    pub(super) fn new(database: Database, settings: Settings) -> Self {
        Self::of(Target::Here(Box::new(esker_sql::Session::new(&database))), settings)
    }

    /// Of a server.
    pub(super) fn remote(remote: Remote, settings: Settings) -> Self {
        let mut session = Self::of(Target::There(remote), settings);
        // Without them, words are not completed.
        let _ = session.learn_remote_words();
        session
    }

    fn of(target: Target, settings: Settings) -> Self {
        let session = Self { target, settings, words: Arc::default() };
        session.learn_words();
        session
    }

    /// The words that can be completed, now and later.
    pub(super) fn words(&self) -> Arc<Mutex<Words>> {
        Arc::clone(&self.words)
    }

    /// Learns the names of tables, fields and indexes. Those of a server are requested at the
    /// beginning alone: each table takes a request.
    pub(super) fn learn_words(&self) {
        let Target::Here(statements) = &self.target else { return };
        let (database, mut words) = (statements.database(), Words::default());
        database.sequences().iter().for_each(|sequence| words.add(&sequence.name));
        for name in database.tables() {
            words.add(&name);
            if let Ok(table) = database.table(&name) {
                words.add_schema(&table.schema());
            }
        }
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    fn learn_remote_words(&mut self) -> Result<()> {
        let Target::There(remote) = &mut self.target else { return Ok(()) };
        let mut words = Words::default();
        for name in remote.tables()? {
            words.add(&name);
            words.add_schema(&remote.schema(&name)?);
        }
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
        Ok(())
    }

    /// Runs statements, or a command.
    pub(super) fn take(&mut self, line: &str, console: &mut Console<'_>) -> Result<Next> {
        let line = line.trim();
        if line.starts_with('\\') {
            return self.command(line.trim_end_matches(';'), console);
        }
        for text in esker_sql::statements(line) {
            let parsed = esker_sql::parse_statement(text).map_err(Failure::from);
            let Self { settings, target, .. } = self;
            let done = parsed.and_then(|statement| match target {
                Target::Here(statements) => settings.execute(statements, &statement, console),
                Target::There(remote) => remote.execute((text, &statement), settings, console),
            });
            done.map_err(|failure| failure.in_statement(text))?;
        }
        Ok(Next::Line)
    }

    fn command(&mut self, line: &str, console: &mut Console<'_>) -> Result<Next> {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("\\q"), None, _) => return Ok(Next::End),
            (Some("\\?"), None, _) => writeln!(console.out, "{HELP}")?,
            (Some("\\timing"), None, _) => {
                self.settings.timing = !self.settings.timing;
                let state = if self.settings.timing { "on" } else { "off" };
                writeln!(console.out, "timing is {state}")?;
            }
            (Some("\\timeout"), time, None) => self.timeout(time, console)?,
            (Some("\\d"), table, None) => self.describe(table, console)?,
            _ => return Err(Failure::usage(format!("{line}: no such command; \\? lists them"))),
        }
        Ok(Next::Line)
    }

    /// Lists the tables, or the fields of one.
    fn describe(&mut self, table: Option<&str>, console: &mut Console<'_>) -> Result<()> {
        match (&mut self.target, table) {
            (Target::Here(statements), None) => {
                info::show_tables(&DatabaseFigures::of(statements.database())?, console)
            }
            (Target::Here(statements), Some(table)) => {
                info::show_table(&TableFigures::of(statements.database(), table)?, console)
            }
            (Target::There(remote), None) => {
                info::show_tables(&remote.admin(&AdminTask::Info { table: None })?, console)
            }
            (Target::There(remote), Some(table)) => {
                let task = AdminTask::Info { table: Some(table.to_owned()) };
                info::show_table(&remote.admin(&task)?, console)
            }
        }
    }

    /// Sets or shows how long a statement may take.
    fn timeout(&mut self, time: Option<&str>, console: &mut Console<'_>) -> Result<()> {
        let timeout = &mut self.settings.limits.timeout;
        match time {
            Some("off") => *timeout = None,
            Some(time) => *timeout = Some(units::parse_duration(time).map_err(Failure::usage)?),
            None => {}
        }
        match timeout {
            Some(time) => writeln!(console.out, "timeout is {}", units::duration(*time))?,
            None => writeln!(console.out, "timeout is off")?,
        }
        Ok(())
    }

    pub(super) fn close(self) -> Result<()> {
        match self.target {
            Target::Here(statements) => crate::sql::end(*statements),
            Target::There(remote) => remote.end(),
        }
    }
}
