//! References in a commit of its own. Under the commit lock all there is can be seen, so that rows
//! that name others are tested there and then. A commit after which rows are gone that others may
//! name is more: it may have to change rows of other tables, and becomes a transaction that begins
//! with what was staged:
//!
//! ```text
//! stage ─► rows that are named are there? ─► number …
//!    └───► rows go that others may name ─► begin a transaction (still under the lock) ─► unlock
//!            ─► the same changes, and what references do ─► commit
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};

use crate::Result;
use crate::catalog::reference_target::ReferenceTarget;
use crate::catalogue::Catalogue;
use crate::commit::bound_commits::BoundChanges;
use crate::commit::named_rows::{NamedRows, NamedRowsOf, named_by};
use crate::commit::write_set::{TableWrites, WriteSet};
use crate::engine::{Engine, no_table};
use crate::table_version::TableVersion;

/// Whether some changes are those of a commit of its own, which has read nothing before.
fn is_of_its_own(writes: &TableWrites<'_>) -> bool {
    writes.staged.read_at.is_none() && writes.private.is_none()
}

/// True when a commit of its own may leave rows that others name.
pub(crate) fn leaves_named(set: &WriteSet<'_>) -> Result<bool> {
    for writes in set.as_slice().iter().filter(|writes| is_of_its_own(writes)) {
        let TableWrites { current, staged, .. } = writes;
        if current.schema.referrers().is_empty() {
            continue;
        }
        if !staged.deletes.is_empty() {
            return Ok(true);
        }
        let named = named_beside_key(&current.schema)?;
        for put in staged.puts.iter().filter(|_| !named.is_empty()) {
            let Some(existing) = put.prepared.existing.filter(|e| e.is_alive()) else { continue };
            let before = current.core.row_at(existing.location)?;
            let is_same = |at: &usize| match (before.get(*at), put.row.get(*at)) {
                (Some(before), Some(now)) => before.as_ref().is_identical(now.as_ref()),
                _ => false,
            };
            if !named.iter().all(is_same) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The positions of fields that others refer to and that may change: those of the key do not.
pub(crate) fn named_beside_key(schema: &Schema) -> Result<Vec<usize>> {
    let mut positions = BTreeSet::new();
    for referrer in schema.referrers() {
        positions.extend(schema.positions_of(&referrer.fields)?);
    }
    Ok(positions.into_iter().filter(|at| !schema.key_positions().contains(at)).collect())
}

/// What was staged, by key.
pub(crate) fn bound_changes(set: &WriteSet<'_>) -> Result<Vec<BoundChanges>> {
    set.as_slice().iter().filter(|writes| !writes.is_empty()).map(changes_of).collect()
}

fn changes_of(writes: &TableWrites<'_>) -> Result<BoundChanges> {
    let TableWrites { current, staged, .. } = writes;
    let positions = current.schema.key_positions();
    let mut removed = Vec::with_capacity(staged.deletes.len());
    for existing in &staged.deletes {
        removed.push(match positions {
            [] => vec![Value::Uint(existing.row_id)],
            _ => {
                let row = current.core.row_at(existing.location)?;
                positions.iter().filter_map(|at| row.get(*at)).cloned().collect()
            }
        });
    }
    let row_id = |put: &crate::commit::staged::Put<'_>| {
        Some(put.prepared.row_id).filter(|_| put.prepared.is_update())
    };
    let puts = staged.puts.iter().map(|put| (row_id(put), put.row.to_vec()));
    let mut put: Vec<_> = puts.collect();
    if let Some(batch) = &staged.batch {
        let row = |i: usize| batch.columns.columns.iter().map(|c| c.value(i).to_owned()).collect();
        put.extend((0..batch.columns.len()).map(|i| (None, row(i))));
    }
    Ok(BoundChanges { current: current.clone().into_owned(), removed, put })
}

impl Engine {
    /// The rows that staged ones name.
    pub(crate) fn named_rows(&self, set: &[TableWrites<'_>]) -> Result<NamedRows> {
        let mut named = NamedRows::default();
        for writes in set.iter().filter(|writes| is_of_its_own(writes)) {
            let TableWrites { current, staged, .. } = writes;
            let name = current.core.name();
            for reference in current.schema.references() {
                let target = self.target_of(current, &reference.table, &reference.columns)?;
                let rows = named.of(&name, reference, &target);
                note_coming(set, rows);
                let positions = current.schema.positions_of(&reference.fields)?;
                for row in staged.rows() {
                    note(rows, named_by(&positions, |at| row.get(at).map(Value::as_ref)))?;
                }
                if let Some(batch) = &staged.batch {
                    for i in 0..batch.columns.len() {
                        let value = |at: usize| batch.columns.columns.get(at).map(|c| c.value(i));
                        note(rows, named_by(&positions, value))?;
                    }
                }
            }
        }
        Ok(named)
    }

    /// The columns of the newest table of a name that a table refers to; it may be that table.
    pub(crate) fn target_of(
        &self,
        current: &TableVersion,
        table: &str,
        columns: &[String],
    ) -> Result<ReferenceTarget> {
        let names = self.names.load();
        let core = names.newest().get(table).ok_or_else(|| no_table(table, names.newest()))?;
        let schema = match core.id() == current.core.id() {
            true => Arc::clone(&current.schema),
            false => core.schema(),
        };
        ReferenceTarget::of(core, &schema, columns)
    }

    /// Refuses staged rows that name rows that are not there. Under the commit lock.
    pub(crate) fn expect_named(
        &self,
        catalogue: &mut Catalogue,
        set: &[TableWrites<'_>],
    ) -> Result<()> {
        let names = |writes: &&TableWrites<'_>| !writes.current.schema.references().is_empty();
        if !set.iter().filter(names).any(is_of_its_own) {
            return Ok(());
        }
        self.named_rows(set)?.expect_there(catalogue, crate::ErrorKind::ConstraintViolated)
    }
}

/// Notes the values by which a row names another one; true when it is the first to.
pub(crate) fn note(rows: &mut NamedRowsOf, values: Option<Vec<ValueRef<'_>>>) -> Result<bool> {
    match values {
        Some(values) => rows.note(&values),
        None => Ok(false),
    }
}

/// Notes the rows that a commit puts into the table that a reference names.
fn note_coming(set: &[TableWrites<'_>], rows: &mut NamedRowsOf) {
    let (id, positions) = (rows.target.core.id(), rows.target.positions.clone());
    for writes in set.iter().filter(|writes| writes.current.core.id() == id) {
        for row in writes.staged.rows() {
            if let Some(values) = named_by(&positions, |at| row.get(at).map(Value::as_ref)) {
                rows.note_coming(&values);
            }
        }
        let Some(batch) = &writes.staged.batch else { continue };
        for i in 0..batch.columns.len() {
            let value = |at: usize| batch.columns.columns.get(at).map(|c| c.value(i));
            if let Some(values) = named_by(&positions, value) {
                rows.note_coming(&values);
            }
        }
    }
}
