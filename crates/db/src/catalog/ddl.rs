//! Changing tables themselves: making and removing them, their fields, their names, all their rows
//! at once.
//!
//! Each change is a commit of [`NewDefinitions`] alone; a transaction commits the same together
//! with its rows. Rows stay as they are, unless a new field has another value in each of them: what
//! a schema says about older rows is in [`Alteration`]. Readers at older commits go on seeing the
//! older schema, name and rows.
//!
//! Outside of transactions only: a unique index, and another field by which rows expire, of a table
//! that is there. Both look at all rows, those of others too, up to the moment of the commit, which
//! no snapshot shows.

use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::Alteration;
use esker_log::sabotage::Bug;
use esker_table::Table as TableCore;

use crate::catalog::checks::{self, Checks};
use crate::catalog::expiry::{self, EndingExpired};
use crate::catalog::names::Names;
use crate::catalog::new_fields::NewFields;
use crate::catalog::unique_build::BuildingUniques;
use crate::catalog::usable_name::expect_usable;
use crate::catalog::view_needs::{self, Altered};
use crate::catalog::{
    bucket_alteration, checked_rows, index_test, looked_up, references, rollup_history,
};
use crate::commit::conflict::conflict;
use crate::commit::definitions::{
    AlteredTable, CreatedTable, Described, NewDefinitions, RemovedTable, TruncatedTable,
};
use crate::commit::options::CommitOptions;
use crate::commit::write_set::WriteSet;
use crate::engine::{Engine, no_table};
use crate::engine_handle::EngineHandle;
use crate::feed::shape::refuse_companion;
use crate::maintenance::{Building, index_path};
use crate::{Database, Error, ErrorKind, Result, Table};

/// How often a definition begins anew when other commits come first.
const ATTEMPTS_MAX: usize = 64;

impl Database {
    /// Creates a table.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name, `InvalidInput` for a bad name.
    pub fn create_table(&self, name: &str, schema: Schema) -> Result<Table> {
        expect_usable("table", name)?;
        if !schema.references().is_empty() || schema.changes().is_some() {
            return self.create_bound_table(name, &schema);
        }
        let (_, core) = self.define(|engine| {
            refuse_taken(engine, name)?;
            let views_known = Some(Arc::clone(engine.names.load().newest()));
            let mut find = |table: &str| Ok(named(engine, table)?.schema());
            let schema = looked_up::settled(schema.clone(), &mut find)?;
            Checks::of(&schema)?;
            let schema = checks::with_exact_names(schema)?;
            looked_up::expect_fits(name, &schema, &mut find)?;
            let (schema, sequences) = engine.with_own_sequences(name, schema)?;
            let core = engine.new_numbered_table(name, schema)?;
            let created = vec![CreatedTable { core: Arc::clone(&core), next_row_id: 1, sequences }];
            Ok((NewDefinitions { created, views_known, ..NewDefinitions::default() }, core))
        })?;
        Ok(Table::new(self.engine().clone(), core))
    }

