//! A server of a sandbox, and commands that are asked of a directory and of it.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use crate::sandbox::Sandbox;

/// A server that runs until it is dropped.
pub struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves the directory `served`; and its address.
pub fn serve(sandbox: &Sandbox, more: &[&str]) -> (Served, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(["serve", "served", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]);
    command.args(more).current_dir(&sandbox.0).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut served = Served(command.spawn().unwrap());
    let lines = BufReader::new(served.0.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| line.unwrap());
    let url = lines.find_map(|line| {
        line.strip_prefix("listening on ").filter(|at| !at.starts_with("http")).map(str::to_owned)
    });
    (served, url.unwrap())
}

/// How a command ended, and what it wrote.
pub fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The command with a directory in place of `DB`, and with an address by `--connect`.
pub fn both(sandbox: &Sandbox, url: &str, command: &[&str]) -> (Option<i32>, String, String) {
    let (name, rest) = command.split_first().unwrap();
    let here = sandbox.run_with(&[&[*name, "here"], rest].concat(), "");
    let there = sandbox.run_with(&[&["--connect", url, name], rest].concat(), "");
    assert_eq!(said(&there), said(&here), "{command:?}");
    said(&here)
}
