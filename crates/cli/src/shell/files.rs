//! Files and programs: `\i`, `\o`, `\e`, `\copy`, `\!`.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use clap::Parser;
use esker_import::FileWriter;
use esker_sql::{CopyStatement, Statement};
use esker_vfs::{Environment, OpenMode};

use super::describe::name;
use super::session::{Next, Session, Target};
use crate::arguments::{Arguments, Command, Format};
use crate::failure::{Failure, Result};

use crate::remote::{MAIN_DATABASE, variable};
use crate::{Console, export, load};

/// How deep files may run files.
const DEPTH_MAX: usize = 16;
/// The editor, unless `VISUAL` or `EDITOR` names another.
const EDITOR: &str = "vi";

/// Where answers go, in place of the terminal.
pub(super) struct Output {
    writer: BufWriter<FileWriter>,
    /// How they are written, by the name of the file.
    pub(super) format: Format,
}

impl Output {
    /// A file; what is in one that is there goes. A device, such as `/dev/null`, stays one.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let files = Environment::os().files;
        let file = match files.exists(path)? {
            false => files.open(path, OpenMode::CreateNew)?,
            true => {
                let file = files.open(path, OpenMode::Write)?;
                if !file.is_stream()? {
                    file.set_len(0)?;
                }
                file
            }
        };
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Format::Csv,
            Some("json") => Format::Json,
            _ => Format::Table,
        };
        Ok(Self { writer: BufWriter::new(FileWriter::new(file)), format })
    }

    pub(super) fn finish(mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

impl Session {
    /// Runs the statements and commands of a file.
    pub(super) fn include(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        if rest.is_empty() {
            return Err(Failure::usage(r"\i: expected a file"));
        }
        if self.depth >= DEPTH_MAX {
            let message = format!(r"\i {rest}: files run files {DEPTH_MAX} deep at most");
            return Err(Failure::usage(message));
        }
        let text = read(Path::new(&unquoted(rest)))?;
        self.depth += 1;
        let done = self.run_script(&text, console);
        self.depth -= 1;
        done.map_err(|failure| failure.in_file(rest))
    }

    /// Runs statements and commands, to the end or the first that fails.
    pub(super) fn run_script(&mut self, text: &str, console: &mut Console<'_>) -> Result<Next> {
        let mut gathered = String::new();
        for line in text.lines() {
            // Comments are no statement, and are dropped.
            let is_between = esker_sql::statements(&gathered).is_empty();
            if is_between && super::commands::is_command(line) {
                gathered.clear();
                if self.take(line, console)? == Next::End {
                    return Ok(Next::End);
                }
                continue;
            }
            gathered.push_str(line);
            gathered.push('\n');
            if esker_sql::is_complete(&gathered) || super::session::trailing(&gathered).is_some() {
                self.take(&std::mem::take(&mut gathered), console)?;
            }
        }
        self.take(&gathered, console)?;
        Ok(Next::Line)
    }

    /// Writes answers to a file from now on, or no longer.
    pub(super) fn redirect(&mut self, rest: &str, _: &mut Console<'_>) -> Result<Next> {
        if let Some(output) = self.output.take() {
            output.finish()?;
        }
        if !rest.is_empty() {
            self.output = Some(Output::create(Path::new(&unquoted(rest)))?);
        }
        Ok(Next::Line)
    }

    /// Has the last statement, or a file, edited; what comes of it is in the next line.
    pub(super) fn edit(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        console.out.flush()?;
        let files = Environment::os().files;
        let scratch = || std::env::temp_dir().join(format!("esker-{}.sql", std::process::id()));
        let (path, is_scratch) = match rest {
            "" => (scratch(), true),
            rest => (PathBuf::from(unquoted(rest)), false),
        };
        if is_scratch {
            if files.exists(&path)? {
                files.remove(&path)?;
            }
            let file = files.open(&path, OpenMode::CreateNew)?;
            file.write_all_at(self.last.as_deref().unwrap_or_default().as_bytes(), 0)?;
        }
        let named = |name| std::env::var(name).ok().filter(|editor: &String| !editor.is_empty());
        let editor = named("VISUAL").or_else(|| named("EDITOR"));
        let editor = editor.unwrap_or_else(|| EDITOR.to_owned());
        let mut words = editor.split_whitespace();
        let mut program = Program::new(words.next().unwrap_or(EDITOR));
        let status = program.args(words).arg(&path).status();
        let ended = status.map_err(|e| {
            Failure::system(format!("{editor}: {e}; EDITOR names the editor that is run"))
        });
        let text = ended.and_then(|status| match status.success() {
            true => read(&path),
            false => Err(Failure::usage(format!("{editor} ended with {status}: nothing is run"))),
        });
        if is_scratch {
            files.remove(&path)?;
        }
        Ok(Next::Insert(text?.trim_end().to_owned()))
    }

    /// Loads a file into a table, or writes a table or an answer to a file.
    pub(super) fn copy(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        if let Target::Here(_) = self.target
            && let Some(statement) = as_statement(rest)
        {
            return self.take(&statement, console);
        }
        if self.is_in_transaction() {
            return Err(Failure::usage(r"\copy is a commit of its own: COMMIT or ROLLBACK first"));
        }
        let Copied { what, is_load, rest } = Copied::parse(rest)?;
        let place = match &self.target {
            Target::Here(_) => PathBuf::from("."),
            // Another connection, which is of the database that the environment names.
            Target::There(_) => {
                let named = variable("ESKER_DATABASE").unwrap_or_else(|| MAIN_DATABASE.to_owned());
                if named != self.place.database {
                    let message = format!(
                        r"\copy: ESKER_DATABASE is {named}, the shell asks {}",
                        self.place.database
                    );
                    return Err(Failure::usage(message));
                }
                PathBuf::from(&self.place.address)
            }
        };
        let mut words = vec![OsString::from("esker")];
        let (verb, of) = if is_load { ("load", "load") } else { ("export", "export --output") };
        words.extend([verb.into(), place.into_os_string()]);
        match (is_load, what) {
            (true, What::Query(_)) => {
                return Err(Failure::usage(r"\copy (…) FROM: expected a table before FROM"));
            }
            (true, What::Table(table)) => {
                let exists = self.tables()?.contains(&table);
                words.push(table.into());
                words.extend(rest.into_iter().map(OsString::from));
                if exists && !words.iter().any(|word| word == "--append") {
                    words.push("--append".into());
                }
            }
            (false, what) => {
                match what {
                    What::Table(table) => words.push(table.into()),
                    What::Query(query) => words.extend(["--sql".into(), query.into()]),
                }
                words.push("--output".into());
                words.extend(rest.into_iter().map(OsString::from));
            }
        }
        let parsed = Arguments::try_parse_from(words);
        let parsed = parsed.map_err(|e| {
            let text = e.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.trim_start_matches("error: ").to_owned();
            Failure::usage(format!(r"\copy: {first}; options are those of `esker {of}`"))
        })?;
        match (parsed.command, &self.target) {
            (Command::Load(arguments), Target::Here(statements)) => {
                load::run_in(statements.database(), &arguments, console)?;
            }
            (Command::Load(arguments), Target::There(_)) => load::run(&arguments, console)?,
            (Command::Export(arguments), Target::Here(statements)) => {
                export::run_in(statements.database(), &arguments, console)?;
            }
            (Command::Export(arguments), Target::There(_)) => export::run(&arguments, console)?,
            _ => {}
        }
        Ok(Next::Line)
    }

    /// Runs a command of the system's shell, or the shell itself.
    pub(super) fn run_program(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        console.out.flush()?;
        let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
        let mut program = Program::new(&shell);
        if !rest.is_empty() {
            program.args(["-c", rest]);
        }
        let status = program.status().map_err(|e| Failure::system(format!("{shell}: {e}")))?;
        if !status.success() {
            writeln!(console.err, "{status}")?;
        }
        Ok(Next::Line)
    }
}

/// The text of a file.
fn read(path: &Path) -> Result<String> {
    let file = Environment::os().files.open(path, OpenMode::Read)?;
    let wrong = |what: &str| Failure::usage(format!("{}: {what}", path.display()));
    let length = usize::try_from(file.len()?).map_err(|_| wrong("too long"))?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    String::from_utf8(bytes).map_err(|_| wrong("expected text in UTF-8"))
}

/// A word without quotes around it.
pub(super) fn unquoted(text: &str) -> String {
    words(text).into_iter().next().unwrap_or_default()
}

/// Words with spaces between; within quotes, spaces are part of a word.
fn words(text: &str) -> Vec<String> {
    let (mut found, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => found.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word);
    found
}

/// What stands behind `\copy` as a statement, where it is written as PostgreSQL has it: with words
/// behind the file that are no options of a command.
fn as_statement(text: &str) -> Option<String> {
    let copy = format!("COPY {}", text.trim_end_matches(';'));
    let parsed = esker_sql::parse_statement(&copy).ok()?;
    let Statement::Copy(statement) = parsed else { return None };
    let path = format!("'{}'", statement.file().file.path.replace('\'', "''"));
    let has_words = !copy.trim_end().ends_with(&path)
        || matches!(&statement, CopyStatement::From { fields, .. } if !fields.is_empty());
    (has_words && statement.names_file()).then_some(copy)
}

/// What is copied.
enum What {
    Table(String),
    Query(String),
}

/// What stands behind `\copy`.
struct Copied {
    what: What,
    is_load: bool,
    rest: Vec<String>,
}

impl Copied {
    fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Failure::usage(r"\copy: expected TABLE FROM FILE, TABLE TO FILE or (SELECT …) TO FILE")
        };
        let (what, behind) = match text.strip_prefix('(') {
            Some(query) => {
                let (query, behind) = query.rsplit_once(')').ok_or_else(wrong)?;
                (What::Query(query.to_owned()), behind)
            }
            None => {
                let end = match text.strip_prefix('"').and_then(|text| text.find('"')) {
                    Some(at) => at + 2,
                    None => text.find(char::is_whitespace).ok_or_else(wrong)?,
                };
                let (table, behind) = text.split_at(end);
                (What::Table(name(table)), behind)
            }
        };
        let mut rest = words(behind).into_iter();
        let is_load = match rest.next().ok_or_else(wrong)?.to_ascii_lowercase().as_str() {
            "from" => true,
            "to" => false,
            _ => return Err(wrong()),
        };
        let rest: Vec<String> = rest.collect();
        if rest.is_empty() { Err(wrong()) } else { Ok(Self { what, is_load, rest }) }
    }
}

impl Failure {
    fn in_file(self, file: &str) -> Self {
        let status = self.status();
        Failure::new(status, format!("{file}: {self}"))
    }
}
