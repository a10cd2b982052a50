//! `cargo xtask clients`: clients that others generate of the server's own OpenAPI document.
//!
//! ```text
//!  server ──► document ──► redocly: no error, no warning
//!                 ├──► openapi-python-client ──► mypy --strict ──► calls.py
//!                 ├──► @hey-api/openapi-ts   ──┐
//!                 └──► openapi-typescript    ──┴► tsc --strict ──► hey_calls.ts, fetch_calls.ts
//! ```
//!
//! Each client calls every operation of the document once, in a database of its own, and notes the
//! status that it was answered with. A warning of a generator that it leaves something out fails,
//! and so does an operation that a client does not call. Not a part of `cargo xtask ci`: it
//! installs from the registries of Python and of Node.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Program, root, target_directory};
use crate::served::{Served, failed, shown};
use crate::{Error, ErrorKind, Result};

mod mends;

/// The clients: the name, the file that calls, and what starts it.
const CLIENTS: [&str; 3] = ["openapi-python-client", "hey-api", "openapi-typescript"];

/// Files of the sources that the programs need where they run.
const SOURCES: [&str; 8] = [
    "calls.py",
    "fetch_calls.ts",
    "hey_calls.ts",
    "noted.ts",
    "package.json",
    "python.yaml",
    "requirements.txt",
    "tsconfig.json",
];

/// Statuses by operation, of one client.
type Statuses = BTreeMap<String, String>;

/// Installs, generates, compiles, calls, and prints what was answered.
///
/// # Errors
/// When a generator or a compiler fails or leaves something out, an answer is not the expected
/// one, or an operation was not called.
pub fn run(arguments: &[String]) -> Result<()> {
    if let Some(first) = arguments.first() {
        return Err(Error::usage(format!("clients: expected no arguments, found {first:?}")));
    }
    let place = Place::make(target_directory("clients"))?;
    place.install()?;
    Program::cargo(&["build", "--quiet", "--locked", "--bin=esker"]).run()?;
    let served = Served::start(&place.of("database"))?;
    let token = served.token("clients")?;
    let (document, address) = (place.shown("openapi.json"), served.address());
    let url = format!("{address}/openapi.json");
    Program::new("curl").arguments(&["-sSf", "-o", &document, &url]).run()?;
    place.generate(&document)?;
    place.compile()?;
    place.wait_for_token(address, &token)?;
    let mut answered = Vec::new();
    for client in CLIENTS {
        let target = place.of("called");
        place.call(client, &[address, &token, &shown(&target)])?;
        answered.push(parse(&read(&target)?));
    }
    served.stop()?;
    report(&operations(&read(Path::new(&document))?), &answered)
}

/// The directory that all of it is in.
struct Place(PathBuf);

impl Place {
    fn make(directory: PathBuf) -> Result<Self> {
        fs::create_dir_all(&directory).map_err(|e| failed(&shown(&directory), &e))?;
        Ok(Self(directory))
    }