    /// Removes a table with all it holds.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        if is_bound(self.engine(), name) {
            return self.drop_bound_table(name);
        }
        let drop_it = |engine: &Arc<Engine>| {
            let core = named(engine, name)?;
            expect_unbound(&core)?;
            let names = Arc::clone(engine.names.load().newest());
            view_needs::refuse_read(&names, "table", name, true)?;
            looked_up::refuse_gone(&names, name, &|core| Ok(core.schema()))?;
            let views_known = Some(names);
            let dropped = vec![RemovedTable::new(Arc::clone(&core), Described::of(&core))];
            Ok((NewDefinitions { dropped, views_known, ..NewDefinitions::default() }, ()))
        };
        self.define(drop_it).map(drop)
    }

    /// Gives a table another name.
    ///
    /// # Errors
    /// `NotFound` for an unknown table, `AlreadyExists` when another has the new name,
    /// `InvalidInput` for a bad name.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        expect_usable("table", to)?;
        if is_bound(self.engine(), from) {
            return self.rename_bound_table(from, to);
        }
        let rename = |engine: &Arc<Engine>| {
            let core = named(engine, from)?;
            expect_unbound(&core)?;
            refuse_taken(engine, to)?;
            let names = Arc::clone(engine.names.load().newest());
            view_needs::refuse_read(&names, "table", from, false)?;
            looked_up::refuse_gone(&names, from, &|core| Ok(core.schema()))?;
            let views_known = Some(names);
            let before = Described::of(&core);
            let after = Described { name: to.to_owned(), schema: Arc::clone(&before.schema) };
            let altered = vec![AlteredTable::new(core, before, after)];
            Ok((NewDefinitions { altered, views_known, ..NewDefinitions::default() }, ()))
        };
        self.define(rename).map(drop)
    }

    /// Removes all rows of a table at once, however many there are. Row ids begin again at 1.
    /// Handles go on working; a [`Load`](crate::Load) that has begun before fails.
    ///
    /// # Errors
    /// `NotFound` for an unknown table.
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.engine().define(|engine| truncated(engine, named(engine, name)?)).map(drop)
    }

    /// Changes the fields of a table, in one commit: all the changes or none. Handles go on
    /// working, with the new fields; a [`Load`](crate::Load) or
    /// [`Appender`](crate::Appender) that has begun before fails, unless only indexes change.
    ///
    /// A new field has its default, or its initial value, in the rows there are. Where the default
    /// is another value for each row, a UUID or the next of a sequence, the rows are written anew.
    ///
    /// With [`Alteration::SetExpiry`], rows expire by another field from then on, or no more. What
    /// has expired by the field so far does not come back; older snapshots see what they saw.
    ///
    /// ```
    /// use esker::{Alteration, DataType, Field, FieldId, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build()?;
    /// let table = db.create_table("users", schema)?;
    /// table.insert(&[1i64.into()])?;
    /// let stars = Field::new(FieldId(0), "stars".into(), DataType::U8, false);
    /// let stars = Field { initial: Value::Uint(3), ..stars };
    /// db.alter_table("users", &[Alteration::AddField(stars)])?;
    /// let row = table.get(&[1i64.into()])?.expect("the row is still there");
    /// assert_eq!(row.values(), [Value::Int(1), Value::Uint(3)]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown table, `InvalidInput` for a change that cannot be made.
    pub fn alter_table(&self, name: &str, alterations: &[Alteration]) -> Result<()> {
        self.alter_table_as_of(name, alterations).map(drop)
    }

    /// The same; returns the commit from which on the table is another.
    #[doc(hidden)]
    pub fn alter_table_as_of(&self, name: &str, alterations: &[Alteration]) -> Result<u64> {
        if NewFields::of(alterations).is_some() {
            return self.alter_and_fill(name, alterations);
        }
        let engine = self.engine();
        if let Some(core) = engine.names.load().newest().get(name)
            && (references::concern_others(&core.schema(), alterations)
                || rollup_history::is_concerned(&core.schema(), alterations))
        {
            return self.alter_bound_table(name, alterations);
        }
        let adds_index = alterations.iter().any(|a| matches!(a, Alteration::AddIndex(_)));
        let _building = adds_index.then(|| Building::start(engine));
        let is_unique = |a: &Alteration| matches!(a, Alteration::AddIndex(new) if new.unique);
        let has_unique = alterations.iter().any(is_unique);
        let make = |engine: &Arc<Engine>| {
            let names = Arc::clone(engine.names.load().newest());
            let altered = self.altered(name, alterations, has_unique)?;
            self.refuse_needed(&names, &altered, alterations)?;
            let views_known = Some(names);
            let core = Arc::clone(&altered.core);
            let altered = vec![altered];
            Ok((NewDefinitions { altered, views_known, ..NewDefinitions::default() }, core))
        };
        let (commit, core) = match has_unique {
            true => engine.define_by(make, |new| engine.commit_with_uniques(new))?,
            false => self.define(make)?,
        };
        if expiry::sets_expiry(alterations) {
            engine.look_for_expired_anew(&core);
        }
        if adds_index {
            engine.build_runs_or_later(&core);
        }
        Ok(commit)
    }

    /// A table as some changes make it; rows that have to be tested are.
    fn altered(
        &self,
        name: &str,
        alterations: &[Alteration],
        has_unique: bool,
    ) -> Result<AlteredTable> {
        let engine = self.engine();
        let core = named(engine, name)?;
        let before = Described::of(&core);
        bucket_alteration::refuse_alterations(name, &before.schema, alterations)?;
        let (alterations, sequences) = engine.with_new_sequences(name, alterations)?;
        let alterations = alterations.as_slice();
        let ending = match has_unique || expiry::sets_expiry(alterations) {
            true => Some(EndingExpired::start(engine, &core)?),
            false => None,
        };
        let schema = checked_rows::alter(engine, name, &before.schema, alterations)?;
        let after = Described { name: name.to_owned(), schema };
        let mut altered = AlteredTable::new(core, before, after);
        altered.rows().ending = ending;
        altered.sequences = sequences;
        let tests =
            |a: &Alteration| matches!(a, Alteration::AddCheck(_) | Alteration::SetNotNull(_));
        let after = Arc::clone(&altered.after.schema);
        let has_tests = alterations.iter().any(tests);
        if has_tests || index_test::is_tested(&after, alterations)? {
            altered.unchanged_since = Some(self.test_rows(&altered, alterations)?);
        }
        Ok(altered)
    }

    /// Refuses changes of what a view reads.
    fn refuse_needed(
        &self,
        names: &Names,
        altered: &AlteredTable,
        alterations: &[Alteration],
    ) -> Result<()> {
        let (before, after) = (&altered.before.schema, &altered.after.schema);
        let altered = Altered { name: &altered.before.name, before, after, alterations };
        let options = self.engine().query_options();
        altered.refuse_needed(names, &options, &|core| Ok(core.schema()))
    }

    /// Tests the rows there are: by new checks, and for values where there must be some. Returns
    /// the commit as of which they were tested: what is not durable yet is not visible yet.
    fn test_rows(&self, altered: &AlteredTable, alterations: &[Alteration]) -> Result<u64> {
        let (engine, schema) = (self.engine(), &altered.after.schema);
        let snapshot = self.table(&altered.before.name)?.snapshot()?;
        if !snapshot.is_of(&altered.core) || *snapshot.schema() != altered.before.schema {
            return Err(conflict(format!("table {:?} is another by now", altered.before.name)));
        }
        checked_rows::test_not_null(engine, &snapshot, schema)?;
        checked_rows::test_rows(engine, &snapshot, schema, alterations)?;
        index_test::test_rows(engine, &snapshot, schema, alterations)?;
        Ok(snapshot.commit())
    }

    fn define<R>(
        &self,
        make: impl FnMut(&Arc<Engine>) -> Result<(NewDefinitions, R)>,
    ) -> Result<(u64, R)> {
        self.engine().define(make)
    }
}

