//! Temporary tables and views: a session's own.
//!
//! ```text
//! Session ─┬─ database, or a transaction over it          tables of all
//!          └─ private database, or a transaction over it  its temporary tables and views
//! ```
//!
//! The private database is made by the first `CREATE TEMP`, and goes with the session. A
//! transaction of the session is one of each: savepoints are set in both, and what is temporary is
//! committed once the other part is, which may fail. A statement changes one of them and may read
//! both: see [`placed`](crate::placed).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker::{Alteration, Database, Savepoint, Scope, Transaction};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

use crate::placed::OwnNames;
use crate::statement::Statement;
use crate::{Error, Result};

/// What becomes of a temporary table at the end of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// Nothing.
    #[default]
    PreserveRows,
    /// It has no rows any more.
    DeleteRows,
    /// It is dropped.
    Drop,
}

impl OnCommit {
    /// `ON COMMIT …`; nothing where it does not stand next.
    pub(crate) fn parse(
        parser: &mut Parser<'_>,
    ) -> std::result::Result<Option<ast::OnCommit>, ParserError> {
        if !parser.parse_keywords(&[Keyword::ON, Keyword::COMMIT]) {
            return Ok(None);
        }
        if parser.parse_keywords(&[Keyword::DELETE, Keyword::ROWS]) {
            return Ok(Some(ast::OnCommit::DeleteRows));
        }
        if parser.parse_keywords(&[Keyword::PRESERVE, Keyword::ROWS]) {
            return Ok(Some(ast::OnCommit::PreserveRows));
        }
        match parser.parse_keyword(Keyword::DROP) {
            true => Ok(Some(ast::OnCommit::Drop)),
            false => parser.expected("PRESERVE ROWS, DELETE ROWS or DROP", parser.peek_token()),
        }
    }

    /// The same as it was written, behind a space.
    pub(crate) fn text(written: Option<ast::OnCommit>) -> &'static str {
        match written {
            None => "",
            Some(ast::OnCommit::DeleteRows) => " ON COMMIT DELETE ROWS",
            Some(ast::OnCommit::PreserveRows) => " ON COMMIT PRESERVE ROWS",
            Some(ast::OnCommit::Drop) => " ON COMMIT DROP",
        }
    }

    /// What a table is made with.
    pub(crate) fn read(written: Option<ast::OnCommit>, is_temporary: bool) -> Result<Self> {
        Ok(match written {
            Some(_) if !is_temporary => {
                let message = "ON COMMIT is of a temporary table: CREATE TEMP TABLE";
                return Err(Error::invalid(message));
            }
            None | Some(ast::OnCommit::PreserveRows) => Self::PreserveRows,
            Some(ast::OnCommit::DeleteRows) => Self::DeleteRows,
            Some(ast::OnCommit::Drop) => Self::Drop,
        })
    }
}

/// What tables of a session become at the end of a transaction, where that is anything.
type Ends = Arc<BTreeMap<String, OnCommit>>;

/// What a session has for itself alone.
#[derive(Debug)]
pub(crate) struct Own {
    database: Database,
    /// Between `BEGIN` and `COMMIT`.
    transaction: Option<Transaction>,
    ends: Ends,
}

/// How it was at a savepoint, or when a transaction began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark {
    savepoint: Option<Savepoint>,
    ends: Ends,
}

impl Own {
    /// Nothing yet, beside a database.
    pub(crate) fn new(beside: &Database) -> esker::Result<Self> {
        let (transaction, ends) = (None, Ends::default());
        Ok(Self { database: beside.private()?, transaction, ends })
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        self.transaction.as_ref()
    }

    /// What its names mean, and where changes go.
    pub(crate) fn scope(&self) -> &dyn Scope {
        match &self.transaction {
            Some(transaction) => transaction,
            None => &self.database,
        }
    }

    /// The names of its tables and views.
    pub(crate) fn names(&self) -> esker::Result<OwnNames> {
        let views = self.scope().views()?.into_iter().map(|view| view.name);
        let all: BTreeSet<String> = self.scope().names()?.into_iter().chain(views).collect();
        Ok(OwnNames::new(all))
    }

