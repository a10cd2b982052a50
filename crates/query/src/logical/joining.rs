//! Joining the tables of a query: where conditions are tested, and the joins themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{DataType, Field, Schema};
use esker_vfs::sabotage::Bug;

use super::Context;
use super::band;
use super::block::Block;
use super::condition::{self, Condition};
use super::equality::Classes;
use super::factor::{self, Binding};
use super::join_order::RELATIONS_MAX;
use super::member::{Member, OnClause};
use super::names::Names;
use super::product::{Joined, StreamOptions};
use crate::bound::{Bound, Node};
use crate::budget::Charge;
use crate::exec::join;
use crate::exec::join::{
    Input, JoinCounts, JoinPlan, PairOrder, Ranks, Rows, SemiJoinSource, Side,
};
use crate::exec::output::Materialised;
use crate::explain::ExplainedJoin;
use crate::model::{Expr, JoinKind};
use crate::options::JoinOrder;
use crate::source::SourceRef;
use crate::{Error, ErrorKind, ExplainedInput, Result};

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
    /// Which rows its rows are made of, where their order is to be put back.
    pub(super) ranks: Option<Ranks>,
    pub(super) charge: Vec<Charge<'o>>,
}

/// What is planned of a join.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planned {
    pub(super) order: RowOrder,
    /// About how many rows come out.
    pub(super) rows: Option<u64>,
}

/// In which order the rows of a join come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RowOrder {
    /// That of the left, then of the right: as it is written.
    #[default]
    Written,
    /// That which is written, put back by the ranks of both sides.
    Restored,
    /// Any; ranks are noted for a join above.
    Noted,
    /// Any.
    Any,
}

/// What is read of joined rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed<'n> {
    /// The fields, by their numbers.
    pub(super) fields: &'n BTreeSet<usize>,
    /// Whether they may come in any order.
    pub(super) in_any_order: bool,
}

/// What a join met, and how long it took.
struct Ran {
    counts: JoinCounts,
    elapsed_ns: u64,
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
    /// Joins members; their rows come in the order that is written. Also returns the conditions
    /// that are left to be tested.
    pub(super) fn join(
        &self,
        members: Vec<Member<'a>>,
        names: &Names,
        clauses: Vec<OnClause>,
        filter: Option<Expr>,
        needed: &BTreeSet<usize>,
    ) -> Result<(SideState<'a, 'o>, Vec<Expr>)> {
        let needed = Needed { fields: needed, in_any_order: false };
        self.join_needed(members, names, clauses, filter, needed)
    }

    /// The same, of which what is read is known.
    pub(super) fn join_needed(
        &self,
        members: Vec<Member<'a>>,
        names: &Names,
        clauses: Vec<OnClause>,
        filter: Option<Expr>,
        Needed { fields, in_any_order }: Needed<'_>,
    ) -> Result<(SideState<'a, 'o>, Vec<Expr>)> {
        let order = match in_any_order && self.options.join_order != JoinOrder::AsWritten {
            true => RowOrder::Any,
            false => RowOrder::Written,
        };
        let mut sorted = self.sort(names, &clauses, filter)?;
        let mut needed = fields.clone();
        sorted.rest.iter().for_each(|c| needed.extend(&c.fields));
        let risky = sorted.at_join.iter().flatten().filter(|c| c.is_fallible);
        risky.for_each(|c| needed.extend(&c.fields));
        let mut sides = Vec::with_capacity(members.len());
        for (i, member) in members.into_iter().enumerate() {
            let pushed = sorted.pushed.get_mut(i).map(std::mem::take).unwrap_or_default();
            sides.push(self.side(member, names.first_of(i), pushed));
        }
        let kind = |i: usize| clauses.get(i - 1).map(|clause| clause.kind).unwrap_or_default();
        let count = sides.len();
        let mut sides = sides.into_iter();
        let mut side = sides.next().ok_or_else(|| Error::invalid("expected FROM"))?;
        let field = |number| names.field(number);
        let mut start = 1;
        while start < count {
            // Inner joins, one after another, are joined in any order; any other by itself.
            let is_inner = |i: usize| kind(i) == JoinKind::Inner;
            let most = RELATIONS_MAX - 1;
            let inner = (start..count).take(most).take_while(|i| is_inner(*i)).count();
            let end = start + inner.max(1);
            let here = sorted.at_join.get_mut(start..end).into_iter().flatten();
            let conditions: Vec<_> = here.flat_map(std::mem::take).collect();
            let mut fields = needed.clone();
            let later = sorted.at_join.iter().skip(end).flatten();
            later.for_each(|c| fields.extend(&c.fields));
            let wanted =
                Wanted { kind: kind(start), fields: &fields, field: &field, renames: true };
            let next: Vec<_> =
                std::iter::once(side).chain(sides.by_ref().take(end - start)).collect();
            let (joined, failed) = match inner {
                0 => self.join_one(next, conditions, &wanted)?,
                _ => Block::new(next, (start, names), conditions, order).join(self, &wanted)?,
            };
            sorted.rest.extend(failed);
            (side, start) = (joined, end);
        }
        Ok((side, sorted.rest.into_iter().map(|condition| condition.expr).collect()))
    }

