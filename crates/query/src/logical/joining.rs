//! Joining the tables of a query, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{DataType, Field, Schema};

use super::Context;
use super::condition::{self, Condition};
use super::member::{Member, OnClause};
use super::names::Names;
use super::product::Joined;
use crate::bound::{Bound, Node};
use crate::budget::Charge;
use crate::exec::join;
use crate::exec::join::{Input, JoinPlan, Rows, SemiJoinSource, Side};
use crate::exec::output::Materialised;
use crate::explain::ExplainedJoin;
use crate::model::{Expr, JoinKind};
use crate::source::SourceRef;
use crate::{ErrorKind, ExplainedInput, Result};

/// What is joined so far, or is to be joined to it.
pub(super) struct SideState<'a, 'o> {
    pub(super) source: SourceRef<'a>,
    /// From the numbers of fields to their positions in the source.
    pub(super) places: BTreeMap<usize, usize>,
    /// What rows still have to pass; none of it may fail.
    pub(super) filter: Vec<Condition>,
    pub(super) input: ExplainedInput,
    /// About how many rows there are, where the source does not tell: in a look.
    pub(super) rows_estimated: Option<u64>,
    pub(super) charge: Vec<Charge<'o>>,
}

/// What comes of a join.
pub(super) struct Wanted<'w> {
    pub(super) kind: JoinKind,
    /// The fields that are read afterwards.
    pub(super) fields: &'w BTreeSet<usize>,
    /// A field by its number.
    pub(super) field: &'w dyn Fn(usize) -> Option<Field>,
    /// Whether the fields of the left get the names that `field` tells.
    pub(super) renames: bool,
}

impl<'a, 'o> Context<'a, 'o> {
    /// Joins members in order. Also returns the conditions that are left to be tested.
    pub(super) fn join(
        &self,
        members: Vec<Member<'a>>,
        names: &Names,
        clauses: Vec<OnClause>,
        filter: Option<Expr>,
        needed: &BTreeSet<usize>,
    ) -> Result<(SideState<'a, 'o>, Vec<Expr>)> {
        let mut sorted = self.sort(names, &clauses, filter)?;
        let mut needed = needed.clone();
        sorted.rest.iter().for_each(|c| needed.extend(&c.fields));
        let risky = sorted.at_join.iter().flatten().filter(|c| c.is_fallible);
        risky.for_each(|c| needed.extend(&c.fields));
        let mut members = members.into_iter().enumerate();
        let mut side = None;
        for (i, member) in members.by_ref() {
            let pushed = sorted.pushed.get_mut(i).map(std::mem::take).unwrap_or_default();
            let next = self.side(member, names.first_of(i), pushed);
            let Some(left) = side.take() else {
                side = Some(next);
                continue;
            };
            let conditions = sorted.at_join.get_mut(i).map(std::mem::take).unwrap_or_default();
            let mut fields = needed.clone();
            let later = sorted.at_join.iter().skip(i + 1).flatten();
            later.for_each(|c| fields.extend(&c.fields));
            let kind = clauses.get(i - 1).map(|clause| clause.kind).unwrap_or_default();
            let field = |number| names.field(number);
            let wanted = Wanted { kind, fields: &fields, field: &field, renames: true };
            let (joined, failed) = self.join_sides(left, next, conditions, &wanted)?;
            sorted.rest.extend(failed);
            side = Some(joined);
        }
        let side = side.ok_or_else(|| crate::Error::invalid("expected FROM"))?;
        Ok((side, sorted.rest.into_iter().map(|condition| condition.expr).collect()))
    }

    /// A member as a side.
    fn side(&self, member: Member<'a>, first: usize, pushed: Vec<Condition>) -> SideState<'a, 'o> {
        let fields = member.source.get().schema().fields().len();
        let places = (0..fields).map(|position| (first + position, position)).collect();
        let name = member.name().to_owned();
        let input = member.input.unwrap_or_else(|| ExplainedInput::table(&name));
        let (source, rows_estimated, charge) = (member.source, None, Vec::new());
        SideState { source, places, filter: pushed, input, rows_estimated, charge }
    }

