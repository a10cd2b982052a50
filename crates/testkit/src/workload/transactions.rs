//! Transactions of a client: several changes of several tables, and of the tables themselves, with
//! savepoints and reads within, while others commit.

use std::ops::Bound;
use std::sync::Arc;

use esker::{
    ErrorKind, Isolation, Modified, Query, Savepoint, Transaction, TransactionOptions,
    TransactionTable, Value,
};

use super::client::{Client, KEYS, TABLES, Way};
use super::world::{Done, modelled};
use crate::answer::Saw;
use crate::history::Action;
use crate::model::{NewRow, State, TableKind};
use crate::operators::Operators;
use crate::schema::FieldChange;
use crate::statement::Statement;
use crate::transaction::{Run, Staged, Step, is_fault};

/// A transaction under way.
struct Running {
    transaction: Option<Transaction>,
    run: Run,
    /// What it sees, as far as is known.
    staged: Staged,
    savepoints: Vec<(Savepoint, Staged)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What is below on the stack cannot go on, so nothing may wait for it.
            std::mem::forget(self.transaction.take());
        }
    }
}

impl Running {
    /// A table that there is, as far as is known.
    fn state(&self) -> &State {
        self.staged.state()
    }

    fn transaction(&self) -> esker::Result<&Transaction> {
        let gone = || esker::Error::new(ErrorKind::InvalidInput, "the transaction has ended");
        self.transaction.as_ref().ok_or_else(gone)
    }

    fn table(&self, name: &str) -> esker::Result<TransactionTable<'_>> {
        self.transaction()?.table(name)
    }
}

/// Whether a table has the key of a kind: what another has committed since the last that is known
/// may be another table of that name.
fn is_of_kind(table: &TransactionTable<'_>, kind: TableKind) -> bool {
    let is_text = |field: &esker::Field| field.data_type == esker::DataType::Text;
    let shape: Vec<bool> = table.schema().key_fields().map(is_text).collect();
    let known: &[bool] = match kind {
        TableKind::Text => &[true],
        TableKind::Composite => &[true, false],
        TableKind::Integer => &[false],
        TableKind::Generated => &[],
    };
    shape == known
}

impl Client {
    /// Does some operations in one transaction.
    pub(super) fn transact(&mut self) {
        let Some(db) = self.world.lock().db.clone() else { return };
        let serializable = self.generator.chance(400_000);
        let isolation = if serializable { Isolation::Serializable } else { Isolation::Snapshot };
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = match db.begin_with(options) {
            Ok(transaction) => transaction,
            Err(e) => return self.read_failed(&e),
        };
        let read_at = transaction.read_at();
        let base = Arc::clone(self.world.lock().history.at(read_at));
        let mut running = Running {
            transaction: Some(transaction),
            run: Run { read_at, serializable, ..Run::default() },
            staged: Staged::new(base),
            savepoints: Vec::new(),
        };
        let goes_on = (0..2 + self.generator.below(9)).all(|_| self.step(&mut running));
        self.end(running, goes_on);
    }

    /// Ends a transaction; one that met a fault goes back.
    fn end(&mut self, mut running: Running, goes_on: bool) {
        let Some(transaction) = running.transaction.take() else { return };
        let mut run = std::mem::take(&mut running.run);
        run.is_rolled_back = !goes_on || self.generator.chance(100_000);
        let (read_at, is_rolled_back) = (run.read_at, run.is_rolled_back);
        let action = Action::Transaction(Box::new(run.clone()));
        // Who comes next has the number after the newest commit of now.
        let Some(begun) = self.world.begin(Some(&action), None) else { return };
        let result = if is_rolled_back {
            transaction.rollback();
            Ok(Done::Unchanged)
        } else {
            transaction.commit().map(|commit| match commit > read_at {
                true => Done::Changed { row_id: None, commit: Some(commit) },
                false => Done::Unchanged,
            })
        };
        if result.is_ok() && !is_rolled_back {
            run.told = read_at;
        }
        self.world.end(&begun, Action::Transaction(Box::new(run)), result, None);
    }

