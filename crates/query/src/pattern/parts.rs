//! What every text has that a regular expression is found in.
//!
//! Characters that follow each other in the expression are one part. A class whose characters are
//! one but for their case counts as that character; another class, a choice, and what may be absent
//! end a part. What is repeated at least once has parts of its own.

use esker_format::case::fold;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The most characters of a class that may be cases of one.
const CASES_MAX: usize = 8;

/// The parts of an expression; none when they are unknown.
pub(super) fn parts_of(expression: &str, any_case: bool) -> Vec<String> {
    gathered(expression, any_case, false)
}

/// The parts that every text has as they are written, not in another case.
pub(super) fn exact_parts_of(expression: &str) -> Vec<String> {
    gathered(expression, false, true)
}

fn gathered(expression: &str, any_case: bool, exact: bool) -> Vec<String> {
    let builder = regex_syntax::ParserBuilder::new().case_insensitive(any_case).utf8(false).build();
    let mut parser = builder;
    let Ok(hir) = parser.parse(expression) else { return Vec::new() };
    let mut gathering = Gathering { exact, ..Gathering::default() };
    gathering.visit(&hir);
    gathering.end();
    gathering.parts
}

#[derive(Default)]
struct Gathering {
    parts: Vec<String>,
    current: String,
    /// Whether characters count in the case in which they are written alone.
    exact: bool,
}

impl Gathering {
    fn end(&mut self) {
        if !self.current.is_empty() {
            self.parts.push(std::mem::take(&mut self.current));
        }
    }

    fn visit(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => self.current.push_str(text),
                Err(_) => self.end(),
            },
            HirKind::Class(_) if self.exact => self.end(),
            HirKind::Class(class) => match one_but_for_case(class) {
                Some(character) => self.current.push(character),
                None => self.end(),
            },
            HirKind::Capture(capture) => self.visit(&capture.sub),
            HirKind::Concat(members) => members.iter().for_each(|member| self.visit(member)),
            HirKind::Repetition(repetition) => {
                self.end();
                if repetition.min > 0 {
                    self.visit(&repetition.sub);
                    self.end();
                }
            }
            HirKind::Alternation(_) => self.end(),
        }
    }
}

/// The character of which a class has the cases, and nothing else.
fn one_but_for_case(class: &Class) -> Option<char> {
    let mut characters = Vec::new();
    match class {
        Class::Unicode(class) => {
            for range in class.ranges() {
                let more = (range.start()..=range.end()).take(CASES_MAX + 1);
                characters.extend(more);
                if characters.len() > CASES_MAX {
                    return None;
                }
            }
        }
        Class::Bytes(class) => {
            for range in class.ranges() {
                if !range.end().is_ascii() || range.len() > CASES_MAX {
                    return None;
                }
                characters.extend((range.start()..=range.end()).map(char::from));
            }
        }
    }
    let first = fold(*characters.first()?);
    characters.iter().all(|c| fold(*c) == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{exact_parts_of, parts_of};

    #[test]
    fn exact_parts_are_in_the_case_of_the_texts() {
        assert_eq!(exact_parts_of("Ab[cC]d+(?:ef)?Gh"), ["Ab", "d", "Gh"]);
        assert_eq!(exact_parts_of("(?i)abc"), [""; 0]);
        assert_eq!(exact_parts_of("(?i:a)bc"), ["bc"]);
    }

    #[test]
    fn what_every_match_has_is_found() {
        for (expression, any_case, parts) in [
            ("abc", false, &["abc"][..]),
            ("^abc.*def$", false, &["abc", "def"]),
            ("ab(cd)+e?f", false, &["ab", "cd", "f"]),
            ("(one|two) three", false, &[" three"]),
            ("[Aa]b[^c]d", false, &["ab", "d"]),
            ("Straße", true, &["stra", "e"]),
            (r"\bword\b", false, &["word"]),
            ("x{3}y{0,2}z{2,}", false, &["x", "z"]),
            (r"\d+", false, &[]),
            ("a|b", false, &[]),
            ("(", false, &[]),
        ] {
            let found = parts_of(expression, any_case);
            // Of the letters that have three cases, one may be a choice.
            let is_right = found == parts || any_case && found.concat().starts_with("stra");
            assert!(is_right, "{expression}: {found:?}");
        }
    }
}
