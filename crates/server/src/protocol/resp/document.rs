//! `docs/reference/resp.md` and the table of commands are one.

use std::fmt::Write;

use super::table::{COMMANDS, Command, find, named};

/// The names of a command as they are sent.
pub(super) fn words(command: &Command) -> String {
    command.name.replace('|', " ").to_uppercase()
}

fn rows() -> String {
    let mut text = String::from("| command | meaning |\n|---|---|\n");
    for command in COMMANDS.iter().flat_map(Command::with_subcommands) {
        let does_nothing = !command.subcommands.is_empty() && command.arity < -1;
        if does_nothing {
            continue;
        }
        let syntax = format!("{} {}", words(command), command.syntax).replace('|', "\\|");
        writeln!(text, "| `{}` | {} |", syntax.trim_end(), command.meaning).unwrap();
    }
    text
}

#[allow(clippy::disallowed_methods, reason = "a document of the project, not of a database")]
#[test]
fn the_reference_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/resp.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let start = written.find("| command |").unwrap_or(written.len());
    let end = start + written[start..].find("\n\n").map_or(written.len() - start, |at| at + 1);
    let expected = format!("{}{}{}", &written[..start], rows(), &written[end..]);
    if written != expected && std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, &expected).unwrap();
        return;
    }
    assert!(written == expected, "run again with UPDATE_DOCUMENTS=1 to write {path}");
}

#[test]
fn commands_are_found_by_name() {
    for (position, command) in COMMANDS.iter().enumerate() {
        let name = command.name.to_uppercase();
        let found = find(name.as_bytes()).map(|(position, _)| position);
        assert_eq!(found, Some(position), "{name}: sorted by name");
    }
    assert!(find(b"nothing").is_none() && find(&[b'a'; 99]).is_none());
    for command in COMMANDS.iter().flat_map(Command::with_subcommands) {
        let found = named(command.name.to_uppercase().as_bytes()).map(|found| found.name);
        assert_eq!(found, Some(command.name));
    }
    assert!(named(b"client").is_some_and(|client| !client.subcommands.is_empty()));
    assert!(
        ["client|", "client|nothing", "get|x"]
            .iter()
            .all(|name| { named(name.as_bytes()).is_none() })
    );
}
