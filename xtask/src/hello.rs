//! `cargo xtask hello`: what a small program costs that keeps a row in a database, here and with
//! other embedded databases: the time to build it from nothing, and its size.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::program::{Program, root};
use crate::{Error, ErrorKind, Result};

/// A program that opens a database, puts a row and reads it back.
struct Hello {
    name: &'static str,
    /// Its dependency; `ROOT` is the root of this repository.
    dependency: &'static str,
    source: &'static str,
}

const PROGRAMS: &[Hello] = &[
    Hello {
        name: "esker",
        dependency: "esker = { path = \"ROOT/crates/db\" }",
        source: r#"
            use esker::{Database, Record};

            #[derive(Debug, PartialEq, Record)]
            struct Word {
                #[esker(key)]
                id: i64,
                word: String,
            }

            fn main() -> esker::Result<()> {
                let db = Database::open("database")?;
                let words = db.create_table_of::<Word>("words")?;
                words.insert(&Word { id: 1, word: "hello".into() })?;
                println!("{:?}", words.get(1)?.map(|row| row.word));
                Ok(())
            }
        "#,
    },
    Hello {
        name: "esker with SQL",
        dependency: "esker = { path = \"ROOT/crates/db\" }\n\
                     esker-sql = { path = \"ROOT/crates/sql\" }",
        source: r#"
            use esker_sql::Sql;

            fn main() -> esker::Result<()> {
                let db = esker::Database::open("database")?;
                db.sql("CREATE TABLE words (id i64 PRIMARY KEY, word text)", ())?;
                db.sql("INSERT INTO words VALUES (?, ?)", (1, "hello"))?;
                let word: Option<String> =
                    db.sql_first("SELECT word FROM words WHERE id = ?", (1,))?;
                println!("{word:?}");
                Ok(())
            }
        "#,
    },
    Hello {
        name: "rusqlite with SQLite",
        dependency: "rusqlite = { version = \"0.41\", default-features = false, \
                     features = [\"bundled\"] }",
        source: r#"
            fn main() -> rusqlite::Result<()> {
                let db = rusqlite::Connection::open("database")?;
                db.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT)", ())?;
                db.execute("INSERT INTO words VALUES (?, ?)", (1, "hello"))?;
                let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
                let word = db.query_row("SELECT word FROM words WHERE id = ?", (1,), read)?;
                println!("{:?}", Some(word));
                Ok(())
            }
        "#,
    },
    Hello {
        name: "redb",
        dependency: "redb = \"4\"",
        source: r#"
            use redb::{Database, ReadableDatabase, TableDefinition};

            const WORDS: TableDefinition<i64, &str> = TableDefinition::new("words");

            fn main() -> Result<(), Box<dyn std::error::Error>> {
                let db = Database::create("database")?;
                let write = db.begin_write()?;
                write.open_table(WORDS)?.insert(1, "hello")?;
                write.commit()?;
                let words = db.begin_read()?.open_table(WORDS)?;
                println!("{:?}", words.get(1)?.map(|word| word.value().to_owned()));
                Ok(())
            }
        "#,
    },
];

/// What a program came to.
struct Cost {
    crates: usize,
    wall_seconds: f64,
    processor_seconds: f64,
    bytes: u64,
    stripped_bytes: u64,
}

/// Builds each program from nothing, optimised, and prints a table.
///
/// # Errors
/// When there are arguments, a program does not build, or it does not read back what it has put.
pub fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        return Err(Error::usage("hello takes no arguments"));
    }
    let directory = std::env::temp_dir().join(format!("esker-hello-{}", std::process::id()));
    let table = measured(&directory);
    std::fs::remove_dir_all(&directory).map_err(|e| failed(&directory, &e))?;
    print!("{}", table?);
    Ok(())
}

fn measured(directory: &Path) -> Result<String> {
    let mut table = format!(
        "{}\n\n| program | crates | seconds | processor seconds | MB as built | \
         MB, `strip = true` |\n|---|---|---|---|---|---|\n",
        machine()
    );
    for (number, hello) in PROGRAMS.iter().enumerate() {
        let cost = cost(hello, &directory.join(number.to_string()))?;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        _ = writeln!(
            table,
            "| {} | {} | {:.0} | {:.0} | {:.1} | {:.1} |",
            hello.name,
            cost.crates,
            cost.wall_seconds,
            cost.processor_seconds,
            mb(cost.bytes),
            mb(cost.stripped_bytes)
        );
    }
    Ok(table)
}

