//! Who has a database open: what the lock file says.
//!
//! ```text
//! process 4711
//! program esker serve
//! since 1796222400000000
//! address esker://127.0.0.1:7437
//! ```
//!
//! It is for people and for programs that look for a server. Whether a database is open is what
//! the lock says, never this text.

use std::fmt;
use std::path::Path;

use esker_format::ValueRef;
use esker_vfs::{Environment, OpenMode};

use super::LOCK_FILE;
use crate::{Error, ErrorKind};

/// The longest text that is read.
const TEXT_BYTES_MAX: u64 = 4_096;

/// Who has a database open for writing, and how it is reached.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("esker-holder-{}", std::process::id()));
/// use esker::{LockHolder, Options};
///
/// let db = Options::new().program("shop").open(&dir)?;
/// let holder = LockHolder::of(&dir).expect("it is open");
/// assert_eq!((holder.process, holder.program.as_str()), (std::process::id(), "shop"));
/// let refused = Options::new().open(&dir).unwrap_err();
/// assert_eq!(refused.kind(), esker::ErrorKind::Locked);
/// db.close()?;
/// assert_eq!(LockHolder::of(&dir), None);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockHolder {
    /// The number of its process.
    pub process: u32,
    /// What the program calls itself: see [`Options::program`](crate::Options::program).
    pub program: String,
    /// Since when, in microseconds since 1970 by its clock.
    pub since_us: i64,
    /// Where it serves the database, if it does.
    pub address: Option<String>,
}

impl LockHolder {
    /// This process, from now on.
    pub(crate) fn this(environment: &Environment, program: Option<&str>) -> Self {
        let named = || {
            let path = std::env::current_exe().ok()?;
            Some(path.file_name()?.to_string_lossy().into_owned())
        };
        // default: without a name, the number of the process says which it is
        let program = program.map(str::to_owned).or_else(named).unwrap_or_default();
        let (process, since_us) = (std::process::id(), environment.clock.wall_us());
        Self { process, program: one_line(&program), since_us, address: None }
    }

    /// The holder of the database in a directory; `None` when no process has it open for writing,
    /// or it has not said who it is. Without a look at the lock: it may be gone by now.
    #[must_use]
    pub fn of(dir: impl AsRef<Path>) -> Option<Self> {
        Self::read(&Environment::os(), dir.as_ref())
    }

    pub(crate) fn read(environment: &Environment, dir: &Path) -> Option<Self> {
        let file = environment.files.open(&dir.join(LOCK_FILE), OpenMode::Read).ok()?;
        let length = file.len().ok()?.min(TEXT_BYTES_MAX);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        Self::parse(std::str::from_utf8(&bytes).ok()?)
    }

    /// What stands in the lock file.
    pub(crate) fn text(&self) -> String {
        let Self { process, program, since_us, address } = self;
        let mut text = format!("process {process}\nprogram {program}\nsince {since_us}\n");
        if let Some(address) = address {
            text.push_str(&format!("address {}\n", one_line(address)));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
        };
        Some(Self {
            process: value("process")?.parse().ok()?,
            program: value("program")?,
            since_us: value("since")?.parse().ok()?,
            address: value("address"),
        })
    }

    /// Why a directory cannot be opened that this holds, and what can be done.
    pub(crate) fn refusal(&self, dir: &Path) -> Error {
        let dir = dir.display();
        let message = match &self.address {
            Some(address) => format!(
                "{dir} is open in {self}, which serves it at {address}: connect there, or end it"
            ),
            None => format!("{dir} is open in {self}: end it, and try again"),
        };
        Error::new(ErrorKind::Locked, message)
    }
}

/// A text that does not end the line it stands in.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second_us = self.since_us - self.since_us.rem_euclid(1_000_000);
        let since = ValueRef::Timestamp(second_us);
        match self.program.is_empty() {
            true => write!(f, "process {} (since {since} UTC)", self.process),
            false => write!(f, "process {} ({}, since {since} UTC)", self.process, self.program),
        }
    }
}
