//! What a table keeps of a rollup: partial aggregates of each segment, computed as queries compute
//! them.
//!
//! ```text
//! CREATE MATERIALIZED VIEW ─► DefinedView, which says what it shows
//!                          └► Alteration::AddRollup ─► Index ─► compiler ─► runs ─► queries
//! ```
//!
//! Nothing is done in a commit: runs are built of segments, in the background, and readers scan
//! what has none.

use std::any::Any;

use esker_format::schema::{Alteration, Index};
use esker_format::{Column, ColumnSlice, DataType, FieldId, Schema};
use esker_query::{PartialAggregates, Rollup, Tables, View};
use esker_table::index_values::{ComputedValues, Failing, IndexValues, Partials};

use crate::Result;

/// What computes the partial aggregates of one rollup.
#[derive(Debug)]
pub(crate) struct KeptRollup {
    name: String,
    partials: PartialAggregates,
}

impl KeptRollup {
    /// That of an index.
    ///
    /// # Errors
    /// `Corrupt` when it cannot be read, or does not fit the schema.
    pub fn of(schema: &Schema, index: &Index) -> esker_table::Result<Self> {
        let partials =
            PartialAggregates::of(index, schema).map_err(|e| corrupt(&index.name, &e))?;
        Ok(Self { name: index.name.clone(), partials })
    }
}

fn corrupt(name: &str, error: &esker_query::Error) -> esker_table::Error {
    let message = format!("rollup {name:?}: {error}");
    esker_table::Error::new(esker_table::ErrorKind::Corrupt, message)
}

impl IndexValues for KeptRollup {
    fn reads(&self) -> &[FieldId] {
        self.partials.reads()
    }

    fn compute(
        &self,
        _: &[ColumnSlice<'_>],
        _: usize,
        _: Failing,
    ) -> esker_table::Result<ComputedValues> {
        let message = format!("rollup {:?} has no entries of rows", self.name);
        Err(esker_table::Error::new(esker_table::ErrorKind::Corrupt, message))
    }

    fn partials(&self) -> Option<&dyn Partials> {
        Some(self)
    }

    fn written(&self, _: usize, _: &Schema) -> String {
        self.name.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Partials for KeptRollup {
    fn reads(&self) -> &[FieldId] {
        self.partials.reads()
    }

    fn types(&self) -> &[DataType] {
        self.partials.layout().types()
    }

    fn rows(&self) -> usize {
        self.partials.layout().rows()
    }

    fn compute(
        &self,
        columns: &[ColumnSlice<'_>],
        rows: usize,
        groups_max: usize,
    ) -> esker_table::Result<Option<Vec<Column>>> {
        let computed = self.partials.compute(columns, rows, groups_max);
        computed.map_err(|e| corrupt(&self.name, &e))
    }
}

/// The table of a rollup, and the change by which it keeps partial aggregates of it; `None` where
/// they would not answer it.
pub(crate) fn addition(
    name: &str,
    view: &View,
    tables: &dyn Tables,
) -> Result<Option<(String, Alteration)>> {
    let rollup = Rollup::of(&view.query_by_default(), tables)?;
    let schema = tables.table(&rollup.table)?.schema().clone();
    let kept = rollup.kept(name, &schema)?;
    Ok(kept.map(|kept| (rollup.table, Alteration::AddRollup(kept))))
}
