//! Finding one row.

use std::ops::ControlFlow;
use std::sync::Arc;

use esker_arena::Arena;
use esker_format::{Field, Moment, Room, Schema, Value, ValueRef};

use super::Table;
use crate::Result;
use crate::location::Location;
use crate::lookup::generated_key;
use crate::view::{Resolved, RowGroup, View};
use crate::visibility::Visibility;
use crate::{Error, ErrorKind};

/// A visible row.
pub struct Found<'v> {
    /// The schema as of the reader's commit.
    pub schema: &'v Arc<Schema>,
    /// The row group that holds it.
    pub row_group: &'v RowGroup,
    /// Its number in the row group.
    pub row: usize,
    /// What expires later by the schema's field does not.
    as_of_until: Moment,
    /// Has the limit of bytes that copies of long values may take.
    arena: &'v Arena,
}

impl Found<'_> {
    /// True when some row of the row group expires at some time.
    #[must_use]
    pub fn may_expire(&self) -> bool {
        self.schema
            .expiry_field()
            .is_some_and(|field| self.row_group.least_expiry(field) < i64::MAX)
    }

    /// True when the row has expired at a moment.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    #[inline]
    pub fn has_expired(&self, now: Moment) -> Result<bool> {
        let now_us = now.first(self.as_of_until).of(self.schema);
        match self.schema.expiry_field() {
            Some(field) if self.row_group.least_expiry(field) <= now_us => {
                self.row_group.has_expired(self.row, field, now_us)
            }
            _ => Ok(false),
        }
    }

    /// Copies the values out.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum, `OverBudget` with the number needed when
    /// there cannot be as much memory.
    pub fn values(&self) -> Result<Vec<Value>> {
        self.values_of(self.schema.fields())
    }

    /// Copies the values out that another schema of the table's fields has.
    ///
    /// # Errors
    /// As for [`Found::values`].
    pub fn values_of(&self, fields: &[Field]) -> Result<Vec<Value>> {
        if self.row_group.refers_to_files() {
            self.refuse_large(fields)?;
        }
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            let room = Room::default();
            values.push(self.row_group.value(field, self.row, &room)?.to_owned());
        }
        Ok(values)
    }

    fn refuse_large(&self, fields: &[Field]) -> Result<()> {
        let mut needed = 0;
        for field in fields {
            // default: only long values are large
            needed += self.row_group.long_value(field, self.row)?.map_or(0, |r| r.len);
        }
        let limit = self.arena.limit_bytes();
        if needed <= limit {
            return Ok(());
        }
        let message = format!("a row of {needed} bytes of memory, the limit is {limit}");
        Err(Error::new(ErrorKind::OverBudget, message))
    }
}

/// What came of walking one index entry.
enum EntryOutcome<'v> {
    Found(&'v RowGroup, usize),
    Absent,
    Stale,
}

