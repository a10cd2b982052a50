//! The same commands of a server: where a directory is requested, an address may be.
//!
//! | what | how |
//! |---|---|
//! | `esker sql ADDRESS "…"` | statements as they are, one after another |
//! | `esker query ADDRESS '{…}'` | the query as it is |
//! | `esker get`, `delete` | by the key, whose types are those of the table |
//! | `esker insert`, `put` | as a statement |
//! | `esker load` | files are read here, rows are sent in one load |
//! | `esker export` | rows come as they are found, and are written here |
//! | `esker index` | as a statement |
//! | `esker bucket` | by the keys |
//! | `esker info`, `check`, `backup`, `compact`, `recount` | a task for the server |
//!
//! `--connect ADDRESS` puts the address where the directory would be: see `command_line`. Output
//! and errors are those of a database in a directory.
//! Other commands say that they need a directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker::{DataType, Schema, Value};
use esker_client::{Call, Client, Code, Column, Reply};
use esker_format::Batch;
use esker_query::{QueryResult, ResultColumn, Statistics};
use esker_server::session::AdminTask;
use esker_sql::{Statement, TransactionStatement};
use esker_vfs::Environment;
use serde::de::DeserializeOwned;

use crate::arguments::{Command, TokenCommand};
use crate::failure::{Failure, Result, Status};
use crate::sql::Settings;
use crate::{Console, units, watch};

/// What addresses of servers begin with.
pub(crate) const SCHEMES: [&str; 3] = ["esker://", "eskers://", "unix:"];

/// The address, where one is given in place of a directory.
pub(crate) fn address(db: &Path) -> Option<&str> {
    db.to_str().filter(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}

/// Refuses an address where only a directory will do.
///
/// # Errors
/// Saying so.
pub(crate) fn refuse_address(command: &Command) -> Result<()> {
    let (name, dir) = match command {
        Command::Restore(arguments) => ("restore", Some(arguments.backup.as_path())),
        Command::Serve(arguments) => ("serve", arguments.db.as_deref()),
        Command::Quickstart(arguments) => ("quickstart", Some(arguments.dir.as_path())),
        Command::Token(
            TokenCommand::Create { dir, .. }
            | TokenCommand::List { dir }
            | TokenCommand::Rotate { dir, .. }
            | TokenCommand::Remove { dir, .. },
        ) => ("token", Some(dir.as_path())),
        _ => return Ok(()),
    };
    match dir.and_then(address) {
        Some(_) => Err(Failure::usage(format!(
            "{name}: expected a directory, found the address of a server"
        ))),
        None => Ok(()),
    }
}

/// Refuses options, of those given, that servers do not know.
///
/// # Errors
/// Naming the first.
pub(crate) fn refuse_options(options: &[(&str, bool)]) -> Result<()> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Failure::usage(format!("{option}: not of a server, only of a directory")))
        }
        None => Ok(()),
    }
}

/// The database of a server that is asked unless another is named.
pub(crate) const MAIN_DATABASE: &str = "default";

/// A variable of the environment that is there and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A connection, let in by what the environment has.
pub(crate) fn connect(address: &str) -> Result<Client> {
    connect_to(address, variable("ESKER_DATABASE").as_deref())
}

/// The same to a database of the server.
fn connect_to(address: &str, database: Option<&str>) -> Result<Client> {
    let mut client = Client::connect(address)?;
    let token = variable("ESKER_TOKEN");
    if token.is_some() || database.is_some() {
        client.hello(token.as_deref(), database)?;
    }
    Ok(client)
}

/// A connection with what a session of statements remembers.
pub(crate) struct Remote {
    client: Client,
    is_open: bool,
    cancel: Arc<AtomicBool>,
}

impl Remote {
    /// One that ends statements once `cancel` is set.
    pub(crate) fn connect(address: &str, cancel: Arc<AtomicBool>) -> Result<Self> {
        Ok(Self { client: connect(address)?, is_open: false, cancel })
    }

    /// The same, to a database of the server.
    pub(crate) fn connect_to(
        address: &str,
        database: Option<&str>,
        cancel: Arc<AtomicBool>,
    ) -> Result<Self> {
        Ok(Self { client: connect_to(address, database)?, is_open: false, cancel })
    }