    /// Sorts conditions by where they are tested.
    fn sort(&self, names: &Names, clauses: &[OnClause], filter: Option<Expr>) -> Result<Sorted> {
        let (schema, inputs) = (names.schema(), &self.options.inputs);
        let mut sorted = Sorted::new(names.len());
        let kind = |i: usize| i.checked_sub(1).and_then(|i| clauses.get(i)).map(|c| c.kind);
        let mut any: Vec<Condition> = Vec::new();
        for (i, clause) in (1..).zip(clauses) {
            for expr in &clause.on {
                let condition = Condition::new("ON", expr.clone(), &schema, names, inputs)?;
                refuse_later(&condition, i, names)?;
                // What reads nothing holds of every row of the right, or of none.
                let is_of_right = condition.members.iter().all(|member| *member == i);
                match clause.kind {
                    JoinKind::Inner => any.push(condition),
                    _ if is_of_right && !condition.is_fallible => sorted.push(i, condition),
                    _ => sorted.test_at(i, condition),
                }
            }
        }
        let mut conjuncts = Vec::new();
        filter.into_iter().for_each(|filter| condition::flatten(filter, &mut conjuncts));
        for expr in conjuncts {
            any.push(Condition::new("WHERE", expr, &schema, names, inputs)?);
        }
        for condition in any {
            let last = condition.members.last().copied();
            let is_inner = |i: usize| matches!(kind(i), None | Some(JoinKind::Inner));
            let is_key = |i: usize| {
                let is_left = |field| names.member_of(field) < i;
                condition.as_key(&is_left).is_some()
            };
            match (last, condition.members.len()) {
                (None, _) if !condition.is_fallible => sorted.push(0, condition),
                (Some(i), 1) if is_inner(i) && !condition.is_fallible => sorted.push(i, condition),
                (Some(i), 2..) if is_inner(i) && (!condition.is_fallible || is_key(i)) => {
                    sorted.test_at(i, condition);
                }
                _ => sorted.rest.push(condition),
            }
        }
        Ok(sorted)
    }

    /// Joins two sides on conditions. Also returns those conditions that are left to be tested,
    /// because computing a key has failed.
    pub(super) fn join_sides(
        &self,
        mut left: SideState<'a, 'o>,
        right: SideState<'a, 'o>,
        conditions: Vec<Condition>,
        wanted: &Wanted<'_>,
    ) -> Result<Joined<'a, 'o>> {
        let (mut keys, mut pair): (Vec<_>, Vec<_>) = conditions
            .into_iter()
            .partition(|c| c.as_key(&|field| left.places.contains_key(&field)).is_some());
        let mut failed = Vec::new();
        loop {
            let has_no_key = wanted.kind.shows_right() && keys.is_empty();
            let all = [pair.as_slice(), failed.as_slice()].concat();
            // A left join first leaves out the rows of the left that its own tests keep from any.
            if has_no_key
                && wanted.kind == JoinKind::Inner
                && let Some(done) = self.product(&mut left, &right, &all, wanted, false)?
            {
                return Ok(done);
            }
            let is_left = |field: usize| left.places.contains_key(&field);
            condition::move_tests_of_left(&mut keys, &mut pair, &is_left);
            match self.attempt(&left, &right, &keys, &pair, wanted) {
                Err(e) if e.kind() == ErrorKind::OverBudget && has_no_key => {
                    let done = self.product(&mut left, &right, &all, wanted, true)?;
                    return done.ok_or(e);
                }
                Err(e)
                    if e.kind() == ErrorKind::OutOfRange && keys.iter().any(|c| c.is_fallible) =>
                {
                    let (risky, safe) = keys.into_iter().partition(|c| c.is_fallible);
                    keys = safe;
                    match wanted.kind {
                        JoinKind::Inner => failed = risky,
                        _ => pair.extend(risky),
                    }
                }
                done => {
                    let mut joined = done?;
                    // Rows that are only fewer are still held where they were.
                    if !wanted.kind.shows_right() {
                        joined.charge = left.charge;
                    }
                    return Ok((joined, failed));
                }
            }
        }
    }

