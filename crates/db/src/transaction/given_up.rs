//! Values that rows of a transaction no longer have, and that rows of others may name by a
//! reference: none that came since its snapshot may, once it commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::schema::Reference;
use esker_format::{Room, TableId, Value, ValueRef};
use esker_table::Table as TableCore;
use esker_table::view::RowGroup;

use crate::catalog::reference_target::ReferenceTarget;
use crate::catalogue::Catalogue;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result};

/// Bytes that values take beside their own, about.
const VALUES_BYTES: usize = 160;

/// All of them, by what names them.
#[derive(Default)]
pub(super) struct GivenUpRows {
    by_reference: BTreeMap<(TableId, String), GivenUpOf>,
    bytes: usize,
}

/// Those of a reference.
struct GivenUpOf {
    core: Arc<TableCore>,
    name: String,
    reference: Reference,
    target: ReferenceTarget,
    /// By their bytes.
    values: BTreeMap<Vec<u8>, Vec<Value>>,
}

impl GivenUpRows {
    pub fn is_empty(&self) -> bool {
        self.by_reference.is_empty()
    }

    /// Bytes that they take, about.
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Values are given up that rows of a table may name.
    pub fn note(
        &mut self,
        naming: &TableVersion,
        reference: &Reference,
        target: &ReferenceTarget,
        values: &[Value],
    ) {
        let key = (naming.core.id(), reference.name.clone());
        let of = self.by_reference.entry(key).or_insert_with(|| {
            let (core, reference) = (Arc::clone(&naming.core), reference.clone());
            let (name, target) = (naming.core.name().to_string(), target.clone());
            GivenUpOf { core, name, reference, target, values: BTreeMap::new() }
        });
        let bytes = target.bytes_of(values);
        self.bytes += VALUES_BYTES + 2 * bytes.len();
        of.values.insert(bytes, values.to_vec());
    }

    /// Keeps those that are to stay, of each reference.
    pub fn retain(
        &mut self,
        mut stay: impl FnMut(&ReferenceTarget, &[Vec<Value>]) -> Result<Vec<bool>>,
    ) -> Result<()> {
        for of in self.by_reference.values_mut() {
            let values: Vec<Vec<Value>> = of.values.values().cloned().collect();
            let mut stay = stay(&of.target, &values)?.into_iter();
            // default: there is a word for each
            of.values.retain(|_, _| stay.next().unwrap_or(true));
        }
        self.by_reference.retain(|_, of| !of.values.is_empty());
        Ok(())
    }

    /// Refuses rows that came after a commit and name what is given up. Under the commit lock.
    ///
    /// # Errors
    /// `Conflict` naming the reference.
    pub fn expect_unnamed(&self, catalogue: &mut Catalogue, read_at: u64) -> Result<()> {
        for of in self.by_reference.values() {
            let id = of.core.id();
            let Some(entry) = catalogue.tables.get(&id) else {
                return Err(of.conflict("was dropped or truncated"));
            };
            if entry.changed_at <= read_at {
                continue;
            }
            let view = of.core.view();
            for row_group in view.row_groups.iter().filter(|group| !group.is_loading()) {
                if row_group.newest_commit() > read_at {
                    of.expect_unnamed_in(row_group, read_at)?;
                }
            }
        }
        Ok(())
    }
}

impl GivenUpOf {
    fn expect_unnamed_in(&self, row_group: &RowGroup, read_at: u64) -> Result<()> {
        let schema = self.core.schema();
        let positions = schema.positions_of(&self.reference.fields)?;
        let fields: Vec<_> = positions.iter().filter_map(|at| schema.fields().get(*at)).collect();
        let target = &self.target;
        for row in 0..row_group.row_count() {
            if row_group.is_created_at(row, read_at) || !row_group.is_alive(row) {
                continue;
            }
            let room = Room::default();
            let values = fields.iter().map(|field| row_group.value(field, row, &room));
            let values = values.collect::<esker_table::Result<Vec<_>>>()?;
            if values.contains(&ValueRef::Null) {
                continue;
            }
            let fitted = target.fit(&values);
            if fitted.is_some_and(|fitted| self.values.contains_key(&target.bytes_of(&fitted))) {
                return Err(self.conflict("has got a row that refers to one that goes"));
            }
        }
        Ok(())
    }

    fn conflict(&self, what: &str) -> Error {
        let (name, reference) = (&self.name, &self.reference.name);
        let message = format!(
            "table {name:?}, reference {reference:?}: it {what} since the transaction began; \
             begin again"
        );
        Error::new(ErrorKind::Conflict, message)
    }
}
