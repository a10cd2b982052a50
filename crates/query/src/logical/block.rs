//! Inner joins, one after another, which may run in any order.
//!
//! ```text
//! a JOIN b JOIN c LEFT JOIN d JOIN e JOIN f       blocks: {a, b, c}, then {a b c d, e, f}
//! ```
//!
//! The conditions become edges of a graph, the order is chosen ([`super::join_order`]), and the
//! joins run. A condition is tested by the first join that has all it reads; of fields that are all
//! equal, one pair is. Rows come out in the order that joining as it is written gives: where the
//! joins run in another, it is put back by the last of them, unless nothing depends on it. What
//! then does not fit in memory is joined as it is written.

use std::collections::{BTreeMap, BTreeSet};

use esker_format::Schema;

use super::Context;
use super::condition::Condition;
use super::equality;
use super::equality::Classes;
use super::factor::Binding;
use super::join_order::{Class, Edge, JoinGraph, JoinTree, RelationEstimate, Set, bit};
use super::joining::{Planned, RowOrder, SideState, Wanted};
use super::names::Names;
use super::product::Joined;
use crate::access_path::cardinality;
use crate::access_path::cardinality::Distinct;
use crate::bound::{Bound, Comparison, Node};
use crate::exec::join::Ranks;
use crate::model::JoinKind;
use crate::options::JoinOrder;
use crate::{Error, ErrorKind, IndexUse, Result};

/// A plan that puts the order back has to take so much less time than the one that is written.
const WORTH_IT: f64 = 0.9;

/// What a row costs whose order is put back.
const ORDER_COST: f64 = 1.5;

/// Relations and the conditions on them.
pub(super) struct Block<'a, 'o, 'n> {
    /// Taken out when they are joined.
    sides: Vec<Option<SideState<'a, 'o>>>,
    /// The number of the first member that is a relation of its own; those before are the first.
    start: usize,
    names: &'n Names,
    /// All fields by their names.
    schema: Schema,
    /// The edges of the graph, in order.
    conditions: Vec<Condition>,
    graph: JoinGraph,
    classes: Vec<EqualFields>,
    /// Those that no join has tested.
    rest: Vec<Condition>,
    /// In which order rows are wanted.
    order: RowOrder,
}

/// Fields that are all equal, each of another relation.
struct EqualFields {
    fields: BTreeSet<usize>,
    /// The equalities of two of them that are written.
    written: Vec<Condition>,
}

