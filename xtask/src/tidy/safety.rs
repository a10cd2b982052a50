//! Unsafe code only where it belongs, and each piece of it explained.

use super::lexer::Token;
use super::reachable::crate_roots;
use super::{Project, Source, Violation};

/// The crates whose purpose is what the compiler cannot check, and one that calls LMDB, which is
/// not safe to call. They say `deny`, and allow it file by file; all others say `forbid`.
const UNSAFE_CRATES: [&str; 3] = ["crates/arena", "crates/vfs", "bench/kv"];

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let mut found: Vec<_> = project.sources().flat_map(|s| check_source(&s)).collect();
    for (directory, manifest) in project.crates() {
        let word = if UNSAFE_CRATES.contains(&directory) { "deny" } else { "forbid" };
        for root in crate_roots(project, directory, manifest) {
            // Test programs of a crate that must not be unsafe are checked by the rule above.
            let relevant = root.starts_with(&format!("{directory}/src/"));
            let text = project.text(&root).unwrap_or_default();
            if relevant && !has_attribute(&Source { path: &root, text }, word) {
                let message = format!("expected `#![{word}(unsafe_code)]`");
                found.push(Violation::new(&root, 1, message));
            }
        }
    }
    found
}

fn has_attribute(source: &Source<'_>, word: &str) -> bool {
    let expected = ["#", "!", "[", word, "(", "unsafe_code", ")", "]"];
    source
        .code()
        .windows(expected.len())
        .any(|window| window.iter().map(|token| token.text).eq(expected))
}

fn check_source(source: &Source<'_>) -> Vec<Violation> {
    let tokens = source.tokens();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.is("unsafe")) {
        let mut after = tokens.iter().skip(at + 1).filter(|t| !t.is_comment());
        let next = after.next();
        let attribute = next.is_some_and(|next| next.is("("));
        if !attribute && !UNSAFE_CRATES.iter().any(|c| source.path.starts_with(c)) {
            let message = format!("unsafe code outside {}", UNSAFE_CRATES.join(" and "));
            found.push(Violation::new(source.path, token.line, message));
        }
        let block = next.is_some_and(|next| next.is("{") || next.is("impl"));
        if block && !is_explained(&tokens, at) {
            let message = "unsafe code without a `// SAFETY:` comment right above it";
            found.push(Violation::new(source.path, token.line, message));
        }
    }
    found
}

/// True when a comment with `SAFETY:` stands right above the statement that holds token `at`, or
/// inside that statement before it.
fn is_explained(tokens: &[Token<'_>], at: usize) -> bool {
    let before = tokens.get(..at).unwrap_or_default().iter().rev();
    let mut statement = before.take_while(|t| !(t.is(";") || t.is("{") || t.is("}")));
    statement.any(|t| t.is_comment() && t.text.contains("SAFETY:"))
}
