//! A table: what readers share, and the writer that the commit lock guards.
//!
//! ```text
//!   key ─hash─► primary index ─► location ─► view ─► group, row ─► visible? ─no─► replaced ─► …
//! ```
//!
//! * The primary index has one entry per key: the newest version, which may be dead. It grows by
//!   inserts, moves by updates (compare-and-swap), and shrinks when a merge drops dead versions.
//! * A version names the one it replaced, for readers at older commits. Index entries, versions and
//!   [`PinnedLocations`] of transactions are relocated when a rewrite has taken rows
//!   elsewhere.
//! * Each unique index has entries of the same kind ([`UniqueKeys`]), for writers only.
//! * A table with a generated key has entries only for rows that were updated; others are found
//!   by row id, by arithmetic.
//!
//! # Invariants
//!
//! 1. A view is swapped under the commit lock and is sound: `set_view` refuses another one.
//! 2. The horizons never fall: only `raise_horizons` stores them, and it refuses to lower them.
//!    A merge raises them before its outputs are swapped in.
//! 3. An index entry names a row that is published in a row group of the view: the writer puts the
//!    row first and asserts it.

mod arrivals;
mod read;
mod snapshot;
mod unique;
mod writer;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, Weak};

use esker_arena::{Arena, Category, PartitionedHash};
use esker_format::{PrimaryKey, Schema, TableId, ValueRef};
use esker_log::sabotage::Bug;
use esker_vfs::sync::{ArcSwap, AtomicU64, Mutex, MutexGuard};

use crate::Error;
use crate::hash::KeyHasher;
use crate::index_values::{IndexCompiler, fields_only};
use crate::pinned_locations::PinnedLocations;
use crate::view::View;
pub use arrivals::{Arrivals, ArrivedRow};
pub use read::Found;
pub use snapshot::{Overlay, SnapshotPart, TableSnapshot};
pub use unique::{ComputedRow, Holder, UniqueEntry, UniqueKeys};
pub use writer::{Existing, PreparedPut, TableWriter, describe_key};

/// What all readers of a table share.
pub struct Table {
    id: TableId,
    name: ArcSwap<String>,
    arena: Arc<Arena>,
    hasher: KeyHasher,
    compiler: IndexCompiler,
    view: ArcSwap<View>,
    index: PartitionedHash,
    uniques: ArcSwap<Vec<Arc<UniqueKeys>>>,
    places: Mutex<Vec<Weak<PinnedLocations>>>,
    live: AtomicU64,
    drop_horizon: AtomicU64,
    link_horizon: AtomicU64,
    created_at: AtomicU64,
    /// The newest commit of its rows since the database was opened; 0 for none.
    changed_at: AtomicU64,
    /// 0 while it is there: no commit has this number.
    dropped_at: AtomicU64,
    successor: OnceLock<Arc<Self>>,
    /// The greatest row id of an event that ended for its age, or with a truncation; 0 for none.
    ended_row_id: AtomicU64,
    /// The greatest row id that was given out; 0 for none.
    given_row_id: AtomicU64,
}

impl Table {
    /// A table without rows, without an index of which anything is computed.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full.
    pub fn new(
        id: TableId,
        name: String,
        schema: Arc<Schema>,
        arena: Arc<Arena>,
        hasher: KeyHasher,
    ) -> crate::Result<Self> {
        Self::with_compiler(id, (name, schema), arena, hasher, fields_only)
    }

