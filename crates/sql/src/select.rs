//! The clauses of a SELECT.

use esker_format::Value;
use esker_query::model::{
    Expr, OrderBy, Query, Relation, RowCount, SelectItem, SetBranch, SetOperation, SetOperator,
    With,
};
use esker_vfs::sabotage::Bug;
use sqlparser::ast;

use crate::collation::Collated;
use crate::expression::{Names, ParameterNames};
use crate::statement::{Statement, shorten, unsupported};
use crate::{Error, Result, collation, dialect, list_query, relation, table_function};

/// A query as a statement of its own, which may hold the rows that it finds.
pub(crate) fn statement(mut query: ast::Query, parameters: &ParameterNames) -> Result<Statement> {
    let locks = std::mem::take(&mut query.locks);
    let query = convert(query, parameters)?;
    match locks.as_slice() {
        [] => Ok(Statement::Query(query)),
        [lock] => for_update(lock).map(|()| Statement::QueryForUpdate(query)),
        [_, lock, ..] => {
            Err(Error::invalid(format!("expected one FOR UPDATE, found `{lock}` too")))
        }
    }
}

/// Refuses a lock clause that is not `FOR UPDATE` alone.
fn for_update(lock: &ast::LockClause) -> Result<()> {
    let why = match (lock.lock_type, &lock.of, lock.nonblock) {
        (ast::LockType::Update, None, None) => return Ok(()),
        (ast::LockType::Share, ..) => "rows are held as if they were to be changed",
        (_, _, Some(ast::NonBlock::Nowait)) => "nobody waits, the later commit is a conflict",
        (_, _, Some(ast::NonBlock::SkipLocked)) => {
            "no row is locked, the later commit is a conflict"
        }
        (_, Some(_), None) => "the query is of one table",
    };
    Err(Error::invalid(format!("expected FOR UPDATE alone, found `{lock}`: {why}")))
}

/// Turns a parsed query into the model.
pub(crate) fn convert(query: ast::Query, parameters: &ParameterNames) -> Result<Query> {
    let mut query = convert_at(&query, true, parameters)?;
    // Its fields go by their own names, and no query within needs another.
    let is_alone = query.joins.is_empty() && query.derived.is_none() && query.columns.is_empty();
    if is_alone && !query.exprs().any(Expr::has_subquery) {
        query.alias = None;
    }
    Ok(query)
}

/// The same for a query within another.
pub(crate) fn convert_within(query: &ast::Query, parameters: &ParameterNames) -> Result<Query> {
    convert_at(query, false, parameters)
}

fn convert_at(
    query: &ast::Query,
    is_outermost: bool,
    parameters: &ParameterNames,
) -> Result<Query> {
    refuse_around(query)?;
    let with = query.with.as_ref().map(|with| named(with, parameters)).transpose()?;
    let with = with.unwrap_or_default();
    let (mut result, names) = body(&query.body, is_outermost, parameters)?;
    let is_cut = query.limit_clause.is_some() || query.fetch.is_some();
    let adds = query.order_by.is_some() || is_cut;
    let has_own = !result.order_by.is_empty()
        || result.limit.is_some()
        || result.offset != RowCount::default();
    // In parentheses it ends with an order or a limit of its own, or begins with WITH.
    if adds && has_own || !(with.is_empty() || result.with.is_empty()) {
        result = Query::from(Relation { query: Some(Box::new(result)), ..Relation::default() });
    }
    if !with.is_empty() {
        result.with = with;
    }
    if let Some(order_by) = &query.order_by {
        result.order_by = order(order_by, &result.select, &names)?;
        let (shown, keys) = (&names.shown_texts, &names.grouped_texts);
        collation::order_by_keys(&mut result.order_by, &result.select, shown, keys);
    }
    limit((query.limit_clause.as_ref(), query.fetch.as_ref()), parameters, &mut result)?;
    Ok(result)
}

