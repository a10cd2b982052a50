//! What the changes of a transaction lie over: its snapshot, and where new rows get their ids.

use std::sync::Arc;

use esker_format::ValueRef;
use esker_table::{Found, Location, PinnedLocations};

use super::definitions::Definitions;
use super::write_buffer::{BaseVersion, Change, VersionRef};
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, Result, Snapshot};

/// What a transaction began with, and what it has defined since.
#[derive(Clone, Copy)]
pub(super) struct Base<'t> {
    pub engine: &'t Arc<Engine>,
    pub snapshot: &'t Snapshot,
    pub definitions: Option<&'t Definitions>,
}

impl Base<'_> {
    /// What the snapshot has under a key, and where.
    pub fn find<R>(
        &self,
        current: &TableVersion,
        key: &[ValueRef<'_>],
        take: impl Fn(&Found<'_>) -> esker_table::Result<R>,
    ) -> Result<Option<(R, BaseVersion)>> {
        let (at, now) = (self.snapshot.commit(), self.snapshot.now());
        let found = current.core.find(
            key,
            || at,
            |found| {
                if found.has_expired(now)? {
                    return Ok(None);
                }
                let location = Location::new(found.row_group.id(), found.row);
                let location = VersionRef::Physical(location);
                let base = BaseVersion::At(location, found.row_group.row_id(found.row)?);
                Ok(Some((take(&found)?, base)))
            },
        )?;
        Ok(found.flatten())
    }

    /// The version of the snapshot under a key.
    pub fn version(&self, current: &TableVersion, key: &[ValueRef<'_>]) -> Result<BaseVersion> {
        let found = self.find(current, key, |_| Ok(()))?;
        // default: no row was found
        Ok(found.map_or(BaseVersion::Absent, |(_, base)| base))
    }

    fn version_under(&self, current: &TableVersion, change: &Change) -> Result<BaseVersion> {
        match current.schema.key_positions() {
            [] => self.version(current, &[ValueRef::Uint(change.row_id())]),
            _ => self.version(current, &change.key(&current.schema)),
        }
    }

    /// Looks for what the snapshot has under the key of a change, where that is not known.
    pub fn resolve(&self, current: &TableVersion, change: &mut Change) -> Result<()> {
        if change.base == BaseVersion::Unknown {
            change.base = self.version_under(current, change)?;
        }
        Ok(())
    }

    /// Pins the version of the snapshot that a change hides; returns its number, `None` when there
    /// is no such version.
    pub fn pin(
        &self,
        current: &TableVersion,
        places: &mut Option<Arc<PinnedLocations>>,
        change: &mut Change,
    ) -> Result<Option<usize>> {
        loop {
            match change.base {
                BaseVersion::Absent => return Ok(None),
                BaseVersion::At(VersionRef::Pinned(place), _) => return Ok(Some(place)),
                BaseVersion::At(VersionRef::Physical(location), row_id) => {
                    let places = places.get_or_insert_with(|| PinnedLocations::new(&current.core));
                    if let Some(place) = places.keep(location) {
                        change.base = BaseVersion::At(VersionRef::Pinned(place), row_id);
                        return Ok(Some(place));
                    }
                }
                BaseVersion::Unknown => {}
            }
            // It was not looked up, or so long ago that it is forgotten where it went.
            let found = self.version_under(current, change)?;
            if found == change.base {
                return Err(Error::corrupt("a row that a transaction hides leads nowhere"));
            }
            change.base = found;
        }
    }

    /// A row id for a new row.
    pub fn new_row_id(&self, current: &TableVersion) -> Result<u64> {
        let id = current.core.id();
        let definition = self.definitions.and_then(|new| new.get(id));
        if let Some(row_id) = definition.and_then(|definition| definition.next_row_id()) {
            return Ok(row_id);
        }
        let mut catalogue = self.engine.lock_for_change()?;
        let entry = catalogue.entry(id);
        let entry = entry.map_err(|_| super::gone::table_gone(&current.core.name()))?;
        Ok(entry.writer.reserve_row_ids(1))
    }
}
