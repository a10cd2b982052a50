//! Places within a transaction to go back to.

use esker_log::sabotage::Bug;

use crate::{Error, Result};

use super::undo::Savepoints;
use super::{State, Transaction};

/// A place within a transaction to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint {
    transaction: u64,
    number: u64,
}

impl Transaction {
    /// Remembers how the transaction is now.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build()?;
    /// db.create_table("t", schema)?;
    /// let transaction = db.begin()?;
    /// let t = transaction.table("t")?;
    /// t.insert(&[1i64.into()])?;
    /// let savepoint = transaction.savepoint();
    /// t.insert(&[2i64.into()])?;
    /// transaction.rollback_to(savepoint)?;
    /// assert_eq!(t.count()?, 1);
    /// transaction.commit()?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        let mut state = self.state();
        let done = state.undo.len();
        let savepoints = &mut state.savepoints;
        let number = savepoints.next;
        savepoints.next += 1;
        savepoints.stack.push((number, done));
        Savepoint { transaction: self.number, number }
    }

    /// Takes back what was changed since a savepoint, which stays, and with it the savepoints that
    /// came later.
    ///
    /// # Errors
    /// `InvalidInput` when the savepoint was released, or went with an earlier one.
    pub fn rollback_to(&self, savepoint: Savepoint) -> Result<()> {
        let mut state = self.state();
        let at = state.savepoints.find(self.number, savepoint)?;
        let missing = || Error::corrupt(format!("no savepoint {at}"));
        let done = state.savepoints.stack.get(at).map(|(_, done)| *done).ok_or_else(missing)?;
        state.savepoints.stack.truncate(at + 1);
        if !Bug::SavepointKeepsChanges.is_planted() {
            state.undo_to(done);
        }
        Ok(())
    }

    /// Does something; where that fails, the transaction is as it was before.
    ///
    /// # Errors
    /// What it fails with.
    pub fn all_or_nothing<R, E: From<Error>>(
        &self,
        act: impl FnOnce(&Self) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let savepoint = self.savepoint();
        let done = act(self);
        if done.is_err() {
            self.rollback_to(savepoint)?;
        }
        self.release(savepoint)?;
        done
    }

    /// Forgets a savepoint and those that came later; what was changed since stays.
    ///
    /// # Errors
    /// As for [`Transaction::rollback_to`].
    pub fn release(&self, savepoint: Savepoint) -> Result<()> {
        let mut state = self.state();
        let at = state.savepoints.find(self.number, savepoint)?;
        state.savepoints.stack.truncate(at);
        state.forget_undo();
        Ok(())
    }
}

impl Savepoints {
    fn find(&self, transaction: u64, savepoint: Savepoint) -> Result<usize> {
        if savepoint.transaction != transaction {
            return Err(Error::invalid("a savepoint of another transaction"));
        }
        let found = self.stack.iter().position(|(number, _)| *number == savepoint.number);
        found.ok_or_else(|| Error::invalid("a savepoint that was released or rolled back"))
    }
}

impl State {
    /// Without a savepoint nothing goes back any more.
    pub(super) fn forget_undo(&mut self) {
        if self.savepoints.stack.is_empty() {
            self.undo.clear();
            self.undo_bytes = 0;
        }
    }
}