    /// One step; false when the machine fails.
    fn step(&mut self, running: &mut Running) -> bool {
        match self.generator.below(100) {
            0..14 => self.put_within(running, false),
            14..32 => self.put_within(running, true),
            32..42 => self.update_within(running),
            42..52 => self.delete_within(running),
            52..58 if self.world.is_alone => self.operate_within(running),
            52..62 => self.delete_range_within(running),
            62..70 => self.state_within(running),
            70..82 => self.read_within(running),
            82..91 => self.savepoint(running),
            91..97 => self.define(running),
            _ => self.overtake(running),
        }
    }

    /// Notes what a change was answered; false when the machine fails.
    fn stepped(
        &mut self,
        running: &mut Running,
        action: Action,
        result: esker::Result<u64>,
    ) -> bool {
        let answer = result.map_err(|e| {
            self.meet(&e);
            modelled(e.kind())
        });
        if action.changes_rows_of().is_none() && answer.is_ok() {
            self.world.lock().expect(Some(&action));
        }
        if answer.is_ok() {
            let before = running.staged.clone();
            if running.staged.change(&action).is_err() {
                running.staged = before;
            }
            running.run.told = running.run.read_at;
        }
        let goes_on = !answer.is_err_and(is_fault);
        running.run.steps.push(Step::Change(action, answer));
        goes_on
    }

    /// An error that may mean that this life of the database is over.
    fn meet(&self, error: &esker::Error) {
        let is_over = matches!(error.kind(), ErrorKind::Poisoned | ErrorKind::OutcomeUnknown);
        let mut inner = self.world.lock();
        inner.over |= is_over;
        // The step has the kind only, and nothing is damaged here.
        if error.kind() == ErrorKind::Corrupt {
            inner.problem.get_or_insert(format!("a transaction: {error}"));
        }
    }

    fn pick_within(&mut self, running: &Running) -> Option<(String, TableKind)> {
        let state = running.state();
        let at = self.generator.index(state.tables.len().max(1));
        let (name, kind) = state.tables.iter().nth(at).map(|(name, table)| (name, table.kind))?;
        let is_other = running.table(name).is_ok_and(|within| !is_of_kind(&within, kind));
        (!is_other).then(|| (name.clone(), kind))
    }

    fn put_within(&mut self, running: &mut Running, upsert: bool) -> bool {
        let Some((table, kind)) = self.pick_within(running) else { return self.define(running) };
        let count = if self.generator.chance(500_000) { 1 } else { 1 + self.generator.below(6) };
        let schema = running.state().table(&table).map(|table| Arc::clone(&table.schema));
        let Some(schema) = schema else { return true };
        let rows: Vec<NewRow> = (0..count).map(|_| self.new_row(kind, &schema, KEYS)).collect();
        let values: Vec<Vec<Value>> = rows.iter().map(|row| row.values.clone()).collect();
        let result = running.table(&table).and_then(|within| match values.as_slice() {
            [row] if upsert => within.upsert(row).map(drop),
            [row] => within.insert(row).map(drop),
            _ if upsert => within.upsert_many(&values),
            _ => within.insert_many(&values),
        });
        let action = match upsert {
            true => Action::Upsert { table, rows },
            false => Action::Insert { table, rows },
        };
        self.stepped(running, action, result.map(|()| count))
    }

    /// A table and a row of it, usually, whose key is known.
    fn pick_row_within(&mut self, running: &Running) -> Option<(String, u64, Vec<Value>)> {
        let (name, _) = self.pick_within(running)?;
        let (ident, key) = self.pick_row(running.state().table(&name)?);
        (key != [Value::Uint(u64::MAX >> 1)]).then_some((name, ident, key))
    }

    fn update_within(&mut self, running: &mut Running) -> bool {
        let Some((name, ident, key)) = self.pick_row_within(running) else { return true };
        let Some(table) = running.state().table(&name) else { return true };
        let serial = self.world.serial();
        let changes = table.kind.changes(&table.schema, serial, &mut self.generator);
        let values: Vec<_> = changes.iter().map(|(f, value)| (f.as_str(), value.clone())).collect();
        let result = running.table(&name).and_then(|within| within.update(&key, &values));
        let action = Action::Update { table: name, ident, changes };
        self.stepped(running, action, result.map(u64::from))
    }

    fn delete_within(&mut self, running: &mut Running) -> bool {
        let Some((table, ident, key)) = self.pick_row_within(running) else { return true };
        let result = running.table(&table).and_then(|within| within.delete(&key));
        self.stepped(running, Action::Delete { table, ident }, result.map(u64::from))
    }

