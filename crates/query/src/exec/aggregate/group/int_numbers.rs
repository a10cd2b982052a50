//! Group numbers of whole numbers, without writing each as a key.

use std::hint::black_box;

use super::KeyTable;
use super::code_numbers::UNKNOWN;
use super::encode;
use crate::evaluate::{Lanes, Vector};

/// How many are looked up at once.
const AT_ONCE: usize = 32;

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
        // Keys may have come by other ways, too.
        let is_alone = self.len + usize::from(self.null.is_some()) == table.len();
        let mut key = Vec::new();
        let mut number_of = |i| {
            key.clear();
            encode(&mut key, vector, i);
            if is_alone { table.push(&key) } else { table.number(&key) }
        };
        let mut numbers = Vec::with_capacity(values.len());
        for (i, value) in values.iter().enumerate() {
            if i.is_multiple_of(AT_ONCE) {
                self.prepare(values.get(i..values.len().min(i + AT_ONCE)).unwrap_or_default());
            }
            numbers.push(if vector.is_null(i) {
                *self.null.get_or_insert_with(|| number_of(i))
            } else {
                self.number(*value, || number_of(i))
            });
        }
        Some(numbers)
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<(i64, u32)>()
    }

    /// Makes room for values, and loads their slots: loads that wait for no other overlap.
    fn prepare(&mut self, values: &[i64]) {
        if (self.len + values.len()) * 2 > self.slots.len() {
            // Small tables are soon full again.
            let more = if self.len < 1 << 14 { 4 } else { 2 };
            self.grow_to((self.slots.len() * more).max(256));
        }
        let near =
            |value: &i64| self.slots.get(self.place(*value)).map_or(0, |(_, number)| *number);
        black_box(values.iter().map(near).fold(0, |all, number| all ^ number));
    }

    /// There is room.
    fn number(&mut self, value: i64, make: impl FnOnce() -> u32) -> u32 {
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

    /// Where a number belongs.
    fn place(&self, value: i64) -> usize {
        let hash = value.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from(hash >> 32).unwrap_or_default() & (self.slots.len() - 1)
    }

    /// The slot of a number, or the empty one where it belongs.
    fn find(&self, value: i64) -> usize {
        let (mask, mut at) = (self.slots.len() - 1, self.place(value));
        while self.slots.get(at).is_some_and(|(v, number)| *number != UNKNOWN && *v != value) {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow_to(&mut self, len: usize) {
        let old = std::mem::replace(&mut self.slots, vec![(0, UNKNOWN); len]);
        for (value, number) in old.into_iter().filter(|(_, number)| *number != UNKNOWN) {
            let at = self.find(value);
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = (value, number);
            }
        }
    }
}
