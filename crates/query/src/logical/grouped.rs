//! Joins in parentheses, and full joins: several tables that are one member of the join around.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Field, Schema, Value};

use super::Context;
use super::arrange::arrange;
use super::lateral::{Rows, shown};
use super::member::{self, Member, OnClause};
use super::names::{Names, TableNames};
use super::reading::Reading;
use crate::bind::refuse_deep;
use crate::model::{Expr, Function, Join, JoinKind, Relation, SelectItem};
use crate::source::SourceRef;
use crate::{Error, ExplainedInput, Query, Result, Source};

impl<'a> Context<'a, '_> {
    /// Joins what stands in parentheses, of which some fields are read.
    pub(super) fn grouped(&self, relation: &Relation, reading: &Reading) -> Result<Member<'a>> {
        let mut left = relation.clone();
        match left.joins.pop_if(|last| last.kind == JoinKind::Full) {
            Some(full) => self.nested(|| self.full(&left, full, reading)),
            None => self.nested(|| self.joined(relation, reading)),
        }
    }

    fn joined(&self, relation: &Relation, reading: &Reading) -> Result<Member<'a>> {
        let query = Query::from(relation.clone());
        query.exprs().try_for_each(refuse_deep)?;
        let arranged = arrange(&query);
        let reading = reading.beside(&arranged.joins);
        let opened = self.opened(arranged, None, &reading, None)?;
        let Rows { names, fields, source, input, filter } =
            self.rows_joined(opened, &reading, None)?;
        let reads = |field: &str| reading.reads(field);
        let tables = names.tables_shown(&reads);
        // default: there is a first table
        let name = tables.first().map(|table| table.name.clone()).unwrap_or_default();
        let select = fields.iter().filter_map(|number| names.field(*number)).map(shown);
        let select: Vec<SelectItem> = select.collect();
        if filter.is_none() && has_fields(source.get().schema(), &select) {
            return Ok(Member::of_tables(name, tables, source, input));
        }
        let query = Query { select, filter, ..Query::default() };
        let rows = self.rows_of(&[(query, source)], "JOIN")?;
        let source = SourceRef::Shared(Arc::new(rows));
        Ok(Member::of_tables(name, tables, source, input))
    }

    /// The rows of a left join, and those of the right that have no match, with NULLs for the left.
    fn full(&self, left: &Relation, join: Join, reading: &Reading) -> Result<Member<'a>> {
        let started_ns = self.options.clock.monotonic_ns();
        let asked_ns = self.subqueries_ns();
        let within = reading.beside(std::slice::from_ref(&join));
        let left = self.member(left, 0, &within)?;
        let right = self.member(&join.relation, 1, &within)?;
        let of_two = |members: [&Member<'a>; 2], kind: JoinKind| -> Result<Names> {
            let members = members.map(Clone::clone);
            let join = Join { kind, ..Join::default() };
            member::names(&members, &[join])
        };
        let mut names = of_two([&left, &right], JoinKind::Left)?;
        names.make_full();
        let joins = [Join { kind: JoinKind::Left, ..join.clone() }];
        let using = member::merge(&joins, &mut names)?.pop().unwrap_or_default();
        let merged = merged(&names, &using)?;
        let mut on = join.on;
        if let Some(on) = &mut on {
            self.replace(on, &names)?;
        }
        let OnClause { on, .. } = member::on_clause(JoinKind::Left, on, using, (1, &names))?;
        let mut reversed = of_two([&right, &left], JoinKind::Anti)?;
        reversed.make_full();
        let width = names.first_of(1);
        let reads = |field: &str| reading.reads(field);
        let fields = names.fields_shown(&reads);
        let pairs = vec![left.clone(), right.clone()];
        let needed = |names: &Names| needed(names, &reads, &merged);
        let pairs = self.joined_two(pairs, (&names, needed(&names)), JoinKind::Left, on.clone())?;
        let others = vec![right.again(), left.again()];
        let of_others = (&reversed, needed(&reversed));
        let others = self.joined_two(others, of_others, JoinKind::Anti, on)?;
        let select = |is_pair: bool| -> Vec<SelectItem> {
            let merged = merged.iter().map(|merged| merged.item(is_pair));
            let own = fields.iter().filter_map(|number| {
                let item = shown(names.field(*number)?);
                let is_there = is_pair || *number >= width;
                let expr = if is_there { item.expr } else { Expr::literal(Value::Null) };
                Some(SelectItem { expr, ..item })
            });
            merged.chain(own).collect()
        };
        let mut branches = Vec::with_capacity(2);
        let mut inputs = Vec::with_capacity(2);
        for (is_pair, (source, input, filter)) in [(true, pairs), (false, others)] {
            let filter = super::condition::all(filter);
            branches.push((Query { select: select(is_pair), filter, ..Query::default() }, source));
            inputs.push(input);
        }
        let rows = self.rows_of(&branches, "FULL JOIN")?;
        let elapsed_ns = self.options.clock.monotonic_ns() - started_ns;
        let elapsed_ns = elapsed_ns.saturating_sub(self.subqueries_ns().saturating_sub(asked_ns));
        let count = rows.row_count() as u64;
        let input = ExplainedInput::combined("full join", inputs, count, elapsed_ns);
        let input = if self.runs { input } else { input.not_run() };
        let tables = tables((&names, &reads), &merged, rows.schema())?;
        // default: there is a first table
        let name = tables.last().map(|table| table.name.clone()).unwrap_or_default();
        Ok(Member::of_tables(name, tables, SourceRef::Shared(Arc::new(rows)), input))
    }

    /// Joins two members; also what rows still have to pass.
    fn joined_two(
        &self,
        members: Vec<Member<'a>>,
        (names, needed): (&Names, BTreeSet<usize>),
        kind: JoinKind,
        on: Vec<Expr>,
    ) -> Result<(SourceRef<'a>, ExplainedInput, Vec<Expr>)> {
        let clauses = vec![OnClause { kind, on }];
        let (side, rest) = self.join(members, names, clauses, None, &needed)?;
        let (source, input, mut filter) = self.finish(side);
        filter.extend(rest);
        Ok((source, input, filter))
    }
}

