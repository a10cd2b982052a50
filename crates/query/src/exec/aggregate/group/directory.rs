//! Where the groups of some keys are: see `many_groups`.

use esker_format::HashIndex;

use super::Groups;
use super::many_groups::Home;

/// How many directories there are, as a power of two.
const DIRECTORY_BITS: u32 = 6;
pub(super) const DIRECTORIES: usize = 1 << DIRECTORY_BITS;

/// The directory of a hash.
#[allow(clippy::cast_possible_truncation, reason = "a directory is named by few bits")]
pub(super) fn directory_of(hash: u64) -> usize {
    (hash >> (u64::BITS - DIRECTORY_BITS)) as usize
}

/// Where a group is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) home: u32,
    pub(super) at: u32,
}

/// The groups of a morsel by directory: those of directory `d` are from `starts[d]` on.
pub(super) struct Sorted {
    starts: Vec<usize>,
    groups: Vec<(u64, u32)>,
}

impl Sorted {
    pub(super) fn of(groups: &Groups<'_>) -> Self {
        let hashes = groups.table.hashes();
        let mut starts = vec![0usize; DIRECTORIES + 1];
        for hash in hashes {
            if let Some(start) = starts.get_mut(directory_of(*hash) + 1) {
                *start += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let (mut next, mut sorted) = (starts.clone(), vec![(0, 0); hashes.len()]);
        for (number, hash) in (0u32..).zip(hashes) {
            if let Some(at) = next.get_mut(directory_of(*hash)) {
                sorted.get_mut(*at).into_iter().for_each(|to| *to = (*hash, number));
                *at += 1;
            }
        }
        Self { starts, groups: sorted }
    }

    fn of_directory(&self, index: usize) -> &[(u64, u32)] {
        let place = |at: usize| self.starts.get(at).copied().unwrap_or_default();
        self.groups.get(place(index)..place(index + 1)).unwrap_or_default()
    }
}

/// The keys of one share of the hashes.
#[derive(Debug, Default)]
pub(super) struct Directory {
    index: HashIndex,
    /// Of the keys that have a home, by their numbers.
    pub(super) places: Vec<Place>,
}

impl Directory {
    pub(super) fn bytes(&self) -> usize {
        self.index.bytes() + self.places.capacity() * size_of::<Place>()
    }

    /// The numbers of the keys of this directory that some morsels have, in their order; new ones
    /// for those that it has not met.
    pub(super) fn look_up(
        &mut self,
        own: usize,
        others: &[Groups<'_>],
        sorted: &[Sorted],
        homes: &[Home],
    ) -> Vec<u32> {
        let most: usize = sorted.iter().map(|sorted| sorted.of_directory(own).len()).sum();
        self.index.reserve(most);
        let known = self.places.len();
        let is_told = others.iter().all(|other| other.table.keys().are_told_by_hash())
            && homes.iter().all(|home| home.keys.are_told_by_hash());
        let key_of = |(morsel, group): (usize, u32)| {
            others.get(morsel).map_or(&[][..], |other| other.table.key(group as usize))
        };
        // The morsel of each new key, and its number there.
        let mut fresh: Vec<(usize, u32)> = Vec::with_capacity(most);
        let mut numbers = Vec::with_capacity(most);
        for (morsel, sorted) in sorted.iter().enumerate() {
            for (hash, group) in sorted.of_directory(own) {
                let at_hand = (morsel, *group);
                let is_it = |number: usize| match self.places.get(number) {
                    _ if is_told => true,
                    Some(place) => homes
                        .get(place.home as usize)
                        .is_some_and(|home| home.keys.get(place.at as usize) == key_of(at_hand)),
                    None => {
                        let met = fresh.get(number - known);
                        met.is_some_and(|met| key_of(*met) == key_of(at_hand))
                    }
                };
                numbers.push(match self.index.locate(*hash, is_it) {
                    Ok(number) => number,
                    Err(slot) => {
                        fresh.push(at_hand);
                        self.index.insert(slot, *hash)
                    }
                });
            }
        }
        numbers
    }
}