    fn of(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn shown(&self, name: &str) -> String {
        shown(&self.of(name))
    }

    /// A program that runs there.
    fn program(&self, name: &str, arguments: &[&str]) -> Program {
        Program::new(name).arguments(arguments).directory(&self.0)
    }

    /// A program of the Python there. The generator formats what it makes by another, which it
    /// looks for on the search path.
    fn python(&self, name: &str, arguments: &[&str]) -> Program {
        let programs = self.of("python/bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", shown(&programs));
        self.program(&shown(&programs.join(name)), arguments).environment("PATH", &path)
    }

    /// Copies the sources, and installs what they name unless it is there already.
    fn install(&self) -> Result<()> {
        let sources = root().join("xtask/src/clients");
        let installed = self.of("installed");
        let wanted = ["requirements.txt", "package.json"].map(|name| sources.join(name));
        let wanted = wanted.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?.concat();
        for name in SOURCES {
            let copied = fs::copy(sources.join(name), self.of(name));
            copied.map_err(|e| failed(name, &e))?;
        }
        if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        self.program("python3", &["-m", "venv", "python"]).run()?;
        self.python("pip", &["install", "--quiet", "-r", "requirements.txt"]).run()?;
        self.program("npm", &["install", "--no-package-lock", "--no-audit", "--no-fund"]).run()?;
        fs::write(&installed, wanted).map_err(|e| failed(&shown(&installed), &e))
    }

    fn node(&self, name: &str, arguments: &[&str]) -> Result<()> {
        self.program(&self.shown(&format!("node_modules/.bin/{name}")), arguments).run()
    }

    fn generate(&self, document: &str) -> Result<()> {
        // Warnings are errors of this set of rules.
        self.node("redocly", &["lint", "--extends=recommended-strict", document])?;
        for made in ["esker_http", "hey", "built"] {
            let made = self.of(made);
            if made.exists() {
                fs::remove_dir_all(&made).map_err(|e| failed(&shown(&made), &e))?;
            }
        }
        let python = ["generate", "--path", document, "--config", "python.yaml"];
        let made = ["--output-path", "esker_http", "--meta", "none", "--fail-on-warning"];
        self.python("openapi-python-client", &[&python[..], &made].concat()).run()?;
        mends::apply(&self.of("esker_http"))?;
        self.node("openapi-typescript", &[document, "-o", "schema.d.ts"])?;
        self.node("openapi-ts", &["-i", document, "-o", "hey", "-c", "@hey-api/client-fetch"])
    }

    fn compile(&self) -> Result<()> {
        self.python("mypy", &["--strict", "--follow-imports=silent", "calls.py"]).run()?;
        let (models, calls) = ("esker_http/models", "esker_http/api");
        self.python("mypy", &["--strict", "--follow-imports=silent", models, calls]).run()?;
        self.node("tsc", &["-p", "."])
    }

    /// A server that runs knows a new token within a second.
    fn wait_for_token(&self, address: &str, token: &str) -> Result<()> {
        let (url, header) =
            (format!("{address}/v1/databases"), format!("Authorization: Bearer {token}"));
        let patience = ["--retry", "20", "--retry-delay", "1", "--retry-all-errors"];
        let asked = ["-sSf", "-o", "/dev/null", "-H", &header, &url];
        self.program("curl", &[&patience[..], &asked].concat()).run()
    }

    fn call(&self, client: &str, arguments: &[&str]) -> Result<()> {
        let calling = |file| [&[file][..], arguments].concat();
        match client {
            "openapi-python-client" => self.python("python", &calling("calls.py")).run(),
            "hey-api" => self.program("node", &calling("built/hey_calls.js")).run(),
            _ => self.program("node", &calling("built/fetch_calls.js")).run(),
        }
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| failed(&shown(path), &e))
}

/// Lines of an operation and a status, with a tab between.
fn parse(text: &str) -> Statuses {
    let line = |line: &str| line.split_once('\t').map(|(id, status)| (id.into(), status.into()));
    text.lines().filter_map(line).collect()
}

/// The ids of the operations of a document.
fn operations(document: &str) -> BTreeSet<String> {
    let ids = document.split("\"operationId\":").skip(1);
    ids.filter_map(|rest| rest.split('"').nth(1)).map(str::to_owned).collect()
}

/// Prints what was answered; each client has to have called every operation.
fn report(operations: &BTreeSet<String>, answered: &[Statuses]) -> Result<()> {
    println!("{:<18} {}", "operation", CLIENTS.join("  "));
    let mut missing = Vec::new();
    for operation in operations {
        let mut line = format!("{operation:<18}");
        for (client, statuses) in CLIENTS.iter().zip(answered) {
            let status = statuses.get(operation).map_or("-", String::as_str);
            line += &format!(" {status:<width$}", width = client.len() + 1);
            if status == "-" {
                missing.push(format!("{operation} by {client}"));
            }
        }
        println!("{}", line.trim_end());
    }
    let calls: usize = answered.iter().map(Statuses::len).sum();
    println!(
        "clients: {} operations, {calls} calls by {} clients, {} missing",
        operations.len(),
        CLIENTS.len(),
        missing.len()
    );
    if missing.is_empty() && !operations.is_empty() {
        return Ok(());
    }
    let message = format!("operations that were not called: {}", missing.join(", "));
    Err(Error::new(ErrorKind::CheckFailed, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"get":{"operationId":"index"},"put":{"operationId": "make"}}"#;

    #[test]
    fn operations_are_those_of_the_document() {
        let expected = ["index", "make"].map(str::to_owned);
        assert_eq!(operations(DOCUMENT), BTreeSet::from(expected));
    }

    #[test]
    fn an_operation_that_a_client_does_not_call_is_named() {
        let (operations, all) = (operations(DOCUMENT), parse("index\t200\nmake\t201\n"));
        assert!(report(&operations, &[all.clone(), all.clone(), all.clone()]).is_ok());
        let one = parse("index\t200\n");
        let error = report(&operations, &[all.clone(), one, all]).unwrap_err();
        assert_eq!(error.to_string(), "operations that were not called: make by hey-api");
        assert!(report(&BTreeSet::new(), &[]).is_err(), "a document without operations");
    }
}
