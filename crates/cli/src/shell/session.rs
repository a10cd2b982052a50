//! What a line that was typed does.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use esker::{Database, ErrorKind, Limits, LockHolder, Options};
use esker_vfs::Environment;

use super::commands;
use super::files::{Output, unquoted};
use super::words::Words;
use crate::failure::{Failure, Result};
use crate::output::printable;
use crate::remote::{MAIN_DATABASE, Remote};
use crate::sql::Settings;
use crate::{Console, remote};

/// How long `\watch` waits unless it says.
const WATCH_SECONDS: f64 = 2.0;
/// How often it is looked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What comes after a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    /// A line that begins with this text.
    Insert(String),
    End,
}

/// What the user wants to know.
pub(super) enum Target {
    Here(Box<esker_sql::Session>),
    There(Box<Remote>),
}

/// Where the database is.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) database: String,
    /// Of a server.
    pub(super) address: String,
    is_read_only: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, address, is_read_only } = self;
        match (database.is_empty(), address.is_empty()) {
            (true, true) => f.write_str("a database in memory, gone at the end")?,
            (false, true) => write!(f, "the database in {database}")?,
            (_, false) => write!(f, "the database {database:?} of the server at {address}")?,
        }
        if *is_read_only { f.write_str(", for reading only") } else { Ok(()) }
    }
}

/// A database, or a server, and how its answers are shown.
pub(super) struct Session {
    pub(super) target: Target,
    pub(super) place: Place,
    pub(super) settings: Settings,
    words: Arc<Mutex<Words>>,
    /// Ends the statement that runs, once it is set.
    cancel: Arc<AtomicBool>,
    /// What was last run.
    pub(super) last: Option<String>,
    /// Where answers go, when not to the terminal.
    pub(super) output: Option<Output>,
    /// How many files are being run, one by the other.
    pub(super) depth: usize,
}

impl Session {
    /// Opens a directory, which is made when there is none, or connects to a server; a database in
    /// memory without either. Where a server has the directory open, that server is asked.
    pub(super) fn open(
        db: Option<&Path>,
        settings: Settings,
        cancel: &Arc<AtomicBool>,
        console: &mut Console<'_>,
    ) -> Result<Self> {
        let options = || {
            let options = Options::new().program("esker sql").files(crate::sql::files());
            options.cancel(Arc::clone(cancel))
        };
        let Some(dir) = db else {
            let database = options().memory()?;
            return Ok(Self::new(&database, Place::default(), settings, cancel));
        };
        if let Some(address) = remote::address(dir) {
            let database = remote::variable("ESKER_DATABASE");
            return Self::connect(address, database.as_deref(), settings, cancel);
        }
        let is_new = !Environment::os().files.exists(dir)?;
        let database = dir.display().to_string();
        let place = Place { database, ..Place::default() };
        let refused = match options().open(dir) {
            Err(e) if e.kind() == ErrorKind::Locked => e,
            Err(e) if e.to_string().ends_with(", but a file") => {
                let load = format!("; `esker load DB TABLE {}` loads a file", dir.display());
                return Err(Failure::from(e).with_note(&load));
            }
            opened => {
                let opened = opened?;
                if is_new {
                    writeln!(console.err, "made the database {}", place.database)?;
                }
                return Ok(Self::new(&opened, place, settings, cancel));
            }
        };
        if let Some(holder) = LockHolder::of(dir)
            && let Some(address) = &holder.address
        {
            writeln!(console.err, "{} is open in {holder}, which is asked", place.database)?;
            return Self::connect(address, None, settings, cancel);
        }
        // Others may only be reading.
        let Ok(database) = options().read_only(true).open(dir) else { return Err(refused.into()) };
        writeln!(console.err, "opened for reading only: {refused}")?;
        let place = Place { is_read_only: true, ..place };
        Ok(Self::new(&database, place, settings, cancel))
    }

