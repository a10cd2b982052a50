//! Where in a statement an error is about.

use esker_format::Excerpt;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::dialect::tokenize;
use crate::number;
use crate::script::Lines;

/// What a message calls clauses, and the word that begins each.
const CLAUSES: [(&str, &str); 12] = [
    ("SELECT", "SELECT"),
    ("FROM", "FROM"),
    ("ON", "ON"),
    ("USING", "USING"),
    ("WHERE", "WHERE"),
    ("GROUP BY", "GROUP"),
    ("HAVING", "HAVING"),
    ("ORDER BY", "ORDER"),
    ("LIMIT", "LIMIT"),
    ("OFFSET", "OFFSET"),
    ("SET", "SET"),
    ("RETURNING", "RETURNING"),
];
/// Other words that end a clause.
const ENDS: [&str; 7] = ["JOIN", "LEFT", "INNER", "CROSS", "SEMI", "ANTI", "VALUES"];
/// Words before the name of a table.
const BEFORE_TABLES: [&str; 5] = ["FROM", "JOIN", "INTO", "UPDATE", "TABLE"];

/// The place in `statement` that an error is about, going by its message: the line and column that
/// a syntax error tells, or what the message quotes, as a name or as an expression, in the clause
/// that it names; where that clause has none of it, the word that begins it. `None` when there is
/// no such place.
///
/// ```
/// let statement = "SELECT id,\n  nme\nFROM people";
/// let message = "unknown field \"nme\"; did you mean \"name\"?";
/// let place = esker_sql::place(statement, message).unwrap();
/// assert_eq!((place.line(), place.column()), (2, 3));
/// assert_eq!(place.to_string(), "  nme\n  ^^^");
/// ```
#[must_use]
pub fn place(statement: &str, message: &str) -> Option<Excerpt> {
    if let Some((line, column)) = told(message) {
        let start = Lines::of(statement).offset(statement, Location { line, column })?;
        let rest = statement.get(start..).unwrap_or_default();
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Some(Excerpt::of(statement.as_bytes(), start, word.max(1)));
    }
    let tokens = tokens(statement)?;
    let (first, last) = found(&tokens, message)?;
    let lines = Lines::of(statement);
    let start = lines.offset(statement, tokens.get(first)?.span.start)?;
    let end = lines.offset(statement, tokens.get(last)?.span.end)?;
    Some(Excerpt::of(statement.as_bytes(), start, end.saturating_sub(start)))
}

/// The place in `… at Line: 1, Column: 8`.
fn told(message: &str) -> Option<(u64, u64)> {
    let (_, rest) = message.rsplit_once("Line: ")?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some((line.parse().ok()?, rest.get(..digits)?.parse().ok()?))
}

/// Without spaces and comments.
fn tokens(text: &str) -> Option<Vec<TokenWithSpan>> {
    let tokens = tokenize(text).ok()?;
    let tokens = number::read_all(text, tokens.clone()).unwrap_or(tokens);
    let is_blank = |token: &Token| matches!(token, Token::Whitespace(_) | Token::EOF);
    Some(tokens.into_iter().filter(|token| !is_blank(&token.token)).collect())
}

/// The first and the last token of what a message is about.
fn found(tokens: &[TokenWithSpan], message: &str) -> Option<(usize, usize)> {
    let parts: Vec<&str> = message.split(": ").collect();
    let clause_of = |part: &str| CLAUSES.iter().find(|(name, _)| begins_with(part, name));
    let named = parts.iter().rposition(|part| clause_of(part).is_some());
    let wanted = wanted(&parts, named);
    let clause = named.and_then(|at| clause_of(parts.get(at)?));
    let mut ranges = clause.map_or_else(Vec::new, |(_, word)| clauses(tokens, word));
    if named.is_some_and(|at| at > 0) {
        // It is about a query within another.
        ranges.sort_by_key(|range| std::cmp::Reverse(range.depth));
    }
    let in_clause = |text: &Wanted| {
        ranges.iter().find_map(|range| text.find(tokens, range.start + 1, range.end))
    };
    let keyword = ranges.first().map(|range| (range.start, range.start));
    let anywhere = || wanted.iter().find_map(|text| text.find(tokens, 0, tokens.len()));
    wanted.iter().find_map(in_clause).or(keyword).or_else(anywhere)
}

/// Whether a part of a message is the name of a clause, perhaps with a number or names behind it.
fn begins_with(part: &str, clause: &str) -> bool {
    let Some(rest) = part.strip_prefix(clause) else { return false };
    rest.is_empty() || rest.strip_prefix(' ').is_some_and(is_place)
}

/// What stands behind the name of a clause: the number of a column, or names in parentheses.
fn is_place(text: &str) -> bool {
    text.starts_with('(') || text.parse::<i64>().is_ok()
}

/// What is looked for.
struct Wanted {
    tokens: Vec<Token>,
    /// Only the last of them is shown.
    shows_last: bool,
    is_table: bool,
    /// Names of tables may be missing.
    is_loose: bool,
}

