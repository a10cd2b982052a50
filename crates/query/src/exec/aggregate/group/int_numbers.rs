//! Group numbers of whole numbers, without writing each as a key.

use super::KeyTable;
use super::code_numbers::UNKNOWN;
use super::encode;
use crate::evaluate::{Lanes, Vector};

/// The group number of each number met: a table with open addressing, at most half full.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntNumbers {
    slots: Vec<(i64, u32)>,
    len: usize,
    null: Option<u32>,
}

impl IntNumbers {
    /// The group number of each row; `None` when the vector is not one of signed integers.
    pub(crate) fn numbers(
        &mut self,
        vector: &Vector<'_>,
        table: &mut KeyTable,
    ) -> Option<Vec<u32>> {
        let Lanes::Ints(values) = &vector.lanes else { return None };
        let mut numbers = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            numbers.push(if vector.is_null(i) {
                *self.null.get_or_insert_with(|| key_number(vector, i, table))
            } else {
                self.number(*value, || key_number(vector, i, table))
            });
        }
        Some(numbers)
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<(i64, u32)>()
    }

    fn number(&mut self, value: i64, make: impl FnOnce() -> u32) -> u32 {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let at = self.find(value);
        match self.slots.get_mut(at) {
            Some((_, number)) if *number != UNKNOWN => *number,
            Some(slot) => {
                *slot = (value, make());
                self.len += 1;
                slot.1
            }
            None => UNKNOWN,
        }
    }

    /// The slot of a number, or the empty one where it belongs.
    fn find(&self, value: i64) -> usize {
        let mask = self.slots.len() - 1;
        let hash = value.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = usize::try_from(hash >> 32).unwrap_or_default() & mask;
        while self.slots.get(at).is_some_and(|(v, number)| *number != UNKNOWN && *v != value) {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(256);
        let old = std::mem::replace(&mut self.slots, vec![(0, UNKNOWN); len]);
        for (value, number) in old.into_iter().filter(|(_, number)| *number != UNKNOWN) {
            let at = self.find(value);
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = (value, number);
            }
        }
    }
}

fn key_number(vector: &Vector<'_>, i: usize, table: &mut KeyTable) -> u32 {
    let mut key = Vec::new();
    encode(&mut key, vector, i);
    table.number(&key)
}
