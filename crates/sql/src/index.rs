//! `CREATE INDEX` and `DROP INDEX`, and the indexes within `CREATE TABLE` and `ALTER TABLE`.

use esker::Scope;
use esker::{Alteration, ErrorKind};
use esker_format::schema::{IndexKind, NewIndex};
use esker_format::suggest::near_or_all;
use sqlparser::ast;

use crate::change::refuse_lost;
use crate::qualified_name::{beside_table, written};
use crate::run::Outcome;
use crate::statement::{Statement, unsupported};
use crate::{Error, Result, collation};

pub(crate) fn create(create: &ast::CreateIndex) -> Result<Statement> {
    let name = create.name.as_ref().map(beside_table).transpose()?;
    let table = written(&create.table_name)?;
    let fields = fields(&create.columns)?;
    let if_not_exists = if create.if_not_exists { "IF NOT EXISTS " } else { "" };
    let shown = create.name.as_ref().map_or(String::new(), |name| format!("{name} "));
    let on = &create.table_name;
    let columns = joined(&create.columns);
    let unique = if create.unique { "UNIQUE " } else { "" };
    let (kind, using) = kind(create.using.as_ref())?;
    let using = using.map_or(String::new(), |name| format!(" USING {name} "));
    refuse_lost(
        &create.to_string(),
        &format!("CREATE {unique}INDEX {if_not_exists}{shown}ON {on}{using}({columns})"),
    )?;
    let index = NewIndex { unique: create.unique, kind, ..named(name, fields) };
    Ok(Statement::CreateIndex { table, index, if_not_exists: create.if_not_exists })
}

/// What stands behind USING, and the kind that it names.
fn kind(using: Option<&ast::IndexType>) -> Result<(IndexKind, Option<&ast::Ident>)> {
    match using {
        None => Ok((IndexKind::Ordered, None)),
        Some(ast::IndexType::Custom(name)) if IndexKind::from_name(&name.value).is_some() => {
            Ok((IndexKind::from_name(&name.value).unwrap_or_default(), Some(name)))
        }
        Some(other) => {
            let message = format!("USING {other}: expected ordered, trigram or bitmap");
            Err(Error::invalid(message))
        }
    }
}

/// `INDEX name USING kind (field, …)` within another statement.
pub(crate) fn declared(declared: &ast::IndexConstraint) -> Result<NewIndex> {
    let fields = fields(&declared.columns)?;
    let word = if declared.display_as_key { "KEY" } else { "INDEX" };
    let shown = declared.name.as_ref().map_or(String::new(), |name| format!("{name} "));
    let columns = joined(&declared.columns);
    let (kind, using) = kind(declared.index_type.as_ref())?;
    let using = using.map_or(String::new(), |name| format!("USING {name} "));
    refuse_lost(&declared.to_string(), &format!("{word} {shown}{using}({columns})"))?;
    let index = named(declared.name.as_ref().map(|name| name.value.clone()), fields);
    Ok(NewIndex { kind, ..index })
}

/// `UNIQUE (field, …)`, with a name perhaps, within another statement.
pub(crate) fn unique(declared: &ast::UniqueConstraint) -> Result<NewIndex> {
    let fields = fields(&declared.columns)?;
    let constraint =
        declared.name.as_ref().map_or(String::new(), |name| format!("CONSTRAINT {name} "));
    let word = &declared.index_type_display;
    let shown = declared.index_name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let columns = joined(&declared.columns);
    refuse_lost(&declared.to_string(), &format!("{constraint}UNIQUE{word:>}{shown} ({columns})"))?;
    let name = declared.name.as_ref().or(declared.index_name.as_ref());
    Ok(named(name.map(|name| name.value.clone()), fields).unique())
}

fn named(name: Option<String>, fields: Vec<(String, bool)>) -> NewIndex {
    let index = NewIndex::on(fields);
    match name {
        Some(name) => NewIndex { name, ..index },
        None => index,
    }
}

