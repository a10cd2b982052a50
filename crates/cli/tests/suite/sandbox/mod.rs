//! A directory of its own for one test, and the program run in it.
#![allow(dead_code, reason = "each test uses a part")]

pub mod served;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Tests of one program may give theirs the same name.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The directory; removed at the end.
pub struct Sandbox(pub PathBuf);

impl Sandbox {
    pub fn new(name: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("esker-cli-{name}-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
        command.args(arguments).current_dir(&self.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Who fails early reads nothing.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs what must succeed, with some input; standard output.
    pub fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run_with(arguments, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {}: {error}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what must succeed; standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "")
    }

    /// Runs what must fail; the exit code and standard error.
    pub fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run_with(arguments, "");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?} succeeded");
        (output.status.code().unwrap(), error)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
