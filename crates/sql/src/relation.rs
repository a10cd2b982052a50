//! What stands behind FROM.

use esker::{ChangesTable, FileTable};
use esker_query::model::{Expr, Function, Join, JoinKind, Operator, Query, Relation};
use sqlparser::ast;

use crate::expression::{Names, ParameterNames};
use crate::pattern_list::Matching;
use crate::qualified_name::{self, ReadTable};
use crate::statement::{shorten, unsupported};
use crate::{Error, Result, changes_table, collation, file_table, pragma, select, table_function};

/// The joins there are, for the errors about others.
const JOINS: &str = "supported are JOIN, LEFT, RIGHT and FULL JOIN, SEMI JOIN, ANTI JOIN and CROSS \
                     JOIN";

/// What a query reads: the first table, what is joined to it, and what fields may be called by.
///
/// Of one table, a field needs no other name than its own: where `is_outermost`, its table's name
/// is left out. Within another query it stays: without it, a field that the table does not have
/// would be looked for in the query around.
pub(crate) fn from(
    tables: &[ast::TableWithJoins],
    is_outermost: bool,
    parameters: &ParameterNames,
) -> Result<(Relation, Vec<Join>, Names)> {
    let Some((first, others)) = tables.split_first() else {
        return Ok((Relation::default(), Vec::new(), Names::new(Vec::new(), parameters)));
    };
    let mut relation = relation(&first.relation, parameters)?;
    let whole = whole_names(tables);
    let names = Names::new(Vec::new(), parameters).with_whole(whole.clone());
    // What comes first needs no parentheses.
    let mut joins = std::mem::take(&mut relation.joins);
    first.joins.iter().try_for_each(|one| join(one, &names, parameters).map(|j| joins.push(j)))?;
    for other in others {
        let mut next = self::relation(&other.relation, parameters)?;
        let own = other.joins.iter().map(|one| join(one, &names, parameters));
        let own = own.collect::<Result<Vec<_>>>()?;
        let is_outer = |join: &Join| matches!(join.kind, JoinKind::Right | JoinKind::Full);
        // JOIN binds before a comma: an outer join behind one has no rows of the tables before it.
        if own.iter().any(is_outer) {
            next.joins.extend(own);
            joins.push(Join::cross(next));
        } else {
            joins.push(Join::cross(next));
            joins.extend(own);
        }
    }
    let is_short = is_outermost && joins.is_empty();
    let known = is_short.then(|| relation.name().to_owned()).filter(|name| !name.is_empty());
    let names = Names::new(known.into_iter().collect(), parameters).with_whole(whole);
    Ok((relation, joins, names))
}

/// The tables that are written with a schema before them and have no other name: so may their
/// fields be.
fn whole_names(tables: &[ast::TableWithJoins]) -> Vec<String> {
    let factors = tables.iter().flat_map(|table| {
        let joined = table.joins.iter().map(|join| &join.relation);
        std::iter::once(&table.relation).chain(joined)
    });
    let of = |factor: &ast::TableFactor| match factor {
        ast::TableFactor::Table { name, alias: None, .. } => match name.0.as_slice() {
            [ast::ObjectNamePart::Identifier(schema), ast::ObjectNamePart::Identifier(table)] => {
                vec![format!("{}.{}", schema.value, table.value)]
            }
            _ => Vec::new(),
        },
        ast::TableFactor::NestedJoin { table_with_joins, alias: None } => {
            whole_names(std::slice::from_ref(&**table_with_joins))
        }
        _ => Vec::new(),
    };
    factors.flat_map(of).collect()
}

