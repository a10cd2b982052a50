//! A row that was read.

use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};

/// The values of one row.
#[derive(Clone, Debug)]
pub struct Row {
    schema: Arc<Schema>,
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(schema: Arc<Schema>, values: Vec<Value>) -> Self {
        Self { schema, values }
    }

    /// The value of a field; `None` when there is no such field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.values.get(self.schema.position(field)?)
    }

    /// The values, in the order of the schema's fields.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn shared_schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    pub(crate) fn references(&self) -> Vec<ValueRef<'_>> {
        self.values.iter().map(Value::as_ref).collect()
    }

    /// Gives up the values.
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}
