//! What a query reads: each table, or answer in place of one.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Batch, Column, Schema};

use super::names::{Names, without_twins};
use super::{Answered, Context};
use crate::exec::output::materialised::slice;
use crate::model::{Expr, Join, JoinKind};
use crate::source::SourceRef;
use crate::{Error, ExplainedInput, Query, Result, Source, ZONE_ROWS};

/// One of them.
pub(super) struct Member<'a> {
    name: String,
    /// Its fields as they are called.
    schema: Schema,
    pub(super) source: SourceRef<'a>,
    /// How an answer in place of a table came about.
    pub(super) input: Option<ExplainedInput>,
}

/// How a member is joined with those before it.
#[derive(Clone, Debug)]
pub(super) struct OnClause {
    pub(super) kind: JoinKind,
    pub(super) on: Vec<Expr>,
}

impl<'a> Context<'a, '_> {
    /// Opens what a query reads; `first` in place of the first table.
    pub(super) fn members(
        &self,
        query: &Query,
        first: Option<&'a dyn Source>,
    ) -> Result<Vec<Member<'a>>> {
        let mut members = Vec::new();
        for (i, relation) in query.relations().into_iter().enumerate() {
            let name = relation.name().to_owned();
            let member = match (&relation.query, first) {
                (None, Some(first)) if i == 0 => Member::table(name, first),
                (None, _) => Member::table(name, self.tables.table(&relation.table)?),
                (Some(_), _) if name.is_empty() => {
                    return Err(Error::invalid(format!(
                        "FROM: a subquery needs a name, as in (SELECT …) AS name: {relation}"
                    )));
                }
                (Some(query), _) => {
                    let Answered { rows, input, elapsed_ns, .. } =
                        self.answer(query).map_err(|e| e.at(&name))?;
                    let count = rows.row_count() as u64;
                    let input = ExplainedInput::query(&name, input, count, elapsed_ns);
                    let input = Some(if self.runs { input } else { input.not_run() });
                    let schema = rows.schema().clone();
                    let rows = rows.with_schema(without_twins(schema.clone()));
                    Member { name, schema, source: SourceRef::Shared(Arc::new(rows)), input }
                }
            };
            members.push(member);
        }
        Ok(members)
    }
}

impl<'a> Member<'a> {
    fn table(name: String, source: &'a dyn Source) -> Self {
        let schema = source.schema().clone();
        Self { name, schema, source: SourceRef::Borrowed(source), input: None }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// The names of members.
pub(super) fn names(members: &[Member<'_>], query: &Query) -> Result<Names> {
    let shows = |i: usize| {
        let join = i.checked_sub(1).and_then(|i| query.joins.get(i));
        join.is_none_or(|join| join.kind.shows_right())
    };
    let named = members.iter().enumerate();
    let named = named.map(|(i, m)| (m.name.clone(), m.schema.clone(), shows(i)));
    Names::new(named.collect())
}

/// What `USING` says, as conditions of each join.
pub(super) fn merge(query: &Query, names: &mut Names) -> Result<Vec<Vec<Expr>>> {
    let mut all = Vec::with_capacity(query.joins.len());
    for (i, join) in query.joins.iter().enumerate() {
        let fields = join.using.iter().map(|name| names.merge(name, i + 1));
        all.push(fields.collect::<Result<Vec<_>>>()?);
    }
    Ok(all)
}

/// Takes the joins of a query out, their conditions with full names.
pub(super) fn on_clauses(
    query: &mut Query,
    using: Vec<Vec<Expr>>,
    names: &Names,
) -> Result<Vec<OnClause>> {
    let mut clauses = Vec::with_capacity(query.joins.len());
    for ((i, join), mut on) in std::mem::take(&mut query.joins).into_iter().enumerate().zip(using) {
        let Join { kind, on: condition, .. } = join;
        if let Some(mut condition) = condition {
            let also = Some(i + 1);
            names.qualify(&mut condition, also, &mut BTreeSet::new()).map_err(|e| e.at("ON"))?;
            super::condition::flatten(condition, &mut on);
        }
        clauses.push(OnClause { kind, on });
    }
    Ok(clauses)
}

/// The same rows in batches of [`ZONE_ROWS`] but for the last.
pub(super) fn even(batches: Vec<Batch>) -> Result<Vec<Batch>> {
    let full = batches.len().saturating_sub(1);
    if batches.iter().take(full).all(|batch| batch.len() == ZONE_ROWS) {
        return Ok(batches);
    }
    let mut even: Vec<Batch> = Vec::new();
    for batch in &batches {
        let mut start = 0;
        while start < batch.len() {
            if even.last().is_none_or(|last| last.len() == ZONE_ROWS) {
                let empty = batch.columns.iter().map(|column| Column::empty(column.data_type));
                even.push(Batch { columns: empty.collect() });
            }
            let Some(last) = even.last_mut() else { break };
            let end = batch.len().min(start + ZONE_ROWS - last.len());
            for (to, from) in last.columns.iter_mut().zip(&batch.columns) {
                let rows = slice(from, start..end).ok_or_else(|| Error::invalid("no such rows"))?;
                to.append(&rows)?;
            }
            start = end;
        }
    }
    Ok(even)
}
