//! `DELETE … ERASE`, which the grammar does not know: before it is read, the word at the end
//! becomes an item of `RETURNING` by a name that nobody writes.

use sqlparser::ast;
use sqlparser::keywords::Keyword as K;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::dialect::{MADE_NAME, is_word};
use crate::{Error, Result};

const ERASE: &str = "ERASE";

/// Words behind which a name stands, so that `ERASE` is one.
const BEFORE_NAMES: &[&str] = &[
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CASE",
    "COLLATE",
    "DELETE",
    "ELSE",
    "ESCAPE",
    "FROM",
    "GLOB",
    "ILIKE",
    "IN",
    "IS",
    "LIKE",
    "LIMIT",
    "NOT",
    "OFFSET",
    "ON",
    "ONLY",
    "OR",
    "REGEXP",
    "RETURNING",
    "SELECT",
    "SIMILAR",
    "THEN",
    "TO",
    "USING",
    "WHEN",
    "WHERE",
];

/// Puts the word where the grammar reads `RETURNING`: before `ORDER BY` and `LIMIT`.
pub(crate) fn take(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let Some(found) = find(tokens) else { return Ok(()) };
    if let Some(returning) = found.returning.and_then(|at| tokens.get(at)) {
        let (line, column) = (returning.span.start.line, returning.span.start.column);
        return Err(Error::invalid(format!(
            "ERASE answers what was erased: expected no RETURNING beside it, found one at Line: \
             {line}, Column: {column}"
        )));
    }
    let Some(TokenWithSpan { span, .. }) = tokens.get(found.word).cloned() else { return Ok(()) };
    let word = |value: &str, quote_style, keyword| {
        let token = Token::Word(Word { value: value.to_owned(), quote_style, keyword });
        TokenWithSpan { token, span }
    };
    let item = word(ERASE, Some(MADE_NAME), K::NoKeyword);
    let clause = [word("RETURNING", None, K::RETURNING), item];
    tokens.remove(found.word);
    let at = found.end.unwrap_or(found.word).min(tokens.len());
    tokens.splice(at..at, clause);
    Ok(())
}

/// Where the word is, and the clauses of its statement.
struct Found {
    word: usize,
    returning: Option<usize>,
    /// `ORDER BY` or `LIMIT`.
    end: Option<usize>,
}

fn find(tokens: &[TokenWithSpan]) -> Option<Found> {
    let is_blank =
        |token: &Token| matches!(token, Token::Whitespace(_) | Token::SemiColon | Token::EOF);
    let all = tokens.iter().enumerate().map(|(at, token)| (at, &token.token));
    let words: Vec<(usize, &Token)> = all.filter(|(_, token)| !is_blank(token)).collect();
    let [.., (_, before), (word, last)] = words.as_slice() else { return None };
    let is_name = match before {
        Token::Word(word) if word.quote_style.is_none() => {
            BEFORE_NAMES.iter().any(|known| word.value.eq_ignore_ascii_case(known))
        }
        Token::Word(_) | Token::Number(..) | Token::Placeholder(_) | Token::RParen => false,
        Token::SingleQuotedString(_) | Token::RBracket => false,
        _ => true,
    };
    if is_name || !is_word(last, ERASE) {
        return None;
    }
    let mut depth = 0usize;
    let (mut begun, mut returning, mut end) = (false, None, None);
    for (i, (at, token)) in words.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            token if is_word(token, "DELETE") => {
                begun |= words.get(i + 1).is_some_and(|(_, next)| is_word(next, "FROM"));
            }
            token if begun && is_word(token, "RETURNING") => returning = Some(*at),
            token if begun && (is_word(token, "ORDER") || is_word(token, "LIMIT")) => {
                end = end.or(Some(*at));
            }
            _ => {}
        }
    }
    begun.then_some(Found { word: *word, returning, end })
}

/// Whether it is among the items of `RETURNING` that have been read.
pub(crate) fn is_asked(returning: Option<&[ast::SelectItem]>) -> bool {
    let is_it = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(ast::Expr::Identifier(name))
            if name.quote_style == Some(MADE_NAME) && name.value == ERASE)
    };
    returning.is_some_and(|items| items.iter().any(is_it))
}
