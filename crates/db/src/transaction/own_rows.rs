//! The rows that a transaction has changed, in columns, for its queries.
//!
//! They lie in groups like those of a table, which no view has. Where a commit number would
//! stand, there is the number of the query that they were made for, so that an answer that is
//! still being read is not disturbed by later changes: it sees the rows up to its number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::{Moment, Value};
use esker_table::group::GroupWriter;
use esker_table::table::Overlay;
use esker_table::view::RowGroup;
use esker_table::{Location, PinnedLocations};

use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::transaction::base::Base;
use crate::transaction::write_buffer::{Change, PendingVersion};
use crate::{Error, ErrorKind, Result};

/// The longest value that a group takes.
const VALUE_BYTES_MAX: usize = 4 << 20;

/// Replaced versions that are worth making the groups anew.
const DEAD_ROWS_MIN: usize = 16;

/// Rows in columns.
#[derive(Default)]
pub(super) struct OwnRows {
    groups: Vec<GroupWriter>,
    /// Where the row of a key is.
    places: BTreeMap<Vec<u8>, Location>,
    /// The number of the place of the row of the snapshot that a key hides.
    hidden: BTreeMap<Vec<u8>, usize>,
    /// Keys that were changed since the last query.
    changed: BTreeSet<Vec<u8>>,
    /// Queries so far.
    version: u64,
}

impl OwnRows {
    /// With everything that was changed so far to be taken up.
    pub fn new<'a>(keys: impl Iterator<Item = &'a Vec<u8>>) -> Self {
        Self { changed: keys.cloned().collect(), ..Self::default() }
    }

    /// A key was changed.
    pub fn note(&mut self, key: &[u8]) {
        self.changed.insert(key.to_vec());
    }

    /// Takes up what was changed since the last query. After an error these rows must not be used
    /// any more.
    pub fn bring_up_to_date(
        &mut self,
        base: Base<'_>,
        current: &TableVersion,
        places: &mut Option<Arc<PinnedLocations>>,
        by_key: &mut BTreeMap<Vec<u8>, Change>,
    ) -> Result<()> {
        if self.changed.is_empty() {
            return Ok(());
        }
        refuse_long_values(self.changed.iter().filter_map(|key| by_key.get(key)))?;
        self.version += 1;
        for key in std::mem::take(&mut self.changed) {
            self.take_up(base, current, places, (&key, by_key.get_mut(&key)))?;
        }
        Ok(())
    }

    /// True when most of the versions in the groups are replaced ones: they are made anew then.
    pub fn is_mostly_dead(&self) -> bool {
        let rows: usize = self.groups.iter().map(GroupWriter::rows).sum();
        rows > DEAD_ROWS_MIN && rows / 2 > self.places.len() + self.changed.len()
    }

    /// Bytes of the groups, about.
    pub fn byte_count(&self) -> u64 {
        self.groups.iter().map(|group| group.group().byte_count()).sum()
    }

    fn take_up(
        &mut self,
        base: Base<'_>,
        current: &TableVersion,
        places: &mut Option<Arc<PinnedLocations>>,
        (key, change): (&Vec<u8>, Option<&mut Change>),
    ) -> Result<()> {
        if let Some(place) = self.places.remove(key) {
            self.mark_deleted(place)?;
        }
        let Some(change) = change else {
            self.hidden.remove(key);
            return Ok(());
        };
        if let Some(place) = base.pin(current, places, change)? {
            self.hidden.insert(key.clone(), place);
        }
        if change.row_id() == 0 {
            change.new_row_id = base.new_row_id(current)?;
        }
        if let PendingVersion::Row(row) = &change.now {
            let (row_id, version) = (change.row_id(), self.version);
            let group = self.group(base.engine, current)?;
            let place = group.push((row, &[]), row_id, false, version, None)?;
            self.places.insert(key.clone(), place);
        }
        Ok(())
    }

    fn mark_deleted(&self, place: Location) -> Result<()> {
        let writers = self.groups.iter().map(GroupWriter::group);
        let mut row_groups = writers.map(|group| RowGroup::Group(Arc::clone(group)));
        match row_groups.find(|row_group| row_group.id() == place.row_group()) {
            Some(row_group) => Ok(row_group.mark_deleted(place.row(), self.version)?),
            None => Err(Error::corrupt(format!("{place:?} leads nowhere"))),
        }
    }

    /// The group that takes one more row.
    fn group(&mut self, engine: &Engine, current: &TableVersion) -> Result<&mut GroupWriter> {
        let is_full = |group: &GroupWriter| {
            group.rows() >= engine.options.group_rows_max
                || group.group().byte_count() >= engine.options.group_bytes_max
        };
        if self.groups.last().is_none_or(is_full) {
            let row_group = engine.new_row_group();
            self.groups.push(GroupWriter::create(&engine.arena, row_group, &current.schema)?);
        }
        self.groups.last_mut().ok_or_else(|| Error::corrupt("no group"))
    }

    /// What a query sees, at a time.
    pub fn overlay(&self, places: Option<&Arc<PinnedLocations>>, now: Moment) -> Overlay {
        Overlay {
            hidden: self.hidden.values().copied().collect(),
            places: places.cloned(),
            groups: self.groups.iter().map(|group| Arc::clone(group.group())).collect(),
            segments: Vec::new(),
            version: self.version,
            now,
        }
    }
}

fn refuse_long_values<'a>(changes: impl Iterator<Item = &'a Change>) -> Result<()> {
    // default: what is no text or bytes has none
    let len = |value: &Value| value.as_ref().as_bytes().map_or(0, <[u8]>::len);
    // default: what is no text or bytes has none
    let longest = changes.filter_map(Change::row).flatten().map(len).max().unwrap_or(0);
    if longest <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "a query of a table in which the transaction has put a value of {longest} bytes, at most \
         {VALUE_BYTES_MAX}: commit first"
    );
    Err(Error::new(ErrorKind::OverBudget, message))
}
