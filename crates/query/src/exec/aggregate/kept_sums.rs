//! What a grouping step keeps, where that is less than it shows.
//!
//! `sum(x)`, `avg(x)` and `count(x)` come of one sum and one count, and so do `sum(x + 1)` and
//! `sum(x - 2)`: the constant, times how many values there are, is added at the end. That is
//! exact, as sums of integers and decimals are. But `x + 1` is an error for a row where it does not
//! fit its type, which the sum alone would not tell: constants are left out only where the type of
//! the field, or its zone maps, say that they fit for every row.

use std::collections::BTreeMap;

use esker_format::decimal::limit;
use esker_format::{DataType, Value, ValueRef};

use crate::bind::{Shown, Stage};
use crate::bound::{Bound, BoundAggregate, Node};
use crate::model::{Aggregate, Operator};
use crate::{Source, ZONE_ROWS};

/// The most zones whose bounds are asked for: of more, those of 134 million rows, it would take
/// long before anybody looks at the time.
const ZONES_MAX: usize = 1 << 14;

/// The same step with what it has to keep; `None` where that is each aggregate as it is.
pub(super) fn stage(stage: &Stage, source: &dyn Source) -> Option<Stage> {
    let mut bounds = Bounds { source, known: BTreeMap::new() };
    let wanted: Vec<_> = stage.aggregates.iter().map(|a| bounds.without_constant(a)).collect();
    // A count finds the sum of the same values, wherever that is.
    let mut kept: Vec<BoundAggregate> = Vec::new();
    for (aggregate, _) in wanted.iter().filter(|(aggregate, _)| is_sum(aggregate)) {
        place_of(aggregate, &mut kept);
    }
    let mut shown = Vec::with_capacity(wanted.len());
    for (own, (aggregate, added)) in stage.aggregates.iter().zip(&wanted) {
        let (function, data_type) = (own.function, own.data_type);
        let place = place_of(aggregate, &mut kept);
        shown.push(Shown { aggregate: place, function, data_type, added: *added });
    }
    let is_less = kept.len() < shown.len() || shown.iter().any(|shown| shown.added != 0);
    is_less.then(|| Stage { aggregates: kept, shown, ..stage.clone() })
}

/// Where an aggregate is kept; it is from now on.
fn place_of(wanted: &BoundAggregate, kept: &mut Vec<BoundAggregate>) -> usize {
    let found = kept.iter().position(|kept| tells(kept, wanted));
    found.unwrap_or_else(|| {
        kept.push(wanted.clone());
        kept.len() - 1
    })
}

/// True when what is kept of one aggregate tells another.
fn tells(kept: &BoundAggregate, wanted: &BoundAggregate) -> bool {
    let is_told = match wanted.function {
        Aggregate::Sum | Aggregate::Avg => is_sum(kept),
        Aggregate::Count => is_sum(kept) || kept.function == Aggregate::Count,
        function => kept.function == function && kept.data_type == wanted.data_type,
    };
    let is_random = || wanted.operand.as_ref().is_some_and(Bound::is_random);
    is_told && kept.distinct == wanted.distinct && kept.operand == wanted.operand && !is_random()
}

fn is_sum(aggregate: &BoundAggregate) -> bool {
    matches!(aggregate.function, Aggregate::Sum | Aggregate::Avg) && !aggregate.distinct
}

/// The values of a field with a constant added to each, in units of the last digit.
struct Sum {
    field: Bound,
    added: i64,
    least: i128,
    greatest: i128,
}

/// The bounds of the fields that are asked for.
struct Bounds<'s> {
    source: &'s dyn Source,
    known: BTreeMap<usize, (i128, i128)>,
}

