//! LATERAL: a query in FROM that names fields of what stands before it.
//!
//! ```text
//! a JOIN b ON …, LATERAL (q) AS d
//! └─ rows, each with the number of its values that q names ─┐
//!                        rows of q, each with such a number ┴─► join on the numbers
//! ```

use std::collections::BTreeSet;

use std::sync::Arc;

use esker_format::{Field, Schema};

use super::arrange::Arranged;
use super::condition::{self, Condition};
use super::member::{self, Member};
use super::names::{Names, TableNames, called};
use super::outer::Outer;
use super::reading::Reading;
use super::subquery::Settled;
use super::{Context, Ready};
use crate::exec::output::Materialised;
use crate::model::{Expr, Join, JoinKind, Operator, Relation, SelectItem};
use crate::source::SourceRef;
use crate::{Error, ExplainedInput, Query, Result, Source};

/// What a query reads, with none that depends on another.
#[derive(Default)]
pub(super) struct Opened<'a> {
    pub(super) members: Vec<Member<'a>>,
    pub(super) joins: Vec<Join>,
    /// In which order `*` shows them.
    pub(super) star: Option<Vec<usize>>,
    /// Conditions of some joins, by their numbers, with full names.
    pub(super) numbers: Vec<(usize, Expr)>,
    /// Whether the last of them is of the rows that pass the filter, and not shown by `*`.
    pub(super) is_after_filter: bool,
    /// Whether these have passed it.
    pub(super) is_filtered: bool,
}

/// Rows that have been joined.
pub(super) struct Rows<'a> {
    pub(super) names: Names,
    /// The numbers of the fields that are shown.
    pub(super) fields: Vec<usize>,
    pub(super) source: SourceRef<'a>,
    pub(super) input: ExplainedInput,
    /// What they still have to pass.
    pub(super) filter: Option<Expr>,
}

impl<'a> Opened<'a> {
    /// The names; also what `USING` and LATERAL say, as conditions of each join.
    pub(super) fn names(&mut self) -> Result<(Names, Vec<Vec<Expr>>)> {
        let mut names = member::names(&self.members, &self.joins)?.shown_in(self.star.clone());
        if self.is_after_filter {
            names.hide_last_from_star();
        }
        let mut conditions = member::merge(&self.joins, &mut names)?;
        for (join, number) in std::mem::take(&mut self.numbers) {
            conditions.get_mut(join).into_iter().for_each(|all| all.push(number.clone()));
        }
        Ok((names, conditions))
    }
}

