//! Schemas that users make: `CREATE SCHEMA`, `DROP SCHEMA`, `SET SCHEMA`.
//!
//! A table has one name, `app.users`, of which the schema is the first part: a table gets into
//! another schema by another name.

use esker::{
    Error, ErrorKind, MAIN_SCHEMA, NamespaceInfo, Result, Scope, TEMPORARY_SCHEMA, Transaction,
};
use esker_format::suggest::near_or_all;
use sqlparser::ast;

use crate::change::refuse_lost;
use crate::qualified_name::of_schema;
use crate::run::Outcome;
use crate::statement::{Statement, unsupported};
use crate::view;

/// Schemas in which no table is made by a name that says them.
const RESERVED: [&str; 4] =
    [MAIN_SCHEMA, TEMPORARY_SCHEMA, esker::INFORMATION_SCHEMA, "pg_catalog"];

/// `CREATE SCHEMA [IF NOT EXISTS] name`.
pub(crate) fn create(create: &ast::Statement) -> crate::Result<Statement> {
    let text = create.to_string();
    let ast::Statement::CreateSchema { schema_name, if_not_exists, .. } = create else {
        return Err(unsupported("this CREATE SCHEMA", text));
    };
    let ast::SchemaName::Simple(name) = schema_name else {
        return Err(unsupported("AUTHORIZATION", text));
    };
    let condition = if *if_not_exists { "IF NOT EXISTS " } else { "" };
    refuse_lost(&text, &format!("CREATE SCHEMA {condition}{name}"))?;
    Ok(Statement::CreateSchema { name: of_schema(name)?, if_not_exists: *if_not_exists })
}

/// `DROP SCHEMA [IF EXISTS] name, … [CASCADE | RESTRICT]`.
pub(crate) fn drop(drop: &ast::Statement) -> crate::Result<Statement> {
    let text = drop.to_string();
    let ast::Statement::Drop { if_exists, names, cascade, restrict, .. } = drop else {
        return Err(unsupported("this DROP SCHEMA", text));
    };
    let listed = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let condition = if *if_exists { "IF EXISTS " } else { "" };
    let behaviour = match (cascade, restrict) {
        (true, _) => " CASCADE",
        (_, true) => " RESTRICT",
        _ => "",
    };
    refuse_lost(&text, &format!("DROP SCHEMA {condition}{listed}{behaviour}"))?;
    let names = names.iter().map(of_schema).collect::<crate::Result<_>>()?;
    Ok(Statement::DropSchema { names, if_exists: *if_exists, cascade: *cascade })
}

/// The schema that users have made of which a name says that it is in it, and the name there.
fn taken_apart<'n>(known: &[NamespaceInfo], name: &'n str) -> Option<(&'n str, &'n str)> {
    let is_known = |schema: &str| known.iter().any(|namespace| namespace.name == schema);
    name.split_once('.').filter(|(schema, _)| is_known(schema))
}

fn no_schema(known: &[NamespaceInfo], name: &str) -> Error {
    let all = known.iter().map(|namespace| namespace.name.as_str());
    let near = near_or_all(name, "schemas", all.chain([MAIN_SCHEMA, TEMPORARY_SCHEMA]));
    Error::new(ErrorKind::NotFound, format!("no schema {name:?}{near}"))
}

/// Refuses a new name that says a schema which is not there.
pub(crate) fn expect_there(on: &dyn Scope, name: &str) -> Result<()> {
    let Some((schema, _)) = name.split_once('.') else { return Ok(()) };
    let is_reserved = RESERVED.iter().any(|known| schema.eq_ignore_ascii_case(known));
    if is_reserved || esker::is_made_table(name) {
        // It is refused for that.
        return Ok(());
    }
    let known = on.namespaces()?;
    match taken_apart(&known, name) {
        Some(_) => Ok(()),
        None => Err(no_schema(&known, schema)),
    }
}

/// A new name of a table or view, in the schema that it is in.
pub(crate) fn beside(on: &dyn Scope, name: &str, to: &str) -> Result<String> {
    let known = on.namespaces()?;
    if let Some((schema, _)) = taken_apart(&known, name) {
        return Ok(format!("{schema}.{to}"));
    }
    expect_there(on, to)?;
    Ok(to.to_owned())
}

