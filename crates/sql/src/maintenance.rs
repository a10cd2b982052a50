//! `CHECKPOINT`, `VACUUM` and `ANALYZE`: looking after a database; and `LOCK TABLE`.

use esker::{Database, Error, ErrorKind, Result, Transaction};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::{EskerDialect, is_word};
use crate::qualified_name;
use crate::run::Outcome;
use crate::show::end;
use crate::statement::{Statement, syntax};

/// What looks after a database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MaintenanceStatement {
    /// Make a checkpoint: `CHECKPOINT`.
    Checkpoint,
    /// Rewrite what has dead rows, and make few segments of many: `VACUUM`. Of all tables where
    /// none is named.
    Vacuum(Vec<String>),
    /// Nothing: statistics are kept with the rows. `ANALYZE`.
    Analyze(Vec<String>),
}

/// The modes of LOCK TABLE, and whether rows that others change meanwhile are a conflict.
const MODES: [(&str, bool); 8] = [
    ("ACCESS SHARE", false),
    ("ROW SHARE", false),
    ("ROW EXCLUSIVE", false),
    ("SHARE UPDATE EXCLUSIVE", false),
    ("SHARE ROW EXCLUSIVE", true),
    ("ACCESS EXCLUSIVE", true),
    ("EXCLUSIVE", true),
    ("SHARE", true),
];

/// Reads one of these statements; nothing when it is another.
pub(crate) fn read(tokens: &[TokenWithSpan]) -> crate::Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    let first = parser.next_token().token;
    let is = |word: &str| is_word(&first, word);
    let statement = if is("CHECKPOINT") {
        Statement::Maintenance(MaintenanceStatement::Checkpoint)
    } else if is("VACUUM") {
        let _ = parser.parse_keyword(Keyword::FULL);
        let _ = parser.parse_keyword(Keyword::ANALYZE);
        refuse_options(&parser, "VACUUM")?;
        Statement::Maintenance(MaintenanceStatement::Vacuum(tables(&mut parser)?))
    } else if is("ANALYZE") {
        refuse_options(&parser, "ANALYZE")?;
        Statement::Maintenance(MaintenanceStatement::Analyze(tables(&mut parser)?))
    } else if is("LOCK") {
        lock(&mut parser)?
    } else {
        return Ok(None);
    };
    end(&mut parser)?;
    Ok(Some(statement))
}

fn refuse_options(parser: &Parser<'_>, what: &str) -> crate::Result<()> {
    match parser.peek_token_ref().token {
        Token::LParen => Err(crate::Error::invalid(format!(
            "{what} has no options here: expected the names of tables, or nothing for all"
        ))),
        _ => Ok(()),
    }
}

/// The names of tables, with commas between; none at the end.
fn tables(parser: &mut Parser<'_>) -> crate::Result<Vec<String>> {
    if matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        return Ok(Vec::new());
    }
    let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false));
    names.map_err(syntax)?.iter().map(qualified_name::written).collect()
}

/// What stands behind LOCK.
fn lock(parser: &mut Parser<'_>) -> crate::Result<Statement> {
    let _ = parser.parse_keyword(Keyword::TABLE);
    let _ = parser.parse_keyword(Keyword::ONLY);
    let tables = tables(parser)?;
    if tables.is_empty() {
        return parser.expected("the name of a table", parser.peek_token()).map_err(syntax);
    }
    let mut holds = true;
    if parser.parse_keyword(Keyword::IN) {
        let mut words = Vec::new();
        while !parser.parse_keyword(Keyword::MODE) {
            match parser.next_token().token {
                Token::Word(word) => words.push(word.value.to_ascii_uppercase()),
                _ => return parser.expected("MODE", parser.peek_token()).map_err(syntax),
            }
        }
        let mode = words.join(" ");
        let found = MODES.iter().find(|(name, _)| *name == mode);
        holds = found.map(|(_, holds)| *holds).ok_or_else(|| {
            let all: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
            crate::Error::invalid(format!(
                "LOCK TABLE … IN {mode} MODE: expected one of {}",
                all.join(", ")
            ))
        })?;
    }
    // Nothing waits.
    let _ = parser.parse_keyword(Keyword::NOWAIT);
    Ok(Statement::LockTable { tables, holds })
}

pub(crate) fn run(
    db: &Database,
    statement: &MaintenanceStatement,
    dry_run: bool,
) -> Result<Outcome> {
    let done = |text: String| Ok(Outcome::Done(text));
    match statement {
        MaintenanceStatement::Checkpoint if dry_run => done("would make a checkpoint".to_owned()),
        MaintenanceStatement::Checkpoint => {
            db.checkpoint()?;
            done("made a checkpoint".to_owned())
        }
        MaintenanceStatement::Vacuum(names) => {
            let tables = names.iter().map(|name| db.table(name)).collect::<Result<Vec<_>>>()?;
            let rewritten = match tables.as_slice() {
                [] => db.compact(dry_run, &mut |_, _| {})?.rewritten,
                tables => {
                    let one = |table: &esker::Table| table.compact(dry_run, &mut |_, _| {});
                    let reports = tables.iter().map(one).collect::<Result<Vec<_>>>()?;
                    reports.iter().map(|report| report.rewritten).sum()
                }
            };
            let verb = if dry_run { "would rewrite" } else { "rewrote" };
            let segments = if rewritten == 1 { "segment" } else { "segments" };
            done(format!("{verb} {rewritten} {segments}"))
        }
        MaintenanceStatement::Analyze(names) => {
            names.iter().try_for_each(|name| db.table(name).map(drop))?;
            done("nothing to do: statistics are kept with the rows".to_owned())
        }
    }
}

/// What is refused within a transaction.
pub(crate) fn outside_only() -> Error {
    let message = "CHECKPOINT, VACUUM and ANALYZE are about the whole database, and not within a \
                   transaction: COMMIT or ROLLBACK first";
    Error::new(ErrorKind::InvalidInput, message)
}

/// What LOCK TABLE is refused with where there is no transaction.
pub(crate) fn inside_only() -> Error {
    let message = "LOCK TABLE is until the end of a transaction: expected BEGIN before";
    Error::new(ErrorKind::InvalidInput, message)
}

pub(crate) fn lock_tables(within: &Transaction, tables: &[String], holds: bool) -> Result<Outcome> {
    // Those that are not there are refused before the first is held.
    tables.iter().try_for_each(|name| within.table(name).map(drop))?;
    let names = tables.join(", ");
    if !holds {
        let why = "nobody waits, and rows of it may be changed by others";
        return Ok(Outcome::Done(format!("nothing to do for {names}: {why}")));
    }
    tables.iter().try_for_each(|name| within.hold_table(name))?;
    Ok(Outcome::Done(format!("holds {names}: a commit of others is a conflict")))
}