/// A field that both sides of a full join have, shown as one.
struct Merged {
    name: String,
    left: Expr,
    right: Expr,
    /// What the table is called that only such fields are in.
    table: String,
}

impl Merged {
    /// Of a pair the value of the left, or else of the right.
    fn item(&self, is_pair: bool) -> SelectItem {
        let both = [self.left.clone(), self.right.clone()];
        let expr = if is_pair { Expr::call(Function::Coalesce, both) } else { self.right.clone() };
        SelectItem { expr, alias: Some(format!("{}.{}", self.table, self.name)) }
    }
}

/// The fields that are read, and those that are shown as one.
fn needed(names: &Names, reads: &dyn Fn(&str) -> bool, merged: &[Merged]) -> BTreeSet<usize> {
    let mut needed: BTreeSet<usize> = names.fields_shown(reads).into_iter().collect();
    let is_merged = |field: &str| merged.iter().any(|m| m.name.eq_ignore_ascii_case(field));
    needed.extend(names.fields_shown(&is_merged));
    needed
}

/// The fields of USING, of which these are the conditions.
fn merged(names: &Names, using: &[Expr]) -> Result<Vec<Merged>> {
    let table = format!("({} FULL JOIN {})", names.name_of(0), names.name_of(1));
    let field = |(name, on): (String, &Expr)| match on.operands().as_slice() {
        [left, right] => {
            let (left, right) = ((*left).clone(), (*right).clone());
            Ok(Merged { name, left, right, table: table.clone() })
        }
        _ => Err(Error::invalid(format!("USING ({name}): expected an equality, found {on}"))),
    };
    names.merged_last(using.len()).into_iter().zip(using).map(field).collect()
}

/// The tables of a full join, those fields first that both sides have; `rows` has their types.
fn tables(
    (names, reads): (&Names, &dyn Fn(&str) -> bool),
    merged: &[Merged],
    rows: &Schema,
) -> Result<Vec<TableNames>> {
    let mut tables = names.tables_shown(reads);
    for merged in merged {
        if let Some(table) = names.table_with(&merged.name)?.and_then(|at| tables.get_mut(at)) {
            table.hidden.push(merged.name.clone());
        }
    }
    if let Some(first) = merged.first() {
        let fields = rows.fields().iter().zip(merged);
        let fields = fields.map(|(f, merged)| Field { name: merged.name.clone(), ..f.clone() });
        let schema = Schema::of_fields(fields.collect());
        let (name, hidden) = (first.table.clone(), Vec::new());
        tables.insert(0, TableNames { name, schema, is_shown: true, hidden });
    }
    Ok(tables)
}

/// Whether the fields of a source are those that are to be shown.
fn has_fields(schema: &Schema, select: &[SelectItem]) -> bool {
    let names = schema.fields().iter().map(|field| &field.name);
    names.eq(select.iter().filter_map(|item| match &item.expr {
        Expr::Field(name) => Some(name),
        _ => None,
    }))
}