    /// Joins two sides.
    fn join_one(
        &self,
        sides: Vec<SideState<'a, 'o>>,
        conditions: Vec<Condition>,
        wanted: &Wanted<'_>,
    ) -> Result<Joined<'a, 'o>> {
        let sides = <[_; 2]>::try_from(sides);
        let [left, right] = sides.map_err(|_| Error::invalid("a join of two sides"))?;
        self.join_sides(left, right, conditions, wanted)
    }

    /// A member as a side.
    fn side(&self, member: Member<'a>, first: usize, pushed: Vec<Condition>) -> SideState<'a, 'o> {
        let fields = member.source.get().schema().fields().len();
        let (places, mut filter) = match &member.flat {
            Some(rows) => (rows.places(first, fields), rows.conditions(first)),
            None => ((first..).zip(0..fields).collect(), Vec::new()),
        };
        filter.extend(pushed);
        let name = member.name().to_owned();
        let input = member.input.unwrap_or_else(|| ExplainedInput::table(&name));
        let (source, places) = (member.source, places.into_iter().collect());
        let (ranks, charge) = (None, Vec::new());
        // What was not made ready has no rows yet.
        let is_told = !self.runs && input.kind != "table";
        let rows_estimated = is_told.then_some(input.rows_estimated);
        SideState { source, places, filter, input, rows_estimated, ranks, charge }
    }

    /// Sorts conditions by where they are tested.
    fn sort(&self, names: &Names, clauses: &[OnClause], filter: Option<Expr>) -> Result<Sorted> {
        let (schema, inputs) = (names.schema(), &self.options.inputs);
        let rewrites = self.options.join_order != JoinOrder::AsWritten;
        let binding = |clause| Binding { clause, schema: &schema, names, inputs, rewrites };
        let mut sorted = Sorted::new(names.len());
        let mut any: Vec<Condition> = Vec::new();
        for (i, clause) in (1..).zip(clauses) {
            for expr in &clause.on {
                for condition in factor::factored(expr.clone(), binding("ON"))? {
                    refuse_later(&condition, i, names)?;
                    match clause.kind {
                        JoinKind::Inner => any.push(condition),
                        _ => sorted.place_on(condition, i, binding("ON"))?,
                    }
                }
            }
        }
        let mut conjuncts = Vec::new();
        filter.into_iter().for_each(|filter| condition::flatten(filter, &mut conjuncts));
        for expr in conjuncts {
            any.extend(factor::factored(expr, binding("WHERE"))?);
        }
        let is_inner = |i: usize| {
            let clause = i.checked_sub(1).and_then(|i| clauses.get(i));
            clause.is_none_or(|clause| clause.kind == JoinKind::Inner)
        };
        for condition in any {
            sorted.place(condition, &is_inner, binding("WHERE"))?;
        }
        if rewrites && clauses.iter().any(|clause| clause.kind == JoinKind::Inner) {
            sorted.push_implied_tests(&is_inner, binding("WHERE"))?;
        }
        Ok(sorted)
    }

    /// Joins two sides on conditions. Also returns those conditions that are left to be tested,
    /// because computing a key has failed.
    pub(super) fn join_sides(
        &self,
        left: SideState<'a, 'o>,
        right: SideState<'a, 'o>,
        conditions: Vec<Condition>,
        wanted: &Wanted<'_>,
    ) -> Result<Joined<'a, 'o>> {
        self.join_planned((left, right), conditions, wanted, Planned::default())
    }

