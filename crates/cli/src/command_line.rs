//! What is put into a command line before it is read.
//!
//! | what was given | what is read |
//! |---|---|
//! | `esker`, `esker DB …` | `esker sql`, `esker sql DB …`: the shell |
//! | `--connect ADDRESS` | the address, where the command takes a directory |
//! | `esker help` | `esker --help` |

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::CommandFactory;
use esker_format::suggest::did_you_mean;

use crate::arguments::Arguments;
use crate::failure::{Failure, Result};
use crate::remote::SCHEMES;

const CONNECT: &str = "--connect";
/// Options of the program itself that take a value.
const WITH_VALUE: [&str; 1] = ["--color"];
/// Options that are answered without a command.
const ALONE: [&str; 4] = ["--help", "-h", "--version", "-V"];

/// The arguments as they are read, the program's name first.
///
/// # Errors
/// When `--connect` has no address, or comes twice.
pub(crate) fn complete(arguments: Vec<OsString>) -> Result<Vec<OsString>> {
    let (mut placed, address) = take_address(arguments)?;
    name_command(&mut placed, address.is_some());
    let Some(address) = address else { return Ok(placed) };
    let text = address.to_string_lossy();
    let address = match SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
        true => text.into_owned(),
        false => format!("esker://{text}"),
    };
    if let Some(at) = command_place(&placed) {
        // What a command of several does stands behind its name.
        let (command, next) = (placed.get(at), placed.get(at + 1));
        let is = |word: Option<&OsString>, name| word.is_some_and(|word| word == name);
        let is_one_of_several = is(command, OsStr::new("bucket"))
            || is(command, OsStr::new("clock"))
            || is(command, OsStr::new("index")) && is(next, OsStr::new("drop"));
        let place = at + 1 + usize::from(is_one_of_several && next.is_some());
        placed.insert(place, address.into());
    }
    Ok(placed)
}

/// The arguments without `--connect`, and its address.
fn take_address(arguments: Vec<OsString>) -> Result<(Vec<OsString>, Option<OsString>)> {
    let mut placed = Vec::with_capacity(arguments.len() + 1);
    let mut found: Option<OsString> = None;
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            placed.push(argument);
            placed.extend(rest);
            break;
        }
        let value = match text.strip_prefix(CONNECT) {
            Some("") => rest.next(),
            Some(value) => value.strip_prefix('=').map(OsString::from),
            None => None,
        };
        match value {
            None if text == CONNECT => {
                return Err(Failure::usage("--connect: expected an address"));
            }
            None => placed.push(argument),
            Some(_) if found.is_some() => return Err(Failure::usage("--connect comes twice")),
            Some(value) => found = Some(value),
        }
    }
    Ok((placed, found))
}

/// Where the command stands: the first argument that is no option.
fn command_place(arguments: &[OsString]) -> Option<usize> {
    let mut is_value = false;
    arguments.iter().enumerate().skip(1).find_map(|(at, argument)| {
        let text = argument.to_string_lossy();
        let is_option = text.starts_with('-') || is_value;
        is_value = WITH_VALUE.contains(&&*text);
        (!is_option).then_some(at)
    })
}

/// Makes `sql` the command where none is named. A word that is nearly one, and no path, stays to
/// be refused.
fn name_command(arguments: &mut Vec<OsString>, has_address: bool) {
    let is_alone = |argument: &OsString| ALONE.iter().any(|option| argument == option);
    let program = Arguments::command();
    let names: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
    let Some(word) = command_place(arguments).and_then(|at| arguments.get(at)) else {
        if !arguments.iter().any(is_alone) {
            arguments.insert(arguments.len().min(1), "sql".into());
        }
        return;
    };
    let text = word.to_string_lossy();
    if text == "help" && !Path::new("help").exists() {
        *arguments = arguments.iter().take(1).cloned().chain(["--help".into()]).collect();
        return;
    }
    let is_typo = !did_you_mean(&text, names.iter().copied()).is_empty()
        && !has_address
        && !Path::new(word).exists();
    if !names.contains(&&*text) && !is_typo {
        arguments.insert(1, "sql".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = complete(words).unwrap();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn a_path_or_nothing_is_the_shell() {
        for (given, read) in [
            ("esker", "esker sql"),
            ("esker shop", "esker sql shop"),
            ("esker --format csv shop", "esker sql --format csv shop"),
            ("esker --color never sql shop", "esker --color never sql shop"),
            ("esker --color never shop", "esker sql --color never shop"),
            ("esker --timing", "esker sql --timing"),
            ("esker info shop", "esker info shop"),
            ("esker --version", "esker --version"),
            ("esker help", "esker --help"),
            ("esker lod shop t a.csv", "esker lod shop t a.csv"),
            ("esker --connect h:1", "esker sql esker://h:1"),
            ("esker --connect=eskers://h:1 info", "esker info eskers://h:1"),
            ("esker --connect h:1 clock show", "esker clock show esker://h:1"),
            ("esker --connect h:1 index drop t i", "esker index drop esker://h:1 t i"),
        ] {
            assert_eq!(completed(given), read);
        }
    }
}
