//! Every value of every group, in order at the end: texts one after another, items of a list,
//! the most frequent value, the value at a place.

use std::collections::BTreeSet;

use esker_format::{DataType, ListBuilder, Value, ValueRef};

use crate::evaluate::{Lanes, Vector, keys_of, value_of};
use crate::model::Aggregate;
use crate::{Error, Result};

/// The ranked values of one group, one behind the other.
#[derive(Clone, Debug, Default)]
struct List {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl List {
    fn push(&mut self, ranked: &[u8]) {
        self.bytes.extend_from_slice(ranked);
        self.ends.push(self.bytes.len());
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(*start..*end).unwrap_or_default())
    }
}

/// The values of each group.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    function: Aggregate,
    is_distinct: bool,
    lists: Vec<List>,
}

impl Listed {
    pub(super) fn new(function: Aggregate, is_distinct: bool) -> Self {
        Self { function, is_distinct, lists: Vec::new() }
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.lists.resize(groups, List::default());
    }

    /// Adds rows in their order, each to its group.
    pub(super) fn update(&mut self, groups: &[u32], vector: &Vector<'_>) {
        let Lanes::Bytes(ranked) = &vector.lanes else { return };
        let known = groups.iter().zip(ranked).enumerate().filter(|(i, _)| !vector.is_null(*i));
        for (_, (group, ranked)) in known {
            if let Some(list) = self.lists.get_mut(*group as usize) {
                list.push(ranked);
            }
        }
    }

    /// Adds those of later rows.
    pub(super) fn merge(&mut self, later: &Self, pairs: &[(u32, u32)]) {
        super::group_pairs::each(&mut self.lists, &later.lists, pairs, |into, list| {
            list.values().for_each(|ranked| into.push(ranked));
        });
    }

    /// The result of a group; NULL when it has no value.
    ///
    /// # Errors
    /// `OutOfRange` when a list becomes longer than a value may be.
    pub(super) fn value(&self, group: usize, data_type: DataType) -> Result<Value> {
        let Some(list) = self.lists.get(group).filter(|list| !list.ends.is_empty()) else {
            return Ok(Value::Null);
        };
        let mut values: Vec<&[u8]> = list.values().collect();
        // Of equal keys, the order of the rows.
        values.sort_by(|a, b| keys_of(a).cmp(keys_of(b)));
        Ok(match self.function {
            Aggregate::StringAgg => Value::Text(self.joined(&values)),
            Aggregate::ArrayConcatAgg => self.listed(&values, data_type)?,
            Aggregate::Mode => most_frequent(&values, data_type),
            Aggregate::PercentileDisc { millionths } => {
                // The first value at or above that part of them.
                let count = values.len() as u128;
                let place = (count * u128::from(millionths)).div_ceil(1_000_000).max(1) - 1;
                let found = usize::try_from(place).ok().and_then(|place| values.get(place));
                found.map_or(Value::Null, |ranked| value_of(ranked, data_type).to_owned())
            }
            _ => Value::Null,
        })
    }

    /// The texts, with the separator of each but the first before it.
    fn joined(&self, values: &[&[u8]]) -> String {
        let (mut out, mut met) = (Vec::new(), BTreeSet::new());
        for (i, ranked) in values.iter().enumerate() {
            let beside = value_of(ranked, DataType::Bytes);
            let beside = beside.as_bytes().unwrap_or_default();
            let text = value_of(beside, DataType::Text);
            let text = text.as_bytes().unwrap_or_default();
            if self.is_distinct && !met.insert(text) {
                continue;
            }
            if i > 0 {
                add_separator(keys_of(beside), &mut out);
            }
            out.extend_from_slice(text);
        }
        // default: texts in UTF-8, one after another, are a text in UTF-8
        String::from_utf8(out).unwrap_or_default()
    }

    /// The items of lists, one list behind the other.
    fn listed(&self, values: &[&[u8]], data_type: DataType) -> Result<Value> {
        let (mut made, mut met) = (None, BTreeSet::new());
        for ranked in values {
            let ValueRef::List(list) = value_of(ranked, data_type) else { continue };
            let list = esker_format::List::of(list)?;
            let made = made.get_or_insert_with(|| ListBuilder::new(list.element()));
            for item in list.items() {
                let item = item?;
                if !self.is_distinct || met.insert(item) {
                    made.push_item(item).map_err(|e| Error::out_of_range(e.to_string()))?;
                }
            }
        }
        Ok(made.map_or(Value::Null, ListBuilder::finish))
    }

    pub(super) fn bytes(&self) -> usize {
        let of_lists =
            self.lists.iter().map(|list| list.bytes.capacity() + list.ends.capacity() * 8);
        self.lists.capacity() * size_of::<List>() + of_lists.sum::<usize>()
    }
}

/// A text that is written as a key: a byte for whether it is NULL, then the text with 0 as 0, 255,
/// then 0, 0.
fn add_separator(key: &[u8], out: &mut Vec<u8>) {
    let Some((1, text)) = key.split_first() else { return };
    let text = text.strip_suffix(&[0, 0]).unwrap_or(text);
    let mut was_zero = false;
    for byte in text {
        if !(was_zero && *byte == u8::MAX) {
            out.push(*byte);
        }
        was_zero = *byte == 0;
    }
}

/// The value that occurs most often; of several, the first in order.
fn most_frequent(sorted: &[&[u8]], data_type: DataType) -> Value {
    let (mut best, mut most) = (None, 0);
    for equal in sorted.chunk_by(|a, b| keys_of(a) == keys_of(b)) {
        if equal.len() > most {
            (best, most) = (equal.first(), equal.len());
        }
    }
    best.map_or(Value::Null, |ranked| value_of(ranked, data_type).to_owned())
}
