//! Places of versions that somebody remembers from one hold of the commit lock to another, or for
//! as long as a transaction lasts.
//!
//! A rewrite leads them to where its rows went before it forgets that, so that nothing is kept for
//! those who may still know an old place. A place takes eight bytes, whatever is rewritten.
//!
//! # Invariants
//!
//! 1. A place names a row group of the view as of when it was put or led on last: `keep` and
//!    `relocate` store no other.
//! 2. The views after that know where the rows of the row group went until it is led on again: a
//!    rewrite forgets an input after `relocate`; asserted by [`ResolvedLocations::get`].

use std::sync::{Arc, PoisonError};

use esker_vfs::sync::{Mutex, MutexGuard};

use crate::location::Location;
use crate::table::Table;
use crate::view::{Resolved, RowGroup, View};

/// Places of versions of one table, each known by its number.
pub struct PinnedLocations {
    table: Arc<Table>,
    /// 0 for a version that was dropped.
    words: Mutex<Vec<u64>>,
}

impl PinnedLocations {
    /// None yet.
    #[must_use]
    pub fn new(table: &Arc<Table>) -> Arc<Self> {
        let places = Arc::new(Self { table: Arc::clone(table), words: Mutex::new(Vec::new()) });
        table.add_pinned(&places);
        places
    }

    /// Remembers where a version was found; returns the number of the place. `None` when it was
    /// found so long ago that no view knows where it went: it has to be found again.
    #[must_use]
    pub fn keep(&self, location: Location) -> Option<usize> {
        // With the lock: whatever is retired from here on is led on from here on.
        let mut words = self.words();
        let view = self.table.view();
        let (row_group, row) = view.row(location)?;
        words.push(Location::new(row_group.id(), row).word());
        words.len().checked_sub(1)
    }

    /// The versions as they lie now, for as long as this is held.
    #[must_use]
    pub fn locate(&self) -> ResolvedLocations<'_> {
        let words = self.words();
        ResolvedLocations { view: self.table.view(), words }
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        size_of_val(self.words().as_slice())
    }

    /// Leads places in retired row groups, by rising number, to where the rows went.
    pub(crate) fn relocate(&self, view: &View, retired: &[u64]) {
        for word in self.words().iter_mut() {
            let Some(location) = Location::from_word(*word) else { continue };
            if retired.binary_search(&location.row_group()).is_err() {
                continue;
            }
            match view.resolve(location) {
                Resolved::Row(row_group, row) => *word = Location::new(row_group.id(), row).word(),
                Resolved::Gone => *word = 0,
                Resolved::Unknown => {}
            }
        }
    }

    fn words(&self) -> MutexGuard<'_, Vec<u64>> {
        // default: words are changed one at a time, so that a panic leaves all of them whole
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places, and a view that knows where each of them leads.
pub struct ResolvedLocations<'p> {
    words: MutexGuard<'p, Vec<u64>>,
    view: Arc<View>,
}

impl ResolvedLocations<'_> {
    /// The version with a number; `None` when it was dropped.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<(&RowGroup, usize)> {
        let location = Location::from_word(*self.words.get(number)?)?;
        match self.view.resolve(location) {
            Resolved::Row(row_group, row) => Some((row_group, row)),
            Resolved::Gone => None,
            Resolved::Unknown => {
                debug_assert!(
                    false,
                    "pinned location {number} names {location:?}, which is forgotten"
                );
                None
            }
        }
    }

    /// The view.
    #[must_use]
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::Forwarding;
    use crate::group::{Group, GroupWriter};
    use crate::hash::KeyHasher;
    use esker_arena::{Arena, ArenaOptions};
    use esker_format::{DataType, Schema, TableId, Value};

    fn group(table: &Table, id: u64) -> Arc<Group> {
        let mut writer = GroupWriter::create(table.arena(), id, &table.schema()).unwrap();
        for row in 0..4u64 {
            writer.push((&[Value::Uint(row)], &[]), row, true, 1, None).unwrap();
        }
        Arc::clone(writer.group())
    }

    /// Rows 0 and 2 of a row group are kept, in the other order.
    fn rewrite(table: &Table, from: u64, to: u64) {
        let mut view = (*table.view()).clone();
        view.remove(&[from]);
        view.insert(RowGroup::Group(group(table, to)));
        let targets = vec![Location::new(to, 2).word(), 0, Location::new(to, 0).word(), 0];
        view.retire(Arc::new(Forwarding::new(from, targets, Vec::new())));
        table.set_view(view).unwrap();
    }

    #[test]
    fn places_are_led_on_and_old_ones_are_not_kept() {
        let arena = Arena::new(ArenaOptions { reserve_bytes: 1 << 30, limit_bytes: 1 << 30 });
        let schema = Arc::new(Schema::builder().field("n", DataType::U64).build().unwrap());
        let (name, hasher) = ("t".to_owned(), KeyHasher::new([1, 2]));
        let table = Table::new(TableId(1), name, schema, arena.unwrap(), hasher).unwrap();
        let table = Arc::new(table);
        rewrite(&table, 1, 2);
        let (places, other) = (PinnedLocations::new(&table), PinnedLocations::new(&table));
        // As its forwarding says.
        assert_eq!(places.keep(Location::new(1, 2)), Some(0));
        assert_eq!(places.keep(Location::new(1, 1)), None, "it is gone");
        assert_eq!(places.keep(Location::new(2, 3)), Some(1));
        drop(other);
        let at = |number| {
            let located = places.locate();
            located.get(number).map(|(row_group, row)| (row_group.id(), row))
        };
        assert_eq!((at(0), at(1), at(2)), (Some((2, 0)), Some((2, 3)), None));
        for row_group in 2..9 {
            rewrite(&table, row_group, row_group + 1);
            assert!(at(0).is_some_and(|(there, _)| there == row_group + 1));
            for places in table.pinned_locations() {
                places.relocate(&table.view(), &[row_group]);
            }
            table.forget_retired(&[row_group]).unwrap();
        }
        assert_eq!((at(0), at(1)), (Some((9, 2)), None), "one row was kept, one was not");
        assert_eq!(places.keep(Location::new(3, 0)), None, "nobody knows");
        assert_eq!((table.view().retired.len(), table.pinned_locations().len()), (1, 1));
    }
}