    fn operate_within(&mut self, running: &mut Running) -> bool {
        let Some((table, ident, key)) = self.pick_row_within(running) else { return true };
        let Some(state) = running.state().table(&table) else { return true };
        let operators = Operators::draw(state, self.world.serial(), &mut self.generator);
        let update = operators.to_update();
        let result = running.table(&table).and_then(|within| within.apply(&key, &update));
        let result = result.map(|modified| u64::from(modified != Modified::Absent));
        self.stepped(running, Action::Operate { table, ident, operators }, result)
    }

    fn delete_range_within(&mut self, running: &mut Running) -> bool {
        let Some((table, kind)) = self.pick_within(running) else { return true };
        let mut bound = || {
            let is_bound = kind != TableKind::Generated && self.generator.chance(900_000);
            is_bound.then(|| self.generator.below(KEYS))
        };
        let (mut from, mut until) = (bound(), bound());
        if let (Some(a), Some(b)) = (from, until)
            && kind.place(a) > kind.place(b)
        {
            (from, until) = (Some(b), Some(a));
        }
        let result = running.table(&table).and_then(|within| match (from, until) {
            (None, None) => within.clear(),
            _ => within.delete_range((
                from.map_or(Bound::Unbounded, |ident| Bound::Included(kind.key(ident))),
                until.map_or(Bound::Unbounded, |ident| Bound::Excluded(kind.key(ident))),
            )),
        });
        self.stepped(running, Action::DeleteRange { table, from, until }, result)
    }

    fn state_within(&mut self, running: &mut Running) -> bool {
        let Some((name, kind)) = self.pick_within(running) else { return true };
        let Some(table) = running.state().table(&name).cloned() else { return true };
        if !self.world.is_alone && self.world.lock().altered.contains(&name) {
            return true;
        }
        let world = Arc::clone(&self.world);
        let statement = Statement::draw(&table, &mut self.generator, |generator| {
            let serial = world.serial();
            let is_generated = kind == TableKind::Generated;
            let ident = if is_generated { serial } else { generator.below(KEYS) };
            kind.row_of(&table.schema, ident, serial, generator)
        });
        let change = statement.to_change(&name, &table.schema);
        let result = running.transaction().and_then(|transaction| transaction.change(&change));
        let drawn = Arc::clone(&table.schema);
        self.stepped(running, Action::Statement { table: name, statement, drawn }, result)
    }