/// A table alone, and what it may be called within the statement.
pub(crate) fn table(
    tables: &[ast::TableWithJoins],
    parameters: &ParameterNames,
) -> Result<(Relation, Names)> {
    match tables {
        [one] if one.joins.is_empty() => {
            let relation = relation(&one.relation, parameters)?;
            if FileTable::named(&relation.table).is_some() {
                let file = &relation.table;
                return Err(Error::invalid(format!("{file} is a file, which is only read")));
            }
            if ChangesTable::named(&relation.table).is_some() {
                let name = &relation.table;
                return Err(Error::invalid(format!("{name} is only read: it tells what was done")));
            }
            if esker::is_system_table(&relation.table) {
                let name = &relation.table;
                return Err(Error::invalid(format!("{name} is only read: it tells what there is")));
            }
            let is_table = relation.query.is_none() && relation.joins.is_empty();
            if !is_table || !relation.columns.is_empty() {
                return Err(unsupported("this kind of table", &one.relation));
            }
            let names = Names::new(vec![relation.name().to_owned()], parameters);
            Ok((relation, names.with_whole(whole_names(tables))))
        }
        several => {
            let found: usize = several.iter().map(|table| 1 + table.joins.len()).sum();
            Err(Error::invalid(format!(
                "expected one table to change, found {found}; name others behind FROM of UPDATE, \
                 or USING of DELETE"
            )))
        }
    }
}

fn relation(factor: &ast::TableFactor, parameters: &ParameterNames) -> Result<Relation> {
    match file_table::of(factor)? {
        Some((file, alias)) => called(file, alias),
        None => stored_or_asked(factor, parameters),
    }
}

/// A table, a query, a call, or a join of these.
fn stored_or_asked(factor: &ast::TableFactor, parameters: &ParameterNames) -> Result<Relation> {
    match factor {
        ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } => {
            if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
                return Err(unsupported("a hint on a table", factor));
            }
            let ReadTable { name, called: own } = qualified_name::read(name)?;
            called(Relation { alias: own, ..Relation::table(name) }, alias.as_ref())
        }
        ast::TableFactor::Table {
            name,
            alias,
            args: Some(ast::TableFunctionArgs { args, settings: None }),
            with_hints,
            version: None,
            with_ordinality,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } if with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty() => {
            if let Some(query) = pragma::call(name, args)? {
                let query = Some(Box::new(query));
                let (own, relation) = (name.to_string(), Relation { query, ..Relation::default() });
                return called(Relation { alias: Some(own), ..relation }, alias.as_ref());
            }
            if let Some(changes) = changes_table::call(name, args)?.filter(|_| !with_ordinality) {
                return called(changes, alias.as_ref());
            }
            let call = table_function::call(name, args, *with_ordinality, parameters)?;
            called(Relation::call(call), alias.as_ref())
        }
        ast::TableFactor::TableFunction { expr, .. } => Err(table_function::no_table(expr)),
        ast::TableFactor::Derived { lateral, subquery, alias, sample: None } => {
            let query = Some(Box::new(select::convert_within(subquery, parameters)?));
            let relation = Relation { query, lateral: *lateral, ..Relation::default() };
            called(relation, alias.as_ref())
        }
        ast::TableFactor::NestedJoin { table_with_joins, alias } => {
            let within = std::slice::from_ref(&**table_with_joins);
            let (first, joins, _) = from(within, false, parameters)?;
            match alias {
                None => Ok(Relation { joins, ..first }),
                Some(_) if joins.is_empty() => called(first, alias.as_ref()),
                // By a name for the whole, the tables in it have none.
                Some(_) => {
                    let query = Query { joins, ..Query::from(first) };
                    let relation = Relation { query: Some(Box::new(query)), ..Relation::default() };
                    called(relation, alias.as_ref())
                }
            }
        }
        other => function_called(other, parameters),
    }
}

/// A relation by the name, and with the columns, that stand behind it.
fn called(relation: Relation, alias: Option<&ast::TableAlias>) -> Result<Relation> {
    let Some(alias) = alias else {
        return Ok(relation);
    };
    let (name, columns) = self::alias(alias)?;
    Ok(Relation { alias: Some(name), columns, ..relation })
}

