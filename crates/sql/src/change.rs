//! `INSERT`, `UPDATE` and `DELETE`.
//!
//! The grammar knows many more clauses than the model. A statement is taken apart into what the
//! model has, and written again from that: where the two texts differ, a clause would be ignored,
//! and the statement is refused.

use esker_query::model::{
    Change, ConflictUpdate, Delete, Expr, Insert, InsertRows, Join, MergeAction, OnConflict, Query,
    Relation, SelectItem, Update, With,
};
use sqlparser::ast;

use crate::conflict_target::ConflictTarget;
use crate::expression::{Names, ParameterNames};
use crate::qualified_name::beside_table;
use crate::statement::{shorten, unsupported};
use crate::{Error, Result, erase, merge, overriding, qualified_name, relation, select};

pub(crate) fn insert(mut insert: ast::Insert, parameters: &ParameterNames) -> Result<Change> {
    let overriding = overriding::of(&mut insert.columns);
    let text = insert.to_string();
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(unsupported("this kind of INSERT", &text));
    };
    let table = qualified_name::written(name)?;
    let whole = vec![name.to_string()];
    let names = Names::new(vec![beside_table(name)?], parameters).with_whole(whole);
    let (or, on_conflict, target) = conflict(&insert, &names)?;
    let returning = returning(insert.returning.as_deref(), &names)?;
    let returning_text = returning_text(insert.returning.as_deref());
    let (fields, rows) = match insert.source {
        None => {
            refuse_lost(&text, &format!("{or} {name} DEFAULT VALUES{returning_text}"))?;
            (Vec::new(), InsertRows::Values(vec![Vec::new()]))
        }
        Some(source) => {
            let columns: Vec<String> = insert.columns.iter().map(ToString::to_string).collect();
            let columns = match columns.as_slice() {
                [] => String::new(),
                columns => format!("({}) ", columns.join(", ")),
            };
            let on = insert.on.as_ref().map_or(String::new(), ToString::to_string);
            refuse_lost(&text, &format!("{or} {name} {columns}{source}{on}{returning_text}"))?;
            let fields = insert.columns.iter().map(plain_name).collect::<Result<_>>()?;
            (fields, rows_of(*source, parameters)?)
        }
    };
    Ok(Change::Insert(Insert {
        table,
        fields,
        overriding,
        rows,
        on_conflict,
        conflict_key: target.names,
        conflict_expressions: target.expressions,
        conflict_filter: target.filter,
        returning,
    }))
}

/// The rows of VALUES, or of a query.
fn rows_of(source: ast::Query, parameters: &ParameterNames) -> Result<InsertRows> {
    let source_text = source.to_string();
    match *source.body {
        // With an order, a limit or queries beside them they are rows of a query.
        ast::SetExpr::Values(values) if source_text == values.to_string() => {
            let names = Names::new(Vec::new(), parameters);
            let row = |row: &ast::Parens<Vec<ast::Expr>>| {
                row.content.iter().map(|expr| value(&names, expr)).collect()
            };
            written(values.rows.iter().map(row).collect::<Result<_>>()?)
        }
        body => {
            let body = Box::new(body);
            let query = select::convert(ast::Query { body, ..source }, parameters)?;
            Ok(InsertRows::Query(Box::new(query)))
        }
    }
}

/// Rows that are written out; those that ask other queries are rows of a query themselves.
fn written(rows: Vec<Vec<Expr>>) -> Result<InsertRows> {
    let any = |is_it: &dyn Fn(&Expr) -> bool| rows.iter().flatten().any(is_it);
    match (any(&Expr::has_subquery), any(&|expr| *expr == Expr::Default)) {
        (false, _) => Ok(InsertRows::Values(rows)),
        (true, false) => Ok(InsertRows::Query(Box::new(Query::values(rows)))),
        (true, true) => Err(Error::invalid(
            "VALUES: DEFAULT cannot be beside a subquery; leave its field out of the list",
        )),
    }
}

