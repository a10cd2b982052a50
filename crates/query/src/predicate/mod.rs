//! Filters as trees of tests that kernels and zone maps understand.
//!
//! A filter keeps the rows for which it is true; false and NULL are the same to it. So NOT is
//! pushed down to the leaves first, where it turns a comparison into its opposite (three-valued
//! logic allows that), and the tree has only ALL and ANY left. Leaves that test one field against
//! constants become [`Condition`]s; anything else is evaluated row by row.
//!
//! Order: the members of ALL and ANY that may fail come last, in the order they were written, and
//! see only the rows that the others leave open. So whether a query fails does not depend on
//! encodings or zone maps. Before them, cheap tests come first.

mod condition;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use esker_format::DataType;

use crate::bound::{Bound, Node};
use crate::model::Function;
use crate::{Fragment, ZONE_ROWS};

pub(crate) use condition::{Condition, borrowed};
pub(crate) use esker_format::order_key::{Key, float_at_most, float_key, float_of};

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Predicate {
    /// True or false of every row.
    Constant(bool),
    /// A field meets a condition.
    Test(Test),
    /// An expression has this truth value.
    Value(Bound, bool),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// A condition on a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    pub(crate) field: usize,
    pub(crate) data_type: DataType,
    pub(crate) condition: Condition,
}

/// What a zone map says of a filter over the rows of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// No row passes.
    Never,
    /// It has to be looked at.
    Sometimes,
    /// Every row passes.
    Always,
}

impl Verdict {
    fn of(never: bool, always: bool) -> Self {
        match (never, always) {
            (true, _) => Self::Never,
            (_, true) => Self::Always,
            _ => Self::Sometimes,
        }
    }

    fn opposite(self) -> Self {
        match self {
            Self::Never => Self::Always,
            Self::Sometimes => Self::Sometimes,
            Self::Always => Self::Never,
        }
    }
}

impl Predicate {
    /// Compiles a filter.
    pub(crate) fn compile(filter: Option<&Bound>) -> Self {
        filter.map_or(Self::Constant(true), |bound| compile(bound, true))
    }

    /// What the zone maps of a part say of the filter in zone `zone`.
    pub(crate) fn verdict(&self, part: &dyn Fragment, zone: usize) -> Verdict {
        match self {
            Self::Constant(true) => Verdict::Always,
            Self::Constant(false) => Verdict::Never,
            Self::Value(..) => Verdict::Sometimes,
            Self::Test(test) => {
                let rows = part.row_count().saturating_sub(zone * ZONE_ROWS).min(ZONE_ROWS);
                let lengths = match test.condition {
                    Condition::Length { .. } => part.lengths(test.field, zone),
                    _ => None,
                };
                let by_lengths =
                    lengths.map(|known| test.condition.verdict_of_lengths(test.data_type, &known));
                if by_lengths == Some(Verdict::Never) {
                    return Verdict::Never;
                }
                let Some(bounds) = part.zone(test.field, zone) else { return Verdict::Sometimes };
                test.condition.verdict(test.data_type, &bounds, by_lengths, rows)
            }
            Self::All(all) => {
                // What may fail is tested last, and must not keep others from being tested.
                let verdicts = all.iter().map(|p| match p.verdict(part, zone) {
                    Verdict::Never if p.may_fail() => Verdict::Sometimes,
                    verdict => verdict,
                });
                verdicts.min().unwrap_or(Verdict::Always)
            }
            Self::Any(any) => {
                let verdicts = any.iter().map(|p| p.verdict(part, zone));
                verdicts.max().unwrap_or(Verdict::Never)
            }
        }
    }

    /// The rows that pass all of some filters.
    pub(crate) fn all_of(members: Vec<Self>) -> Self {
        one_or(members, true, Self::All)
    }

    /// Roughly how dear testing a row is: 1 for a range of numbers.
    pub(crate) fn weight(&self) -> u32 {
        self.cost().1
    }

    /// True when evaluating it may fail.
    pub(crate) fn may_fail(&self) -> bool {
        self.cost().0
    }

    /// Adds the positions of the fields that are tested.
    pub(crate) fn collect_fields(&self, fields: &mut BTreeSet<usize>) {
        match self {
            Self::Constant(_) => {}
            Self::Test(test) => drop(fields.insert(test.field)),
            Self::Value(bound, _) => bound.collect_fields(fields),
            Self::All(members) | Self::Any(members) => {
                members.iter().for_each(|member| member.collect_fields(fields));
            }
        }
    }

    /// Whether evaluating it may fail, and roughly how dear a row is.
    fn cost(&self) -> (bool, u32) {
        match self {
            Self::Constant(_) => (false, 0),
            Self::Test(test) => match test.condition {
                Condition::Null { .. } | Condition::Range { .. } => (false, 1),
                Condition::Set { .. } => (false, 2),
                Condition::TextRange { .. } | Condition::TextSet { .. } => (false, 8),
                Condition::Length { .. } => (false, 4),
                Condition::Match { .. } => (false, 32),
            },
            Self::Value(bound, _) => (bound.may_fail(), 16 * weight(bound)),
            Self::All(members) | Self::Any(members) => {
                let costs = members.iter().map(Self::cost);
                costs.fold((false, 0), |(a, b), (c, d)| (a || c, b.saturating_add(d)))
            }
        }
    }
}

fn weight(bound: &Bound) -> u32 {
    let mut sum = 1u32;
    bound.operands(&mut |operand| sum = sum.saturating_add(weight(operand)));
    sum
}

