//! The shell in a terminal: the recorded session of `docs/guide/shell.md`, line by line, and what
//! only a terminal shows.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test"
)]

use std::process::Command;

use crate::sandbox::Sandbox;
use crate::sandbox::served::Served;
use crate::terminal::Terminal;
use crate::transcript::{blocks, matches};

const GUIDE: &str = include_str!("../../../../docs/guide/shell.md");
const PROMPT: &str = "esker>";
/// What the lines begin with in which more of a statement is typed.
const MORE: [&str; 4] = ["     > ", "    '> ", "    (> ", "esker*> "];

/// The program in a directory, with a history of its own.
fn esker(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_esker"));
    command.args(arguments).current_dir(&sandbox.0);
    command.env("XDG_STATE_HOME", sandbox.0.join("state")).env("NO_COLOR", "1");
    command.env_remove("ESKER_TOKEN").env_remove("ESKER_DATABASE").env("PAGER", "cat");
    command
}

fn has_terminals() -> bool {
    let found = Command::new("setsid").arg("--version").output();
    let is_here = found.is_ok_and(|output| output.status.success());
    if !is_here {
        println!("left out: there is no setsid here, which gives a program a terminal");
    }
    is_here
}

/// What is typed in a session: lines behind a prompt, and those in which a statement goes on.
fn typed(session: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in session.lines() {
        if let Some(more) = MORE.iter().find_map(|prompt| line.strip_prefix(prompt)) {
            match line.starts_with("esker*") {
                true => found.push(more.to_owned()),
                false => {
                    let last = found.last_mut().unwrap();
                    last.push('\r');
                    last.push_str(more);
                }
            }
        } else if let Some(first) = line.strip_prefix("esker> ") {
            found.push(first.to_owned());
        }
    }
    found
}

#[test]
fn the_recorded_session_shows_what_the_guide_says() {
    if !has_terminals() {
        return;
    }
    let sandbox = Sandbox::new("shell-guide");
    sandbox.write("prices.csv", "item,price\ntea,3.5\nsalt,0.9\n");
    for (kind, block) in blocks(GUIDE) {
        if kind != "terminal" {
            continue;
        }
        let (first, session) = block.split_once('\n').unwrap();
        let arguments: Vec<&str> = first.trim_start_matches("$ esker").split_whitespace().collect();
        let mut terminal = Terminal::start(&esker(&sandbox, &arguments));
        terminal.wait(PROMPT);
        let lines = typed(session);
        for (number, line) in lines.iter().enumerate() {
            terminal.keys(&format!("{line}\r"));
            if number + 1 < lines.len() {
                let is_within = lines[..=number].iter().rev().find_map(|line| {
                    match line.trim_end_matches(';') {
                        "BEGIN" => Some(true),
                        "COMMIT" | "ROLLBACK" => Some(false),
                        _ => None,
                    }
                });
                terminal.wait(if is_within == Some(true) { "esker*>" } else { PROMPT });
            }
        }
        let shown = terminal.wait("");
        assert!(terminal.succeeded(), "{shown}");
        let fits = matches(session.trim_end(), shown.trim_end());
        assert!(fits, "the guide:\n{session}\nthe terminal:\n{shown}");
    }
}

#[test]
fn an_open_quote_is_in_the_prompt_and_history_outlives_a_closed_window() {
    if !has_terminals() {
        return;
    }
    let sandbox = Sandbox::new("shell-prompt");
    let mut terminal = Terminal::start(&esker(&sandbox, &[]));
    terminal.wait(PROMPT);
    terminal.keys("SELECT 'tea\r");
    terminal.wait("    '>");
    terminal.keys("pot' AS what;\r");
    let shown = terminal.wait(PROMPT);
    assert!(shown.contains("tea\\npot") && shown.contains("(1 row)"), "{shown}");
    terminal.hang_up();
    let history = sandbox.read("state/esker/history");
    assert!(history.contains("SELECT 'tea"), "{history}");
}

#[test]
fn ctrl_c_ends_what_is_watched() {
    if !has_terminals() {
        return;
    }
    let sandbox = Sandbox::new("shell-watch");
    let mut terminal = Terminal::start(&esker(&sandbox, &[]));
    terminal.wait(PROMPT);
    terminal.keys("SELECT 41 + 1 AS n \\watch 0.01\r");
    terminal.wait_for("42");
    terminal.keys("\x03");
    terminal.wait(PROMPT);
    terminal.keys("exit\r");
    terminal.wait("");
    assert!(terminal.succeeded());
}