impl<'a, 'o, 'n> Block<'a, 'o, 'n> {
    pub(super) fn new(
        sides: Vec<SideState<'a, 'o>>,
        (start, names): (usize, &'n Names),
        conditions: Vec<Condition>,
        order: RowOrder,
    ) -> Self {
        let sides = sides.into_iter().map(Some).collect();
        let (graph, classes, rest) = (JoinGraph::default(), Vec::new(), Vec::new());
        Self {
            sides,
            start,
            names,
            schema: names.schema(),
            conditions,
            graph,
            classes,
            rest,
            order,
        }
    }

    /// Joins them. Also returns the conditions that are left to be tested.
    pub(super) fn join(
        mut self,
        context: &Context<'a, 'o>,
        wanted: &Wanted<'_>,
    ) -> Result<Joined<'a, 'o>> {
        if self.sides.len() == 2 && context.told.is_none() {
            let [left, right] = [0, 1].map(|side| self.taken(side));
            let planned = Planned { order: self.order, rows: None };
            return context.join_planned((left?, right?), self.conditions, wanted, planned);
        }
        if context.options.join_order != JoinOrder::AsWritten {
            self.find_classes();
        }
        self.estimate(context)?;
        let tree = self.chosen(context.options.join_order);
        let order = match self.order {
            RowOrder::Any => RowOrder::Any,
            _ if tree.is_as_written() => RowOrder::Written,
            _ => RowOrder::Restored,
        };
        let mut joined = self.run(&tree, context, wanted, order);
        if !tree.is_as_written() && matches!(&joined, Err(e) if e.kind() == ErrorKind::OverBudget) {
            self.rest.clear();
            joined = self.run(&self.graph.as_written(), context, wanted, RowOrder::Written);
        }
        let mut joined = joined?;
        if order == RowOrder::Any {
            // Pairs that stream read them later.
            let left = self.sides.iter_mut().flatten();
            left.for_each(|side| joined.charge.append(&mut side.charge));
        }
        Ok((joined, self.rest))
    }

    fn taken(&mut self, side: usize) -> Result<SideState<'a, 'o>> {
        let side = self.sides.get_mut(side).and_then(Option::take);
        side.ok_or_else(|| Error::invalid("a relation is joined twice"))
    }

    fn relation_of(&self, field: usize) -> usize {
        let member = self.names.member_of(field);
        if member < self.start { 0 } else { member - self.start + 1 }
    }

    fn relations_of(&self, fields: &BTreeSet<usize>) -> Set {
        fields.iter().fold(0, |set, field| set | bit(self.relation_of(*field)))
    }

    /// Finds the fields that are all equal. A class with two fields of one relation is left out:
    /// these may differ until all its conditions are tested.
    fn find_classes(&mut self) {
        let classes = Classes::of(self.conditions.iter());
        for fields in classes.iter() {
            let relations: BTreeSet<_> = fields.iter().map(|f| self.relation_of(*f)).collect();
            if relations.len() == fields.len() {
                let is_of_class = |condition: &mut Condition| {
                    equality::fields_of(condition).is_some_and(|both| fields.contains(&both[0]))
                };
                let written = self.conditions.extract_if(.., is_of_class).collect();
                self.classes.push(EqualFields { fields: fields.clone(), written });
            }
        }
    }

    /// Makes the graph.
    fn estimate(&mut self, context: &Context<'a, 'o>) -> Result<()> {
        let mut relations = Vec::with_capacity(self.sides.len());
        for side in self.sides.iter().flatten() {
            let none = BTreeSet::new();
            let input = side.input(Vec::new(), &none, &none, false);
            let passing = side.estimate(&input, context)? as f64;
            let rows = match side.rows_estimated {
                Some(rows) => rows as f64,
                None => cardinality::row_count(side.source.get()),
            };
            relations.push(RelationEstimate { rows: rows.max(passing), passing });
        }
        let mut values = Values { block: self, relations: &relations, known: BTreeMap::new() };
        let mut classes = Vec::with_capacity(self.classes.len());
        let indexes = context.options.indexes;
        for EqualFields { fields, .. } in &self.classes {
            let is_sought = |field: &&usize| self.is_sought(**field, indexes);
            let sought = fields.iter().filter(is_sought).copied().collect();
            classes.push(Class {
                relations: self.relations_of(fields),
                values: values.of_class(fields)?,
                sought: self.relations_of(&sought),
            });
        }
        let mut edges = Vec::with_capacity(self.conditions.len());
        for condition in &self.conditions {
            let share = values.share(&condition.bound)?;
            let (sides, sought) = self.sides_of(&condition.bound, indexes);
            let relations = self.relations_of(&condition.fields);
            edges.push(Edge { relations, sides, share, sought });
        }
        self.graph = JoinGraph { relations, edges, classes };
        Ok(())
    }

    /// The relations of both sides of an equality, and those with an index on their side.
    fn sides_of(&self, bound: &Bound, indexes: IndexUse) -> (Option<(Set, Set)>, Set) {
        let Node::Compare(Comparison::Eq, a, b) = &bound.node else { return (None, 0) };
        let [(a_set, a_sought), (b_set, b_sought)] = [a, b].map(|side| {
            let mut fields = BTreeSet::new();
            side.collect_fields(&mut fields);
            let set = self.relations_of(&fields);
            let is_sought =
                matches!(side.node, Node::Field(field) if self.is_sought(field, indexes));
            (set, if is_sought { set } else { 0 })
        });
        let is_key = a_set != 0 && b_set != 0 && a_set & b_set == 0;
        (is_key.then_some((a_set, b_set)), a_sought | b_sought)
    }

    fn side_of(&self, field: usize) -> Option<(&SideState<'a, 'o>, usize)> {
        let side = self.sides.get(self.relation_of(field))?.as_ref()?;
        Some((side, *side.places.get(&field)?))
    }

    /// Whether an index, or the key, finds rows by a field.
    fn is_sought(&self, field: usize, indexes: IndexUse) -> bool {
        let Some((side, position)) = self.side_of(field) else { return false };
        if indexes == IndexUse::Never {
            return false;
        }
        let source = side.source.get();
        let leads = |part: usize| {
            let mut runs = source.part(part).whole_runs();
            runs.any(|run| run.fields().first().is_some_and(|(field, _)| *field == position))
        };
        source.schema().key_positions() == [position] || (0..source.part_count()).any(leads)
    }

    fn chosen(&self, order: JoinOrder) -> JoinTree {
        let written = self.graph.as_written();
        match order {
            _ if self.sides.len() <= 2 && !matches!(order, JoinOrder::Random(_)) => written,
            JoinOrder::AsWritten => written,
            JoinOrder::Random(seed) => self.graph.random(seed),
            JoinOrder::Cheapest => {
                let best = self.graph.cheapest();
                let is_moved = self.order != RowOrder::Any && !best.is_as_written();
                let (restoring, most) = match is_moved {
                    true => (self.graph.rows(best.set()) * ORDER_COST, WORTH_IT),
                    false => (0.0, 1.0),
                };
                let [cost, known] = [&best, &written].map(|tree| self.graph.cost_of(tree));
                let early = |tree| self.graph.early_products(tree, best.set());
                let is_better = early(&written) > early(&best) || cost + restoring < known * most;
                if is_better { best } else { written }
            }
        }
    }

    /// Runs the joins of a tree, whose rows come in some order.
    fn run(
        &mut self,
        tree: &JoinTree,
        context: &Context<'a, 'o>,
        wanted: &Wanted<'_>,
        order: RowOrder,
    ) -> Result<SideState<'a, 'o>> {
        let (left, right, rows) = match tree {
            JoinTree::Relation(number) if order == RowOrder::Written => return self.taken(*number),
            JoinTree::Relation(number) => {
                let side = self.sides.get(*number).and_then(Option::as_ref);
                let ranks = (order != RowOrder::Any).then_some(Ranks::Table(*number));
                let side = side.map(|side| side.ranked(ranks));
                return side.ok_or_else(|| Error::invalid("a relation is joined twice"));
            }
            JoinTree::Join(left, right, rows) => (left, right, rows),
        };
        let below = if order == RowOrder::Restored { RowOrder::Noted } else { order };
        let sets = (left.set(), right.set());
        let left = self.run(left, context, wanted, below)?;
        let right = self.run(right, context, wanted, below)?;
        let here = self.tested(sets, (&left, &right), context)?;
        let fields = self.read_later(sets.0 | sets.1, (&left, &right), wanted.fields);
        let wanted = Wanted { kind: JoinKind::Inner, fields: &fields, ..*wanted };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let planned = Planned { order, rows: Some(rows.ceil() as u64) };
        let (joined, failed) = context.join_planned((left, right), here, &wanted, planned)?;
        self.rest.extend(failed);
        Ok(joined)
    }

    /// The conditions that a join of two sets tests.
    fn tested(
        &mut self,
        (left_set, right_set): (Set, Set),
        (left, right): (&SideState<'a, 'o>, &SideState<'a, 'o>),
        context: &Context<'a, 'o>,
    ) -> Result<Vec<Condition>> {
        let mut here = Vec::new();
        for (edge, condition) in self.graph.edges.iter().zip(&self.conditions) {
            if !edge.is_tested(left_set, right_set) {
                continue;
            }
            match condition.is_fallible && !edge.is_key(left_set, right_set) {
                true => self.rest.push(condition.clone()),
                false => here.push(condition.clone()),
            }
        }
        let (schema, names, inputs) = (&self.schema, self.names, &context.options.inputs);
        let binding = Binding { clause: "WHERE", schema, names, inputs, rewrites: true };
        for (class, fields) in self.graph.classes.iter().zip(&self.classes) {
            if class.is_key(left_set, right_set) {
                let is_left = |field: &usize| left.places.contains_key(field);
                let is_right = |field: &usize| right.places.contains_key(field);
                here.push(fields.equality(&is_left, &is_right, binding)?);
            }
        }
        Ok(here)
    }

    /// The fields of a set of relations that are read behind it: of each class one, of those that
    /// conditions name if there is one.
    fn read_later(
        &self,
        set: Set,
        (left, right): (&SideState<'a, 'o>, &SideState<'a, 'o>),
        wanted: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let mut fields = wanted.clone();
        for (edge, condition) in self.graph.edges.iter().zip(&self.conditions) {
            if edge.relations & !set != 0 {
                fields.extend(&condition.fields);
            }
        }
        let is_there =
            |field: &usize| left.places.contains_key(field) || right.places.contains_key(field);
        for (class, equal) in self.graph.classes.iter().zip(&self.classes) {
            if class.relations & !set == 0 {
                continue;
            }
            let leads_out = |c: &&Condition| self.relations_of(&c.fields) & !set != 0;
            let is_named = |field: &&usize| {
                equal.written.iter().filter(leads_out).any(|c| c.fields.contains(field))
            };
            let mut here = equal.fields.iter().filter(|field| is_there(field));
            let first = here.clone().next();
            fields.extend(here.find(is_named).or(first));
        }
        fields
    }
}

impl EqualFields {
    /// The equality of a field of the left and one of the right: one that is written, if there is.
    ///
    /// # Errors
    /// As [`Condition::new`], and when a side has no field.
    fn equality(
        &self,
        is_left: &dyn Fn(&usize) -> bool,
        is_right: &dyn Fn(&usize) -> bool,
        binding: Binding<'_>,
    ) -> Result<Condition> {
        let is_across =
            |c: &&Condition| c.fields.iter().any(is_left) && c.fields.iter().any(is_right);
        if let Some(written) = self.written.iter().find(is_across) {
            return Ok(written.clone());
        }
        let find = |is_there: &dyn Fn(&usize) -> bool| self.fields.iter().find(|f| is_there(f));
        match (find(is_left), find(is_right)) {
            (Some(left), Some(right)) => equality::of_fields([*left, *right], binding),
            _ => Err(Error::invalid("two sides that have no equal fields")),
        }
    }
}

/// How many values fields have, each looked up once.
struct Values<'v, 'a, 'o, 'n> {
    block: &'v Block<'a, 'o, 'n>,
    relations: &'v [RelationEstimate],
    known: BTreeMap<usize, Distinct>,
}

impl Values<'_, '_, '_, '_> {
    fn of(&mut self, field: usize) -> Result<Distinct> {
        if let Some(known) = self.known.get(&field) {
            return Ok(*known);
        }
        let found = match self.block.side_of(field) {
            Some((side, position)) => cardinality::distinct(side.source.get(), position)?,
            None => Distinct { count: 1.0, is_unique: false },
        };
        self.known.insert(field, found);
        Ok(found)
    }

