//! `INSERT … OVERRIDING SYSTEM VALUE` and `OVERRIDING USER VALUE`, which the grammar does not know,
//! also of MERGE: before it is read, the clause becomes a last field by a name that nobody writes.

use esker_query::model::Overriding;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::dialect::{MADE_NAME, is_word};

/// Puts the clause among the names of fields, behind them, where the grammar reads it.
pub(crate) fn take(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.iter().any(|token| is_word(&token.token, "OVERRIDING")) {
        return;
    }
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let words: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|t| !is_blank(t))).collect();
    let mut found: Vec<(usize, usize, Overriding)> = Vec::new();
    let mut is_insert = false;
    for i in 0..words.len() {
        let token = |i: usize| words.get(i).and_then(|at| tokens.get(*at)).map(|t| &t.token);
        let is = |i: usize, word: &str| token(i).is_some_and(|token| is_word(token, word));
        is_insert |= is(i, "INSERT");
        let clause = [("SYSTEM", Overriding::System), ("USER", Overriding::User)];
        let meant = clause.into_iter().find(|(word, _)| {
            is_insert && is(i, "OVERRIDING") && is(i + 1, word) && is(i + 2, "VALUE")
        });
        // Names of fields end before it.
        let start = if token(i.wrapping_sub(1)) == Some(&Token::RParen) { i - 1 } else { i };
        if let (Some((_, overriding)), Some(start), Some(end)) =
            (meant, words.get(start), words.get(i + 2))
        {
            found.push((*start, *end, overriding));
        }
    }
    for (start, end, overriding) in found.into_iter().rev() {
        let Some(TokenWithSpan { token, span }) = tokens.get(start).cloned() else { continue };
        let before = if token == Token::RParen { Token::Comma } else { Token::LParen };
        let (value, quote_style) = (name(overriding).to_owned(), Some(MADE_NAME));
        let clause = Token::Word(Word { value, quote_style, keyword: Keyword::NoKeyword });
        let clause = [before, clause, Token::RParen].map(|token| TokenWithSpan { token, span });
        tokens.splice(start..=end, clause);
    }
}

const fn name(overriding: Overriding) -> &'static str {
    match overriding {
        Overriding::System => "OVERRIDING SYSTEM VALUE",
        Overriding::User => "OVERRIDING USER VALUE",
    }
}

/// Takes the clause out of the names of fields that have been read.
pub(crate) fn of(fields: &mut Vec<ast::ObjectName>) -> Option<Overriding> {
    let [ast::ObjectNamePart::Identifier(last)] = fields.last()?.0.as_slice() else { return None };
    if last.quote_style != Some(MADE_NAME) {
        return None;
    }
    let known = [Overriding::System, Overriding::User];
    let meant = known.into_iter().find(|known| name(*known) == last.value);
    fields.pop();
    meant
}
