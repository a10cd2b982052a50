//! Which row is in the way of a new one by a unique index, while a statement stages its rows.
//!
//! A row of the statement is in the way by its values as staged. One of the table is, unless the
//! statement has changed it: then what is staged counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::key::encode_key;
use esker_format::schema::{Index, IndexId};
use esker_format::{Schema, Value, ValueRef};
use esker_query::index_expression;
use esker_query::model::Insert;
use esker_table::TableWriter;
use esker_table::table::{ComputedRow, Holder, UniqueKeys};
use esker_table::view::{Resolved, View};

use crate::catalog::computed_index;
use crate::commit::staged::Staged;
use crate::{Error, Result};

/// By what a row that is in the way is found.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// By its key; rows are left out where a unique index finds one, too.
    Any,
    /// By its key.
    Key,
    /// By unique indexes: all that are meant.
    Unique(Vec<IndexId>),
}

impl Target {
    /// What the fields of a conflict mean: the key, or a unique index.
    pub fn of(schema: &Schema, insert: &Insert) -> Result<Self> {
        let names = insert.conflict_key.as_slice();
        if insert.conflict_expressions.is_empty() && insert.conflict_filter.is_none() {
            return Self::of_names(schema, names);
        }
        let (expressions, filter) = (&insert.conflict_expressions, &insert.conflict_filter);
        if let Some(filter) = filter {
            index_expression::expect_conflict_condition(filter, schema)?;
        }
        if expressions.is_empty()
            && let Ok(Self::Key) = Self::of_names(schema, names)
        {
            // It tells all rows apart, and so those of an index with the same fields.
            return Ok(Self::Key);
        }
        let resolve = |name: &String| schema.resolve(name);
        if let Ok(found) = names.iter().map(resolve).collect::<esker_format::Result<Vec<_>>>() {
            let field = |position: &usize| schema.fields().get(*position).map(|field| field.id);
            let fields: Vec<_> = found.iter().filter_map(field).collect();
            let wanted = (fields.as_slice(), expressions.as_slice());
            let meant = computed_index::conflicting(schema, wanted, filter.as_ref())?;
            if !meant.is_empty() {
                return Ok(Self::Unique(meant));
            }
        }
        if expressions.is_empty()
            && let Ok(target) = Self::of_names(schema, names)
        {
            // That of all rows has those of the condition.
            return Ok(target);
        }
        let names = names.iter().map(String::clone);
        let parts = names.chain(expressions.iter().map(ToString::to_string));
        let filter = filter.iter().map(|filter| format!(" WHERE {filter}")).collect::<String>();
        let parts = parts.collect::<Vec<_>>().join(", ");
        Err(not_there(schema, &format!("({parts}){filter}")))
    }

    fn of_names(schema: &Schema, names: &[String]) -> Result<Self> {
        if names.is_empty() {
            return Ok(Self::Any);
        }
        let is_whole = |index: &&Index| !index.is_computed();
        let is_on = |index: &&Index| {
            let mut places: Vec<_> = index.fields.iter().map(|p| schema.place_of(p)).collect();
            let mut names = names.to_vec();
            places.sort_unstable();
            names.sort_unstable();
            places == names
        };
        if let Some(index) = schema.unique_indexes().filter(is_whole).find(is_on) {
            return Ok(Self::Unique(vec![index.id]));
        }
        let resolve = |name: &String| schema.resolve(name);
        let mut found = names.iter().map(resolve).collect::<esker_format::Result<Vec<_>>>()?;
        let mut key = schema.key_positions().to_vec();
        found.sort_unstable();
        key.sort_unstable();
        if found == key {
            return Ok(Self::Key);
        }
        let field = |position: &usize| schema.fields().get(*position).map(|field| field.id);
        let wanted: BTreeSet<_> = found.iter().filter_map(field).collect();
        let has_fields = |index: &&Index| {
            index.fields.len() == found.len()
                && index.fields.iter().all(|p| p.path.is_empty() && wanted.contains(&p.field))
        };
        if let Some(index) = schema.unique_indexes().filter(is_whole).find(has_fields) {
            return Ok(Self::Unique(vec![index.id]));
        }
        Err(not_there(schema, &format!("({})", names.join(", "))))
    }

    /// The unique indexes by which rows are looked up.
    pub fn uniques(&self, writer: &TableWriter, skips: bool) -> StagedUniques {
        let is_wanted = |keys: &&Arc<UniqueKeys>| match self {
            Self::Any => skips,
            Self::Key => false,
            Self::Unique(meant) => meant.contains(&keys.index().id),
        };
        StagedUniques::new(writer.table().uniques().iter().filter(is_wanted).cloned().collect())
    }
}

