//! Transactions: changes of any number of tables and buckets that become visible together, or not
//! at all, made on one view of the database.
//!
//! ```text
//! begin ─► snapshot (registered) ─► reads: own changes, else the snapshot
//!                                   changes: kept by the transaction
//! commit ─► commit lock ─► is each key that was changed as old as the snapshot? (first committer)
//!           ─► is what was read still so? (serializable) ─► one frame, applied, published
//!           ─► unlock ─► wait for durability
//! ```
//!
//! Nothing is locked before the commit, so that a transaction that is forgotten holds up no other,
//! and its end costs nothing: dropping it is rolling it back.
//!
//! Invariants:
//! 1. The snapshot of a transaction that writes is of what is *published*, not only of what is
//!    visible: a transaction that was just overtaken would be overtaken again until the other's
//!    sync has ended. What it reads may therefore not be durable; no answer leaves it before it is
//!    (protocol rule 2), but for the closure of [`Database::transact`], which waits at its end.
//! 2. What a statement has changed is undone when it fails: a transaction is never half of one.
//! 3. The commit validates under the same hold of the commit lock under which it is numbered.

mod base;
mod bound_commit;
mod bound_tables;
mod bulk;
mod definitions;
mod delta;
mod entries;
mod entry_changes;
mod feeds;
mod given_up;
mod gone;
mod held_rows;
mod histories;
mod looked_up;
mod many;
mod moved_rows;
mod namespaces;
mod new_fields;
mod options;
mod own_rows;
mod page;
mod read_set;
mod references;
mod rows;
mod savepoint;
mod spill;
mod spilled;
mod statement;
mod table_as;
mod tables;
mod transact;
mod undo;
mod views;
mod write_buffer;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError};

use esker_arena::{Category, Reservation};
use esker_format::{Moment, Schema, TableId, invariant};
use esker_log::sabotage::Bug;
use esker_vfs::sync::{Mutex, MutexGuard};

use crate::commit::definitions::NewDefinitions;
use crate::commit::options::CommitOptions;
use crate::commit::private_rows::PrivateRows;
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine_handle::EngineHandle;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result, Snapshot};
use base::Base;
pub(crate) use bound_commit::TransactionCommits;
use definitions::Definition;
pub(crate) use definitions::Definitions;
use delta::Delta;
pub use entries::TransactionBucket;
pub use options::{Isolation, TransactionOptions};
use read_set::Reads;
use references::BoundState;
pub(crate) use rows::Seen;
pub use rows::TransactionTable;
pub use savepoint::Savepoint;
pub use table_as::TableAs;
use undo::{Savepoints, Step};
use write_buffer::Change;

/// Reservations grow by so many bytes.
const RESERVED_AT_ONCE: u64 = 256 << 10;

/// Changes on one view of the database, which become visible and durable together, or not at
/// all. Dropping it rolls it back. It may be used from several threads, one after another.
///
/// ```
/// use esker::{DataType, Options, Schema};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder().field("owner", DataType::Text).field("cents", DataType::I64);
/// let accounts = db.create_table("accounts", schema.primary_key(["owner"]).build()?)?;
/// accounts.insert(&["ada".into(), 500i64.into()])?;
///
/// let transaction = db.begin()?;
/// let within = transaction.table("accounts")?;
/// within.update(&["ada".into()], &[("cents", 400i64.into())])?;
/// within.insert(&["bob".into(), 100i64.into()])?;
/// assert_eq!((within.count()?, accounts.count()?), (2, 1));
/// transaction.commit()?;
/// assert_eq!(accounts.count()?, 2);
/// # Ok::<(), esker::Error>(())
/// ```
pub struct Transaction {
    engine: EngineHandle,
    snapshot: Snapshot,
    options: TransactionOptions,
    /// What it reads may be returned before it is durable: the caller waits for that.
    waits_at_end: bool,
    /// Which of all transactions it is.
    number: u64,
    /// What the cursors of its pages name.
    pages: OnceLock<u128>,
    state: Mutex<State>,
}

