//! `SHOW`, `DESCRIBE`, `SUMMARIZE` and `PRAGMA`: questions about tables. Each is a query over the
//! tables about tables, so that it is run, prepared and served as any other.

use esker::is_system_table;
use esker_query::Query;
use esker_query::model::{Expr, name_text};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::{EskerDialect, is_word};
use crate::qualified_name::{self, ReadTable};
use crate::statement::{Statement, parse, syntax};
use crate::{Error, Result, pragma, setting};

/// The name of a table, with the schema before it that users have made.
const SHOWN_NAME: &str = "CASE WHEN table_schema IN ('main', 'temp') THEN table_name \
                          ELSE table_schema || '.' || table_name END";

/// A table that a statement is about.
pub(crate) struct Shown {
    /// The schema that is written; without one a temporary table comes first.
    schema: Option<String>,
    table: String,
    /// As it stands in FROM.
    written: String,
}

impl Shown {
    pub(crate) fn of(name: &ast::ObjectName) -> Result<Self> {
        let ReadTable { name, called } = qualified_name::read(name)?;
        if let Some((schema, _)) = name.split_once('.').filter(|_| called.is_some()) {
            let table = called.unwrap_or_default(); // default: as said before
            let written = format!("{}.{}", name_text(schema), name_text(&table));
            return Ok(Self { schema: Some(schema.to_owned()), table, written });
        }
        let written = name_text(&name);
        let table = if is_system_table(&name) { name.to_ascii_lowercase() } else { name };
        Ok(Self { schema: None, table, written })
    }

    /// That rows are about it. Where there is no such table, it is an error.
    pub(crate) fn condition(&self, prefix: &str) -> String {
        let Self { schema, table, written } = self;
        let table = Expr::literal(table.as_str());
        let is_meant = match schema {
            Some(schema) => format!("{prefix}table_schema = {}", Expr::literal(schema.as_str())),
            // Tables about tables are in no schema that is looked in.
            None if is_system_table(&self.table) => format!(
                "{prefix}table_schema = (SELECT max(n.table_schema) FROM information_schema.tables \
                 n WHERE n.table_name = {table} AND n.table_schema IN ('main', 'temp'))"
            ),
            None => format!(
                "{prefix}table_schema = (SELECT n.table_schema FROM information_schema.tables n \
                 WHERE n.table_name = {table} AND n.table_schema = ANY (current_schemas(true)) \
                 ORDER BY array_position(current_schemas(true), n.table_schema) LIMIT 1)"
            ),
        };
        format!(
            "{is_meant} AND {prefix}table_name = {table} \
             AND NOT EXISTS (SELECT 1 FROM {written} LIMIT 0)"
        )
    }
}

/// Reads `SHOW …`, `DESCRIBE table` and `PRAGMA …`; nothing when it is another statement.
pub(crate) fn read(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    let first = parser.next_token().token;
    let is = |word: &str| is_word(&first, word);
    if is("SHOW") {
        return show(&mut parser).map(Some);
    }
    if is("DESCRIBE") || is("DESC") {
        let _ = parser.parse_keyword(Keyword::TABLE);
        let shown = Shown::of(&parser.parse_object_name(false).map_err(syntax)?)?;
        end(&mut parser)?;
        return columns_of(&shown).map(Some);
    }
    if is("PRAGMA") {
        return pragma::read(&mut parser).map(Some);
    }
    Ok(None)
}

/// What SUMMARIZE stands before: a query, or the name of a table.
pub(crate) enum Summarized {
    Table(Box<Query>),
    Query(Vec<TokenWithSpan>),
}

/// What stands behind SUMMARIZE; nothing when it is another statement.
pub(crate) fn summarized(tokens: &[TokenWithSpan]) -> Result<Option<Summarized>> {
    let blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let Some(at) = tokens.iter().position(|token| !blank(token)) else { return Ok(None) };
    let rest = tokens.get(at + 1..).unwrap_or_default();
    if !tokens.get(at).is_some_and(|token| is_word(&token.token, "SUMMARIZE")) {
        return Ok(None);
    }
    let begins_query = |token: &Token| match token {
        Token::LParen => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM | Keyword::TABLE
        ),
        _ => false,
    };
    if rest.iter().find(|token| !blank(token)).is_some_and(|token| begins_query(&token.token)) {
        return Ok(Some(Summarized::Query(rest.to_vec())));
    }
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(rest.to_vec());
    let shown = Shown::of(&parser.parse_object_name(false).map_err(syntax)?)?;
    end(&mut parser)?;
    parse(&format!("SELECT * FROM {}", shown.written))
        .map(|query| Some(Summarized::Table(Box::new(query))))
}

