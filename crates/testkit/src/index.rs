//! The indexes of a table in the model: names of fields, since the model has no numbers.

use esker::{DataType, ErrorKind, NewIndex, Schema};
use esker_vfs::sim::Generator;

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
    let count = 1 + generator.index(3);
    let field = |_| {
        let field = schema.fields.get(generator.index(schema.fields.len()));
        let name = field.map_or_else(|| "note".to_owned(), |field| field.name.clone());
        (name, generator.chance(300_000))
    };
    FieldChange::AddIndex(NewIndex { name, fields: (0..count).map(field).collect() })
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
    let index = |index: &esker::Index| NewIndex {
        name: index.name.clone(),
        fields: index.fields.iter().map(|f| (name(f.field), f.descending)).collect(),
    };
    let found: Vec<NewIndex> = found.indexes().iter().map(index).collect();
    match expected == found {
        true => Ok(()),
        false => Err(format!("indexes {found:?}, expected {expected:?}")),
    }
}

impl TableSchema {
    pub(crate) fn add_index(&mut self, new: &NewIndex) -> Result<(), ErrorKind> {
        if self.indexes.iter().any(|index| index.name == new.name) {
            return Err(ErrorKind::AlreadyExists);
        }
        for (i, (name, _)) in new.fields.iter().enumerate() {
            let position = self.position(name)?;
            let is_json =
                self.fields.get(position).is_some_and(|field| field.data_type == DataType::Json);
            if is_json || new.fields.iter().skip(i + 1).any(|(other, _)| other == name) {
                return Err(ErrorKind::InvalidInput);
            }
        }
        self.indexes.push(new.clone());
        Ok(())
    }

    pub(crate) fn drop_index(&mut self, name: &str) -> Result<(), ErrorKind> {
        let at = self.indexes.iter().position(|index| index.name == name);
        self.indexes.remove(at.ok_or(ErrorKind::NotFound)?);
        Ok(())
    }
}