    fn attempt(
        &self,
        left: &SideState<'a, 'o>,
        right: &SideState<'a, 'o>,
        keys: &[Condition],
        pair: &[Condition],
        wanted: &Wanted<'_>,
    ) -> Result<SideState<'a, 'o>> {
        let plan = plan(left, right, keys, pair, wanted);
        let estimates = [left.estimate(&plan.left, self)?, right.estimate(&plan.right, self)?];
        let side = Side::to_build(estimates[0], estimates[1]);
        let shown = shown([left, right], wanted);
        let texts = |conditions: &[Condition]| -> Vec<String> {
            conditions.iter().map(|condition| condition.expr.to_string()).collect()
        };
        let explained = ExplainedJoin {
            kind: wanted.kind,
            keys: texts(keys),
            pair: texts(pair),
            builds_left: side == Side::Left,
        };
        let inputs = [left.explained(estimates[0]), right.explained(estimates[1])];
        let input = ExplainedInput::join(&explained, estimates, inputs);
        let fields = shown.iter().filter_map(|number| (wanted.field)(*number)).collect();
        let joined = SideState {
            source: left.source.clone(),
            places: match wanted.kind.shows_right() {
                true => shown.into_iter().zip(0..).collect(),
                false => left.places.clone(),
            },
            filter: Vec::new(),
            rows_estimated: Some(input.rows_estimated),
            input,
            charge: Vec::new(),
        };
        let schemas = [Schema::of_fields(fields), left.schema(wanted)];
        match self.runs {
            true => self.run_join(&plan, side, schemas, joined),
            false => {
                let [pairs, kept] = schemas;
                let schema = if wanted.kind.shows_right() { pairs } else { kept };
                let source = SourceRef::Shared(Arc::new(Materialised::of(schema, Vec::new())));
                Ok(SideState { source, ..joined })
            }
        }
    }

    /// Runs a join; the schemas are those of its pairs, and of the left side.
    fn run_join(
        &self,
        plan: &JoinPlan<'_>,
        side: Side,
        [pairs, kept]: [Schema; 2],
        mut joined: SideState<'a, 'o>,
    ) -> Result<SideState<'a, 'o>> {
        let clock = &self.options.clock;
        let started = clock.monotonic_ns();
        let (rows, counts) = join::run(plan, side, pairs, self.options)?;
        joined.input.ran(&counts, side == Side::Left, clock.monotonic_ns() - started);
        joined.rows_estimated = None;
        match rows {
            Rows::Pairs(rows, charge) => {
                joined.source = SourceRef::Shared(Arc::new(rows));
                joined.charge.push(charge);
            }
            Rows::SemiJoinSource(locations) => {
                let mut charge = self.options.memory().charge();
                charge.set(locations.len() * 4)?;
                joined.source = SourceRef::Shared(Arc::new(SemiJoinSource::new(
                    &joined.source,
                    kept,
                    &locations,
                )));
                charge.keep();
            }
        }
        Ok(joined)
    }

    /// What is joined, for the rest of the query, and what its rows still have to pass.
    pub(super) fn finish(
        &self,
        side: SideState<'a, 'o>,
    ) -> (SourceRef<'a>, ExplainedInput, Vec<Expr>) {
        side.charge.into_iter().for_each(Charge::keep);
        let filter = side.filter.into_iter().map(|condition| condition.expr);
        (side.source, side.input, filter.collect())
    }
}

/// A join of two sides.
pub(super) fn plan<'s>(
    left: &'s SideState<'_, '_>,
    right: &'s SideState<'_, '_>,
    keys: &[Condition],
    pair: &[Condition],
    wanted: &Wanted<'_>,
) -> JoinPlan<'s> {
    let is_left = |field: usize| left.places.contains_key(&field);
    let mut tested: Vec<Bound> = pair.iter().map(|c| c.bound.clone()).collect();
    let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
    for key in keys {
        let key_of = key.as_key(&is_left).or_else(|| key.as_test_of_left(&is_left));
        let Some((a, b)) = key_of else { continue };
        if !join::is_exact(a.data_type(), b.data_type()) {
            tested.push(key.bound.clone());
        }
        left_keys.push(a);
        right_keys.push(b);
    }
    let mut read = BTreeSet::new();
    tested.iter().for_each(|bound| bound.collect_fields(&mut read));
    // In a pair come the fields of the left that are read, then those of the right.
    let numbers: Vec<usize> = [&left.places, &right.places]
        .into_iter()
        .flat_map(|places| read.iter().filter(|field| places.contains_key(field)).copied())
        .collect();
    let place = |field: usize| numbers.iter().position(|n| *n == field).unwrap_or(usize::MAX);
    let filter = conjunction(tested).map(|mut bound| {
        bound.map_fields(&place);
        bound
    });
    let shows_right = wanted.kind.shows_right();
    JoinPlan {
        kind: wanted.kind,
        left: left.input(left_keys, wanted.fields, &read, shows_right),
        right: right.input(right_keys, wanted.fields, &read, shows_right),
        pair: filter,
    }
}

