//! The indexes of a table in the model: names of fields, since the model has no numbers.

use std::collections::BTreeSet;

use esker::{DataType, ErrorKind, IndexKind, NewIndex, Schema, Value};
use esker_vfs::sim::Generator;

use crate::model::SERIAL;
use crate::schema::{FieldChange, TableSchema};

/// Names that indexes come to have.
const NAMES: [&str; 3] = ["first", "second", "third"];

/// Draws a new index, or one to drop.
pub(crate) fn draw(schema: &TableSchema, generator: &mut Generator) -> FieldChange {
    let name = generator.pick(NAMES).to_owned();
    let known = schema.indexes.iter().any(|index| index.name == name);
    if known != generator.chance(100_000) {
        return FieldChange::DropIndex(name);
    }
    let kind = match generator.below(10) {
        0 | 1 => IndexKind::Trigram,
        2 | 3 => IndexKind::Bitmap,
        _ => IndexKind::Ordered,
    };
    let is_ordered = kind == IndexKind::Ordered;
    let count = if is_ordered { 1 + generator.index(3) } else { 1 };
    let field = |_| {
        let field = schema.fields.get(generator.index(schema.fields.len()));
        let name = field.map_or_else(|| "note".to_owned(), |field| field.name.clone());
        (name, generator.chance(300_000))
    };
    let mut fields: Vec<_> = (0..count).map(field).collect();
    if !is_ordered {
        fields.iter_mut().for_each(|(_, descending)| *descending = false);
    }
    let unique = is_ordered && generator.chance(400_000);
    if unique && generator.chance(300_000) {
        // Of these there are never two.
        fields.push((SERIAL.to_owned(), false));
    }
    FieldChange::AddIndex(NewIndex { name, kind, unique, ..NewIndex::on(fields) })
}

/// Indexes go with their fields.
pub(crate) fn drop_field(indexes: &mut Vec<NewIndex>, field: &str) {
    indexes.retain(|index| index.fields.iter().all(|(name, _)| name != field));
}

pub(crate) fn rename_field(indexes: &mut [NewIndex], from: &str, to: &str) {
    let fields = indexes.iter_mut().flat_map(|index| &mut index.fields);
    fields.filter(|(name, _)| name == from).for_each(|(name, _)| to.clone_into(name));
}

/// Compares with the indexes of a table.
pub(crate) fn compare(expected: &[NewIndex], found: &Schema) -> Result<(), String> {
    let name = |id| found.field_of(id).map_or_else(String::new, |field| field.name.clone());
    let index = |index: &esker::Index| {
        let fields = index.fields.iter().map(|f| (name(f.field), f.descending)).collect();
        let (kind, unique) = (index.kind, index.unique);
        NewIndex { name: index.name.clone(), kind, unique, ..NewIndex::on(fields) }
    };
    let found: Vec<NewIndex> = found.row_indexes().map(index).collect();
    match expected == found {
        true => Ok(()),
        false => Err(format!("indexes {found:?}, expected {expected:?}")),
    }
}

/// The values of a row in an index; nothing when one is NULL.
fn values(positions: &[usize], row: &[Value]) -> Option<Vec<Value>> {
    let values = positions.iter().map(|at| row.get(*at).filter(|v| !v.is_null()).cloned());
    values.collect()
}

impl TableSchema {
    pub(crate) fn add_index(&mut self, new: &NewIndex) -> Result<(), ErrorKind> {
        if self.indexes.iter().any(|index| index.name == new.name) {
            return Err(ErrorKind::AlreadyExists);
        }
        for (i, (name, _)) in new.fields.iter().enumerate() {
            let position = self.position(name)?;
            let is_text =
                self.fields.get(position).is_some_and(|field| field.data_type == DataType::Text);
            if new.kind == IndexKind::Trigram && !is_text {
                return Err(ErrorKind::InvalidInput);
            }
            let is_json =
                self.fields.get(position).is_some_and(|field| field.data_type == DataType::Json);
            if is_json || new.fields.iter().skip(i + 1).any(|(other, _)| other == name) {
                return Err(ErrorKind::InvalidInput);
            }
        }
        self.indexes.push(new.clone());
        Ok(())
    }

    /// Whether no two rows have the same values in a unique index.
    pub(crate) fn has_unique_values<'a>(
        &self,
        rows: impl Iterator<Item = &'a [Value]> + Clone,
    ) -> bool {
        self.unique_positions().iter().all(|positions| {
            let mut seen = BTreeSet::new();
            rows.clone().filter_map(|row| values(positions, row)).all(|values| seen.insert(values))
        })
    }

    /// Whether a row has the values of another one in a unique index.
    pub(crate) fn has_values_of(&self, row: &[Value], other: &[Value]) -> bool {
        self.unique_positions().iter().any(|positions| {
            let found = values(positions, row);
            found.is_some() && found == values(positions, other)
        })
    }

    /// Whether some index is unique.
    pub(crate) fn has_unique_index(&self) -> bool {
        self.indexes.iter().any(|index| index.unique)
    }

    fn unique_positions(&self) -> Vec<Vec<usize>> {
        let position = |(name, _): &(String, bool)| self.position(name).ok();
        let unique = self.indexes.iter().filter(|index| index.unique);
        unique.map(|index| index.fields.iter().filter_map(position).collect()).collect()
    }

    pub(crate) fn drop_index(&mut self, name: &str) -> Result<(), ErrorKind> {
        let at = self.indexes.iter().position(|index| index.name == name);
        self.indexes.remove(at.ok_or(ErrorKind::NotFound)?);
        Ok(())
    }
}