pub(crate) fn run(on: &dyn Scope, statement: &Statement, dry_run: bool) -> Result<Outcome> {
    let known = on.namespaces()?;
    let is_there = |name: &str| known.iter().any(|namespace| namespace.name == name);
    match statement {
        Statement::CreateSchema { name, if_not_exists } => {
            if *if_not_exists && (is_there(name) || name.eq_ignore_ascii_case(MAIN_SCHEMA)) {
                return Ok(Outcome::Done(format!("schema {name} exists already")));
            }
            if dry_run {
                return Ok(Outcome::Done(format!("would create schema {name}")));
            }
            let mut is_new = true;
            on.at_once(&mut |within| match within.create_namespace(name) {
                // Somebody was quicker.
                Err(e) if *if_not_exists && e.kind() == ErrorKind::AlreadyExists => {
                    let known = within.namespaces()?;
                    is_new = !known.iter().any(|namespace| namespace.name == *name);
                    if is_new { Err(e) } else { Ok(()) }
                }
                made => made,
            })?;
            Ok(Outcome::Done(match is_new {
                true => format!("created schema {name}"),
                false => format!("schema {name} exists already"),
            }))
        }
        Statement::DropSchema { names, if_exists, cascade } => {
            let (going, missing): (Vec<&String>, Vec<&String>) =
                names.iter().partition(|name| is_there(name));
            if let Some(fixed) = missing.iter().find_map(|name| refuse_fixed(name)) {
                return Err(fixed);
            }
            if let Some(missing) = missing.first().filter(|_| !if_exists) {
                return Err(no_schema(&known, missing));
            }
            drop_all(on, &going, (*cascade, dry_run))
        }
        Statement::SetSchema { name, schema, if_exists } => {
            set_schema(on, (name, schema), (*if_exists, dry_run))
        }
        _ => Err(Error::new(ErrorKind::InvalidInput, "expected a statement about a schema")),
    }
}

/// Why a schema that is there anyway is not dropped.
fn refuse_fixed(name: &str) -> Option<Error> {
    let is_fixed = [MAIN_SCHEMA, TEMPORARY_SCHEMA, esker::INFORMATION_SCHEMA].contains(&name);
    let message = format!("schema {name:?} is there always");
    is_fixed.then(|| Error::new(ErrorKind::InvalidInput, message))
}

fn drop_all(
    on: &dyn Scope,
    going: &[&String],
    (cascade, dry_run): (bool, bool),
) -> Result<Outcome> {
    let listed = going.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let kind = if going.len() == 1 { "schema" } else { "schemas" };
    if going.is_empty() {
        return Ok(Outcome::Done("no such schema".to_owned()));
    }
    if dry_run {
        return Ok(Outcome::Done(format!("would drop {kind} {listed}")));
    }
    on.at_once(&mut |within| {
        for name in going {
            if cascade {
                empty(within, name)?;
            }
            within.drop_namespace(name)?;
        }
        Ok(())
    })?;
    Ok(Outcome::Done(format!("dropped {kind} {listed}")))
}

/// Drops what is in a schema, its sequences too, and the views that read it.
fn empty(within: &Transaction, schema: &str) -> Result<()> {
    let prefix = format!("{schema}.");
    let is_in = |name: &String| name.starts_with(&prefix);
    // Views that read a rollup go with it.
    for is_rollup in [true, false] {
        let views = Scope::views(within)?.into_iter().filter(|view| view.is_rollup == is_rollup);
        let names: Vec<String> = views.map(|view| view.name).filter(is_in).collect();
        view::drop_all(within, view::kind_of(is_rollup), &names, (true, true, false))?;
    }
    let tables: Vec<String> = within.tables()?.into_iter().filter(is_in).collect();
    view::drop_all(within, "table", &tables, (true, true, false))?;
    within.drop_sequences_in(schema)
}

/// Gives a table or view the name that it has in another schema.
fn set_schema(
    on: &dyn Scope,
    (name, schema): (&str, &str),
    (if_exists, dry_run): (bool, bool),
) -> Result<Outcome> {
    let known = on.namespaces()?;
    // default: it is in main, and goes by its own name
    let own = taken_apart(&known, name).map_or(name, |(_, own)| own);
    let to = match schema {
        main if main.eq_ignore_ascii_case(MAIN_SCHEMA) => own.to_owned(),
        other => format!("{other}.{own}"),
    };
    expect_there(on, &to)?;
    let is_view = on.has_view(name)?;
    let kind = if is_view { "view" } else { "table" };
    if !on.has_name(name)? {
        if if_exists {
            return Ok(Outcome::Done(format!("no {kind} {name}")));
        }
        on.table(name)?;
    }
    let refused = |found: &str| Err(Error::new(ErrorKind::InvalidInput, found.to_owned()));
    if name.split_once('.').is_some_and(|(schema, _)| schema == TEMPORARY_SCHEMA) {
        return refused(&format!("SET SCHEMA: {name} is temporary: it has the schema temp"));
    }
    if own.contains('.') {
        return refused(&format!("SET SCHEMA: expected a name without points, found {own:?}"));
    }
    if dry_run {
        return Ok(Outcome::Done(format!("would move {kind} {name} to schema {schema}")));
    }
    match is_view {
        _ if to == name => {}
        true => on.rename_view(name, &to)?,
        false => on.rename_table(name, &to)?,
    }
    Ok(Outcome::Done(format!("moved {kind} {name} to schema {schema}")))
}