    /// Finds out whether the server lets this client in.
    pub(crate) fn expect_welcome(&mut self) -> Result<()> {
        match self.client.tables() {
            Err(e) if e.code() == Some(Code::Unauthenticated) => Err(e.into()),
            // A token of some tables alone may list none.
            _ => Ok(()),
        }
    }

    /// True between BEGIN and COMMIT or ROLLBACK.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.is_open
    }

    /// Asks for no longer than the settings let it, and until it is cancelled.
    pub(crate) fn ask(&mut self, call: &Call, settings: &Settings) -> Result<Asked> {
        let clock = Environment::os().clock;
        let started_ns = clock.monotonic_ns();
        let (timeout, cancel) = (settings.limits.timeout, &self.cancel);
        let elapsed = || Duration::from_nanos(clock.monotonic_ns().saturating_sub(started_ns));
        let is_late = || timeout.is_some_and(|timeout| elapsed() >= timeout);
        let goes_on = || !cancel.load(Ordering::Relaxed) && !is_late();
        match self.client.call_while(call, goes_on) {
            Ok(reply) => Ok(Asked { reply, elapsed: elapsed() }),
            Err(e) if e.code() == Some(Code::Cancelled) && is_late() => {
                let timeout_ms = timeout.unwrap_or_default().as_millis();
                let message = format!(
                    "the statement took longer than its timeout of {timeout_ms} ms: try again \
                     with more time"
                );
                Err(Failure::new(Status::Busy, message))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Runs a statement, and shows what it answers.
    pub(crate) fn execute(
        &mut self,
        (text, statement): (&str, &Statement),
        settings: &Settings,
        console: &mut Console<'_>,
    ) -> Result<()> {
        let statement = statement.said();
        if let Statement::Watch(watch) = statement
            && !settings.explain
        {
            let cancel = Arc::clone(&self.cancel);
            return watch::there(watch, (&mut self.client, &cancel), settings, console);
        }
        let explained = match statement {
            Statement::Query(_) if settings.explain => Some(format!("EXPLAIN ANALYZE {text}")),
            Statement::Explain(_) => None,
            _ if settings.explain => return Err(Failure::usage("--explain is for SELECT")),
            _ => None,
        };
        let asked = self.ask(&Call::sql(explained.as_deref().unwrap_or(text), &[]), settings)?;
        show(&asked.reply, statement, settings, console)?;
        asked.tell_time(settings, console)?;
        self.is_open = match statement {
            Statement::Transaction(TransactionStatement::Begin(_)) => true,
            Statement::Transaction(
                TransactionStatement::Commit | TransactionStatement::Rollback,
            ) => false,
            _ => self.is_open,
        };
        Ok(())
    }

    /// The names of tables.
    pub(crate) fn tables(&mut self) -> Result<Vec<String>> {
        Ok(self.client.tables()?)
    }

    /// What looks after the database.
    pub(crate) fn admin<T: DeserializeOwned>(&mut self, task: &AdminTask) -> Result<T> {
        admin(&mut self.client, task)
    }

    /// The fields and the key of a table.
    pub(crate) fn schema(&mut self, table: &str) -> Result<Schema> {
        schema(&mut self.client, table)
    }

    /// The end of the session.
    pub(crate) fn end(self) -> Result<()> {
        match self.is_open {
            true => Err(Failure::usage("BEGIN without COMMIT: the transaction was rolled back")),
            false => Ok(()),
        }
    }
}

/// An answer, and how long it took to come.
pub(crate) struct Asked {
    pub(crate) reply: Reply,
    elapsed: Duration,
}

impl Asked {
    /// Says how many rows have come, and in what time, where that is requested.
    pub(crate) fn tell_time(&self, settings: &Settings, console: &mut Console<'_>) -> Result<()> {
        if settings.timing && !self.reply.columns.is_empty() {
            console.flush_before_note()?;
            let rows = units::counted(self.reply.rows.len() as u64, "row");
            writeln!(console.err, "{rows}, {}", units::duration(self.elapsed))?;
        }
        Ok(())
    }
}

/// Runs statements, one after another, and shows what they answer.
pub(crate) fn run_statements(
    address: &str,
    statements: &[(&str, Statement)],
    settings: &Settings,
    console: &mut Console<'_>,
) -> Result<()> {
    refuse_options(&[("--dry-run", settings.dry_run)])?;
    let mut remote = Remote::connect(address, Arc::default())?;
    for (text, statement) in statements {
        let done = remote.execute((text, statement), settings, console);
        done.map_err(|failure| failure.in_statement(text))?;
    }
    remote.end()
}

fn show(
    reply: &Reply,
    statement: &Statement,
    settings: &Settings,
    console: &mut Console<'_>,
) -> Result<()> {
    if let Some(text) = reply.text() {
        let is_answer = matches!(statement, Statement::Query(_) | Statement::Explain(_));
        match is_answer {
            true => writeln!(console.out, "{}", text.trim_end())?,
            false => writeln!(console.err, "{text}")?,
        }
        return Ok(());
    }
    if !reply.columns.is_empty() {
        settings.show(&result(reply)?, console)?;
    }
    settings.tell_changed(statement, reply.changed(), console)
}

/// The columns of an answer. Labels come as texts.
pub(crate) fn columns(columns: &[Column]) -> Vec<ResultColumn> {
    let column = |column: &Column| {
        let data_type = column.data_type.parse().unwrap_or(DataType::Text);
        let data_type = if data_type == DataType::Enum { DataType::Text } else { data_type };
        ResultColumn { name: column.name.clone(), data_type }
    };
    columns.iter().map(column).collect()
}

/// Rows of an answer, by column.
pub(crate) fn batch(columns: &[ResultColumn], rows: &[Vec<Value>]) -> Result<Batch> {
    let empty = columns.iter().map(|column| esker_format::Column::empty(column.data_type));
    let mut batch = Batch { columns: empty.collect() };
    for row in rows {
        for ((column, to), value) in columns.iter().zip(&mut batch.columns).zip(row) {
            // Integers come as the least that holds them.
            let value = value.as_ref().coerce(column.data_type);
            value.and_then(|value| to.push(value)).map_err(esker::Error::from)?;
        }
    }
    Ok(batch)
}

/// An answer as a query in this process has it.
pub(crate) fn result(reply: &Reply) -> Result<QueryResult> {
    let columns = columns(&reply.columns);
    let batches = match reply.rows.as_slice() {
        [] => Vec::new(),
        rows => vec![batch(&columns, rows)?],
    };
    Ok(QueryResult { columns, batches, statistics: Statistics::default() })
}

/// Asks for what looks after a database; what came of it.
pub(crate) fn admin<T: DeserializeOwned>(client: &mut Client, task: &AdminTask) -> Result<T> {
    let wrong = |e: serde_json::Error| Failure::system(format!("{}: {e}", task.name()));
    let reply = client.call(&Call::admin(&serde_json::to_string(task).map_err(wrong)?))?;
    serde_json::from_str(reply.text().unwrap_or_default()).map_err(wrong)
}

/// The fields and the key of a table.
pub(crate) fn schema(client: &mut Client, table: &str) -> Result<Schema> {
    let reply = client.call(&Call::schema(table))?;
    let text = reply.text().unwrap_or_default();
    Ok(esker_import::schema_text::parse(text)?)
}

/// The row with a key.
pub(crate) fn get(client: &mut Client, table: &str, key: &[Value]) -> Result<Option<Vec<Value>>> {
    Ok(client.get(table, key)?)
}

/// A name as SQL has it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Adds a row, or puts it in the place of one with its key.
pub(crate) fn add(
    client: &mut Client,
    table: &str,
    row: Vec<(String, Value)>,
    replaces: bool,
) -> Result<()> {
    let (names, values): (Vec<String>, Vec<Value>) = row.into_iter().unzip();
    let fields = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let marks = vec!["?"; values.len()].join(", ");
    let verb = if replaces { "REPLACE" } else { "INSERT" };
    let text = format!("{verb} INTO {} ({fields}) VALUES ({marks})", quoted(table));
    client.sql(&text, &values)?;
    Ok(())
}

impl From<esker_client::Error> for Failure {
    fn from(e: esker_client::Error) -> Self {
        let status = e.code().map_or(Status::System, crate::failure::status_of);
        let failure = Self::new(status, e.to_string());
        match e.code() {
            Some(Code::Unauthenticated) if variable("ESKER_TOKEN").is_none() => Self::new(
                status,
                "the server expects a token: set ESKER_TOKEN to one, which `esker token create \
                 DIR --name NAME --scope write` makes where the server runs",
            ),
            Some(Code::Unauthenticated) => failure.with_note(" (the one in ESKER_TOKEN)"),
            _ => failure,
        }
    }
}
