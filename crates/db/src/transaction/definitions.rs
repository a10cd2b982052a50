//! What a transaction has made of the tables themselves. No other reader sees it before the commit.
//!
//! ```text
//! names:  "orders" ─► table 3        tables: 3 ─► was "orders", schema v2; is "old_orders", v3
//!         "new"    ─► table 9                9 ─► new; schema as it is now
//! ```
//!
//! A table that the transaction has created is a table that no catalogue knows: it has a number,
//! and no rows but the transaction's own. One that was there keeps its rows, which are read by the
//! schema that the transaction has given it.
//!
//! Invariants:
//! 1. What is defined is replaced whole, so that a savepoint keeps what there was for nothing.
//! 2. The changes of a table's rows are always of the schema that the table has in the transaction:
//!    `Transaction::expect_current` refuses handles of another one, also of one that a savepoint
//!    has taken back; asserted by `Transaction::changes_of`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::{Schema, TableId};
use esker_table::Table as TableCore;
use esker_vfs::sync::AtomicU64;

use crate::catalog::checks::Checks;
use crate::catalog::names::Names;
use crate::catalog::own_sequence::OwnSequence;
use crate::commit::definitions::{
    AlteredTable, CreatedTable, Described, NewDefinitions, RemovedTable, TruncatedTable,
};
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// The tables as a transaction sees them.
#[derive(Clone)]
pub(crate) struct Definitions {
    pub names: Arc<Names>,
    /// As they were before.
    pub base: Arc<Names>,
    /// Those that are not as they were.
    tables: BTreeMap<TableId, Definition>,
    /// The sequences that go, by the namespaces that they are in.
    pub sequences_gone: BTreeMap<String, BTreeSet<String>>,
}

/// A table that a transaction has created, altered or dropped.
#[derive(Clone)]
pub(crate) struct Definition {
    pub core: Arc<TableCore>,
    pub name: String,
    pub schema: Arc<Schema>,
    pub checks: Arc<Checks>,
    /// The sequences of new identities, which come with the commit.
    sequences: Vec<Arc<OwnSequence>>,
    was: Was,
    fate: Fate,
    /// Whether its rows were tested, so that no other may come before the commit.
    is_tested: bool,
}

/// A table before the transaction.
#[derive(Clone)]
enum Was {
    /// It was not there. The next row id.
    New(Arc<AtomicU64>),
    There(Described),
    /// Another was there, which this one has taken the place of. The next row id.
    Other(Arc<TableCore>, Described, Arc<AtomicU64>),
}

/// What has become of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Dropped,
    /// Another has taken its place, and speaks for it.
    Truncated,
}

impl Definitions {
    pub fn new(names: Names) -> Self {
        let names = Arc::new(names);
        Self {
            base: Arc::clone(&names),
            names,
            tables: BTreeMap::new(),
            sequences_gone: BTreeMap::new(),
        }
    }

    /// A table that is not as it was.
    pub fn get(&self, table: TableId) -> Option<&Definition> {
        self.tables.get(&table)
    }

    /// A table that was not there.
    pub fn create(
        &mut self,
        core: &Arc<TableCore>,
        sequences: Vec<Arc<OwnSequence>>,
    ) -> Result<()> {
        let (name, schema) = (core.name().to_string(), core.schema());
        let definition = Definition {
            core: Arc::clone(core),
            name: name.clone(),
            checks: Arc::new(Checks::of(&schema)?),
            schema,
            sequences,
            was: Was::New(Arc::new(AtomicU64::new(1))),
            fate: Fate::Stays,
            is_tested: false,
        };
        Arc::make_mut(&mut self.names).insert(name, Arc::clone(core));
        self.tables.insert(core.id(), definition);
        Ok(())
    }

    /// A table is gone.
    pub fn drop_table(&mut self, name: &str, current: &TableVersion) -> Result<()> {
        self.entry(name, current)?.fate = Fate::Dropped;
        Arc::make_mut(&mut self.names).remove(name);
        Ok(())
    }

    /// A table has no rows: `new` has taken its place.
    pub fn truncate(
        &mut self,
        name: &str,
        current: &TableVersion,
        new: &Arc<TableCore>,
    ) -> Result<()> {
        let next = Arc::new(AtomicU64::new(1));
        let old = self.entry(name, current)?;
        old.fate = Fate::Truncated;
        let was = match &old.was {
            Was::New(_) => Was::New(next),
            Was::There(base) => Was::Other(Arc::clone(&old.core), base.clone(), next),
            Was::Other(core, base, _) => Was::Other(Arc::clone(core), base.clone(), next),
        };
        let definition =
            Definition { core: Arc::clone(new), was, fate: Fate::Stays, ..old.clone() };
        Arc::make_mut(&mut self.names).insert(name.to_owned(), Arc::clone(new));
        self.tables.insert(new.id(), definition);
        Ok(())
    }