    fn connect(
        address: &str,
        database: Option<&str>,
        settings: Settings,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self> {
        remote::refuse_options(&[("--dry-run", settings.dry_run)])?;
        let remote = Remote::connect_to(address, database, Arc::clone(cancel))?;
        Self::remote(remote, (address, database.unwrap_or(MAIN_DATABASE)), settings, cancel)
    }

    /// Of a database in this process.
    pub(super) fn new(
        database: &Database,
        place: Place,
        settings: Settings,
        cancel: &Arc<AtomicBool>,
    ) -> Self {
        let target = Target::Here(Box::new(esker_sql::Session::new(database)));
        Self::of(target, place, settings, cancel)
    }

    /// Of a server.
    pub(super) fn remote(
        mut remote: Remote,
        (address, database): (&str, &str),
        settings: Settings,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Self> {
        remote.expect_welcome()?;
        let (database, address) = (database.to_owned(), address.to_owned());
        let place = Place { database, address, is_read_only: false };
        let target = Target::There(Box::new(remote));
        let mut session = Self::of(target, place, settings, cancel);
        // Without them, words are not completed.
        let _ = session.learn_remote_words();
        Ok(session)
    }

    fn of(target: Target, place: Place, settings: Settings, cancel: &Arc<AtomicBool>) -> Self {
        let limits = Limits { cancel: Some(Arc::clone(cancel)), ..settings.limits };
        let settings = Settings { limits, ..settings };
        let (words, cancel) = (Arc::default(), Arc::clone(cancel));
        let (last, output, depth) = (None, None, 0);
        let session = Self { target, place, settings, words, cancel, last, output, depth };
        session.learn_words();
        session
    }

    /// The words that can be completed, now and later.
    pub(super) fn words(&self) -> Arc<Mutex<Words>> {
        Arc::clone(&self.words)
    }

    /// True between BEGIN and COMMIT or ROLLBACK.
    pub(super) fn is_in_transaction(&self) -> bool {
        match &self.target {
            Target::Here(statements) => statements.is_in_transaction(),
            Target::There(remote) => remote.is_in_transaction(),
        }
    }

    /// Learns the names of tables, fields and indexes. Those of a server are requested at the
    /// beginning alone: each table takes a request.
    pub(super) fn learn_words(&self) {
        let Target::Here(statements) = &self.target else { return };
        let (database, mut words) = (statements.database(), Words::default());
        database.sequences().iter().for_each(|sequence| words.add(&sequence.name));
        for view in database.views() {
            words.add(&view.name);
            view.columns.iter().for_each(|column| words.add(&column.name));
        }
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

    /// The names of tables.
    pub(super) fn tables(&mut self) -> Result<Vec<String>> {
        match &mut self.target {
            Target::Here(statements) => Ok(statements.database().tables()),
            Target::There(remote) => remote.tables(),
        }
    }

    /// Runs statements, or a command.
    pub(super) fn take(&mut self, text: &str, console: &mut Console<'_>) -> Result<Next> {
        let text = text.trim();
        if commands::is_command(text) {
            return commands::run(self, text, console);
        }
        let (statements, command) = trailing(text).map_or((text, None), |(s, c)| (s, Some(c)));
        if !statements.is_empty() {
            self.last = Some(statements.to_owned());
        }
        match command {
            Some(command) => commands::run(self, command, console),
            None => self.run_statements(statements, console),
        }
    }

    fn run_statements(&mut self, text: &str, console: &mut Console<'_>) -> Result<Next> {
        let Self { settings, target, output, .. } = self;
        let (mut console, settings) = match output {
            None => (Console { out: console.out, err: console.err, ..*console }, settings.clone()),
            Some(output) => {
                let format = settings.format.or(Some(output.format));
                let is_terminal = true;
                let (size, colors, is_merged) = (None, false, false);
                let (out, err) = (output, &mut *console.err);
                let console = Console { out, err, is_terminal, size, colors, is_merged };
                (console, Settings { format, ..settings.clone() })
            }
        };
        let console = &mut console;
        for text in esker_sql::statements(text) {
            let parsed = esker_sql::parse_statement(text).map_err(Failure::from);
            let done = parsed.and_then(|statement| match target {
                Target::Here(statements) => settings.execute(statements, &statement, console),
                Target::There(remote) => remote.execute((text, &statement), &settings, console),
            });
            if let Target::Here(session) = target {
                tell_notifications(session, console)?;
            }
            done.map_err(|failure| failure.in_statement(text))?;
        }
        Ok(Next::Line)
    }

    fn expect_last(&self) -> Result<String> {
        self.last.clone().ok_or_else(|| Failure::usage("no statement has been run yet"))
    }

    /// Runs the last statement again, its answer to a file where one is named.
    pub(super) fn again(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        let last = self.expect_last()?;
        if rest.is_empty() {
            return self.run_statements(&last, console);
        }
        let before = self.output.replace(Output::create(Path::new(&unquoted(rest)))?);
        let done = self.run_statements(&last, console);
        let written = std::mem::replace(&mut self.output, before).map_or(Ok(()), Output::finish);
        written.and(done)
    }

    /// Runs the last statement again and again.
    pub(super) fn watch(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        let expected = || Failure::usage(r"\watch: expected seconds, and how many times");
        let last = self.expect_last()?;
        let mut words = rest.split_whitespace();
        let seconds = words.next().map_or(Ok(WATCH_SECONDS), str::parse).map_err(|_| expected())?;
        let times = words.next().map_or(Ok(u64::MAX), str::parse).map_err(|_| expected())?;
        let pause = Duration::try_from_secs_f64(seconds).map_err(|_| expected())?;
        if words.next().is_some() {
            return Err(expected());
        }
        for time in 1..=times {
            self.run_statements(&last, console)?;
            console.out.flush()?;
            if time < times && !self.wait(pause) {
                break;
            }
        }
        Ok(Next::Line)
    }

    /// False when it was interrupted.
    #[allow(clippy::disallowed_methods, reason = "a person waits, and no simulation")]
    fn wait(&self, pause: Duration) -> bool {
        let mut left = pause;
        while !self.cancel.load(Ordering::Relaxed) {
            if left.is_zero() {
                return true;
            }
            let step = left.min(LOOK_EVERY);
            std::thread::sleep(step);
            left -= step;
        }
        false
    }

    pub(super) fn close(self) -> Result<()> {
        let written = self.output.map_or(Ok(()), Output::finish);
        let ended = match self.target {
            Target::Here(statements) => crate::sql::end(*statements),
            Target::There(remote) => remote.end(),
        };
        written.and(ended)
    }
}

/// Whether a line tells rows as they arrive, which are shown at once.
pub(super) fn is_live(line: &str) -> bool {
    let first = line.split_whitespace().next();
    first.is_some_and(|word| word.eq_ignore_ascii_case("watch"))
}

/// Statements, and the command behind them that runs them: `SELECT 1 \g`.
pub(super) fn trailing(text: &str) -> Option<(&str, &str)> {
    let (before, command) = text.trim_end().split_at_checked(text.trim_end().rfind('\\')?)?;
    let runs = matches!(command.split_whitespace().next(), Some(r"\g" | r"\watch"));
    let is_one = !command.contains('\n') && !before.trim().is_empty();
    (runs && is_one && esker_sql::open_quote(before).is_none()).then_some((before.trim(), command))
}

/// Says what was said on the channels that a session listens to.
fn tell_notifications(session: &mut esker_sql::Session, console: &mut Console<'_>) -> Result<()> {
    for told in session.notifications() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (channel, payload) = (text(&told.channel), text(&told.payload));
        let said = format!("channel {channel}: {payload}");
        writeln!(console.err, "{}", printable(said.trim_end()))?;
    }
    Ok(())
}