/// What a transaction has done.
pub(crate) struct State {
    changes: BTreeMap<TableId, Delta>,
    /// What has become of the tables themselves.
    definitions: Option<Arc<Definitions>>,
    /// Some of it was taken back: there may be handles of tables as they were meanwhile.
    has_redefined: bool,
    reads: Reads,
    /// What references have to find as it was, or gone.
    bound: BoundState,
    /// What leads back to how it was, oldest first.
    undo: Vec<Step>,
    /// Bytes of what it keeps of earlier rows, about.
    undo_bytes: usize,
    /// Something was read that must stay as it is, whatever is changed.
    holds: bool,
    /// How many savepoints there are that somebody may go back to.
    savepoints: Savepoints,
    held: Reservation,
    /// Bytes of changes that stay in memory when the others are written to files.
    unspilled_bytes: usize,
}

impl Transaction {
    pub(crate) fn begin(
        engine: &EngineHandle,
        options: TransactionOptions,
        waits_at_end: bool,
    ) -> Result<Self> {
        let snapshot = if options.read_only {
            Snapshot::take(engine)?
        } else {
            if engine.options.read_only {
                let message = "the database was opened for reading; begin a read-only transaction";
                return Err(Error::new(ErrorKind::ReadOnly, message));
            }
            Snapshot::take_published(engine)?
        };
        let state = State {
            changes: BTreeMap::new(),
            definitions: None,
            has_redefined: false,
            reads: Reads::default(),
            bound: BoundState::default(),
            undo: Vec::new(),
            undo_bytes: 0,
            holds: false,
            savepoints: Savepoints::default(),
            held: Reservation::new(&engine.arena, Category::Load),
            unspilled_bytes: 0,
        };
        let (engine, state) = (engine.clone(), Mutex::new(state));
        let number = engine.new_transaction();
        let pages = OnceLock::new();
        Ok(Self { engine, snapshot, options, waits_at_end, number, pages, state })
    }

    pub(crate) fn engine(&self) -> &EngineHandle {
        &self.engine
    }