impl<'a> Context<'a, '_> {
    /// Opens what a query reads; `first` in place of the first table. What stands before LATERAL
    /// is joined at once: those rows of it that may pass `filter`.
    pub(super) fn opened(
        &self,
        arranged: Arranged,
        first: Option<&'a dyn Source>,
        reading: &Reading,
        filter: Option<&Expr>,
    ) -> Result<Opened<'a>> {
        let Arranged { relations, joins, star } = arranged;
        let is_lateral = |relation: &Relation| relation.lateral && relation.query.is_some();
        let is_after_filter = relations.last().is_some_and(Relation::is_after_filter);
        let before =
            relations.iter().skip(1).position(is_lateral).map_or(relations.len(), |at| at + 1);
        let (now, later) = relations.split_at_checked(before).unwrap_or((&relations, &[]));
        let members = self.members(now, first, reading)?;
        let mut joins = joins.into_iter();
        let mut opened = Opened {
            members,
            joins: joins.by_ref().take(before.saturating_sub(1)).collect(),
            star,
            ..Opened::default()
        };
        for ((i, relation), join) in (before..).zip(later).zip(joins) {
            if is_lateral(relation) {
                self.open_lateral(&mut opened, (i, relation), join, (reading, filter))?;
            } else {
                opened.members.push(self.member(relation, i, reading)?);
                opened.joins.push(join);
            }
        }
        opened.is_after_filter = is_after_filter;
        Ok(opened)
    }

    /// Opens a query beside what it names fields of.
    fn open_lateral(
        &self,
        opened: &mut Opened<'a>,
        (i, relation): (usize, &Relation),
        join: Join,
        (reading, filter): (&Reading, Option<&Expr>),
    ) -> Result<()> {
        let star = opened.star.take();
        let known = star.map(|star| {
            let count = opened.members.len();
            star.into_iter().filter(|member| *member < count).collect()
        });
        opened.star = known;
        let mut names =
            member::names(&opened.members, &opened.joins)?.shown_in(opened.star.clone());
        member::merge(&opened.joins, &mut names)?;
        let at = |e: Error| e.at(relation.name());
        let mut query = relation.query.as_deref().cloned().unwrap_or_default();
        let outer = self.outer_of(&mut query, &names).map_err(at)?;
        if outer.fields.is_empty() {
            let alone = Relation { lateral: false, ..relation.clone() };
            opened.members.push(self.member(&alone, i, reading)?);
            opened.joins.push(join);
            return Ok(());
        }
        let is_after_filter = relation.is_after_filter();
        let filter = match is_after_filter {
            true => filter.cloned(),
            false => self.of_names(filter, &names)?,
        };
        let before = std::mem::take(opened);
        opened.is_filtered = is_after_filter;
        let rows = self.rows_joined(before, &reading.beside(&[]), filter)?;
        let reads = |field: &str| reading.reads(field);
        let tables = rows.names.tables_shown(&reads);
        let select = rows.fields.iter().filter_map(|number| rows.names.field(*number)).map(shown);
        let select = Query { select: select.collect(), filter: rows.filter, ..Query::default() };
        let found = self.rows_of(&[(select, rows.source)], "LATERAL")?;
        let domain = self.domain(&found, &outer, &rows.names, None)?;
        let answers = match query.as_call() {
            Some(call) => self.called_for_each(call, relation, &outer, &domain),
            None => self.answers(&query, &outer, &domain, None),
        };
        let answers = answers.map_err(at)?;
        let numbered = self.numbered(found, &outer, &domain)?;
        // default: there is a first table
        let name = tables.first().map(|table| table.name.clone()).unwrap_or_default();
        let tables = tables.into_iter().chain([numbers(&outer, outer.relation.clone())]).collect();
        let numbered = SourceRef::Shared(Arc::new(numbered) as Arc<_>);
        opened.members.push(Member::of_tables(name, tables, numbered, rows.input));
        let name = match relation.name() {
            "" => format!("(subquery {})", i + 1),
            name => name.to_owned(),
        };
        let input = match relation.as_call() {
            Some(_) => answers.explained_call(relation, self.runs),
            None => answers.explained(&name, relation.query.as_deref(), self.runs),
        };
        let right = lateral_member(name, relation, &outer, answers.rows, input)?;
        opened.members.push(right);
        opened.joins.push(join);
        let other = outer.number_in(&rows_name(&outer));
        let is_same = outer.number().binary(Operator::Eq, Expr::Field(other));
        opened.numbers.push((0, is_same));
        Ok(())
    }

    /// Those conditions that read only what is known already, and cannot fail.
    fn of_names(&self, filter: Option<&Expr>, names: &Names) -> Result<Option<Expr>> {
        let (mut all, mut known) = (Vec::new(), Vec::new());
        filter.cloned().into_iter().for_each(|filter| condition::flatten(filter, &mut all));
        let schema = names.schema();
        for mut one in all.into_iter().filter(|one| !one.has_subquery()) {
            let written = one.clone();
            let mut read = Vec::new();
            written.collect_names(&mut read);
            let is_known = read.iter().all(|name| matches!(names.find(name, None), Ok(Some(_))));
            if !is_known || names.qualify(&mut one, None, &mut BTreeSet::new()).is_err() {
                continue;
            }
            // A wrong condition is an error where it is tested, not here.
            let bound = Condition::new("WHERE", one, &schema, names, &self.options.inputs);
            known.extend(bound.is_ok_and(|bound| !bound.is_fallible).then_some(written));
        }
        Ok(condition::all(known))
    }

    /// Joins members, of which some fields are read.
    pub(super) fn rows_joined(
        &self,
        mut opened: Opened<'a>,
        reading: &Reading,
        filter: Option<Expr>,
    ) -> Result<Rows<'a>> {
        let (names, using) = opened.names()?;
        let mut query = Query { joins: opened.joins, filter, ..Query::default() };
        let Settled { semis, mut dependents } = self.settle(&mut query, &names)?;
        let clauses = member::on_clauses(&mut query, using, &names)?;
        let reads = |field: &str| reading.reads(field);
        let fields = names.fields_shown(&reads);
        let mut needed: BTreeSet<usize> = fields.iter().copied().collect();
        dependents.qualify(&names, &mut query, &mut needed)?;
        let mut filter = query.filter.take();
        if let Some(filter) = &mut filter {
            names.qualify(filter, None, &mut BTreeSet::new())?;
        }
        let semis = semis.into_iter().map(|one| self.prepare(one, &names, &mut needed));
        let semis = semis.collect::<Result<Vec<_>>>()?;
        let (mut side, rest) = self.join(opened.members, &names, clauses, filter, &needed)?;
        for semi in semis {
            side = self.semi_join(side, semi)?;
        }
        let (source, input, mut filter) = self.finish(side);
        filter.extend(rest);
        let query = Query { filter: condition::all(filter), ..Query::default() };
        let ready: Ready<'a> = (query, source, Some(input));
        let (query, source, input) = self.with_columns(ready, dependents, &names, &needed)?;
        // default: there is one, which was given
        let input = input.unwrap_or_default();
        Ok(Rows { names, fields, source, input, filter: query.filter })
    }

    /// Turns the conditions of left, semi and anti joins that ask subqueries about their rows into
    /// those of a query that is asked for each row before it.
    pub(super) fn with_lateral_on(&self, query: &Query, arranged: &mut Arranged) -> Result<()> {
        let asks = |join: &Join| {
            join.kind != JoinKind::Inner && join.on.as_ref().is_some_and(Expr::has_subquery)
        };
        if !arranged.joins.iter().any(asks) {
            return Ok(());
        }
        let bare = Query { with: Vec::new(), ..query.clone() };
        let names = self.look_names(&bare)?;
        let relations = arranged.relations.iter_mut().skip(1);
        for (join, relation) in arranged.joins.iter_mut().zip(relations) {
            let Some(on) = join.on.as_ref().filter(|_| join.kind != JoinKind::Inner) else {
                continue;
            };
            let is_alone = relation.joins.is_empty() && !relation.name().is_empty();
            if !is_alone || !self.is_dependent(on, &names)? {
                continue;
            }
            let name = relation.name().to_owned();
            let within = Query { filter: join.on.take(), ..Query::from(relation.clone()) };
            *relation = Relation { lateral: true, ..Relation::query(within, name) };
            join.on = Some(Expr::literal(true));
            join.relation = relation.clone();
        }
        Ok(())
    }
}

