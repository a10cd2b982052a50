//! `CREATE VIEW`, `ALTER VIEW … RENAME TO` and `DROP VIEW`, also of materialized views.

use esker::{
    Alteration, ChangeOptions, ErrorKind, KeptFor, Scope, Semantics, Transaction, ViewOptions,
};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::change::refuse_lost;
use crate::dialect::{self, EskerDialect};
use crate::expression::ParameterNames;
use crate::qualified_name;
use crate::run::Outcome;
use crate::schema;
use crate::statement::{Statement, syntax, unsupported};
use crate::table::refuse_both;
use crate::temporary::OnCommit;
use crate::{Result, select, view_option};

/// A view, of a statement with this text.
pub(crate) fn create(
    create: ast::CreateView,
    text: &str,
    parameters: &ParameterNames,
) -> Result<Statement> {
    let written = create.to_string();
    let is_rollup = create.materialized;
    let (history, with) = view_option::read(&create.options, is_rollup)?;
    let ast::CreateView { name, columns, query, or_replace, if_not_exists, temporary, .. } = create;
    let replace = if or_replace { "OR REPLACE " } else { "" };
    let kind = match (temporary, is_rollup) {
        // A session's own table has no parts that others would build partial aggregates of.
        (true, true) => return Err(unsupported("a temporary materialized view", written)),
        (true, false) => "TEMPORARY ",
        (false, true) => "MATERIALIZED ",
        (false, false) => "",
    };
    let condition = if if_not_exists { "IF NOT EXISTS " } else { "" };
    let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
    let list = match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", names.join(", ")),
    };
    let understood = format!("CREATE {replace}{kind}VIEW {condition}{name}{list}{with} AS {query}");
    refuse_lost(&written, &understood)?;
    refuse_both(or_replace, if_not_exists)?;
    let is_temporary = temporary || qualified_name::says_temporary(&name)?;
    if is_temporary && is_rollup {
        return Err(unsupported("a temporary materialized view", written));
    }
    let name = qualified_name::written(&name)?;
    let columns = columns.into_iter().map(|column| column.name.value).collect();
    let shown = behind_as(text).unwrap_or_else(|| query.to_string());
    let query = Box::new(select::convert(*query, parameters)?);
    let text = shown;
    let view = Statement::CreateView {
        name,
        columns,
        query,
        text,
        or_replace,
        if_not_exists,
        is_rollup,
        history,
    };
    Ok(if is_temporary { view.temporary(OnCommit::PreserveRows) } else { view })
}

const ALTER_MATERIALIZED_VIEW: [Keyword; 3] =
    [Keyword::ALTER, Keyword::MATERIALIZED, Keyword::VIEW];

/// What stands behind the first AS that is in no brackets.
fn behind_as(text: &str) -> Option<String> {
    let tokens = dialect::tokenize(text).ok()?;
    let mut depth = 0usize;
    let is_as = |token: &TokenWithSpan| {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(word) => {
                return depth == 0 && word.quote_style.is_none() && word.keyword == Keyword::AS;
            }
            _ => {}
        }
        false
    };
    let at = tokens.iter().position(is_as)?;
    let end = tokens.get(at)?.span.end;
    let line = usize::try_from(end.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(end.column).ok()?.checked_sub(1)?;
    let rest = text.split_inclusive('\n').skip(line).collect::<String>();
    let behind: String = rest.chars().skip(column).collect();
    Some(behind.trim().trim_end_matches(';').trim_end().to_owned())
}

/// Reads `ALTER [MATERIALIZED] VIEW [IF EXISTS] name RENAME TO name` and `… SET SCHEMA name`;
/// nothing when it is another statement.
pub(crate) fn rename(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    let of_kind = [&[Keyword::ALTER, Keyword::VIEW] as &[_], &ALTER_MATERIALIZED_VIEW];
    if !of_kind.into_iter().any(|words| parser.parse_keywords(words)) {
        return Ok(None);
    }
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let old = parser.parse_object_name(false).map_err(syntax)?;
    let name = qualified_name::written(&old)?;
    if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let schema = qualified_name::of_schema(&parser.parse_object_name(false).map_err(syntax)?)?;
        crate::show::end(&mut parser)?;
        return Ok(Some(Statement::SetSchema { name, schema, if_exists }));
    }
    if parser.parse_keyword(Keyword::SET) {
        parser.expect_token(&Token::LParen).map_err(syntax)?;
        let options = parser.parse_comma_separated(Parser::parse_sql_option).map_err(syntax)?;
        parser.expect_token(&Token::RParen).map_err(syntax)?;
        let kept = view_option::kept(&options)?;
        crate::show::end(&mut parser)?;
        return Ok(Some(Statement::SetViewRetention { name, kept }));
    }
    if !parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        let expected = "RENAME TO, SET SCHEMA or SET (retention = …)";
        return parser.expected(expected, parser.peek_token()).map_err(syntax);
    }
    let to = parser.parse_object_name(false).map_err(syntax)?;
    let to = qualified_name::new_name(&old, &to)?;
    while parser.consume_token(&Token::SemiColon) {}
    if parser.peek_token().token != Token::EOF {
        return parser.expected("the end", parser.peek_token()).map_err(syntax);
    }
    Ok(Some(Statement::RenameView { name, to, if_exists }))
}

