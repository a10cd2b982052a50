//! Cuts Rust source text into tokens, well enough to count and to look for words.
//!
//! It knows what hides other text: line comments, nested block comments, strings with escapes, raw
//! strings with any number of `#`, byte and C strings, characters, and the lifetimes that look like
//! the start of one. Everything else is a word, a number or a single character.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A comment, documentation included.
    Comment,
    /// A string or character literal, with its quotes.
    Literal,
    /// A lifetime or label, with its quote.
    Lifetime,
    /// A name or keyword.
    Word,
    /// A number.
    Number,
    /// One character of punctuation.
    Mark,
}

/// A piece of source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// It, as written.
    pub text: &'a str,
    /// The line it starts on, from 1.
    pub line: usize,
}

impl Token<'_> {
    /// True for a comment.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        self.kind == Kind::Comment
    }

    /// True for a name or keyword.
    #[must_use]
    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    /// True for this word or character of punctuation.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }

    /// The line it ends on.
    #[must_use]
    pub fn last_line(&self) -> usize {
        self.line + self.text.matches('\n').count()
    }
}

/// The tokens of a source text, in order. An unclosed string or comment reaches to the end.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut found, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let (kind, length) =
            if first.is_whitespace() { (None, first.len_utf8()) } else { measure(rest, first) };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        found.extend(kind.map(|kind| Token { kind, text: token, line }));
        line += token.matches('\n').count();
        rest = after;
    }
    found
}

/// The kind and the length in bytes of the token at the start of `text`.
fn measure(text: &str, first: char) -> (Option<Kind>, usize) {
    let (kind, length) = if text.starts_with("//") {
        (Kind::Comment, text.find('\n').unwrap_or(text.len()))
    } else if text.starts_with("/*") {
        (Kind::Comment, block_comment(text))
    } else if let Some(length) = prefixed(text) {
        (Kind::Literal, length)
    } else if first == '"' {
        (Kind::Literal, quoted(text, '"'))
    } else if first == '\'' {
        quote(text)
    } else if is_word(first) && !first.is_ascii_digit() {
        (Kind::Word, word(text))
    } else if first.is_ascii_digit() {
        (Kind::Number, number(text))
    } else {
        (Kind::Mark, first.len_utf8())
    };
    (Some(kind), length)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> usize {
    let raw = if text.starts_with("r#") { 2 } else { 0 };
    let name = text.get(raw..).unwrap_or_default();
    raw + name.find(|c| !is_word(c)).unwrap_or(name.len())
}

/// Digits, suffix and exponent; a point only when a digit follows, so that `1..2` is a range.
fn number(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let fraction = c == '.' && characters.peek().is_some_and(|(_, c)| c.is_ascii_digit());
        if !is_word(c) && !fraction {
            return at;
        }
    }
    text.len()
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// A literal with a letter in front: `b"…"`, `b'…'`, `c"…"`, `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`.
fn prefixed(text: &str) -> Option<usize> {
    let after = text.trim_start_matches(['b', 'c', 'r']);
    let prefix = text.len() - after.len();
    match text.get(..prefix)? {
        "b" | "c" if after.starts_with('"') => Some(prefix + quoted(after, '"')),
        "b" if after.starts_with('\'') => Some(prefix + quoted(after, '\'')),
        "r" | "br" | "cr" => {
            let hashes = after.len() - after.trim_start_matches('#').len();
            let body = after.get(hashes..)?.strip_prefix('"')?;
            let end = format!("\"{}", "#".repeat(hashes));
            let length = body.find(&end).map_or(body.len(), |at| at + end.len());
            Some(prefix + hashes + 1 + length)
        }
        _ => None,
    }
}

/// From one quote to the next that no backslash precedes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// `'a'` is a character, `'a` a lifetime.
fn quote(text: &str) -> (Kind, usize) {
    let mut characters = text.chars().skip(1);
    let (first, second) = (characters.next(), characters.next());
    if first == Some('\\') || second == Some('\'') {
        return (Kind::Literal, quoted(text, '\''));
    }
    let name = text.get(1..).unwrap_or_default();
    (Kind::Lifetime, 1 + name.find(|c| !is_word(c)).unwrap_or(name.len()))
}

#[cfg(test)]
mod tests;
