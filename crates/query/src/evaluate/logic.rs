//! Three-valued logic: NULL is "not known".
//!
//! A member of AND or OR that may fail sees only the rows that the others leave open, as in
//! filters: first come those that cannot fail, then the rest in the order in which they were
//! written.

use super::compute;
use crate::Result;
use crate::bound::Bound;
use crate::evaluate::{Lanes, Rows, Selection, Vector};

/// False where a member is false, else NULL where one is NULL, else true.
pub(super) fn all<'a>(
    members: &'a [Bound],
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    decide(members, false, rows, selection)
}

/// True where a member is true, else NULL where one is NULL, else false.
pub(super) fn any<'a>(
    members: &'a [Bound],
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    decide(members, true, rows, selection)
}

/// `decisive` where a member is `decisive`, else NULL where one is NULL, else the opposite.
fn decide<'a>(
    members: &'a [Bound],
    decisive: bool,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    let len = selection.len();
    let mut decided = Decided::new(len, decisive);
    let (fallible, safe): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.may_fail());
    for member in safe {
        decided.add(&compute(member, rows, selection)?, 0..len);
    }
    for member in fallible {
        let open = decided.open();
        let open_rows: Vec<u32> = open.iter().map(|i| selection.row(*i)).collect();
        let truths = compute(member, rows, Selection::Rows(&open_rows))?;
        decided.add(&truths, open.into_iter());
    }
    Ok(decided.vector())
}

/// What the members so far say of each row.
struct Decided {
    decisive: bool,
    values: Vec<bool>,
    nulls: Vec<bool>,
}

impl Decided {
    fn new(len: usize, decisive: bool) -> Self {
        Self { decisive, values: vec![!decisive; len], nulls: vec![false; len] }
    }

    /// Adds what a member says of the rows at some places.
    fn add(&mut self, member: &Vector<'_>, places: impl Iterator<Item = usize>) {
        for (i, place) in places.enumerate() {
            let (Some(value), Some(null)) = (self.values.get_mut(place), self.nulls.get_mut(place))
            else {
                continue;
            };
            if member.is_null(i) {
                *null = true;
            } else if truth(member, i) == self.decisive {
                *value = self.decisive;
            }
        }
    }

    /// The places that no member has decided.
    fn open(&self) -> Vec<usize> {
        let places = self.values.iter().enumerate();
        places.filter(|(_, value)| **value != self.decisive).map(|(place, _)| place).collect()
    }

    fn vector<'a>(self) -> Vector<'a> {
        let Self { decisive, values, mut nulls } = self;
        nulls.iter_mut().zip(&values).for_each(|(null, value)| *null &= *value != decisive);
        let nulls = nulls.contains(&true).then_some(nulls);
        Vector::bools(values, nulls)
    }
}

pub(super) fn not(operand: Vector<'_>) -> Vector<'_> {
    let values = (0..operand.len()).map(|i| !truth(&operand, i)).collect();
    Vector::bools(values, operand.nulls)
}

/// The bool of a row, whether or not it is NULL.
pub(super) fn truth(vector: &Vector<'_>, i: usize) -> bool {
    match &vector.lanes {
        Lanes::Bools(values) => values.get(i).copied().unwrap_or_default(),
        _ => false,
    }
}