/// A value of a field, or DEFAULT.
pub(crate) fn value(names: &Names, expr: &ast::Expr) -> Result<Expr> {
    match expr {
        ast::Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default") =>
        {
            Ok(Expr::Default)
        }
        expr => names.convert(expr),
    }
}

/// How the statement begins, what happens to rows whose key exists, and by which fields.
fn conflict(
    insert: &ast::Insert,
    names: &Names,
) -> Result<(&'static str, OnConflict, ConflictTarget)> {
    let none = ConflictTarget::default;
    use ast::SqliteOnConflict as Or;
    let on = match (&insert.or, insert.replace_into, &insert.on) {
        (None, false, None) => return Ok(("INSERT INTO", OnConflict::Fail, none())),
        (None, true, None) => return Ok(("REPLACE INTO", OnConflict::Replace, none())),
        (Some(Or::Replace), false, None) => {
            return Ok(("INSERT OR REPLACE INTO", OnConflict::Replace, none()));
        }
        (Some(Or::Ignore), false, None) => {
            return Ok(("INSERT OR IGNORE INTO", OnConflict::Skip, none()));
        }
        (None, false, Some(ast::OnInsert::OnConflict(on))) => on,
        (_, _, Some(on)) => return Err(unsupported("this ON CONFLICT", on)),
        _ => return Err(unsupported("this kind of INSERT", insert)),
    };
    let key = match &on.conflict_target {
        None => none(),
        Some(ast::ConflictTarget::Columns(fields)) => {
            ConflictTarget::of(fields.iter().map(|name| name.value.as_str()))?
        }
        Some(ast::ConflictTarget::OnConstraint(_)) => {
            return Err(unsupported("ON CONSTRAINT", on));
        }
    };
    let on_conflict = match &on.action {
        ast::OnConflictAction::DoNothing => OnConflict::Skip,
        ast::OnConflictAction::DoUpdate(update) => {
            let set = assignments(&update.assignments, names)?;
            let filter = update.selection.as_ref().map(|e| names.convert(e)).transpose()?;
            OnConflict::Update(ConflictUpdate { set, filter })
        }
    };
    Ok(("INSERT INTO", on_conflict, key))
}

pub(crate) fn assignments(
    assignments: &[ast::Assignment],
    names: &Names,
) -> Result<Vec<(String, Expr)>> {
    let one = |assignment: &ast::Assignment| match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => {
            Ok((path(name)?, value(names, &assignment.value)?))
        }
        ast::AssignmentTarget::Tuple(_) => Err(unsupported("setting a tuple", assignment)),
    };
    assignments.iter().map(one).collect()
}

/// What a statement answers; an empty list for every field.
pub(crate) fn returning(
    items: Option<&[ast::SelectItem]>,
    names: &Names,
) -> Result<Option<Vec<SelectItem>>> {
    items.map(|items| select::items(items, names)).transpose()
}

