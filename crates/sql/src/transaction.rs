//! `BEGIN`, `COMMIT`, `ROLLBACK` and savepoints.

use esker::{Isolation, TransactionOptions};
use sqlparser::ast;

use crate::statement::Statement;
use crate::{Error, Result};

/// A statement about the transaction itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatement {
    /// Begin one: `BEGIN`, `START TRANSACTION ISOLATION LEVEL SERIALIZABLE`.
    Begin(TransactionOptions),
    /// Make its changes visible and durable: `COMMIT`, `END`.
    Commit,
    /// Forget its changes: `ROLLBACK`.
    Rollback,
    /// Remember how it is: `SAVEPOINT name`.
    Savepoint(String),
    /// Go back: `ROLLBACK TO name`.
    RollbackTo(String),
    /// Forget a savepoint: `RELEASE name`.
    Release(String),
}

/// Reads a statement about a transaction; `None` for anything else.
pub(crate) fn convert(statement: &ast::Statement) -> Result<Option<Statement>> {
    let name = |name: &ast::Ident| name.value.clone();
    Ok(Some(Statement::Transaction(match statement {
        ast::Statement::StartTransaction {
            modes,
            modifier: None,
            statements,
            exception: None,
            has_end_keyword: false,
            ..
        } if statements.is_empty() => TransactionStatement::Begin(options(modes)?),
        ast::Statement::Commit { chain: false, modifier: None, .. } => TransactionStatement::Commit,
        ast::Statement::Rollback { chain: false, savepoint } => match savepoint {
            None => TransactionStatement::Rollback,
            Some(savepoint) => TransactionStatement::RollbackTo(name(savepoint)),
        },
        ast::Statement::Savepoint { name: savepoint } => {
            TransactionStatement::Savepoint(name(savepoint))
        }
        ast::Statement::ReleaseSavepoint { name: savepoint } => {
            TransactionStatement::Release(name(savepoint))
        }
        _ => return Ok(None),
    })))
}

fn options(modes: &[ast::TransactionMode]) -> Result<TransactionOptions> {
    use ast::{TransactionAccessMode, TransactionIsolationLevel, TransactionMode};
    let mut options = TransactionOptions::new();
    for mode in modes {
        options = match mode {
            TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => options.read_only(true),
            TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => {
                options.read_only(false)
            }
            TransactionMode::IsolationLevel(TransactionIsolationLevel::Serializable) => {
                options.isolation(Isolation::Serializable)
            }
            TransactionMode::IsolationLevel(
                TransactionIsolationLevel::Snapshot | TransactionIsolationLevel::RepeatableRead,
            ) => options.isolation(Isolation::Snapshot),
            TransactionMode::IsolationLevel(level) => {
                return Err(Error::invalid(format!(
                    "ISOLATION LEVEL {level}: expected SNAPSHOT, REPEATABLE READ, which is the \
                     same here, or SERIALIZABLE"
                )));
            }
        };
    }
    Ok(options)
}
