//! Statements that define tables and indexes, on a database or within a transaction.

use esker::{Alteration, ChangeOptions, Check, Error, ErrorKind, Result, Schema, Scope, Semantics};
use esker_query::Constraint;

use crate::index;
use crate::run::Outcome;
use crate::statement::Statement;

/// Runs a statement that defines a table or an index.
pub(crate) fn define(
    on: &dyn Scope,
    statement: &Statement,
    options: &ChangeOptions,
) -> Result<Outcome> {
    let dry_run = options.dry_run;
    let semantics = options.semantics.or(on.semantics());
    match statement {
        Statement::CreateTable { name, schema, if_not_exists } => {
            let exists = on.names()?.contains(name);
            if exists && *if_not_exists {
                return Ok(Outcome::Done(format!("table {name} exists already")));
            }
            if dry_run && !exists {
                return Ok(Outcome::Done(format!("would create table {name}")));
            }
            on.create_table(name, meant(schema, semantics)?)?;
            Ok(Outcome::Done(format!("created table {name}")))
        }
        Statement::AlterTable { name, alterations, if_exists } => {
            let alterations = alterations.iter().map(|step| step_meant(step, semantics));
            let alterations = alterations.collect::<Result<Vec<_>>>()?;
            let alter = |on: &dyn Scope, name: &str| on.alter_table(name, &alterations);
            about_table(on, name, (*if_exists, dry_run), ("alter", "altered"), alter)
        }
        Statement::RenameTable { name, to, if_exists } => {
            let rename = |on: &dyn Scope, name: &str| on.rename_table(name, to);
            about_table(on, name, (*if_exists, dry_run), ("rename", "renamed"), rename)
        }
        Statement::DropTable { name, if_exists } => {
            about_table(on, name, (*if_exists, dry_run), ("drop", "dropped"), |on, name| {
                on.drop_table(name)
            })
        }
        Statement::Truncate { name, if_exists } => {
            let truncate = |on: &dyn Scope, name: &str| on.truncate_table(name);
            about_table(on, name, (*if_exists, dry_run), ("truncate", "truncated"), truncate)
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
fn about_table(
    on: &dyn Scope,
    name: &str,
    (if_exists, dry_run): (bool, bool),
    (verb, done): (&str, &str),
    run: impl FnOnce(&dyn Scope, &str) -> Result<()>,
) -> Result<Outcome> {
    match on.table(name) {
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

/// A new table whose checks keep the settings of the session that defines it.
fn meant(schema: &Schema, semantics: Semantics) -> Result<Schema> {
    let mut steps = Vec::new();
    for check in schema.checks() {
        steps.push(Alteration::DropCheck(check.name.clone()));
        steps.push(step_meant(&Alteration::AddCheck(check.clone()), semantics)?);
    }
    Ok(schema.alter(&steps)?.with_version(schema.version()))
}

/// The same of a change of a table.
fn step_meant(step: &Alteration, semantics: Semantics) -> Result<Alteration> {
    let Alteration::AddCheck(Check { name, condition }) = step else { return Ok(step.clone()) };
    let condition = semantics.meant(Constraint::decode(condition)?);
    Ok(Alteration::AddCheck(esker::check(name, &condition)?))
}
