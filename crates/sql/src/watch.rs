//! `WATCH`: the events of a stream as they arrive.
//!
//! ```text
//!  WATCH events AFTER start WHERE delay > 60 LIMIT 10
//!  └──────────┬──────────┘ └────────────┬───────────┘
//!         read here          as of SELECT * FROM events
//! ```

use esker_query::model::{Expr, Query, RowCount};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::is_word;
use crate::expression::ParameterNames;
use crate::statement::{self, Statement};
use crate::{Error, Result};

/// Tell events as they arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchStatement {
    /// All fields of the stream, where they are wanted.
    pub query: Query,
    /// Where it begins: `now`, unless given, `start`, the id of an event, or its row id.
    pub after: Option<String>,
    /// Which are wanted, as it is written.
    pub condition: Option<String>,
}

impl WatchStatement {
    /// How many events are told, if there is an end.
    ///
    /// # Errors
    /// Where the limit is not a number.
    pub fn limit(&self) -> Result<Option<u64>> {
        match &self.query.limit {
            None => Ok(None),
            Some(RowCount::Number(count)) => Ok(Some(*count)),
            Some(_) => Err(Error::invalid("WATCH … LIMIT: expected a number")),
        }
    }
}

/// The error of what has no way to tell rows as they arrive.
pub(crate) fn refused() -> esker::Error {
    esker::Error::new(
        esker::ErrorKind::InvalidInput,
        "WATCH runs in the shell and in `esker sql` only: HTTP has …/streams/STREAM/tail, the wire \
         protocol and its clients have tail, and programs Stream::tail",
    )
}

/// Reads `WATCH`, which the first word is.
pub(crate) fn read(
    tokens: &[TokenWithSpan],
    text: &str,
    parameters: &ParameterNames,
) -> Result<Option<Statement>> {
    let mut rest = tokens.iter().skip_while(|token| matches!(token.token, Token::Whitespace(_)));
    let Some(first) = rest.next() else { return Ok(None) };
    let same = |token: Token| TokenWithSpan { token, span: first.span };
    let space = || same(Token::Whitespace(sqlparser::tokenizer::Whitespace::Space));
    let mut read = vec![same(Token::make_keyword("SELECT")), space(), same(Token::Mul), space()];
    read.extend([same(Token::make_keyword("FROM")), space()]);
    let mut after = None;
    let mut condition: Option<String> = None;
    let (mut depth, mut is_behind) = (0usize, false);
    while let Some(token) = rest.next() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            word if depth == 0 && !is_behind && is_word(word, "AFTER") => {
                let mut place =
                    rest.by_ref().skip_while(|token| matches!(token.token, Token::Whitespace(_)));
                after = Some(place_of(place.next().map(|token| &token.token))?);
                continue;
            }
            word if depth == 0 && !is_behind && is_word(word, "WHERE") => {
                (is_behind, condition) = (true, Some(String::new()));
                read.push(token.clone());
                continue;
            }
            word if depth == 0 && is_word(word, "LIMIT") => {
                read.push(token.clone());
                read.extend(rest.by_ref().cloned());
                break;
            }
            _ => {}
        }
        if !matches!(token.token, Token::SemiColon)
            && let Some(condition) = &mut condition
        {
            condition.push_str(&written(&token.token));
        }
        read.push(token.clone());
    }
    let Statement::Query(query) = statement::read(read, text, parameters)? else {
        return Err(expected());
    };
    expect_plain(&query)?;
    let condition = condition.map(|condition| condition.trim().to_owned());
    Ok(Some(Statement::Watch(WatchStatement { query, after, condition })))
}

/// A token as it can be read again.
fn written(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => format!("'{}'", text.replace('\'', "''")),
        Token::DoubleQuotedString(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        Token::Word(word) => match word.quote_style {
            Some('"') => format!("\"{}\"", word.value.replace('"', "\"\"")),
            _ => token.to_string(),
        },
        Token::EscapedStringLiteral(text) => {
            format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        other => other.to_string(),
    }
}

fn expected() -> Error {
    Error::invalid("expected WATCH stream [AFTER place] [WHERE condition] [LIMIT count]")
}

/// What stands behind AFTER.
fn place_of(token: Option<&Token>) -> Result<String> {
    match token {
        Some(Token::Number(number, _)) => Ok(number.clone()),
        Some(Token::SingleQuotedString(text)) => Ok(text.clone()),
        Some(Token::Word(word)) => Ok(word.value.clone()),
        found => {
            let found = found.map_or_else(|| "the end".to_owned(), ToString::to_string);
            let places = "now, start, the id of an event in quotes, or its row id";
            Err(Error::invalid(format!("WATCH … AFTER: expected {places}, found {found}")))
        }
    }
}

fn expect_plain(query: &Query) -> Result<()> {
    let bare = Query { filter: None, limit: None, ..query.clone() };
    match bare == Query::table(query.table.clone()) && !query.table.is_empty() {
        true => Ok(()),
        false => Err(expected()),
    }
}

/// Reads a condition on the rows of a table, as it stands behind WHERE.
///
/// ```
/// let condition = esker_sql::parse_condition("n > 5 AND what LIKE 'a%'")?;
/// assert!(condition.to_string().contains("n > 5"));
/// assert!(esker_sql::parse_condition("n > 5 GROUP BY n").is_err());
/// # Ok::<(), esker_sql::Error>(())
/// ```
///
/// # Errors
/// `InvalidQuery` with what is wrong with it.
pub fn parse_condition(text: &str) -> Result<Expr> {
    let query = statement::parse(&format!("SELECT * FROM t WHERE ({text}\n)"))?;
    expect_plain(&query).map_err(|_| Error::invalid("expected a condition"))?;
    match query {
        Query { filter: Some(filter), limit: None, .. } => Ok(filter),
        _ => Err(Error::invalid("expected a condition")),
    }
}
