//! `CREATE TABLE`, `DROP TABLE` (or `VIEW`, or `SEQUENCE`) and `TRUNCATE TABLE`.

use esker_format::Schema;
use esker_format::schema::{Check, NewIndex, NewReference};
use sqlparser::ast;

use crate::change::refuse_lost;
use crate::column::{self, Column};
use crate::qualified_name::{says_temporary, written};
use crate::sequence::sequence_name;
use crate::statement::{Statement, unsupported};
use crate::table_option::TableOptions;
use crate::temporary::OnCommit;
use crate::{Error, Result, index, reference};

pub(crate) fn create(create: ast::CreateTable) -> Result<Statement> {
    let text = create.to_string();
    let name = written(&create.name)?;
    let options = TableOptions::read(&create.table_options)?;
    refuse_lost(&text, &understood(&create, options.text()))?;
    let mut key: Vec<String> = Vec::new();
    let mut columns = Vec::with_capacity(create.columns.len());
    for column in &create.columns {
        let column = column::convert(column)?;
        if column.is_key {
            key.push(column.field.name.clone());
        }
        columns.push(column);
    }
    if key.len() > 1 {
        return Err(Error::invalid("two fields say PRIMARY KEY: write `PRIMARY KEY (a, b)` once"));
    }
    let (mut checks, mut indexes, mut references) = (Vec::new(), Vec::new(), Vec::new());
    for constraint in &create.constraints {
        let primary = match constraint {
            ast::TableConstraint::PrimaryKey(primary) => primary,
            ast::TableConstraint::Check(constraint) => {
                let number = checks.len() + 1;
                let name = constraint.name.as_ref();
                let unnamed = || column::free_name(&format!("check_{number}"), &checks);
                let name = name.map_or_else(unnamed, |n| n.value.clone());
                checks.push(column::check(name, constraint)?);
                continue;
            }
            ast::TableConstraint::Index(new) => {
                indexes.push(index::declared(new)?);
                continue;
            }
            ast::TableConstraint::Unique(new) => {
                indexes.push(index::unique(new)?);
                continue;
            }
            ast::TableConstraint::ForeignKey(key) => {
                references.push(reference::constraint(key)?);
                continue;
            }
            _ => return Err(unsupported("this constraint", constraint)),
        };
        if !key.is_empty() {
            return Err(Error::invalid("expected one primary key, found a second"));
        }
        let names: Vec<String> = primary.columns.iter().map(|column| column.to_string()).collect();
        refuse_lost(&constraint.to_string(), &format!("PRIMARY KEY ({})", names.join(", ")))?;
        for column in &primary.columns {
            let ast::Expr::Identifier(name) = &column.column.expr else {
                return Err(unsupported("this key", column));
            };
            refuse_lost(&column.to_string(), &name.to_string())?;
            key.push(name.value.clone());
        }
    }
    let schema = schema((columns, key), Constraints { checks, indexes, references }, options)?;
    let (or_replace, if_not_exists) = (create.or_replace, create.if_not_exists);
    refuse_both(or_replace, if_not_exists)?;
    let is_temporary = create.temporary || says_temporary(&create.name)?;
    let on_commit = OnCommit::read(create.on_commit, is_temporary)?;
    let table = Statement::CreateTable { name, schema, or_replace, if_not_exists };
    Ok(if is_temporary { table.temporary(on_commit) } else { table })
}

/// The statement as it is understood.
fn understood(create: &ast::CreateTable, options: &str) -> String {
    let columns = create.columns.iter().map(ToString::to_string);
    let parts: Vec<String> =
        columns.chain(create.constraints.iter().map(ToString::to_string)).collect();
    let (name, parts) = (&create.name, parts.join(", "));
    let if_not_exists = if create.if_not_exists { "IF NOT EXISTS " } else { "" };
    let replace = if create.or_replace { "OR REPLACE " } else { "" };
    let (temporary, on_commit) = (temporary_text(create), OnCommit::text(create.on_commit));
    format!("CREATE {replace}{temporary}TABLE {if_not_exists}{name} ({parts}){options}{on_commit}")
}

/// How it is said that a table is temporary: LOCAL and GLOBAL mean nothing.
fn temporary_text(create: &ast::CreateTable) -> String {
    let place = match create.global {
        Some(true) => "GLOBAL ",
        Some(false) => "LOCAL ",
        None => "",
    };
    format!("{place}{}", if create.temporary { "TEMPORARY " } else { "" })
}

