//! Where the rows of a row group went that a rewrite has taken out of its table: known until
//! everybody who names the row group has been led on.
//!
//! Of a row group few of whose rows are left, such as a group in which the same rows were changed
//! again and again, only these are listed.

use std::collections::BTreeSet;

use crate::location::{Location, row_word};

/// Rows and the words of locations, by rising row.
pub type RowWords = Vec<(u32, u64)>;

/// Where the rows of a row group went.
pub struct Forwarding {
    /// The row group that is gone.
    pub row_group: u64,
    targets: Targets,
    /// The row groups that the rows went to, by rising number.
    leads_to: Vec<u64>,
    /// For versions that no snapshot sees though some are older: what they had replaced.
    older: RowWords,
}

enum Targets {
    /// Per row the word of its new location, 0 for a version that was dropped.
    All(Vec<u64>),
    /// Of the rows that were kept.
    Kept(RowWords),
}

impl Forwarding {
    /// `targets` has the word of the new location for each row, 0 for a version that was dropped;
    /// `older`, for some of these, where the versions are that they lead back to.
    #[must_use]
    pub fn new(row_group: u64, targets: Vec<u64>, mut older: RowWords) -> Self {
        older.shrink_to_fit();
        let leads_to = row_groups_of(&targets);
        let kept = targets.iter().filter(|word| **word != 0).count();
        // A pair takes as much as two words.
        let targets = match kept < targets.len() / 2 {
            true => Targets::Kept(
                (0..).zip(targets).filter(|(_, word): &(u32, u64)| *word != 0).collect(),
            ),
            false => Targets::All(targets),
        };
        Self { row_group, targets, leads_to, older }
    }

    /// The row groups that rows went to, by rising number.
    pub(crate) fn leads_to(&self) -> &[u64] {
        &self.leads_to
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        let targets = match &self.targets {
            Targets::All(words) => size_of_val(words.as_slice()),
            Targets::Kept(rows) => size_of_val(rows.as_slice()),
        };
        (targets + size_of_val(self.older.as_slice())) as u64
    }

    /// Where a row went; `None` for a version that was dropped.
    #[must_use]
    pub fn target(&self, row: usize) -> Option<Location> {
        match &self.targets {
            Targets::All(words) => words.get(row).and_then(|word| Location::from_word(*word)),
            Targets::Kept(rows) => word_of(rows, row),
        }
    }

    /// What a version that was dropped leads back to, where somebody may be led to it.
    #[must_use]
    pub fn older(&self, row: usize) -> Option<Location> {
        word_of(&self.older, row)
    }
}

/// The row groups that words of locations name, by rising number.
fn row_groups_of(words: &[u64]) -> Vec<u64> {
    let (mut row_groups, mut last) = (BTreeSet::new(), 0);
    for row_group in
        words.iter().filter_map(|word| Location::from_word(*word)).map(Location::row_group)
    {
        if row_group != last {
            row_groups.insert(row_group);
            last = row_group;
        }
    }
    row_groups.into_iter().collect()
}

fn word_of(rows: &[(u32, u64)], row: usize) -> Option<Location> {
    let row = row_word(row);
    let at = rows.binary_search_by_key(&row, |(row, _)| *row).ok()?;
    rows.get(at).and_then(|(_, word)| Location::from_word(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_and_many_are_found_alike() {
        let word = |row: usize| Location::new(9, row).word();
        for every in [1, 2, 3, 50] {
            let target = |row: usize| if row.is_multiple_of(every) { word(row) } else { 0 };
            let older = vec![(1, word(77)), (51, word(78))];
            let forwarding = Forwarding::new(3, (0..100).map(target).collect(), older);
            for row in 0..120 {
                let expected = if row < 100 { Location::from_word(target(row)) } else { None };
                assert_eq!(forwarding.target(row), expected, "row {row} of each {every}");
            }
            let older = [0, 1, 50, 51, 52].map(|row| forwarding.older(row).map(Location::row));
            assert_eq!(older, [None, Some(77), None, Some(78), None]);
        }
    }
}
