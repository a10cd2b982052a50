//! Defaults in place of something that is missing: `unwrap_or` and its kind.
//!
//! Where a value may be missing by design a default is right, and the line says so with
//! `// default: reason`. Where it is missing because an invariant is broken, a default hides the
//! damage: that is an error.

use super::lexer::Token;
use super::module_tree::ModuleTree;
use super::product::Product;
use super::{Project, Violation, statistics};
use std::fmt::Write;

/// Methods that put something in the place of what is missing.
const METHODS: [&str; 5] =
    ["unwrap_or", "unwrap_or_default", "unwrap_or_else", "map_or", "map_or_else"];

/// The calls without a reason on their line, or on the line above.
#[must_use]
pub fn silent_defaults<'a>(product: &Product<'a>) -> Vec<Token<'a>> {
    let code = product.code();
    let calls = code.windows(3).filter_map(|window| match window {
        [dot, name, bracket] if dot.is(".") && bracket.is("(") => Some(*name),
        _ => None,
    });
    let is_silent = |call: &Token<'_>| {
        !product.tokens.iter().any(|token| {
            let is_near = token.line == call.line || token.last_line() + 1 == call.line;
            token.is_comment() && is_near && token.text.contains("default: ")
        })
    };
    calls.filter(|call| METHODS.contains(&call.text)).filter(is_silent).collect()
}

/// Where every default says its reason: what is stored, and what reads it.
const STORAGE: [&str; 4] =
    ["crates/db/src/", "crates/format/src/", "crates/log/src/", "crates/table/src/"];

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let mut found = Vec::new();
    let is_stored = |root: &String| STORAGE.iter().any(|start| root.starts_with(start));
    for (_, root) in statistics::roots(project).into_iter().filter(|(_, root)| is_stored(root)) {
        for file in ModuleTree::load(project, &root).files() {
            for call in silent_defaults(&file.product) {
                let message =
                    format!("`{}` without `// default: reason`: is it an error?", call.text);
                found.push(Violation::new(file.path, call.line, message));
            }
        }
    }
    found
}

/// Each of them, as `file:line: method`.
#[must_use]
pub fn report(project: &Project) -> String {
    let mut text = String::new();
    for (_, root) in statistics::roots(project) {
        for file in ModuleTree::load(project, &root).files() {
            for call in silent_defaults(&file.product) {
                _ = writeln!(text, "{}:{}: {}", file.path, call.line, call.text);
            }
        }
    }
    text
}
