//! The commands of the guide are run, in an empty directory, and show what it says.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

mod sandbox;

use std::path::Path;
use std::process::Command;

use sandbox::Sandbox;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

/// The commands of a page with what they show. Commands begin with `$ `.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match line.strip_prefix("$ ") {
                Some(command) => found.push((command.to_owned(), String::new())),
                None => {
                    let shown = &mut found.last_mut().unwrap().1;
                    shown.push_str(line);
                    shown.push('\n');
                }
            },
        }
    }
    assert!(!inside && !found.is_empty());
    found
}

/// Whether a text is a pattern in which `…` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

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