/// A query up to its order, and what its fields may be called there.
fn body(
    body: &ast::SetExpr,
    is_outermost: bool,
    parameters: &ParameterNames,
) -> Result<(Query, Names)> {
    let names = Names::new(Vec::new(), parameters);
    match body {
        ast::SetExpr::Select(select) => self::select(select, is_outermost, parameters),
        ast::SetExpr::Query(query) => Ok((convert_at(query, is_outermost, parameters)?, names)),
        ast::SetExpr::Values(values) if !values.value_keyword && !values.explicit_row => {
            let row = |row: &ast::Parens<Vec<ast::Expr>>| {
                row.content.iter().map(|expr| names.convert(expr)).collect::<Result<Vec<_>>>()
            };
            let rows = values.rows.iter().map(row).collect::<Result<_>>()?;
            Ok((Query::values(rows), names))
        }
        set @ ast::SetExpr::SetOperation { .. } => Ok((combined(set, parameters)?, names)),
        other => Err(unsupported("this kind of query", other)),
    }
}

/// Queries with UNION, INTERSECT and EXCEPT between them. The grammar has them to the left of each
/// other, but for INTERSECT, which comes first.
fn combined(set: &ast::SetExpr, parameters: &ParameterNames) -> Result<Query> {
    use ast::SetQuantifier as Q;
    let (mut rest, mut left) = (Vec::new(), set);
    while let ast::SetExpr::SetOperation { op, set_quantifier, left: before, right } = left {
        let operator = match op {
            ast::SetOperator::Union => SetOperator::Union,
            ast::SetOperator::Intersect => SetOperator::Intersect,
            ast::SetOperator::Except | ast::SetOperator::Minus => SetOperator::Except,
        };
        let all = match set_quantifier {
            Q::All => true,
            Q::Distinct | Q::None => false,
            Q::ByName | Q::AllByName | Q::DistinctByName => {
                return Err(unsupported("BY NAME", format!("{op} {set_quantifier}")));
            }
        };
        rest.push((operator, all, &**right));
        left = &**before;
    }
    let (first, _) = body(left, false, parameters)?;
    let branch = |(operator, all, right)| {
        let (query, _) = body(right, false, parameters)?;
        Ok(SetBranch { operator, all, query })
    };
    let rest = rest.into_iter().rev().map(branch).collect::<Result<_>>()?;
    Ok(Query { set: Some(Box::new(SetOperation { first, rest })), ..Query::default() })
}

/// The queries that WITH names.
pub(crate) fn named(with: &ast::With, parameters: &ParameterNames) -> Result<Vec<With>> {
    let one = |cte: &ast::Cte| {
        if let Some(from) = &cte.from {
            return Err(unsupported("FROM behind a query of WITH", from));
        }
        let (name, columns) = relation::alias(&cte.alias)?;
        let query = convert_within(&cte.query, parameters)?;
        let is_kept = cte.alias.name.quote_style == Some(dialect::MADE_NAME);
        let materialized = is_kept.then_some(true);
        let named = With { columns, materialized, ..With::new(name, query) };
        let recursive = with.recursive && named.reads_itself();
        Ok(With { recursive, ..named })
    };
    with.cte_tables.iter().map(one).collect()
}

fn select(
    select: &ast::Select,
    is_outermost: bool,
    parameters: &ParameterNames,
) -> Result<(Query, Names)> {
    refuse_within(select)?;
    let (first, joins, names) = relation::from(&select.from, is_outermost, parameters)?;
    let names = names.with_windows(&select.named_window)?;
    let mut result = Query { joins, ..Query::from(first) };
    if select.projection.is_empty() && !Bug::NothingSelectsAll.is_planted() {
        let what = "expected what is to be shown, like * or the name of a field (in double quotes \
                    if it is a word of SQL)";
        return Err(Error::invalid(format!("SELECT: {what}")));
    }
    let mut names = names.making_rows();
    names.groups_texts = select.distinct.is_some() || groups(&select.group_by);
    result.select = items(&select.projection, &names)?;
    let calls = names.take_calls();
    if result.select.is_empty() && select.from.is_empty() {
        return Err(Error::invalid("SELECT * without a table: expected FROM"));
    }
    result.filter = select.selection.as_ref().map(|e| names.convert(e)).transpose()?;
    let names = names.beside(&result.select);
    match &select.distinct {
        None | Some(ast::Distinct::All) => {}
        Some(ast::Distinct::Distinct) => result.distinct = true,
        Some(ast::Distinct::On(keys)) => {
            let key = |e| position_or("DISTINCT ON", e, Some(&result.select), &names);
            result.distinct_on = keys.iter().map(key).collect::<Result<_>>()?;
        }
    }
    names.group(&select.group_by, &mut result)?;
    result.having = select.having.as_ref().map(|e| names.convert(e)).transpose()?;
    result.qualify = select.qualify.as_ref().map(|e| names.convert(e)).transpose()?;
    table_function::put_into_from(calls, &select.projection, &mut result)?;
    let names = with_texts(select, names)?;
    collation::show_least(&mut result, &names.shown_texts, &names.grouped_texts)?;
    Ok((result, names))
}

