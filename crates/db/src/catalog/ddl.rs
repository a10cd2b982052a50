//! Changing tables themselves: their fields, their names, all their rows at once.
//!
//! Each is one frame of the log. Rows stay as they are, unless a new field has another value in
//! each of them: what a schema says about older rows is in [`Alteration`]. Readers at older commits
//! go on seeing the older schema, name and rows.

use std::sync::Arc;

use esker_format::edit::Edit;
use esker_format::schema::{Alteration, validate_name};
use esker_log::sabotage::planted;
use esker_table::Table as TableCore;

use crate::bucket;
use crate::catalog::checks;
use crate::catalog::expiry;
use crate::catalog::expiry::EndingExpired;
use crate::catalog::new_fields::NewFields;
use crate::catalog::unique_build::BuildingUniques;
use crate::commit::journal::Ticket;
use crate::commit::log_reserve::purpose_of_change;
use crate::commit::pipeline::entry;
use crate::engine::Engine;
use crate::maintenance::{Building, index_path};
use crate::{Database, Error, ErrorKind, Result, SnapshotTable};

/// How often a change with a new check begins anew when rows are written meanwhile.
const ATTEMPTS_MAX: usize = 64;

impl Database {
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
        let tests =
            |a: &Alteration| matches!(a, Alteration::AddCheck(_) | Alteration::SetNotNull(_));
        let must_test = alterations.iter().any(tests);
        let adds_index = alterations.iter().any(|a| matches!(a, Alteration::AddIndex(_)));
        let _building = adds_index.then(|| Building::start(engine));
        let is_unique = |a: &Alteration| matches!(a, Alteration::AddIndex(new) if new.unique);
        let has_unique = alterations.iter().any(is_unique);
        for _ in 0..ATTEMPTS_MAX {
            let ending = match has_unique || expiry::sets_expiry(alterations) {
                true => {
                    // Not with the lock held.
                    let core = Arc::clone(&engine.lock_table(name)?.1);
                    bucket::refuse_alterations(name, &core.schema(), alterations)?;
                    Some(EndingExpired::start(engine, &core)?)
                }
                false => None,
            };
            let tested = match must_test {
                true => Some(self.test_checks(name, alterations)?),
                false => None,
            };
            let altered = match has_unique {
                true => {
                    let altered = engine.exclusively(|_| {
                        self.alter_with_uniques(name, alterations, tested.as_ref(), ending)
                    });
                    if altered.is_err() {
                        // What is not durable yet is not reported.
                        engine.acknowledge_published()?;
                    }
                    altered?
                }
                false => {
                    self.alter_unless_changed(name, alterations, tested.as_ref(), (None, ending))?
                }
            };
            if let Some((ticket, core)) = altered {
                engine.acknowledge(ticket)?;
                if expiry::sets_expiry(alterations) {
                    engine.look_for_expired_anew(&core);
                }
                if adds_index {
                    engine.build_runs_or_later(&core);
                }
                return Ok(ticket.commit());
            }
            // What is not durable yet is not visible yet: test it when it is.
            engine.acknowledge_published()?;
        }
        let message = format!("tried {ATTEMPTS_MAX} times beside other writers");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Changes a table that gets unique indexes. No other maintenance may run.
    fn alter_with_uniques(
        &self,
        name: &str,
        alterations: &[Alteration],
        tested: Option<&SnapshotTable>,
        ending: Option<EndingExpired>,
    ) -> Result<Option<(Ticket, Arc<TableCore>)>> {
        let engine = self.engine();
        let core = {
            let (_catalogue, core) = self.engine().lock_table(name)?;
            core
        };
        let schema = checks::alter(engine, name, &core.schema(), alterations)?;
        let building = BuildingUniques::start(engine, &core, &schema)?;
        self.alter_unless_changed(name, alterations, tested, (Some(building), ending))
    }

    /// Tests the rows there are: by new checks, and for values where there must be some. Returns
    /// what it tested.
    fn test_checks(&self, name: &str, alterations: &[Alteration]) -> Result<SnapshotTable> {
        let (engine, snapshot) = (self.engine(), self.table(name)?.snapshot()?);
        let schema = checks::alter(engine, name, snapshot.schema(), alterations)?;
        checks::test_not_null(engine, &snapshot, &schema)?;
        checks::test_rows(engine, &snapshot, &schema, alterations)?;
        Ok(snapshot)
    }

