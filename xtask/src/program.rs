//! Other programs, started from the root of the repository.

use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The root of the repository that holds this program's sources.
#[must_use]
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// The path under which cargo puts the output of a special build, so that it does not evict the
/// ordinary one.
#[must_use]
pub fn target_directory(name: &str) -> PathBuf {
    root().join("target").join(name)
}

/// The target triple of this machine, as the compiler names it.
///
/// # Errors
/// When there is no compiler, or it names none.
pub fn host() -> Result<String> {
    let output = Program::new("rustc").arguments(&["--version", "--verbose"]).output()?;
    let text = String::from_utf8_lossy(&output);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::NotStarted, "`rustc --version --verbose` names no host")
    })
}

/// A program with its arguments, not yet started.
#[derive(Debug)]
pub struct Program {
    command: Command,
    shown: String,
}

impl Program {
    /// A program found on the search path.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut command = Command::new(name);
        command.current_dir(root());
        Self { command, shown: name.to_owned() }
    }

    /// `cargo`, of the toolchain that the repository names.
    #[must_use]
    pub fn cargo(arguments: &[&str]) -> Self {
        Self::new("cargo").arguments(arguments)
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<A: AsRef<str>>(mut self, arguments: &[A]) -> Self {
        for argument in arguments {
            self.shown.push(' ');
            self.shown.push_str(argument.as_ref());
            self.command.arg(argument.as_ref());
        }
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.shown = format!("{name}={value:?} {}", self.shown);
        self.command.env(name, value);
        self
    }

    /// A cargo that, on a clean machine, leaves out incremental state: everything is built once
    /// there, and the state costs time and disk.
    #[must_use]
    pub fn without_incremental_state(self) -> Self {
        match std::env::var_os("CI") {
            Some(_) => self.environment("CARGO_INCREMENTAL", "0"),
            None => self,
        }
    }

    /// Starts it in another directory.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Runs it with this program's own input and output, and waits for its end.
    ///
    /// # Errors
    /// `NotStarted` when there is no such program; `Exited` with its code when it is not zero.
    pub fn run(mut self) -> Result<()> {
        eprintln!("$ {}", self.shown);
        let status = self.command.status().map_err(|e| self.not_started(&e))?;
        self.ended(status)
    }

    fn ended(&self, status: ExitStatus) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        Err(Error::new(ErrorKind::Exited(code), format!("`{}` ended with {status}", self.shown)))
    }

    /// Runs it and returns what it wrote, errors last, and how it ended.
    ///
    /// # Errors
    /// `NotStarted` when there is no such program.
    pub fn captured(mut self) -> Result<(Vec<u8>, Result<()>)> {
        let output = self.command.output().map_err(|e| self.not_started(&e))?;
        let mut text = format!("$ {}\n", self.shown).into_bytes();
        text.extend(output.stdout);
        text.extend(output.stderr);
        Ok((text, self.ended(output.status)))
    }

    /// Runs it silently and tells whether it started and succeeded.
    #[must_use]
    pub fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// Runs it and returns what it wrote.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn output(mut self) -> Result<Vec<u8>> {
        let output = self.command.output().map_err(|e| self.not_started(&e))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::new(ErrorKind::Exited(1), format!("`{}`: {text}", self.shown)))
    }

    fn not_started(&self, error: &std::io::Error) -> Error {
        Error::new(ErrorKind::NotStarted, format!("cannot start `{}`: {error}", self.shown))
    }
}
