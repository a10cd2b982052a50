//! Where an order goes on: only rows after some row, by the keys of the order.
//!
//! Keys as bytes decide, the same that rows are sorted by; so a page begins exactly where the one
//! before it ended, whatever NULLs, directions and floats are among the keys. What else is known
//! of the first key only saves work: a condition for zone maps, and the entry of a run
//! at which a walk begins.

use esker_format::{DataType, Value};

use crate::bind::sort_key::encode_value;
use crate::bound::{Bound, Comparison, Node, OrderKey};

/// A row of an order, by the values of its keys.
#[derive(Clone, Debug)]
pub(crate) struct Keyset {
    pub(crate) values: Vec<Value>,
    key: Vec<u8>,
}

impl Keyset {
    /// One value for each key.
    pub(crate) fn new(values: Vec<Value>, order: &[OrderKey]) -> Self {
        let mut key = Vec::new();
        for (value, order) in values.iter().zip(order) {
            encode_value(&mut key, order, order.bound.data_type(), value.as_ref());
        }
        Self { values, key }
    }

    /// True for the key of a row that comes later.
    pub(crate) fn is_before(&self, key: &[u8]) -> bool {
        self.key.as_slice() < key
    }

    /// What holds of the first key in all rows that come later; `None` when that is nothing that
    /// zone maps know.
    pub(crate) fn condition(&self, order: &[OrderKey]) -> Option<Bound> {
        side(order.first()?, self.values.first()?, true)
    }
}

/// What holds of the first key of an order in all rows that come after a value of it, or
/// (`is_after` false) before; both are true of the value. `None` when that is nothing that zone
/// maps know.
pub(crate) fn side(key: &OrderKey, value: &Value, is_after: bool) -> Option<Bound> {
    let data_type = key.bound.data_type();
    let is_field = matches!(key.bound.node, Node::Field(_));
    if !is_field || matches!(data_type, DataType::Json | DataType::Enum) {
        return None;
    }
    let bool_of = |node| Bound::new(node, DataType::Bool);
    let is_null = || bool_of(Node::IsNull(Box::new(key.bound.clone())));
    let with_nulls = key.nulls_first != is_after;
    if value.is_null() {
        return with_nulls.then(is_null);
    }
    let comparison = if key.descending == is_after { Comparison::Lte } else { Comparison::Gte };
    let literal = Bound::new(Node::Literal(value.clone()), data_type);
    let sides = (Box::new(key.bound.clone()), Box::new(literal));
    let is_there = bool_of(Node::Compare(comparison, sides.0, sides.1));
    Some(match with_nulls {
        false => is_there,
        true => bool_of(Node::Or(vec![is_there, is_null()])),
    })
}
