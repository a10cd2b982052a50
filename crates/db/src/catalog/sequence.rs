//! Named sequences: numbers of which none is given out twice.
//!
//! The catalogue says how many values of a sequence *may* have been given out. Values are given
//! out of memory below that number; at it, a frame of the log raises it first, by more than is
//! needed:
//!
//! ```text
//! frame: given = 32        1 2 3 … 32   frame: given = 96   33 34 … 96   frame: …
//!       └─ before the first of them ─┘        └── before the first of them ──┘
//! ```
//!
//! * A commit with a value comes after the frame that made it free, and what survives a crash is a
//!   prefix of the commits: a row that survives has a value that no later one gets.
//! * A value that is answered to somebody waits until that frame is durable, also with
//!   `Durability::Async`.
//!
//! # Invariants
//!
//! 1. What is *given* never falls while values are given out: the commit lock orders the frames.
//!    `free_values` refuses a frame that gives fewer values than the last.
//! 2. A value is given out of those that a frame has made free: `State::take`; a sequence never
//!    goes beyond *given*, which `free_values` refuses, too.
//!
//! What follows:
//!
//! * After a crash the rest of the numbers below *given* is never given out: sequences have gaps.
//!   They have them for other reasons, too: a commit that fails does not give its values back. A
//!   clean close does, with a frame that lowers the number again; no values are given out then.

use std::sync::Arc;

use esker_format::comment::expect_short;
use esker_format::edit::Edit;
use esker_format::schema::validate_name;
use esker_format::sequence::SEQUENCES_MAX;
use esker_format::{Schema, Sequence};
use esker_log::sabotage::Bug;
use serde::{Deserialize, Serialize};

use crate::catalog::shared_sequence::{
    AHEAD_MOST, Sequences, SharedSequence, State, no_sequence, refuse_default,
};
use crate::catalogue::Catalogue;
use crate::commit::journal::Ticket;
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::{Database, Error, ErrorKind, Result};