impl Table {
    /// Looks up a row by its key as of the commit that `read_at` names, and hands it to `take`.
    ///
    /// `read_at` is called again when a merge has overtaken the look-up: a registered snapshot
    /// names the same commit again, an unregistered reader the newest.
    ///
    /// Takes no lock. `key` has one value per key field, fitted to the field's type; for a
    /// generated key, the row id.
    ///
    /// # Errors
    /// `Corrupt` when a block that the row lies in does not fit its checksum.
    pub fn find<R>(
        &self,
        key: &[ValueRef<'_>],
        mut read_at: impl FnMut() -> u64,
        mut take: impl FnMut(Found<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        let mut stale: Option<Arc<View>> = None;
        loop {
            let at = read_at();
            let view = self.view.load();
            if let Some(schema) = view.schema_at(at) {
                match self.find_in(&view, key, at)? {
                    EntryOutcome::Found(row_group, row) => {
                        let found = self.found(schema, (row_group, row), view.as_of_until(at));
                        return take(found).map(Some);
                    }
                    EntryOutcome::Absent => return Ok(None),
                    EntryOutcome::Stale => {}
                }
            }
            // What leads from newer versions back to commit `at` is gone: the caller, who has not
            // registered `at`, begins again at a newer commit.
            if self.link_horizon() > at {
                return Ok(None);
            }
            // A location was taken from a view that was there by then.
            if stale.as_ref().is_some_and(|stale| Arc::ptr_eq(stale, &view)) {
                return Err(Error::corrupt("a version of a row leads nowhere"));
            }
            stale = Some(Arc::clone(&view));
        }
    }

    /// The same as of a snapshot's commit and by its view. `None` when the view is too old: what it
    /// knows has gone elsewhere since.
    #[inline]
    pub(super) fn find_by_view<R>(
        &self,
        (view, schema): (&View, &Arc<Schema>),
        key: &[ValueRef<'_>],
        at: u64,
        take: impl FnOnce(Found<'_>) -> Result<R>,
    ) -> Result<ControlFlow<Option<R>>> {
        Ok(match self.find_in(view, key, at)? {
            EntryOutcome::Found(row_group, row) => {
                let found = self.found(schema, (row_group, row), view.as_of_until(at));
                ControlFlow::Break(Some(take(found)?))
            }
            EntryOutcome::Absent => ControlFlow::Break(None),
            EntryOutcome::Stale => ControlFlow::Continue(()),
        })
    }

    #[inline]
    pub(super) fn found<'v>(
        &'v self,
        schema: &'v Arc<Schema>,
        (row_group, row): (&'v RowGroup, usize),
        as_of_until: Moment,
    ) -> Found<'v> {
        Found { schema, row_group, row, as_of_until, arena: &self.arena }
    }

    #[inline]
    fn find_in<'v>(
        &self,
        view: &'v View,
        key: &[ValueRef<'_>],
        at: u64,
    ) -> Result<EntryOutcome<'v>> {
        match generated_key(&view.schema, key) {
            Some(row_id) => self.find_row_id_in(view, row_id, at),
            None => self.find_key_in(view, key, at),
        }
    }

    #[inline]
    fn find_key_in<'v>(
        &self,
        view: &'v View,
        key: &[ValueRef<'_>],
        at: u64,
    ) -> Result<EntryOutcome<'v>> {
        let hash = match key {
            [ValueRef::Bytes(only)] => self.hasher.hash_bytes(only),
            _ => self.hasher.hash_key(key.iter().copied()),
        };
        let schema = &view.schema;
        self.probe(hash, |location| {
            self.walk(view, location, at, |row_group, row| row_group.key_equals(row, schema, key))
        })
    }

    /// A version by its row id.
    fn find_row_id_in<'v>(&self, view: &'v View, row_id: u64, at: u64) -> Result<EntryOutcome<'v>> {
        let hash = self.hasher.hash_row_id(row_id);
        let walk = self.probe(hash, |location| {
            self.walk(view, location, at, |row_group, row| Ok(row_group.row_id(row)? == row_id))
        })?;
        if !matches!(walk, EntryOutcome::Absent) {
            return Ok(walk);
        }
        for row_group in &view.row_groups {
            let mut rows = row_group.rows_with_id(row_id)?;
            if let Some(row) = rows.find(|row| row_group.is_visible(*row, at)) {
                return Ok(EntryOutcome::Found(row_group, row));
            }
        }
        Ok(EntryOutcome::Absent)
    }

    /// Brings near what look-ups of keys with some hashes will read: a hint, which changes no
    /// answer. A look-up waits for memory several times, for the index, then for a place in a row
    /// group, then for what lies there; those of many keys wait together. Returns the rows.
    pub(super) fn prefetch_hashes<'v>(
        &self,
        view: &'v View,
        hashes: &[u64],
    ) -> Vec<(&'v RowGroup, usize)> {
        let mut words = vec![0; hashes.len()];
        self.index.candidates_many(hashes, |at, word| {
            if let Some(slot) = words.get_mut(at) {
                *slot = word;
            }
            ControlFlow::Break(())
        });
        let place = |word| view.row(Location::from_word(word)?);
        let rows: Vec<(&RowGroup, usize)> = words.into_iter().filter_map(place).collect();
        rows.iter().for_each(|(row_group, row)| row_group.prefetch_locations(*row));
        rows.iter().for_each(|(row_group, row)| row_group.prefetch_values(*row, &view.schema));
        rows
    }

    /// Tries every index entry under a hash until one leads to a visible row.
    #[inline]
    fn probe<'v>(
        &self,
        hash: u64,
        mut walk: impl FnMut(Location) -> Result<EntryOutcome<'v>>,
    ) -> Result<EntryOutcome<'v>> {
        let mut outcome = Ok(EntryOutcome::Absent);
        let _ = self.index.candidates(hash, |word| {
            let Some(location) = Location::from_word(word) else {
                return ControlFlow::Continue(());
            };
            match walk(location) {
                Ok(EntryOutcome::Absent) => ControlFlow::Continue(()),
                other => {
                    outcome = other;
                    ControlFlow::Break(())
                }
            }
        });
        outcome
    }

    /// From an index entry back through the versions that newer ones replaced.
    #[inline]
    fn walk<'v>(
        &self,
        view: &'v View,
        location: Location,
        at: u64,
        is_wanted: impl Fn(&RowGroup, usize) -> Result<bool>,
    ) -> Result<EntryOutcome<'v>> {
        let mut location = location;
        let mut first = true;
        loop {
            let (row_group, row) = match view.link_previous(location) {
                Resolved::Row(row_group, row) => (row_group, row),
                Resolved::Gone => return Ok(EntryOutcome::Absent),
                Resolved::Unknown => return Ok(EntryOutcome::Stale),
            };
            // All versions in a chain have one key.
            if let RowGroup::Segment(segment) = row_group {
                segment.touch(row);
            }
            if first && !is_wanted(row_group, row)? {
                return Ok(EntryOutcome::Absent);
            }
            first = false;
            match row_group.visibility(row, at) {
                Visibility::Visible => return Ok(EntryOutcome::Found(row_group, row)),
                Visibility::Deleted => return Ok(EntryOutcome::Absent),
                Visibility::NotYet => match row_group.replaced(row) {
                    Some(older) => location = older,
                    None => return Ok(EntryOutcome::Absent),
                },
            }
        }
    }

    /// Copies the values of the version at a location out, by the newest schema.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum, or the location leads nowhere.
    pub fn row_at(&self, location: Location) -> Result<Vec<Value>> {
        let view = self.view();
        let nowhere = || Error::corrupt(format!("{location:?} leads nowhere"));
        let found = view.row(location).ok_or_else(nowhere)?;
        self.found(&view.schema, found, Moment::LAST).values()
    }
}