/// The newest table of a name.
fn named(engine: &Engine, name: &str) -> Result<Arc<TableCore>> {
    let names = engine.names.load();
    names.newest().get(name).cloned().ok_or_else(|| no_table(name, names.newest()))
}

/// True when references bind the newest table of a name to others.
fn is_bound(engine: &Engine, name: &str) -> bool {
    engine.names.load().newest().get(name).is_some_and(|core| is_with_others(core))
}

/// True when other tables change with its definition.
fn is_with_others(core: &TableCore) -> bool {
    let schema = core.schema();
    schema.is_bound() || schema.changes().is_some()
}

/// References may have come since that was looked at.
fn expect_unbound(core: &TableCore) -> Result<()> {
    match is_with_others(core) {
        true => {
            let name = core.name();
            Err(conflict(format!("table {name:?} has got references or a feed meanwhile")))
        }
        false => Ok(()),
    }
}

/// Refuses a name that a table or a view has.
fn refuse_taken(engine: &Engine, name: &str) -> Result<()> {
    match engine.names.load().newest().taken(name) {
        Some(message) => Err(Error::new(ErrorKind::AlreadyExists, message)),
        None => Ok(()),
    }
}

/// A table without rows in the place of another.
fn truncated(engine: &Engine, old: Arc<TableCore>) -> Result<(NewDefinitions, ())> {
    let before = Described::of(&old);
    references::refuse_named(&before.name, &before.schema, &[])?;
    refuse_companion(&before.name, &before.schema, "truncated")?;
    let core = engine.new_numbered_table(&before.name, (*before.schema).clone())?;
    let replacement = CreatedTable { core, next_row_id: 1, sequences: Vec::new() };
    let old = RemovedTable::new(old, before);
    let truncated = vec![TruncatedTable { old, replacement, unchanged_since: None }];
    Ok((NewDefinitions { truncated, ..NewDefinitions::default() }, ()))
}

/// Enters the rows there are into new unique indexes, or those that have come since.
fn build_uniques(engine: &Engine, altered: &AlteredTable) -> Result<()> {
    let begun = altered.rows().building.take();
    let mut building = match begun {
        Some(building) => building,
        None => BuildingUniques::start(engine, &altered.core, &altered.after.schema)?,
    };
    while building.is_behind() {
        building.catch_up(engine)?;
    }
    altered.rows().building = Some(building);
    Ok(())
}