/// A sequence, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceInfo {
    /// Its name.
    pub name: String,
    /// Its first value.
    pub start: i64,
    /// From one value to the next.
    pub increment: i64,
    /// The value that is given out next; `None` when there are no more.
    pub next: Option<i64>,
    /// What its users say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl Engine {
    /// The next value of a sequence, and the frame that must be durable before it is returned.
    fn take_value(&self, name: &str) -> Result<(i64, Option<Ticket>)> {
        let sequences = self.sequences.load();
        let sequence = sequences.get(name).ok_or_else(|| no_sequence(name, &sequences))?;
        let taken = {
            let mut state = sequence.state();
            if state.dropped {
                return Err(no_sequence(name, &self.sequences.load()));
            }
            state.take()
        };
        let taken = match taken {
            Some(taken) => taken,
            None => self.free_values(name, sequence)?,
        };
        taken.ok_or_else(|| {
            let message = format!("sequence {name:?} has no more values");
            Error::new(ErrorKind::InvalidInput, message)
        })
    }

    /// Makes values free, and takes one.
    fn free_values(
        &self,
        name: &str,
        sequence: &SharedSequence,
    ) -> Result<Option<(i64, Option<Ticket>)>> {
        let _catalogue = self.lock_for_change()?;
        let mut state = sequence.state();
        if state.dropped || state.pending.is_some() {
            return Err(no_sequence(name, &self.sequences.load()));
        }
        // Somebody else may have been here meanwhile.
        if let Some(taken) = state.take() {
            return Ok(taken);
        }
        let given = match Bug::SequenceFalls.is_planted() {
            true if state.given > 0 => state.given / 2,
            _ => state.given.saturating_add(state.ahead),
        };
        let logged = state.logged.given;
        if state.given > logged || given < logged {
            let taken = state.given;
            let message = format!("sequence {name:?}: {given} given after {logged}, {taken} taken");
            return Err(Error::corrupt(message));
        }
        let sequence = Sequence { given, ..state.logged.clone() };
        self.log_sequence(name, &mut state, sequence)?;
        state.ahead = (state.ahead * 2).min(AHEAD_MOST);
        Ok(state.take().flatten())
    }

    /// A sequence is like this from now on, and has given out what it has. Under the commit lock.
    fn log_sequence(&self, name: &str, state: &mut State, sequence: Sequence) -> Result<Ticket> {
        let edit = Edit::SetSequence { name: name.to_owned(), sequence: sequence.clone() };
        let ticket = self.log_edit(&edit)?;
        state.logged = sequence;
        state.ticket = Some(ticket);
        Ok(ticket)
    }

    /// The next value of a sequence, for a row: its commit is the one to wait for.
    pub fn next_for_row(&self, name: &str) -> Result<i64> {
        self.take_value(name).map(|(value, _)| value)
    }

    /// Gives back what was made free and not given out. Under the commit lock, when the database is
    /// closed and no values are taken any more.
    pub fn return_values(&self, _catalogue: &mut Catalogue) {
        for (name, sequence) in self.sequences.load().iter() {
            let mut state = sequence.state();
            let returned = Sequence { given: state.given, ..state.logged.clone() };
            if returned == state.logged || state.dropped || state.pending.is_some() {
                continue;
            }
            // A failure leaves a gap, no more.
            let edit = Edit::SetSequence { name: name.clone(), sequence: returned.clone() };
            if self.log_edit(&edit).is_err() {
                return;
            }
            state.logged = returned;
        }
    }

    /// Refuses a schema with a default of a sequence that does not exist. Under the commit lock.
    pub fn expect_sequences(&self, schema: &Schema) -> Result<()> {
        let sequences = self.sequences.load();
        for field in schema.fields() {
            if let Some(name) = field.default_sequence()
                && !sequences.contains_key(name)
            {
                let at = format_args!("field {:?}: default", field.name);
                return Err(no_sequence(name, &sequences).at(at));
            }
        }
        Ok(())
    }

    /// A sequence is like this from now on: it is new, or others gave out its values. Under the
    /// commit lock.
    pub(crate) fn set_sequence(&self, name: &str, sequence: Sequence) {
        match self.sequences.load().get(name) {
            Some(known) => known.follow(sequence),
            None => self.change_sequences(|sequences| {
                sequences.insert(name.to_owned(), SharedSequence::new(sequence));
            }),
        }
    }

    /// A sequence is gone. Under the commit lock.
    pub(crate) fn remove_sequence(&self, name: &str) {
        if let Some(sequence) = self.sequences.load().get(name) {
            sequence.state().dropped = true;
            self.change_sequences(|sequences| drop(sequences.remove(name)));
        }
    }

    /// Changes which sequences there are.
    pub(super) fn change_sequences(&self, change: impl FnOnce(&mut Sequences)) {
        let mut sequences = (**self.sequences.load()).clone();
        change(&mut sequences);
        self.sequences.store(Arc::new(sequences));
    }

    /// The sequences whose names say a namespace.
    pub(crate) fn sequences_in(&self, namespace: &str) -> Vec<String> {
        let is_in = |name: &str| name.split_once('.').is_some_and(|(said, _)| said == namespace);
        let sequences = self.sequences.load();
        let made = sequences.iter().filter(|(name, known)| is_in(name) && !known.is_pending());
        made.map(|(name, _)| name.clone()).collect()
    }

    fn refuse_in_use(catalogue: &Catalogue, sequence: &str) -> Result<()> {
        let mut tables = catalogue.tables.values();
        tables.try_for_each(|entry| {
            refuse_default(&entry.name, &entry.writer.table().schema(), sequence)
        })
    }
}

/// The sequences of a database, for statements, and of one beside it.
struct StatementSequences(EngineHandle, Option<EngineHandle>);

impl std::fmt::Debug for StatementSequences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatementSequences").finish_non_exhaustive()
    }
}

