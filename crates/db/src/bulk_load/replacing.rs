//! Loads whose rows take the place of others.
//!
//! What a row replaces is noted when its key is entered into the index, under the commit lock: an
//! older row of the table, or an earlier one of the load. It dies by the load's commit, which
//! makes all rows real at once. Until then it lives, and may be changed: then the load has lost.
//!
//! * The load is registered like a snapshot from its start: else a seal would make a version that
//!   came meanwhile look as old as one from before.
//! * Where the rows are that it replaces is remembered in places that merges lead on.
//! * Two rows with the same values of a unique index are noted, too, and tested at the end: the
//!   load may yet replace one of them.
//! * One worker writes, so that of two rows with one key the later one stays. Of two in one segment
//!   the earlier one is not written at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_arena::{Category, ReaderGuard, Reservation};
use esker_table::view::{RowGroup, View};
use esker_table::{Location, PinnedLocations, Table as TableCore};

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Rows for which memory is reserved at a time.
const RESERVED_ROWS: usize = 64 << 10;

/// Pairs of rows that may wait for the end of a load.
const RIVALS_MAX: usize = 64 << 10;

/// Two rows with the same values of a unique index, and what is said when both live on.
struct Rivals {
    both: [Rival; 2],
    why: String,
}

/// One of them.
#[derive(Clone, Copy)]
enum Rival {
    /// Of the load.
    Own(Location),
    /// Of the table: the number of its place.
    There(usize),
}

/// What a load that replaces rows knows of them.
pub(super) struct Replacing {
    /// From the start of the load on.
    pub started: ReaderGuard,
    /// Rows of the table: their numbers, and those of their places.
    rows: Vec<(u64, usize)>,
    places: Arc<PinnedLocations>,
    /// Rows of the load, which stay where they are until it has committed.
    own: Vec<(u64, Location)>,
    /// Pairs of rows with the same values of a unique index, one of which has to die.
    rivals: Vec<Rivals>,
    held: Reservation,
}

impl Replacing {
    pub fn start(engine: &Engine, core: &Arc<TableCore>) -> Result<Self> {
        let started = engine.registry.register(|| engine.watermarks.published())?;
        let held = Reservation::new(&engine.arena, Category::Load);
        let (rows, own, rivals) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { started, rows, places: PinnedLocations::new(core), own, rivals, held })
    }

    /// Notes that a row dies with the load's commit. Under the commit lock.
    pub fn note(
        &mut self,
        engine: &Arc<Engine>,
        (row_id, location): (u64, Location),
        is_own: bool,
    ) -> Result<()> {
        let count = self.rows.len() + self.own.len();
        if count.is_multiple_of(RESERVED_ROWS) {
            let entry = size_of::<(u64, usize)>() + size_of::<Location>();
            // Twice: growing copies.
            let bytes = (2 * (count + RESERVED_ROWS) * entry) as u64;
            if !engine.reserve_for_load(&mut self.held, bytes) {
                return Err(engine.refuse_load(&self.held, bytes));
            }
        }
        if is_own {
            self.own.push((row_id, location));
        } else {
            self.rows.push((row_id, self.keep(location)?));
        }
        Ok(())
    }

    /// Remembers where a row of the table is. Under the commit lock.
    fn keep(&self, location: Location) -> Result<usize> {
        let nowhere = || Error::corrupt(format!("{location:?} leads nowhere"));
        self.places.keep(location).ok_or_else(nowhere)
    }

    /// Notes two rows with the same values of a unique index, each with whether it is of the load:
    /// a later row of the load may replace one of them. Under the commit lock.
    pub fn note_rivals(&mut self, both: [(Location, bool); 2], why: String) -> Result<()> {
        if self.rivals.len() >= RIVALS_MAX {
            let message = format!(
                "{why}; of such pairs, one of which may yet be replaced, a load holds {RIVALS_MAX}"
            );
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        let rival = |(location, is_own)| match is_own {
            true => Ok(Rival::Own(location)),
            false => self.keep(location).map(Rival::There),
        };
        let [one, other] = both;
        let both = [rival(one)?, rival(other)?];
        self.rivals.push(Rivals { both, why });
        Ok(())
    }

    /// Refuses to go on when two rows would have the same values of a unique index. Under the
    /// commit lock.
    pub fn expect_unique(&self, view: &View) -> Result<()> {
        if self.rivals.is_empty() {
            return Ok(());
        }
        let located = self.places.locate();
        let place = |rival: Rival| {
            let found = match rival {
                Rival::There(number) => located.get(number),
                Rival::Own(location) => view.row(location),
            };
            let (row_group, row) = found.filter(|(row_group, row)| row_group.is_alive(*row))?;
            Some(Location::new(row_group.id(), row))
        };
        let rows = self.rows.iter().map(|(_, number)| Rival::There(*number));
        let noted = rows.chain(self.own.iter().map(|(_, location)| Rival::Own(*location)));
        let dying: BTreeSet<_> = noted.filter_map(place).collect();
        let lives = |rival: &Rival| place(*rival).is_some_and(|at| !dying.contains(&at));
        match self.rivals.iter().find(|rivals| rivals.both.iter().all(lives)) {
            Some(rivals) => Err(Error::new(ErrorKind::AlreadyExists, rivals.why.clone())),
            None => Ok(()),
        }
    }

    /// Every row once, though several of the load replace it.
    pub fn settle(&mut self) {
        self.rows.sort_unstable_by_key(|(row_id, _)| *row_id);
        self.rows.dedup_by_key(|(row_id, _)| *row_id);
        self.own.sort_unstable_by_key(|(row_id, _)| *row_id);
        self.own.dedup_by_key(|(row_id, _)| *row_id);
    }

    /// Refuses to go on when a row of the table was changed since it was noted; one that has
    /// expired, and was deleted for that, is forgotten. Under the commit lock.
    pub fn expect_alive(&mut self) -> Result<()> {
        let located = self.places.locate();
        let is_changed = |found: Option<(&RowGroup, usize)>| {
            found.is_none_or(|(row_group, row)| {
                !row_group.is_alive(row) && !row_group.has_ended(row)
            })
        };
        if self.rows.iter().any(|(_, number)| is_changed(located.get(*number))) {
            let message = "a row was changed while a load replaced it; try again";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let lives = |found: Option<(&RowGroup, usize)>| {
            found.is_some_and(|(row_group, row)| row_group.is_alive(row))
        };
        self.rows.retain(|(_, number)| lives(located.get(*number)));
        Ok(())
    }

    /// The numbers of the rows of the table that die, and those of the load.
    pub fn row_ids(&self) -> (Vec<u64>, Vec<u64>) {
        let rows = self.rows.iter().map(|(row_id, _)| *row_id).collect();
        (rows, self.own.iter().map(|(row_id, _)| *row_id).collect())
    }

    /// Ends the rows. Under the commit lock, before the commit is published.
    pub fn mark_deleted(&self, core: &TableCore, commit: u64) -> esker_table::Result<()> {
        let (view, located) = (core.view(), self.places.locate());
        let rows = self.rows.iter().map(|(_, number)| located.get(*number));
        for found in rows.chain(self.own.iter().map(|(_, location)| view.row(*location))) {
            let gone = || esker_table::Error::corrupt("a row that a load replaces is gone");
            let (row_group, row) = found.ok_or_else(gone)?;
            row_group.mark_deleted(row, commit)?;
        }
        // default: no table has 2^63 rows
        core.add_live_rows(-i64::try_from(self.rows.len() + self.own.len()).unwrap_or_default());
        Ok(())
    }
}
