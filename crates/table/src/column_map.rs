//! Which column of a group or segment holds a field.

use esker_format::{ColumnSlice, Data, DataType, Field, FieldId, Validity};

/// No column.
const NONE: u16 = u16::MAX;

/// From field numbers to columns. Row groups outlive schemas: a field that was added later has no
/// column, and a column may belong to a field that was dropped.
pub struct ColumnMap(Vec<u16>);

impl ColumnMap {
    /// The map of columns that hold these fields, in order.
    pub fn new(fields: impl Iterator<Item = FieldId>) -> Self {
        let mut columns = Vec::new();
        for (column, field) in (0u16..NONE).zip(fields) {
            let at = usize::from(field.0);
            if columns.len() <= at {
                columns.resize(at + 1, NONE);
            }
            if let Some(slot) = columns.get_mut(at) {
                *slot = column;
            }
        }
        Self(columns)
    }

    /// The column of a field.
    #[inline]
    pub fn get(&self, field: FieldId) -> Option<usize> {
        let column = self.0.get(usize::from(field.0)).copied()?;
        (column != NONE).then_some(usize::from(column))
    }
}

/// What rows that are older than a field have for it.
pub fn initial_column(field: &Field, len: usize) -> ColumnSlice<'_> {
    let data = Data::Constant(field.initial.as_ref());
    ColumnSlice { data_type: field.data_type, len, validity: Validity::AllValid, data }
}

/// True when a column of a type can be read as a field of another: one of them was widened to the
/// other, and which one depends on the age of the column and of the reader's schema.
pub fn is_readable_as(stored: DataType, wanted: DataType) -> bool {
    stored == wanted || stored.widens_to(wanted) || wanted.widens_to(stored)
}