/// The error for what is neither the key nor a unique index.
fn not_there(schema: &Schema, asked: &str) -> Error {
    let key = schema.key_fields().map(|field| field.name.as_str()).collect::<Vec<_>>();
    let mut expected = Vec::new();
    if !key.is_empty() {
        expected.push(format!("the primary key, ({})", key.join(", ")));
    }
    for index in schema.unique_indexes() {
        let part = |part| {
            let expression = computed_index::expression_text(schema, part);
            // default: what is not computed has a place
            expression.unwrap_or_else(|| schema.place_of(part))
        };
        let parts = index.fields.iter().map(part).collect::<Vec<_>>().join(", ");
        let filter = computed_index::filter_text(schema, index);
        let filter = filter.iter().map(|filter| format!(" WHERE {filter}")).collect::<String>();
        expected.push(format!("unique index {:?}, ({parts}){filter}", index.name));
    }
    Error::invalid(match expected.is_empty() {
        true => format!(
            "ON CONFLICT {asked}: the table has no declared primary key and no unique index"
        ),
        false => format!("ON CONFLICT {asked}: expected {}", expected.join(", or ")),
    })
}

/// The values of unique indexes that staged rows have.
#[derive(Default)]
pub(super) struct StagedUniques {
    keys: Vec<Arc<UniqueKeys>>,
    /// For each index: positions in the staged rows, by values.
    by_values: Vec<BTreeMap<Vec<u8>, usize>>,
    /// The rows of the table that are staged.
    changed: BTreeSet<u64>,
}

/// A row that has the values of a new one.
pub(super) enum ConflictingRow {
    /// A staged row, by its position.
    Staged(usize),
    /// A row of the table.
    Stored(Holder),
}

impl StagedUniques {
    /// Nothing is staged yet; rows are looked up by these indexes.
    pub fn new(keys: Vec<Arc<UniqueKeys>>) -> Self {
        let by_values = keys.iter().map(|_| BTreeMap::new()).collect();
        Self { keys, by_values, changed: BTreeSet::new() }
    }

    /// True when rows are looked up by their key only.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The row that has values of a new one.
    pub fn in_the_way(
        &self,
        writer: &TableWriter,
        schema: &Schema,
        row: &[Value],
    ) -> Result<Option<ConflictingRow>> {
        let view = writer.table().view();
        for (keys, by_values) in self.keys.iter().zip(&self.by_values) {
            let mut room = ComputedRow::default();
            let Some(values) = keys.values_of(schema, row, &mut room)? else { continue };
            if let Some(at) = by_values.get(&encoded(keys, schema, &values)) {
                return Ok(Some(ConflictingRow::Staged(*at)));
            }
            let hash = writer.table().hasher().hash_key(values.iter().copied());
            let holder = keys.holder(&view, hash, &values)?;
            if let Some(holder) = holder.filter(|holder| !self.changed.contains(&holder.row_id))
                && !has_expired(writer, &view, &holder)?
            {
                return Ok(Some(ConflictingRow::Stored(holder)));
            }
        }
        Ok(None)
    }

    /// A row is staged, in the place of another one perhaps.
    pub fn note(
        &mut self,
        schema: &Schema,
        staged: &Staged<'_>,
        (at, row_id): (usize, Option<u64>),
        before: Option<&[Value]>,
    ) -> Result<()> {
        self.changed.extend(row_id);
        for (keys, by_values) in self.keys.iter().zip(&mut self.by_values) {
            let of = |row| {
                let mut room = ComputedRow::default();
                let values = keys.values_of(schema, row, &mut room)?;
                Ok::<_, Error>(values.map(|values| encoded(keys, schema, &values)))
            };
            if let Some(before) = before.map(of).transpose()?.flatten() {
                by_values.remove(&before);
            }
            if let Some(now) = staged.row_at(at).map(of).transpose()?.flatten() {
                by_values.insert(now, at);
            }
        }
        Ok(())
    }
}

/// True when no reader sees a row any more: it has no values.
fn has_expired(writer: &TableWriter, view: &View, holder: &Holder) -> Result<bool> {
    match (view.schema.expiry_field(), view.resolve(holder.location)) {
        (Some(field), Resolved::Row(row_group, row)) => {
            Ok(row_group.has_expired(row, field, writer.now_us())?)
        }
        _ => Ok(false),
    }
}

fn encoded(keys: &UniqueKeys, schema: &Schema, values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let parts = keys.index().fields.iter().zip(keys.types(schema));
    for ((part, data_type), value) in parts.zip(values) {
        if !part.path.is_empty() {
            // A text is none of the documents that have its bytes.
            out.push(u8::from(matches!(value, ValueRef::Bytes(_))));
        }
        encode_key(&mut out, data_type, *value);
    }
    out
}