/// A table that is replaced is not good as it is.
pub(crate) fn refuse_both(or_replace: bool, if_not_exists: bool) -> Result<()> {
    if or_replace && if_not_exists {
        return Err(Error::invalid("expected OR REPLACE or IF NOT EXISTS, found both"));
    }
    Ok(())
}

/// What a table is declared with beside its fields and its key.
struct Constraints {
    checks: Vec<Check>,
    indexes: Vec<NewIndex>,
    references: Vec<NewReference>,
}

fn schema(
    (columns, key): (Vec<Column>, Vec<String>),
    Constraints { checks, indexes, references }: Constraints,
    options: TableOptions,
) -> Result<Schema> {
    let mut builder = options.apply(Schema::builder());
    let mut all_references = Vec::new();
    for Column { mut field, checks, unique, references, .. } in columns {
        all_references.extend(references);
        if let Some(index) = unique {
            builder = builder.add_index(index);
        }
        field.nullable &= !key.contains(&field.name);
        builder = builder.add(field);
        for check in checks {
            builder = builder.check(check.name, check.condition);
        }
    }
    for check in checks {
        builder = builder.check(check.name, check.condition);
    }
    for index in indexes {
        builder = builder.add_index(index);
    }
    for reference in all_references.into_iter().chain(references) {
        builder = builder.reference(reference);
    }
    Ok(builder.primary_key(key).build()?)
}

pub(crate) fn drop(drop: ast::Statement) -> Result<Statement> {
    let text = drop.to_string();
    let ast::Statement::Drop { object_type, if_exists, names, cascade, restrict, .. } = drop else {
        return Err(unsupported("this DROP", text));
    };
    use ast::ObjectType as O;
    if !matches!(object_type, O::Table | O::View | O::MaterializedView | O::Sequence) {
        return Err(unsupported("this DROP", text));
    }
    let parts: Vec<String> = names.iter().map(ToString::to_string).collect();
    let if_exists_text = if if_exists { "IF EXISTS " } else { "" };
    let behaviour = match (cascade, restrict) {
        (true, _) => " CASCADE",
        (_, true) => " RESTRICT",
        _ => "",
    };
    let all = parts.join(", ");
    refuse_lost(&text, &format!("DROP {object_type} {if_exists_text}{all}{behaviour}"))?;
    let name = |name: &ast::ObjectName| match object_type {
        O::Sequence => sequence_name(name),
        _ => written(name),
    };
    let names = names.iter().map(name).collect::<Result<Vec<_>>>()?;
    Ok(match (object_type, names.as_slice()) {
        (O::Sequence, [name]) if !cascade => {
            Statement::DropSequence { name: name.clone(), if_exists }
        }
        (O::Sequence, [_]) => return Err(unsupported("CASCADE for a sequence", text)),
        (O::Sequence, _) => {
            return Err(unsupported("dropping several sequences in one statement", text));
        }
        (O::View | O::MaterializedView, _) => {
            let are_rollups = object_type == O::MaterializedView;
            Statement::DropView { names, if_exists, cascade, are_rollups }
        }
        _ => Statement::DropTable { names, if_exists, cascade },
    })
}

pub(crate) fn truncate(truncate: ast::Truncate) -> Result<Statement> {
    let text = truncate.to_string();
    let if_exists = truncate.if_exists;
    let (word, condition) =
        (if truncate.table { "TABLE " } else { "" }, if if_exists { "IF EXISTS " } else { "" });
    let names: Vec<String> = truncate.table_names.iter().map(|t| t.name.to_string()).collect();
    let (cascade, behaviour) = match truncate.cascade {
        Some(ast::CascadeOption::Cascade) => (true, " CASCADE"),
        Some(ast::CascadeOption::Restrict) => (false, " RESTRICT"),
        None => (false, ""),
    };
    let names = names.join(", ");
    refuse_lost(&text, &format!("TRUNCATE {word}{condition}{names}{behaviour}"))?;
    let names = truncate.table_names.iter().map(|target| written(&target.name));
    let names = names.collect::<Result<_>>()?;
    Ok(Statement::Truncate { names, if_exists, cascade })
}
