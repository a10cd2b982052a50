//! Statements that define tables and indexes, on a database or within a transaction.

use std::borrow::Cow;
use std::sync::Arc;

use esker::{
    Alteration, ChangeOptions, Check, Error, ErrorKind, Field, Generated, Result, Schema, Scope,
    Semantics,
};
use esker_query::{Constraint, GeneratedValue};

use crate::run::Outcome;
use crate::statement::Statement;
use crate::{alter, comment, index, schema, table_as, view};

/// Runs a statement that defines a table or an index.
pub(crate) fn define(
    on: &dyn Scope,
    statement: &Statement,
    options: &ChangeOptions,
) -> Result<Outcome> {
    let dry_run = options.dry_run;
    let semantics = options.semantics.or(on.semantics());
    match statement {
        Statement::CreateTableAs { .. } => table_as::run(on, statement, options),
        Statement::CreateTable { .. } => create_table(on, statement, (semantics, dry_run)),
        Statement::AlterTable { .. } => alter_table(on, statement, (semantics, dry_run)),
        Statement::RenameTable { name, to, if_exists } => {
            if on.has_view(name)? {
                return view::rename_view(on, (name, to), (*if_exists, dry_run));
            }
            let rename =
                |on: &dyn Scope, name: &str| on.rename_table(name, &schema::beside(on, name, to)?);
            about_table(on, name, (*if_exists, dry_run), ("rename", "renamed"), rename)
        }
        Statement::DropTable { names, if_exists, cascade } => match names.as_slice() {
            [name] if !cascade => {
                let drop = |on: &dyn Scope, name: &str| on.drop_table(name);
                about_table(on, name, (*if_exists, dry_run), ("drop", "dropped"), drop)
            }
            names => view::drop_all(on, "table", names, (*if_exists, *cascade, dry_run)),
        },
        Statement::CreateView { .. } => view::run_create(on, statement, semantics, options),
        Statement::RenameView { name, to, if_exists } => {
            view::rename_view(on, (name, to), (*if_exists, dry_run))
        }
        Statement::SetViewRetention { name, kept } => {
            view::set_retention(on, (name, *kept), dry_run)
        }
        Statement::DropView { names, if_exists, cascade, are_rollups } => {
            let kind = view::kind_of(*are_rollups);
            view::drop_all(on, kind, names, (*if_exists, *cascade, dry_run))
        }
        Statement::Truncate { names, if_exists, cascade } => match names.as_slice() {
            [name] if !cascade => {
                let truncate = |on: &dyn Scope, name: &str| on.truncate_table(name);
                about_table(on, name, (*if_exists, dry_run), ("truncate", "truncated"), truncate)
            }
            names => truncate_all(on, names, (*if_exists, *cascade, dry_run)),
        },
        Statement::CreateSchema { .. }
        | Statement::DropSchema { .. }
        | Statement::SetSchema { .. } => schema::run(on, statement, dry_run),
        Statement::Comment(statement) => comment::run(on, statement, dry_run),
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

/// Changes what a table is.
fn alter_table(
    on: &dyn Scope,
    statement: &Statement,
    (semantics, dry_run): (Semantics, bool),
) -> Result<Outcome> {
    let Statement::AlterTable { name, alterations, cascade, if_exists, optional } = statement
    else {
        return Err(Error::new(ErrorKind::InvalidInput, "expected ALTER TABLE"));
    };
    let mut alterations = Cow::Borrowed(alterations);
    if !optional.is_empty()
        && let Ok(table) = on.table(name)
    {
        alterations = Cow::Owned(alter::needed(&alterations, optional, &table.schema()));
        if alterations.is_empty() {
            return Ok(Outcome::Done(format!("nothing to do for table {name}")));
        }
    }
    let alterations = alterations.iter().map(|step| step_meant(step, semantics));
    let alterations = alterations.collect::<Result<Vec<_>>>()?;
    let alter = |on: &dyn Scope, name: &str| match cascade {
        true => on.at_once(&mut |within| within.alter_table_cascading(name, &alterations)),
        false => on.alter_table(name, &alterations),
    };
    about_table(on, name, (*if_exists, dry_run), ("alter", "altered"), alter)
}

fn create_table(
    on: &dyn Scope,
    statement: &Statement,
    (semantics, dry_run): (Semantics, bool),
) -> Result<Outcome> {
    let Statement::CreateTable { name, schema, or_replace, if_not_exists } = statement else {
        return Err(Error::new(ErrorKind::InvalidInput, "expected CREATE TABLE"));
    };
    if *if_not_exists && on.has_view(name)? {
        return Ok(Outcome::Done(format!("view {name} exists already")));
    }
    let exists = on.has_name(name)?;
    if exists && *if_not_exists {
        return Ok(Outcome::Done(format!("table {name} exists already")));
    }
    let replaces = exists && *or_replace;
    if dry_run && (replaces || !exists) {
        let what = if replaces { "replace" } else { "create" };
        return Ok(Outcome::Done(format!("would {what} table {name}")));
    }
    schema::expect_there(on, name)?;
    let schema = meant(schema, semantics)?;
    if !replaces {
        on.create_table(name, schema)?;
        return Ok(Outcome::Done(format!("created table {name}")));
    }
    on.at_once(&mut |within| {
        match within.drop_table(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            dropped => dropped?,
        }
        within.create_table(name, schema.clone()).map(drop)
    })?;
    Ok(Outcome::Done(format!("replaced table {name}")))
}

/// Removes all rows of several tables, in one commit.
fn truncate_all(
    on: &dyn Scope,
    names: &[String],
    (if_exists, cascade, dry_run): (bool, bool, bool),
) -> Result<Outcome> {
    let mut all = Vec::new();
    on.at_once(&mut |within| {
        all.clear();
        for name in names {
            match within.table(name) {
                Err(e) if if_exists && e.kind() == ErrorKind::NotFound => {}
                found => all.push((name.clone(), found.map(|table| table.schema().clone())?)),
            }
        }
        let mut at = 0;
        while let Some((_, schema)) = all.get(at).filter(|_| cascade).cloned() {
            for referrer in schema.referrers() {
                if all.iter().all(|(name, _)| *name != referrer.table) {
                    let schema = within.table(&referrer.table)?.schema().clone();
                    all.push((referrer.table.clone(), schema));
                }
            }
            at += 1;
        }
        let mut names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if dry_run { Ok(()) } else { within.truncate_tables(&names) }
    })?;
    let listed = all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    Ok(Outcome::Done(match (all.len(), dry_run) {
        (0, _) => format!("no tables {}", names.join(", ")),
        (1, false) => format!("truncated table {listed}"),
        (_, false) => format!("truncated tables {listed}"),
        (_, true) => format!("would truncate tables {listed}"),
    }))
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

/// A new table whose checks, and what computes its fields, keep the settings of the session that
/// defines it.
fn meant(schema: &Schema, semantics: Semantics) -> Result<Schema> {
    let mut steps = Vec::new();
    for check in schema.checks() {
        steps.push(Alteration::DropCheck(check.name.clone()));
        steps.push(step_meant(&Alteration::AddCheck(check.clone()), semantics)?);
    }
    for field in schema.fields() {
        if let Some(generated) = &field.generated {
            let (field, generated) = (field.name.clone(), Some((**generated).clone()));
            steps.push(step_meant(&Alteration::SetGenerated { field, generated }, semantics)?);
        }
    }
    Ok(schema.alter(&steps)?.with_version(schema.version()))
}

/// The same of a change of a table.
fn step_meant(step: &Alteration, semantics: Semantics) -> Result<Alteration> {
    let meant = |generated: &Generated| -> Result<Generated> {
        let expr = semantics.meant(GeneratedValue::decode(&generated.expression)?);
        Ok(Generated { expression: GeneratedValue::encode(&expr)?, ..generated.clone() })
    };
    Ok(match step {
        Alteration::AddCheck(Check { name, condition }) => {
            let condition = semantics.meant(Constraint::decode(condition)?);
            Alteration::AddCheck(esker::check(name, &condition)?)
        }
        Alteration::SetGenerated { field, generated: Some(generated) } => {
            let (field, generated) = (field.clone(), Some(meant(generated)?));
            Alteration::SetGenerated { field, generated }
        }
        Alteration::AddField(field) if let Some(generated) = &field.generated => {
            let generated = Some(Arc::new(meant(generated)?));
            Alteration::AddField(Field { generated, ..field.clone() })
        }
        other => other.clone(),
    })
}