fn returning_text(items: Option<&[ast::SelectItem]>) -> String {
    items.map_or(String::new(), |items| format!(" RETURNING {}", list(items)))
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// The end of an UPDATE or DELETE, as it is understood.
fn end_text(
    filter: Option<&ast::Expr>,
    returning: Option<&[ast::SelectItem]>,
    order_by: &[ast::OrderByExpr],
    limit: Option<&ast::Expr>,
) -> String {
    let order_by =
        if order_by.is_empty() { String::new() } else { format!(" ORDER BY {}", list(order_by)) };
    let limit = limit.map_or(String::new(), |limit| format!(" LIMIT {limit}"));
    format!("{}{}{order_by}{limit}", where_text(filter), returning_text(returning))
}

pub(crate) fn update(update: ast::Update, parameters: &ParameterNames) -> Result<Change> {
    let text = update.to_string();
    let from = match &update.from {
        Some(ast::UpdateTableFromKind::AfterSet(from)) => from.as_slice(),
        _ => &[],
    };
    let target = std::slice::from_ref(&update.table);
    let (table, joins, names) = changed_table(target, from, &text, parameters)?;
    let (set, limit) = (list(&update.assignments), update.limit.as_ref());
    let asked = update.returning.as_deref();
    let end = end_text(update.selection.as_ref(), asked, &update.order_by, limit);
    let beside = beside_text("FROM", from);
    refuse_lost(&text, &format!("UPDATE {} SET {set}{beside}{end}", update.table))?;
    Ok(Change::Update(Update {
        table: table.table,
        alias: table.alias,
        set: assignments(&update.assignments, &names)?,
        joins,
        filter: update.selection.as_ref().map(|e| names.convert(e)).transpose()?,
        order_by: select::order_keys(&update.order_by, None, &names)?,
        limit: limit.map(|e| select::count("LIMIT", e, parameters)).transpose()?,
        returning: returning(asked, &names)?,
    }))
}

pub(crate) fn delete(delete: ast::Delete, parameters: &ParameterNames) -> Result<Change> {
    let text = delete.to_string();
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
        &delete.from;
    // default: no other table is named
    let using = delete.using.as_deref().unwrap_or_default();
    let (table, joins, names) = changed_table(from, using, &text, parameters)?;
    let (name, limit) = (list(from), delete.limit.as_ref());
    let asked = delete.returning.as_deref();
    let erase = erase::is_asked(asked);
    let end = end_text(delete.selection.as_ref(), asked, &delete.order_by, limit);
    let beside = beside_text("USING", using);
    refuse_lost(&text, &format!("DELETE FROM {name}{beside}{end}"))?;
    Ok(Change::Delete(Delete {
        table: table.table,
        alias: table.alias,
        joins,
        filter: delete.selection.as_ref().map(|e| names.convert(e)).transpose()?,
        order_by: select::order_keys(&delete.order_by, None, &names)?,
        limit: limit.map(|e| select::count("LIMIT", e, parameters)).transpose()?,
        returning: returning(asked.filter(|_| !erase), &names)?,
        erase,
    }))
}

fn where_text(filter: Option<&ast::Expr>) -> String {
    filter.map_or(String::new(), |filter| format!(" WHERE {filter}"))
}

fn beside_text(clause: &str, tables: &[ast::TableWithJoins]) -> String {
    match tables {
        [] => String::new(),
        tables => format!(" {clause} {}", list(tables)),
    }
}

/// The table that a statement changes, and what it reads beside it.
fn changed_table(
    target: &[ast::TableWithJoins],
    beside: &[ast::TableWithJoins],
    text: &str,
    parameters: &ParameterNames,
) -> Result<(Relation, Vec<Join>, Names)> {
    let (table, names) = relation::table(target, parameters).map_err(|e| e.at(shorten(text)))?;
    if beside.is_empty() {
        return Ok((table, Vec::new(), names));
    }
    relation::from(&[target, beside].concat(), false, parameters)
}

/// A field, or a path into one, with a backslash before each dot that is part of a name.
fn path(name: &ast::ObjectName) -> Result<String> {
    if let [_] = name.0.as_slice() {
        return plain_name(name);
    }
    let part = |part: &ast::ObjectNamePart| match part {
        ast::ObjectNamePart::Identifier(name) => {
            Ok(name.value.replace('\\', "\\\\").replace('.', "\\."))
        }
        ast::ObjectNamePart::Function(_) => Err(unsupported("this name", name)),
    };
    Ok(name.0.iter().map(part).collect::<Result<Vec<_>>>()?.join("."))
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

/// A change of rows behind queries that it names.
pub(crate) fn with_queries(query: ast::Query, parameters: &ParameterNames) -> Result<Change> {
    let text = shorten(&query.to_string());
    let ast::Query { with, body, order_by: None, limit_clause: None, fetch: None, .. } = query
    else {
        return Err(unsupported("this WITH", text));
    };
    let change = match *body {
        ast::SetExpr::Insert(ast::Statement::Insert(change)) => insert(change, parameters)?,
        ast::SetExpr::Update(ast::Statement::Update(change)) => update(change, parameters)?,
        ast::SetExpr::Delete(ast::Statement::Delete(change)) => delete(change, parameters)?,
        ast::SetExpr::Merge(ast::Statement::Merge(change)) => merge::merge(&change, parameters)?,
        _ => return Err(unsupported("this WITH", text)),
    };
    let Some(with) = with else { return Err(unsupported("this WITH", text)) };
    let with = select::named(&with, parameters)?;
    Ok(knowing(change, &with))
}

/// A change whose queries know those of WITH.
fn knowing(mut change: Change, with: &[With]) -> Change {
    let mut exprs: Vec<&mut Expr> = Vec::new();
    let mut items: Vec<&mut SelectItem> = Vec::new();
    match &mut change {
        Change::Insert(insert) => {
            match &mut insert.rows {
                InsertRows::Values(rows) => exprs.extend(rows.iter_mut().flatten()),
                InsertRows::Query(query) => {
                    query.with.splice(0..0, with.iter().cloned());
                }
            }
            if let OnConflict::Update(update) = &mut insert.on_conflict {
                exprs.extend(update.set.iter_mut().map(|(_, expr)| expr));
                exprs.extend(&mut update.filter);
            }
            items.extend(insert.returning.iter_mut().flatten());
        }
        Change::Update(update) => {
            update.joins.iter_mut().for_each(|join| know_join(join, with));
            exprs.extend(update.set.iter_mut().map(|(_, expr)| expr));
            exprs.extend(&mut update.filter);
            exprs.extend(update.order_by.iter_mut().map(|key| &mut key.expr));
            items.extend(update.returning.iter_mut().flatten());
        }
        Change::Delete(delete) => {
            delete.joins.iter_mut().for_each(|join| know_join(join, with));
            exprs.extend(&mut delete.filter);
            exprs.extend(delete.order_by.iter_mut().map(|key| &mut key.expr));
            items.extend(delete.returning.iter_mut().flatten());
        }
        Change::Merge(merge) => {
            know_relation(&mut merge.source, with);
            exprs.push(&mut merge.on);
            for clause in &mut merge.clauses {
                exprs.extend(&mut clause.filter);
                match &mut clause.action {
                    MergeAction::Nothing | MergeAction::Delete => {}
                    MergeAction::Update(set) => exprs.extend(set.iter_mut().map(|(_, e)| e)),
                    MergeAction::Insert { values, .. } => exprs.extend(values),
                }
            }
            items.extend(merge.returning.iter_mut().flatten());
        }
    }
    exprs.extend(items.into_iter().map(|item| &mut item.expr));
    exprs.into_iter().for_each(|expr| know(expr, with));
    change
}

fn know(expr: &mut Expr, with: &[With]) {
    if let Expr::Subquery { query, .. } = expr {
        query.with.splice(0..0, with.iter().cloned());
    }
    expr.operands_mut().into_iter().for_each(|operand| know(operand, with));
}

/// What is joined to a table that is changed: a query of WITH is read as what it is.
fn know_join(join: &mut Join, with: &[With]) {
    join.on.iter_mut().for_each(|on| know(on, with));
    know_relation(&mut join.relation, with);
}

fn know_relation(relation: &mut Relation, with: &[With]) {
    let is_named = |one: &With| one.name.eq_ignore_ascii_case(&relation.table);
    if let Some(query) = &mut relation.query {
        query.with.splice(0..0, with.iter().cloned());
    } else if with.iter().any(is_named) {
        let alias = relation.name().to_owned();
        let query = Query::table(std::mem::take(&mut relation.table));
        relation.query = Some(Box::new(Query { with: with.to_vec(), ..query }));
        relation.alias = Some(alias);
    }
    relation.joins.iter_mut().for_each(|join| know_join(join, with));
}
