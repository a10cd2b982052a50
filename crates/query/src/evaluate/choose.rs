//! CASE and COALESCE: each value is computed only for the rows that take it. And the greatest or
//! least of several.

use std::borrow::Cow;

use esker_format::DataType;

use super::compute;
use super::logic::truth;
use crate::Result;
use crate::bound::{Bound, Comparison};
use crate::evaluate::{Lanes, Rows, Selection, Vector};
use crate::meter::{Meter, Reservation};
use crate::model::Function;

/// The value of the first branch whose condition is true, else `otherwise`.
pub(super) fn case<'a>(
    branches: &'a [(Bound, Bound)],
    otherwise: &'a Bound,
    data_type: DataType,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    let mut chosen = Chosen::new(selection);
    for (when, then) in branches {
        let condition = compute(when, rows, Selection::Rows(&chosen.open_rows))?;
        let takes = |i: usize| truth(&condition, i) && !condition.is_null(i);
        let taken = chosen.take(takes);
        let values = compute(then, rows, Selection::Rows(&taken))?;
        chosen.parts.push(values);
    }
    let rest = std::mem::take(&mut chosen.open_rows);
    chosen.close();
    chosen.parts.push(compute(otherwise, rows, Selection::Rows(&rest))?);
    chosen.assemble("CASE", data_type, rows.meter())
}

/// The first operand that is not NULL.
pub(super) fn coalesce<'a>(
    operands: &'a [Bound],
    data_type: DataType,
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vector<'a>> {
    let mut chosen = Chosen::new(selection);
    for operand in operands {
        let values = compute(operand, rows, Selection::Rows(&chosen.open_rows))?;
        let kept: Vec<_> = (0..values.len()).filter(|i| !values.is_null(*i)).collect();
        chosen.take(|i| !values.is_null(i));
        let kept = kept.into_iter().map(|i| Some((0, i)));
        chosen.parts.push(pick("coalesce", &[values], kept, data_type, rows.meter())?);
    }
    chosen.assemble("coalesce", data_type, rows.meter())
}

/// The value that compares so with all others; those that are NULL are left out.
pub(super) fn extreme<'a>(
    parts: &[Vector<'a>],
    comparison: Comparison,
    data_type: DataType,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let len = parts.first().map_or(0, Vector::len);
    let best = |row: usize| {
        let mut best: Option<(usize, &Vector<'a>)> = None;
        for (part, vector) in parts.iter().enumerate().filter(|(_, v)| !v.is_null(row)) {
            let is_better = |(_, v): (_, &Vector<'a>)| {
                comparison.holds(vector.value(row).compare(v.value(row)))
            };
            if best.is_none_or(is_better) {
                best = Some((part, vector));
            }
        }
        best.map(|(part, _)| (part, row))
    };
    let maker = match comparison {
        Comparison::Gt => Function::Greatest,
        _ => Function::Least,
    };
    pick(maker.entry().name, parts, (0..len).map(best), data_type, meter)
}

/// Which part each row takes its value from.
struct Chosen<'a> {
    /// One vector per part, with the values of the rows that took it.
    parts: Vec<Vector<'a>>,
    /// Per selected row: the part and the place in it.
    sources: Vec<Option<(usize, usize)>>,
    /// The places in `sources` that are still open, and their rows.
    open: Vec<usize>,
    open_rows: Vec<u32>,
}

impl<'a> Chosen<'a> {
    fn new(selection: Selection<'_>) -> Self {
        let len = selection.len();
        let open_rows = (0..len).map(|i| selection.row(i)).collect();
        Self { parts: Vec::new(), sources: vec![None; len], open: (0..len).collect(), open_rows }
    }

    /// Gives the next part the open rows that `takes` says, and returns them.
    fn take(&mut self, takes: impl Fn(usize) -> bool) -> Vec<u32> {
        let part = self.parts.len();
        let (mut taken, mut open, mut open_rows) = (Vec::new(), Vec::new(), Vec::new());
        for (i, (place, row)) in self.open.iter().zip(&self.open_rows).enumerate() {
            if takes(i) {
                if let Some(source) = self.sources.get_mut(*place) {
                    *source = Some((part, taken.len()));
                }
                taken.push(*row);
            } else {
                open.push(*place);
                open_rows.push(*row);
            }
        }
        (self.open, self.open_rows) = (open, open_rows);
        taken
    }

    /// Gives the next part all that is open.
    fn close(&mut self) {
        let part = self.parts.len();
        for (i, place) in self.open.drain(..).enumerate() {
            if let Some(source) = self.sources.get_mut(place) {
                *source = Some((part, i));
            }
        }
    }

    fn assemble(
        self,
        maker: &'static str,
        data_type: DataType,
        meter: &Meter<'a>,
    ) -> Result<Vector<'a>> {
        pick(maker, &self.parts, self.sources.into_iter(), data_type, meter)
    }
}

/// One value per source; NULL where there is none.
fn pick<'a>(
    maker: &'static str,
    parts: &[Vector<'a>],
    sources: impl ExactSizeIterator<Item = Option<(usize, usize)>>,
    data_type: DataType,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let (len, mut room) = (sources.len(), meter.room(maker));
    room.take(Lanes::size(data_type, len))?;
    let mut vector = Vector::nulls(data_type, len);
    let mut nulls = vec![true; len];
    for (to, source) in sources.enumerate() {
        let Some((part, from)) = source else { continue };
        let Some(part) = parts.get(part) else { continue };
        if !part.is_null(from) {
            meter.work(part.lanes.bytes(from).len())?;
            copy(&mut vector.lanes, to, &part.lanes, from, &mut room)?;
            if let Some(null) = nulls.get_mut(to) {
                *null = false;
            }
        }
    }
    vector.nulls = nulls.contains(&true).then_some(nulls);
    Ok(vector.within(room))
}

fn copy<'a>(
    into: &mut Lanes<'a>,
    to: usize,
    lanes: &Lanes<'a>,
    from: usize,
    room: &mut Reservation<'a>,
) -> Result<()> {
    fn one<T: Clone>(into: Option<&mut T>, value: Option<&T>) {
        if let (Some(into), Some(value)) = (into, value) {
            *into = value.clone();
        }
    }
    match (into, lanes) {
        (Lanes::Ints(a), Lanes::Ints(b)) => one(a.to_mut().get_mut(to), b.get(from)),
        (Lanes::Wides(a), Lanes::Wides(b)) => one(a.to_mut().get_mut(to), b.get(from)),
        (Lanes::Uints(a), Lanes::Uints(b)) => one(a.to_mut().get_mut(to), b.get(from)),
        (Lanes::Floats(a), Lanes::Floats(b)) => one(a.to_mut().get_mut(to), b.get(from)),
        (Lanes::Bools(a), Lanes::Bools(b)) => one(a.get_mut(to), b.get(from)),
        (Lanes::Bytes(a), Lanes::Bytes(b)) => {
            if let Some(Cow::Owned(bytes)) = b.get(from) {
                room.take(bytes.len())?;
            }
            one::<Cow<'a, [u8]>>(a.get_mut(to), b.get(from));
        }
        _ => {}
    }
    Ok(())
}