    /// Begins a transaction. It writes also where the other part only reads.
    pub(crate) fn begin(&mut self) -> esker::Result<()> {
        self.transaction = Some(self.database.begin()?);
        Ok(())
    }

    /// How it is now.
    pub(crate) fn mark(&self) -> Mark {
        let savepoint = self.transaction.as_ref().map(Transaction::savepoint);
        Mark { savepoint, ends: Arc::clone(&self.ends) }
    }

    /// Goes back to how it was.
    pub(crate) fn go_back(&mut self, mark: &Mark) -> esker::Result<()> {
        if let (Some(transaction), Some(savepoint)) = (&self.transaction, mark.savepoint) {
            transaction.rollback_to(savepoint)?;
        }
        self.ends = Arc::clone(&mark.ends);
        Ok(())
    }

    /// Forgets how it was.
    pub(crate) fn forget(&self, mark: &Mark) -> esker::Result<()> {
        match (&self.transaction, mark.savepoint) {
            (Some(transaction), Some(savepoint)) => transaction.release(savepoint),
            _ => Ok(()),
        }
    }

    /// Forgets what the transaction has changed.
    pub(crate) fn roll_back(&mut self, mark: &Mark) {
        self.transaction = None;
        self.ends = Arc::clone(&mark.ends);
    }

    /// Makes what the transaction has changed stay.
    pub(crate) fn commit(&mut self) -> esker::Result<()> {
        match self.transaction.take() {
            Some(transaction) => {
                let ends = self.end(&transaction)?;
                transaction.commit()?;
                self.ends = ends;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Ends a statement that is a transaction by itself.
    pub(crate) fn end_statement(&mut self) -> esker::Result<()> {
        if self.transaction.is_some() || self.ends.is_empty() {
            return Ok(());
        }
        self.begin()?;
        self.commit()
    }

    /// Empties and drops what does not outlast a transaction; returns what then does, and how.
    fn end(&self, transaction: &Transaction) -> esker::Result<Ends> {
        let mut left = BTreeMap::new();
        for (name, on_commit) in self.ends.iter() {
            let Ok(table) = transaction.table(name) else { continue };
            match on_commit {
                OnCommit::PreserveRows => {}
                OnCommit::DeleteRows => {
                    if table.count()? > 0 {
                        transaction.truncate_table(name)?;
                    }
                    left.insert(name.clone(), *on_commit);
                }
                OnCommit::Drop => {
                    transaction.drop_dependants(name)?;
                    transaction.drop_table(name)?;
                }
            }
        }
        Ok(Arc::new(left))
    }

    /// Refuses references to tables that a commit empties or drops: rows would go that others
    /// refer to.
    ///
    /// # Errors
    /// `InvalidInput` naming the table.
    pub(crate) fn expect_lasting_targets(&self, statement: &Statement) -> esker::Result<()> {
        let targets: Vec<&String> = match statement {
            Statement::CreateTable { schema, .. } => {
                schema.references().iter().map(|reference| &reference.table).collect()
            }
            Statement::AlterTable { alterations, .. } => {
                let added = alterations.iter().filter_map(|alteration| match alteration {
                    Alteration::AddReference(reference) => Some(&reference.table),
                    _ => None,
                });
                added.collect()
            }
            _ => Vec::new(),
        };
        match targets.into_iter().find(|table| self.ends.contains_key(*table)) {
            None => Ok(()),
            Some(table) => Err(esker::Error::new(
                esker::ErrorKind::InvalidInput,
                format!(
                    "temporary table {table:?} is emptied or dropped ON COMMIT: expected a \
                     reference to one that keeps its rows"
                ),
            )),
        }
    }

    /// Notes what becomes of a new table.
    pub(crate) fn note(&mut self, name: &str, on_commit: OnCommit) {
        let ends = Arc::make_mut(&mut self.ends);
        match on_commit {
            OnCommit::PreserveRows => drop(ends.remove(name)),
            _ => drop(ends.insert(name.to_owned(), on_commit)),
        }
    }

    /// Notes that a table has another name.
    pub(crate) fn note_name(&mut self, from: &str, to: &str) {
        if let Some(on_commit) = Arc::make_mut(&mut self.ends).remove(from) {
            self.note(to, on_commit);
        }
    }
}