    /// A table without rows; `compiler` makes what computes the values of its indexes.
    ///
    /// # Errors
    /// `OverBudget` when the arena is full, and what the compiler says.
    pub fn with_compiler(
        id: TableId,
        (name, schema): (String, Arc<Schema>),
        arena: Arc<Arena>,
        hasher: KeyHasher,
        compiler: IndexCompiler,
    ) -> crate::Result<Self> {
        let index = PartitionedHash::new(&arena, Category::Index)?;
        let uniques = UniqueKeys::of_schema(&schema, &arena, compiler)?;
        let uniques = ArcSwap::from_pointee(uniques);
        let view = ArcSwap::from_pointee(View::empty(schema));
        Ok(Self {
            id,
            name: ArcSwap::from_pointee(name),
            arena,
            hasher,
            compiler,
            view,
            index,
            uniques,
            places: Mutex::new(Vec::new()),
            live: AtomicU64::new(0),
            drop_horizon: AtomicU64::new(0),
            link_horizon: AtomicU64::new(0),
            created_at: AtomicU64::new(0),
            changed_at: AtomicU64::new(0),
            dropped_at: AtomicU64::new(0),
            successor: OnceLock::new(),
            ended_row_id: AtomicU64::new(0),
            given_row_id: AtomicU64::new(0),
        })
    }

    /// The number.
    #[must_use]
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Arc<String> {
        self.name.load_full()
    }

    /// Gives it another name. Only under the commit lock.
    pub fn rename(&self, name: &str) {
        self.name.store(Arc::new(name.to_owned()));
    }

    /// The table that took this one's place when it was truncated.
    #[must_use]
    pub fn successor(&self) -> Option<&Arc<Self>> {
        self.successor.get()
    }

    /// Notes which table takes its place.
    pub fn set_successor(&self, successor: Arc<Self>) {
        let _ = self.successor.set(successor);
    }

    /// The greatest row id of an event of a stream that ended for its age; 0 for none.
    #[must_use]
    pub fn ended_row_id(&self) -> u64 {
        self.ended_row_id.load(Ordering::Acquire)
    }

    /// Notes that an event with a row id has ended. Under the commit lock, or at recovery.
    pub fn note_ended_row_id(&self, row_id: u64) {
        self.ended_row_id.fetch_max(row_id, Ordering::AcqRel);
    }

    /// The greatest row id that was given out, to rows that are there or not; 0 for none.
    #[must_use]
    pub fn given_row_id(&self) -> u64 {
        self.given_row_id.load(Ordering::Acquire)
    }

    /// The commit that created it; 0 when that was before the database was opened.
    #[must_use]
    pub fn created_at(&self) -> u64 {
        self.created_at.load(Ordering::Acquire)
    }

    /// Notes the commit that creates it, before anybody can find it.
    pub fn set_created_at(&self, commit: u64) {
        self.created_at.store(commit, Ordering::Release);
    }

    /// The newest commit that has changed its rows, or created it, since the database was opened; 0
    /// for none. It is known before that commit is published.
    #[must_use]
    pub fn changed_at(&self) -> u64 {
        self.changed_at.load(Ordering::Acquire).max(self.created_at())
    }

    /// Notes a commit of its rows, before it is published.
    pub fn note_changed(&self, commit: u64) {
        self.changed_at.fetch_max(commit, Ordering::AcqRel);
    }

