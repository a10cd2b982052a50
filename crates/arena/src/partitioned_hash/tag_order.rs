//! Sorting the entries of a partition.
#![allow(clippy::indexing_slicing, reason = "both indices are below the length, by the loops")]

/// Moves for each entry that insertion may cost before another sort is cheaper.
const MOST_MOVES: usize = 16;

/// Sorts by tag. In line order entries are a few places from where they belong, so insertion does
/// it in a few moves each; where it does not (equal tags by the thousand), an ordinary sort goes
/// on.
pub(super) fn sort_by_tag(entries: &mut [(u32, u64)]) {
    let mut moves = MOST_MOVES * entries.len();
    for index in 1..entries.len() {
        let entry = entries[index];
        let mut place = index;
        while place > 0 && entries[place - 1].0 > entry.0 {
            entries[place] = entries[place - 1];
            place -= 1;
        }
        entries[place] = entry;
        let moved = index - place;
        if moved > moves {
            entries.sort_unstable_by_key(|entry| entry.0);
            return;
        }
        moves -= moved;
    }
}

#[cfg(test)]
mod tests {
    use super::sort_by_tag;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_anything(
            tags in prop::collection::vec(any::<u32>(), 0..300),
            nearly in prop::collection::vec((0u32..40, any::<u64>()), 0..300),
        ) {
            let far: Vec<(u32, u64)> = tags.iter().map(|tag| (*tag, u64::from(!tag))).collect();
            let near: Vec<(u32, u64)> =
                (0..).zip(&nearly).map(|(base, (jitter, value))| (base + jitter, *value)).collect();
            for entries in [far, near] {
                let (mut sorted, mut expected) = (entries.clone(), entries);
                sort_by_tag(&mut sorted);
                prop_assert!(sorted.is_sorted_by_key(|entry| entry.0));
                sorted.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(sorted, expected);
            }
        }
    }
}