/// A name, and those of columns behind it.
pub(crate) fn alias(alias: &ast::TableAlias) -> Result<(String, Vec<String>)> {
    if alias.at.is_some() {
        return Err(unsupported("AT behind a name", alias));
    }
    select::expect_name(&alias.name)?;
    let column = |column: &ast::TableAliasColumnDef| match &column.data_type {
        None => select::expect_name(&column.name).map(|()| column.name.value.clone()),
        Some(_) => Err(unsupported("the type of a column here", alias)),
    };
    let columns = alias.columns.iter().map(column).collect::<Result<_>>()?;
    Ok((alias.name.value.clone(), columns))
}

fn join(join: &ast::Join, names: &Names, parameters: &ParameterNames) -> Result<Join> {
    use ast::JoinOperator as O;
    let text = || shorten(join.to_string().trim());
    if join.global {
        return Err(unsupported("GLOBAL JOIN", text()));
    }
    let (kind, constraint) = match &join.join_operator {
        O::Join(constraint) | O::Inner(constraint) => (JoinKind::Inner, constraint),
        O::Left(constraint) | O::LeftOuter(constraint) => (JoinKind::Left, constraint),
        O::Semi(constraint) | O::LeftSemi(constraint) => (JoinKind::Semi, constraint),
        O::Anti(constraint) | O::LeftAnti(constraint) => (JoinKind::Anti, constraint),
        O::CrossJoin(ast::JoinConstraint::None) => {
            return Ok(Join::cross(relation(&join.relation, parameters)?));
        }
        O::Right(constraint) | O::RightOuter(constraint) => (JoinKind::Right, constraint),
        O::FullOuter(constraint) => (JoinKind::Full, constraint),
        _ => {
            return Err(Error::invalid(format!(
                "this JOIN is not supported; {JOINS}: `{}`",
                text()
            )));
        }
    };
    let mut relation = relation(&join.relation, parameters)?;
    let is_written = matches!(
        &join.relation,
        ast::TableFactor::Derived { lateral: true, .. }
            | ast::TableFactor::Function { lateral: true, .. }
    );
    // What a function is called with may name what stands before it, where that is there first.
    relation.lateral &= is_written || !matches!(kind, JoinKind::Right | JoinKind::Full);
    if relation.lateral && matches!(kind, JoinKind::Right | JoinKind::Full) {
        return Err(Error::invalid(format!(
            "LATERAL stands behind JOIN, LEFT JOIN and CROSS JOIN, whose left side is there \
             first: `{}`",
            text()
        )));
    }
    match constraint {
        ast::JoinConstraint::On(condition) => {
            Ok(Join::on(kind, relation, names.convert(condition)?))
        }
        ast::JoinConstraint::Using(fields) => {
            let fields =
                fields.iter().map(crate::change::plain_name).collect::<Result<Vec<_>>>()?;
            Ok(Join::using(kind, relation, fields))
        }
        ast::JoinConstraint::Natural => Ok(Join::natural(kind, relation)),
        ast::JoinConstraint::None => Err(Error::invalid(format!(
            "expected ON or USING behind a join (CROSS JOIN has none): `{}`",
            text()
        ))),
    }
}

/// A call of a function that makes rows, as the parser tells it apart from tables.
fn function_called(factor: &ast::TableFactor, parameters: &ParameterNames) -> Result<Relation> {
    let (call, alias) = match factor {
        ast::TableFactor::Function { lateral: _, name, args, with_ordinality, alias } => {
            (table_function::call(name, args, *with_ordinality, parameters)?, alias)
        }
        ast::TableFactor::UNNEST {
            alias,
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality,
        } => (table_function::unnest(array_exprs, *with_ordinality, parameters)?, alias),
        other => return Err(unsupported("this kind of table", other)),
    };
    called(Relation::call(call), alias.as_ref())
}