fn show(parser: &mut Parser<'_>) -> Result<Statement> {
    let next = parser.peek_token().token;
    let is = |word: &str| is_word(&next, word);
    let list = |parser: &mut Parser<'_>, column: &str, from: &str| {
        parser.advance_token();
        let mut query = format!("SELECT {column} AS name FROM {from}");
        if parser.parse_keyword(Keyword::LIKE) {
            let pattern = Expr::literal(parser.parse_literal_string().map_err(syntax)?.as_str());
            let and = if from.contains(" WHERE ") { "AND" } else { "WHERE" };
            query.push_str(&format!(" {and} {column} LIKE {pattern}"));
        }
        end(parser)?;
        parse(&(query + " ORDER BY 1")).map(Statement::Query)
    };
    let of_type = |kind: &str| format!("information_schema.tables WHERE table_type {kind}");
    if is("TABLES") {
        return list(parser, SHOWN_NAME, &of_type("IN ('BASE TABLE', 'LOCAL TEMPORARY', 'VIEW')"));
    }
    if is("VIEWS") {
        return list(parser, SHOWN_NAME, &of_type("= 'VIEW'"));
    }
    if is("SESSIONS") {
        parser.advance_token();
        end(parser)?;
        return parse("SELECT * FROM esker_sessions ORDER BY id").map(Statement::Query);
    }
    if is("SCHEMAS") {
        return list(parser, "schema_name", "information_schema.schemata");
    }
    if is("SEQUENCES") {
        return list(parser, "sequence_name", "information_schema.sequences");
    }
    if is("FUNCTIONS") {
        return list(parser, "routine_name", "information_schema.routines");
    }
    if is("COLUMNS") || is("FIELDS") {
        parser.advance_token();
        let shown = behind_from(parser)?.ok_or_else(|| expected_from("COLUMNS"))?;
        end(parser)?;
        return columns_of(&shown);
    }
    if is("INDEXES") || is("INDEX") || is("INDICES") || is("KEYS") {
        return indexes(parser);
    }
    if parser.parse_keywords(&[Keyword::CREATE, Keyword::TABLE])
        || parser.parse_keywords(&[Keyword::CREATE, Keyword::VIEW])
    {
        let shown = Shown::of(&parser.parse_object_name(false).map_err(syntax)?)?;
        end(parser)?;
        let query = format!(
            "SELECT table_name AS \"table\", sql AS create_statement \
             FROM esker_tables t WHERE {}",
            shown.condition("")
        );
        return parse(&query).map(Statement::Query);
    }
    setting::show(parser)
}

/// What stands behind `SHOW INDEXES`.
fn indexes(parser: &mut Parser<'_>) -> Result<Statement> {
    parser.advance_token();
    let shown = behind_from(parser)?;
    end(parser)?;
    let condition = shown.map_or_else(|| "true".to_owned(), |shown| shown.condition(""));
    let query = format!(
        "SELECT index_name AS name, table_name AS \"table\", columns, kind, \
         is_unique AS \"unique\", condition FROM esker_indexes i \
         WHERE {condition} ORDER BY 2, 1"
    );
    parse(&query).map(Statement::Query)
}

fn expected_from(what: &str) -> Error {
    Error::invalid(format!("SHOW {what}: expected FROM and the name of a table"))
}

/// The table behind FROM or IN.
fn behind_from(parser: &mut Parser<'_>) -> Result<Option<Shown>> {
    match parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]) {
        Some(_) => Shown::of(&parser.parse_object_name(false).map_err(syntax)?).map(Some),
        None => Ok(None),
    }
}

fn columns_of(shown: &Shown) -> Result<Statement> {
    let query = format!(
        "SELECT column_name, type AS column_type, \
         CASE WHEN is_nullable THEN 'YES' ELSE 'NO' END AS \"null\", \
         CASE WHEN key_position IS NOT NULL THEN 'PRI' END AS key, \"default\", extra, comment \
         FROM esker_columns WHERE {} ORDER BY position",
        shown.condition("")
    );
    parse(&query).map(Statement::Query)
}

/// Nothing but semicolons is to follow.
pub(crate) fn end(parser: &mut Parser<'_>) -> Result<()> {
    while parser.consume_token(&Token::SemiColon) {}
    match parser.peek_token().token {
        Token::EOF => Ok(()),
        _ => parser.expected("the end of the statement", parser.peek_token()).map_err(syntax),
    }
}

/// A text that stands next.
pub(crate) fn text(parser: &mut Parser<'_>) -> Option<String> {
    let Token::SingleQuotedString(text) = parser.peek_token().token else { return None };
    parser.advance_token();
    Some(text)
}
