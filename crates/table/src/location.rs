//! Where a row version stands.

/// The most rows a row group may have: the row number takes 22 bits.
pub const ROW_GROUP_ROWS_MAX: usize = 1 << 22;

const ROW_BITS: u32 = 22;

/// A row group (an open group or a segment) and a row in it, in one word that is never zero.
///
/// Unit numbers are never reused, so a location names the same version for ever; when the row group
/// has been merged away, its forwarding table says where the version went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location(u64);

impl Location {
    /// A row of a row group. `row_group` is above zero and below 2⁴⁰.
    #[must_use]
    pub fn new(row_group: u64, row: usize) -> Self {
        debug_assert!(
            row_group > 0 && row_group < 1 << 40,
            "unit number {row_group} does not fit 40 bits"
        );
        debug_assert!(row < ROW_GROUP_ROWS_MAX, "row {row} does not fit 22 bits");
        Self(row_group << ROW_BITS | row as u64)
    }

    /// The location in a word; `None` for zero.
    #[must_use]
    pub fn from_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self(word))
    }

    /// The word.
    #[must_use]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The row group's number.
    #[must_use]
    pub fn row_group(self) -> u64 {
        self.0 >> ROW_BITS
    }

    /// The row's number in its row group.
    #[must_use]
    pub fn row(self) -> usize {
        // default: 22 bits always fit
        usize::try_from(self.0 & ((1 << ROW_BITS) - 1)).unwrap_or_default()
    }
}

/// A row's number as sparse words take it.
pub(crate) fn row_word(row: usize) -> u32 {
    // default: a row that nothing is known of, and that sparse words refuse
    u32::try_from(row).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::Location;

    #[test]
    fn packs_row_group_and_row() {
        let location = Location::new((1 << 40) - 1, (1 << 22) - 1);
        assert_eq!((location.row_group(), location.row()), ((1 << 40) - 1, (1 << 22) - 1));
        assert_eq!(Location::from_word(location.word()), Some(location));
        assert_eq!(Location::from_word(0), None);
    }
}
