//! How the rows that a reference names are found: by the key of their table, or by a unique index.

use std::sync::Arc;

use esker_format::key::encode_key;
use esker_format::schema::{Index, IndexId};
use esker_format::{Field, Schema, Value, ValueRef};
use esker_table::{Table as TableCore, TableWriter};

use crate::commit::fit::fit_reference;
use crate::{Error, ErrorKind, Result};

/// What has one row for some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKey {
    /// The primary key.
    Primary,
    /// A unique index.
    Unique(IndexId),
}

/// The columns of a table that a reference names.
#[derive(Clone)]
pub(crate) struct ReferenceTarget {
    pub core: Arc<TableCore>,
    pub schema: Arc<Schema>,
    pub key: TargetKey,
    /// The positions of the columns, in the order of the reference.
    pub positions: Vec<usize>,
    /// For each part of the key or index, which of the columns it is.
    order: Vec<usize>,
}

impl ReferenceTarget {
    /// The columns of a table, by their names.
    ///
    /// # Errors
    /// `InvalidInput` when they are neither its key nor those of a unique index.
    pub fn of(core: &Arc<TableCore>, schema: &Arc<Schema>, columns: &[String]) -> Result<Self> {
        let position = |name: &String| Ok(schema.resolve(name)?);
        let positions = columns.iter().map(position).collect::<Result<Vec<_>>>()?;
        let Some((key, order)) = key_of(schema, &positions) else {
            let (name, columns) = (core.name(), columns.join(", "));
            return Err(Error::invalid(format!(
                "({columns}) of table {name:?}: expected its primary key, or the fields of a \
                 unique index"
            )));
        };
        let (core, schema) = (Arc::clone(core), Arc::clone(schema));
        Ok(Self { core, schema, key, positions, order })
    }

    /// The same columns of the table as it is by another schema; `None` when one of them is gone.
    pub fn by_schema(&self, schema: &Arc<Schema>) -> Option<Self> {
        let position = |field: &Field| schema.fields().iter().position(|f| f.id == field.id);
        let positions = self.fields().map(position).collect::<Option<_>>()?;
        Some(Self { schema: Arc::clone(schema), positions, ..self.clone() })
    }

    /// The fields, in the order of the reference.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        self.positions.iter().filter_map(|at| self.schema.fields().get(*at))
    }

    /// Values as the columns hold them; `None` when they cannot hold one of them.
    pub fn fit(&self, values: &[ValueRef<'_>]) -> Option<Vec<Value>> {
        let fit = |(field, value): (&Field, &ValueRef<'_>)| {
            fit_reference(field, *value).ok().map(ValueRef::to_owned)
        };
        self.fields().zip(values).map(fit).collect()
    }

    /// The bytes of values that fit, none of them NULL: one form for all that are equal.
    pub fn bytes_of(&self, values: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (field, value) in self.fields().zip(values) {
            encode_key(&mut bytes, field.data_type, value.as_ref());
        }
        bytes
    }

    /// Borrowed values as the columns hold them; `None` when they cannot hold one of them.
    pub fn fit_refs<'v>(&'v self, values: &[ValueRef<'v>]) -> Option<Vec<ValueRef<'v>>> {
        let fit = |(field, value): (&'v Field, &ValueRef<'v>)| fit_reference(field, *value).ok();
        self.fields().zip(values).map(fit).collect()
    }

    /// The hash of values that fit.
    pub fn hash_of(&self, values: &[ValueRef<'_>]) -> u64 {
        self.core.hasher().hash_key(values.iter().copied())
    }

    /// Values that fit, in the order of the key or index.
    pub fn ordered<'v>(&self, values: &'v [Value]) -> Vec<ValueRef<'v>> {
        self.order.iter().filter_map(|at| values.get(*at)).map(Value::as_ref).collect()
    }

    /// True when the newest version of the table has a row with values that fit. Under the commit
    /// lock.
    ///
    /// # Errors
    /// `Conflict` when a load that has not committed has them, `Corrupt` for damage.
    pub fn has_row(&self, writer: &TableWriter, values: &[Value]) -> Result<bool> {
        let key = self.ordered(values);
        match self.key {
            TargetKey::Primary => {
                let existing = writer.existing(&key, self.core.hash_of(&key))?;
                Ok(existing.is_some_and(|existing| existing.is_alive()))
            }
            TargetKey::Unique(id) => {
                let (core, uniques) = (writer.table(), writer.table().uniques());
                let keys = uniques.iter().find(|keys| keys.index().id == id);
                let gone = || {
                    let name = core.name();
                    let message = format!("table {name:?}: a unique index is gone; begin again");
                    Error::new(ErrorKind::Conflict, message)
                };
                let keys = keys.ok_or_else(gone)?;
                let hash = core.hasher().hash_key(key.iter().copied());
                Ok(keys.holder(&core.view(), hash, &key)?.is_some())
            }
        }
    }

    /// Values as errors show them: `id = 7`.
    pub fn shown(&self, values: &[Value]) -> String {
        let shown = |(field, value): (&Field, &Value)| format!("{} = {value}", field.name);
        self.fields().zip(values).map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// The key or the unique index that some fields are, in any order, and their order in it.
pub(crate) fn key_of(schema: &Schema, positions: &[usize]) -> Option<(TargetKey, Vec<usize>)> {
    let order_in = |parts: &[usize]| -> Option<Vec<usize>> {
        if parts.len() != positions.len() || parts.is_empty() {
            return None;
        }
        parts.iter().map(|part| positions.iter().position(|at| at == part)).collect()
    };
    if let Some(order) = order_in(schema.key_positions()) {
        return Some((TargetKey::Primary, order));
    }
    let of_index = |index: &Index| {
        if index.filter.is_some() || !index.fields.iter().all(|part| part.is_field()) {
            return None;
        }
        let fields: Vec<_> = index.fields.iter().map(|part| part.field).collect();
        let parts = schema.positions_of(&fields).ok()?;
        Some((TargetKey::Unique(index.id), order_in(&parts)?))
    };
    schema.unique_indexes().find_map(of_index)
}