    /// What it is kept from seeing of others.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.options.isolation
    }

    /// The number of the commit that it reads at: it sees what was committed up to it, and its own
    /// changes.
    #[must_use]
    pub fn read_at(&self) -> u64 {
        self.snapshot.commit()
    }

    /// True when nothing was changed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let state = self.state();
        state.definitions.is_none() && state.changes.values().all(Delta::is_empty)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // default: a panic leaves what is locked as it was, or whole
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moment at which rows have expired for it, which it fixes once: what it puts for so long
    /// ends so much later.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.snapshot.moment()
    }

    /// The same for a table, without a look at the clock where its rows do not expire.
    fn moment_of(&self, schema: &Schema) -> Moment {
        if schema.expiry_field().is_some() { self.moment() } else { Moment::FIRST }
    }

    /// What its changes lie over.
    fn base<'t>(&'t self, state: &'t State) -> Base<'t> {
        self.base_of(state.definitions.as_deref())
    }

    fn base_of<'t>(&'t self, definitions: Option<&'t Definitions>) -> Base<'t> {
        Base { engine: &self.engine, snapshot: &self.snapshot, definitions }
    }

    /// Waits until what the transaction reads may be returned.
    pub(crate) fn settle(&self) -> Result<()> {
        if self.waits_at_end {
            return Ok(());
        }
        self.engine.acknowledge_through(self.read_at())
    }

    /// Whether what is read is remembered, to be compared at the commit.
    fn remembers_reads(&self) -> bool {
        self.options.isolation == Isolation::Serializable && !self.options.read_only
    }

    /// Refuses to go on in a transaction that only reads.
    fn expect_writes(&self) -> Result<()> {
        if self.options.read_only {
            let message = "the transaction was begun for reading";
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        Ok(())
    }

    /// The changes of a table, none at first.
    ///
    /// # Errors
    /// `ReadOnly` in a transaction that only reads.
    fn changes_of<'s>(
        &self,
        state: &'s mut State,
        current: &TableVersion,
    ) -> Result<&'s mut Delta> {
        self.expect_writes()?;
        let empty = || Delta::new(current.clone());
        let changes = state.changes.entry(current.core.id()).or_insert_with(empty);
        let place = format_args!("changes of table {}", current.core.id().0);
        invariant!(changes.current.schema == current.schema, place, "they are of another schema");
        Ok(changes)
    }

    /// Notes a change of a key.
    fn note(
        &self,
        state: &mut State,
        current: &TableVersion,
        (key, change): (Vec<u8>, Change),
    ) -> Result<()> {
        self.expect_current(state, current)?;
        let changes = self.changes_of(state, current)?;
        let undo = changes.set(key, change)?;
        state.push_undo(Step::Row(current.core.id(), undo));
        let outcome = self.spill_if_large(state).and_then(|()| self.reserve(state));
        if outcome.is_err() {
            state.undo_to(state.undo.len() - 1);
        }
        outcome
    }

    /// Refuses what was made ready for a table that the transaction has altered or dropped since,
    /// or has taken back.
    pub(crate) fn expect_current(&self, state: &State, current: &TableVersion) -> Result<()> {
        match state.definition(current) {
            Some(definition) => definition.expect(current),
            None if state.has_redefined => self.expect_as_it_was(current),
            None => Ok(()),
        }
    }

    /// Counts the memory of the changes with the rest. Their groups are counted by the arena.
    fn reserve(&self, state: &mut State) -> Result<()> {
        let own = state.counted_bytes();
        let all = own + state.changes.values().map(Delta::column_bytes).sum::<u64>();
        // default: without a limit of its own the database has one
        let most = self.options.memory_bytes.unwrap_or(u64::MAX);
        let bytes = own + state.linked_bytes();
        if all <= most && (bytes <= state.held.bytes() || bytes < RESERVED_AT_ONCE) {
            return Ok(());
        }
        let wanted = bytes.div_ceil(RESERVED_AT_ONCE) * RESERVED_AT_ONCE;
        if all <= most && self.engine.seal_for_load(&mut state.held, wanted)? {
            return Ok(());
        }
        let limit = most.min(self.engine.load_share());
        let message = format!(
            "what the transaction has changed takes {all} bytes of memory, at most {limit}: \
             commit in parts, load the rows, or open with a higher memory limit"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// Makes all changes visible and durable. Returns the number of the commit; that of the
    /// snapshot when nothing was changed.
    ///
    /// # Errors
    /// `Conflict` when another transaction has committed a change of a row, a key or a unique
    /// value that this one changes, or (serializable) of what it has read: begin again.
    /// `AlreadyExists` when a row has a unique value of another row; `OutcomeUnknown` when the log
    /// could not be synced. Nothing is changed then.
    pub fn commit(self) -> Result<u64> {
        let mut state = self.state();
        let state = &mut *state;
        if self.options.read_only {
            return Ok(self.read_at());
        }
        let read_at = self.read_at();
        let definitions = match &state.definitions {
            Some(definitions) => definitions.to_commit(&self.engine, read_at)?,
            None => NewDefinitions::default(),
        };
        let definitions = Some(&definitions).filter(|new| !new.is_empty());
        let is_unchanged = definitions.is_none() && state.changes.values().all(Delta::is_empty);
        if is_unchanged && !state.holds {
            self.engine.acknowledge_through(read_at)?;
            return Ok(read_at);
        }
        self.bound_at_commit(state)?;
        let base = self.base_of(state.definitions.as_deref());
        let private = state.changes.values_mut().map(|delta| delta.private_rows(base));
        let private = private.collect::<Result<Vec<_>>>()?;
        let changes = state.changes.values().zip(private);
        let changes =
            changes.filter(|(delta, private)| !delta.is_all_spilled() || private.is_some());
        let (changes, private): (Vec<&Delta>, Vec<_>) = changes.unzip();
        // The commit reserves it for itself.
        let linked: u64 = changes.iter().map(|delta| delta.linked_bytes()).sum();
        state.held.shrink(state.held.bytes().saturating_sub(linked));
        let part = |(changes, private): (&&Delta, Option<PrivateRows>)| {
            let TableVersion { core, schema, .. } = changes.current.clone();
            let created = definitions.and_then(|new| new.created(core.id()));
            // default: a table that was there stays
            let core = created.cloned().unwrap_or(core);
            TableWrites { private, ..TableWrites::new(TableVersion::new(core, schema)) }
        };
        let parts: Vec<_> = changes.iter().zip(private).map(part).collect();
        let (reads, seen) = (&state.reads, &*state);
        let commit_options = CommitOptions {
            sync: self.options.sync,
            validate: &|catalogue| {
                reads.expect_unchanged(&self.engine, catalogue, read_at)?;
                seen.expect_bound(catalogue, read_at)
            },
            definitions,
            ..CommitOptions::default()
        };
        let is_cascade = definitions.is_none() && !state.bound.given_up.is_empty();
        let outcome = match is_cascade && Bug::CascadeInTwoCommits.is_planted() {
            false => self.write(parts, &changes, commit_options),
            true => parts.into_iter().zip(&changes).try_fold(0, |_, (part, changes)| {
                self.write(vec![part], std::slice::from_ref(changes), commit_options)
            }),
        };
        match outcome {
            Ok(0) => Ok(read_at),
            Ok(commit) => {
                if let Some(definitions) = definitions {
                    definitions.build_indexes(&self.engine);
                }
                Ok(commit)
            }
            // It was there when the transaction began.
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::new(
                ErrorKind::Conflict,
                format!("{e} since the transaction began; begin again"),
            )),
            Err(e) => Err(e),
        }
    }

    /// Commits changes of tables; the number of the commit.
    fn write<'d>(
        &self,
        parts: Vec<TableWrites<'d>>,
        changes: &[&'d Delta],
        options: CommitOptions<'_>,
    ) -> Result<u64> {
        let read_at = self.read_at();
        self.engine.commit_writes(WriteSet::Many(parts), options, |at, writer, part| {
            let changes = changes.get(at);
            let changes = changes.ok_or_else(|| Error::corrupt("a part without changes"))?;
            changes.stage(writer, &mut part.staged, read_at)
        })
    }

    /// Checks that what the transaction has read and holds is still as it found it. The commit
    /// checks again; this tells a caller earlier that the commit would fail.
    ///
    /// # Errors
    /// `Conflict` when another commit has changed some of it, or held entries have expired.
    pub fn validate(&self) -> Result<()> {
        self.expect_writes()?;
        let state = self.state();
        let valid = {
            let mut catalogue = self.engine.lock_for_change()?;
            state.reads.expect_unchanged(&self.engine, &mut catalogue, self.read_at())
        };
        if valid.is_err() {
            self.engine.acknowledge_published()?;
        }
        valid
    }

    /// Forgets all changes. Dropping the transaction does the same.
    pub fn rollback(self) {}
}

impl State {
    /// Takes changes back until so many are left.
    fn undo_to(&mut self, len: usize) {
        while self.undo.len() > len {
            let Some(step) = self.undo.pop() else { break };
            self.undo_bytes -= step.byte_count();
            match step {
                Step::Row(table, undo) => {
                    if let Some(changes) = self.changes.get_mut(&table) {
                        changes.undo(undo);
                    }
                }
                Step::Defined { .. } if Bug::DefinitionsOutliveSavepoint.is_planted() => {}
                Step::Defined { base, taken } => {
                    self.definitions = base;
                    self.has_redefined = true;
                    self.give_back(taken);
                }
            }
        }
    }

    fn push_undo(&mut self, step: Step) {
        self.undo_bytes += step.byte_count();
        self.undo.push(step);
    }

    /// What has become of a table, where it is not as it was.
    fn definition(&self, current: &TableVersion) -> Option<&Definition> {
        self.definitions.as_ref()?.get(current.core.id())
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("read_at", &self.read_at())
            .field("isolation", &self.isolation())
            .finish_non_exhaustive()
    }
}
