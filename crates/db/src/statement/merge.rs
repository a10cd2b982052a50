//! `MERGE`: the rows of a table brought in line with those of a source, in one commit.
//!
//! What becomes of which row is found as of one snapshot, before anything is changed:
//!
//! ```text
//! matched                target ⋈ source   row id, key │ clause │ values of all clauses
//! not matched by source  target ▷ source   row id, key │ clause │ values of all clauses
//! not matched            source ▷ target                 clause │ values of all clauses
//! ```
//!
//! The clause is the number of the first whose condition holds. The values of another one are not
//! computed. A condition is asked several times, and the source once a kind, so neither may be left
//! to chance. The statement runs in a transaction, of its own where there is none.

use std::collections::BTreeSet;

use esker_format::{Schema, Value};
use esker_query::QueryResult;
use esker_query::model::{
    Expr, Insert, InsertRows, Join, JoinKind, Merge, MergeAction, MergeClause, MergeWhen,
    OnConflict, Operator, Overriding, Query, Relation,
};

use super::assignment::whole_fields;
use super::beside;
use super::insert::Values;
use super::matched::{Matched, Wanted};
use super::returning::Shown;
use super::{Changed, On, StatementRun, fit_assigned, refuse_aggregates, set_positions};
use crate::{Error, Result, Transaction};

/// The clause of a row to which nothing happens.
const NO_CLAUSE: i64 = -1;

/// A clause that adds rows: its place, and that of its first value; the fields; the values.
type Added<'m> = ((usize, usize), (&'m Vec<String>, Option<Overriding>), &'m Vec<Expr>);

impl StatementRun<'_> {
    pub(super) fn merge(&self, merge: &Merge) -> Result<Changed> {
        match self.on {
            On::Transaction(transaction) => self.merge_within(transaction, merge),
            On::Database(database) => {
                self.in_transaction(database, |run, within| run.merge_within(within, merge))
            }
        }
    }

    /// All of it, or nothing.
    fn merge_within(&self, transaction: &Transaction, merge: &Merge) -> Result<Changed> {
        let before = transaction.savepoint();
        let outcome = self.merge_rows(transaction, merge);
        if outcome.is_err() {
            transaction.rollback_to(before)?;
        }
        transaction.release(before)?;
        outcome
    }

    fn merge_rows(&self, transaction: &Transaction, merge: &Merge) -> Result<Changed> {
        expect_steady(transaction, merge)?;
        let schema = self.schema(&merge.table)?;
        let items = merge.returning.as_deref();
        let of = |when, kind| Changes::of(merge, &schema, when, kind);
        let changes = [
            of(MergeWhen::Matched, JoinKind::Inner)?,
            of(MergeWhen::NotMatchedBySource, JoinKind::Anti)?,
        ];
        let changes: Vec<Changes> = changes.into_iter().flatten().collect();
        // Nothing is changed before all is found.
        let found = changes.iter().map(|one| self.find(transaction, merge, one));
        let found = found.collect::<Result<Vec<Matched>>>()?;
        let added = self.rows_to_add(merge)?;
        let nothing = Shown::new(&schema, items);
        let mut all = Changed { rows: 0, returning: self.returned(&schema, &nothing, items)? };
        let table = transaction.table(&merge.table)?;
        // Of all of them, so that a key is free that a row leaves or goes with.
        let changed = table.change_rows(|rows| {
            let mut change = |(one, matched): (&Changes, &Matched)| {
                let make = |schema: &Schema, row: Vec<Value>, values: &[Value]| {
                    one.make(schema, row, values)
                };
                self.change_found(rows, matched, &one.wanted(merge), &make)
            };
            changes.iter().zip(&found).map(&mut change).collect::<Result<Vec<_>>>()
        })?;
        changed.into_iter().for_each(|part| add(&mut all, part));
        for (insert, rows) in added {
            add(&mut all, self.put_within(transaction, &insert, rows)?);
        }
        Ok(all)
    }

    /// The rows that are changed or removed.
    fn find(&self, transaction: &Transaction, merge: &Merge, changes: &Changes) -> Result<Matched> {
        let wanted = changes.wanted(merge);
        let table = transaction.table(&merge.table)?;
        let snapshot = self.snapshot_for(transaction, &wanted.query(table.schema()))?;
        self.matched(snapshot.table(&merge.table)?, &wanted)
    }

    /// The rows that are added, by clauses.
    fn rows_to_add(&self, merge: &Merge) -> Result<Vec<(Insert, Vec<Values>)>> {
        let clauses = Clauses::of(merge, MergeWhen::NotMatched);
        if clauses.of.is_empty() {
            return Ok(Vec::new());
        }
        let target = Relation { alias: merge.alias.clone(), ..Relation::table(&merge.table) };
        let mut query = Query::from(merge.source.clone());
        query.joins.push(Join::on(JoinKind::Anti, target, merge.on.clone()));
        query.filter = Some(clauses.is_chosen());
        query.select(clauses.choice());
        let mut inserts = Vec::new();
        let mut first = 1;
        for (at, clause) in clauses.of.iter().enumerate() {
            let MergeAction::Insert { fields, overriding, values } = &clause.action else {
                continue;
            };
            for expr in values {
                // A default is no value of the query.
                let expr = match expr {
                    Expr::Default => Expr::literal(Value::Null),
                    expr => clauses.guarded(at, expr.clone()),
                };
                query.select(expr);
            }
            inserts.push(((at, first), (fields, *overriding), values));
            first += values.len();
        }
        let found = self.query(&query).map_err(|e| e.at("WHEN NOT MATCHED"))?.to_rows();
        let of_clause = |((at, first), (fields, overriding), values): Added<'_>| {
            let chosen = found.iter().filter(|row| chosen(row) == Some(at));
            let given = |row: &Vec<Value>| {
                let given = row.iter().skip(first).zip(values);
                given.map(|(value, e)| (*e != Expr::Default).then(|| value.clone())).collect()
            };
            let insert = Insert {
                table: merge.table.clone(),
                fields: fields.clone(),
                overriding,
                rows: InsertRows::Values(Vec::new()),
                on_conflict: OnConflict::Fail,
                conflict_key: Vec::new(),
                conflict_expressions: Vec::new(),
                conflict_filter: None,
                returning: merge.returning.clone(),
            };
            (insert, chosen.map(given).collect())
        };
        Ok(inserts.into_iter().map(of_clause).collect())
    }
}

