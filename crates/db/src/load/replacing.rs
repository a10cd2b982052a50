//! Loads whose rows take the place of others.
//!
//! What a row replaces is noted when its key is entered into the index, under the commit lock: an
//! older row of the table, or an earlier one of the load. It dies by the load's commit, which
//! makes all rows real at once. Until then it lives, and may be changed: then the load has lost.
//!
//! * The load is registered like a snapshot from its start: else a seal would make a version that
//!   came meanwhile look as old as one from before, and a merge would forget where one has gone.
//! * Two rows with the same values of a unique index are noted, too, and tested at the end: the
//!   load may yet replace one of them.
//! * One worker writes, so that of two rows with one key the later one stays. Of two in one segment
//!   the earlier one is not written at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_arena::{Category, ReaderGuard, Reservation};
use esker_table::view::{Resolved, View};
use esker_table::{Location, Table as TableCore};

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Rows for which memory is reserved at a time.
const RESERVED_ROWS: usize = 64 << 10;

/// Pairs of rows that may wait for the end of a load.
const RIVALS_MAX: usize = 64 << 10;

/// Two rows with the same values of a unique index, and what is said when both live on.
struct Rivals {
    both: [Location; 2],
    why: String,
}

/// What a load that replaces rows knows of them.
pub(super) struct Replacing {
    /// From the start of the load on.
    pub started: ReaderGuard,
    /// Rows of the table: their numbers, and where they were.
    rows: Vec<(u64, Location)>,
    /// Rows of the load.
    own: Vec<(u64, Location)>,
    /// Pairs of rows with the same values of a unique index, one of which has to die.
    rivals: Vec<Rivals>,
    held: Reservation,
}

impl Replacing {
    pub fn start(engine: &Engine) -> Result<Self> {
        let started = engine.registry.register(|| engine.watermarks.published())?;
        let held = Reservation::new(&engine.arena, Category::Load);
        Ok(Self { started, rows: Vec::new(), own: Vec::new(), rivals: Vec::new(), held })
    }

    /// Notes that a row dies with the load's commit.
    pub fn note(
        &mut self,
        engine: &Arc<Engine>,
        (row_id, location): (u64, Location),
        is_own: bool,
    ) -> Result<()> {
        let count = self.rows.len() + self.own.len();
        if count.is_multiple_of(RESERVED_ROWS) {
            let entry = size_of::<(u64, Location)>();
            // Twice: growing copies.
            let bytes = (2 * (count + RESERVED_ROWS) * entry) as u64;
            if !engine.reserve_for_load(&mut self.held, bytes) {
                return Err(engine.refuse_load(&self.held, bytes));
            }
        }
        let rows = if is_own { &mut self.own } else { &mut self.rows };
        rows.push((row_id, location));
        Ok(())
    }

    /// Notes two rows with the same values of a unique index: a later row of the load may replace
    /// one of them.
    pub fn note_rivals(&mut self, both: [Location; 2], why: String) -> Result<()> {
        if self.rivals.len() >= RIVALS_MAX {
            let message = format!(
                "{why}; of such pairs, one of which may yet be replaced, a load holds {RIVALS_MAX}"
            );
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        self.rivals.push(Rivals { both, why });
        Ok(())
    }

    /// Refuses to go on when two rows would have the same values of a unique index. Under the
    /// commit lock.
    pub fn expect_unique(&self, view: &View) -> Result<()> {
        if self.rivals.is_empty() {
            return Ok(());
        }
        let place = |location: Location| match view.resolve(location) {
            Resolved::Row(unit, row) if unit.deleted(row) == 0 => {
                Some(Location::new(unit.id(), row))
            }
            _ => None,
        };
        let noted = self.rows.iter().chain(&self.own);
        let dying: BTreeSet<_> = noted.filter_map(|(_, location)| place(*location)).collect();
        let lives = |location: &Location| place(*location).is_some_and(|at| !dying.contains(&at));
        match self.rivals.iter().find(|rivals| rivals.both.iter().all(lives)) {
            Some(rivals) => Err(Error::new(ErrorKind::AlreadyExists, rivals.why.clone())),
            None => Ok(()),
        }
    }

    /// Every row once, though several of the load replace it.
    pub fn settle(&mut self) {
        for rows in [&mut self.rows, &mut self.own] {
            rows.sort_unstable_by_key(|(row_id, _)| *row_id);
            rows.dedup_by_key(|(row_id, _)| *row_id);
        }
    }

    /// Refuses to go on when a row of the table was changed since it was noted. Under the commit
    /// lock.
    pub fn expect_alive(&self, view: &View) -> Result<()> {
        for (_, location) in &self.rows {
            match view.resolve(*location) {
                Resolved::Row(unit, row) if unit.deleted(row) == 0 => {}
                _ => {
                    let message = "a row was changed while a load replaced it; try again";
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
            }
        }
        Ok(())
    }

    /// The numbers of the rows of the table that die, and those of the load.
    pub fn row_ids(&self) -> (Vec<u64>, Vec<u64>) {
        let numbers = |rows: &[(u64, Location)]| rows.iter().map(|(row_id, _)| *row_id).collect();
        (numbers(&self.rows), numbers(&self.own))
    }

    /// Ends the rows. Under the commit lock, before the commit is published.
    pub fn kill(&self, core: &TableCore, commit: u64) -> esker_table::Result<()> {
        let view = core.view();
        for (_, location) in self.rows.iter().chain(&self.own) {
            match view.resolve(*location) {
                Resolved::Row(unit, row) => unit.kill(row, commit)?,
                Resolved::Gone | Resolved::Unknown => {
                    let message = format!("{location:?} leads nowhere");
                    return Err(esker_table::Error::corrupt(message));
                }
            }
        }
        core.add_live_rows(-i64::try_from(self.rows.len() + self.own.len()).unwrap_or_default());
        Ok(())
    }
}
