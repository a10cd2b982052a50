//! Statements that define tables and indexes, on a database or within a transaction.

use std::sync::Arc;

use esker::{Alteration, Database, Error, ErrorKind, Result, Schema, Transaction};

use crate::index;
use crate::run::Outcome;
use crate::statement::Statement;

/// What tables are defined on.
pub(crate) trait Definer {
    /// The tables there are, sorted.
    fn table_names(&self) -> Result<Vec<String>>;
    /// The fields of a table.
    fn schema(&self, name: &str) -> Result<Arc<Schema>>;
    fn create_table(&self, name: &str, schema: Schema) -> Result<()>;
    fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()>;
    fn rename_table(&self, from: &str, to: &str) -> Result<()>;
    fn drop_table(&self, name: &str) -> Result<()>;
}

impl Definer for Database {
    fn table_names(&self) -> Result<Vec<String>> {
        Ok(self.tables())
    }

    fn schema(&self, name: &str) -> Result<Arc<Schema>> {
        Ok(self.table(name)?.schema())
    }

    fn create_table(&self, name: &str, schema: Schema) -> Result<()> {
        self.create_table(name, schema).map(drop)
    }

    fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
        self.alter_table(name, alterations)
    }

    fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.rename_table(from, to)
    }

    fn drop_table(&self, name: &str) -> Result<()> {
        self.drop_table(name)
    }
}

impl Definer for Transaction {
    fn table_names(&self) -> Result<Vec<String>> {
        self.tables()
    }

    fn schema(&self, name: &str) -> Result<Arc<Schema>> {
        Ok(Arc::clone(self.table(name)?.schema()))
    }

    fn create_table(&self, name: &str, schema: Schema) -> Result<()> {
        self.create_table(name, schema).map(drop)
    }

    fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
        self.alter_table(name, alterations)
    }

    fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.rename_table(from, to)
    }

    fn drop_table(&self, name: &str) -> Result<()> {
        self.drop_table(name)
    }
}

/// Runs a statement that defines a table or an index.
pub(crate) fn define<D: Definer>(on: &D, statement: &Statement, dry_run: bool) -> Result<Outcome> {
    match statement {
        Statement::CreateTable { name, schema, if_not_exists } => {
            let exists = on.table_names()?.contains(name);
            if exists && *if_not_exists {
                return Ok(Outcome::Done(format!("table {name} exists already")));
            }
            if dry_run && !exists {
                return Ok(Outcome::Done(format!("would create table {name}")));
            }
            on.create_table(name, schema.clone())?;
            Ok(Outcome::Done(format!("created table {name}")))
        }
        Statement::AlterTable { name, alterations, if_exists } => {
            let alter = |on: &D, name: &str| on.alter_table(name, alterations);
            about_table(on, name, (*if_exists, dry_run), ("alter", "altered"), alter)
        }
        Statement::RenameTable { name, to, if_exists } => {
            let rename = |on: &D, name: &str| on.rename_table(name, to);
            about_table(on, name, (*if_exists, dry_run), ("rename", "renamed"), rename)
        }
        Statement::DropTable { name, if_exists } => {
            about_table(on, name, (*if_exists, dry_run), ("drop", "dropped"), D::drop_table)
        }
        Statement::CreateIndex { table, index, if_not_exists } => {
            index::run_create(on, table, index, *if_not_exists, dry_run)
        }
        Statement::DropIndex { table, name, if_exists } => {
            index::run_drop(on, table.as_deref(), name, *if_exists, dry_run)
        }
        _ => {
            let message = "expected a statement that defines a table or an index";
            Err(Error::new(ErrorKind::InvalidInput, message))
        }
    }
}

/// Does something to a table, unless it need not exist and does not, or only to see.
pub(crate) fn about_table<D: Definer>(
    on: &D,
    name: &str,
    (if_exists, dry_run): (bool, bool),
    (verb, done): (&str, &str),
    run: impl FnOnce(&D, &str) -> Result<()>,
) -> Result<Outcome> {
    match on.schema(name) {
        Err(e) if if_exists && e.kind() == ErrorKind::NotFound => {
            return Ok(Outcome::Done(format!("no table {name}")));
        }
        found => drop(found?),
    }
    if dry_run {
        return Ok(Outcome::Done(format!("would {verb} table {name}")));
    }
    run(on, name)?;
    Ok(Outcome::Done(format!("{done} table {name}")))
}
