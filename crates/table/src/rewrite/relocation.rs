//! Relocates what names rows of retired row groups beside the index: newer versions, and pinned
//! locations. When that is done nothing names them any more, and where the rows went is
//! forgotten.
//!
//! No lock is needed. What a version has replaced is named when that version is put, by a view as
//! of then, under the commit lock: so what names a row of an input did it before the outputs
//! were swapped in, and is found here. A reader that meets a place which its view does not know
//! takes a newer view, and one whose view is older than the swap has the inputs in it.

use esker_log::sabotage::Bug;

use super::Repoint;
use crate::Result;
use crate::location::Location;
use crate::view::{Resolved, RowGroup, View};

impl Repoint {
    /// Leads everybody on, once the index entries have moved; others may run whenever `pause` is
    /// called.
    pub fn relocate(&self, pause: &mut dyn FnMut()) {
        let retired = self.retired_row_groups();
        let view = self.table.view();
        if !Bug::ReplacedNotRelinked.is_planted() {
            for row_group in &view.row_groups {
                relink(row_group, &view, &retired);
                pause();
            }
        }
        if !Bug::PlacesNotLedOn.is_planted() && !Bug::PinnedPlaceForgotten.is_planted() {
            self.table
                .pinned_locations()
                .iter()
                .for_each(|places| places.relocate(&view, &retired));
        }
    }

    /// Forgets where the rows went. Under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` for a view that breaks an invariant.
    pub fn forget(&self) -> Result<()> {
        self.table.forget_retired(&self.retired())
    }

    /// The numbers of the inputs, rising.
    fn retired_row_groups(&self) -> Vec<u64> {
        let mut row_groups: Vec<u64> =
            self.inputs.iter().map(|(row_group, _)| row_group.id()).collect();
        row_groups.sort_unstable();
        row_groups
    }
}

/// Versions name what is left of those that they have replaced, where it is now.
fn relink(row_group: &RowGroup, view: &View, retired: &[u64]) {
    if !row_group.is_asked_for_older() {
        return;
    }
    let replaced = match row_group {
        RowGroup::Group(group) => &group.replaced,
        RowGroup::Segment(segment) => &segment.replaced,
    };
    replaced.replace_each(|word| {
        let location = Location::from_word(word)?;
        retired.binary_search(&location.row_group()).ok()?;
        match view.link_previous(location) {
            Resolved::Row(row_group, row) => Some(Location::new(row_group.id(), row).word()),
            Resolved::Gone => Some(0),
            Resolved::Unknown => None,
        }
    });
}