impl Bounds<'_> {
    /// An aggregate of the field alone, and the constant that is to be added to each of its values.
    fn without_constant(&mut self, aggregate: &BoundAggregate) -> (BoundAggregate, i64) {
        // A field alone has no constant: its bounds are not asked for, since that takes a look at
        // every zone, and at every row of those that are open.
        let has_constant =
            |operand: &&Bound| is_sum(aggregate) && !matches!(operand.node, Node::Field(_));
        let operand = aggregate.operand.as_ref().filter(has_constant);
        match operand.and_then(|operand| self.sum(operand)) {
            Some(Sum { field, added, .. }) => {
                (BoundAggregate { operand: Some(field), ..aggregate.clone() }, added)
            }
            None => (aggregate.clone(), 0),
        }
    }

    /// An expression as such a sum, where no row is too large for it.
    fn sum(&mut self, bound: &Bound) -> Option<Sum> {
        let data_type = bound.data_type();
        let sum = match &bound.node {
            Node::Field(position) => {
                let (least, greatest) = self.of(*position, data_type)?;
                Sum { field: bound.clone(), added: 0, least, greatest }
            }
            Node::Cast(of) if data_type == DataType::I64 && of.data_type().is_integer() => {
                self.sum(of)?
            }
            Node::Arithmetic(operator, a, b) => {
                let (of, constant) = match (operator, a.as_literal(), b.as_literal()) {
                    (Operator::Add | Operator::Subtract, None, Some(constant)) => (a, constant),
                    (Operator::Add, Some(constant), None) => (b, constant),
                    _ => return None,
                };
                let constant = mantissa(constant, scale_of(data_type)?)?;
                let constant = match operator {
                    Operator::Subtract => constant.checked_neg()?,
                    _ => constant,
                };
                let sum = self.sum(of)?;
                // What is kept has the unit of the field.
                if scale_of(sum.field.data_type()) != scale_of(data_type) {
                    return None;
                }
                let by = i128::from(constant);
                Sum {
                    field: sum.field,
                    added: sum.added.checked_add(constant)?,
                    least: sum.least.checked_add(by)?,
                    greatest: sum.greatest.checked_add(by)?,
                }
            }
            _ => return None,
        };
        let (least, greatest) = bounds_of(data_type)?;
        (least <= sum.least && sum.greatest <= greatest).then_some(sum)
    }

    /// What all values of a field lie between.
    fn of(&mut self, field: usize, data_type: DataType) -> Option<(i128, i128)> {
        let all = bounds_of(data_type)?;
        let is_wide = match data_type {
            DataType::Decimal { .. } => data_type.is_wide(),
            other => matches!(other, DataType::I64 | DataType::U64),
        };
        if !is_wide {
            return Some(all);
        }
        let found = self.known.entry(field);
        Some(*found.or_insert_with(|| bounds_in(self.source, field).unwrap_or(all)))
    }
}

/// The same by what zone maps say; `None` where they do not.
fn bounds_in(source: &dyn Source, field: usize) -> Option<(i128, i128)> {
    let mut found: Option<(i128, i128)> = None;
    let mut zones_left = ZONES_MAX;
    for part in (0..source.part_count()).map(|index| source.part(index)) {
        for zone in 0..part.row_count().div_ceil(ZONE_ROWS) {
            zones_left = zones_left.checked_sub(1)?;
            let known = part.zone(field, zone)?;
            if known.least.is_null() {
                continue;
            }
            let (least, greatest) = (whole(known.least)?, whole(known.greatest?)?);
            let (first, last) = found.unwrap_or((least, greatest));
            found = Some((first.min(least), last.max(greatest)));
        }
    }
    Some(found.unwrap_or((0, 0))) // default: without a value, none is too large
}

/// What all values of a type lie between, as numbers of its last digit; `None` for floats and what
/// is no number.
fn bounds_of(data_type: DataType) -> Option<(i128, i128)> {
    use DataType as T;
    let signed = |bits: u32| (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
    let unsigned = |bits: u32| (0, (1i128 << bits) - 1);
    Some(match data_type {
        T::I8 => signed(8),
        T::I16 => signed(16),
        T::I32 => signed(32),
        T::I64 => signed(64),
        T::U8 => unsigned(8),
        T::U16 => unsigned(16),
        T::U32 => unsigned(32),
        T::U64 => unsigned(64),
        T::Decimal { precision, .. } => (1 - limit(precision), limit(precision) - 1),
        _ => return None,
    })
}

fn scale_of(data_type: DataType) -> Option<u8> {
    match data_type {
        DataType::Decimal { scale, .. } => Some(scale),
        other => other.is_integer().then_some(0),
    }
}

fn whole(value: ValueRef<'_>) -> Option<i128> {
    match value {
        ValueRef::Int(v) => Some(v.into()),
        ValueRef::Uint(v) => Some(v.into()),
        ValueRef::Decimal(v) => Some(v.mantissa()),
        _ => None,
    }
}

/// A constant as a number of units of so many digits behind the point.
fn mantissa(constant: &Value, scale: u8) -> Option<i64> {
    let own = match constant {
        Value::Decimal(v) => v.scale(),
        _ => 0,
    };
    let unit = limit(scale.checked_sub(own)?);
    i64::try_from(whole(constant.as_ref())?.checked_mul(unit)?).ok()
}
