//! Which rows of a batch are still in: one bit per row.

use esker_format::Validity;

use crate::{Result, ZONE_ROWS};

const WORDS: usize = ZONE_ROWS / 64;

/// A set of rows of a batch of at most [`ZONE_ROWS`] rows. Bits past the end are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask {
    words: [u64; WORDS],
    len: usize,
}

impl Mask {
    /// No row of `len`.
    pub(crate) fn none(len: usize) -> Self {
        Self { words: [0; WORDS], len: len.min(ZONE_ROWS) }
    }

    /// All rows of `len`.
    pub(crate) fn all(len: usize) -> Self {
        let mut mask = Self::none(len);
        let mut left = mask.len;
        for word in &mut mask.words {
            *word = low_bits(left);
            left = left.saturating_sub(64);
        }
        mask
    }

    /// The rows whose bits are set in `bits`.
    pub(crate) fn from_words(bits: &[u64], len: usize) -> Self {
        let mut mask = Self::all(len);
        let given = bits.iter().copied().chain(std::iter::repeat(0));
        mask.words.iter_mut().zip(given).for_each(|(word, bits)| *word &= bits);
        mask
    }

    /// The rows that are not NULL.
    pub(crate) fn valid(validity: &Validity<'_>, len: usize) -> Self {
        let mut mask = Self::all(len);
        match validity {
            Validity::AllValid => {}
            Validity::NullBytes(bytes) => mask.retain(bytes, |null| null == 0),
            Validity::ValidBits { bits, offset } => {
                for (i, word) in mask.words_mut().iter_mut().enumerate() {
                    let rest = bits.get(i * 8..).unwrap_or_default();
                    *word &= unaligned_word(rest, *offset);
                }
            }
        }
        mask
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The words that rows of the batch fall in.
    pub(crate) fn words(&self) -> &[u64] {
        self.words.get(..self.len.div_ceil(64)).unwrap_or_default()
    }

    fn words_mut(&mut self) -> &mut [u64] {
        self.words.get_mut(..self.len.div_ceil(64)).unwrap_or_default()
    }

    /// Whether a row is in.
    pub(crate) fn contains(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    pub(crate) fn count(&self) -> usize {
        self.words().iter().map(|w| w.count_ones() as usize).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words().iter().all(|w| *w == 0)
    }

    pub(crate) fn is_all(&self) -> bool {
        self.count() == self.len
    }

    pub(crate) fn clear(&mut self) {
        self.words = [0; WORDS];
    }

    /// Keeps what the other has too.
    pub(crate) fn and(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    /// Adds what the other has.
    pub(crate) fn or(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Removes what the other has.
    pub(crate) fn and_not(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
    }

    /// Keeps the rows whose values pass. Words without a row are not looked at.
    pub(crate) fn retain<T: Copy>(&mut self, values: &[T], test: impl Fn(T) -> bool + Copy) {
        let (chunks, rest) = values.as_chunks::<64>();
        for (word, chunk) in self.words.iter_mut().zip(chunks) {
            if *word != 0 {
                *word &= word_of(chunk, test);
            }
        }
        if let Some(word) = self.words.get_mut(chunks.len()) {
            let bits =
                rest.iter().enumerate().fold(0, |bits, (i, v)| bits | u64::from(test(*v)) << i);
            *word &= bits;
        }
    }

    /// What is kept of each word that has a row, by its number.
    pub(crate) fn retain_words(&mut self, mut kept: impl FnMut(usize, u64) -> u64) {
        for (i, word) in self.words_mut().iter_mut().enumerate() {
            if *word != 0 {
                *word &= kept(i, *word);
            }
        }
    }

    /// One bit for each value.
    pub(crate) fn word(values: &[bool; 64]) -> u64 {
        word_of(values, |value| value)
    }

    /// Keeps the rows whose numbers pass.
    pub(crate) fn retain_rows(&mut self, mut test: impl FnMut(usize) -> bool) {
        for (i, word) in self.words_mut().iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                if !test(i * 64 + left.trailing_zeros() as usize) {
                    *word ^= bit;
                }
                left ^= bit;
            }
        }
    }

    /// Leaves only the rows that pass a test, up to the first failure.
    ///
    /// # Errors
    /// The failure.
    pub(crate) fn try_retain_rows(
        &mut self,
        mut test: impl FnMut(usize) -> Result<bool>,
    ) -> Result<()> {
        for (i, word) in self.words_mut().iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left & left.wrapping_neg();
                if !test(i * 64 + left.trailing_zeros() as usize)? {
                    *word ^= bit;
                }
                left ^= bit;
            }
        }
        Ok(())
    }

    /// Puts a row in.
    pub(crate) fn insert(&mut self, row: usize) {
        if row < self.len
            && let Some(word) = self.words.get_mut(row / 64)
        {
            *word |= 1 << (row % 64);
        }
    }

    /// Calls `visit` with every row that is in.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (i, word) in self.words().iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                visit(i * 64 + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    /// The rows that are in, ascending.
    #[allow(clippy::cast_possible_truncation, reason = "a batch has at most 8,192 rows")]
    pub(crate) fn rows(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.count());
        self.for_each(|row| rows.push(row as u32));
        rows
    }

    /// Removes the first `count` of the rows that are in; how many were removed.
    pub(crate) fn drop_first(&mut self, count: usize) -> usize {
        let mut left = count;
        self.retain_rows(|_| {
            let keep = left == 0;
            left = left.saturating_sub(1);
            keep
        });
        count - left
    }

    /// Leaves only the first `count` of the rows that are in.
    pub(crate) fn truncate(&mut self, count: usize) {
        let mut left = count;
        self.retain_rows(|_| {
            let keep = left > 0;
            left = left.saturating_sub(1);
            keep
        });
    }
}

/// The lowest `count` bits (64 at most).
fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The 64 bits that start `offset` bits (0 to 7) into `bytes`; zeros past the end.
fn unaligned_word(bytes: &[u8], offset: usize) -> u64 {
    let mut sixteen = [0u8; 16];
    for (to, from) in sixteen.iter_mut().take(9).zip(bytes) {
        *to = *from;
    }
    let wide = u128::from_le_bytes(sixteen) >> offset;
    (wide & u128::from(u64::MAX)).try_into().unwrap_or_default()
}

/// One bit per value, set where it passes. The first loop becomes vector compares that leave a
/// byte per value; the multiplication moves eight bytes of 0 or 1 into eight bits.
fn word_of<T: Copy>(chunk: &[T; 64], test: impl Fn(T) -> bool) -> u64 {
    let mut passed = [0u8; 64];
    for (to, value) in passed.iter_mut().zip(chunk) {
        *to = u8::from(test(*value));
    }
    let (eights, _) = passed.as_chunks::<8>();
    let mut word = 0;
    for (i, eight) in eights.iter().enumerate() {
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (8 * i);
    }
    word
}

#[cfg(test)]
mod tests;