impl esker_query::Sequences for StatementSequences {
    fn next_value(&self, name: &str) -> esker_query::Result<i64> {
        let taken = match (self.0.next_value(name), &self.1) {
            (Err(e), Some(other)) if e.kind() == ErrorKind::NotFound => {
                // Where neither has it, the error names those of the statement's own database.
                other.next_value(name).map_err(|_| e)
            }
            (taken, _) => taken,
        };
        taken.map_err(|e| {
            let kind = match e.kind() {
                ErrorKind::Corrupt => esker_query::ErrorKind::Corrupt,
                ErrorKind::Poisoned
                | ErrorKind::OutcomeUnknown
                | ErrorKind::NoSpace
                | ErrorKind::Io => esker_query::ErrorKind::Io,
                _ => esker_query::ErrorKind::InvalidQuery,
            };
            esker_query::Error::new(kind, e.to_string())
        })
    }
}

impl EngineHandle {
    /// The next value of a sequence, which no crash brings back.
    pub fn next_value(&self, name: &str) -> Result<i64> {
        match self.take_value(name) {
            Ok((value, ticket)) => {
                // Also where commits do not wait: one frame is for many values.
                if let Some(ticket) = ticket {
                    self.wait_for(ticket)?;
                    if self.visible() < ticket.commit() {
                        self.acknowledge(ticket)?;
                    }
                }
                Ok(value)
            }
            Err(e) => {
                if e.kind() == ErrorKind::NotFound {
                    self.acknowledge_published()?;
                }
                Err(e)
            }
        }
    }

    /// The sequences, for a statement; those of another database where there is none of a name.
    pub fn as_sequences(&self, other: Option<&Self>) -> Arc<dyn esker_query::Sequences> {
        Arc::new(StatementSequences(self.clone(), other.cloned()))
    }
}

impl Database {
    /// Creates a sequence: `start`, `start + increment`, and so on. None of its values is ever
    /// given out twice, not even after a crash; some may never be given out, such as those of a
    /// row that was refused.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// db.create_sequence("orders", 100, 1)?;
    /// let schema = Schema::builder()
    ///     .field("id", DataType::I64)
    ///     .default_next("orders")
    ///     .field("item", DataType::Text)
    ///     .primary_key(["id"])
    ///     .build()?;
    /// let orders = db.create_table("orders", schema)?;
    /// orders.insert_fields(&[("item", "tea".into())])?;
    /// assert!(orders.get(&[100i64.into()])?.is_some());
    /// assert_eq!(db.next_value("orders")?, 101);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name, `InvalidInput` for a bad name or an
    /// increment of 0.
    pub fn create_sequence(&self, name: &str, start: i64, increment: i64) -> Result<()> {
        self.add_sequence(name, Sequence::new(start, increment)?, false)
    }

    /// The same where a name that says a namespace is refused while there is none.
    ///
    /// # Errors
    /// As for [`Database::create_sequence`]; `NotFound` without the namespace.
    #[doc(hidden)]
    pub fn create_sequence_in_place(&self, name: &str, start: i64, increment: i64) -> Result<()> {
        self.add_sequence(name, Sequence::new(start, increment)?, true)
    }