    /// Nothing when rows were written since the snapshot that new checks were tested on, or that is
    /// of another table or schema: what is published may not be visible yet.
    fn alter_unless_changed(
        &self,
        name: &str,
        alterations: &[Alteration],
        tested: Option<&SnapshotTable>,
        (mut building, ending): (Option<BuildingUniques>, Option<EndingExpired>),
    ) -> Result<Option<(Ticket, Arc<TableCore>)>> {
        let engine = self.engine();
        let (mut catalogue, core) = loop {
            let locked = engine.lock_table(name)?;
            match &mut building {
                Some(building) if building.is_behind() => {
                    drop(locked);
                    building.catch_up(engine)?;
                }
                _ => break locked,
            }
        };
        let changed_at = entry(&mut catalogue, core.id())?.changed_at;
        if let Some(tested) = tested
            && (!tested.is_of(&core) || changed_at > tested.commit())
        {
            return Ok(None);
        }
        let before = core.schema();
        let schema = checks::alter(engine, name, &before, alterations)?;
        engine.expect_sequences(&schema)?;
        let standing = engine.let_time_stand();
        match ending {
            Some(ending) if ending.is_of(&core) => ending.finish(engine, &mut catalogue)?,
            None if !expiry::ends_expiry(&before, &schema) => {}
            _ => return Ok(None),
        }
        let uniques = match building {
            None => Vec::new(),
            Some(building) => match building.finish(&core, &schema)? {
                Some(uniques) => uniques,
                None => return Ok(None),
            },
        };
        let (table, name) = (core.id(), name.to_owned());
        let edit = Edit::AlterTable { table, name, schema: (*schema).clone() };
        engine.note_new_expiry(&before, &schema)?;
        let ticket = engine.append_edit_for(purpose_of_change(&before, &schema), &edit)?;
        let at = (ticket.commit(), standing.now());
        entry(&mut catalogue, table)?.writer.alter(schema, &uniques, at);
        drop(standing);
        Ok(Some((self.engine().publish_edit(&catalogue, ticket), core)))
    }

    /// Gives a table another name.
    ///
    /// # Errors
    /// `NotFound` for an unknown table, `AlreadyExists` when another has the new name,
    /// `InvalidInput` for a bad name.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        validate_name("table", to)?;
        let ticket = self.rename_published(from, to)?;
        self.engine().acknowledge(ticket)
    }

    /// Renames a table; that is not durable yet.
    fn rename_published(&self, from: &str, to: &str) -> Result<Ticket> {
        let engine = self.engine();
        let (mut catalogue, core) = self.engine().lock_table(from)?;
        if engine.names.load().newest().contains_key(to) {
            drop(catalogue);
            engine.acknowledge_published()?;
            let message = format!("table {to:?} exists already");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let (table, schema) = (core.id(), (*core.schema()).clone());
        let edit = Edit::AlterTable { table, name: to.to_owned(), schema };
        let entry = entry(&mut catalogue, table)?;
        let ticket = engine.append_edit(&edit)?;
        to.clone_into(&mut entry.name);
        core.rename(to);
        engine.change_names(ticket.commit(), |names| {
            names.remove(from);
            names.insert(to.to_owned(), core);
        });
        Ok(self.engine().publish_edit(&catalogue, ticket))
    }

    /// Removes all rows of a table at once, however many there are. Row ids begin again at 1.
    /// Handles go on working; a [`Load`](crate::Load) that has begun before fails.
    ///
    /// # Errors
    /// `NotFound` for an unknown table.
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.engine().truncate(name)
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
        if !planted("removed_before_durable") && self.sync().is_err() {
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

    use crate::catalog::expiry::EndingExpired;
    use crate::{Alteration, DataType, Options, Schema, Value};
    use esker_vfs::sim::{Options as SimOptions, Simulation};

    #[test]
    fn a_name_is_not_seen_before_it_is_durable() {
        let machine = Simulation::new(1, SimOptions::default());
        let options = Options::new().environment(machine.environment()).background(false);
        let db = options.open("db").unwrap();
        let schema = Schema::builder().field("n", DataType::I64).build().unwrap();
        db.create_table("old", schema).unwrap();
        let ticket = db.rename_published("old", "new").unwrap();
        let meanwhile = db.snapshot().unwrap();
        assert!(meanwhile.commit() < ticket.commit());
        db.engine().acknowledge(ticket).unwrap();
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
            let ending = EndingExpired::start(db.engine(), &table.current().core).unwrap();
            let change = [Alteration::SetExpiry(field)];
            let altered = db.alter_unless_changed("t", &change, None, (None, Some(ending)));
            let (ticket, _) = altered.unwrap().unwrap();
            machine.advance_clock(Duration::from_secs(20));
            let meanwhile = db.snapshot().unwrap();
            assert!(meanwhile.commit() < ticket.commit());
            assert_eq!(seen(&meanwhile), [false, true, true]);
            assert!(table.get(&[Value::Int(1)]).unwrap().is_some());
            db.engine().acknowledge(ticket).unwrap();
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
