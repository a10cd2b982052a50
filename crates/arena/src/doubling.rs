//! Numbering things that lie in chunks of doubling size.
//!
//! ```text
//! index  0        F              3F                          7F
//!        | F      | 2F           | 4F                        | 8F …     F = FIRST
//! chunk    0        1              2                           3
//! ```

/// Where an index lies when chunk `k` holds `FIRST << k` things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) chunk: u32,
    /// The chunk's first index.
    pub(crate) start: usize,
    /// How many the chunk holds.
    pub(crate) capacity: usize,
}

impl Place {
    /// The place of `index`, which is below `FIRST << 50`.
    #[inline]
    pub(crate) const fn of<const FIRST: usize>(index: usize) -> Self {
        let chunk = (index / FIRST + 1).ilog2();
        let start = FIRST * ((1 << chunk) - 1);
        Self { chunk, start, capacity: FIRST << chunk }
    }

    #[inline]
    pub(crate) const fn end(self) -> usize {
        self.start + self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn places_cover_every_index_once() {
        let mut start = 0;
        for chunk in 0..20 {
            let capacity = 32 << chunk;
            for index in [start, start + capacity / 2, start + capacity - 1] {
                assert_eq!(Place::of::<32>(index), Place { chunk, start, capacity });
            }
            start += capacity;
        }
    }
}