/// The rows for which `bound` has truth value `wanted`.
fn compile(bound: &Bound, wanted: bool) -> Predicate {
    match &bound.node {
        Node::Literal(value) => {
            let truth = matches!(value, esker_format::Value::Bool(v) if *v == wanted);
            Predicate::Constant(truth)
        }
        Node::Not(operand) => compile(operand, !wanted),
        Node::And(members) if wanted => all(members, wanted),
        Node::Or(members) if !wanted => all(members, wanted),
        Node::And(members) | Node::Or(members) => any(members, wanted),
        _ => test(bound, wanted).unwrap_or_else(|| Predicate::Value(bound.clone(), wanted)),
    }
}

/// The bound as a condition on one field, where it is one.
fn test(bound: &Bound, wanted: bool) -> Option<Predicate> {
    if let Node::Compare(_, _, constant) = &bound.node
        && constant.as_literal()?.is_null()
    {
        return Some(Predicate::Constant(false));
    }
    let (operand, condition) = operand_test(bound, wanted)?;
    let Node::Field(field) = operand.node else { return None };
    Some(Predicate::Test(Test { field, data_type: operand.data_type(), condition }))
}

/// The bound as a condition on one operand, where it is one; the other one of a comparison is a
/// constant that is not NULL.
pub(crate) fn operand_test(bound: &Bound, wanted: bool) -> Option<(&Bound, Condition)> {
    type Made<'c> = &'c dyn Fn(DataType) -> Option<Condition>;
    fn on<'b>(operand: &'b Bound, condition: Made<'_>) -> Option<(&'b Bound, Condition)> {
        let is_known = matches!(operand.node, Node::Field(_) | Node::Call(..));
        Some((operand, condition(operand.data_type.filter(|_| is_known)?)?))
    }
    match &bound.node {
        Node::Field(_) => on(bound, &|data_type| {
            let key = Key::from(wanted);
            Some(Condition::range(data_type, key, key, false))
        }),
        Node::Compare(comparison, operand, constant) => {
            let constant = constant.as_literal()?.as_ref();
            if constant.is_null() {
                return None;
            }
            let comparison = if wanted { *comparison } else { comparison.opposite() };
            match &operand.node {
                Node::Call(function @ (Function::Length | Function::OctetLength), of) => {
                    let in_characters = |t| *function == Function::Length && t == DataType::Text;
                    on(of.first()?, &|t| Condition::length(comparison, in_characters(t), constant))
                }
                _ => on(operand, &|t| Condition::compare(comparison, t, constant)),
            }
        }
        Node::In(operand, values) => on(operand, &|t| Some(Condition::one_of(t, values, !wanted))),
        Node::Match(operand, pattern) => {
            on(operand, &|_| Some(Condition::pattern(pattern, !wanted)))
        }
        Node::IsNull(operand) => on(operand, &|_| Some(Condition::Null { negated: !wanted })),
        _ => None,
    }
}

/// The bound as a condition on an expression, as a whole, of which an index may have the values.
pub(crate) fn expression_test(bound: &Bound, wanted: bool) -> Option<(&Bound, Condition)> {
    let (operand, condition) = match &bound.node {
        Node::Compare(comparison, operand, constant) => {
            let constant = constant.as_literal().filter(|value| !value.is_null())?;
            let comparison = if wanted { *comparison } else { comparison.opposite() };
            let of = Condition::compare(comparison, operand.data_type?, constant.as_ref())?;
            (operand, of)
        }
        Node::In(operand, values) => {
            (operand, Condition::one_of(operand.data_type?, values, !wanted))
        }
        Node::Match(operand, pattern) => (operand, Condition::pattern(pattern, !wanted)),
        Node::IsNull(operand) => (operand, Condition::Null { negated: !wanted }),
        _ => return None,
    };
    operand.has_field().then_some((operand, condition))
}

fn all(members: &[Bound], wanted: bool) -> Predicate {
    let mut flat: Vec<Predicate> = Vec::with_capacity(members.len());
    for member in members {
        match compile(member, wanted) {
            Predicate::Constant(true) => {}
            Predicate::Constant(false) => return Predicate::Constant(false),
            Predicate::All(inner) => inner.into_iter().for_each(|p| add_to_all(&mut flat, p)),
            other => add_to_all(&mut flat, other),
        }
    }
    flat.sort_by_key(Predicate::cost);
    one_or(flat, true, Predicate::All)
}

/// Adds a member; ranges of one field become one range.
fn add_to_all(flat: &mut Vec<Predicate>, member: Predicate) {
    if let Predicate::Test(new) = &member {
        for known in flat.iter_mut() {
            let Predicate::Test(known) = known else { continue };
            if known.field != new.field {
                continue;
            }
            if let Some(both) = known.condition.intersect(&new.condition) {
                known.condition = both;
                return;
            }
        }
    }
    flat.push(member);
}

fn any(members: &[Bound], wanted: bool) -> Predicate {
    let mut flat: Vec<Predicate> = Vec::with_capacity(members.len());
    for member in members {
        match compile(member, wanted) {
            Predicate::Constant(false) => {}
            Predicate::Constant(true) => return Predicate::Constant(true),
            Predicate::Any(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    flat.sort_by_key(Predicate::cost);
    one_or(flat, false, Predicate::Any)
}

fn one_or(
    members: Vec<Predicate>,
    empty: bool,
    many: impl FnOnce(Vec<Predicate>) -> Predicate,
) -> Predicate {
    match <[Predicate; 1]>::try_from(members) {
        Ok([only]) => only,
        Err(members) if members.is_empty() => Predicate::Constant(empty),
        Err(members) => many(members),
    }
}
