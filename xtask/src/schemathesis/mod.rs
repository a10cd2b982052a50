//! `cargo xtask schemathesis`: generated HTTP requests, by the server's own OpenAPI document.
//!
//! A server with a token is asked twice: with names that are generated, too, which are mostly of
//! nothing, and with those of what is there, less the requests that would take it away. What
//! counts is that no answer is an error of the server, and that the document has the status, the
//! media type and the form of each. It has a `default` answer, which any status would be, so that
//! the document is asked by without it.

use std::path::{Path, PathBuf};

use crate::program::{Program, root, target_directory};
use crate::served::{Served, shown};
use crate::{Error, Result};

/// What is installed, into a virtual environment under `target`.
const PACKAGE: &str = "schemathesis==4.32.5";

const CHECKS: &str = "--checks=not_a_server_error,status_code_conformance,\
                      content_type_conformance,response_schema_conformance";

/// What would take away, or shut, what other requests need.
const HARMFUL: [&str; 7] = [
    "removeDatabase",
    "removeTable",
    "removeBucket",
    "removeIndex",
    "setLimits",
    "rollback",
    "commit",
];

/// How many requests are generated for each operation in each of the phases, unless told.
const EXAMPLES: &str = "20";

const OPTIONS: [&str; 2] = ["--examples", "--seed"];

/// Starts a server, asks it, and stops it. `--examples N` and `--seed N` go to schemathesis.
///
/// # Errors
/// When schemathesis cannot be had, or an answer is not one of the document's.
pub fn run(arguments: &[String]) -> Result<()> {
    let (examples, seed) = parse(arguments)?;
    let directory = target_directory("schemathesis");
    let python = install(&directory)?;
    Program::cargo(&["build", "--quiet", "--locked", "--bin=esker"]).run()?;
    for is_named in [false, true] {
        let mut given = vec![format!("--max-examples={examples}")];
        given.extend(seed.as_ref().map(|seed| format!("--seed={seed}")));
        ask(&directory, &python, is_named, &given)?;
    }
    println!("schemathesis: no error of the server, no answer that is not in its document");
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(String, Option<String>)> {
    let (mut examples, mut seed) = (EXAMPLES.to_owned(), None);
    for pair in arguments.chunks(2) {
        match pair {
            [option, value] if OPTIONS.contains(&option.as_str()) => {
                if value.parse::<u32>().is_err() {
                    let message = format!("{option} expects a number, found {value:?}");
                    return Err(Error::usage(message));
                }
                match option.as_str() {
                    "--examples" => examples.clone_from(value),
                    _ => seed = Some(value.clone()),
                }
            }
            _ => {
                let expected = OPTIONS.map(|option| format!("{option} N")).join(" and ");
                return Err(Error::usage(format!("expected {expected}, found {pair:?}")));
            }
        }
    }
    Ok((examples, seed))
}

/// The Python that has schemathesis; installed when it is not there.
fn install(directory: &Path) -> Result<PathBuf> {
    let environment = directory.join("python");
    let python = environment.join("bin").join("python");
    let program = shown(&python);
    if Program::new(&program).arguments(&["-c", "import schemathesis"]).succeeds() {
        return Ok(python);
    }
    Program::new("python3").arguments(&["-m", "venv", &shown(&environment)]).run()?;
    Program::new(&program).arguments(&["-m", "pip", "install", "--quiet", PACKAGE]).run()?;
    Ok(python)
}

/// One run beside a server of its own.
fn ask(directory: &Path, python: &Path, is_named: bool, given: &[String]) -> Result<()> {
    let served = Served::start(&directory.join("database"))?;
    let token = served.token("schemathesis")?;
    let base = served.address();
    let (sources, document) = (root().join("xtask/src/schemathesis"), directory.join("api.json"));
    Program::new(&shown(python))
        .arguments(&[&shown(&sources.join("prepare.py")), base, &token, &shown(&document)])
        .run()?;
    let mut program = Program::new(&shown(python)).arguments(&["-m", "schemathesis.cli"]);
    if is_named {
        program = program.arguments(&["--config-file", &shown(&sources.join("named.toml"))]);
    }
    program = program
        .arguments(&["run", &shown(&document), "--url", base, CHECKS])
        .arguments(&["--header", &format!("Authorization: Bearer {token}")])
        .arguments(&["--request-timeout=20", "--generation-database=none", "--no-color"])
        .arguments(&["--continue-on-failure", "--warnings=off"])
        .arguments(given)
        .directory(directory);
    if is_named {
        program = program.arguments(&HARMFUL.map(|id| format!("--exclude-operation-id={id}")));
    }
    program.run()?;
    served.stop()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_come_in_any_order_and_have_numbers() {
        assert_eq!(parse(&[]).unwrap(), ("20".to_owned(), None));
        let given = parse(&words("--seed 7 --examples 3")).unwrap();
        assert_eq!(given, ("3".to_owned(), Some("7".to_owned())));
        for bad in ["--seed", "--seed x", "--example 3", "3"] {
            assert_eq!(parse(&words(bad)).unwrap_err().kind(), ErrorKind::Usage, "{bad}");
        }
    }
}
