//! The commands of the shell: one table, from which they are run, listed and completed.

use esker_format::suggest::did_you_mean;

use super::session::{Next, Session};
use crate::Console;
use crate::failure::{Failure, Result};

/// What a word behind a command may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completes {
    Nothing,
    /// Tables, fields and indexes.
    Names,
    /// What `\pset` sets.
    Settings,
}

/// A command.
pub(super) struct Command {
    /// What it is called, the usual name first.
    pub(super) names: &'static [&'static str],
    /// What may stand behind it.
    takes: &'static str,
    help: &'static str,
    pub(super) completes: Completes,
    run: fn(&mut Session, &str, &mut Console<'_>) -> Result<Next>,
}

macro_rules! commands {
    ($($($name:literal)|+, $takes:literal, $help:literal, $completes:ident, $run:expr;)*) => {
        /// All of them, in the order in which they are listed.
        pub(super) const COMMANDS: &[Command] = &[$(Command {
            names: &[$($name),+],
            takes: $takes,
            help: $help,
            completes: Completes::$completes,
            run: $run,
        }),*];
    };
}

commands! {
    r"\d", "[NAME]", "list tables, sequences and views, or show one", Names, Session::describe;
    r"\dt", "[PART]", "list tables whose names have a part", Names, Session::list_tables;
    r"\di", "[TABLE]", "list indexes", Names, Session::list_indexes;
    r"\ds", "", "list sequences", Nothing, Session::list_sequences;
    r"\dv", "", "list views", Nothing, Session::list_views;
    r"\l", "", "list databases", Nothing, Session::list_databases;
    r"\conninfo", "", "say what is connected", Nothing, Session::connection;
    r"\g", "[FILE]", "run the last statement again; its answer goes to a file", Nothing,
        Session::again;
    r"\watch", "[SECONDS [TIMES]]", "run the last statement again and again, until Ctrl-C",
        Nothing, Session::watch;
    r"\e", "[FILE]", "edit the last statement, or a file, in $EDITOR", Nothing, Session::edit;
    r"\i", "FILE", "run the statements and commands of a file", Nothing, Session::include;
    r"\o", "[FILE]", "write answers to a file; without one, show them again", Nothing,
        Session::redirect;
    r"\copy", "TABLE FROM FILE … | TABLE|(SELECT …) TO FILE …", "load or export, with options",
        Names, Session::copy;
    r"\x", "[on|off]", "show each row as lines of names and values", Nothing, Session::expand;
    r"\pset", "[NAME [VALUE]]", "how answers look: format, null, types, counts, rows, expanded",
        Settings, Session::set_look;
    r"\timing", "[on|off]", "say what queries take", Nothing, Session::time;
    r"\timeout", "[TIME|off]", "end statements that take longer: 500ms, 30s, 5m", Nothing,
        Session::set_timeout;
    r"\!", "[COMMAND]", "run a command of the system's shell", Nothing, Session::run_program;
    r"\?" | "help" | r"\h", "", "list the commands", Nothing, |_, _, console| help(console);
    r"\q" | "exit" | "quit", "", "end; so does Ctrl-D", Nothing, |_, _, _| Ok(Next::End);
}

/// Words of other shells, and what is used here.
const ELSEWHERE: [(&str, &str); 17] = [
    (".tables", r"\dt lists the tables"),
    (".schema", r"\d TABLE shows a table"),
    (".indexes", r"\di lists the indexes"),
    (".databases", r"\l lists the databases"),
    (".help", r"\? lists the commands"),
    (".quit", r"\q ends"),
    (".exit", r"\q ends"),
    (".read", r"\i FILE runs a file"),
    (".output", r"\o FILE writes answers to a file"),
    (".once", r"\g FILE runs the last statement again, and writes its answer to a file"),
    (".import", r"\copy TABLE FROM FILE loads a file"),
    (".mode", r"\pset format table, csv or json says how answers are written"),
    (".nullvalue", r"\pset null TEXT says what stands for NULL"),
    (".timer", r"\timing says what queries take"),
    (".shell", r"\! COMMAND runs a command"),
    (".edit", r"\e edits the last statement"),
    (".open", r"esker DB opens a database"),
];

/// Whether a line is a command, or what another shell has for one.
pub(super) fn is_command(line: &str) -> bool {
    let line = line.trim();
    let word = line.trim_end_matches(';').trim_end();
    line.starts_with(['\\', '.']) || find(word).is_some()
}

/// The command of a name.
pub(super) fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.names.contains(&name))
}

/// Runs a line that is a command.
pub(super) fn run(session: &mut Session, line: &str, console: &mut Console<'_>) -> Result<Next> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // `\!ls` needs no space.
    let (name, rest) = match line.strip_prefix(r"\!") {
        Some(rest) => (r"\!", rest),
        None => (name, rest),
    };
    let rest = rest.trim();
    match find(name) {
        Some(command) if command.takes.is_empty() && !rest.is_empty() => {
            Err(Failure::usage(format!("{name}: expected nothing behind it, found {rest:?}")))
        }
        Some(command) => (command.run)(session, rest, console),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Failure {
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(word, _)| name.starts_with(word)) {
        return Failure::usage(format!("{name}: no command here; {instead}"));
    }
    let names = COMMANDS.iter().flat_map(|command| command.names).copied();
    let near = match name.chars().count() {
        0..=2 => String::new(),
        _ => did_you_mean(name, names).replace(r"\\", r"\").replace('"', ""),
    };
    Failure::usage(format!(r"{name}: no such command{near}; \? lists them"))
}

/// Lists the commands.
fn help(console: &mut Console<'_>) -> Result<Next> {
    const WIDTH: usize = 28;
    let mut line = |what: &str, help: &str| match what.chars().count() < WIDTH {
        true => writeln!(console.out, "{what:WIDTH$}{help}"),
        false => writeln!(console.out, "{what}\n{:WIDTH$}{help}", ""),
    };
    line("statement;", "run it; it may take several lines")?;
    for command in COMMANDS {
        let names = command.names.join(", ");
        line(format!("{names} {}", command.takes).trim_end(), command.help)?;
    }
    line("Tab", "complete a table, a field, a word of SQL or a command")?;
    line("Ctrl-C", "end the statement that runs, or forget the line")?;
    Ok(Next::Line)
}
