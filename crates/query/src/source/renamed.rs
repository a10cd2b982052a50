//! A source with other names for its fields.

use esker_format::{Schema, ValueRef};

use super::{Fragment, KeyRows, Source, SourceRef};
use crate::Result;

/// The rows of a source.
pub(crate) struct Renamed<'a> {
    schema: Schema,
    source: SourceRef<'a>,
}

impl<'a> Renamed<'a> {
    /// The schema is that of the source, but for names.
    pub(crate) fn new(schema: Schema, source: SourceRef<'a>) -> Self {
        Self { schema, source }
    }
}

impl Source for Renamed<'_> {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        self.source.get().part_count()
    }

    fn part(&self, index: usize) -> &dyn Fragment {
        self.source.get().part(index)
    }

    fn find_keys(&self, keys: &[Vec<ValueRef<'_>>]) -> Result<Option<KeyRows>> {
        self.source.get().find_keys(keys)
    }

    fn row_id_position(&self) -> Option<usize> {
        self.source.get().row_id_position()
    }
}
