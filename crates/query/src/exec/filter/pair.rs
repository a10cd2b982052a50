//! Two text fields beside each other, without a copy of either.

use std::cmp::Ordering;

use crate::Result;
use crate::bind::{Bound, Comparison, Node};
use crate::exec::mask::Mask;
use crate::exec::rows::Rows;

/// Removes the rows for which a comparison of two text fields is not `wanted`; false when `bound`
/// is none.
pub(super) fn keep(bound: &Bound, wanted: bool, rows: &Rows<'_>, mask: &mut Mask) -> Result<bool> {
    let Node::Compare(comparison, left, right) = &bound.node else { return Ok(false) };
    let (Node::Field(a), Node::Field(b)) = (&left.node, &right.node) else { return Ok(false) };
    if !left.data_type().is_variable() || left.data_type != right.data_type {
        return Ok(false);
    }
    let (a, b) = (rows.column(*a)?, rows.column(*b)?);
    for column in [&a, &b] {
        mask.and(&Mask::valid(&column.validity, mask.len()));
        if matches!(column.data, esker_format::Data::Constant(esker_format::ValueRef::Null)) {
            mask.clear();
        }
    }
    let comparison = if wanted { *comparison } else { comparison.opposite() };
    let order: fn(&[u8], &[u8]) -> Ordering = match comparison {
        // The lengths alone tell most.
        Comparison::Eq | Comparison::Neq => |a, b| match a == b {
            true => Ordering::Equal,
            false => Ordering::Less,
        },
        _ => |a, b| a.cmp(b),
    };
    mask.retain_rows(|row| comparison.holds(order(a.bytes(row), b.bytes(row))));
    Ok(true)
}
