//! What a line that was typed does.

use std::sync::{Arc, Mutex, PoisonError};

use esker::Database;

use super::words::Words;
use crate::failure::{Failure, Result};
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

/// A database and how its answers are shown.
pub(super) struct Session {
    statements: esker_sql::Session,
    settings: Settings,
    words: Arc<Mutex<Words>>,
}

impl Session {
    pub(super) fn new(database: Database, settings: Settings) -> Self {
        let statements = esker_sql::Session::new(&database);
        let session = Self { statements, settings, words: Arc::default() };
        session.learn_words();
        session
    }

    /// The words that can be completed, now and later.
    pub(super) fn words(&self) -> Arc<Mutex<Words>> {
        Arc::clone(&self.words)
    }

    /// Learns the names of tables, fields and indexes.
    pub(super) fn learn_words(&self) {
        let mut words = Words::default();
        self.statements
            .database()
            .sequences()
            .iter()
            .for_each(|sequence| words.add(&sequence.name));
        for name in self.statements.database().tables() {
            let table = self.statements.database().table(&name);
            words.add(&name);
            if let Ok(table) = table {
                let schema = table.schema();
                schema.fields().iter().for_each(|field| words.add(&field.name));
                schema.indexes().iter().for_each(|index| words.add(&index.name));
            }
        }
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Runs statements, or a command.
    pub(super) fn take(&mut self, line: &str, console: &mut Console<'_>) -> Result<Next> {
        let line = line.trim();
        if line.starts_with('\\') {
            return self.command(line.trim_end_matches(';'), console);
        }
        for text in esker_sql::statements(line) {
            let parsed = esker_sql::parse_statement(text).map_err(Failure::from);
            let Self { settings, statements, .. } = self;
            let done =
                parsed.and_then(|statement| settings.execute(statements, &statement, console));
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
            (Some("\\d"), None, _) => {
                info::show_tables(&self.statements.database().info(), console)?
            }
            (Some("\\d"), Some(table), None) => {
                info::show_table(
                    self.statements.database(),
                    &self.statements.database().info(),
                    table,
                    console,
                )?;
            }
            _ => return Err(Failure::usage(format!("{line}: no such command; \\? lists them"))),
        }
        Ok(Next::Line)
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
        crate::sql::end(self.statements)
    }
}
