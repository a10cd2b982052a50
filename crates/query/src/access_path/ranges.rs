//! Conditions as ranges of values, which sorted runs can find.

use std::ops::Bound as End;

use esker_format::DataType;
use esker_format::order_key::{Key, bounds};

use crate::predicate::{Condition, borrowed};
use crate::source::KeyRange;

/// The ranges in which the values lie that meet a condition, none of them overlapping; `None` when
/// they lie in no few ranges.
pub(super) fn ranges_of(condition: &Condition, data_type: DataType) -> Option<Vec<KeyRange<'_>>> {
    Some(match condition {
        Condition::Null { negated: false } => vec![KeyRange::Null],
        Condition::Null { negated: true } => vec![KeyRange::NotNull],
        Condition::Range { least, greatest, negated: false } => keys(*least, *greatest).collect(),
        Condition::Range { least, greatest, negated: true } => {
            outside(data_type, [(*least, *greatest)].into_iter())
        }
        Condition::Set { keys, negated: false } => coalesced(keys),
        Condition::Set { keys, negated: true } => {
            outside(data_type, keys.iter().map(|key| (*key, *key)))
        }
        Condition::TextRange { least, greatest, negated: false } => {
            texts(borrowed(least), borrowed(greatest)).collect()
        }
        Condition::TextRange { least, greatest, negated: true } => {
            if texts(borrowed(least), borrowed(greatest)).next().is_none() {
                return Some(vec![KeyRange::NotNull]);
            }
            let before = before(least).map(|end| KeyRange::Bytes(End::Unbounded, end));
            let after = after(greatest).map(|start| KeyRange::Bytes(start, End::Unbounded));
            before.into_iter().chain(after).collect()
        }
        Condition::TextSet { values, negated: false } => distinct(values)
            .map(|text| KeyRange::Bytes(End::Included(text), End::Included(text)))
            .collect(),
        Condition::TextSet { values, negated: true } => {
            let mut ranges = Vec::with_capacity(values.len() + 1);
            let mut start = End::Unbounded;
            for text in distinct(values) {
                ranges.extend(texts(start, End::Excluded(text)));
                start = End::Excluded(text);
            }
            ranges.push(KeyRange::Bytes(start, End::Unbounded));
            ranges
        }
        _ => return None,
    })
}

/// True when all values of a range are equal.
pub(super) fn is_point(range: &KeyRange<'_>) -> bool {
    match range {
        KeyRange::Null => true,
        KeyRange::NotNull => false,
        KeyRange::Keys(least, greatest) => least == greatest,
        KeyRange::Bytes(End::Included(least), End::Included(greatest)) => least == greatest,
        KeyRange::Bytes(..) => false,
    }
}

fn keys<'a>(least: Key, greatest: Key) -> impl Iterator<Item = KeyRange<'a>> {
    (least <= greatest).then_some(KeyRange::Keys(least, greatest)).into_iter()
}

/// Sorted keys as ranges of neighbours.
fn coalesced<'a>(sorted: &[Key]) -> Vec<KeyRange<'a>> {
    let neighbours = sorted.chunk_by(|a, b| b.saturating_sub(*a) <= 1);
    let ends = neighbours.filter_map(|chunk| Some((*chunk.first()?, *chunk.last()?)));
    ends.flat_map(|(least, greatest)| keys(least, greatest)).collect()
}

/// What a type has outside of sorted ranges.
fn outside<'a>(
    data_type: DataType,
    excluded: impl Iterator<Item = (Key, Key)>,
) -> Vec<KeyRange<'a>> {
    let (mut next, type_greatest) = bounds(data_type);
    let mut ranges = Vec::new();
    for (least, greatest) in excluded.filter(|(least, greatest)| least <= greatest) {
        ranges.extend(keys(next, least - 1));
        next = next.max(greatest + 1);
    }
    ranges.extend(keys(next, type_greatest));
    ranges
}

/// A range of texts, if any text may lie in it.
fn texts<'a>(least: End<&'a [u8]>, greatest: End<&'a [u8]>) -> impl Iterator<Item = KeyRange<'a>> {
    let is_empty = match (least, greatest) {
        (End::Included(least), End::Included(greatest)) => least > greatest,
        (End::Included(least) | End::Excluded(least), End::Excluded(greatest))
        | (End::Excluded(least), End::Included(greatest)) => least >= greatest,
        (End::Unbounded, End::Excluded(greatest)) => greatest.is_empty(),
        _ => false,
    };
    (!is_empty).then_some(KeyRange::Bytes(least, greatest)).into_iter()
}

fn distinct(sorted: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    sorted.chunk_by(|a, b| a == b).filter_map(|equal| equal.first().map(Vec::as_slice))
}

/// The end of the texts that lie before a range.
fn before(least: &End<Vec<u8>>) -> Option<End<&[u8]>> {
    match least {
        End::Unbounded => None,
        End::Included(least) if least.is_empty() => None,
        End::Included(least) => Some(End::Excluded(least)),
        End::Excluded(least) => Some(End::Included(least)),
    }
}

/// The start of the texts that lie past a range.
fn after(greatest: &End<Vec<u8>>) -> Option<End<&[u8]>> {
    match greatest {
        End::Unbounded => None,
        End::Included(greatest) => Some(End::Excluded(greatest)),
        End::Excluded(greatest) => Some(End::Included(greatest)),
    }
}
