//! Joining two sides of which no key tells which rows belong together.
//!
//! The pairs are a source ([`Product`]), and the conditions on them are tested by whatever reads
//! it. Those of a left join need not hold of a row that has no match: a field that no table has
//! shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{DataType, Field, FieldId, Schema};

use super::Context;
use super::band;
use super::condition::Condition;
use super::joining::{SideState, Wanted, conjunction, plan, shown};
use crate::bound::{Bound, Node};
use crate::budget::Charge;
use crate::exec::join::{JoinPlan, Product, Rights};
use crate::exec::output::Materialised;
use crate::explain::ExplainedJoin;
use crate::model::{Expr, JoinKind, Operator};
use crate::source::SourceRef;
use crate::{ErrorKind, ExplainedInput, Result};

/// With so many rows on the right, batches of pairs are worth it.
const MANY_ROWS: usize = 128;

/// The number of the field that is true of a row without a match: it is read before the next join.
const UNMATCHED: usize = usize::MAX;

/// How pairs are streamed.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamOptions {
    /// Whether they may not be gathered, however few they are.
    pub(super) must: bool,
    /// Whether they may come in any order.
    pub(super) in_any_order: bool,
}

/// What a join makes of two sides, and the conditions that are left to be tested.
pub(super) type Joined<'a, 'o> = (SideState<'a, 'o>, Vec<Condition>);

/// What the rows of all pairs are.
struct Pairs {
    /// Their fields, those of the left first.
    fields: Vec<Field>,
    /// The places of these, by their numbers.
    places: BTreeMap<usize, usize>,
    /// In a left join: the field, behind all others, that is true of a row without a match.
    unmatched: Option<Field>,
}

impl<'a, 'o> Context<'a, 'o> {
    /// Whether the right has too few rows for batches of pairs, and the left has enough.
    pub(super) fn has_few_rights(
        &self,
        left: &SideState<'a, 'o>,
        right: &SideState<'a, 'o>,
    ) -> Result<bool> {
        let none = BTreeSet::new();
        let rows = |side: &SideState<'a, 'o>| {
            side.estimate(&side.input(Vec::new(), &none, &none, false), self)
        };
        let many = MANY_ROWS as u64;
        Ok(rows(right)? < many && rows(left)? >= many)
    }

    /// All pairs of two sides, as a source; conditions that cannot fail are those of its rows, and
    /// the others are returned. `None` where the right has so few rows that pairs are better
    /// gathered, unless they must be streamed, or nothing of them is read.
    pub(super) fn product(
        &self,
        left: &mut SideState<'a, 'o>,
        right: &SideState<'a, 'o>,
        conditions: &[Condition],
        wanted: &Wanted<'_>,
        stream: StreamOptions,
    ) -> Result<Option<Joined<'a, 'o>>> {
        let mut fields = wanted.fields.clone();
        conditions.iter().for_each(|condition| fields.extend(&condition.fields));
        // Where nothing is read, there is nothing to gather.
        let must = stream.must || fields.is_empty();
        let wanted = Wanted { fields: &fields, ..*wanted };
        let mut plan = plan(left, right, &[], &[], &wanted);
        if stream.in_any_order {
            plan.band = band::of(conditions, left, right);
        }
        let mut input = explained((left, right), &plan, &wanted, self)?;
        let mut pairs = Pairs::new(left, right, &wanted);
        let (mut charge, mut rows_estimated) = (Vec::new(), None);
        let source = if self.runs {
            let found = self.pairs(left, &plan, &pairs, pairs.on(conditions), must, &mut input)?;
            let Some((product, charges)) = found else { return Ok(None) };
            charge = charges;
            SourceRef::Shared(Arc::new(product) as Arc<_>)
        } else {
            let rights = input.inputs.last().map_or(0, |right| right.rows_estimated);
            if rights < MANY_ROWS as u64 && !must {
                return Ok(None);
            }
            rows_estimated = Some(input.rows_estimated);
            SourceRef::Shared(Arc::new(Materialised::of(pairs.schema(), Vec::new())) as Arc<_>)
        };
        // The left is read when pairs are.
        charge.append(&mut left.charge);
        let (risky, filter) = match &pairs.unmatched {
            // All pairs have been tested: it has not failed.
            Some(unmatched) => {
                pairs.places.insert(UNMATCHED, pairs.fields.len());
                let filter = Condition::unless(unmatched, conditions.to_vec());
                (Vec::new(), filter.into_iter().collect())
            }
            None => conditions.iter().cloned().partition(|condition| condition.is_fallible),
        };
        let places = pairs.places;
        Ok(Some((
            SideState { source, places, filter, input, rows_estimated, ranks: None, charge },
            risky,
        )))
    }