impl Wanted {
    fn new(text: &str) -> Option<Self> {
        let tokens: Vec<_> = tokens(text)?.into_iter().map(|token| token.token).collect();
        let is_there = !tokens.is_empty();
        is_there.then_some(Self { tokens, shows_last: false, is_table: false, is_loose: false })
    }

    /// One name, or several with points between them.
    fn name(text: &str) -> Option<Self> {
        if text.contains('.') {
            return Self::new(text);
        }
        Self::new(&format!("\"{}\"", text.replace('"', "\"\"")))
    }

    /// The first and the last token of it, where it is there: a name rather where it has no table's
    /// before it and gives none.
    fn find(&self, all: &[TokenWithSpan], start: usize, end: usize) -> Option<(usize, usize)> {
        let end_of = |at: usize| self.end(all, at).map(|end| (at, end));
        let places: Vec<(usize, usize)> = (start..end).filter_map(end_of).collect();
        let before = |at: usize| at.checked_sub(1).and_then(|at| all.get(at)).map(|t| &t.token);
        let is_best = |(at, _): &&(usize, usize)| match before(*at) {
            Some(token) if self.is_table => BEFORE_TABLES.iter().any(|word| is_word(token, word)),
            Some(token) => *token != Token::Period && !is_word(token, "AS"),
            None => true,
        };
        let (first, end) = *places.iter().find(is_best).or_else(|| places.first())?;
        let start = if self.shows_last { end.checked_sub(1)? } else { first };
        Some((start, end.checked_sub(1)?))
    }

    /// Where it ends, if it starts at a token.
    fn end(&self, all: &[TokenWithSpan], start: usize) -> Option<usize> {
        let (mut at, mut wanted) = (start, self.tokens.as_slice());
        while let Some((first, rest)) = wanted.split_first() {
            let token = &all.get(at)?.token;
            match rest {
                _ if is_same(token, first) => (at, wanted) = (at + 1, rest),
                // A name may have been written without its table's.
                [Token::Period, after @ ..] if self.is_loose => wanted = after,
                _ => return None,
            }
        }
        Some(at)
    }
}

/// What a message may be about, the likeliest first: the names that it has in quotes, the
/// expressions before the last colon, the text in backticks.
fn wanted(parts: &[&str], clause: Option<usize>) -> Vec<Wanted> {
    let (mut all, mut expressions) = (Vec::new(), Vec::new());
    let start = clause.map_or(0, |at| at + 1);
    if let Some(part) = clause.and_then(|at| parts.get(at))
        && let Some((_, number)) = part.rsplit_once(' ').filter(|(_, text)| is_place(text))
    {
        all.extend(Wanted::new(number));
    }
    for (i, part) in parts.iter().enumerate().skip(start) {
        let part = part.split("; ").next().unwrap_or_default();
        let names = part.split('"').skip(1).step_by(2);
        let table = i.checked_sub(1).and_then(|before| parts.get(before)).filter(|_| i > start);
        for name in names {
            if let Some(table) = table {
                let full = Wanted::new(&format!("{table}.{name}"));
                all.extend(full.map(|full| Wanted { shows_last: true, ..full }));
            }
            let is_table = part.starts_with("no table ");
            all.extend(Wanted::name(name).map(|name| Wanted { is_table, ..name }));
        }
        let quoted = part.split('`').nth(1).into_iter();
        let function = part.strip_prefix("unknown function ").into_iter();
        let aggregate = part.split_once(" is ").map(|(before, _)| before).into_iter();
        let texts = quoted.chain(function).chain(aggregate).filter(|text| !text.contains('"'));
        expressions.extend(texts.filter_map(Wanted::new));
        if i + 1 < parts.len() {
            expressions.extend(Wanted::new(part));
            let loose = Wanted::new(part).map(|text| Wanted { is_loose: true, ..text });
            expressions.extend(loose);
        }
    }
    all.extend(expressions);
    all
}

/// A clause in a statement.
struct Range {
    /// Its first word.
    start: usize,
    end: usize,
    /// Within how many parentheses.
    depth: usize,
}

/// The clauses that begin with a word.
fn clauses(tokens: &[TokenWithSpan], word: &str) -> Vec<Range> {
    let (mut open, mut ranges, mut depth) = (Vec::<Range>::new(), Vec::new(), 0usize);
    for (at, TokenWithSpan { token, .. }) in tokens.iter().enumerate() {
        let ends =
            CLAUSES.iter().map(|(_, word)| word).chain(&ENDS).any(|word| is_word(token, word));
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_over = |range: &Range| range.depth > depth || (ends && range.depth == depth);
        while let Some(range) = open.pop_if(|range| is_over(range)) {
            ranges.push(Range { end: at, ..range });
        }
        if is_word(token, word) {
            open.push(Range { start: at, end: tokens.len(), depth });
        }
    }
    ranges.extend(open);
    ranges.sort_by_key(|range| range.start);
    ranges
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

fn is_same(a: &Token, b: &Token) -> bool {
    match (a, b) {
        (Token::Word(a), Token::Word(b)) => a.value.eq_ignore_ascii_case(&b.value),
        (Token::SingleQuotedString(text), Token::Word(word)) => *text == word.value,
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