/// The clauses that are for rows of one kind.
struct Clauses<'m> {
    of: Vec<&'m MergeClause>,
}

impl<'m> Clauses<'m> {
    fn of(merge: &'m Merge, when: MergeWhen) -> Self {
        Self { of: merge.clauses.iter().filter(|clause| clause.when == when).collect() }
    }

    /// The number of the clause that is for a row.
    fn choice(&self) -> Expr {
        let mut operands = Vec::new();
        for (at, clause) in (0i64..).zip(&self.of) {
            let number = if clause.action == MergeAction::Nothing { NO_CLAUSE } else { at };
            // default: without a condition all rows are meant
            operands.push(clause.filter.clone().unwrap_or(Expr::literal(true)));
            operands.push(Expr::literal(number));
        }
        operands.push(Expr::literal(NO_CLAUSE));
        Expr::Apply(Operator::Case, operands)
    }

    /// The condition that something happens to a row.
    fn is_chosen(&self) -> Expr {
        self.choice().binary(Operator::Gt, Expr::literal(NO_CLAUSE))
    }

    /// A value of a clause; NULL, and not computed, where another one is for the row.
    fn guarded(&self, at: usize, expr: Expr) -> Expr {
        match self.of.as_slice() {
            [MergeClause { filter: None, .. }] => expr,
            _ => {
                // default: no statement has as many clauses
                let at = Expr::literal(i64::try_from(at).unwrap_or(i64::MAX));
                let is_it = self.choice().binary(Operator::Eq, at);
                Expr::Apply(Operator::Case, vec![is_it, expr])
            }
        }
    }
}

/// The number of the clause in a row that was found.
fn chosen(found: &[Value]) -> Option<usize> {
    match found.first() {
        Some(Value::Int(at)) => usize::try_from(*at).ok(),
        _ => None,
    }
}

/// What becomes of rows of the table of one kind.
struct Changes {
    joins: Vec<Join>,
    is_chosen: Expr,
    exprs: Vec<Expr>,
    actions: Vec<Action>,
}

