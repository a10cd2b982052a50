//! What a query reads: each table, or answer in place of one.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use esker_format::Schema;

use super::flat::{FlatQuery, FlatRows};
use super::named::NamedQuery;
use super::names::{Names, TableNames, called, without_twins};
use super::reading::Reading;
use super::{Answered, Context};
use crate::model::{Expr, Join, JoinKind, Relation};
use crate::source::SourceRef;
use crate::source::renamed::Renamed;
use crate::{ExplainedInput, Query, Result, Source};

/// One of them.
#[derive(Clone)]
pub(super) struct Member<'a> {
    name: String,
    /// Its tables, each with its fields as they are called: several for a join in parentheses.
    pub(super) tables: Vec<TableNames>,
    /// The fields of all of them, in order.
    pub(super) source: SourceRef<'a>,
    /// How an answer in place of a table came about.
    pub(super) input: Option<ExplainedInput>,
    /// Where a table is read in place of a query: what of it.
    pub(super) flat: Option<FlatRows>,
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
        relations: &[Relation],
        first: Option<&'a dyn Source>,
        reading: &Reading,
    ) -> Result<Vec<Member<'a>>> {
        let mut members = Vec::with_capacity(relations.len());
        for (i, relation) in relations.iter().enumerate() {
            members.push(match first {
                Some(first) if i == 0 && relation.query.is_none() && relation.joins.is_empty() => {
                    Member::table(relation.name().to_owned(), first).renamed(&relation.columns)?
                }
                _ => self.member(relation, i, reading)?,
            });
        }
        Ok(members)
    }

    /// Opens one relation, number `i` of those that are joined.
    pub(super) fn member(
        &self,
        relation: &Relation,
        i: usize,
        reading: &Reading,
    ) -> Result<Member<'a>> {
        if !relation.joins.is_empty() {
            return self.grouped(relation, reading);
        }
        let name = match relation.name() {
            "" => format!("(subquery {})", i + 1),
            name => name.to_owned(),
        };
        let member = match (&relation.query, self.named(&relation.table)) {
            (None, Some(named)) => {
                if let Some(with) = named.inlined() {
                    let columns = [with.columns.as_slice(), relation.columns.as_slice()];
                    let flat = || self.flat(&with.query, &name, &columns);
                    if let Some(flat) = self.where_named(&named, flat) {
                        return Ok(Member::flat(name, flat));
                    }
                }
                let named = self.pushed_down(named, i, relation, reading);
                let kept = self.named_rows(&named, reading.most)?;
                let source = SourceRef::Shared(Arc::clone(&kept.rows) as Arc<_>);
                let what = match kept.input.what.eq_ignore_ascii_case(&name) {
                    true => name.clone(),
                    false => format!("{} AS {name}", kept.input.what),
                };
                let input = ExplainedInput { what, ..kept.input };
                Member::new(name, kept.schema, source, Some(input))
            }
            (None, None) => self.table_member(name, &relation.table)?,
            (Some(query), _) if let Some(call) = query.as_call() => {
                let called = self.called_with_constants(call, relation, reading.most)?;
                Member::new(name, called.schema, called.source, Some(called.input))
            }
            (Some(query), _) => {
                if let Some(flat) = self.flat(query, &name, &[&relation.columns]) {
                    return Ok(Member::flat(name, flat));
                }
                let columns: [&[String]; 1] = [&relation.columns];
                let query = reading.pushdown.tested_by(query, i, relation, &columns, self);
                let is_outermost = self.depth.get() == 1 && self.any_order.outermost;
                self.any_order.next.set(is_outermost);
                let Answered { rows, input, elapsed_ns, plan } =
                    self.answer(&query).map_err(|e| e.at(&name))?;
                let count = rows.row_count() as u64;
                let input = ExplainedInput::query(&name, input, count, elapsed_ns).with_plan(plan);
                let input = Some(if self.runs { input } else { input.not_run() });
                let schema = rows.schema().clone();
                let rows = rows.with_schema(without_twins(schema.clone()));
                Member::new(name, schema, SourceRef::Shared(Arc::new(rows)), input)
            }
        };
        member.renamed(&relation.columns)
    }
}

impl<'a> Context<'a, '_> {
    /// A table as a member. Apart, since what lies in each other takes the stack of `member`.
    #[inline(never)]
    fn table_member(&self, name: String, table: &str) -> Result<Member<'a>> {
        let (source, schema) = self.table(table)?;
        Ok(Member::new(name, schema, source, None))
    }
}