    /// How many of the values of a field are left where only some rows are.
    fn passing(&self, field: usize, count: f64) -> f64 {
        let relation = self.relations.get(self.block.relation_of(field));
        let Some(RelationEstimate { rows, passing }) = relation else { return count };
        if *rows <= 0.0 || passing >= rows {
            return count;
        }
        // A value stays unless all of its rows go (Yao, 1977, with replacement).
        let gone = (1.0 - passing / rows).powf((rows / count.max(1.0)).max(1.0));
        (count * (1.0 - gone)).max(1.0)
    }

    /// The relations of the fields of a class, and how many values each has. Where one of them is
    /// unique, the others refer to it, mostly.
    fn of_class(&mut self, class: &BTreeSet<usize>) -> Result<Vec<(usize, f64)>> {
        let mut most = f64::INFINITY;
        for field in class {
            let Distinct { count, is_unique } = self.of(*field)?;
            most = if is_unique { most.min(count) } else { most };
        }
        let mut values = Vec::with_capacity(class.len());
        for field in class {
            let count = self.of(*field)?.count.min(most);
            values.push((self.block.relation_of(*field), self.passing(*field, count)));
        }
        Ok(values)
    }

    /// The share of pairs that pass a condition.
    fn share(&mut self, bound: &Bound) -> Result<f64> {
        let Node::Compare(Comparison::Eq, a, b) = &bound.node else {
            return Ok(cardinality::share_of_value(bound));
        };
        let mut most: f64 = 0.0;
        for side in [a, b] {
            let mut fields = BTreeSet::new();
            side.collect_fields(&mut fields);
            if let (Some(field), 1) = (fields.first(), fields.len()) {
                let count = self.of(*field)?.count;
                most = most.max(self.passing(*field, count));
            }
        }
        Ok(if most > 0.0 { 1.0 / most } else { cardinality::share_of_value(bound) })
    }
}