/// Whether rows are grouped.
fn groups(group_by: &ast::GroupByExpr) -> bool {
    !matches!(group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty())
}

/// The names with the texts that rows are grouped by without case.
fn with_texts(select: &ast::Select, mut names: Names) -> Result<Names> {
    let shown = select.projection.iter().filter_map(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            collation::is_collated(expr).then_some(expr)
        }
        _ => None,
    });
    names.shown_texts = collation::grouped_texts(shown, &names)?;
    if let ast::GroupByExpr::Expressions(keys, _) = &select.group_by {
        let keys = keys.iter().filter(|key| collation::is_collated(key));
        names.grouped_texts = collation::grouped_texts(keys, &names)?;
    }
    Ok(names)
}

/// Refuses clauses outside of the SELECT proper.
fn refuse_around(query: &ast::Query) -> Result<()> {
    if let Some(lock) = query.locks.first() {
        return Err(Error::invalid(format!(
            "expected FOR UPDATE in a SELECT that stands alone, not in another statement: `{lock}`"
        )));
    }
    let extras = [
        ("FOR XML or JSON", query.for_clause.is_some()),
        ("SETTINGS", query.settings.is_some()),
        ("FORMAT", query.format_clause.is_some()),
        ("a pipe operator", !query.pipe_operators.is_empty()),
    ];
    match extras.iter().find(|(_, found)| *found) {
        Some((what, _)) => Err(unsupported(what, query)),
        None => Ok(()),
    }
}

/// Refuses clauses inside the SELECT.
fn refuse_within(select: &ast::Select) -> Result<()> {
    let extras = [
        ("an optimizer hint", !select.optimizer_hints.is_empty()),
        ("a modifier of SELECT", select.select_modifiers.is_some()),
        ("TOP (write LIMIT)", select.top.is_some()),
        ("EXCLUDE", select.exclude.is_some()),
        ("INTO", select.into.is_some()),
        ("LATERAL VIEW", !select.lateral_views.is_empty()),
        ("PREWHERE", select.prewhere.is_some()),
        ("CONNECT BY", !select.connect_by.is_empty()),
        ("CLUSTER BY", !select.cluster_by.is_empty()),
        ("DISTRIBUTE BY", !select.distribute_by.is_empty()),
        ("SORT BY", !select.sort_by.is_empty()),
        ("SELECT AS", select.value_table_mode.is_some()),
        ("a query that starts with FROM", select.flavor != ast::SelectFlavor::Standard),
    ];
    match extras.iter().find(|(_, found)| *found) {
        Some((what, _)) => Err(unsupported(what, select)),
        None => Ok(()),
    }
}

/// The name of a column that reads otherwise once it is converted, as it was written:
/// `median(x)` for `quantile(x, 0.5)`, `(a, b) = (1, 2)` for `a = 1 AND b = 2`.
fn name_as_written(written: &ast::Expr, converted: &Expr) -> Option<String> {
    let ast::Expr::Function(call) = written else {
        return reads_otherwise(written).then(|| written.to_string());
    };
    if table_function::makes_rows(written) {
        return None;
    }
    if list_query::of(call).is_some() {
        return Some(written.to_string());
    }
    if !crate::window::is_as_written(call) {
        return None;
    }
    let name = call.name.to_string().to_lowercase();
    let is_same = call.filter.is_none()
        && call.within_group.is_empty()
        && !operands(call).any(reads_otherwise)
        && converted.to_string().split('(').next().is_some_and(|n| n.eq_ignore_ascii_case(&name));
    (!is_same).then(|| written.to_string().replacen(&call.name.to_string(), &name, 1))
}

/// The expressions that a call is of.
fn operands(call: &ast::Function) -> impl Iterator<Item = &ast::Expr> {
    let list = match &call.args {
        ast::FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    list.iter().filter_map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    })
}

