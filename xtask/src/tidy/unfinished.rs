//! No mark of unfinished work, and no test that is left out.

use super::lexer::Token;
use super::{Project, Source, Violation};

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// The rule: comments and documents have no such mark, sources no such macro or attribute.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let sources = project.sources().flat_map(|source| check_source(&source));
    let documents = project.texts(&[".md", ".toml", ".sh", ".yml"]);
    let documents = documents.flat_map(|(path, text)| check_lines(path, 1, text));
    sources.chain(documents).collect()
}

fn check_source(source: &Source<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for comment in source.tokens().iter().filter(|token| token.is_comment()) {
        found.extend(check_lines(source.path, comment.line, comment.text));
    }
    for window in source.code().windows(3) {
        if let [first, second, third] = window {
            let message = if (first.is("todo") || first.is("unimplemented")) && second.is("!") {
                format!("`{}!`: finish it, or answer with an error", first.text)
            } else if is_ignore(first, second, third) {
                "ignored test: mend it, or take it out".to_owned()
            } else {
                continue;
            };
            found.push(Violation::new(source.path, first.line, message));
        }
    }
    found
}

fn is_ignore(first: &Token<'_>, second: &Token<'_>, third: &Token<'_>) -> bool {
    first.is("#") && second.is("[") && third.is("ignore")
}

fn check_lines(path: &str, first: usize, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (line, text) in (first..).zip(text.lines()) {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        for mark in words.filter(|word| MARKS.contains(word)) {
            let message = format!("`{mark}`: finish it, or describe the limit where users read it");
            found.push(Violation::new(path, line, message));
        }
    }
    found
}
