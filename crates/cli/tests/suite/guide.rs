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
use crate::transcript::{blocks, commands, matches};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

fn run(page: &str) {
    let sandbox = Sandbox::new(&format!("guide-{page}"));
    let text = std::fs::read_to_string(Path::new(GUIDE).join(page)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_esker")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (command, wanted) in commands(&text) {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("({command}\n) 2>&1")).env("PATH", &path);
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

#[test]
fn the_page_on_buckets() {
    run("buckets.md");
}

#[test]
fn the_page_on_transactions() {
    run("transactions.md");
}

#[test]
fn the_page_on_updates() {
    run("updates.md");
}

/// Blocks by their kinds, and the files that have the tests which follow them, by what names the
/// page there.
const FOLLOWED: [(&str, &[(&str, &str)]); 7] = [
    (
        "console",
        &[
            ("crates/cli/tests/suite/guide.rs", "run(\"PAGE\")"),
            ("crates/cli/tests/suite/http_guide.rs", "guide/PAGE\""),
            ("crates/cli/tests/suite/server_guide.rs", "guide/PAGE\""),
            ("crates/cli/tests/suite/streams_guide.rs", "guide/PAGE\""),
            ("crates/cli/tests/suite/changes_guide.rs", "guide/PAGE\""),
        ],
    ),
    (
        "sh",
        &[
            ("crates/cli/tests/suite/http_guide.rs", "guide/PAGE\""),
            ("crates/cli/tests/suite/streams_guide.rs", "guide/PAGE\""),
            ("crates/cli/tests/suite/changes_guide.rs", "guide/PAGE\""),
        ],
    ),
    ("lines", &[("crates/cli/tests/suite/server_guide.rs", "guide/PAGE\"")]),
    ("python", &[("crates/cli/tests/suite/server_guide.rs", "guide/PAGE\"")]),
    ("terminal", &[("crates/cli/tests/suite/shell.rs", "guide/PAGE\"")]),
    ("sql", &[("crates/sql/tests/suite/guide.rs", "guide/PAGE\"")]),
    (
        "rust",
        &[
            ("crates/db/src/lib.rs", "#[doc = include_str!(\"../../../docs/guide/PAGE\")]"),
            ("crates/client/src/lib.rs", "#[doc = include_str!(\"../../../docs/guide/PAGE\")]"),
            ("crates/sql/src/lib.rs", "#[doc = include_str!(\"../../../docs/guide/PAGE\")]"),
        ],
    ),
];
/// Blocks that are forms, and not commands.
const FORMS: [(&str, &str); 2] = [("http.md", "text"), ("http.md", "yaml")];

/// Of the commands on the page on buckets none was run, and nothing said so.
#[test]
fn a_test_follows_every_block_of_the_guide() {
    let root = Path::new(GUIDE).join("../..");
    for entry in std::fs::read_dir(GUIDE).unwrap() {
        let path = entry.unwrap().path();
        let page = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        for (kind, block) in blocks(&text) {
            if FORMS.contains(&(page.as_str(), kind)) {
                continue;
            }
            let known = FOLLOWED.iter().find(|(known, _)| *known == kind);
            let (_, tests) = known.unwrap_or_else(|| panic!("{page}: no test of {kind}\n{block}"));
            let is_followed = tests.iter().any(|(file, name)| {
                let test = std::fs::read_to_string(root.join(file)).unwrap();
                test.contains(&name.replace("PAGE", &page))
            });
            assert!(is_followed, "{page}: no test follows {kind}\n{block}");
        }
    }
}
