//! Creating unique indexes, beside readers and writers.
//!
//! ```text
//! no seal, no merge ─► enter the rows of each group, in rounds ─► commit lock ─► the rows since
//!   ─► the change of the schema, with its number ─► unlock: from here on commits enter theirs
//! ```
//!
//! Where a load has committed before the lock was taken, it is given up (`AlteredRows::enter`),
//! and the rows of the load are entered without it.
//!
//! Row groups only grow at their end, so that what has been entered of each is a count of its rows.
//! A row that dies meanwhile stays entered, which does no harm. Two rows with the same values that
//! are found without the lock may be two versions of one row, the older of which is just dying:
//! under the lock it is known which. The rows of loads under way are not entered: what they
//! gathered was for a schema without the index, and they are refused.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use esker_format::schema::Index;
use esker_format::{Room, Schema, ValueRef};
use esker_table::table::{ComputedRow, UniqueKeys, describe_key};
use esker_table::view::{RowGroup, View};
use esker_table::{Location, Table as TableCore};

use crate::commit::fit::refuse_long_unique;
use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Rows that are entered at a time.
const BATCH_ROWS: usize = 64 << 10;
/// So few rows are entered under the commit lock.
const LOCKED_ROWS: usize = 4_096;
/// When so many have come, as by a load that has just committed, the lock is given up for them.
pub(super) const BEHIND_ROWS: usize = 16 * LOCKED_ROWS;
/// Rounds without the lock before writers have to wait, however many rows they add.
const ROUNDS_MAX: usize = 16;

/// The entries of unique indexes to be.
pub(crate) struct BuildingUniques {
    core: Arc<TableCore>,
    keys: Vec<Arc<UniqueKeys>>,
    /// How many rows of each row group are entered.
    entered: BTreeMap<u64, usize>,
    /// The schema with the indexes.
    schema: Schema,
    /// How often rows were entered without the lock.
    rounds: usize,
}

/// The unique indexes that a changed schema has and the one before has not.
pub(crate) fn new_uniques<'a>(before: &'a Schema, after: &'a Schema) -> Vec<&'a Index> {
    let is_known = |index: &&Index| before.unique_indexes().any(|known| known.id == index.id);
    after.unique_indexes().filter(|index| !is_known(index)).collect()
}

impl BuildingUniques {
    /// Enters the rows of a table, but for a few that come meanwhile. No row group may be sealed or
    /// merged until the indexes are there.
    pub fn start(engine: &Engine, core: &Arc<TableCore>, schema: &Schema) -> Result<Self> {
        let new = |index: &&Index| core.new_unique(schema, index).map(Arc::new);
        let before = core.schema();
        let indexes = new_uniques(&before, schema);
        let keys = indexes.iter().map(new).collect::<esker_table::Result<_>>()?;
        let (core, schema) = (Arc::clone(core), schema.clone());
        let mut building = Self { core, keys, entered: BTreeMap::new(), schema, rounds: 0 };
        building.catch_up(engine)?;
        Ok(building)
    }

    /// Enters rows without the lock, until there are few.
    pub fn catch_up(&mut self, engine: &Engine) -> Result<()> {
        let schema = self.schema.clone();
        while self.rounds < ROUNDS_MAX {
            self.rounds += 1;
            if self.enter(&schema, Some(engine))? < LOCKED_ROWS {
                break;
            }
        }
        Ok(())
    }

    /// True when many rows have come that can be entered without the lock.
    pub fn is_behind(&self) -> bool {
        let view = self.core.view();
        let row_groups = view.row_groups.iter().filter(|row_group| !row_group.is_loading());
        let entered =
            // default: a row group that is new has none
            |row_group: &RowGroup| self.entered.get(&row_group.id()).copied().unwrap_or_default();
        let missing: usize =
            row_groups.map(|row_group| row_group.row_count() - entered(row_group)).sum();
        missing > BEHIND_ROWS && self.rounds < ROUNDS_MAX
    }

    /// Enters the rows that have come since. Under the commit lock. `None` when the indexes are
    /// those of another table, or other ones.
    pub fn finish(
        mut self,
        core: &Arc<TableCore>,
        schema: &Schema,
    ) -> Result<Option<Vec<Arc<UniqueKeys>>>> {
        let before = core.schema();
        let wanted = new_uniques(&before, schema);
        let found: Vec<&Index> = self.keys.iter().map(|keys| keys.index()).collect();
        if !Arc::ptr_eq(core, &self.core) || wanted != found {
            return Ok(None);
        }
        self.enter(schema, None)?;
        Ok(Some(self.keys))
    }

