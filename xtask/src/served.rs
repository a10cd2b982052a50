//! A server of the program that was built, over an empty database, on a free port.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::{Program, target_directory};
use crate::{Error, ErrorKind, Result};

/// A server; killed when it is not stopped.
#[derive(Debug)]
pub struct Served {
    process: Child,
    database: PathBuf,
    address: String,
}

impl Served {
    /// Starts it, over a database in place of one that is there, and waits until it listens.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it listens.
    pub fn start(database: &Path) -> Result<Self> {
        if database.exists() {
            std::fs::remove_dir_all(database).map_err(|e| failed(&shown(database), &e))?;
        }
        let mut command = Command::new(esker());
        command.arg("serve").arg(database);
        command.args(["--wire-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = command.spawn().map_err(|e| failed("esker serve", &e))?;
        let mut served = Self { process, database: database.to_owned(), address: String::new() };
        let output = served.process.stdout.take();
        let mut lines = output.map(BufReader::new).into_iter().flat_map(BufRead::lines);
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            line.strip_prefix("listening on ").filter(|at| at.contains("://")).map(str::to_owned)
        });
        let ended = || Error::new(ErrorKind::CheckFailed, "esker serve ended before it listened");
        served.address = address.ok_or_else(ended)?;
        Ok(served)
    }

    /// Where it serves HTTP, as `http://HOST:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A new token that may do everything. The server knows it within a second.
    ///
    /// # Errors
    /// When none is made.
    pub fn token(&self, name: &str) -> Result<String> {
        let (database, name) = (shown(&self.database), format!("--name={name}"));
        let made = Program::new(&esker())
            .arguments(&["token", "create", &database, &name, "--scope=admin"])
            .output()?;
        let made = String::from_utf8_lossy(&made).into_owned();
        let token = made.split_whitespace().find(|word| word.starts_with("esk_"));
        let none = || Error::new(ErrorKind::CheckFailed, "esker token create shows no token");
        token.map(str::to_owned).ok_or_else(none)
    }

    /// Stops it as people do; it has to end well.
    ///
    /// # Errors
    /// When it ends otherwise.
    pub fn stop(mut self) -> Result<()> {
        Program::new("kill").arguments(&["-TERM", &self.process.id().to_string()]).run()?;
        let status = self.process.wait().map_err(|e| failed("esker serve", &e))?;
        match status.success() {
            true => Ok(()),
            false => {
                let message = format!("esker serve: expected a clean end, found {status}");
                Err(Error::new(ErrorKind::CheckFailed, message))
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program that was built.
fn esker() -> String {
    shown(&target_directory("debug").join("esker"))
}

/// A path as an argument.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What a file or a program met.
#[must_use]
pub fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::CheckFailed, format!("{what}: {error}"))
}
