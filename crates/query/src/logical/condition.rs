//! Conditions of WHERE and ON, each with what it reads.

use std::collections::BTreeSet;

use esker_format::{DataType, Schema, Value};

use super::names::Names;
use crate::bind::{bind_filter, bind_row};
use crate::bound::{Bound, Comparison, Node};
use crate::model::{Expr, Operator};
use crate::{Inputs, Result};

/// One condition, over the fields of all tables by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) expr: Expr,
    pub(super) bound: Bound,
    /// The fields it reads.
    pub(super) fields: BTreeSet<usize>,
    /// The tables they are of.
    pub(super) members: BTreeSet<usize>,
    /// Whether it may fail, or is another value each time: it is tested for joined rows only.
    pub(super) is_fallible: bool,
}

impl Condition {
    pub(super) fn new(
        clause: &str,
        expr: Expr,
        schema: &Schema,
        names: &Names,
        inputs: &Inputs,
    ) -> Result<Self> {
        let bound = bind_filter(clause, &expr, schema, inputs)?;
        let mut fields = BTreeSet::new();
        bound.collect_fields(&mut fields);
        // It is bound again where it is tested: what folds to a constant has to be there, too.
        let mut read = Vec::new();
        expr.collect_names(&mut read);
        for name in read {
            if let Ok(field) = bind_row(&Expr::field(name), schema, inputs) {
                field.collect_fields(&mut fields);
            }
        }
        let members = fields.iter().map(|field| names.member_of(*field)).collect();
        let is_fallible = bound.may_fail() || bound.is_random();
        Ok(Self { expr, bound, fields, members, is_fallible })
    }

    /// The two sides of an equality of what is on the left with what is on the right.
    pub(super) fn as_key(&self, is_left: &dyn Fn(usize) -> bool) -> Option<(Bound, Bound)> {
        let Node::Compare(Comparison::Eq, a, b) = &self.bound.node else { return None };
        let sides = |bound: &Bound| {
            let mut fields = BTreeSet::new();
            bound.collect_fields(&mut fields);
            let left = fields.iter().filter(|field| is_left(**field)).count();
            (left, fields.len() - left)
        };
        match (sides(a), sides(b)) {
            ((1.., 0), (0, 1..)) => Some(((**a).clone(), (**b).clone())),
            ((0, 1..), (1.., 0)) => Some(((**b).clone(), (**a).clone())),
            _ => None,
        }
    }

    /// A test of the left alone that cannot fail, and what it has to be equal to.
    pub(super) fn as_test_of_left(
        &self,
        is_left: &dyn Fn(usize) -> bool,
    ) -> Option<(Bound, Bound)> {
        let is_test = !self.is_fallible && !self.fields.is_empty();
        let is_of_left = is_test && self.fields.iter().all(|field| is_left(*field));
        is_of_left.then(|| (self.bound.clone(), Bound::literal(Value::Bool(true))))
    }
}

/// A side of a key that may fail, computed only of rows that pass the other conditions on its side
/// alone: of any other row it is NULL, which is equal to nothing. An inner join has tested these
/// while it read the side.
pub(super) fn guarded(key: Bound, others: &[Condition], is_own: &dyn Fn(usize) -> bool) -> Bound {
    if !key.may_fail() {
        return key;
    }
    let is_test = |other: &&Condition| {
        !other.is_fallible && !other.fields.is_empty() && other.fields.iter().all(|f| is_own(*f))
    };
    let mut tests: Vec<Bound> = others.iter().filter(is_test).map(|c| c.bound.clone()).collect();
    let passes = match tests.len() {
        0 => return key,
        1 => tests.swap_remove(0),
        _ => Bound::new(Node::And(tests), DataType::Bool),
    };
    let (data_type, labels) = (key.data_type(), key.labels.clone());
    let null = Bound::new(Node::Literal(Value::Null), data_type);
    let case = Bound::new(Node::Case(vec![(passes, key)], Box::new(null)), data_type);
    case.with_labels(labels.as_ref())
}

/// Moves tests of the left alone to the keys where there is no other: beside TRUE on the right, so
/// that rows of the left that do not pass meet no row.
pub(super) fn move_tests_of_left(
    keys: &mut Vec<Condition>,
    pair: &mut Vec<Condition>,
    is_left: &dyn Fn(usize) -> bool,
) {
    if keys.is_empty() {
        keys.extend(pair.extract_if(.., |condition| condition.as_test_of_left(is_left).is_some()));
    }
}

/// Adds the conditions that all have to be met.
pub(super) fn flatten(expr: Expr, into: &mut Vec<Expr>) {
    match expr {
        Expr::Apply(Operator::And, members) => {
            members.into_iter().for_each(|member| flatten(member, into));
        }
        other => into.push(other),
    }
}

/// Several conditions as one.
pub(super) fn all(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr::Apply(Operator::And, conditions)),
    }
}