    /// Enters the rows that are not yet; returns how many. `engine` has the commit lock, which the
    /// caller holds when there is none.
    fn enter(&mut self, schema: &Schema, engine: Option<&Engine>) -> Result<usize> {
        let view = self.core.view();
        let mut count = 0;
        for row_group in view.row_groups.iter().filter(|row_group| !row_group.is_loading()) {
            let end = row_group.row_count();
            // default: a row group that is new has none
            let mut start = self.entered.get(&row_group.id()).copied().unwrap_or_default();
            count += end - start;
            while start < end {
                let rows = start..end.min(start + BATCH_ROWS);
                start = rows.end;
                for keys in &self.keys {
                    self.enter_rows(keys, (&view, schema), row_group, rows.clone(), engine)?;
                }
                if let Some(engine) = engine {
                    engine.environment.tasks.pause();
                }
            }
            row_group.release();
            self.entered.insert(row_group.id(), end);
        }
        Ok(count)
    }

    fn enter_rows(
        &self,
        keys: &UniqueKeys,
        (view, schema): (&View, &Schema),
        row_group: &RowGroup,
        rows: std::ops::Range<usize>,
        engine: Option<&Engine>,
    ) -> Result<()> {
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            if !row_group.is_alive(row) {
                continue;
            }
            let mut room = ComputedRow::default();
            if let Some(values) = keys.values_at(schema, (row_group, row), &mut room)? {
                let refused = refuse_long_unique(keys.index(), values.iter().copied());
                refused.map_err(|e| e.at(self.place(schema, row_group, row)))?;
                let hash = self.core.hasher().hash_key(values);
                entries.push((hash, Location::new(row_group.id(), row)));
            }
        }
        entries.sort_unstable();
        for (at, (hash, location)) in entries.iter().enumerate() {
            let (place, mut room) = ((row_group, location.row()), ComputedRow::default());
            let Some(values) = keys.values_at(schema, place, &mut room)? else { continue };
            // default: behind the last there is none
            let later = entries.get(at + 1..).unwrap_or_default();
            for (_, other) in later.iter().take_while(|(other, _)| other == hash) {
                if keys.equals(schema, (row_group, other.row()), &values)? {
                    self.refuse_both(keys, schema, &values, [*location, *other], engine)?;
                }
            }
            keys.candidates(view, *hash, |(row_group, row), _| {
                if row_group.is_alive(row) && keys.equals(schema, (row_group, row), &values)? {
                    let other = Location::new(row_group.id(), row);
                    self.refuse_both(keys, schema, &values, [other, *location], engine)?;
                }
                Ok::<_, Error>(ControlFlow::<()>::Continue(()))
            })?;
        }
        let entries: Vec<_> = entries.iter().map(|(hash, at)| (*hash, at.word())).collect();
        Ok(keys.entries().insert_many(&entries).map_err(esker_table::Error::from)?)
    }

    /// Refuses two rows with the same values, when both live.
    fn refuse_both(
        &self,
        keys: &UniqueKeys,
        schema: &Schema,
        values: &[ValueRef<'_>],
        both: [Location; 2],
        engine: Option<&Engine>,
    ) -> Result<()> {
        let _catalogue = engine.map(Engine::lock);
        let view = self.core.view();
        let mut places = Vec::new();
        for location in both {
            match view.row(location) {
                Some((row_group, row)) if row_group.is_alive(row) => {
                    places.push(self.place(schema, row_group, row));
                }
                _ => return Ok(()),
            }
        }
        let what = keys.describe(schema, values);
        let message = format!("{what} is in two rows, {}", places.join(" and "));
        Err(Error::new(ErrorKind::InvalidInput, message))
    }

    /// A row as errors name it, by its key.
    fn place(&self, schema: &Schema, row_group: &RowGroup, row: usize) -> String {
        let room = Room::default();
        let key = row_group.key(row, schema, &room);
        // default: the message says why there is no key
        key.map_or_else(|e| e.to_string(), |key| describe_key(schema, &key))
    }
}

#[cfg(test)]
mod tests {
    use esker_format::schema::NewIndex;
    use esker_format::{DataType, Value};

    use super::*;
    use crate::{Alteration, Options};

    /// All rows of a load that had committed meanwhile were entered under the commit lock.
    #[test]
    fn a_load_that_commits_meanwhile_is_entered_without_the_lock() {
        let db = Options::new().background(false).memory().unwrap();
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        let t = db.create_table("t", schema).unwrap();
        let (engine, core) = (db.engine(), t.core());
        let index = Alteration::AddIndex(NewIndex::new("by_n", ["n"]).unique());
        let schema =
            crate::catalog::checked_rows::alter(engine, "t", &core.schema(), &[index]).unwrap();
        let mut building = BuildingUniques::start(engine, core, &schema).unwrap();
        assert!(!building.is_behind());
        let mut load = t.load().unwrap();
        let rows = i64::try_from(2 * BEHIND_ROWS).unwrap();
        (0..rows).for_each(|n| load.push_row(&[Value::Int(n)]).unwrap());
        load.finish().unwrap();
        assert!(building.is_behind());
        building.catch_up(engine).unwrap();
        assert!(!building.is_behind());
        let entered: u64 = building.keys.iter().map(|keys| keys.entries().len() as u64).sum();
        assert_eq!(entered, rows.unsigned_abs());
    }
}
