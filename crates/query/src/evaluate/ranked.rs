//! Values with what they are ordered by, as bytes: what `first(x ORDER BY t)` keeps of a row.
//!
//! ```text
//! u32 length │ keys, as bytes that sort as their order does │ the value
//! ```
//!
//! A key is a byte for whether it is NULL, then 16 bytes of a number, the most significant first,
//! or a byte string in which 0 is 0, 255 and the end 0, 0. In a descending order bits are flipped.

use std::borrow::Cow;

use esker_format::{DataType, ValueRef};

use crate::Result;
use crate::bound::OrderKey;
use crate::evaluate::key_codec::{decode, encode};
use crate::evaluate::{Lanes, Vector, either_null};
use crate::meter::Meter;
use esker_format::order_key::{Key, float_key};

const LENGTH_BYTES: usize = 4;

/// What a key, or the value, takes beside its bytes: how long it is, and a number.
const KEY_BYTES_MORE: usize = 32;

const PAIR_BYTES: usize = 16;

/// The values of some rows with their keys.
pub(super) fn rank<'a>(
    keys: &[(&OrderKey, Vector<'_>)],
    values: &Vector<'_>,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let (mut ranked, mut room) =
        (Vec::with_capacity(values.len()), meter.room("ORDER BY in an aggregate"));
    for i in 0..values.len() {
        let of_keys = keys.iter().map(|(_, key)| key.lanes.bytes(i).len());
        let len = of_keys.map(|len| 2 * len + KEY_BYTES_MORE).sum::<usize>();
        let len = len + values.lanes.bytes(i).len() + KEY_BYTES_MORE;
        meter.work(len)?;
        room.take(len)?;
        let mut bytes = Vec::with_capacity(len);
        bytes.extend([0; LENGTH_BYTES]);
        for (key, vector) in keys {
            add_key(&mut bytes, key, vector, i);
        }
        let len = u32::try_from(bytes.len() - LENGTH_BYTES).unwrap_or(u32::MAX);
        bytes.iter_mut().zip(len.to_le_bytes()).for_each(|(to, from)| *to = from);
        encode(&mut bytes, values, i);
        ranked.push(Cow::Owned(bytes));
    }
    Ok(Vector::new(DataType::Bytes, Lanes::Bytes(ranked), None).within(room))
}

/// Two floats of each row as 16 bytes; NULL where either is.
pub(super) fn pair<'a>(
    first: &Vector<'_>,
    second: &Vector<'_>,
    meter: &Meter<'a>,
) -> Result<Vector<'a>> {
    let mut room = meter.room("an aggregate of two operands");
    meter.work(first.len())?;
    room.take(first.len().saturating_mul(PAIR_BYTES))?;
    let float = |vector: &Vector<'_>, i: usize| match &vector.lanes {
        Lanes::Floats(values) => values.get(i).copied().unwrap_or_default(),
        _ => f64::NAN,
    };
    let one = |i: usize| {
        let (first, second) = (float(first, i).to_le_bytes(), float(second, i).to_le_bytes());
        Cow::Owned([first, second].concat())
    };
    let pairs = (0..first.len()).map(one).collect();
    let nulls = either_null(first.nulls.as_ref(), second.nulls.as_ref());
    Ok(Vector::new(DataType::Bytes, Lanes::Bytes(pairs), nulls).within(room))
}

/// The keys of a ranked value.
pub(crate) fn keys_of(ranked: &[u8]) -> &[u8] {
    split(ranked).0
}

/// The value of a ranked value.
pub(crate) fn value_of(ranked: &[u8], data_type: DataType) -> ValueRef<'_> {
    let (_, mut value) = split(ranked);
    decode(&mut value, data_type)
}

fn split(ranked: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = ranked.split_first_chunk::<LENGTH_BYTES>().unwrap_or((&[0; 4], &[]));
    rest.split_at_checked(u32::from_le_bytes(*len) as usize).unwrap_or((rest, &[]))
}

fn add_key(out: &mut Vec<u8>, key: &OrderKey, vector: &Vector<'_>, i: usize) {
    if vector.is_null(i) {
        return out.push(if key.nulls_first { 0 } else { 2 });
    }
    out.push(1);
    let start = out.len();
    let number = match &vector.lanes {
        Lanes::Ints(v) => v.get(i).map(|v| Key::from(*v)),
        Lanes::Uints(v) => v.get(i).map(|v| Key::from(*v)),
        Lanes::Wides(v) => v.get(i).copied(),
        Lanes::Floats(v) => v.get(i).map(|v| float_key(*v)),
        Lanes::Bools(v) => v.get(i).map(|v| Key::from(*v)),
        Lanes::Bytes(v) => {
            for byte in v.get(i).map(|v| v.as_ref()).unwrap_or_default() {
                out.push(*byte);
                out.extend((*byte == 0).then_some(u8::MAX));
            }
            out.extend_from_slice(&[0, 0]);
            None
        }
    };
    if let Some(number) = number {
        out.extend((number ^ Key::MIN).to_le_bytes().iter().rev());
    }
    if key.descending {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}
