//! Leading on who names rows of retired units beside the index: newer versions, and whoever
//! remembers places. When that is done nobody names them any more, and where the rows went is
//! forgotten.
//!
//! No lock is needed. What a version has replaced is named when that version is put, by a view as
//! of then, under the commit lock: so whoever names a row of an input did it before the outputs
//! were swapped in, and is found here. A reader that meets a place which its view does not know
//! takes a newer view, and one whose view is older than the swap has the inputs in it.

use esker_log::sabotage::planted;

use super::Repoint;
use crate::location::Location;
use crate::view::{Resolved, Unit, View};

impl Repoint {
    /// Leads everybody on, once the index entries have moved; others may run whenever `pause` is
    /// called.
    pub fn lead_on(&self, pause: &mut dyn FnMut()) {
        let retired = self.retired_units();
        let view = self.table.view();
        if !planted("replaced_not_relinked") {
            for unit in &view.units {
                relink(unit, &view, &retired);
                pause();
            }
        }
        if !planted("places_not_led_on") {
            self.table.remembered().iter().for_each(|places| places.lead_on(&view, &retired));
        }
    }

    /// Forgets where the rows went. Under the commit lock.
    pub fn forget(&self) {
        self.table.forget_retired(&self.retired());
    }

    /// The numbers of the inputs, rising.
    fn retired_units(&self) -> Vec<u64> {
        let mut units: Vec<u64> = self.inputs.iter().map(|(unit, _)| unit.id()).collect();
        units.sort_unstable();
        units
    }
}

/// Versions name what is left of those that they have replaced, where it is now.
fn relink(unit: &Unit, view: &View, retired: &[u64]) {
    if !unit.is_asked_for_older() {
        return;
    }
    let replaced = match unit {
        Unit::Group(group) => &group.replaced,
        Unit::Segment(segment) => &segment.replaced,
    };
    replaced.replace_each(|word| {
        let location = Location::from_word(word)?;
        retired.binary_search(&location.unit()).ok()?;
        match view.lead_back(location) {
            Resolved::Row(unit, row) => Some(Location::new(unit.id(), row).word()),
            Resolved::Gone => Some(0),
            Resolved::Unknown => None,
        }
    });
}
