//! This side: Esker, twice, with rows that lie differently.

use esker::{ChangeOptions, DataType, Database, Error, Options, Result, Value};
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
    /// The tables, without a row.
    empty: Database,
}

impl Eskers {
    pub(crate) fn new() -> Result<Self> {
        let sealed = Options::new().group_limit(7, 1 << 10).small_group_limit(0).segment_limit(40);
        let empty = Options::new().memory()?;
        Ok(Self { open: Options::new().memory()?, sealed: sealed.memory()?, empty })
    }

    /// Runs a statement on both.
    pub(crate) fn run(&self, statement: &Statement) -> [Result<Outcome>; 2] {
        [run(&self.open, statement), run(&self.sealed, statement)]
    }

    /// Creates a table on all.
    pub(crate) fn create(&self, text: &str) -> Result<()> {
        [&self.open, &self.sealed, &self.empty].iter().try_for_each(|db| db.sql(text).map(drop))
    }

    /// Whether a statement fails though there is no row.
    pub(crate) fn fails_without_rows(&self, statement: &Statement) -> bool {
        let options = ChangeOptions {
            dry_run: true,
            parameters: statement.parameters.clone().into(),
            ..ChangeOptions::default()
        };
        let parsed = esker_sql::parse_statement(&statement.esker).map_err(Error::from);
        parsed.and_then(|parsed| esker_sql::run(&self.empty, &parsed, &options)).is_err()
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
