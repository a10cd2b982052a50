//! What a change of a table does to the rows there are, beside giving them other fields: they enter
//! new unique indexes, and those that have expired by the field so far end.
//!
//! Most of that is done without the commit lock; what is left is done when the change is entered.

use std::sync::Arc;

use esker_format::Schema;
use esker_table::Table as TableCore;
use esker_table::table::UniqueKeys;

use crate::Result;
use crate::catalog::expiry::{self, EndingExpired};
use crate::catalog::unique_build::BuildingUniques;
use crate::catalogue::Catalogue;
use crate::commit::conflict::conflict;
use crate::commit::times::StandingTime;
use crate::engine::Engine;

/// Work on the rows of a table that is altered.
#[derive(Default)]
pub(crate) struct AlteredRows {
    /// The rows that have expired so far.
    pub ending: Option<EndingExpired>,
    /// New unique indexes.
    pub building: Option<BuildingUniques>,
    entered: Entered,
}

/// What is done, under the commit lock.
#[derive(Default)]
pub(crate) struct Entered {
    /// The entries of the new unique indexes.
    pub uniques: Vec<Arc<UniqueKeys>>,
    /// No reader may get a later time until rows expire by another field.
    pub standing: Option<StandingTime>,
}

impl AlteredRows {
    /// Does what is left. Under the commit lock, which is held until it is taken.
    ///
    /// # Errors
    /// `Conflict` when it was begun for another table or schema, or so many rows have come that the
    /// lock is to be given up for them: nothing is changed then, see [`AlteredRows::is_behind`].
    pub fn enter(
        &mut self,
        engine: &Engine,
        catalogue: &mut Catalogue,
        (core, before, after): (&Arc<TableCore>, &Arc<Schema>, &Arc<Schema>),
    ) -> Result<()> {
        let begun_for_other = || conflict("the table is another by now".to_owned());
        if self.is_behind() {
            return Err(conflict("a load has committed before its new unique index".to_owned()));
        }
        let standing = match self.ending.take() {
            Some(ending) if ending.is_of(core) => {
                let standing = engine.let_time_stand();
                ending.finish(engine, catalogue)?;
                Some(standing)
            }
            None if !expiry::ends_expiry(before, after) => {
                expiry::starts_expiry(before, after).then(|| engine.let_time_stand())
            }
            _ => return Err(begun_for_other()),
        };
        let uniques = match self.building.take() {
            None => Vec::new(),
            Some(building) => building.finish(core, after)?.ok_or_else(begun_for_other)?,
        };
        engine.note_new_expiry(before, after)?;
        self.entered = Entered { uniques, standing };
        Ok(())
    }

    /// True when many rows have come that are to be entered without the lock.
    pub fn is_behind(&self) -> bool {
        self.building.as_ref().is_some_and(BuildingUniques::is_behind)
    }

    /// What is done; time goes on when it is dropped.
    pub fn take_entered(&mut self) -> Entered {
        std::mem::take(&mut self.entered)
    }
}