/// True for what has rows of values or intervals as operands, and for what is a call once it is
/// converted: `2 ^ 3`, `EXTRACT(year FROM d)`.
fn reads_otherwise(written: &ast::Expr) -> bool {
    use ast::BinaryOperator as B;
    use ast::Expr as E;
    match written {
        E::Interval(_) | E::Tuple(_) | E::Collate { .. } => true,
        E::Extract { .. } | E::AtTimeZone { .. } | E::Position { .. } => true,
        E::AnyOp { right, .. } | E::AllOp { right, .. } => relation::is_value(right),
        E::Array(_) | E::CompoundFieldAccess { .. } => true,
        E::BinaryOp { op, left, right } => {
            let is_call = matches!(
                op,
                B::PGExp
                    | B::BitwiseAnd
                    | B::BitwiseOr
                    | B::PGBitwiseXor
                    | B::PGBitwiseShiftLeft
                    | B::PGBitwiseShiftRight
                    | B::AtArrow
                    | B::ArrowAt
                    | B::PGOverlap
            );
            is_call || reads_otherwise(left) || reads_otherwise(right)
        }
        E::UnaryOp { expr, .. }
        | E::Nested(expr)
        | E::InList { expr, .. }
        | E::Between { expr, .. } => reads_otherwise(expr),
        _ => false,
    }
}

/// Refuses a text in the place of a name: one with `AS` before it has become a name.
pub(crate) fn expect_name(alias: &ast::Ident) -> Result<()> {
    match alias.quote_style {
        Some('\'') => Err(Error::invalid(format!(
            "`{alias}`: expected an operator, a comma, or AS before a name, found a text"
        ))),
        _ => Ok(()),
    }
}

/// The select list; empty for `*`, and for `t.*` where `t` is all there is.
/// Whether an item is `ARRAY[]`, of which nothing tells the type.
fn is_list_of_nothing(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Nested(inner) => is_list_of_nothing(inner),
        ast::Expr::Array(list) => list.elem.is_empty(),
        _ => false,
    }
}

pub(crate) fn items(projection: &[ast::SelectItem], names: &Names) -> Result<Vec<SelectItem>> {
    if let [ast::SelectItem::Wildcard(options)] = projection {
        let text = options.to_string();
        return if text.is_empty() { Ok(Vec::new()) } else { Err(unsupported("this *", text)) };
    }
    let item = |item: &ast::SelectItem| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }
            if is_list_of_nothing(expr) =>
        {
            let message = "ARRAY[] alone has no type: expected a cast, like ARRAY[]::i64[]";
            Err(Error::invalid(message))
        }
        ast::SelectItem::UnnamedExpr(expr) => {
            let converted = names.select_item(expr)?;
            let alias = name_as_written(expr, &converted);
            Ok(SelectItem { expr: converted, alias })
        }
        ast::SelectItem::ExprWithAlias { expr, alias } => {
            expect_name(alias)?;
            Ok(SelectItem { expr: names.select_item(expr)?, alias: Some(alias.value.clone()) })
        }
        ast::SelectItem::Wildcard(options) if options.to_string().is_empty() => {
            Ok(SelectItem { expr: Expr::AllFields(String::new()), alias: None })
        }
        ast::SelectItem::QualifiedWildcard(
            ast::SelectItemQualifiedWildcardKind::ObjectName(table),
            options,
        ) if options.to_string().is_empty() => {
            let table = crate::change::plain_name(table)?;
            let table = if names.is_table(&table) { String::new() } else { table };
            Ok(SelectItem { expr: Expr::AllFields(table), alias: None })
        }
        other => Err(unsupported("this select item", other)),
    };
    let items = projection.iter().map(item).collect::<Result<Vec<_>>>()?;
    let is_star = |item: &SelectItem| matches!(&item.expr, Expr::AllFields(t) if t.is_empty());
    Ok(if items.len() == 1 && items.iter().all(is_star) { Vec::new() } else { items })
}

fn order(order_by: &ast::OrderBy, select: &[SelectItem], names: &Names) -> Result<Vec<OrderBy>> {
    if order_by.interpolate.is_some() {
        return Err(unsupported("INTERPOLATE", order_by));
    }
    match &order_by.kind {
        ast::OrderByKind::Expressions(keys) => order_keys(keys, Some(select), names),
        ast::OrderByKind::All(options) => Ok(vec![order_key(Expr::AllItems, options, order_by)?]),
    }
}

