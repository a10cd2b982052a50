//! Which rows of a segment live: see [`delete_bitmap`](super::delete_bitmap).

use std::ops::Range;

use super::Segment;
use super::delete_bitmap::WORD_ROWS;
use crate::visibility::is_deleted_at;

impl Segment {
    /// Which of some rows, all of them created by commit `at`, had not died by then: `None` when
    /// that is so of each, else one bit a row.
    pub(crate) fn alive(&self, rows: Range<usize>, at: u64) -> Option<Vec<u64>> {
        let mut words: Option<Vec<u64>> = None;
        for (i, first) in rows.clone().step_by(WORD_ROWS).enumerate() {
            let mut dead = self.delete_bitmap.from(first);
            while dead != 0 {
                let row = first + dead.trailing_zeros() as usize;
                dead &= dead - 1;
                if row >= rows.end || !is_deleted_at(self.deleted(row), at) {
                    continue;
                }
                let words = words.get_or_insert_with(|| all(rows.len()));
                if let Some(word) = words.get_mut(i) {
                    *word &= !(1 << (row - first));
                }
            }
        }
        words
    }
}

/// One bit for each of so many rows.
fn all(rows: usize) -> Vec<u64> {
    let mut words = vec![u64::MAX; rows.div_ceil(WORD_ROWS)];
    let past = (WORD_ROWS - rows % WORD_ROWS) % WORD_ROWS;
    words.last_mut().into_iter().for_each(|word| *word >>= past);
    words
}

#[cfg(test)]
mod tests {
    use crate::segment::delete_bitmap::DeleteBitmap;

    #[test]
    fn bits_are_found_from_any_row_on() {
        let dead = DeleteBitmap::default();
        assert!(!dead.has(5) && dead.from(3) == 0);
        let rows = [0, 5, 63, 64, 130, 199];
        rows.iter().for_each(|row| dead.mark(*row, 200));
        for row in 0..200 {
            assert_eq!(dead.has(row), rows.contains(&row), "{row}");
            let bits = (0..64).filter(|i| rows.contains(&(row + i)));
            assert_eq!(dead.from(row), bits.fold(0, |word, i| word | 1 << i), "{row}");
        }
    }
}
