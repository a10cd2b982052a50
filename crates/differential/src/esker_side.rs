//! This side: Esker, several times, with rows that lie differently, with and without indexes.

use esker::{
    ChangeOptions, DataType, Database, Error, IndexUse, NullsOrder, Options, Result, Semantics,
    Value,
};
use esker_sql::Sql;

use crate::statement::Statement;
use crate::table::Table;

/// What a statement came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) changed: u64,
    pub(crate) types: Vec<DataType>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// Databases that are to answer alike.
pub(crate) struct Eskers {
    /// With what each is called.
    databases: Vec<(&'static str, Database)>,
    /// The tables, without a row.
    empty: Database,
}

impl Eskers {
    /// Where NULLs go in orders that do not say it is as given.
    ///
    /// * `open`: everything in open groups, so no zone maps, no encodings, no indexes;
    /// * `sealed`: groups of a few rows, sealed and merged;
    /// * `indexed`: the same, with indexes that are read wherever they say anything;
    /// * `merged`: one segment, now and then, with indexes that are read where that is cheaper.
    pub(crate) fn new(nulls_order: NullsOrder) -> Result<Self> {
        let semantics = Semantics { nulls_order: Some(nulls_order), ..Semantics::default() };
        let open = || Options::new().semantics(semantics);
        let sealed = || open().group_limit(7, 1 << 10).small_group_limit(0).segment_limit(40);
        let databases = vec![
            ("open", open().memory()?),
            ("sealed", sealed().memory()?),
            ("indexed", sealed().index_use(IndexUse::Always).memory()?),
            ("merged", sealed().segment_limit(1 << 20).memory()?),
        ];
        Ok(Self { databases, empty: open().memory()? })
    }

    /// Runs a statement on all.
    pub(crate) fn run(&self, statement: &Statement) -> Vec<(&'static str, Result<Outcome>)> {
        self.databases.iter().map(|(name, db)| (*name, run(db, statement))).collect()
    }

    /// Creates a table on all, with its indexes where there are some.
    pub(crate) fn create(&self, table: &Table) -> Result<()> {
        let text = table.create(true);
        self.empty.sql(&text, ())?;
        for (name, db) in &self.databases {
            db.sql(&text, ())?;
            if matches!(*name, "indexed" | "merged") {
                table.indexes.iter().try_for_each(|index| db.sql(index, ()).map(drop))?;
            }
        }
        Ok(())
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

    /// Whether the times of the steps of a query that reads several tables, or queries, add up.
    pub(crate) fn times_add_up(&self, statement: &Statement) -> std::result::Result<(), String> {
        let Ok(esker_sql::Statement::Query(query)) = esker_sql::parse_statement(&statement.esker)
        else {
            return Ok(());
        };
        let Some((_, database)) = self.databases.first().filter(|_| !query.is_plain()) else {
            return Ok(());
        };
        let parameters = statement.parameters.clone().into();
        let options = esker::QueryOptions { parameters, ..esker::QueryOptions::default() };
        let explained = database.explain_with(&query, &options);
        explained.map_or(Ok(()), |explained| crate::times::add_up(&explained))
    }

    /// Has rows sealed and merged where they are to be.
    pub(crate) fn settle(&self) -> Result<()> {
        for (name, db) in &self.databases {
            match *name {
                "open" => {}
                "merged" => drop(db.compact(false, &mut |_, _| {})?),
                _ => db.wait_idle()?,
            }
        }
        Ok(())
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