    /// The same as it is planned.
    pub(super) fn join_planned(
        &self,
        (mut left, mut right): (SideState<'a, 'o>, SideState<'a, 'o>),
        conditions: Vec<Condition>,
        wanted: &Wanted<'_>,
        planned: Planned,
    ) -> Result<Joined<'a, 'o>> {
        let (mut keys, mut pair): (Vec<_>, Vec<_>) = conditions
            .into_iter()
            .partition(|c| c.as_key(&|field| left.places.contains_key(&field)).is_some());
        let is_product = keys.is_empty() && wanted.kind == JoinKind::Inner;
        let streams_any = is_product && planned.order == RowOrder::Any;
        if streams_any && band::of(&pair, &left, &right).is_none() {
            let has_band = band::of(&pair, &right, &left).is_some();
            if has_band || self.has_few_rights(&left, &right)? {
                std::mem::swap(&mut left, &mut right);
            }
        }
        let stream = StreamOptions { must: false, in_any_order: streams_any };
        let mut failed = Vec::new();
        loop {
            let has_no_key = wanted.kind.shows_right() && keys.is_empty();
            // Pairs that stream have no ranks.
            let may_stream =
                has_no_key && matches!(planned.order, RowOrder::Written | RowOrder::Any);
            let all = [pair.as_slice(), failed.as_slice()].concat();
            // A left join first leaves out the rows of the left that its own tests keep from any.
            if may_stream
                && wanted.kind == JoinKind::Inner
                && let Some(done) = self.product(&mut left, &right, &all, wanted, stream)?
            {
                return Ok(done);
            }
            let is_left = |field: usize| left.places.contains_key(&field);
            condition::move_tests_of_left(&mut keys, &mut pair, &is_left);
            match self.attempt((&mut left, &mut right), &keys, &pair, wanted, planned) {
                Err(e) if e.kind() == ErrorKind::OverBudget && may_stream => {
                    let stream = StreamOptions { must: true, ..stream };
                    let done = self.product(&mut left, &right, &all, wanted, stream)?;
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

    /// Joins two sides, of which what is explained is taken out where that succeeds.
    fn attempt(
        &self,
        (of_left, of_right): (&mut SideState<'a, 'o>, &mut SideState<'a, 'o>),
        keys: &[Condition],
        pair: &[Condition],
        wanted: &Wanted<'_>,
        planned: Planned,
    ) -> Result<SideState<'a, 'o>> {
        let (left, right) = (&*of_left, &*of_right);
        let mut plan = plan(left, right, keys, pair, wanted);
        if matches!(planned.order, RowOrder::Restored | RowOrder::Noted) {
            let is_restored = planned.order == RowOrder::Restored;
            match (&left.ranks, &right.ranks) {
                (Some(left), Some(right)) => {
                    plan.order = Some(PairOrder { left, right, is_restored });
                }
                _ if !self.runs => {}
                _ => {
                    return Err(Error::invalid("rows whose order is to be put back have no ranks"));
                }
            }
        }
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
        let mut input = ExplainedInput::join(&explained, estimates, Vec::new());
        input.rows_estimated = planned.rows.unwrap_or(input.rows_estimated);
        let fields = shown.iter().filter_map(|number| (wanted.field)(*number)).collect();
        let joined = SideState {
            source: left.source.clone(),
            places: match wanted.kind.shows_right() {
                true => shown.into_iter().zip(0..).collect(),
                false => left.places.clone(),
            },
            filter: Vec::new(),
            rows_estimated: Some(input.rows_estimated),
            ranks: None,
            input,
            charge: Vec::new(),
        };
        let schemas = [Schema::of_fields(fields), left.schema(wanted)];
        let (mut joined, ran) = match self.runs {
            true => {
                let (joined, ran) = self.run_join(&plan, side, schemas, joined)?;
                (joined, Some(ran))
            }
            false => {
                let [pairs, kept] = schemas;
                let schema = if wanted.kind.shows_right() { pairs } else { kept };
                let source = SourceRef::Shared(Arc::new(Materialised::of(schema, Vec::new())));
                (SideState { source, ..joined }, None)
            }
        };
        let inputs = [of_left, of_right].into_iter().zip(estimates);
        joined.input.inputs = inputs.map(|(side, rows)| side.take_explained(rows)).collect();
        if let Some(Ran { counts, elapsed_ns }) = ran {
            joined.input.ran(counts, side == Side::Left, elapsed_ns);
        }
        Ok(joined)
    }

    /// Runs a join; the schemas are those of its pairs, and of the left side.
    fn run_join(
        &self,
        plan: &JoinPlan<'_>,
        side: Side,
        [pairs, kept]: [Schema; 2],
        mut joined: SideState<'a, 'o>,
    ) -> Result<(SideState<'a, 'o>, Ran)> {
        let clock = &self.options.clock;
        let (started, spilled) = (clock.monotonic_ns(), self.options.spilled_bytes());
        let (rows, counts) = join::run(plan, side, pairs, self.options)?;
        joined.input.spilled_bytes = Some(self.options.spilled_bytes() - spilled);
        let ran = Ran { counts, elapsed_ns: clock.monotonic_ns() - started };
        joined.rows_estimated = None;
        match rows {
            Rows::Pairs(rows, charges, ranks) => {
                joined.source = SourceRef::Shared(Arc::new(rows));
                joined.charge.extend(charges);
                joined.ranks = ranks;
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
        Ok((joined, ran))
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
        let [a, b] = [(a, left), (b, right)]
            .map(|(key, side)| condition::guarded(key, pair, &|f| side.places.contains_key(&f)));
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
        band: None,
        order: None,
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

impl<'a, 'o> SideState<'a, 'o> {
    /// The same with ranks; what it takes of the budget stays with this one.
    pub(super) fn ranked(&self, ranks: Option<Ranks>) -> Self {
        Self {
            source: self.source.clone(),
            places: self.places.clone(),
            filter: self.filter.clone(),
            input: self.input.clone(),
            rows_estimated: self.rows_estimated,
            ranks,
            charge: Vec::new(),
        }
    }

    /// Its fields, where none is added to them.
    fn schema(&self, wanted: &Wanted<'_>) -> Schema {
        if !wanted.renames {
            return self.source.get().schema().clone();
        }
        let mut fields = self.source.get().schema().fields().to_vec();
        for (number, place) in &self.places {
            let renamed = (wanted.field)(*number).zip(fields.get_mut(*place));
            renamed.into_iter().for_each(|(field, own)| *own = field);
        }
        Schema::of_fields(fields)
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
        self.filtered(self.input.clone(), rows_estimated)
    }

    /// The same, taken out.
    fn take_explained(&mut self, rows_estimated: u64) -> ExplainedInput {
        let input = std::mem::take(&mut self.input);
        self.filtered(input, rows_estimated)
    }

    fn filtered(&self, input: ExplainedInput, rows_estimated: u64) -> ExplainedInput {
        let filter: Vec<String> = self.filter.iter().map(|c| c.expr.to_string()).collect();
        input.filtered(&filter.join(" AND "), rows_estimated)
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

    /// Places what ON of an outer, semi or anti join says.
    fn place_on(&mut self, condition: Condition, i: usize, binding: Binding<'_>) -> Result<()> {
        for (member, implied) in factor::implied(&condition, binding)? {
            if member == i {
                self.push(i, implied);
            }
        }
        // What reads nothing holds of every row of the right, or of none.
        let is_of_right = condition.members.iter().all(|member| *member == i);
        match is_of_right && !condition.is_fallible {
            true => self.push(i, condition),
            false => self.test_at(i, condition),
        }
        Ok(())
    }

    /// Places what all joined rows have to pass.
    fn place(
        &mut self,
        condition: Condition,
        is_inner: &dyn Fn(usize) -> bool,
        binding: Binding<'_>,
    ) -> Result<()> {
        for (member, implied) in factor::implied(&condition, binding)? {
            if is_inner(member) || Bug::ImpliedFilterBelowOuterJoin.is_planted() {
                self.push(member, implied);
            }
        }
        let last = condition.members.last().copied();
        let is_key = |i: usize| {
            let is_left = |field| binding.names.member_of(field) < i;
            condition.as_key(&is_left).is_some()
        };
        match (last, condition.members.len()) {
            (None, _) if !condition.is_fallible => self.push(0, condition),
            (Some(i), 1) if is_inner(i) && !condition.is_fallible => self.push(i, condition),
            (Some(i), 2..) if is_inner(i) && (!condition.is_fallible || is_key(i)) => {
                self.test_at(i, condition);
            }
            _ => self.rest.push(condition),
        }
        Ok(())
    }

    /// Adds what equalities and tests of single tables imply of others.
    fn push_implied_tests(
        &mut self,
        is_inner: &dyn Fn(usize) -> bool,
        binding: Binding<'_>,
    ) -> Result<()> {
        let inner = |all: &[Vec<Condition>]| -> Vec<Condition> {
            let of_inner = all.iter().enumerate().filter(|(i, _)| is_inner(*i));
            of_inner.flat_map(|(_, conditions)| conditions.iter().cloned()).collect()
        };
        let (tests, joins) = (inner(&self.pushed), inner(&self.at_join));
        let is_of_inner = |c: &&Condition| c.members.iter().all(|member| is_inner(*member));
        let classes = Classes::of(joins.iter().chain(&tests).filter(is_of_inner));
        for condition in classes.implied_tests(&tests, binding)? {
            let member = condition.members.first().copied().filter(|member| is_inner(*member));
            member.into_iter().for_each(|member| self.push(member, condition.clone()));
        }
        Ok(())
    }
}

/// Refuses ON that reads a table that is joined later.
fn refuse_later(condition: &Condition, member: usize, names: &Names) -> Result<()> {
    match condition.members.last() {
        Some(last) if *last > member => {
            let (expr, later) = (&condition.expr, names.name_of(*last));
            Err(Error::invalid(format!("ON: {expr}: {later:?} is joined later")))
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
