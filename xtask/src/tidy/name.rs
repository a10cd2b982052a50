//! Banned names of files and of things declared, each with what to say instead.

use super::lexer::Token;
use super::{Project, Source, Violation};

/// Words that no file or directory of sources may have in its name: they say nothing about what is
/// inside.
const FILES: &[(&str, &str)] = &[
    ("util", "the noun that the file defines"),
    ("utils", "the noun that the file defines"),
    ("utility", "the noun that the file defines"),
    ("utilities", "the noun that the file defines"),
    ("helper", "the noun that the file defines"),
    ("helpers", "the noun that the file defines"),
    ("misc", "one file per noun"),
    ("common", "the noun that the file defines"),
    ("stuff", "the noun that the file defines"),
    ("tmp", "`temporary` and what is"),
    ("temp", "`temporary` and what is"),
];

/// Words that no name declared in a source may contain.
const WORDS: &[(&str, &str)] = &[
    ("mgr", "what it manages, as a noun"),
    ("idx", "`index`, or `position` or `row`"),
    ("cnt", "`count`"),
    ("num", "`count`, or `_number` for a number that names something"),
    ("tbl", "`table`"),
    ("ctx", "`context`, or what it holds"),
    ("txn", "`transaction`"),
    ("tmp", "`temporary`, or what it holds"),
    ("seg", "`segment`"),
    ("col", "`column`"),
    ("cols", "`columns`"),
    ("val", "`value`"),
    ("vals", "`values`"),
    ("msg", "`message`"),
    ("hdr", "`header`"),
    ("stmt", "`statement`"),
    ("cfg", "`options`"),
    ("prev", "`previous`"),
    ("pos", "`position`"),
    ("cur", "`current`, or `cursor`"),
    ("util", "the noun that it is"),
    ("utils", "the noun that it is"),
    ("helper", "the noun that it is"),
    ("misc", "what it is"),
];

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let files = project.files().filter_map(|(path, _)| check_path(path));
    files.chain(project.sources().flat_map(|source| check_source(&source))).collect()
}

fn check_path(path: &str) -> Option<Violation> {
    let stem = path.strip_suffix(".rs")?;
    let words = stem.split(['/', '_', '-']);
    words.rev().find_map(|word| {
        let instead = banned(FILES, word).or_else(|| banned(WORDS, word))?;
        let message = format!("file name contains `{word}`, expected {instead}");
        Some(Violation::new(path, 0, message))
    })
}

fn check_source(source: &Source<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in declared(&source.code()) {
        for word in words(name.text) {
            if let Some(instead) = banned(WORDS, &word) {
                let message = format!("`{}` contains `{word}`, expected {instead}", name.text);
                found.push(Violation::new(source.path, name.line, message));
            }
        }
    }
    found
}

fn banned(list: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    list.iter().find(|(banned, _)| *banned == word).map(|(_, instead)| *instead)
}

/// The words that declare the name after them.
const DECLARING: &[&str] = &[
    "fn", "let", "mut", "struct", "enum", "union", "trait", "mod", "const", "static", "type", "for",
];

/// The names that a source declares: after a declaring keyword, or before a single `:`, as fields
/// and parameters are. A name that a library chose is used here, not declared, and so never found.
#[must_use]
pub fn declared<'a>(code: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate().filter(|(_, token)| token.is_word()) {
        let before = at.checked_sub(1).and_then(|at| code.get(at));
        let after = |n: usize| code.get(at + n).is_some_and(|next| next.is(":"));
        let keyword = before.is_some_and(|b| DECLARING.iter().any(|word| b.is(word)));
        let closure = before.is_some_and(|b| b.is("|"));
        let path = before.is_some_and(|b| b.is(":"));
        if keyword || closure || (after(1) && !after(2) && !path) {
            found.push(*token);
        }
    }
    found
}

/// `rowIndex`, `RowIndex` and `row_index` as `row`, `index`.
fn words(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in name.split('_') {
        let (mut word, mut lower) = (String::new(), false);
        for c in part.chars() {
            if c.is_uppercase() && lower {
                found.push(std::mem::take(&mut word));
            }
            lower = c.is_lowercase() || c.is_ascii_digit();
            word.extend(c.to_lowercase());
        }
        found.push(word);
    }
    found
}