/// The numbers of the fields that pairs have: those of the left, then those of the right.
pub(super) fn shown(sides: [&SideState<'_, '_>; 2], wanted: &Wanted<'_>) -> Vec<usize> {
    if !wanted.kind.shows_right() {
        return Vec::new();
    }
    let of = |side: &SideState<'_, '_>| -> Vec<usize> {
        wanted.fields.iter().filter(|f| side.places.contains_key(f)).copied().collect()
    };
    sides.into_iter().flat_map(of).collect()
}

impl<'o> SideState<'_, 'o> {
    /// Its fields, where none is added to them.
    fn schema(&self, wanted: &Wanted<'_>) -> Schema {
        if !wanted.renames {
            return self.source.get().schema().clone();
        }
        let mut places: Vec<_> =
            self.places.iter().map(|(number, place)| (*place, *number)).collect();
        places.sort_unstable();
        let fields = places.into_iter().filter_map(|(_, number)| (wanted.field)(number));
        Schema::of_fields(fields.collect())
    }

    /// The side as an input of a join.
    pub(super) fn input(
        &self,
        keys: Vec<Bound>,
        wanted: &BTreeSet<usize>,
        read: &BTreeSet<usize>,
        is_shown: bool,
    ) -> Input<'_> {
        let place = |field: usize| self.places.get(&field).copied().unwrap_or(usize::MAX);
        let placed = |mut bound: Bound| {
            bound.map_fields(&place);
            bound
        };
        let positions = |fields: &BTreeSet<usize>| -> Vec<usize> {
            fields.iter().filter_map(|field| self.places.get(field)).copied().collect()
        };
        let filter = conjunction(self.filter.iter().map(|c| c.bound.clone()).collect());
        Input {
            source: self.source.get(),
            filter: filter.map(placed),
            keys: keys.into_iter().map(placed).collect(),
            columns: if is_shown { positions(wanted) } else { Vec::new() },
            pair_columns: positions(read),
        }
    }

    pub(super) fn estimate(&self, input: &Input<'_>, context: &Context<'_, 'o>) -> Result<u64> {
        match self.rows_estimated {
            Some(rows) => Ok(rows),
            None => input.estimate(context.options),
        }
    }

    pub(super) fn explained(&self, rows_estimated: u64) -> ExplainedInput {
        let filter: Vec<String> = self.filter.iter().map(|c| c.expr.to_string()).collect();
        self.input.clone().filtered(&filter.join(" AND "), rows_estimated)
    }
}

/// Conditions by where they are tested.
struct Sorted {
    /// While each table is read.
    pushed: Vec<Vec<Condition>>,
    /// When each table is joined to those before it.
    at_join: Vec<Vec<Condition>>,
    /// On the joined rows.
    rest: Vec<Condition>,
}

impl Sorted {
    fn new(members: usize) -> Self {
        let none = || vec![Vec::new(); members];
        Self { pushed: none(), at_join: none(), rest: Vec::new() }
    }

    fn push(&mut self, member: usize, condition: Condition) {
        self.pushed.get_mut(member).into_iter().for_each(|all| all.push(condition.clone()));
    }

    fn test_at(&mut self, member: usize, condition: Condition) {
        self.at_join.get_mut(member).into_iter().for_each(|all| all.push(condition.clone()));
    }
}

/// Refuses ON that reads a table that is joined later.
fn refuse_later(condition: &Condition, member: usize, names: &Names) -> Result<()> {
    match condition.members.last() {
        Some(last) if *last > member => {
            let (expr, later) = (&condition.expr, names.name_of(*last));
            Err(crate::Error::invalid(format!("ON: {expr}: {later:?} is joined later")))
        }
        _ => Ok(()),
    }
}

/// Several conditions as one.
pub(super) fn conjunction(mut all: Vec<Bound>) -> Option<Bound> {
    match all.len() {
        0 | 1 => all.pop(),
        _ => Some(Bound::new(Node::And(all), DataType::Bool)),
    }
}
