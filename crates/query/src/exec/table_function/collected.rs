//! Rows that are no table's, collected one by one, as a source.

use esker_format::{Schema, ValueRef};

use super::MadeRows;
use crate::exec::output::Materialised;
use crate::{Fragment, Options, Result, Source};

/// Collects rows, within the memory of a statement.
///
/// ```
/// use esker_format::{DataType, Field, FieldId, Schema, ValueRef};
/// use esker_query::{Options, Query, RowCollector};
///
/// let options = Options::new(&esker_vfs::Environment::os());
/// let field = Field::new(FieldId(1), "n".to_owned(), DataType::I64, false);
/// let mut rows = RowCollector::new(Schema::of_fields(vec![field]), &options);
/// rows.push(&[ValueRef::Int(7)])?;
/// let answer = esker_query::execute(&Query::table("t"), &rows.finish()?, &options)?;
/// assert_eq!(answer.to_rows(), [[esker_format::Value::Int(7)]]);
/// # Ok::<(), esker_query::Error>(())
/// ```
pub struct RowCollector<'o> {
    schema: Schema,
    rows: MadeRows<'o>,
}

/// Rows in memory.
#[derive(Debug)]
pub struct CollectedRows(Materialised);

impl<'o> RowCollector<'o> {
    /// Without rows.
    #[must_use]
    pub fn new(schema: Schema, options: &'o Options) -> Self {
        let rows = MadeRows::new(&schema, options);
        Self { schema, rows }
    }

    /// Adds a row, with a value for each field.
    ///
    /// # Errors
    /// `OverBudget` with the number of bytes needed; when the statement is to end.
    pub fn push(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        self.rows.push(values)
    }

    /// The rows, which are held until the end of the statement.
    ///
    /// # Errors
    /// As [`RowCollector::push`].
    pub fn finish(self) -> Result<CollectedRows> {
        Ok(CollectedRows(Materialised::of(self.schema, self.rows.finish()?)))
    }
}

impl Source for CollectedRows {
    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn part_count(&self) -> usize {
        self.0.part_count()
    }

    fn part(&self, index: usize) -> &dyn Fragment {
        self.0.part(index)
    }
}
