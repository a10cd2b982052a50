//! `INSERT`, `UPDATE` and `DELETE`.
//!
//! The grammar knows many more clauses than the model. A statement is taken apart into what the
//! model has, and written again from that: where the two texts differ, a clause would be ignored,
//! and the statement is refused.

use esker_query::model::{Change, Delete, Insert, InsertRows, OnConflict, Update};
use sqlparser::ast;

use crate::expression::{Names, Parameters};
use crate::statement::{shorten, unsupported};
use crate::{Error, Result, select};

pub(crate) fn insert(insert: ast::Insert, parameters: &Parameters) -> Result<Change> {
    use ast::SqliteOnConflict as Or;
    let text = insert.to_string();
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(unsupported("this kind of INSERT", &text));
    };
    let table = plain_name(name)?;
    let (or, on_conflict) = match (&insert.or, insert.replace_into, &insert.on) {
        (None, false, None) => ("INSERT INTO", OnConflict::Fail),
        (None, true, None) => ("REPLACE INTO", OnConflict::Replace),
        (Some(Or::Replace), false, None) => ("INSERT OR REPLACE INTO", OnConflict::Replace),
        (Some(Or::Ignore), false, None) => ("INSERT OR IGNORE INTO", OnConflict::Skip),
        (None, false, Some(ast::OnInsert::OnConflict(on)))
            if on.action == ast::OnConflictAction::DoNothing && on.conflict_target.is_none() =>
        {
            ("INSERT INTO", OnConflict::Skip)
        }
        (_, _, Some(on)) => return Err(unsupported("this ON CONFLICT", on)),
        _ => return Err(unsupported("this kind of INSERT", &text)),
    };
    let Some(source) = insert.source else {
        return Err(unsupported("INSERT without VALUES or SELECT", &text));
    };
    let columns: Vec<String> = insert.columns.iter().map(ToString::to_string).collect();
    let columns =
        if columns.is_empty() { String::new() } else { format!("({}) ", columns.join(", ")) };
    let on = insert.on.as_ref().map_or(String::new(), ToString::to_string);
    refuse_lost(&text, &format!("{or} {name} {columns}{source}{on}"))?;
    let fields = insert.columns.iter().map(plain_name).collect::<Result<_>>()?;
    let source_text = source.to_string();
    let rows = match *source.body {
        ast::SetExpr::Values(values) => {
            refuse_lost(&source_text, &values.to_string())?;
            let names = Names::new(Vec::new(), parameters);
            let row = |row: &ast::Parens<Vec<ast::Expr>>| {
                row.content.iter().map(|expr| names.convert(expr)).collect()
            };
            InsertRows::Values(values.rows.iter().map(row).collect::<Result<_>>()?)
        }
        body => {
            let body = Box::new(body);
            InsertRows::Query(select::convert(ast::Query { body, ..*source }, parameters)?)
        }
    };
    Ok(Change::Insert(Insert { table, fields, rows, on_conflict }))
}

pub(crate) fn update(update: ast::Update, parameters: &Parameters) -> Result<Change> {
    let text = update.to_string();
    let (table, names) = one_table(std::slice::from_ref(&update.table), &text, parameters)?;
    let set: Vec<String> = update.assignments.iter().map(ToString::to_string).collect();
    let filter = where_text(update.selection.as_ref());
    refuse_lost(&text, &format!("UPDATE {} SET {}{filter}", update.table, set.join(", ")))?;
    let assignment = |assignment: &ast::Assignment| match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => {
            Ok((plain_name(name)?, names.convert(&assignment.value)?))
        }
        ast::AssignmentTarget::Tuple(_) => Err(unsupported("setting a tuple", assignment)),
    };
    let set = update.assignments.iter().map(assignment).collect::<Result<_>>()?;
    let filter = update.selection.as_ref().map(|e| names.convert(e)).transpose()?;
    Ok(Change::Update(Update { table, set, filter }))
}

pub(crate) fn delete(delete: ast::Delete, parameters: &Parameters) -> Result<Change> {
    let text = delete.to_string();
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
        &delete.from;
    let (table, names) = one_table(from, &text, parameters)?;
    let filter = where_text(delete.selection.as_ref());
    let name = from.first().map_or(String::new(), ToString::to_string);
    refuse_lost(&text, &format!("DELETE FROM {name}{filter}"))?;
    let filter = delete.selection.as_ref().map(|e| names.convert(e)).transpose()?;
    Ok(Change::Delete(Delete { table, filter }))
}

fn where_text(filter: Option<&ast::Expr>) -> String {
    filter.map_or(String::new(), |filter| format!(" WHERE {filter}"))
}

fn one_table(
    from: &[ast::TableWithJoins],
    text: &str,
    parameters: &Parameters,
) -> Result<(String, Names)> {
    select::from(from, parameters).map_err(|e| e.at(shorten(text)))
}

/// A name of one part.
pub(crate) fn plain_name(name: &ast::ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => Ok(name.value.clone()),
        _ => Err(unsupported("a name of several parts", name)),
    }
}

/// Refuses a statement that says more than what was understood of it.
pub(crate) fn refuse_lost(text: &str, understood: &str) -> Result<()> {
    let words = |text: &str| text.split_whitespace().collect::<String>();
    if words(text).eq_ignore_ascii_case(&words(understood)) {
        return Ok(());
    }
    let (text, understood) = (shorten(text), shorten(understood));
    Err(Error::invalid(format!("not all of `{text}` is supported yet, only `{understood}`")))
}
