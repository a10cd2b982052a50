//! The `esker` program: load, query and look after a database from the shell.
//!
//! | module | command |
//! |---|---|
//! | `arguments` | what can be given on the command line |
//! | `load`, `export` | `esker load DB TABLE FILE…`, `esker export DB TABLE` |
//! | `command_line` | `esker DB`, and `--connect ADDRESS` before any command |
//! | `sql`, `shell` | `esker sql DB "SELECT …"`, `esker sql DB` |
//! | `query` | `esker query DB '{"table": …}'` |
//! | `get` | `esker get DB TABLE KEY…` |
//! | `bucket` | `esker bucket get DB BUCKET KEY`, `put`, `delete`, `scan`, `list`, `create` |
//! | `rows` | `esker insert DB TABLE ROW`, `put`, and `delete DB TABLE KEY…` |
//! | `info`, `check` | `esker info DB [TABLE]`, `esker check DB` |
//! | `token`, `config` | `esker token create DIR`, `esker config check FILE` |
//! | `serve` | `esker serve DB` |
//! | `remote` | `sql`, `query`, `load`, `get`, `insert`, `put`, `delete` of a server |
//! | `manual` | `esker completions SHELL`, `esker man` |
//! | `quickstart` | `esker quickstart [DIR] [--serve]` |
//! | `output` | answers as a table, CSV or JSON |
//! | `failure` | errors and exit codes |
#![forbid(unsafe_code)]

mod arguments;
mod backup;
mod bucket;
mod check;
mod clock;
mod command_line;
mod compact;
mod config;
mod console;
mod export;
mod failure;
mod get;
mod index;
mod info;
mod load;
mod manual;
mod output;
mod query;
mod quickstart;
mod remote;
mod rows;
mod serve;
mod shell;
mod sql;
mod token;
mod units;
mod watch;

use std::ffi::OsString;

use arguments::{Arguments, ColorChoice, Command};
use clap::Parser;
use esker_query::model::OnConflict;

pub use console::Console;
pub use failure::Status;

/// Runs the program with its arguments, its own name first, and says how it ended.
pub fn run(arguments: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> Status {
    let arguments = match command_line::complete(arguments.into_iter().collect()) {
        Ok(arguments) => arguments,
        Err(failure) => {
            let _ = writeln!(console.err, "error: {failure}");
            return failure.status();
        }
    };
    let outcome = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => {
            match arguments.color {
                ColorChoice::Auto => {}
                ColorChoice::Always => console.colors = true,
                ColorChoice::Never => console.colors = false,
            }
            run_command(&arguments.command, console)
        }
        Err(usage) => {
            let rendered = usage.render();
            let shown = if usage.use_stderr() {
                write!(console.err, "{rendered}").map(|()| Status::Usage)
            } else {
                write!(console.out, "{rendered}").map(|()| Status::Ok)
            };
            shown.map_err(Into::into)
        }
    };
    match outcome {
        Ok(status) => status,
        // The reader of the output has seen enough.
        Err(failure) if failure.is_broken_pipe() => Status::Ok,
        Err(failure) => {
            let _ = console.out.flush();
            let _ = writeln!(console.err, "error: {failure}");
            failure.status()
        }
    }
}

/// Whether a terminal may be coloured, by the variables of the environment: `NO_COLOR` with any
/// value, and a terminal that cannot, say no.
pub fn may_color(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_unset = |name| variable(name).is_none_or(|value: String| value.is_empty());
    is_unset("NO_COLOR") && variable("TERM").is_none_or(|term| term != "dumb")
}

fn run_command(command: &Command, console: &mut Console<'_>) -> failure::Result<Status> {
    remote::refuse_address(command)?;
    match command {
        Command::Load(arguments) => load::run(arguments, console)?,
        Command::Export(arguments) => export::run(arguments, console)?,
        Command::Insert(arguments) => rows::add(arguments, OnConflict::Fail, console)?,
        Command::Put(arguments) => rows::add(arguments, OnConflict::Replace, console)?,
        Command::Delete(arguments) => rows::delete(arguments, console)?,
        Command::Sql(arguments) => sql::run(arguments, console)?,
        Command::Query(arguments) => query::run(arguments, console)?,
        Command::Get(arguments) => get::run(arguments, console)?,
        Command::Bucket(command) => bucket::run(command, console)?,
        Command::Info(arguments) => info::run(arguments, console)?,
        Command::Index(arguments) => index::run(arguments, console)?,
        Command::Check(arguments) => return check::run(arguments, console),
        Command::Backup(arguments) => backup::run(arguments, console)?,
        Command::Restore(arguments) => return backup::restore(arguments, console),
        Command::Clock(arguments) => clock::run(&arguments.command, console)?,
        Command::Compact(arguments) => compact::run(arguments, console)?,
        Command::Recount(arguments) => compact::recount(arguments, console)?,
        Command::Completions(arguments) => manual::completions(arguments.shell, console)?,
        Command::Man => manual::page(console)?,
        Command::Token(command) => token::run(command, console)?,
        Command::Config(command) => config::run(command, console)?,
        Command::Serve(arguments) => serve::run(arguments, console)?,
        Command::Quickstart(arguments) => quickstart::run(arguments, console)?,
    }
    Ok(Status::Ok)
}

/// The program in the README is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