/// What becomes of a row.
enum Action {
    Stays,
    Ends,
    /// These fields get the values from a place on.
    Sets(Vec<usize>, usize),
}

impl Changes {
    /// `None` without a clause.
    fn of(merge: &Merge, schema: &Schema, when: MergeWhen, kind: JoinKind) -> Result<Option<Self>> {
        let clauses = Clauses::of(merge, when);
        if clauses.of.is_empty() {
            return Ok(None);
        }
        let joins = vec![Join::on(kind, merge.source.clone(), merge.on.clone())];
        // default: without another name it goes by its own
        let name = merge.alias.as_ref().unwrap_or(&merge.table);
        let field_of = |field: &str| beside::field_of(name, &joins, field);
        let (mut exprs, mut actions) = (vec![clauses.choice()], Vec::new());
        for (at, clause) in clauses.of.iter().enumerate() {
            actions.push(match &clause.action {
                MergeAction::Nothing => Action::Stays,
                MergeAction::Delete => Action::Ends,
                MergeAction::Update(set) => {
                    refuse_aggregates(set)?;
                    let set = whole_fields(schema, set, &field_of)?;
                    let first = exprs.len();
                    exprs.extend(set.iter().map(|(_, e)| clauses.guarded(at, e.clone())));
                    Action::Sets(set_positions(schema, &set)?, first)
                }
                MergeAction::Insert { .. } => {
                    let message = "MERGE: INSERT stands behind WHEN NOT MATCHED alone";
                    return Err(Error::invalid(message));
                }
            });
        }
        Ok(Some(Self { is_chosen: clauses.is_chosen(), joins, exprs, actions }))
    }

    fn wanted<'a>(&'a self, merge: &'a Merge) -> Wanted<'a> {
        Wanted {
            alias: merge.alias.as_ref(),
            joins: &self.joins,
            exprs: self.exprs.clone(),
            is_once: true,
            returning: merge.returning.as_deref(),
            ..Wanted::all(&merge.table, Some(&self.is_chosen))
        }
    }

    /// The row that becomes of one.
    fn make(
        &self,
        schema: &Schema,
        mut row: Vec<Value>,
        values: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let action = chosen(values).and_then(|at| self.actions.get(at));
        match action.ok_or_else(|| Error::corrupt("a row of MERGE that no clause is for"))? {
            Action::Stays => Ok(Some(row)),
            Action::Ends => Ok(None),
            Action::Sets(positions, first) => {
                for (position, value) in positions.iter().zip(values.iter().skip(*first)) {
                    let fitted = fit_assigned(schema, *position, value)?;
                    if let Some(slot) = row.get_mut(*position) {
                        *slot = fitted;
                    }
                }
                Ok(Some(row))
            }
        }
    }
}

/// Adds what a part of a statement has changed.
fn add(all: &mut Changed, part: Changed) {
    all.rows += part.rows;
    if let (Some(QueryResult { batches, .. }), Some(part)) = (&mut all.returning, part.returning) {
        batches.extend(part.batches);
    }
}

/// Refuses what would be answered otherwise when it is asked again.
fn expect_steady(transaction: &Transaction, merge: &Merge) -> Result<()> {
    let conditions = merge.clauses.iter().filter_map(|clause| clause.filter.as_ref());
    let random = std::iter::once(&merge.on).chain(conditions).find(|e| e.is_volatile());
    if let Some(random) = random {
        return Err(Error::invalid(format!(
            "MERGE: {random}: a condition is asked several times, and cannot be left to chance: \
             compute it in a field of the source"
        )));
    }
    let is_of = |when| merge.clauses.iter().any(|clause| clause.when == when);
    let kinds = [MergeWhen::Matched, MergeWhen::NotMatched, MergeWhen::NotMatchedBySource];
    if kinds.into_iter().filter(|when| is_of(*when)).count() < 2 {
        return Ok(());
    }
    let source = Query::from(merge.source.clone());
    let mut names = BTreeSet::new();
    source.collect_tables(&mut names);
    let views = transaction.names()?.read_by(names).views;
    let is_random = views.values().any(|view| view.view.query.is_volatile());
    if is_random || source.is_volatile() {
        return Err(Error::invalid(
            "MERGE: the source is read once for each kind of WHEN, and cannot be left to chance: \
             store it in a table",
        ));
    }
    Ok(())
}
