//! Moving the date that the database goes by (protocol rule 9).
//!
//! Forward, the new date is logged, and holds: rows that expire by it are absent from then on, and
//! not destroyed for an hour.
//!
//! Back, what had expired by the old date would be there again. So it is ended first, as before a
//! change of the field by which rows expire (`expiry.rs`), and the earlier date does not hold
//! before that is durable and visible:
//!
//! ```text
//! expired rows: deleted, in commits of their own ─► commit lock, time stands still
//!   ─► those that have since, and the record with the new date ─► unlock ─► wait until durable
//!   ─► commit lock ─► none came since? the record again, go by the new date
//!   ─► unlock, time goes on
//! ```
//!
//! Readers see these rows as absent all the while, by the old date or because they are dead.
//! A crash before the record is durable leaves the old date.

use std::sync::Arc;

use esker_format::{ExpiryClock, Moment};
use esker_log::Purpose;
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;

use crate::Result;
use crate::catalog::expiry::EndingExpired;
use crate::catalogue::Catalogue;
use crate::engine::Engine;

/// How often rows are looked for that were put while the record became durable, and had expired.
const ROUNDS_MAX: usize = 8;

/// Where the date moves to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DateMove {
    /// The new date.
    pub to_us: i64,
    /// Rows that had expired by this date are ended when the date falls.
    pub ended_until_us: i64,
}

impl Engine {
    /// Moves the date if the wall clock has been elsewhere for long enough. True when it has.
    pub(crate) fn move_date_if_due(self: &Arc<Self>) -> Result<bool> {
        let clock = self.last_clock();
        let Some(to_us) = clock.due_us().filter(|_| !self.options.read_only) else {
            return Ok(false);
        };
        self.move_date(DateMove { to_us, ended_until_us: i64::MAX })?;
        Ok(true)
    }

    /// Moves the date.
    pub(crate) fn move_date(self: &Arc<Self>, to: DateMove) -> Result<()> {
        if to.to_us >= self.now().date_us || Bug::OffsetBackWithoutEnding.is_planted() {
            let _catalogue = self.lock_for_change()?;
            let _standing = self.let_time_stand();
            return self.log_and_go_by(to.to_us);
        }
        let until = self.moment_until(to);
        let mut endings = Vec::new();
        for core in self.tables_by_date() {
            endings.push(EndingExpired::start_until(until, self, &core)?);
        }
        let (mut standing, mut logged) = (None, false);
        for round in 0.. {
            let mut catalogue = self.lock_for_change()?;
            standing.get_or_insert_with(|| self.let_time_stand());
            let ended = self.end_in_all(&mut catalogue, &mut endings, to)?;
            if logged && (ended == 0 || round >= ROUNDS_MAX) {
                // Commits and checkpoints since the record may have the old date.
                self.log_and_go_by(to.to_us)?;
                break;
            }
            self.log_move(to.to_us)?;
            logged = true;
            drop(catalogue);
            self.wait_for_published()?;
        }
        Ok(())
    }

    /// How many rows a move back would end.
    pub(crate) fn count_ended_by(&self, to: DateMove) -> Result<u64> {
        if to.to_us >= self.now().date_us {
            return Ok(0);
        }
        let until = self.moment_until(to);
        self.tables_by_date().iter().map(|core| EndingExpired::count(core, until)).sum()
    }

    fn log_and_go_by(&self, to_us: i64) -> Result<()> {
        self.log_move(to_us)?;
        self.go_by_date(to_us);
        self.look_for_all_expired_anew();
        Ok(())
    }

    fn log_move(&self, to_us: i64) -> Result<()> {
        let mut clock = self.last_clock();
        clock.move_to(to_us);
        self.log_clock(Purpose::Adds, clock.record())
    }

    /// Rows that had expired at this moment are ended.
    fn moment_until(&self, to: DateMove) -> Moment {
        let now = self.now();
        Moment { date_us: now.date_us.min(to.ended_until_us), ..now }
    }

    fn end_in_all(
        &self,
        catalogue: &mut Catalogue,
        endings: &mut Vec<EndingExpired>,
        to: DateMove,
    ) -> Result<usize> {
        let until = self.moment_until(to);
        let tables = catalogue.tables.values().map(|entry| Arc::clone(entry.writer.table()));
        for core in tables.filter(goes_by_date).collect::<Vec<_>>() {
            if !endings.iter().any(|ending| ending.is_of(&core)) {
                endings.push(EndingExpired::of(&core));
            }
        }
        let mut ended = 0;
        for ending in endings {
            if ending.is_there(catalogue) {
                ended += ending.end_until(until, self, catalogue)?;
            }
        }
        Ok(ended)
    }

    fn tables_by_date(&self) -> Vec<Arc<TableCore>> {
        let catalogue = self.lock();
        let tables = catalogue.tables.values().map(|entry| Arc::clone(entry.writer.table()));
        tables.filter(goes_by_date).collect()
    }
}

/// True when the rows of a table expire by the date.
fn goes_by_date(core: &Arc<TableCore>) -> bool {
    let schema = core.schema();
    schema.expiry_field().is_some() && schema.expiry_clock() == ExpiryClock::Date
}
