//! `CREATE TABLE … AS`: a table with the rows that a query answers.

use esker::{ChangeOptions, Changed, ErrorKind, Scope, TableAs};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::conflict_target::join_paths;
use crate::dialect::EskerDialect;
use crate::expression::ParameterNames;
use crate::qualified_name::{says_temporary, written};
use crate::run::Outcome;
use crate::statement::{NESTING_MAX, Statement, syntax};
use crate::table::refuse_both;
use crate::temporary::OnCommit;
use crate::{Result, select};

/// What stands before the query.
struct Start {
    name: sqlparser::ast::ObjectName,
    columns: Columns,
    or_replace: bool,
    if_not_exists: bool,
    is_temporary: bool,
    on_commit: Option<sqlparser::ast::OnCommit>,
}

/// What may stand in brackets behind the name.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    primary_key: Vec<String>,
}

/// Reads `CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name [(a, b, PRIMARY KEY (a))]
/// [ON COMMIT …] AS query [WITH [NO] DATA]`; nothing when it is another statement.
pub(crate) fn read(
    tokens: &[TokenWithSpan],
    parameters: &ParameterNames,
) -> Result<Option<Statement>> {
    let mut words = tokens.iter().filter_map(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    });
    if words.next() != Some(Keyword::CREATE) || !words.any(|word| word == Keyword::AS) {
        return Ok(None);
    }
    let parser = Parser::new(&EskerDialect).with_recursion_limit(NESTING_MAX);
    let mut parser = parser.with_tokens_with_locations(join_paths(tokens.to_vec()));
    let Some(start) = start(&mut parser) else { return Ok(None) };
    let Start { name, columns, or_replace, if_not_exists, is_temporary, mut on_commit } = start;
    let query = parser.parse_query().map_err(syntax)?;
    let mut with_data = true;
    if parser.parse_keyword(Keyword::WITH) {
        with_data = !parser.parse_keyword(Keyword::NO);
        parser.expect_keyword(Keyword::DATA).map_err(syntax)?;
    }
    if on_commit.is_none() {
        on_commit = OnCommit::parse(&mut parser).map_err(syntax)?;
    }
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token().token != Token::EOF {
        return parser.expected("the end of the statement", parser.peek_token()).map_err(syntax);
    }
    refuse_both(or_replace, if_not_exists)?;
    let is_temporary = is_temporary || says_temporary(&name)?;
    let on_commit = OnCommit::read(on_commit, is_temporary)?;
    let name = written(&name)?;
    let query = Box::new(select::convert(*query, parameters)?);
    let Columns { names: columns, primary_key } = columns;
    let table = Statement::CreateTableAs {
        name,
        query,
        columns,
        primary_key,
        with_data,
        or_replace,
        if_not_exists,
    };
    Ok(Some(if is_temporary { table.temporary(on_commit) } else { table }))
}

/// What stands before the query; nothing where it is no such statement.
fn start(parser: &mut Parser<'_>) -> Option<Start> {
    if !parser.parse_keyword(Keyword::CREATE) {
        return None;
    }
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let _ = parser.parse_one_of_keywords(&[Keyword::LOCAL, Keyword::GLOBAL]);
    let temporary = [Keyword::TEMP, Keyword::TEMPORARY];
    let is_temporary = parser.parse_one_of_keywords(&temporary).is_some();
    if !parser.parse_keyword(Keyword::TABLE) {
        return None;
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false).ok()?;
    let mut columns = Columns::default();
    if parser.consume_token(&Token::LParen) {
        columns = in_brackets(parser)?;
    }
    let on_commit = OnCommit::parse(parser).ok()?;
    parser.parse_keyword(Keyword::AS).then_some(Start {
        name,
        columns,
        or_replace,
        if_not_exists,
        is_temporary,
        on_commit,
    })
}

/// Names of columns, and the key.
fn in_brackets(parser: &mut Parser<'_>) -> Option<Columns> {
    let mut columns = Columns::default();
    loop {
        if parser.parse_keywords(&[Keyword::PRIMARY, Keyword::KEY]) {
            parser.expect_token(&Token::LParen).ok()?;
            let names = parser.parse_comma_separated(Parser::parse_identifier).ok()?;
            columns.primary_key.extend(names.into_iter().map(|name| name.value));
            parser.expect_token(&Token::RParen).ok()?;
        } else {
            columns.names.push(parser.parse_identifier().ok()?.value);
        }
        if parser.consume_token(&Token::RParen) {
            return Some(columns);
        }
        parser.expect_token(&Token::Comma).ok()?;
    }
}

pub(crate) fn run(
    on: &dyn Scope,
    statement: &Statement,
    options: &ChangeOptions,
) -> esker::Result<Outcome> {
    let Statement::CreateTableAs {
        name,
        query,
        columns,
        primary_key,
        with_data,
        or_replace,
        if_not_exists,
    } = statement
    else {
        return Err(esker::Error::new(ErrorKind::InvalidInput, "expected CREATE TABLE … AS"));
    };
    let is_view = on.has_view(name)?;
    let exists = on.has_name(name)?;
    if *if_not_exists && exists {
        let kind = if is_view { "view" } else { "table" };
        return Ok(Outcome::Done(format!("{kind} {name} exists already")));
    }
    if options.dry_run && (!exists || *or_replace) {
        return Ok(Outcome::Done(format!("would create table {name}")));
    }
    let table = TableAs {
        columns: columns.clone(),
        primary_key: primary_key.clone(),
        or_replace: *or_replace,
        is_empty: !with_data,
    };
    let semantics = options.semantics.or(on.semantics());
    let options = ChangeOptions { semantics, ..options.clone() };
    crate::schema::expect_there(on, name)?;
    let rows = on.create_table_as(name, query, &table, &options)?;
    Ok(Outcome::Added(Changed { rows, returning: None }))
}
