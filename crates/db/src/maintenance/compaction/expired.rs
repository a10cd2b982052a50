//! Choosing segments of which many rows have expired: a rewrite drops them.
//!
//! Nothing tells when a row expires, so that segments are looked at when their first row has, and
//! now and then after that.
//!
//! A rewrite drops what has expired for every reader. Beside a snapshot that is held for long, rows
//! that came after it would pile up: for it the time stands still. So these are deleted, as anybody
//! might, in commits that no reader notices, since from then on they are
//! absent; what is dead goes by the rules of what is dead.

use std::sync::Arc;
use std::time::Duration;

use esker_arena::ReadCommits;
use esker_table::Table as TableCore;
use esker_table::view::RowGroup;

use crate::Result;
use crate::catalog::expiry::EndingExpired;
use crate::engine::Engine;

/// A row group is due when one row in this many has expired.
const EXPIRED_SHARE: u64 = 20;
/// A row group that is not due is not looked at again before this.
const LOOK_AGAIN_US: i64 = 10_000_000;
/// How often the wall clock is looked at while it is suspect.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(20);
/// The shortest time until the next look: a table whose merges fail is left alone for a while, but
/// its row groups stay due.
const WAIT_MIN_US: i64 = 1_000_000;

/// A row group of which enough rows have expired.
pub(crate) enum Expired {
    /// For everybody.
    ForAll(RowGroup),
    /// For readers to come, but not for all who are there.
    ForLater(RowGroup),
}

impl Engine {
    /// A row group of a table of which enough rows have expired.
    pub(crate) fn find_expired(
        &self,
        table: &TableCore,
        row_groups: &[RowGroup],
        readers: &ReadCommits,
    ) -> Result<Option<Expired>> {
        let (view, oldest) = (table.view(), readers.oldest());
        let Some(field) = view.schema.expiry_field() else { return Ok(None) };
        let is_old_field = view.expiry_since(oldest).is_some();
        let (now, oldest_us) = (self.now(), self.oldest_moment().of(&view.schema));
        let destroying_us = self.destroying_us(&view.schema);
        for row_group in row_groups {
            let least_us = row_group.least_expiry(field);
            if least_us == i64::MAX {
                continue;
            }
            let id = row_group.id();
            let first_us = now.elapsed_of(&view.schema, least_us);
            let look_us = *self.maintenance_state().expiring.entry(id).or_insert(first_us);
            if look_us > now.elapsed_us {
                continue;
            }
            // Before it can fail: who comes again at once would fail again.
            let next_us = now.elapsed_us.saturating_add(LOOK_AGAIN_US);
            self.maintenance_state().expiring.insert(id, next_us);
            let is_due = |expired: u64| expired * EXPIRED_SHARE > row_group.row_count() as u64;
            if is_old_field && is_due(row_group.count_expired(field, oldest_us, oldest)?) {
                return Ok(Some(Expired::ForAll(row_group.clone())));
            }
            let is_held = oldest < readers.since();
            if is_held && is_due(row_group.count_expired(field, destroying_us, readers.since())?) {
                return Ok(Some(Expired::ForLater(row_group.clone())));
            }
        }
        Ok(None)
    }

    /// Deletes the rows of a row group that have expired. True when there were some.
    pub(crate) fn end_expired_of(
        self: &Arc<Self>,
        table: &Arc<TableCore>,
        row_group: &RowGroup,
    ) -> Result<bool> {
        let ended = EndingExpired::of_row_group(self, table, row_group)?;
        // What is dead goes once everybody to come sees that it is.
        self.wait_for_published()?;
        Ok(ended > 0)
    }

    /// Forgets row groups that are gone.
    pub(crate) fn forget_expiring(&self, is_there: impl Fn(u64) -> bool) {
        self.maintenance_state().expiring.retain(|id, _| is_there(*id));
    }

    /// Forgets when the rows of a table expire: they do so by another field.
    pub(crate) fn look_for_expired_anew(&self, table: &TableCore) {
        let view = table.view();
        self.forget_expiring(|id| view.row_group(id).is_none());
        self.wake_maintenance();
    }

    /// Forgets when row groups are to be looked at: the date has moved.
    pub(crate) fn look_for_all_expired_anew(&self) {
        self.maintenance_state().expiring.clear();
        self.wake_maintenance();
    }

    /// How long until a row group is to be looked at.
    pub(crate) fn until_expiry(&self) -> Option<Duration> {
        let next = self.maintenance_state().expiring.values().copied().min()?;
        let wait_us = next.saturating_sub(self.now().elapsed_us).max(WAIT_MIN_US);
        Some(Duration::from_micros(wait_us.unsigned_abs()))
    }

    /// How long until the wall clock is to be looked at: while it is suspect.
    pub(crate) fn until_look(&self) -> Option<Duration> {
        let is_suspect = self.has_expiring() && self.clock().suspicion().is_some();
        is_suspect.then_some(LOOK_AT_CLOCK)
    }
}

#[cfg(test)]
mod tests;