    /// True once it has been dropped; snapshots that are older go on reading it.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.dropped_at().is_some()
    }

    /// The commit that has dropped it: readers before that one see it.
    #[must_use]
    pub fn dropped_at(&self) -> Option<u64> {
        match self.dropped_at.load(Ordering::Acquire) {
            0 => None,
            commit => Some(commit),
        }
    }

    /// Notes the commit that drops it.
    pub fn set_dropped_at(&self, commit: u64) {
        self.dropped_at.store(commit, Ordering::Release);
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.view.load().schema)
    }

    /// The memory that mutable state lies in.
    #[must_use]
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The hash of primary keys.
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// What the table consists of now.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Replaces the view. Only under the commit lock.
    ///
    /// # Errors
    /// `Corrupt` for a view that breaks an invariant; the one before stays then.
    pub fn set_view(&self, view: View) -> crate::Result<()> {
        view.expect_sound().map_err(|e| e.at(format_args!("table {}", self.id.0)))?;
        self.view.store(Arc::new(view));
        Ok(())
    }

    /// The primary index.
    #[must_use]
    pub fn index(&self) -> &PartitionedHash {
        &self.index
    }

    /// How many rows are alive, the newest commits included.
    #[must_use]
    pub fn live_rows(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Corrects the number of rows alive.
    pub fn add_live_rows(&self, added: i64) {
        self.live.fetch_add(added.cast_unsigned(), Ordering::Relaxed);
    }

    /// The newest commit that any merge has dropped versions for: a look-up at an older commit that
    /// was not registered may have missed a version, and is done again at a newer one.
    #[must_use]
    pub fn drop_horizon(&self) -> u64 {
        self.drop_horizon.load(Ordering::SeqCst)
    }

    /// What leads back to versions that were dead at this commit may be gone: no snapshot is older.
    pub(crate) fn link_horizon(&self) -> u64 {
        self.link_horizon.load(Ordering::SeqCst)
    }

    /// Raises the horizons, before a merge's outputs are swapped in: no registered reader reads
    /// below `oldest`, and versions that died up to `dropped` are gone.
    ///
    /// # Errors
    /// `Corrupt` when one falls.
    pub(crate) fn raise_horizons(&self, oldest: u64, dropped: u64) -> crate::Result<()> {
        if !Bug::DropHorizonNotRaised.is_planted() {
            self.raise(&self.drop_horizon, oldest.max(dropped))?;
            self.raise(&self.link_horizon, oldest)?;
        }
        Ok(())
    }

    fn raise(&self, horizon: &AtomicU64, to: u64) -> crate::Result<()> {
        let before = match Bug::HorizonFalls.is_planted() {
            true => horizon.swap(to / 2, Ordering::SeqCst),
            false => horizon.fetch_max(to, Ordering::SeqCst),
        };
        let after = horizon.load(Ordering::SeqCst);
        if after >= before.max(to) {
            return Ok(());
        }
        let table = self.id.0;
        let message = format!("table {table}: a horizon falls from {} to {after}", before.max(to));
        Err(Error::corrupt(message))
    }

    /// Remembers who remembers places.
    pub(crate) fn add_pinned(&self, places: &Arc<PinnedLocations>) {
        let mut all = self.places();
        if all.len() == all.capacity() {
            all.retain(|places| places.strong_count() > 0);
        }
        all.push(Arc::downgrade(places));
    }

    /// The lists of places that somebody remembers.
    pub(crate) fn pinned_locations(&self) -> Vec<Arc<PinnedLocations>> {
        self.places().iter().filter_map(Weak::upgrade).collect()
    }

    fn places(&self) -> MutexGuard<'_, Vec<Weak<PinnedLocations>>> {
        // default: nothing panics while the list changes
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets where the rows of `row_groups` went, once nothing names them. Only under the commit
    /// lock.
    pub(crate) fn forget_retired(&self, row_groups: &[u64]) -> crate::Result<()> {
        let mut view = (*self.view()).clone();
        view.retired.retain(|forwarding| !row_groups.contains(&forwarding.row_group));
        self.set_view(view)
    }

    /// Ends the wait for old snapshots where no snapshot is older than `oldest` any more.
    pub fn settle(&self, oldest: u64) {
        self.view.load().segments().for_each(|segment| segment.settle(oldest));
    }

    /// True when the key is given out by the database.
    #[must_use]
    pub fn has_generated_key(&self) -> bool {
        *self.view.load().schema.primary_key() == PrimaryKey::Generated
    }

    /// The hash of a key: of its values in the order of the key fields, or of a row id.
    #[must_use]
    pub fn hash_of(&self, key: &[ValueRef<'_>]) -> u64 {
        match (self.has_generated_key(), key) {
            (true, [ValueRef::Uint(id)]) => self.hasher.hash_row_id(*id),
            _ => self.hasher.hash_key(key.iter().copied()),
        }
    }
}