pub(crate) fn run_create(
    on: &dyn Scope,
    statement: &Statement,
    semantics: Semantics,
    given: &ChangeOptions,
) -> esker::Result<Outcome> {
    let dry_run = given.dry_run;
    let Statement::CreateView {
        name,
        columns,
        query,
        text,
        or_replace,
        if_not_exists,
        is_rollup,
        history,
    } = statement
    else {
        return Err(esker::Error::new(ErrorKind::InvalidInput, "expected CREATE VIEW"));
    };
    let exists = on.has_view(name)?;
    if *if_not_exists && on.has_name(name)? {
        let views = on.views()?;
        let found = views.iter().find(|view| view.name == *name);
        let kind = found.map_or("table", |view| kind_of(view.is_rollup));
        return Ok(Outcome::Done(format!("{kind} {name} exists already")));
    }
    let options = ViewOptions {
        columns: columns.clone(),
        or_replace: *or_replace,
        semantics,
        text: Some(text.clone()),
        history: *history,
        others: given.others.clone(),
    };
    let (would, done) = match exists {
        true => ("would replace", "replaced"),
        false => ("would create", "created"),
    };
    let kind = kind_of(*is_rollup);
    if dry_run {
        return Ok(Outcome::Done(format!("{would} {kind} {name}")));
    }
    schema::expect_there(on, name)?;
    match is_rollup {
        true => on.create_rollup_with(name, query, &options)?,
        false => on.create_view_with(name, query, &options)?,
    }
    Ok(Outcome::Done(format!("{done} {kind} {name}")))
}

/// What a view is called.
pub(crate) fn kind_of(is_rollup: bool) -> &'static str {
    if is_rollup { "materialized view" } else { "view" }
}

pub(crate) fn rename_view(
    on: &dyn Scope,
    (name, to): (&str, &str),
    (if_exists, dry_run): (bool, bool),
) -> esker::Result<Outcome> {
    if if_exists && !on.has_view(name)? {
        return Ok(Outcome::Done(format!("no view {name}")));
    }
    if dry_run {
        return Ok(Outcome::Done(format!("would rename view {name}")));
    }
    on.rename_view(name, &schema::beside(on, name, to)?)?;
    Ok(Outcome::Done(format!("renamed view {name}")))
}

pub(crate) fn set_retention(
    on: &dyn Scope,
    (name, kept): (&str, KeptFor),
    dry_run: bool,
) -> esker::Result<Outcome> {
    if dry_run {
        return Ok(Outcome::Done(format!("would alter materialized view {name}")));
    }
    on.set_rollup_retention(name, kept)?;
    Ok(Outcome::Done(format!("altered materialized view {name}")))
}

/// Drops tables or views, in one commit.
pub(crate) fn drop_all(
    on: &dyn Scope,
    kind: &str,
    names: &[String],
    (if_exists, cascade, dry_run): (bool, bool, bool),
) -> esker::Result<Outcome> {
    let listed = names.join(", ");
    let kinds = match names.len() {
        1 => kind.to_owned(),
        _ => format!("{kind}s"),
    };
    if dry_run {
        return Ok(Outcome::Done(format!("would drop {kinds} {listed}")));
    }
    let mut dropped = 0;
    on.at_once(&mut |within| {
        dropped = 0;
        let mut names = in_order(within, names)?;
        names.dedup();
        // Before any is gone: the error of one that is not there lists all that are.
        if let Some(missing) = missing(within, kind, &names)?.filter(|_| !if_exists) {
            return drop_one(within, kind, missing);
        }
        if kind == "table" {
            names.iter().try_for_each(|name| unbind(within, name, (&names, cascade)))?;
        }
        for name in &names {
            if cascade {
                within.drop_dependants(name)?;
            }
            match drop_one(within, kind, name) {
                Err(e) if if_exists && e.kind() == ErrorKind::NotFound => {}
                done => {
                    done?;
                    dropped += 1;
                }
            }
        }
        Ok(())
    })?;
    Ok(Outcome::Done(match dropped {
        0 => format!("no {kinds} {listed}"),
        _ => format!("dropped {kinds} {listed}"),
    }))
}

fn drop_one(within: &Transaction, kind: &str, name: &str) -> esker::Result<()> {
    match kind {
        "view" => within.drop_view(name),
        "materialized view" => within.drop_rollup(name),
        _ => within.drop_table(name),
    }
}

/// The first name that nothing of a kind has.
fn missing<'n>(
    within: &Transaction,
    kind: &str,
    names: &'n [String],
) -> esker::Result<Option<&'n String>> {
    for name in names {
        let is_there = match kind {
            "view" | "materialized view" => Scope::has_view(within, name)?,
            _ => within.table(name).is_ok(),
        };
        if !is_there {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The names, those that others of them read last.
fn in_order(within: &Transaction, names: &[String]) -> esker::Result<Vec<String>> {
    let mut ordered: Vec<String> = Vec::new();
    for name in names {
        for reader in Scope::dependants_of(within, name)? {
            if names.contains(&reader) && !ordered.contains(&reader) {
                ordered.push(reader);
            }
        }
        if !ordered.contains(name) {
            ordered.push(name.clone());
        }
    }
    Ok(ordered)
}

/// Drops the references to a table: of all tables, or of those that go with it.
fn unbind(within: &Transaction, name: &str, (going, all): (&[String], bool)) -> esker::Result<()> {
    let table = match within.table(name) {
        // It is told of where the table is dropped.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(_) if Scope::has_view(within, name)? => return Ok(()),
        found => found?,
    };
    for referrer in table.schema().referrers() {
        if referrer.table != name && (all || going.contains(&referrer.table)) {
            let gone = Alteration::DropReference(referrer.reference.clone());
            within.alter_table(&referrer.table, &[gone])?;
        }
    }
    Ok(())
}
