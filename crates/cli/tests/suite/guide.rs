//! The commands of the guide are run, in an empty directory, and show what it says.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use std::path::Path;
use std::process::Command;

use crate::sandbox::Sandbox;
use crate::transcript::{commands, matches};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

fn run(page: &str) {
    let sandbox = Sandbox::new(&format!("guide-{page}"));
    let text = std::fs::read_to_string(Path::new(GUIDE).join(page)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (command, wanted) in commands(&text) {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("({command}) 2>&1")).env("PATH", &path);
        let output = shell.current_dir(&sandbox.0).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(matches(&wanted, &shown), "{page}: $ {command}\n{shown}--- expected:\n{wanted}");
        let fails = wanted.lines().any(|line| line.starts_with("error: "));
        assert_eq!(!output.status.success(), fails, "{page}: $ {command}\n{shown}");
    }
}

#[test]
fn the_page_to_start_with() {
    run("start.md");
}

#[test]
fn the_page_on_queries() {
    run("queries.md");
}

#[test]
fn the_page_on_loading() {
    run("loading.md");
}