impl EngineHandle {
    /// Removes all rows of the table that a handle stands for, whatever its name is now.
    pub(crate) fn truncate_core(&self, table: &Table) -> Result<()> {
        let truncate = |engine: &Arc<Engine>| {
            let core = table.core();
            if core.is_dropped() {
                return Err(Error::new(ErrorKind::NotFound, "the table has been dropped"));
            }
            truncated(engine, Arc::clone(core))
        };
        self.define(truncate).map(drop)
    }

    /// Commits definitions; makes them anew when other commits come first.
    fn define<R>(
        &self,
        make: impl FnMut(&Arc<Engine>) -> Result<(NewDefinitions, R)>,
    ) -> Result<(u64, R)> {
        self.define_by(make, |new| self.commit_definitions(new))
    }

    fn define_by<R>(
        &self,
        mut make: impl FnMut(&Arc<Engine>) -> Result<(NewDefinitions, R)>,
        commit: impl Fn(&NewDefinitions) -> Result<u64>,
    ) -> Result<(u64, R)> {
        for _ in 0..ATTEMPTS_MAX {
            match make(self).and_then(|(new, made)| Ok((commit(&new)?, made))) {
                Ok(done) => return Ok(done),
                // What is not yet durable is not yet visible: made again when it is.
                Err(e) if e.kind() == ErrorKind::Conflict => self.wait_for_published()?,
                Err(e) => {
                    // What a refusal rests on is reported once it is durable.
                    if e.kind() != ErrorKind::OutcomeUnknown && e.kind() != ErrorKind::Poisoned {
                        self.acknowledge_published()?;
                    }
                    return Err(e);
                }
            }
        }
        let message = format!("tried {ATTEMPTS_MAX} times beside other writers");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The same of tables with new unique indexes. No row group may be sealed or merged until these
    /// are there.
    fn commit_with_uniques(&self, new: &NewDefinitions) -> Result<u64> {
        let is_behind = || new.altered.iter().any(|altered| altered.rows().is_behind());
        self.exclusively(|engine| {
            loop {
                new.altered.iter().try_for_each(|altered| build_uniques(engine, altered))?;
                match self.commit_definitions(new) {
                    // The lock was given up for what a load has added.
                    Err(e) if e.kind() == ErrorKind::Conflict && is_behind() => {}
                    done => return done,
                }
            }
        })
    }

    fn commit_definitions(&self, new: &NewDefinitions) -> Result<u64> {
        let definitions = Some(new);
        let options =
            CommitOptions { definitions, tells_commit: false, ..CommitOptions::default() };
        self.commit_writes(WriteSet::Many(Vec::new()), options, |_, _, _| Ok(()))
    }
}

impl Engine {
    /// Builds the runs of new indexes. These are there, whatever becomes of their runs: it tries
    /// again.
    pub(crate) fn build_runs_or_later(self: &Arc<Self>, core: &Arc<TableCore>) {
        if let Err(e) = self.build_runs(core, &mut |_, _| ()) {
            self.maintenance_state().last_error = Some(e.to_string());
            self.wake_maintenance();
        }
    }

