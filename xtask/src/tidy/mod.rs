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
//! | [`old_word`] | names that were given up for the field's terms; no "Likewise" |
//! | [`unfinished`] | no mark of unfinished work, no ignored test |
//! | [`safety`] | unsafe code only where it belongs, and each block explained |
//! | [`reachable`] | no source file that the compiler never sees |
//! | [`manifest`] | dependencies point down; each crate has a short README |
//! | [`circle_limit`] | files that lead back to each other are few |
//! | [`module_order`] | modules within a crate point down a declared list |
//! | [`markdown`] | every link to a local file or heading resolves |
//! | [`changelog`] | its shape |
//! | [`content`] | no large file, no path of somebody's machine |

pub mod changelog;
pub mod circle;
pub mod circle_limit;
pub mod content;
pub mod import;
pub mod length;
pub mod lexer;
pub mod manifest;
pub mod markdown;
pub mod module_order;
pub mod module_tree;
pub mod name;
pub mod old_word;
pub mod product;
pub mod project;
pub mod reachable;
pub mod safety;
pub mod silent_default;
pub mod statistics;
#[cfg(test)]
mod tests;
pub mod unfinished;
pub mod word;

pub use project::{Project, Source, Violation};

use crate::program::root;
use crate::{Error, ErrorKind, Result};

/// A rule: reports what breaks it.
pub type Rule = fn(&Project) -> Vec<Violation>;

/// Every rule.
pub const RULES: &[Rule] = &[
    length::check,
    name::check,
    old_word::check_names,
    old_word::check_likewise,
    unfinished::check,
    safety::check,
    reachable::check,
    manifest::check_layers,
    module_order::check,
    circle_limit::check,
    silent_default::check,
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
/// about the sources instead, with a commit those of that commit; `--circles CRATE` the files of
/// each circle of imports, and `--words` each place with a banned word.
///
/// # Errors
/// When there is a violation, or git cannot list the files.
pub fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let text = match words[..] {
        [] => return check_all(),
        ["--statistics"] => statistics::report(&Project::load(&root())?),
        ["--statistics", commit] => statistics::report(&Project::load_commit(&root(), commit)?),
        ["--circles", name] => statistics::circles_of(&Project::load(&root())?, name),
        ["--words"] => word::report(&Project::load(&root())?),
        ["--defaults"] => silent_default::report(&Project::load(&root())?),
        _ => {
            let expected = "--statistics [COMMIT], --circles CRATE, --words or --defaults";
            return Err(Error::usage(format!("expected no argument, {expected}")));
        }
    };
    print!("{text}");
    Ok(())
}

fn check_all() -> Result<()> {
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
