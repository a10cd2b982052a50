//! What a file names of its crate: `use` lines, and paths in its code.

use super::lexer::Token;

/// One name that a `use` brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import<'a> {
    /// The path it is taken from, the name included; for `*` the module.
    pub path: Vec<&'a str>,
    /// What it is called here; `*` for all of a module.
    pub name: &'a str,
    /// True for `pub use` of any reach: a re-export.
    pub is_public: bool,
}

/// Every name that a file's `use` lines bring in.
#[must_use]
pub fn imports<'a>(code: &[Token<'a>]) -> Vec<Import<'a>> {
    let mut found = Vec::new();
    for (at, _) in code.iter().enumerate().filter(|(_, token)| token.is("use")) {
        let before = at.checked_sub(1).and_then(|at| code.get(at));
        let is_public = before.is_some_and(|token| token.is("pub") || token.is(")"));
        let line = code.get(at + 1..).unwrap_or_default().split(|token| token.is(";")).next();
        let mut reader = Reader { tokens: line.unwrap_or_default(), at: 0, is_public };
        reader.tree(&[], &mut found);
    }
    found
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    is_public: bool,
}

impl<'a> Reader<'_, 'a> {
    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(is_next);
        is_next
    }

    /// A path that ends in a name, in `*` or in a group of such.
    fn tree(&mut self, start: &[&'a str], found: &mut Vec<Import<'a>>) {
        let mut path = start.to_vec();
        loop {
            if self.takes("{") {
                while !self.takes("}") && self.peek().is_some() {
                    self.tree(&path, found);
                    self.takes(",");
                }
                return;
            }
            if self.takes("*") {
                found.push(Import { path, name: "*", is_public: self.is_public });
                return;
            }
            let Some(token) = self.peek().filter(|token| token.is_word()) else {
                self.at += 1;
                return;
            };
            let name = token.text;
            self.at += 1;
            // `a::{self}` is `a`.
            if name != "self" || path.is_empty() {
                path.push(name);
            }
            if self.takes(":") {
                self.takes(":");
                continue;
            }
            let last = path.last().copied();
            let name = match self.takes("as") {
                true => self.peek().map(|token| token.text),
                false => last,
            };
            if self.peek().is_some_and(|token| token.is_word()) {
                self.at += 1;
            }
            found.extend(name.map(|name| Import { path, name, is_public: self.is_public }));
            return;
        }
    }
}

/// Paths in code, outside of `use` lines: `crate::a::b`, `super::a`, `a::b`.
#[must_use]
pub fn paths<'a>(code: &[Token<'a>]) -> Vec<Vec<&'a str>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(token) = code.get(at) {
        if token.is("use") {
            at += code.iter().skip(at).take_while(|token| !token.is(";")).count();
            continue;
        }
        let mut path = Vec::new();
        while let Some(word) = code.get(at).filter(|token| token.is_word()) {
            path.push(word.text);
            at += 1;
            let is_joined = |n: usize| code.get(at + n).is_some_and(|token| token.is(":"));
            if !(is_joined(0) && is_joined(1)) {
                break;
            }
            at += 2;
        }
        at += usize::from(path.is_empty());
        if path.len() > 1 {
            found.push(path);
        }
    }
    found
}
