//! Random numbers from a seed.

/// Who is asked beside Esker: what is drawn is what both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beside {
    #[default]
    Sqlite,
    DuckDb,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
    pub(crate) beside: Beside,
}

impl Dice {
    pub(crate) fn new(seed: u64, beside: Beside) -> Self {
        Self { state: seed, beside }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % n).unwrap_or_default()
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn int(&mut self, least: i64, most: i64) -> i64 {
        let span = usize::try_from(most - least + 1).unwrap_or(1);
        least + i64::try_from(self.below(span)).unwrap_or_default()
    }

    /// One of the items; the default of none.
    pub(crate) fn pick<T: Clone + Default>(&mut self, items: &[T]) -> T {
        items.get(self.below(items.len())).cloned().unwrap_or_default()
    }
}