    fn read_within(&mut self, running: &mut Running) -> bool {
        let drawn = match self.generator.chance(50_000) {
            true => None,
            false => self.pick_within(running),
        };
        let name = drawn.map_or_else(|| self.generator.pick(TABLES).to_owned(), |(name, _)| name);
        let kind = running.state().table(&name).map(|table| table.kind);
        let row = running.state().table(&name).map(|table| self.pick_row(table));
        let within = match running.table(&name) {
            Ok(within) => within,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                running.run.steps.push(Step::Read(name, Saw::Nothing));
                return true;
            }
            Err(e) => return self.read_failed_within(&e),
        };
        let row = row.filter(|_| kind.is_some_and(|kind| is_of_kind(&within, kind)));
        let saw = match (self.generator.below(10), row) {
            (0..4, Some((ident, key))) if key != [Value::Uint(u64::MAX >> 1)] => {
                let row = within.get(&key);
                row.map(|row| Saw::Row(ident, row.map(esker::Row::into_values)))
            }
            (0..6, _) => within.count().map(Saw::Count),
            (6, _) if kind.is_some_and(|kind| kind != TableKind::Generated) => {
                let rows = within.range(..).and_then(|range| range.collect::<Result<Vec<_>, _>>());
                let rows = rows.map(|rows| rows.into_iter().map(esker::Row::into_values));
                rows.map(|rows| Saw::Answer(rows.collect()))
            }
            (7, _) => Ok(Saw::Schema(Box::new((**within.schema()).clone()))),
            _ => {
                let answer = running.transaction().and_then(|t| t.query(&Query::table(&name)));
                answer.map(|answer| Saw::Answer(answer.to_rows()))
            }
        };
        match saw {
            Ok(saw) => {
                running.run.told = running.run.read_at;
                running.run.steps.push(Step::Read(name, saw));
                true
            }
            Err(e) => self.read_failed_within(&e),
        }
    }

    fn read_failed_within(&self, error: &esker::Error) -> bool {
        self.meet(error);
        if !(is_fault(error.kind()) && self.world.lock().history.is_faulty()) {
            self.world.fail(format!("a read within a transaction failed: {error}"));
        }
        false
    }

    fn savepoint(&mut self, running: &mut Running) -> bool {
        let Ok(transaction) = running.transaction() else { return true };
        let at = self.generator.index(running.savepoints.len().max(1));
        let Some((savepoint, staged)) = running.savepoints.get(at).cloned() else {
            let savepoint = transaction.savepoint();
            running.savepoints.push((savepoint, running.staged.clone()));
            running.run.steps.push(Step::Savepoint);
            return true;
        };
        let (step, result) = match self.generator.below(10) {
            0..6 => {
                let result = transaction.rollback_to(savepoint);
                running.staged.go_back_to(&staged);
                running.savepoints.truncate(at + 1);
                (Step::RollbackTo(at), result)
            }
            6..8 => {
                let result = transaction.release(savepoint);
                running.savepoints.truncate(at);
                (Step::Release(at), result)
            }
            _ => {
                let savepoint = transaction.savepoint();
                running.savepoints.push((savepoint, running.staged.clone()));
                (Step::Savepoint, Ok(()))
            }
        };
        if let Err(e) = result {
            self.world.fail(format!("{step:?}: {e}"));
        }
        running.run.steps.push(step);
        true
    }

    /// Creates, alters, truncates, drops or renames a table.
    fn define(&mut self, running: &mut Running) -> bool {
        let name = self.generator.pick(TABLES).to_owned();
        let drawn = self.pick_within(running);
        match (self.generator.below(10), drawn) {
            (0..4, Some((table, kind))) => self.alter_within(running, table, kind),
            (4 | 5, Some((from, _))) => {
                let result = running.transaction().and_then(|t| t.rename_table(&from, &name));
                self.stepped(running, Action::Rename { from, to: name }, result.map(|()| 0))
            }
            (6, _) => {
                let result = running.transaction().and_then(|t| t.drop_table(&name));
                self.stepped(running, Action::Drop { name }, result.map(|()| 0))
            }
            (7, Some((table, _))) => {
                let result = running.transaction().and_then(|t| t.truncate_table(&table));
                let incarnation = self.world.serial();
                let action = Action::Truncate { table, incarnation };
                self.stepped(running, action, result.map(|()| 0))
            }
            _ => {
                let (kind, incarnation) =
                    (self.generator.pick(TableKind::ALL), self.world.serial());
                let create = |transaction: &Transaction| {
                    transaction.create_table(&name, kind.schema()?).map(|_| 0)
                };
                let result = running.transaction().and_then(create);
                let is_made = result.is_ok();
                let action = Action::Create { name, kind, incarnation };
                let goes_on = self.stepped(running, action, result);
                match is_made && goes_on {
                    true => self.put_within(running, false),
                    false => goes_on,
                }
            }
        }
    }

    fn alter_within(&mut self, running: &mut Running, table: String, kind: TableKind) -> bool {
        let Some(state) = running.state().table(&table) else { return true };
        let mut changes = FieldChange::draw(kind, &state.schema, &mut self.generator);
        if !self.waits_allowed {
            // An index is built before the commit returns.
            changes.retain(|change| !matches!(change, FieldChange::AddIndex(_)));
        }
        let alterations = changes.iter().map(FieldChange::to_alteration);
        let alterations = match alterations.collect::<esker::Result<Vec<_>>>() {
            Ok(alterations) if !alterations.is_empty() => alterations,
            _ => return true,
        };
        let alter = |transaction: &Transaction| transaction.alter_table(&table, &alterations);
        let result = running.transaction().and_then(alter);
        self.stepped(running, Action::Alter { table, changes }, result.map(|()| 0))
    }

    /// Commits something beside the transaction.
    fn overtake(&mut self, running: &Running) -> bool {
        // With faults, the number of a commit of unknown outcome must be told from others.
        if self.world.lock().history.is_faulty() || running.run.steps.is_empty() {
            return true;
        }
        let state = self.world.state();
        if state.tables.is_empty() {
            return true;
        }
        match self.generator.below(4) {
            0 => self.update(&state),
            1 => self.delete(&state),
            2 => self.write(&state, Way::One, false),
            _ => self.write(&state, Way::One, true),
        }
        true
    }
}
