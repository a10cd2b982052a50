//! `CREATE SEQUENCE`, and fields that have a sequence of their own.

use esker::{Database, ErrorKind, MAIN_SCHEMA};
use esker_format::DataType;
use esker_format::schema::Identity;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::EskerDialect;
use crate::expression::{Names, ParameterNames};
use crate::run::Outcome;
use crate::statement::{Statement, syntax, unsupported};
use crate::{Error, Result, column, qualified_name};

/// `ALTER TABLE … ALTER COLUMN … RESTART`: the sequence of an identity begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartStatement {
    /// The table.
    pub table: String,
    /// The field that is an identity.
    pub field: String,
    /// The next value; without it the first one.
    pub start: Option<i64>,
    /// Whether it is good that there is no such table.
    pub if_exists: bool,
}

/// Reads `CREATE SEQUENCE [IF NOT EXISTS] name [START [WITH] n] [INCREMENT [BY] n]`, the options in
/// any order; nothing when it is another statement.
pub(crate) fn create(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    if !parser.parse_keywords(&[Keyword::CREATE, Keyword::SEQUENCE]) {
        return Ok(None);
    }
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = sequence_name(&parser.parse_object_name(false).map_err(syntax)?)?;
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
    whole_number(&parser.parse_expr().map_err(syntax)?, what)
}

/// The same of an expression that has been read.
fn whole_number(expr: &ast::Expr, what: &str) -> Result<i64> {
    let converted = Names::new(Vec::new(), &ParameterNames::default()).convert(expr)?;
    match column::constant(&converted)? {
        esker_format::Value::Int(number) => Ok(number),
        _ => Err(Error::invalid(format!("{what}: expected a whole number, found `{expr}`"))),
    }
}

/// What `GENERATED … AS IDENTITY (…)` says.
pub(crate) fn identity(
    generated: &ast::GeneratedAs,
    options: &[ast::SequenceOptions],
) -> Result<Identity> {
    let is_always = matches!(generated, ast::GeneratedAs::Always);
    let mut identity = Identity { is_always, ..Identity::default() };
    for option in options {
        use ast::SequenceOptions as O;
        match option {
            O::StartWith(expr, _) => identity.start = whole_number(expr, "START")?,
            O::IncrementBy(expr, _) => identity.increment = whole_number(expr, "INCREMENT")?,
            // That is so anyway; how many are made ready at once does not show.
            O::MinValue(None) | O::MaxValue(None) | O::Cycle(true) | O::Cache(_) => {}
            _ => return Err(unsupported("this option of an identity", option)),
        }
    }
    Ok(identity)
}

/// The same of a property of a field that has been read.
pub(crate) fn identity_of(option: &ast::ColumnOption) -> Result<Identity> {
    match option {
        ast::ColumnOption::Generated { generated_as, sequence_options: Some(options), .. } => {
            identity(generated_as, options)
        }
        other => Err(unsupported("this identity", other)),
    }
}

/// What stands behind RESTART: `[WITH] n`, or nothing.
pub(crate) fn restarted_with(parser: &mut Parser<'_>) -> Result<Option<i64>> {
    let says = parser.parse_keyword(Keyword::WITH);
    match parser.peek_token().token {
        Token::EOF | Token::SemiColon if !says => Ok(None),
        _ => number(parser, "RESTART").map(Some),
    }
}

/// Lets the sequence of an identity begin again.
pub(crate) fn restart(
    db: &Database,
    RestartStatement { table, field, start, if_exists }: &RestartStatement,
    dry_run: bool,
) -> esker::Result<Outcome> {
    let schema = match db.table(table) {
        Err(e) if *if_exists && e.kind() == ErrorKind::NotFound => {
            return Ok(Outcome::Done(format!("no table {table}")));
        }
        found => found?.schema(),
    };
    let known = schema.fields().get(schema.resolve(field)?);
    let own = known.and_then(|field| Some((field.own_sequence()?, field.identity?)));
    let (name, identity) = own.ok_or_else(|| {
        let message = format!("table {table:?}: field {field:?} is no identity");
        esker::Error::new(ErrorKind::InvalidInput, message)
    })?;
    if dry_run {
        return Ok(Outcome::Done(format!("would restart {field} of table {table}")));
    }
    // default: it begins as it did first
    db.restart_sequence(name, Some(start.unwrap_or(identity.start)))?;
    Ok(Outcome::Done(format!("restarted {field} of table {table}")))
}

/// The name of a sequence of all: a session has those of its temporary tables alone.
///
/// # Errors
/// `InvalidInput` for one of a temporary table.
pub(crate) fn sequence_name(name: &ast::ObjectName) -> Result<String> {
    if qualified_name::says_temporary(name)? {
        return Err(Error::invalid(format!(
            "{name}: expected a sequence of main; that of a temporary table comes and goes with \
             the table"
        )));
    }
    let whole = qualified_name::written(name)?;
    let of_main = whole.strip_prefix(MAIN_SCHEMA).and_then(|rest| rest.strip_prefix('.'));
    // default: it is in a schema that users have made, or says none
    Ok(of_main.map_or_else(|| whole.clone(), str::to_owned))
}

/// Whether there is a sequence of a name.
pub(crate) fn is_there(db: &Database, name: &str) -> bool {
    db.sequences().iter().any(|sequence| sequence.name == name)
}

/// The type that a name of PostgreSQL stands for beside an identity: `serial` and its like. Each is
/// that of the integer of its name, so that `serial` is what `int` is, which refers to it.
pub(crate) fn serial(name: &ast::DataType) -> Option<DataType> {
    Some(match name.to_string().to_ascii_lowercase().as_str() {
        "smallserial" | "serial2" => DataType::I16,
        "serial" | "serial4" | "bigserial" | "serial8" => DataType::I64,
        _ => return None,
    })
}

/// Whether words are what SQLite and MySQL write for an identity.
pub(crate) fn is_autoincrement(tokens: &[Token]) -> bool {
    matches!(tokens, [Token::Word(word)]
        if ["AUTOINCREMENT", "AUTO_INCREMENT"].iter().any(|w| word.value.eq_ignore_ascii_case(w)))
}