    /// Creates a sequence that may have given out values.
    pub(crate) fn add_sequence(
        &self,
        name: &str,
        sequence: Sequence,
        in_place: bool,
    ) -> Result<()> {
        validate_name("sequence", name)?;
        let engine = self.engine();
        let ticket = {
            let mut catalogue = engine.lock_for_change()?;
            let sequences = engine.sequences.load();
            if sequences.contains_key(name) {
                drop(catalogue);
                engine.acknowledge_published()?;
                let message = format!("sequence {name:?} exists already");
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            if sequences.len() >= SEQUENCES_MAX {
                return Err(Error::invalid(format!("at most {SEQUENCES_MAX} sequences")));
            }
            if in_place && let Some((namespace, _)) = name.split_once('.') {
                let names = engine.names.load();
                if !names.newest().namespaces.contains_key(namespace) {
                    return Err(names.newest().no_namespace(namespace));
                }
            }
            let edit = Edit::SetSequence { name: name.to_owned(), sequence };
            engine.commit_definition(&mut catalogue, &edit)?
        };
        engine.acknowledge(ticket)
    }

    /// Removes a sequence.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name, `InvalidInput` when it is the default of a
    /// field.
    pub fn drop_sequence(&self, name: &str) -> Result<()> {
        let engine = self.engine();
        let ticket = {
            let mut catalogue = engine.lock_for_change()?;
            let sequences = engine.sequences.load();
            let refused = match sequences.get(name) {
                Some(known) if !known.is_pending() => Engine::refuse_in_use(&catalogue, name),
                _ => Err(no_sequence(name, &sequences)),
            };
            if let Err(e) = refused {
                drop(catalogue);
                engine.acknowledge_published()?;
                return Err(e);
            }
            let edit = Edit::DropSequence { name: name.to_owned() };
            engine.commit_definition(&mut catalogue, &edit)?
        };
        engine.acknowledge(ticket)
    }

    /// Says what a sequence is for; nothing any more without a comment.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name, `InvalidInput` for a comment that is too long.
    pub fn comment_on_sequence(&self, name: &str, comment: Option<&str>) -> Result<()> {
        expect_short("a sequence", comment)?;
        self.change_sequence(name, |known| Sequence { comment: comment.map(Into::into), ..known })
    }

    /// Lets a sequence begin again: with `start`, or with its first value. Values that it has given
    /// out before may come again.
    ///
    /// ```
    /// let db = esker::Options::new().memory()?;
    /// db.create_sequence("orders", 1, 1)?;
    /// assert_eq!(db.next_value("orders")?, 1);
    /// db.restart_sequence("orders", Some(100))?;
    /// assert_eq!(db.next_value("orders")?, 100);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` when there is none of this name, `ReadOnly` when the database is.
    pub fn restart_sequence(&self, name: &str, start: Option<i64>) -> Result<()> {
        self.change_sequence(name, |known| {
            // default: it keeps its first value
            let start = start.unwrap_or(known.start);
            Sequence { start, given: 0, ..known }
        })
    }

    /// Logs what a sequence is from now on.
    fn change_sequence(&self, name: &str, change: impl FnOnce(Sequence) -> Sequence) -> Result<()> {
        let engine = self.engine();
        let ticket = {
            let _catalogue = engine.lock_for_change()?;
            let sequences = engine.sequences.load();
            let known = sequences.get(name).ok_or_else(|| no_sequence(name, &sequences))?;
            let mut state = known.state();
            if state.dropped || state.pending.is_some() {
                return Err(no_sequence(name, &sequences));
            }
            let sequence = change(state.logged.clone());
            let ticket = engine.log_sequence(name, &mut state, sequence)?;
            state.given = state.given.min(state.logged.given);
            ticket
        };
        engine.acknowledge(ticket)
    }

    /// The next value of a sequence.
    ///
    /// # Errors
    /// `NotFound` for an unknown sequence, `InvalidInput` when it has no more values, `ReadOnly`
    /// when the database is.
    pub fn next_value(&self, sequence: &str) -> Result<i64> {
        self.engine().next_value(sequence)
    }

    /// The sequences, by name.
    #[must_use]
    pub fn sequences(&self) -> Vec<SequenceInfo> {
        self.engine().sequence_infos()
    }
}

impl Engine {
    /// The sequences, by name.
    pub(crate) fn sequence_infos(&self) -> Vec<SequenceInfo> {
        let sequences = self.sequences.load();
        let info = |(name, sequence): (&String, &Arc<SharedSequence>)| {
            let state = sequence.state();
            let Sequence { start, increment, .. } = state.logged;
            let comment = state.logged.comment.as_deref().map(str::to_owned);
            let next = state.logged.value(state.given);
            SequenceInfo { name: name.clone(), start, increment, next, comment }
        };
        let made = sequences.iter().filter(|(_, sequence)| !sequence.is_pending());
        made.map(info).collect()
    }
}