impl Context<'_, '_> {
    /// A named query that runs wherever it is named, with the conditions that it may test here.
    fn pushed_down(
        &self,
        named: Rc<NamedQuery>,
        i: usize,
        relation: &Relation,
        reading: &Reading,
    ) -> Rc<NamedQuery> {
        let Some(with) = named.inlined() else { return named };
        let columns = [with.columns.as_slice(), relation.columns.as_slice()];
        let push = || reading.pushdown.tested_by(&with.query, i, relation, &columns, self);
        match self.where_named(&named, push) {
            Cow::Borrowed(_) => named,
            Cow::Owned(query) => Rc::new(named.with_query(query)),
        }
    }
}

impl<'a> Member<'a> {
    fn new(
        name: String,
        schema: Schema,
        source: SourceRef<'a>,
        input: Option<ExplainedInput>,
    ) -> Self {
        let hidden = Vec::new();
        let tables = vec![TableNames { name: name.clone(), schema, is_shown: true, hidden }];
        Self { name, tables, source, input, flat: None }
    }

    fn flat(name: String, query: FlatQuery<'a>) -> Self {
        let FlatQuery { source, schema, rows, input } = query;
        Self { flat: Some(rows), ..Self::new(name, schema, source, Some(input)) }
    }

    pub(super) fn table(name: String, source: &'a dyn Source) -> Self {
        Self::new(name, source.schema().clone(), SourceRef::Borrowed(source), None)
    }

    /// Several tables that have been joined.
    pub(super) fn of_tables(
        name: String,
        tables: Vec<TableNames>,
        source: SourceRef<'a>,
        input: ExplainedInput,
    ) -> Self {
        Self { name, tables, source, input: Some(input), flat: None }
    }

    /// The same with other names for its first columns.
    fn renamed(mut self, columns: &[String]) -> Result<Self> {
        if columns.is_empty() {
            return Ok(self);
        }
        for table in &mut self.tables {
            let schema = std::mem::replace(&mut table.schema, Schema::of_fields(Vec::new()));
            table.schema = called(schema, columns, &self.name)?;
            let schema = without_twins(table.schema.clone());
            self.source = SourceRef::Shared(Arc::new(Renamed::new(schema, self.source.clone())));
        }
        Ok(self)
    }

    /// The same where its rows are read once more.
    pub(super) fn again(&self) -> Self {
        let input = self.input.clone().map(ExplainedInput::again);
        Self { input, ..self.clone() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// The names of members, of which all but the first are joined.
pub(super) fn names(members: &[Member<'_>], joins: &[Join]) -> Result<Names> {
    let shows = |i: usize| {
        let join = i.checked_sub(1).and_then(|i| joins.get(i));
        join.is_none_or(|join| join.kind.shows_right())
    };
    let tables = |(i, member): (usize, &Member<'_>)| -> Vec<TableNames> {
        let tables = member.tables.iter();
        let shown = tables.map(|table| {
            let is_shown = table.is_shown && shows(i);
            TableNames { is_shown, ..table.clone() }
        });
        shown.collect()
    };
    Names::of(members.iter().enumerate().map(tables).collect())
}

/// What `USING` says, as conditions of each join.
pub(super) fn merge(joins: &[Join], names: &mut Names) -> Result<Vec<Vec<Expr>>> {
    let mut all = Vec::with_capacity(joins.len());
    for (i, join) in joins.iter().enumerate() {
        let common = if join.natural { names.common(i + 1)? } else { Vec::new() };
        let fields = join.using.iter().chain(&common).map(|name| names.merge(name, i + 1));
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
    let joins = std::mem::take(&mut query.joins).into_iter().enumerate().zip(using);
    joins.map(|((i, join), on)| on_clause(join.kind, join.on, on, (i + 1, names))).collect()
}

/// How member number `i` is joined.
pub(super) fn on_clause(
    kind: JoinKind,
    condition: Option<Expr>,
    mut on: Vec<Expr>,
    (i, names): (usize, &Names),
) -> Result<OnClause> {
    if let Some(mut condition) = condition {
        let fields = &mut BTreeSet::new();
        names.qualify(&mut condition, Some(i), fields).map_err(|e| e.at("ON"))?;
        super::condition::flatten(condition, &mut on);
    }
    Ok(OnClause { kind, on })
}