/// The rows of a query that is asked for others, with the numbers of these.
fn lateral_member<'a>(
    name: String,
    relation: &Relation,
    outer: &Outer,
    rows: Materialised,
    input: ExplainedInput,
) -> Result<Member<'a>> {
    let fields = rows.schema().fields();
    let own = fields.get(..fields.len().saturating_sub(1)).unwrap_or_default();
    let schema = called(Schema::of_fields(own.to_vec()), &relation.columns, &name)?;
    let shown = TableNames { name: name.clone(), schema, is_shown: true, hidden: Vec::new() };
    let tables = vec![shown, numbers(outer, rows_name(outer))];
    let source = SourceRef::Shared(Arc::new(rows) as Arc<_>);
    Ok(Member::of_tables(name, tables, source, input))
}

/// A table that has the numbers of rows alone.
fn numbers(outer: &Outer, name: String) -> TableNames {
    let schema = Schema::of_fields(vec![outer.number_field()]);
    TableNames { name, schema, is_shown: false, hidden: Vec::new() }
}

fn rows_name(outer: &Outer) -> String {
    format!("{} rows", outer.relation)
}

/// A field as it is.
pub(super) fn shown(field: Field) -> SelectItem {
    SelectItem { expr: Expr::Field(field.name), alias: None }
}
