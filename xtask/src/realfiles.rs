//! `cargo xtask realfiles [--make] [--program ESKER] DIRECTORY`: loads every file of a directory and
//! shows what became of each, beside what DuckDB makes of it where its Python package is installed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Program, root};
use crate::{Error, ErrorKind, Result};

#[path = "../../crates/cli/tests/real_files/mod.rs"]
mod real_files;

use real_files::{Kind, Outcome as Expected};

/// What DuckDB makes of files: for each a line of name, rows, and types or what is wrong.
const DUCKDB: &str = r#"
import sys
try:
    import duckdb
except ImportError:
    sys.exit(0)
for path in sys.stdin.read().split("\n"):
    name = path.removesuffix(".gz").removesuffix(".zst").lower()
    json = name.endswith((".json", ".geojson", ".ndjson", ".jsonl"))
    parquet = name.endswith(".parquet")
    reader = "read_json_auto" if json else "read_parquet" if parquet else "read_csv_auto"
    quoted = path.replace("'", "''")
    try:
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE t AS SELECT * FROM {reader}('{quoted}')")
        rows = connection.execute("SELECT count(*) FROM t").fetchone()[0]
        fields = connection.execute("SELECT name, type FROM pragma_table_info('t')").fetchall()
        shown = ", ".join(f"{name} {kind}" for name, kind in fields)
    except Exception as error:
        rows, shown = "-", str(error)
    shown = " ".join(shown.split())[:200]
    print(path, rows, shown, sep="\t", flush=True)
"#;

/// What became of a file: its rows, if it loaded, and its fields or the reason.
type Outcome = (Option<u64>, String);

/// Loads every file of a directory; with `--make`, makes it first, with files of every kind that
/// the tests know.
///
/// # Errors
/// When the arguments are others, the program does not build, or the directory cannot be read.
pub fn run(arguments: &[String]) -> Result<()> {
    let (mut makes, mut program, mut directory) = (false, None, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--make" => makes = true,
            "--program" => program = rest.next().map(PathBuf::from),
            other if !other.starts_with('-') && directory.is_none() => {
                directory = Some(PathBuf::from(other));
            }
            _ => return Err(usage()),
        }
    }
    let directory = directory.ok_or_else(usage)?;
    if makes {
        make(&directory).map_err(|e| failed(&directory, &e))?;
    }
    let program = match program {
        Some(program) => program,
        None => {
            Program::cargo(&["build", "--quiet", "--locked", "--bin", "esker"]).run()?;
            root().join("target/debug/esker")
        }
    };
    let files = files(&directory).map_err(|e| failed(&directory, &e))?;
    let duckdb = duckdb(&files)?;
    let mut only_there = Vec::new();
    let kinds = real_files::kinds();
    for file in &files {
        let name = file.strip_prefix(&directory).unwrap_or(file).display().to_string();
        let found = load(&program, file)?;
        println!("{name}\n  esker   {}", shown(&found));
        if let Some(other) = duckdb.get(file) {
            println!("  duckdb  {}", shown(other));
            if found.0.is_none() && other.0.is_some() {
                let kind = kinds.iter().find(|kind| kind.name == name);
                let refused = |kind: &Kind| matches!(kind.outcome, Expected::Refused(_));
                let known = if kind.is_some_and(refused) { ", as documented" } else { "" };
                only_there.push(format!("{name}{known}: {}", found.1));
            }
        }
    }
    println!("\n{} files; DuckDB alone loads {}", files.len(), only_there.len());
    only_there.iter().for_each(|line| println!("  {line}"));
    Ok(())
}

fn usage() -> Error {
    Error::usage("expected [--make] [--program ESKER] DIRECTORY")
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::NotStarted, format!("cannot use {}: {error}", path.display()))
}

fn make(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for kind in real_files::kinds() {
        std::fs::write(directory.join(kind.name), kind.bytes)?;
    }
    Ok(())
}

/// The files of a directory, and of those in it, by name.
fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Loads a file into a database of its own, with what a kind of that name is given.
fn load(program: &Path, file: &Path) -> Result<Outcome> {
    let database = std::env::temp_dir().join(format!("esker-realfiles-{}", std::process::id()));
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let kind = real_files::kinds().into_iter().find(|kind| kind.name == name);
    let given = kind.as_ref().map_or(&[][..], |kind| kind.arguments);
    let mut command = Command::new(program);
    command.arg("load").arg(&database).arg("t").arg(file).args(given);
    let output = command.output().map_err(|e| failed(program, &e))?;
    // There is none where the load failed early.
    let _ = std::fs::remove_dir_all(&database);
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Ok((None, error.lines().next().unwrap_or_default().to_owned()));
    }
    // A load that begins again shows its fields twice; the last are those of the table.
    let table = text.rfind("table t, ").and_then(|at| text.get(at..)).unwrap_or_default();
    let lines =
        |start: &'static str| table.lines().filter_map(move |line| line.strip_prefix(start));
    let mut shown = lines("  ").collect::<Vec<_>>().join(" ");
    for note in lines("read as CSV: ").chain(lines("note: ")) {
        let _ = write!(shown, "; {note}");
    }
    let rows = lines("loaded ").next().and_then(|line| line.split(' ').next());
    Ok((rows.and_then(|rows| rows.replace(',', "").parse().ok()), shown))
}

/// What DuckDB makes of files; nothing where it is not installed.
fn duckdb(files: &[PathBuf]) -> Result<BTreeMap<PathBuf, Outcome>> {
    use std::process::Stdio;
    let mut command = Command::new("python3");
    command.args(["-c", DUCKDB]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return Ok(BTreeMap::new()) };
    let paths: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    if let Some(mut input) = child.stdin.take() {
        use std::io::Write as _;
        // Without the package it ends before it reads.
        let _ = input.write_all(paths.join("\n").as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| failed(Path::new("python3"), &e))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parse = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (path, rows, shown) = (parts.next()?, parts.next()?, parts.next()?);
        Some((PathBuf::from(path), (rows.parse().ok(), shown.to_owned())))
    };
    Ok(text.lines().filter_map(parse).collect())
}

fn shown((rows, text): &Outcome) -> String {
    match rows {
        Some(rows) => format!("{rows} rows: {text}"),
        None => format!("refused: {text}"),
    }
}