/// A key of an order, which is written so.
fn order_key(
    expr: Expr,
    options: &ast::OrderByOptions,
    written: &impl std::fmt::Display,
) -> Result<OrderBy> {
    let descending = match &options.sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(_) => return Err(unsupported("ORDER BY … USING", written)),
    };
    Ok(OrderBy { expr, descending, nulls_first: options.nulls_first })
}

/// The keys of an order; `select` has what a number stands for, where there is such.
pub(crate) fn order_keys(
    keys: &[ast::OrderByExpr],
    select: Option<&[SelectItem]>,
    names: &Names,
) -> Result<Vec<OrderBy>> {
    let key = |key: &ast::OrderByExpr| {
        if key.with_fill.is_some() {
            return Err(unsupported("WITH FILL", key));
        }
        let expr = position_or("ORDER BY", &key.expr, select, names)?;
        order_key(expr, &key.options, key)
    };
    keys.iter().map(key).collect()
}

/// A whole number stands for the select item at that place; anything else for itself.
pub(crate) fn position_or(
    clause: &str,
    expr: &ast::Expr,
    select: Option<&[SelectItem]>,
    names: &Names,
) -> Result<Expr> {
    let collated = names.collated(expr)?;
    let Expr::Literal(position @ (Value::Int(_) | Value::Uint(_))) = &collated.expr else {
        return Ok(collated.key());
    };
    let Some(select) = select else {
        return Err(Error::invalid(format!(
            "{clause} {position}: expected a field or an expression; a number stands for a column \
             in the clauses of SELECT only"
        )));
    };
    let place: Option<usize> = position.to_string().parse().ok().filter(|place| *place > 0);
    let Some(place) = place else {
        let message = format!("{clause} {position}: expected the place of a column, from 1 on");
        return Err(Error::invalid(message));
    };
    match select.get(place - 1) {
        Some(item) if Bug::OrderByPositionByText.is_planted() => Ok(item.expr.clone()),
        _ if collated.by.is_none() => Ok(Expr::Item(place)),
        Some(item) if !matches!(item.expr, Expr::AllFields(_)) => {
            Ok(Collated { expr: item.expr.clone(), ..collated }.key())
        }
        _ => Err(Error::invalid(format!("{clause} {expr}: expected the name of the column"))),
    }
}

fn limit(
    (clause, fetch): (Option<&ast::LimitClause>, Option<&ast::Fetch>),
    parameters: &ParameterNames,
    query: &mut Query,
) -> Result<()> {
    let (limit, offset) = match clause {
        None => (None, None),
        Some(ast::LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if !limit_by.is_empty() {
                let keys: Vec<_> = limit_by.iter().map(ToString::to_string).collect();
                return Err(unsupported("LIMIT BY", keys.join(", ")));
            }
            (limit.as_ref(), offset.as_ref().map(|o| &o.value))
        }
        Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
    };
    if clause.is_some() {
        query.limit = limit.map(|e| count("LIMIT", e, parameters)).transpose()?;
        let offset = offset.map(|e| count("OFFSET", e, parameters)).transpose()?;
        query.offset = offset.unwrap_or_default();
    }
    let Some(fetch) = fetch else { return Ok(()) };
    match fetch {
        _ if query.limit.is_some() => {
            Err(Error::invalid(format!("expected LIMIT or FETCH, found both: `{fetch}`")))
        }
        ast::Fetch { with_ties: true, .. } => Err(unsupported("WITH TIES", fetch)),
        ast::Fetch { percent: true, .. } => Err(unsupported("PERCENT", fetch)),
        ast::Fetch { quantity, .. } => {
            let rows = quantity.as_ref().map(|rows| count("FETCH", rows, parameters));
            query.limit = Some(rows.transpose()?.unwrap_or(RowCount::Number(1)));
            Ok(())
        }
    }
}

pub(crate) fn count(
    clause: &str,
    expr: &ast::Expr,
    parameters: &ParameterNames,
) -> Result<RowCount> {
    let count = match Names::new(Vec::new(), parameters).convert(expr) {
        Ok(Expr::Literal(Value::Int(number))) => u64::try_from(number).ok().map(RowCount::Number),
        Ok(Expr::Literal(Value::Uint(number))) => Some(RowCount::Number(number)),
        Ok(Expr::Parameter(parameter)) => Some(RowCount::Parameter(parameter)),
        _ => None,
    };
    count.ok_or_else(|| {
        let text = shorten(&expr.to_string());
        Error::invalid(format!("{clause}: expected a number of rows, found `{text}`"))
    })
}
