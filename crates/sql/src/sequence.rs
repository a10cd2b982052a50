//! `CREATE SEQUENCE`.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::EskerDialect;
use crate::expression::{Names, ParameterNames};
use crate::statement::{Statement, syntax};
use crate::{Error, Result, column, qualified_name};

/// Reads `CREATE SEQUENCE [IF NOT EXISTS] name [START [WITH] n] [INCREMENT [BY] n]`, the options in
/// any order; nothing when it is another statement.
pub(crate) fn create(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    if !parser.parse_keywords(&[Keyword::CREATE, Keyword::SEQUENCE]) {
        return Ok(None);
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = qualified_name::written(&parser.parse_object_name(false).map_err(syntax)?)?;
    let (mut start, mut increment) = (None, None);
    loop {
        if start.is_none() && parser.parse_keyword(Keyword::START) {
            let _ = parser.parse_keyword(Keyword::WITH);
            start = Some(number(&mut parser, "START")?);
        } else if increment.is_none() && parser.parse_keyword(Keyword::INCREMENT) {
            let _ = parser.parse_keyword(Keyword::BY);
            increment = Some(number(&mut parser, "INCREMENT")?);
        } else {
            break;
        }
    }
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token().token != Token::EOF {
        return parser
            .expected("START n, INCREMENT n or the end", parser.peek_token())
            .map_err(syntax);
    }
    let (start, increment) = (start.unwrap_or(1), increment.unwrap_or(1));
    Ok(Some(Statement::CreateSequence { name, start, increment, if_not_exists }))
}

/// A whole number, as a constant.
fn number(parser: &mut Parser<'_>, what: &str) -> Result<i64> {
    let expr: ast::Expr = parser.parse_expr().map_err(syntax)?;
    let converted = Names::new(Vec::new(), &ParameterNames::default()).convert(&expr)?;
    match column::constant(&converted)? {
        esker_format::Value::Int(number) => Ok(number),
        _ => Err(Error::invalid(format!("{what}: expected a whole number, found `{expr}`"))),
    }
}