/// What is not on the machine yet is downloaded before the clock starts.
fn cost(hello: &Hello, directory: &Path) -> Result<Cost> {
    write_project(hello, directory)?;
    let target = directory.join("target");
    let cargo = |arguments: &[&str]| {
        Program::cargo(arguments)
            .directory(directory)
            .environment("CARGO_TARGET_DIR", &target.to_string_lossy())
            .environment("CARGO_INCREMENTAL", "0")
    };
    cargo(&["fetch"]).run()?;
    let tree = ["tree", "--offline", "--prefix", "none", "--no-dedupe", "--edges", "normal,build"];
    let tree = cargo(&tree).output()?;
    let tree = String::from_utf8_lossy(&tree);
    let packages: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split(" (").next()).collect();

    let (began, processor) = (Instant::now(), children_seconds());
    cargo(&["build", "--release", "--offline"]).run()?;
    let wall_seconds = began.elapsed().as_secs_f64();
    let processor_seconds = children_seconds() - processor;

    let program = target.join("release").join("hello");
    let answer = Program::new(&program.to_string_lossy()).directory(directory).output()?;
    if answer != b"Some(\"hello\")\n" {
        let message = format!("{}: expected hello, found {answer:?}", hello.name);
        return Err(Error::new(ErrorKind::CheckFailed, message));
    }
    let bytes = size(&program)?;
    // The libraries stay: only the program is linked once more.
    cargo(&["rustc", "--release", "--offline", "--", "-C", "strip=symbols"]).run()?;
    let crates = packages.len();
    Ok(Cost { crates, wall_seconds, processor_seconds, bytes, stripped_bytes: size(&program)? })
}

/// A project with the compiler of this repository, and the versions in its lock file.
fn write_project(hello: &Hello, directory: &Path) -> Result<()> {
    let write = |path: &str, text: &str| {
        let path = directory.join(path);
        std::fs::write(&path, text).map_err(|e| failed(&path, &e))
    };
    let copy = |name: &str| {
        let from = root().join(name);
        std::fs::copy(&from, directory.join(name)).map(drop).map_err(|e| failed(&from, &e))
    };
    let source: PathBuf = directory.join("src");
    std::fs::create_dir_all(&source).map_err(|e| failed(&source, &e))?;
    let dependency = hello.dependency.replace("ROOT", &root().to_string_lossy());
    let manifest = format!(
        "[package]\nname = \"hello\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{dependency}\n"
    );
    write("Cargo.toml", &manifest)?;
    write("src/main.rs", hello.source)?;
    copy("Cargo.lock")?;
    copy("rust-toolchain.toml")
}

fn size(program: &Path) -> Result<u64> {
    std::fs::metadata(program).map(|file| file.len()).map_err(|e| failed(program, &e))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::NotStarted, format!("cannot use {}: {error}", path.display()))
}

/// The processor time of the programs that have ended, as Linux counts it in hundredths.
fn children_seconds() -> f64 {
    // default: without it the table shows 0
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    // User and system time, the 16th and 17th fields; the first two are in front of the `)`.
    fields.skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The processors.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // default: the name is left out where the system does not tell it
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("", |name| name.trim_start_matches([' ', '\t', ':']));
    format!("{cores} processors, {model}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_a_project_of_its_own() {
        let directory = std::env::temp_dir().join(format!("hello-test-{}", std::process::id()));
        for (number, hello) in PROGRAMS.iter().enumerate() {
            let directory = directory.join(number.to_string());
            write_project(hello, &directory).unwrap();
            let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).unwrap();
            assert!(manifest.contains("[workspace]") && !manifest.contains("ROOT"), "{manifest}");
            assert!(size(&directory.join("src/main.rs")).unwrap() > 0);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_time_of_programs_that_have_ended_is_counted() {
        let before = children_seconds();
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(Program::new("sh").arguments(&["-c", count]).succeeds());
        assert!(children_seconds() > before);
    }
}
