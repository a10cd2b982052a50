//! The build of the tests: which programs it has made, and where each runs.
//!
//! Campaigns run by the programs of this build, too: with its debug assertions, and nothing is
//! built for them. A build of their packages alone would give them other features of their
//! libraries, and build the engine once more.

use crate::program::{Program, root};
use crate::{Error, ErrorKind, Result};
use std::path::Path;

/// What cargo says of the programs that it has built, a line each.
pub struct TestBuild {
    artifacts: Vec<String>,
}

impl TestBuild {
    /// Builds all tests of the workspace, and the programs that they use.
    ///
    /// # Errors
    /// When cargo fails: what does not compile is shown.
    pub fn new() -> Result<Self> {
        let build = ["test", "--workspace", "--locked", "--no-run"];
        let build = || Program::cargo(&build).without_incremental_state();
        build().run()?;
        let told = build().arguments(&["--message-format", "json"]).output()?;
        let is_program = |line: &&str| line.contains(r#""executable":""#);
        let artifacts = String::from_utf8_lossy(&told);
        let artifacts = artifacts.lines().filter(is_program).map(str::to_owned).collect();
        Ok(Self { artifacts })
    }

    /// The programs that are tests, as cargo would run them.
    ///
    /// # Errors
    /// When there is none, or one has no place.
    pub fn tests(&self) -> Result<Vec<Program>> {
        let tests = self.artifacts.iter().filter(|line| is_test(line));
        let tests = tests.map(|line| started(line)).collect::<Result<Vec<_>>>()?;
        match tests.len() {
            0 => Err(Error::new(ErrorKind::NotStarted, "cargo names no program of tests")),
            _ => Ok(tests),
        }
    }

    /// The program that has this file as its root, in the directory of its package; of a program
    /// that has tests of its own, the program.
    ///
    /// # Errors
    /// When cargo names none.
    pub fn program(&self, file: &str) -> Result<Program> {
        let file = format!(r#"/{file}","edition""#);
        let of_file = || self.artifacts.iter().filter(|line| line.contains(&file));
        let found = of_file().find(|line| !is_test(line)).or_else(|| of_file().next());
        let missing =
            || Error::new(ErrorKind::NotStarted, format!("cargo names no program of {file}"));
        started(found.ok_or_else(missing)?)
    }

    /// A campaign of `esker-testkit`, which runs at the root of the repository.
    ///
    /// # Errors
    /// When cargo names no such program.
    pub fn campaign(&self, name: &str, arguments: &[&str]) -> Result<Vec<Program>> {
        let program = self.program(&format!("crates/testkit/src/bin/{name}.rs"))?;
        Ok(vec![program.directory(&root()).arguments(arguments)])
    }
}

/// Whether it is a program of tests.
fn is_test(line: &str) -> bool {
    line.contains(r#""test":true},"features":"#)
}

/// The program of a line, to be started where cargo would start it.
fn started(line: &str) -> Result<Program> {
    let text = |member: &str| {
        let (_, rest) = line.split_once(&format!(r#""{member}":""#))?;
        rest.split('"').next()
    };
    let directory = text("manifest_path").and_then(|manifest| Path::new(manifest).parent());
    let (Some(program), Some(directory)) = (text("executable"), directory) else {
        let message = format!("cargo names no program of a package: {line}");
        return Err(Error::new(ErrorKind::NotStarted, message));
    };
    Ok(Program::new(program)
        .directory(directory)
        .environment("CARGO_MANIFEST_DIR", &directory.to_string_lossy()))
}
