//! `MERGE INTO … USING … ON … WHEN …`.

use esker_query::model::{Change, Merge, MergeAction, MergeClause, MergeWhen};
use sqlparser::ast;

use crate::change::{assignments, plain_name, returning, value};
use crate::expression::{Names, ParameterNames};
use crate::statement::{shorten, unsupported};
use crate::{Error, Result, overriding, relation};

pub(crate) fn merge(merge: &ast::Merge, parameters: &ParameterNames) -> Result<Change> {
    let text = shorten(&merge.to_string());
    if !merge.optimizer_hints.is_empty() {
        return Err(unsupported("a hint", &text));
    }
    let alone = |relation: &ast::TableFactor| {
        let relation = relation.clone();
        ast::TableWithJoins { relation, joins: Vec::new() }
    };
    let (target, source) = (alone(&merge.table), alone(&merge.source));
    let (table, own_names) = relation::table(std::slice::from_ref(&target), parameters)?;
    let (_, joins, names) = relation::from(&[target, source], false, parameters)?;
    let [source] = <[_; 1]>::try_from(joins).map_err(|_| unsupported("this USING", &text))?;
    let asked = match &merge.output {
        None => None,
        Some(ast::OutputClause::Returning { select_items, .. }) => Some(select_items.as_slice()),
        Some(other) => return Err(unsupported("this clause", other)),
    };
    let clauses: Vec<_> =
        merge.clauses.iter().map(|one| clause(one, &names)).collect::<Result<_>>()?;
    expect_reachable(&clauses)?;
    Ok(Change::Merge(Box::new(Merge {
        table: table.table,
        alias: table.alias,
        source: source.relation,
        on: names.convert(&merge.on)?,
        clauses,
        returning: returning(asked, &own_names)?,
    })))
}

fn clause(clause: &ast::MergeClause, names: &Names) -> Result<MergeClause> {
    use ast::MergeClauseKind as Kind;
    let when = match clause.clause_kind {
        Kind::Matched => MergeWhen::Matched,
        Kind::NotMatched | Kind::NotMatchedByTarget => MergeWhen::NotMatched,
        Kind::NotMatchedBySource => MergeWhen::NotMatchedBySource,
    };
    let filter = clause.predicate.as_ref().map(|e| names.convert(e)).transpose()?;
    let action = match &clause.action {
        ast::MergeAction::DoNothing { .. } => MergeAction::Nothing,
        ast::MergeAction::Delete { .. } => MergeAction::Delete,
        ast::MergeAction::Update(update) => match update {
            ast::MergeUpdateExpr {
                kind: ast::MergeUpdateKind::Set(set),
                update_predicate: None,
                delete_predicate: None,
                ..
            } => MergeAction::Update(assignments(set, names)?),
            other => return Err(unsupported("this UPDATE of MERGE", other)),
        },
        ast::MergeAction::Insert(insert) => insertion(insert, names)?,
    };
    Ok(MergeClause { when, filter, action })
}

fn insertion(insert: &ast::MergeInsertExpr, names: &Names) -> Result<MergeAction> {
    let ast::MergeInsertExpr {
        columns,
        kind: ast::MergeInsertKind::Values(values),
        insert_predicate: None,
        ..
    } = insert
    else {
        return Err(unsupported("this INSERT of MERGE", insert));
    };
    let [row] = values.rows.as_slice() else {
        let found = values.rows.len();
        let message = format!("INSERT of MERGE: expected one row of VALUES, found {found}");
        return Err(Error::invalid(message));
    };
    let mut columns = columns.clone();
    let overriding = overriding::of(&mut columns);
    let fields = columns.iter().map(plain_name).collect::<Result<_>>()?;
    let values = row.content.iter().map(|e| value(names, e)).collect::<Result<_>>()?;
    Ok(MergeAction::Insert { fields, overriding, values })
}

/// Refuses a clause behind one that is for all rows that it could be for.
fn expect_reachable(clauses: &[MergeClause]) -> Result<()> {
    if clauses.is_empty() {
        return Err(Error::invalid("MERGE: expected WHEN [NOT] MATCHED … THEN …"));
    }
    for (i, clause) in clauses.iter().enumerate() {
        let is_for_all = |one: &&MergeClause| one.when == clause.when && one.filter.is_none();
        if clauses.iter().take(i).any(|one| is_for_all(&one)) {
            let when = match clause.when {
                MergeWhen::Matched => "MATCHED",
                MergeWhen::NotMatched => "NOT MATCHED",
                MergeWhen::NotMatchedBySource => "NOT MATCHED BY SOURCE",
            };
            return Err(Error::invalid(format!(
                "WHEN {when}, clause {}: no row is left for it, since one before it has no AND",
                i + 1
            )));
        }
    }
    Ok(())
}
