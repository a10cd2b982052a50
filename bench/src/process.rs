//! Memory of this process, sizes of directories, child processes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Result;

/// Resident memory of this process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resident {
    /// All of it, pages of mapped files included, which the system can drop at any time.
    pub(crate) all: u64,
    /// What is in no file.
    pub(crate) own: u64,
}

impl Resident {
    pub(crate) fn now() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/self/status")?;
        let find = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
        };
        let missing = || "no memory figures in /proc/self/status".to_owned();
        let own = find("RssAnon:").ok_or_else(missing)? + find("RssShmem:").unwrap_or(0);
        Ok(Self { all: find("VmRSS:").ok_or_else(missing)?, own })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        let all = self.all.saturating_sub(before.all);
        Self { all, own: self.own.saturating_sub(before.own) }
    }
}

/// Time on the CPU since some moment: what is left of a measure when others use the cores, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    of_thread: bool,
    start: f64,
}

impl CpuTime {
    /// Of this thread from now on.
    pub(crate) fn of_thread() -> Result<Self> {
        Ok(Self { of_thread: true, start: Self::now(true)? })
    }

    /// Of all threads of this process from now on, to a hundredth of a second.
    pub(crate) fn of_process() -> Result<Self> {
        Ok(Self { of_thread: false, start: Self::now(false)? })
    }

    pub(crate) fn seconds(self) -> Result<f64> {
        Ok(Self::now(self.of_thread)? - self.start)
    }

    /// What it says about a rate.
    pub(crate) fn note(rows: f64, seconds: f64) -> String {
        format!("{seconds:.2} s on the CPU, {:.2} M rows for each", rows / seconds / 1e6)
    }

    fn now(of_thread: bool) -> Result<f64> {
        let missing = "no times in /proc/self";
        if of_thread {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
            let first = text.split_whitespace().next().ok_or(missing)?;
            return Ok(first.parse::<f64>()? / 1e9);
        }
        let text = std::fs::read_to_string("/proc/self/stat")?;
        // Behind the name in parentheses: user and system time are the 12th and 13th.
        let (_, fields) = text.rsplit_once(')').ok_or(missing)?;
        let times = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        Ok(times.sum::<std::result::Result<f64, _>>()? / 100.0)
    }
}

/// Files of a directory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files {
    pub(crate) count: u64,
    /// Bytes of disk that they take.
    pub(crate) bytes: u64,
}

impl Files {
    /// Those whose names `wanted` says.
    pub(crate) fn of(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let mut files = Self::default();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(&wanted) {
                // A file may go away meanwhile.
                let Ok(metadata) = entry.metadata() else { continue };
                files.count += 1;
                files.bytes += metadata.blocks() * 512;
            }
        }
        Ok(files)
    }
}

/// This program again, for a task of [`crate::child`].
pub(crate) struct ChildProcess {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl ChildProcess {
    pub(crate) fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg("child").args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("a child process without output")?;
        Ok(Self { child, lines: BufReader::new(output).lines() })
    }

    /// The numbers of its next line.
    pub(crate) fn numbers(&mut self) -> Result<Vec<f64>> {
        let line = self.lines.next().ok_or("a child process ended early")??;
        line.split_whitespace()
            .map(|word| word.parse().map_err(|_| format!("not a number: {line:?}").into()))
            .collect()
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a child process: {status}").into()) }
    }

    /// Ends it at once, as a power switch would.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Only of use when something failed; it may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
