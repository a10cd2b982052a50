//! A row of an answer.

use std::sync::Arc;

use esker_format::Value;
use esker_query::ResultColumn;

/// One row of an answer: a value for each column.
#[derive(Clone, Debug)]
pub struct ResultRow {
    columns: Arc<[ResultColumn]>,
    values: Vec<Value>,
}

impl ResultRow {
    pub(crate) fn new(columns: &Arc<[ResultColumn]>, values: Vec<Value>) -> Self {
        Self { columns: Arc::clone(columns), values }
    }

    /// The value of a column: of several with the same name the first, `None` when there is none.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.values.get(self.columns.iter().position(|known| known.name == column)?)
    }

    /// The columns of the answer.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The values, in the order of the columns.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Gives up the values.
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}

impl PartialEq for ResultRow {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}
