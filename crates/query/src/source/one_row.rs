//! One row without fields: what a query without a table reads.

use std::ops::Range;

use esker_format::{ColumnSlice, Room, Schema};

use super::{Fragment, Source, Zone};
use crate::{Error, Result};

/// A [`Source`] of one row without fields.
///
/// ```
/// use esker_query::model::{Expr, Operator, Query};
/// use esker_query::{OneRow, Options, execute};
///
/// let mut query = Query::one_row();
/// query.select(Expr::literal(1i64).binary(Operator::Add, Expr::literal(1i64)));
/// let options = Options::new(&esker_vfs::Environment::os());
/// let answer = execute(&query, &OneRow::new(), &options)?;
/// assert_eq!(answer.to_rows(), [[esker_format::Value::Int(2)]]);
/// # Ok::<(), esker_query::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OneRow {
    schema: Schema,
}

impl OneRow {
    /// The row.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "there is nothing to choose")]
    pub fn new() -> Self {
        Self { schema: Schema::of_types(&[]) }
    }
}

impl Source for OneRow {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        1
    }

    fn part(&self, _: usize) -> &dyn Fragment {
        self
    }
}

impl Fragment for OneRow {
    fn row_count(&self) -> usize {
        1
    }

    fn visible_count(&self) -> Option<usize> {
        Some(1)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        (start + rows_max).min(1)
    }

    fn column<'a>(&'a self, _: usize, _: Range<usize>, _: &'a Room) -> Result<ColumnSlice<'a>> {
        Err(Error::invalid("a row without fields has no columns"))
    }

    fn visible(&self, _: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, _: usize, _: usize) -> Option<Zone<'_>> {
        None
    }
}
