//! `cargo xtask tidy`: the rules of style that no compiler checks.
//!
//! A rule is a function from the [`Project`] to [`Violation`]s; [`RULES`] lists them all. The
//! project is held in memory, so that a test can write one with a few lines of text and see a rule
//! fire.
//!
//! | module | rules |
//! |---|---|
//! | [`length`] | files of at most 700 lines, functions of 70, lines of 100 columns |
//! | [`name`] | banned names of files and of things declared, each with what to say instead |
//! | [`unfinished`] | no mark of unfinished work, no ignored test |
//! | [`safety`] | unsafe code only where it belongs, and each block explained |
//! | [`reachable`] | no source file that the compiler never sees |
//! | [`manifest`] | dependencies point down; each crate has a short README |
//! | [`markdown`] | every link to a local file or heading resolves |
//! | [`changelog`] | its shape |
//! | [`content`] | no large file, no path of somebody's machine |

pub mod changelog;
pub mod content;
pub mod length;
pub mod lexer;
pub mod manifest;
pub mod markdown;
pub mod name;
pub mod project;
pub mod reachable;
pub mod safety;
pub mod statistics;
#[cfg(test)]
mod tests;
pub mod unfinished;

pub use project::{Project, Source, Violation};

use crate::program::root;
use crate::{Error, ErrorKind, Result};

/// A rule: reports what breaks it.
pub type Rule = fn(&Project) -> Vec<Violation>;

/// Every rule.
pub const RULES: &[Rule] = &[
    length::check,
    name::check,
    unfinished::check,
    safety::check,
    reachable::check,
    manifest::check_layers,
    manifest::check_readmes,
    markdown::check,
    changelog::check,
    content::check_sizes,
    content::check_paths,
];

/// All violations of all rules, sorted by place.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let mut found: Vec<_> = RULES.iter().flat_map(|rule| rule(project)).collect();
    found.sort();
    found.dedup();
    found
}

/// Prints every violation of the repository as `file:line: what`; `--statistics` prints figures
/// about the sources instead.
///
/// # Errors
/// When there is a violation, or git cannot list the files.
pub fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => {}
        [only] if only == "--statistics" => {
            print!("{}", statistics::report(&Project::load(&root())?));
            return Ok(());
        }
        _ => return Err(Error::usage("expected no argument, or --statistics")),
    }
    let project = Project::load(&root())?;
    let found = check(&project);
    for violation in &found {
        println!("{violation}");
    }
    if found.is_empty() {
        println!("tidy: {} files, nothing to say", project.files().count());
        return Ok(());
    }
    Err(Error::new(ErrorKind::CheckFailed, format!("{} violations", found.len())))
}