    /// Removes the files of a table that is gone, once that is durable: a crash before would bring
    /// the table back.
    pub(crate) fn remove_files_of(&self, core: &TableCore, index_file: u64) {
        if !Bug::RemovedBeforeDurable.is_planted() && self.sync().is_err() {
            return;
        }
        core.view().segments().for_each(|segment| segment.mark_for_deletion());
        if index_file != 0 {
            self.segment_files.remove_other(&index_path(&self.dir, index_file));
        }
        self.wake_maintenance();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{NewDefinitions, build_uniques};
    use crate::catalog::unique_build::BEHIND_ROWS;
    use crate::{Alteration, DataType, ErrorKind, NewIndex, Options, Schema, Value};
    use esker_vfs::sim::{Options as SimOptions, Simulation};

    /// All its rows were entered while every writer waited for the lock.
    #[test]
    fn a_load_that_commits_before_a_unique_index_does_is_entered_without_the_lock() {
        let db = Options::new().background(false).memory().unwrap();
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        let t = db.create_table("t", schema).unwrap();
        let index = Alteration::AddIndex(NewIndex::new("by_n", ["n"]).unique());
        let altered = vec![db.altered("t", &[index], true).unwrap()];
        let new = NewDefinitions { altered, ..NewDefinitions::default() };
        let (engine, altered) = (db.engine(), &new.altered[0]);
        build_uniques(engine, altered).unwrap();
        let mut load = t.load().unwrap();
        let rows = i64::try_from(2 * BEHIND_ROWS).unwrap();
        (0..rows).for_each(|n| load.push_row(&[Value::Int(n)]).unwrap());
        load.finish().unwrap();
        assert_eq!(engine.commit_definitions(&new).unwrap_err().kind(), ErrorKind::Conflict);
        assert!(altered.rows().is_behind(), "they are yet to be entered, where it had begun");
        engine.commit_with_uniques(&new).unwrap();
        assert_eq!(t.insert(&[Value::Int(7)]).unwrap_err().kind(), ErrorKind::AlreadyExists);
        t.insert(&[Value::Int(rows)]).unwrap();
    }

    #[test]
    fn a_name_is_not_seen_before_it_is_durable() {
        let machine = Simulation::new(1, SimOptions::default());
        let options = Options::new().environment(machine.environment()).background(false);
        let db = options.open("db").unwrap();
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        db.create_table("old", schema).unwrap();
        let deferred = db.deferred();
        deferred.rename_table("old", "new").unwrap();
        let meanwhile = db.snapshot().unwrap();
        assert!(meanwhile.commit() < deferred.commit().unwrap());
        db.sync().unwrap();
        let after = db.snapshot().unwrap();
        for (snapshot, there, not_there) in [(meanwhile, "old", "new"), (after, "new", "old")] {
            snapshot.table(there).unwrap();
            snapshot.table(not_there).err().expect("another name");
        }
    }
    #[test]
    fn what_expires_while_the_end_of_expiry_is_synced_never_was_gone() {
        let machine = Simulation::new(1, SimOptions::default());
        let options = Options::new().environment(machine.environment()).background(false);
        let db = options.open("db").unwrap();
        let schema = Schema::builder().field("n", DataType::I64);
        let schema = schema.nullable("a", DataType::Timestamp).nullable("b", DataType::Timestamp);
        let schema = schema.primary_key(["n"]).expires_by("a").build().unwrap();
        let table = db.create_table("t", schema).unwrap();
        let end = |seconds: i64| Value::Timestamp(db.engine().now().date_us + seconds * 1_000_000);
        // Before the change, while it is synced, and after that.
        for (n, seconds) in [(0, 5), (1, 20), (2, 100)] {
            table.insert(&[Value::Int(n), end(seconds), end(seconds)]).unwrap();
        }
        let seen = |snapshot: &crate::Snapshot| -> Vec<bool> {
            let rows = snapshot.table("t").unwrap();
            let by_key = (0..3).map(|n| rows.get(&[Value::Int(n)]).unwrap().is_some());
            let by_key: Vec<bool> = by_key.collect();
            assert_eq!(rows.count().unwrap(), by_key.iter().filter(|is| **is).count() as u64);
            by_key
        };
        for field in [None, Some("b".to_owned())] {
            let is_over = field.is_some();
            machine.advance_clock(Duration::from_secs(10));
            let change = [Alteration::SetExpiry(field)];
            let deferred = db.deferred();
            deferred.alter_table("t", &change).unwrap();
            machine.advance_clock(Duration::from_secs(20));
            let meanwhile = db.snapshot().unwrap();
            assert!(meanwhile.commit() < deferred.commit().unwrap());
            assert_eq!(seen(&meanwhile), [false, true, true]);
            assert!(table.get(&[Value::Int(1)]).unwrap().is_some());
            db.sync().unwrap();
            // By the new field it may have expired since.
            assert_eq!(seen(&db.snapshot().unwrap()), [false, !is_over, true]);
            assert_eq!(table.get(&[Value::Int(1)]).unwrap().is_some(), !is_over);
            assert_eq!(seen(&meanwhile), [false, true, true]);
        }
        // A time before the change is no later than it was.
        let before = db.snapshot().unwrap();
        machine.advance_clock(Duration::from_secs(60));
        db.alter_table("t", &[Alteration::SetExpiry(None)]).unwrap();
        assert_eq!(seen(&before), [false, false, true]);
        assert_eq!(seen(&db.snapshot().unwrap()), [false, false, false]);
    }
}
