//! Words that prose does not use: archaic ones, and turns that make a reader stop.

use super::module_tree::ModuleTree;
use super::product::Product;
use super::{Project, statistics};
use std::fmt::Write;

/// Archaic words and turns, in small letters; words between them are compared whole.
const ARCHAIC: [&str; 30] = [
    "whoever",
    "whomever",
    "whom",
    "nobody",
    "told",
    "tells of",
    "asked",
    "lest",
    "likewise",
    "stands at",
    "stand at",
    "else be",
    "would else",
    "hitherto",
    "thereof",
    "therein",
    "thereupon",
    "thereby",
    "whence",
    "hence",
    "wherein",
    "whereof",
    "upon",
    "whatsoever",
    "henceforth",
    "shall",
    "ought",
    "nought",
    "be it",
    "are told",
];

/// A line of prose with such a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchaicLine {
    /// Its number, from 1.
    pub line: usize,
    /// What was found.
    pub word: &'static str,
}

/// The lines of a product's comments with an archaic word.
#[must_use]
pub fn archaic_lines(product: &Product<'_>) -> Vec<ArchaicLine> {
    let comments = product.tokens.iter().filter(|token| token.is_comment());
    let lines = comments.flat_map(|comment| (comment.line..).zip(comment.text.lines()));
    lines.filter_map(|(line, text)| Some(ArchaicLine { line, word: archaic(text)? })).collect()
}

/// The first archaic word of a line.
#[must_use]
pub fn archaic(line: &str) -> Option<&'static str> {
    let words: Vec<_> = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let spaced = format!(" {} ", words.join(" "));
    ARCHAIC.iter().find(|turn| spaced.contains(&format!(" {turn} "))).copied()
}

/// Each such line of the product, as `file:line: word`.
#[must_use]
pub fn report(project: &Project) -> String {
    let mut text = String::new();
    for (_, root) in statistics::roots(project) {
        for file in ModuleTree::load(project, &root).files() {
            for found in archaic_lines(&file.product) {
                _ = writeln!(text, "{}:{}: {}", file.path, found.line, found.word);
            }
        }
    }
    text
}
