//! This side: Esker, twice, with rows that lie differently.

use esker::{DataType, Database, Options, Result, Value};
use esker_sql::Sql;

use crate::statement::Statement;

/// What a statement came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) changed: u64,
    pub(crate) types: Vec<DataType>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Databases that are to answer alike.
pub(crate) struct Eskers {
    /// Everything in open groups: no zone maps, no encodings.
    open: Database,
    /// Groups of a few rows, sealed and merged.
    sealed: Database,
}

impl Eskers {
    pub(crate) fn new() -> Result<Self> {
        let sealed = Options::new().group_limit(7, 1 << 10).small_group_limit(0).segment_limit(40);
        Ok(Self { open: Options::new().memory()?, sealed: sealed.memory()? })
    }

    /// Runs a statement on both.
    pub(crate) fn run(&self, statement: &Statement) -> [Result<Outcome>; 2] {
        [run(&self.open, statement), run(&self.sealed, statement)]
    }

    /// Has the rows of the second one sealed and merged.
    pub(crate) fn settle(&self) -> Result<()> {
        self.sealed.wait_idle()
    }
}

fn run(database: &Database, statement: &Statement) -> Result<Outcome> {
    let outcome = database.prepare(&statement.esker)?.run(&statement.parameters)?;
    let changed = outcome.rows_changed();
    let rows = outcome.into_rows();
    let types =
        rows.as_ref().map_or(Vec::new(), |r| r.columns.iter().map(|c| c.data_type).collect());
    Ok(Outcome { changed, types, rows: rows.map_or(Vec::new(), |rows| rows.to_rows()) })
}
