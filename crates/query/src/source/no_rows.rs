//! A table of which only the fields are known: for looking at queries.

use esker_format::{ColumnSlice, Room, Schema};
use std::ops::Range;

use super::{Fragment, Source, Zone};
use crate::{Error, Result};

/// A [`Source`] without rows.
#[derive(Clone, Debug)]
pub struct NoRows {
    schema: Schema,
}

impl NoRows {
    /// A table with the fields of a schema.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self { schema }
    }
}

impl Source for NoRows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        0
    }

    fn part(&self, _: usize) -> &dyn Fragment {
        self
    }
}

impl Fragment for NoRows {
    fn row_count(&self) -> usize {
        0
    }

    fn visible_count(&self) -> Option<usize> {
        Some(0)
    }

    fn batch_end(&self, _: usize, _: usize) -> usize {
        0
    }

    fn column<'a>(
        &'a self,
        position: usize,
        _: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        Err(Error::invalid(format!("column {position} of a table without rows")))
    }

    fn visible(&self, _: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, _: usize, _: usize) -> Option<Zone<'_>> {
        None
    }
}