    /// The pairs, and what they take of the budget; `None` as [`Context::product`].
    fn pairs(
        &self,
        left: &SideState<'a, 'o>,
        plan: &JoinPlan<'_>,
        pairs: &Pairs,
        on: Option<Bound>,
        must: bool,
        input: &mut ExplainedInput,
    ) -> Result<Option<(Product<'a>, Vec<Charge<'o>>)>> {
        let (clock, options) = (&self.options.clock, self.options);
        let started = clock.monotonic_ns();
        let rights = match Rights::new(plan, options) {
            Err(e) if e.kind() == ErrorKind::OverBudget && !must => return Ok(None),
            rights => rights?,
        };
        if rights.row_count() < MANY_ROWS && !must {
            return Ok(None);
        }
        let schema = Schema::of_fields(pairs.fields.clone());
        let (mut product, charges, counts) =
            Product::new(plan, &left.source, rights, schema, options)?;
        let mut charges = Vec::from(charges);
        if pairs.unmatched.is_some() {
            let on = on.as_ref();
            let found = product.with_unmatched(on, pairs.schema(), options)?;
            product = found.0;
            charges.push(found.1);
        }
        input.ran(counts, false, clock.monotonic_ns() - started);
        Ok(Some((product, charges)))
    }
}

impl Pairs {
    fn new(left: &SideState<'_, '_>, right: &SideState<'_, '_>, wanted: &Wanted<'_>) -> Self {
        let shown = shown([left, right], wanted);
        let fields = shown.iter().filter_map(|number| (wanted.field)(*number)).collect();
        let unmatched = (wanted.kind == JoinKind::Left).then(|| {
            let name = format!("no row of {}", right.input.what);
            Field::new(FieldId(1), name, DataType::Bool, false)
        });
        Self { fields, places: shown.into_iter().zip(0..).collect(), unmatched }
    }

    fn schema(&self) -> Schema {
        Schema::of_fields(self.fields.iter().chain(&self.unmatched).cloned().collect())
    }

    /// Conditions as one on these fields.
    fn on(&self, conditions: &[Condition]) -> Option<Bound> {
        let mut on = conjunction(conditions.iter().map(|c| c.bound.clone()).collect())?;
        on.map_fields(&|field| self.places.get(&field).copied().unwrap_or(usize::MAX));
        Some(on)
    }
}

impl SideState<'_, '_> {
    /// Counts the fields of all its tables from a number on.
    pub(super) fn move_fields(&mut self, start: usize) {
        let moved = |field: usize| if field == UNMATCHED { field } else { field + start };
        let places = std::mem::take(&mut self.places);
        self.places = places.into_iter().map(|(field, at)| (moved(field), at)).collect();
        for condition in &mut self.filter {
            condition.bound.map_fields(&moved);
            condition.fields = condition.fields.iter().map(|field| moved(*field)).collect();
        }
    }
}

/// What EXPLAIN shows of the join.
fn explained<'a, 'o>(
    (left, right): (&SideState<'a, 'o>, &SideState<'a, 'o>),
    plan: &JoinPlan<'_>,
    wanted: &Wanted<'_>,
    context: &Context<'a, 'o>,
) -> Result<ExplainedInput> {
    let kind = wanted.kind;
    let field_name = |field: usize| (wanted.field)(field).map(|field| field.name);
    let estimates = [left.estimate(&plan.left, context)?, right.estimate(&plan.right, context)?];
    let name = |(field, position): (&usize, &usize)| {
        let is_it =
            plan.band.as_ref().is_some_and(|band| band.number.node == Node::Field(*position));
        is_it.then(|| field_name(*field)).flatten()
    };
    let band = right.places.iter().find_map(name);
    let keys = band.map(|name| format!("a band of {name}")).into_iter().collect();
    let join = ExplainedJoin { kind, keys, pair: Vec::new(), builds_left: false };
    let inputs = [left.explained(estimates[0]), right.explained(estimates[1])];
    Ok(ExplainedInput::join(&join, estimates, inputs.into()))
}

impl Condition {
    /// Conditions that need not hold where a field is true; `None` where there are none.
    fn unless(marker: &Field, conditions: Vec<Self>) -> Option<Self> {
        let mut fields = BTreeSet::from([UNMATCHED]);
        let mut members = BTreeSet::new();
        for condition in &conditions {
            fields.extend(&condition.fields);
            members.extend(&condition.members);
        }
        let (exprs, bounds) = conditions.into_iter().map(|c| (c.expr, c.bound)).unzip();
        let (expr, bound) = (super::condition::all(exprs)?, conjunction(bounds)?);
        let is_unmatched = Bound::field(UNMATCHED, DataType::Bool);
        Some(Self {
            expr: Expr::Apply(Operator::Or, vec![Expr::field(marker.name.clone()), expr]),
            bound: Bound::new(Node::Or(vec![is_unmatched, bound]), DataType::Bool),
            fields,
            members,
            is_fallible: false,
        })
    }
}
