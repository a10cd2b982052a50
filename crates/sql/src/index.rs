//! `CREATE INDEX` and `DROP INDEX`, and the indexes within `CREATE TABLE` and `ALTER TABLE`.

use esker::Scope;
use esker::{Alteration, ErrorKind};
use esker_format::schema::{IndexKind, NAME_BYTES_MAX, NewIndex};
use esker_format::suggest::near_or_all;
use esker_query::index_expression::by_names;
use esker_query::model::Expr;
use sqlparser::ast;

use crate::change::refuse_lost;
use crate::expression::{Names, ParameterNames};
use crate::qualified_name::{beside_table, written};
use crate::run::Outcome;
use crate::statement::{Statement, unsupported};
use crate::{Error, Result, collation};

pub(crate) fn create(create: &ast::CreateIndex) -> Result<Statement> {
    let name = create.name.as_ref().map(beside_table).transpose()?;
    let table = written(&create.table_name)?;
    let index = named(name, parts(&create.columns)?)?;
    let if_not_exists = if create.if_not_exists { "IF NOT EXISTS " } else { "" };
    let shown = create.name.as_ref().map_or(String::new(), |name| format!("{name} "));
    let on = &create.table_name;
    let columns = joined(&create.columns);
    let unique = if create.unique { "UNIQUE " } else { "" };
    let (kind, using) = kind(create.using.as_ref())?;
    let using = using.map_or(String::new(), |name| format!(" USING {name} "));
    let filter = create.predicate.as_ref();
    let shown_filter = filter.map_or(String::new(), |filter| format!(" WHERE {filter}"));
    refuse_lost(
        &create.to_string(),
        &format!(
            "CREATE {unique}INDEX {if_not_exists}{shown}ON {on}{using}({columns}){shown_filter}"
        ),
    )?;
    let filter = filter.map(|filter| by_names(&convert(filter)?)).transpose()?;
    let index = NewIndex { unique: create.unique, kind, filter, ..index };
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
    let parts = parts(&declared.columns)?;
    let word = if declared.display_as_key { "KEY" } else { "INDEX" };
    let shown = declared.name.as_ref().map_or(String::new(), |name| format!("{name} "));
    let columns = joined(&declared.columns);
    let (kind, using) = kind(declared.index_type.as_ref())?;
    let using = using.map_or(String::new(), |name| format!("USING {name} "));
    refuse_lost(&declared.to_string(), &format!("{word} {shown}{using}({columns})"))?;
    let index = named(declared.name.as_ref().map(|name| name.value.clone()), parts)?;
    Ok(NewIndex { kind, ..index })
}

/// `UNIQUE (field, …)`, with a name perhaps, within another statement.
pub(crate) fn unique(declared: &ast::UniqueConstraint) -> Result<NewIndex> {
    let parts = parts(&declared.columns)?;
    let constraint =
        declared.name.as_ref().map_or(String::new(), |name| format!("CONSTRAINT {name} "));
    let word = &declared.index_type_display;
    let shown = declared.index_name.as_ref().map_or(String::new(), |name| format!(" {name}"));
    let columns = joined(&declared.columns);
    refuse_lost(&declared.to_string(), &format!("{constraint}UNIQUE{word:>}{shown} ({columns})"))?;
    let name = declared.name.as_ref().or(declared.index_name.as_ref());
    Ok(named(name.map(|name| name.value.clone()), parts)?.unique())
}

