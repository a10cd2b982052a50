//! Many groups: all threads merge at once, and what is merged stays where it is.
//!
//! Each morsel has its groups in the order in which its rows met them. Those that no earlier morsel
//! has make a *home*; the groups of the query are those of all homes, one home after the other.
//! What a later morsel has of the same groups is added to their home. *Directories* know which key
//! is in which home: one for each share of the hashes, so that each fits a cache and all threads
//! look up at once.
//!
//! ```text
//! morsels    a b c       c d b e          homes    a b c | d e
//!                        │   └─ to b      directory 0    a: 0.0  c: 0.2  e: 1.1
//!                        └───── to c      directory 1    b: 0.1  d: 1.0
//! ```
//!
//! Invariants
//! 1. A key is in the directory that the highest bits of its hash name, and in no other.
//! 2. A directory numbers its keys as they are first met: numbers from `known` on are of the
//!    morsels at hand.
//! 3. Homes are in the order of the morsels: the order of groups depends on the rows only.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use esker_format::{Batch, KeyList};
use esker_vfs::parallel_map;

use super::directory::{DIRECTORIES, Directory, Place, Sorted, directory_of};
use super::{Groups, batch, in_batches};
use crate::bind::Stage;
use crate::exec::aggregate::Accumulator;
use crate::{Options, Result};

/// Groups of some of the rows.
#[derive(Debug)]
pub(super) struct ManyGroups<'s> {
    stage: &'s Stage,
    directories: Vec<Mutex<Directory>>,
    homes: Vec<Home>,
    len: usize,
}

/// Groups that one morsel met first.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) keys: KeyList,
    accumulators: Mutex<Vec<Accumulator>>,
    /// How many groups come before them.
    start: usize,
}

/// Where the groups of a morsel go.
struct Split {
    /// Those that are new, as the morsel numbers them.
    new: Vec<u32>,
    /// Those of each home, and what they are there.
    known: Vec<Vec<(u32, u32)>>,
}

impl<'s> ManyGroups<'s> {
    pub(super) fn new(stage: &'s Stage) -> Self {
        let directories = std::iter::repeat_with(Mutex::default).take(DIRECTORIES).collect();
        Self { stage, directories, homes: Vec::new(), len: 0 }
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        let of_home = |home: &Home| {
            let accumulators = home.accumulators.lock().unwrap_or_else(PoisonError::into_inner);
            home.keys.bytes() + accumulators.iter().map(Accumulator::bytes).sum::<usize>()
        };
        let of_directory = |directory: &Mutex<Directory>| {
            directory.lock().unwrap_or_else(PoisonError::into_inner).bytes()
        };
        self.homes.iter().map(of_home).sum::<usize>()
            + self.directories.iter().map(of_directory).sum::<usize>()
    }

    /// Adds the groups of later rows, in their order.
    ///
    /// # Errors
    /// When the query is to end.
    pub(super) fn merge(&mut self, others: Vec<Groups<'s>>, options: &Options) -> Result<()> {
        let sorted = parallel_map(&*options.tasks, &others, Sorted::of);
        let directories: Vec<_> = self.directories.iter().enumerate().collect();
        let numbers = parallel_map(&*options.tasks, &directories, |(index, directory)| {
            options.expect_time_left()?;
            let mut directory = directory.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(directory.look_up(*index, &others, &sorted, &self.homes))
        });
        drop(directories);
        let splits = self.split(&others, numbers.into_iter().collect::<Result<_>>()?);
        let of_others: Vec<_> = others.iter().zip(&splits).collect();
        let homes = parallel_map(&*options.tasks, &of_others, |(other, split)| {
            (split.new.len() < other.table.len()).then(|| home_of(other, &split.new))
        });
        drop(of_others);
        let mut merged = Vec::new();
        for ((other, split), home) in others.into_iter().zip(splits).zip(homes) {
            let (keys, accumulators) = match home {
                Some(home) => {
                    merged.push((other.accumulators, split.known));
                    home
                }
                None => (other.table.into_keys(), other.accumulators),
            };
            let (accumulators, start) = (Mutex::new(accumulators), self.len);
            self.len += keys.len();
            self.homes.push(Home { keys, accumulators, start });
        }
        let homes: Vec<_> = self.homes.iter().enumerate().collect();
        parallel_map(&*options.tasks, &homes, |(index, home)| {
            let mut into = home.accumulators.lock().unwrap_or_else(PoisonError::into_inner);
            for (from, known) in &merged {
                let pairs = known.get(*index).map_or(&[][..], Vec::as_slice);
                into.iter_mut().zip(from).for_each(|(into, from)| into.merge(from, pairs));
            }
        });
        Ok(())
    }

