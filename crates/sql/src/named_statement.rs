//! `PREPARE name AS …`, `EXECUTE name (…)` and `DEALLOCATE name`: statements that a session keeps
//! by names.

use std::collections::BTreeMap;

use esker::{DataType, Error, ErrorKind, Result, Value};
use esker_query::model::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::{EskerDialect, is_word};
use crate::expression::{Names, ParameterNames};
use crate::prepared::Prepared;
use crate::show::end;
use crate::statement::{NESTING_MAX, Statement, syntax};
use crate::{statement, type_name};

/// How many a session keeps.
const NAMED_MAX: usize = 256;

/// How many bytes of text all of them have.
const BYTES_MAX: usize = 4 << 20;

/// A statement about statements that a session keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedStatement {
    /// Keep one: `PREPARE name (types) AS statement`.
    Prepare {
        /// Its name.
        name: String,
        /// The types of its first parameters.
        types: Vec<DataType>,
        /// The statement.
        statement: Box<Statement>,
        /// The names of its parameters.
        parameters: ParameterNames,
        /// How many bytes its text has.
        bytes: usize,
    },
    /// Run one: `EXECUTE name (values)`.
    Execute {
        /// Its name.
        name: String,
        /// What its parameters get.
        values: Vec<Expr>,
    },
    /// Forget one, or all: `DEALLOCATE name`, `DEALLOCATE ALL`.
    Deallocate(Option<String>),
}

/// Reads one of these statements; nothing when it is another.
pub(crate) fn read(
    tokens: &[TokenWithSpan],
    text: &str,
    parameters: &ParameterNames,
) -> crate::Result<Option<Statement>> {
    let parser = Parser::new(&EskerDialect).with_recursion_limit(NESTING_MAX);
    let mut parser = parser.with_tokens_with_locations(tokens.to_vec());
    let first = parser.next_token().token;
    let is = |word: &str| is_word(&first, word);
    let named = if is("PREPARE") {
        prepare(tokens, text, parameters)?
    } else if is("EXECUTE") {
        let name = parser.parse_identifier().map_err(syntax)?.value;
        let mut values = Vec::new();
        if parser.consume_token(&Token::LParen) && !parser.consume_token(&Token::RParen) {
            let names = Names::new(Vec::new(), parameters);
            let exprs = parser.parse_comma_separated(Parser::parse_expr).map_err(syntax)?;
            values = exprs.iter().map(|e| names.convert(e)).collect::<crate::Result<_>>()?;
            parser.expect_token(&Token::RParen).map_err(syntax)?;
        }
        end(&mut parser)?;
        NamedStatement::Execute { name, values }
    } else if is("DEALLOCATE") {
        // A statement may be called so.
        let _ = !matches!(parser.peek_nth_token_ref(1).token, Token::EOF | Token::SemiColon)
            && parser.parse_keyword(Keyword::PREPARE);
        let name = match parser.parse_keyword(Keyword::ALL) {
            true => None,
            false => Some(parser.parse_identifier().map_err(syntax)?.value),
        };
        end(&mut parser)?;
        NamedStatement::Deallocate(name)
    } else {
        return Ok(None);
    };
    Ok(Some(Statement::Named(named)))
}

/// What stands behind PREPARE.
fn prepare(
    tokens: &[TokenWithSpan],
    text: &str,
    parameters: &ParameterNames,
) -> crate::Result<NamedStatement> {
    let is_as = |token: &TokenWithSpan| is_word(&token.token, "AS");
    let at = tokens.iter().position(is_as).unwrap_or(tokens.len()); // default: there is none
    let (head, rest) = tokens.split_at(at);
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(head.to_vec());
    parser.advance_token();
    let name = parser.parse_identifier().map_err(syntax)?.value;
    let mut types = Vec::new();
    if parser.consume_token(&Token::LParen) {
        let names = parser.parse_comma_separated(Parser::parse_data_type).map_err(syntax)?;
        types = names.iter().map(type_name::convert).collect::<crate::Result<_>>()?;
        parser.expect_token(&Token::RParen).map_err(syntax)?;
    }
    let Some((_, rest)) = rest.split_first().filter(|_| end(&mut parser).is_ok()) else {
        return parser.expected("AS and a statement", parser.peek_token()).map_err(syntax);
    };
    let statement = Box::new(statement::read(rest.to_vec(), text, parameters)?);
    match *statement {
        Statement::Query(_) | Statement::QueryForUpdate(_) | Statement::Change(_) => {}
        _ => {
            let message = "PREPARE: expected SELECT, INSERT, UPDATE, DELETE or MERGE behind AS";
            return Err(crate::Error::invalid(message));
        }
    }
    if types.len() > parameters.len() {
        let (types, own) = (types.len(), parameters.len());
        let message = format!("PREPARE {name}: {types} types for {own} parameters");
        return Err(crate::Error::invalid(message));
    }
    let parameters = ParameterNames::clone(parameters);
    Ok(NamedStatement::Prepare { name, types, statement, parameters, bytes: text.len() })
}

/// The statements that a session keeps.
#[derive(Debug, Default)]
pub(crate) struct NamedStatements {
    all: BTreeMap<String, Kept>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) prepared: Prepared,
    types: Vec<DataType>,
    bytes: usize,
}

impl NamedStatements {
    /// Keeps one.
    pub(crate) fn keep(
        &mut self,
        name: &str,
        prepared: Prepared,
        (types, bytes): (&[DataType], usize),
    ) -> Result<()> {
        let key = name.to_ascii_lowercase();
        if self.all.contains_key(&key) {
            let message =
                format!("prepared statement {name:?} exists already: DEALLOCATE it first");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let all: usize = self.all.values().map(|kept| kept.bytes).sum();
        if self.all.len() >= NAMED_MAX || all + bytes > BYTES_MAX {
            return Err(Error::new(
                ErrorKind::OverBudget,
                format!(
                    "a session keeps {NAMED_MAX} prepared statements, of {BYTES_MAX} bytes: \
                     DEALLOCATE some first"
                ),
            ));
        }
        self.all.insert(key, Kept { prepared, types: types.to_vec(), bytes });
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Kept> {
        self.all.get(&name.to_ascii_lowercase()).ok_or_else(|| self.unknown(name))
    }

    /// Forgets one, or all.
    pub(crate) fn forget(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name else {
            self.all.clear();
            return Ok(());
        };
        match self.all.remove(&name.to_ascii_lowercase()) {
            Some(_) => Ok(()),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let names = self.all.keys().map(String::as_str);
        let near = match self.all.is_empty() {
            true => "; there is none: PREPARE makes one".to_owned(),
            false => esker_format::suggest::near_or_all(name, "statements", names),
        };
        Error::new(ErrorKind::NotFound, format!("no prepared statement {name:?}{near}"))
    }
}

impl Kept {
    /// Values for its parameters, of the types that it has for them.
    pub(crate) fn fitted(&self, name: &str, values: Vec<Value>) -> Result<Vec<Value>> {
        let at = |e: crate::Error| Error::from(e.at(format_args!("EXECUTE {name}")));
        crate::expect_values(self.prepared.parameters(), &values).map_err(at)?;
        let names = self.prepared.parameters().iter();
        let mut types = self.types.iter();
        let mut fitted = Vec::with_capacity(values.len());
        for (value, parameter) in values.into_iter().zip(names) {
            fitted.push(match types.next() {
                Some(to) if !value.is_null() => esker_query::assign(value, *to)
                    .map_err(|e| at(e.at(format_args!("parameter {parameter}"))))?,
                _ => value,
            });
        }
        Ok(fitted)
    }
}
