//! Paths into JSON where the grammar has names only: `ON CONFLICT (doc.user.mail)`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Makes one name of each path in the parentheses behind `ON CONFLICT`.
pub(crate) fn join_paths(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Which of `ON`, `CONFLICT` and `(` were met last.
    let mut met = 0;
    for token in tokens {
        if !is_space(&token) {
            met = match (&token.token, met) {
                (Token::RParen, _) => 0,
                (_, 3) => 3,
                (Token::Word(word), _) if word.keyword == Keyword::ON => 1,
                (Token::Word(word), 1) if word.keyword == Keyword::CONFLICT => 2,
                (Token::LParen, 2) => 3,
                _ => 0,
            };
        }
        let step = match (&token.token, met) {
            (Token::Word(step), 3) => Some(step.value.clone()),
            _ => None,
        };
        match (step, joined.as_mut_slice()) {
            (
                Some(step),
                [
                    ..,
                    TokenWithSpan { token: Token::Word(path), .. },
                    TokenWithSpan { token: Token::Period, .. },
                ],
            ) => {
                let value = format!("{}.{step}", path.value);
                *path = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
                joined.pop();
            }
            _ => joined.push(token),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use esker_query::model::Change;

    use crate::Statement;

    #[test]
    fn paths_may_be_where_rows_conflict() {
        for target in ["doc.user.mail", "\"doc.user.mail\"", "id, doc.user.mail"] {
            let text = format!("INSERT INTO t VALUES (1) ON CONFLICT ({target}) DO NOTHING");
            let Statement::Change(Change::Insert(insert)) = crate::parse_statement(&text).unwrap()
            else {
                panic!("{text}");
            };
            assert_eq!(insert.conflict_key.last().unwrap(), "doc.user.mail");
        }
        let e = crate::parse_statement("INSERT INTO t VALUES (1) ON CONFLICT (doc.) DO NOTHING");
        assert!(e.is_err(), "a point at the end");
    }
}
