//! `SET`, `RESET` and `SHOW`: what a session chooses for the statements behind them.

use esker::{Batch, Column, QueryResult, Semantics, ValueRef};
use esker_format::DataType;
use esker_query::{ResultColumn, Statistics};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::EskerDialect;
use crate::statement::{Statement, syntax};
use crate::{Error, Result};

/// A statement about the settings of a session, whose names are [`Semantics::SETTINGS`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingStatement {
    /// Choose a value: `SET nulls_order = 'last'`.
    Set {
        /// Of which setting.
        name: String,
        /// The value; none for that of the database: `SET nulls_order TO DEFAULT`.
        value: Option<String>,
        /// Whether it is chosen until the end of the transaction: `SET LOCAL`.
        is_local: bool,
    },
    /// Choose nothing any more: `RESET nulls_order`; of all settings without a name: `RESET ALL`.
    Reset(Option<String>),
    /// Answer the value: `SHOW nulls_order`; of all settings without a name: `SHOW ALL`.
    Show(Option<String>),
}

impl SettingStatement {
    /// What is chosen behind it, where some is chosen before.
    ///
    /// # Errors
    /// `InvalidQuery` for an unknown setting or value.
    pub(crate) fn applied(&self, before: Semantics) -> Result<Semantics> {
        match self {
            Self::Set { name, value, .. } => before.with(name, value.as_deref()),
            Self::Reset(Some(name)) => before.with(name, None),
            Self::Reset(None) => Ok(Semantics::default()),
            Self::Show(_) => Ok(before),
        }
    }
}

/// Reads `SET [SESSION | LOCAL] name (= | TO) value`, `RESET name` and `SHOW name`; nothing when it
/// is another statement.
pub(crate) fn read(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    let statement = if parser.parse_keyword(Keyword::SET) {
        let is_local = parser.parse_keyword(Keyword::LOCAL);
        if !is_local {
            let _ = parser.parse_keyword(Keyword::SESSION);
        }
        let name = known(word(&mut parser, "the name of a setting")?)?;
        if !parser.consume_token(&Token::Eq) && !parser.parse_keyword(Keyword::TO) {
            return parser.expected("= or TO", parser.peek_token()).map_err(syntax);
        }
        let value = match parser.parse_keyword(Keyword::DEFAULT) {
            true => None,
            false => Some(word(&mut parser, "a value or DEFAULT")?),
        };
        SettingStatement::Set { name, value, is_local }
    } else if parser.parse_keyword(Keyword::RESET) {
        SettingStatement::Reset(name_or_all(&mut parser)?)
    } else if parser.parse_keyword(Keyword::SHOW) {
        SettingStatement::Show(name_or_all(&mut parser)?)
    } else {
        return Ok(None);
    };
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token().token != Token::EOF {
        return parser.expected("the end of the statement", parser.peek_token()).map_err(syntax);
    }
    // A value that there is not is refused before anything runs.
    statement.applied(Semantics::default())?;
    Ok(Some(Statement::Setting(statement)))
}

fn name_or_all(parser: &mut Parser<'_>) -> Result<Option<String>> {
    match parser.parse_keyword(Keyword::ALL) {
        true => Ok(None),
        false => word(parser, "the name of a setting, or ALL").and_then(known).map(Some),
    }
}

/// A setting that there is.
fn known(name: String) -> Result<String> {
    Semantics::default().value_of(&name).map(|_| name)
}

/// A word, with or without quotes.
fn word(parser: &mut Parser<'_>, expected: &str) -> Result<String> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) => Ok(text),
        _ => parser.expected(expected, token).map_err(syntax),
    }
}

/// What `SHOW` answers: a value, or the names and values of all settings.
pub(crate) fn shown(name: Option<&str>, chosen: Semantics) -> Result<QueryResult> {
    let column = |name: &str| ResultColumn { name: name.to_owned(), data_type: DataType::Text };
    let (names, rows): (Vec<&str>, Vec<Vec<&str>>) = match name {
        Some(name) => (vec![name], vec![vec![chosen.value_of(name)?]]),
        None => {
            let row = |name| Ok(vec![name, chosen.value_of(name)?]);
            let rows = Semantics::SETTINGS.into_iter().map(row).collect::<Result<_>>()?;
            (vec!["name", "setting"], rows)
        }
    };
    let mut columns = vec![Column::empty(DataType::Text); names.len()];
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(ValueRef::Text(value)).map_err(Error::from)?;
        }
    }
    let batches = vec![Batch { columns }];
    let columns = names.into_iter().map(column).collect();
    let statistics = Statistics::default();
    Ok(QueryResult { columns, batches, statistics })
}
