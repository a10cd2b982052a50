//! Texts, or byte strings, one after another.

use std::borrow::Cow;

use esker_format::DataType;

use crate::Result;
use crate::evaluate::{Lanes, Vector, either_null};
use crate::meter::Meter;

/// `a || b || …`: NULL where one is. However many there are, each byte is copied once.
pub(super) fn concat<'a>(
    operands: &[Vector<'a>],
    data_type: DataType,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let len = operands.first().map_or(0, Vector::len);
    let nulls = operands.iter().fold(None, |n, o| either_null(n.as_ref(), o.nulls.as_ref()));
    let (mut values, mut room) = (Vec::with_capacity(len), meter.room("||"));
    for row in 0..len {
        let is_null = nulls.as_ref().is_some_and(|n| n.get(row).copied().unwrap_or(true));
        let parts = || operands.iter().filter(|_| !is_null).map(|o| o.lanes.bytes(row));
        let size = parts().map(<[u8]>::len).fold(0, usize::saturating_add);
        room.take(size)?;
        let mut whole = Vec::with_capacity(size);
        for part in parts() {
            for piece in meter.pieces(part) {
                whole.extend_from_slice(piece?);
            }
        }
        values.push(Cow::Owned(whole));
    }
    Ok(Vector::new(data_type, Lanes::Bytes(values), nulls).within(room))
}