/// A query in an expression.
pub(crate) fn subquery(expr: &ast::Expr, names: &Names) -> Result<Expr> {
    let parameters = names.parameters();
    let within = |query: &ast::Query| select::convert_within(query, parameters);
    let negated = |expr: Expr, negated: bool| if negated { expr.negated() } else { expr };
    match expr {
        ast::Expr::Subquery(query) => Ok(Expr::value_of(within(query)?)),
        ast::Expr::Exists { subquery, negated: is_negated } => {
            Ok(negated(Expr::has_rows(within(subquery)?), *is_negated))
        }
        ast::Expr::InSubquery { expr: operand, subquery, negated: is_negated } => {
            let (operand, query) = keyed(names, operand, within(subquery)?)?;
            let among = operand.among(query);
            Ok(negated(among, *is_negated))
        }
        ast::Expr::AnyOp { left, compare_op, right, .. }
            if let Some(matching) = Matching::of(compare_op) =>
        {
            names.matched_with_list(matching, true, left, right)
        }
        ast::Expr::AllOp { left, compare_op, right }
            if let Some(matching) = Matching::of(compare_op) =>
        {
            names.matched_with_list(matching, false, left, right)
        }
        ast::Expr::AnyOp { left, compare_op, right, .. }
            if let ast::Expr::Array(list) = &**right =>
        {
            names.compared_with_any(comparison(compare_op, expr)?, left, &list.elem)
        }
        ast::Expr::AllOp { left, compare_op, right } if let ast::Expr::Array(list) = &**right => {
            names.compared_with_all(comparison(compare_op, expr)?, left, &list.elem)
        }
        ast::Expr::AnyOp { left, compare_op, right, .. } if is_value(right) => {
            names.compared_with_list(Function::ListAny, comparison(compare_op, expr)?, left, right)
        }
        ast::Expr::AllOp { left, compare_op, right } if is_value(right) => {
            names.compared_with_list(Function::ListAll, comparison(compare_op, expr)?, left, right)
        }
        ast::Expr::AnyOp { left, compare_op, right, is_some: _ } => {
            let (operator, query) = (comparison(compare_op, expr)?, queried(right, expr)?);
            let (left, query) = keyed(names, left, within(query)?)?;
            Ok(left.compared_with_any(operator, query))
        }
        ast::Expr::AllOp { left, compare_op, right } => {
            let (operator, query) = (comparison(compare_op, expr)?, queried(right, expr)?);
            let (left, query) = keyed(names, left, within(query)?)?;
            Ok(left.compared_with_all(operator, query))
        }
        other => Err(unsupported("a subquery here", other)),
    }
}

/// Whether a list stands behind ANY or ALL, not a query.
pub(crate) fn is_value(right: &ast::Expr) -> bool {
    match right {
        ast::Expr::Nested(inner) => is_value(inner),
        other => !matches!(other, ast::Expr::Subquery(_)),
    }
}

/// A value and the values of a query that it is compared with, by the collation behind it.
fn keyed(names: &Names, value: &ast::Expr, query: Query) -> Result<(Expr, Query)> {
    let value = names.collated(value)?;
    let query = match value.by {
        Some(by) => collation::keys_of(by, query)?,
        None => query,
    };
    Ok((value.key(), query))
}

/// The operator before ANY or ALL.
fn comparison(operator: &ast::BinaryOperator, whole: &ast::Expr) -> Result<Operator> {
    use ast::BinaryOperator as B;
    match operator {
        B::Eq => Ok(Operator::Eq),
        B::NotEq => Ok(Operator::Neq),
        B::Lt => Ok(Operator::Lt),
        B::LtEq => Ok(Operator::Lte),
        B::Gt => Ok(Operator::Gt),
        B::GtEq => Ok(Operator::Gte),
        other => Err(unsupported(&format!("{other} before ANY and ALL"), whole)),
    }
}

/// The query behind ANY or ALL.
fn queried<'e>(expr: &'e ast::Expr, whole: &ast::Expr) -> Result<&'e ast::Query> {
    match expr {
        ast::Expr::Subquery(query) => Ok(query),
        ast::Expr::Nested(inner) => queried(inner, whole),
        _ => Err(unsupported("what is no subquery behind ANY and ALL", whole)),
    }
}
