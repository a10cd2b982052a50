//! What rows conflict by, where the grammar has names only: paths into JSON, expressions, and the
//! condition of an index that has not all rows.
//!
//! ```text
//! ON CONFLICT (doc.user.mail, lower(name)) WHERE active DO …      as it is written
//! ON CONFLICT ("doc.user.mail", "␁lower(name)", "␂active") DO …   as the grammar reads it
//! ```

use esker_query::model::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::Result;
use crate::dialect::EskerDialect;
use crate::index::convert;
use crate::statement::{NESTING_MAX, syntax, tokens};

/// Before the text of an expression, and of a condition: no name has them.
const EXPRESSION: char = '\u{1}';
const CONDITION: char = '\u{2}';

/// What rows conflict by.
#[derive(Default)]
pub(crate) struct ConflictTarget {
    pub names: Vec<String>,
    pub expressions: Vec<Expr>,
    pub filter: Option<Expr>,
}

impl ConflictTarget {
    /// What the names in the parentheses mean.
    pub fn of<'n>(all: impl IntoIterator<Item = &'n str>) -> Result<Self> {
        let mut target = Self::default();
        for name in all {
            if let Some(text) = name.strip_prefix(EXPRESSION) {
                target.expressions.push(expression(text)?);
            } else if let Some(text) = name.strip_prefix(CONDITION) {
                target.filter = Some(expression(text)?);
            } else {
                target.names.push(name.to_owned());
            }
        }
        Ok(target)
    }
}

fn expression(text: &str) -> Result<Expr> {
    let parser = Parser::new(&EskerDialect).with_recursion_limit(NESTING_MAX);
    let mut parser = parser.with_tokens_with_locations(tokens(text)?);
    let expr = parser.parse_expr().map_err(syntax)?;
    if parser.peek_token().token != Token::EOF {
        return parser.expected("the end of the expression", parser.peek_token()).map_err(syntax);
    }
    convert(&expr)
}

/// Makes one name of each part in the parentheses behind `ON CONFLICT`, and of the condition behind
/// them.
pub(crate) fn join_paths(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    // Which of `ON` and `CONFLICT` were met last.
    let mut met = 0;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if !is_space(&token.token) {
            met = match (&token.token, met) {
                (Token::Word(word), _) if word.keyword == Keyword::ON => 1,
                (Token::Word(word), 1) if word.keyword == Keyword::CONFLICT => 2,
                (Token::LParen, 2) => 3,
                _ => 0,
            };
        }
        joined.push(token);
        if met < 3 {
            continue;
        }
        met = 0;
        while let Some(close) = take_part(&mut tokens, &mut joined) {
            let is_last = close.token == Token::RParen;
            if is_last {
                take_condition(&mut tokens, &mut joined, &close);
            }
            joined.push(close);
            if is_last {
                break;
            }
        }
    }
    joined
}

type Tokens = std::iter::Peekable<std::vec::IntoIter<TokenWithSpan>>;

/// Takes what stands before a comma, or the parenthesis at the end, as one name; returns that. A
/// name stays as it is, and so does what has no end.
fn take_part(tokens: &mut Tokens, joined: &mut Vec<TokenWithSpan>) -> Option<TokenWithSpan> {
    let (mut part, mut depth) = (Vec::new(), 0usize);
    let close = loop {
        let Some(token) = tokens.next().filter(|token| token.token != Token::EOF) else {
            joined.extend(part);
            return None;
        };
        match token.token {
            Token::RParen if depth == 0 => break token,
            Token::Comma if depth == 0 => break token,
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        part.push(token);
    };
    let solid: Vec<&TokenWithSpan> = part.iter().filter(|token| !is_space(&token.token)).collect();
    let as_one = match solid.as_slice() {
        [] | [_] => None,
        several => path(several).or_else(|| Some(format!("{EXPRESSION}{}", text_of(&part)))),
    };
    match (as_one, solid.first()) {
        (Some(value), Some(first)) => joined.push(name(value, first)),
        _ => joined.extend(part),
    }
    Some(close)
}

/// The names of a path as one.
fn path(tokens: &[&TokenWithSpan]) -> Option<String> {
    let mut steps = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match (&token.token, at % 2) {
            (Token::Word(word), 0) => steps.push(word.value.as_str()),
            (Token::Period, 1) => {}
            _ => return None,
        }
    }
    (tokens.len() % 2 == 1).then(|| steps.join("."))
}

/// Takes `WHERE condition` before DO, as one more name.
fn take_condition(tokens: &mut Tokens, joined: &mut Vec<TokenWithSpan>, at: &TokenWithSpan) {
    let keyword_of = |token: &Token| match token {
        Token::Word(word) => Some(word.keyword),
        _ => None,
    };
    let is = |token: &Token, keyword: Keyword| keyword_of(token) == Some(keyword);
    let mut ahead = tokens.clone().enumerate().skip_while(|(_, token)| is_space(&token.token));
    if !ahead.next().is_some_and(|(_, token)| is(&token.token, Keyword::WHERE)) {
        return;
    }
    let (mut condition, mut depth) = (Vec::new(), 0usize);
    for (before, token) in ahead {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            ref other if depth == 0 && is(other, Keyword::DO) => {
                let value = format!("{CONDITION}{}", text_of(&condition));
                joined.push(TokenWithSpan { token: Token::Comma, ..at.clone() });
                joined.push(name(value, at));
                (0..before).for_each(|_| drop(tokens.next()));
                return;
            }
            _ => {}
        }
        condition.push(token);
    }
}

fn name(value: String, at: &TokenWithSpan) -> TokenWithSpan {
    let word = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
    TokenWithSpan { token: Token::Word(word), ..at.clone() }
}

/// Tokens as they are written.
fn text_of(tokens: &[TokenWithSpan]) -> String {
    let text = |token: &TokenWithSpan| match &token.token {
        Token::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
        Token::Word(word) if word.quote_style.is_some() => {
            format!("\"{}\"", word.value.replace('"', "\"\""))
        }
        token => token.to_string(),
    };
    tokens.iter().map(text).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn is_space(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
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

    #[test]
    fn expressions_and_a_condition_may_be_where_rows_conflict() {
        let text = "INSERT INTO t VALUES (1) ON CONFLICT (lower(name || ', it''s'), id) \
                    WHERE a > 0 AND (b = 'do') DO UPDATE SET id = 2 WHERE t.id > 1";
        let Statement::Change(Change::Insert(insert)) = crate::parse_statement(text).unwrap()
        else {
            panic!("{text}");
        };
        assert_eq!(insert.conflict_key, ["id"]);
        let texts: Vec<String> =
            insert.conflict_expressions.iter().map(|e| e.to_string()).collect();
        assert_eq!(texts, ["lower(name || ', it''s')"]);
        assert_eq!(insert.conflict_filter.unwrap().to_string(), "a > 0 AND b = 'do'");
    }
}
