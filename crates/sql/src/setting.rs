//! `SET` and `RESET`: what a session chooses for the statements behind them; `SHOW` of a setting.

use esker::Semantics;
use esker_query::model::{Expr, name_text};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::Result;
use crate::dialect::{EskerDialect, is_word};
use crate::show::end;
use crate::statement::{Statement, parse, syntax};

/// Where names without a schema are looked for.
const SEARCH_PATH: &str = "search_path";

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
    /// Choose where names without a schema are looked for: `SET search_path = app, main`.
    SetPath {
        /// The schemas, in order; none for `main` alone: `RESET search_path`.
        schemas: Option<Vec<String>>,
        /// As for another setting.
        is_local: bool,
    },
    /// Show these schemas: `SHOW search_path`.
    ShowPath,
    /// Choose nothing any more: `RESET nulls_order`; of all settings without a name: `RESET ALL`.
    Reset(Option<String>),
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
            Self::SetPath { .. } | Self::ShowPath => Ok(before),
            Self::Reset(None) => Ok(Semantics::default()),
        }
    }
}

/// Reads `SET [SESSION | LOCAL] name (= | TO) value` and `RESET name`; nothing when it is another
/// statement.
pub(crate) fn read(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    let statement = if parser.parse_keyword(Keyword::SET) {
        let is_local = parser.parse_keyword(Keyword::LOCAL);
        if !is_local {
            let _ = parser.parse_keyword(Keyword::SESSION);
        }
        let name = word(&mut parser, "the name of a setting")?;
        let is_path = name.eq_ignore_ascii_case(SEARCH_PATH);
        let name = if is_path { name } else { known(name)? };
        if !parser.consume_token(&Token::Eq) && !parser.parse_keyword(Keyword::TO) {
            return parser.expected("= or TO", parser.peek_token()).map_err(syntax);
        }
        if is_path {
            let schemas = match parser.parse_keyword(Keyword::DEFAULT) {
                true => None,
                false => Some(path(&mut parser)?),
            };
            end(&mut parser)?;
            let statement = SettingStatement::SetPath { schemas, is_local };
            return Ok(Some(Statement::Setting(statement)));
        }
        let value = match parser.parse_keyword(Keyword::DEFAULT) {
            true => None,
            false => Some(word(&mut parser, "a value or DEFAULT")?),
        };
        SettingStatement::Set { name, value, is_local }
    } else if parser.parse_keyword(Keyword::RESET) {
        if is_word(&parser.peek_token_ref().token, SEARCH_PATH) {
            parser.advance_token();
            SettingStatement::SetPath { schemas: None, is_local: false }
        } else {
            SettingStatement::Reset(name_or_all(&mut parser)?)
        }
    } else {
        return Ok(None);
    };
    end(&mut parser)?;
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

/// Names of schemas, with commas between.
fn path(parser: &mut Parser<'_>) -> Result<Vec<String>> {
    let mut schemas = vec![word(parser, "the name of a schema or DEFAULT")?];
    while parser.consume_token(&Token::Comma) {
        schemas.push(word(parser, "the name of a schema")?);
    }
    schemas.retain(|schema| !schema.is_empty());
    Ok(schemas)
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

/// `SHOW name`, and `SHOW ALL`, behind the word.
pub(crate) fn show(parser: &mut Parser<'_>) -> Result<Statement> {
    if is_word(&parser.peek_token_ref().token, SEARCH_PATH) {
        parser.advance_token();
        end(parser)?;
        return Ok(Statement::Setting(SettingStatement::ShowPath));
    }
    let name = name_or_all(parser)?;
    end(parser)?;
    let query = match name {
        None => "SELECT name, setting FROM esker_settings".to_owned(),
        Some(name) => {
            let (column, lower) = (name_text(&name), name.to_ascii_lowercase());
            let known = Expr::literal(lower.as_str());
            format!("SELECT setting AS {column} FROM esker_settings WHERE name = {known}")
        }
    };
    parse(&query).map(Statement::Query)
}