/// Reads an index in the words of `CREATE INDEX`: `[UNIQUE] [name] (part, …) [WHERE condition]`.
///
/// ```
/// let index = esker_sql::parse_index("unique by_mail (lower(email)) where active")?;
/// assert_eq!((index.name.as_str(), index.unique), ("by_mail", true));
/// assert!(index.filter.is_some());
/// # Ok::<(), esker_sql::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` with what was expected.
pub fn parse_index(text: &str) -> Result<NewIndex> {
    let text = text.trim();
    let unique = text.get(..7).filter(|word| word.eq_ignore_ascii_case("unique "));
    // default: as many bytes were found there
    let rest = unique.map_or(text, |word| text.get(word.len()..).unwrap_or_default());
    let open = rest.find('(').ok_or_else(|| {
        Error::invalid(format!("index {text:?}: expected its parts in parentheses"))
    })?;
    let (name, parts) = rest.split_at(open);
    let unique = if unique.is_some() { "UNIQUE " } else { "" };
    match crate::parse_statement(&format!("CREATE {unique}INDEX {name} ON t {parts}"))? {
        Statement::CreateIndex { index, .. } => Ok(index),
        _ => Err(Error::invalid(format!("index {text:?}: expected one index"))),
    }
}

/// What an index is on: a field, or a path into one, or an expression.
struct Part {
    /// How it is written.
    written: String,
    descending: bool,
    expression: Option<Expr>,
}

fn named(name: Option<String>, parts: Vec<Part>) -> Result<NewIndex> {
    let mut index = NewIndex::on(Vec::new());
    for Part { written, descending, expression } in parts {
        match expression {
            Some(expr) => {
                index = index.expression(written, by_names(&expr)?);
                index.fields.last_mut().into_iter().for_each(|part| part.1 = descending);
            }
            None => index.fields.push((written, descending)),
        }
    }
    index.name = name.unwrap_or_else(|| name_of(&index.fields));
    Ok(index)
}

/// The name of an index that has been given none: after its parts.
fn name_of(parts: &[(String, bool)]) -> String {
    let mut name = "by".to_owned();
    for (written, _) in parts {
        let mut words = written.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let mut add = |word: &str| {
            name.push('_');
            name.push_str(word);
        };
        words.by_ref().filter(|word| !word.is_empty()).for_each(&mut add);
    }
    name.chars().take(NAME_BYTES_MAX / 4).collect()
}

fn joined(columns: &[ast::IndexColumn]) -> String {
    columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn parts(columns: &[ast::IndexColumn]) -> Result<Vec<Part>> {
    columns.iter().map(part).collect()
}

fn part(column: &ast::IndexColumn) -> Result<Part> {
    let expr = &column.column.expr;
    let mut names = Vec::new();
    if collation::is_collated(expr) {
        return Err(unsupported("COLLATE on a field of an index", column));
    }
    let (order, descending) = match column.column.options.sort {
        Some(ast::OrderBySort::Asc) => (" ASC", false),
        Some(ast::OrderBySort::Desc) => (" DESC", true),
        _ => ("", false),
    };
    refuse_lost(&column.to_string(), &format!("{expr}{order}"))?;
    if !path(expr, true, &mut names) {
        let expr = convert(expr)?;
        return Ok(Part { written: expr.to_string(), descending, expression: Some(expr) });
    }
    if names.iter().skip(1).any(|name| name.contains('.')) {
        return Err(unsupported("an index on a name with a point in JSON", column));
    }
    Ok(Part { written: names.join("."), descending, expression: None })
}

/// An expression over the fields of a row; no parameter has a value yet.
pub(crate) fn convert(expr: &ast::Expr) -> Result<Expr> {
    Names::new(Vec::new(), &ParameterNames::default()).convert(expr)
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
pub(crate) fn find(on: &dyn Scope, table: Option<&str>, name: &str) -> esker::Result<String> {
    let not_found = |message: String| esker::Error::new(ErrorKind::NotFound, message);
    if let Some(table) = table {
        let schema = on.table(table)?.schema();
        schema.index(name).map_err(|e| not_found(e.to_string()))?;
        return Ok(table.to_owned());
    }
    let (mut tables, mut names) = (Vec::new(), Vec::new());
    for table in on.names()? {
        let found = on.table(&table);
        let indexes: Vec<_> = match &found {
            Ok(table) => table.schema().row_indexes().cloned().collect(),
            Err(_) => Vec::new(),
        };
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