#[test]
fn the_shell_asks_the_server_that_has_the_directory_open() {
    if !has_terminals() {
        return;
    }
    let sandbox = Sandbox::new("shell-served");
    let _served = Served::start(&sandbox, "1s");
    let mut terminal = Terminal::start(&esker(&sandbox, &["served"]));
    let shown = terminal.wait(PROMPT);
    assert!(shown.contains("(esker serve, since ") && shown.contains("which is asked"), "{shown}");
    terminal.keys("CREATE TABLE t (n i64);\r");
    terminal.wait(PROMPT);
    terminal.keys("\\conninfo\r");
    let shown = terminal.wait(PROMPT);
    assert!(shown.contains("of the server at esker://127.0.0.1:"), "{shown}");
    let (code, error) = sandbox.fails(&["sql", "served", "SELECT * FROM t"]);
    assert!(code == 4 && error.contains("(esker serve, since "), "{error}");
    assert!(error.contains("serves it at esker://127.0.0.1:"), "{error}");
}

#[test]
fn who_has_a_directory_open_is_said() {
    if !has_terminals() {
        return;
    }
    let sandbox = Sandbox::new("shell-locked");
    let mut terminal = Terminal::start(&esker(&sandbox, &["db"]));
    let shown = terminal.wait(PROMPT);
    assert!(shown.contains("made the database db"), "{shown}");
    let (code, error) = sandbox.fails(&["sql", "db", "SELECT 1"]);
    assert!(code == 4 && error.contains("db is open in process "), "{error}");
    assert!(error.contains("(esker sql, since ") && error.contains("end it"), "{error}");
    terminal.keys("\\q\r");
    terminal.wait("");
    sandbox.ok(&["sql", "db", "SELECT 1"]);
}

#[test]
fn a_script_without_a_terminal_may_have_commands() {
    let sandbox = Sandbox::new("shell-script");
    let script = "-- a script\n\\pset format json\nCREATE TABLE t (n i64);\nINSERT INTO t\n\
                  VALUES (1);\n\\dt\nSELECT n FROM t;\nexit\nSELECT 2;\n";
    let output = sandbox.run_with(&["db"], script);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("│ t ") && text.ends_with("[\n{\"n\":1}\n]\n"), "{text}");
    let output = sandbox.run_with(&[], "SELECT 1 AS n;");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "n\n1\n");
    sandbox.write("t.csv", "a\n1\n");
    let (code, error) = sandbox.fails(&["t.csv", "SELECT 1"]);
    assert!(code == 2 && error.contains("not an Esker database, but a file"), "{error}");
}

/// The file was removed first, `/dev/null` as well, and another made in its place.
#[cfg(unix)]
#[test]
fn answers_go_into_a_file_or_device_that_is_there() {
    let sandbox = Sandbox::new("shell-output");
    sandbox.write("answers.csv", "what was there before, and is longer");
    for (link, target) in [("link.csv", "answers.csv"), ("nothing", "/dev/null")] {
        std::os::unix::fs::symlink(target, sandbox.0.join(link)).unwrap();
    }
    let script = "\\o nothing\nSELECT 1 AS n;\n\\o link.csv\nSELECT 2 AS n;\n\\o\n\
                  SELECT 3 AS n \\g nothing\nSELECT 4 AS n;\n";
    let output = sandbox.run_with(&[], script);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "n\n4\n");
    assert_eq!(sandbox.read("answers.csv"), "n\n2\n");
    for link in ["link.csv", "nothing"] {
        assert!(sandbox.0.join(link).is_symlink(), "{link}");
    }
}

#[test]
fn colours_honour_no_color_and_color() {
    let sandbox = Sandbox::new("shell-colours");
    let ask = |more: &[&str]| {
        let question = ["sql", "--format", "table"];
        sandbox.ok_with(&[&question[..], more].concat(), "SELECT NULL AS n;")
    };
    assert!(ask(&["--color", "always"]).contains("\x1b[2mNULL\x1b[0m"));
    assert!(!ask(&[]).contains('\x1b') && !ask(&["--color=never"]).contains('\x1b'));
    let may = |variables: &[(&str, &str)]| {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        esker_cli::may_color(|name| find(name).map(|(_, value)| (*value).to_owned()))
    };
    assert!(may(&[("TERM", "xterm")]) && may(&[("NO_COLOR", "")]));
    assert!(!may(&[("NO_COLOR", "0")]) && !may(&[("TERM", "dumb")]));
}

#[test]
fn the_last_statement_is_edited_and_words_are_completed() {
    if !has_terminals() {
        return;
    }
    let sandbox = Sandbox::new("shell-edit");
    let mut command = esker(&sandbox, &[]);
    command.env_remove("VISUAL").env("EDITOR", "sed -i s/41/42/");
    let mut terminal = Terminal::start(&command);
    terminal.wait(PROMPT);
    terminal.keys("SELECT 41 AS n;\r");
    terminal.wait(PROMPT);
    terminal.keys("\\e\r");
    terminal.wait("esker> SELECT 42 AS n;");
    terminal.keys("\r");
    let shown = terminal.wait(PROMPT);
    assert!(shown.contains("│ 42 │"), "{shown}");
    terminal.keys("\\conn\t");
    terminal.wait("esker> \\conninfo");
    terminal.keys("\r");
    let shown = terminal.wait(PROMPT);
    assert!(shown.contains("a database in memory"), "{shown}");
}