    /// A table has another name.
    pub fn rename(&mut self, from: &str, to: &str, current: &TableVersion) -> Result<()> {
        to.clone_into(&mut self.entry(from, current)?.name);
        let names = Arc::make_mut(&mut self.names);
        names.remove(from);
        names.insert(to.to_owned(), Arc::clone(&current.core));
        Ok(())
    }

    /// A table has another schema, which its rows were tested by or not.
    pub fn alter(
        &mut self,
        name: &str,
        current: &TableVersion,
        (schema, is_tested): (&Arc<Schema>, bool),
        sequences: Vec<Arc<OwnSequence>>,
    ) -> Result<()> {
        let entry = self.entry(name, current)?;
        entry.sequences.extend(sequences);
        entry.checks = Arc::new(Checks::of(schema)?);
        entry.schema = Arc::clone(schema);
        entry.is_tested |= is_tested;
        Ok(())
    }

    fn entry(&mut self, name: &str, current: &TableVersion) -> Result<&mut Definition> {
        let TableVersion { core, schema, .. } = current;
        let checks = Arc::new(Checks::of(schema)?);
        Ok(self.tables.entry(core.id()).or_insert_with(|| Definition {
            core: Arc::clone(core),
            name: name.to_owned(),
            schema: Arc::clone(schema),
            checks,
            sequences: Vec::new(),
            was: Was::There(Described { name: name.to_owned(), schema: Arc::clone(schema) }),
            fate: Fate::Stays,
            is_tested: false,
        }))
    }

    /// What a commit makes of it, and the tables that come as they will be.
    pub fn to_commit(&self, engine: &Engine, read_at: u64) -> Result<NewDefinitions> {
        let views = self.changed_views(read_at)?;
        let views_known = Some(Arc::clone(&self.base));
        let namespaces = self.changed_namespaces();
        let mut new =
            NewDefinitions { views, views_known, namespaces, ..NewDefinitions::default() };
        for definition in self.tables.values() {
            let Definition { core, name, schema, is_tested, .. } = definition;
            let sequences = || {
                let stays = |sequence: &&Arc<OwnSequence>| sequence.is_of(schema);
                definition.sequences.iter().filter(stays).cloned().collect::<Vec<_>>()
            };
            let coming = |next: &AtomicU64| -> Result<CreatedTable> {
                let core = engine.new_table(core.id(), name, (**schema).clone())?;
                let (next_row_id, sequences) = (next.load(Ordering::Relaxed), sequences());
                Ok(CreatedTable { core, next_row_id, sequences })
            };
            match (&definition.was, definition.fate) {
                (_, Fate::Truncated) | (Was::New(_), Fate::Dropped) => {}
                (Was::New(next), Fate::Stays) => new.created.push(coming(next)?),
                (Was::There(base), Fate::Dropped) => {
                    new.dropped.push(RemovedTable::new(Arc::clone(core), base.clone()));
                }
                (Was::Other(old, base, _), Fate::Dropped) => {
                    new.dropped.push(RemovedTable::new(Arc::clone(old), base.clone()));
                }
                (Was::Other(old, base, next), Fate::Stays) => new.truncated.push(TruncatedTable {
                    old: RemovedTable::new(Arc::clone(old), base.clone()),
                    replacement: coming(next)?,
                    unchanged_since: Some(read_at),
                }),
                (Was::There(base), Fate::Stays) => {
                    let after = Described { name: name.clone(), schema: Arc::clone(schema) };
                    if after != *base {
                        let mut altered = AlteredTable::new(Arc::clone(core), base.clone(), after);
                        altered.unchanged_since = is_tested.then_some(read_at);
                        altered.sequences = sequences();
                        new.altered.push(altered);
                    }
                }
            }
        }
        Ok(new)
    }
}

impl Definition {
    /// True for a table that the transaction has created, or truncated: all its rows are its own.
    pub fn is_new(&self) -> bool {
        matches!(self.was, Was::New(_) | Was::Other(..))
    }

    /// The row id of one more row, where the catalogue does not give it.
    pub fn next_row_id(&self) -> Option<u64> {
        match &self.was {
            Was::New(next) | Was::Other(_, _, next) => Some(next.fetch_add(1, Ordering::Relaxed)),
            Was::There(_) => None,
        }
    }

    /// Refuses what was made ready for a table that is gone by now, or another.
    pub fn expect(&self, current: &TableVersion) -> Result<()> {
        let name = &self.name;
        let gone = match self.fate {
            Fate::Stays => None,
            Fate::Dropped => Some("was dropped by the transaction"),
            Fate::Truncated => Some("was truncated by the transaction: take it again by its name"),
        };
        if let Some(gone) = gone {
            return Err(Error::new(ErrorKind::NotFound, format!("table {name:?} {gone}")));
        }
        if !Arc::ptr_eq(&self.schema, &current.schema) {
            let message = format!(
                "the transaction has altered table {name:?} since: take it again by its name"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }
}
