//! Conditions by which a number of one side lies between two of the other.
//!
//! ```text
//! r.t BETWEEN l.s AND l.f          l.s <= r.t AND r.t < l.f          r.t > l.s AND l.f > r.t
//! ```

use super::condition::Condition;
use super::joining::SideState;
use crate::bound::{Bound, Comparison, Node};
use crate::exec::join::{Band, is_exact};
use esker_format::DataType;

/// Ends of a number of the right, as far as they are known.
struct Ends {
    field: usize,
    ends: [Option<Bound>; 2],
}

/// The band that conditions ask for of a field of the right, if there is one.
pub(super) fn of(
    conditions: &[Condition],
    left: &SideState<'_, '_>,
    right: &SideState<'_, '_>,
) -> Option<Band> {
    let mut known: Vec<Ends> = Vec::new();
    for condition in conditions.iter().filter(|condition| !condition.is_fallible) {
        let comparisons = match &condition.bound.node {
            Node::And(members) => members.as_slice(),
            _ => std::slice::from_ref(&condition.bound),
        };
        for comparison in comparisons {
            let Some((field, is_greatest, end)) = end_of(comparison, left, right) else { continue };
            if !known.iter().any(|ends| ends.field == field) {
                known.push(Ends { field, ends: [None, None] });
            }
            let ends = known.iter_mut().find(|ends| ends.field == field)?;
            let [least, greatest] = &mut ends.ends;
            let slot = if is_greatest { greatest } else { least };
            slot.get_or_insert(end);
        }
    }
    let is_known = |ends: &Ends| ends.ends.iter().all(Option::is_some);
    let Ends { field, ends } = known.into_iter().find(is_known)?;
    let [Some(least), Some(greatest)] = ends else { return None };
    let data_type = least.data_type();
    let place = |side: &SideState<'_, '_>, mut bound: Bound| {
        // default: it has been seen that all of its fields are there
        bound.map_fields(&|field| side.places.get(&field).copied().unwrap_or(usize::MAX));
        bound
    };
    let number = place(right, Bound::field(field, data_type));
    Some(Band { number, ends: [place(left, least), place(left, greatest)] })
}

/// The field of the right in a comparison, whether it is at most, or at least, what is of the left,
/// and that.
fn end_of(
    comparison: &Bound,
    left: &SideState<'_, '_>,
    right: &SideState<'_, '_>,
) -> Option<(usize, bool, Bound)> {
    let Node::Compare(how, a, b) = &comparison.node else { return None };
    let of_right = |bound: &Bound| match bound.node {
        Node::Field(field) => right.places.contains_key(&field).then_some(field),
        _ => None,
    };
    let is_of_left = |bound: &Bound| {
        let mut fields = std::collections::BTreeSet::new();
        bound.collect_fields(&mut fields);
        !fields.is_empty() && fields.iter().all(|field| left.places.contains_key(field))
    };
    let (field, how, end) = match (of_right(a), of_right(b)) {
        (Some(field), _) if is_of_left(b) => (field, *how, b),
        (_, Some(field)) if is_of_left(a) => (field, how.mirrored(), a),
        _ => return None,
    };
    let (own, other) = (a.data_type(), b.data_type());
    let is_number = !own.is_variable()
        && !matches!(own, DataType::Bool | DataType::Enum | DataType::Uuid | DataType::Ipv6);
    let is_greatest = match how {
        Comparison::Lt | Comparison::Lte => true,
        Comparison::Gt | Comparison::Gte => false,
        Comparison::Eq | Comparison::Neq => return None,
    };
    (is_number && is_exact(own, other)).then(|| (field, is_greatest, end.as_ref().clone()))
}