    /// Gives those groups that are new their place. `numbers` has what each directory has found.
    fn split(&mut self, others: &[Groups<'_>], numbers: Vec<Vec<u32>>) -> Vec<Split> {
        let directories = self.directories.iter_mut();
        let directories = directories.map(|d| d.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut cursors: Vec<_> =
            numbers.into_iter().map(Vec::into_iter).zip(directories).collect();
        let mut splits = Vec::with_capacity(others.len());
        for (other, home) in others.iter().zip(self.homes.len()..) {
            let mut split = Split { new: Vec::new(), known: vec![Vec::new(); home] };
            for (group, hash) in (0u32..).zip(other.table.hashes()) {
                let Some((numbers, directory)) = cursors.get_mut(directory_of(*hash)) else {
                    continue;
                };
                let number = numbers.next().unwrap_or_default() as usize;
                match directory.places.get(number) {
                    None => {
                        let at = u32::try_from(split.new.len()).unwrap_or(u32::MAX);
                        let home = u32::try_from(home).unwrap_or(u32::MAX);
                        directory.places.push(Place { home, at });
                        split.new.push(group);
                    }
                    Some(place) => {
                        let known = split.known.get_mut(place.home as usize);
                        known.into_iter().for_each(|known| known.push((group, place.at)));
                    }
                }
            }
            splits.push(split);
        }
        splits
    }

    /// The groups as rows: the keys, then the aggregates.
    ///
    /// # Errors
    /// `OutOfRange` when a sum does not fit its type; when the query is to end.
    pub(super) fn finish(self, options: &Options) -> Result<Vec<Batch>> {
        let unlocked = |home: Home| {
            let accumulators = home.accumulators.into_inner();
            (home.start, home.keys, accumulators.unwrap_or_else(PoisonError::into_inner))
        };
        let homes: Vec<_> = self.homes.into_iter().map(unlocked).collect();
        in_batches(self.len, options, |range: Range<usize>| {
            let first = homes.partition_point(|(start, ..)| *start <= range.start);
            // The home of each group, those of one home next to each other.
            let mut groups = Vec::with_capacity(range.len());
            for (start, keys, accumulators) in homes.get(first.saturating_sub(1)..).unwrap_or(&[]) {
                let here = range.start.max(*start)..range.end.min(start + keys.len());
                groups.extend(here.map(|group| (keys, accumulators, group - start)));
                if groups.len() >= range.len() {
                    break;
                }
            }
            let key = |i: usize| groups.get(i).map_or(&[][..], |(keys, _, at)| keys.get(*at));
            batch(self.stage, groups.len(), options.limits(), key, |number, i| {
                let (_, all, at) = groups.get(i)?;
                Some((all.get(number)?, *at))
            })
        })
    }
}

/// The groups of a morsel that are new.
fn home_of(groups: &Groups<'_>, new: &[u32]) -> (KeyList, Vec<Accumulator>) {
    let mut keys = KeyList::default();
    new.iter().for_each(|group| keys.push(groups.table.key(*group as usize)));
    let pairs: Vec<(u32, u32)> = new.iter().copied().zip(0..).collect();
    let mut accumulators = Vec::with_capacity(groups.accumulators.len());
    for (from, aggregate) in groups.accumulators.iter().zip(&groups.stage.aggregates) {
        let mut into = Accumulator::new(aggregate);
        into.resize(new.len());
        into.merge(from, &pairs);
        accumulators.push(into);
    }
    (keys, accumulators)
}