fn joined(columns: &[ast::IndexColumn]) -> String {
    columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn fields(columns: &[ast::IndexColumn]) -> Result<Vec<(String, bool)>> {
    columns.iter().map(field).collect()
}

fn field(column: &ast::IndexColumn) -> Result<(String, bool)> {
    let expr = &column.column.expr;
    let mut names = Vec::new();
    if collation::is_collated(expr) {
        return Err(unsupported("COLLATE on a field of an index", column));
    }
    if !path(expr, true, &mut names) {
        return Err(unsupported("an index on what is no field, and no path into one", column));
    }
    if names.iter().skip(1).any(|name| name.contains('.')) {
        return Err(unsupported("an index on a name with a point in JSON", column));
    }
    let (order, descending) = match column.column.options.sort {
        Some(ast::OrderBySort::Asc) => (" ASC", false),
        Some(ast::OrderBySort::Desc) => (" DESC", true),
        _ => ("", false),
    };
    refuse_lost(&column.to_string(), &format!("{expr}{order}"))?;
    Ok((names.join("."), descending))
}

/// Adds the names of a field, or of a path to a text in one: `doc -> 'a' ->> 'b'`, or `doc.a.b`.
/// False for anything else.
fn path(expr: &ast::Expr, is_text: bool, names: &mut Vec<String>) -> bool {
    match expr {
        ast::Expr::Nested(inner) => path(inner, is_text, names),
        ast::Expr::Identifier(name) => {
            names.push(name.value.clone());
            true
        }
        ast::Expr::CompoundIdentifier(all) if is_text => {
            names.extend(all.iter().map(|name| name.value.clone()));
            true
        }
        ast::Expr::BinaryOp { left, op, right } => {
            let ast::Expr::Value(ast::ValueWithSpan { value, .. }) = &**right else { return false };
            let ast::Value::SingleQuotedString(name) = value else { return false };
            let expected = match is_text {
                true => ast::BinaryOperator::LongArrow,
                false => ast::BinaryOperator::Arrow,
            };
            let is_path = *op == expected && path(left, false, names);
            names.push(name.clone());
            is_path
        }
        _ => false,
    }
}

pub(crate) fn drop(drop: &ast::Statement) -> Result<Statement> {
    let ast::Statement::Drop { if_exists, names, table, .. } = drop else {
        return Err(unsupported("this DROP", drop));
    };
    let [name] = names.as_slice() else {
        return Err(unsupported("dropping several indexes in one statement", drop));
    };
    let if_exists_text = if *if_exists { "IF EXISTS " } else { "" };
    let on = table.as_ref().map_or(String::new(), |table| format!(" ON {table}"));
    refuse_lost(&drop.to_string(), &format!("DROP INDEX {if_exists_text}{name}{on}"))?;
    let table = table.as_ref().map(written).transpose()?;
    Ok(Statement::DropIndex { table, name: beside_table(name)?, if_exists: *if_exists })
}

pub(crate) fn run_create(
    on: &dyn Scope,
    table: &str,
    index: &NewIndex,
    if_not_exists: bool,
    dry_run: bool,
) -> esker::Result<Outcome> {
    let name = &index.name;
    let exists = on.table(table)?.schema().index(name).is_ok();
    if exists && if_not_exists {
        return Ok(Outcome::Done(format!("index {name} on {table} exists already")));
    }
    if dry_run && !exists {
        return Ok(Outcome::Done(format!("would create index {name} on {table}")));
    }
    match on.alter_table(table, &[Alteration::AddIndex(index.clone())]) {
        // Somebody was quicker.
        Err(e) if if_not_exists && e.kind() == ErrorKind::AlreadyExists => {
            Ok(Outcome::Done(format!("index {name} on {table} exists already")))
        }
        done => done.map(|()| Outcome::Done(format!("created index {name} on {table}"))),
    }
}

pub(crate) fn run_drop(
    on: &dyn Scope,
    table: Option<&str>,
    name: &str,
    if_exists: bool,
    dry_run: bool,
) -> esker::Result<Outcome> {
    let dropped = find(on, table, name).and_then(|table| {
        if dry_run {
            return Ok(format!("would drop index {name} on {table}"));
        }
        on.alter_table(&table, &[Alteration::DropIndex(name.to_owned())])?;
        Ok(format!("dropped index {name} on {table}"))
    });
    match dropped {
        Err(e) if if_exists && e.kind() == ErrorKind::NotFound => {
            Ok(Outcome::Done(format!("no index {name}")))
        }
        done => done.map(Outcome::Done),
    }
}

/// The table of an index.
fn find(on: &dyn Scope, table: Option<&str>, name: &str) -> esker::Result<String> {
    let not_found = |message: String| esker::Error::new(ErrorKind::NotFound, message);
    if let Some(table) = table {
        let schema = on.table(table)?.schema();
        schema.index(name).map_err(|e| not_found(e.to_string()))?;
        return Ok(table.to_owned());
    }
    let (mut tables, mut names) = (Vec::new(), Vec::new());
    for table in on.names()? {
        let indexes =
            on.table(&table).map(|table| table.schema().indexes().to_vec()).unwrap_or_default();
        if indexes.iter().any(|index| index.name == name) {
            tables.push(table);
        }
        names.extend(indexes.into_iter().map(|index| index.name));
    }
    match tables.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let near = near_or_all(name, "indexes", names.iter().map(String::as_str));
            Err(not_found(format!("unknown index {name:?}{near}")))
        }
        _ => {
            let on = tables.join(", ");
            let message = format!("index {name:?} is on several tables, {on}; add ON and the one");
            Err(esker::Error::new(ErrorKind::InvalidInput, message))
        }
    }
}
