//! Esker, as a program that embeds it asks.

use std::path::Path;
use std::time::{Duration, Instant};

use esker::{Database, Options};
use esker_import::{ImportOptions, ImportReader};
use esker_sql::{Outcome, Sql};

use crate::answer::{Cell, Rows};
use crate::environment::cores;
use crate::workload::{Engine, Table};
use crate::{Failure, Result};

/// A database.
pub struct Ours(Database);

impl Ours {
    /// Opens a directory, with so many threads for a query.
    pub fn open(
        directory: &Path,
        threads: usize,
        memory_bytes: usize,
        seconds: f64,
    ) -> Result<Self> {
        let options = Options::new()
            .environment(cores(threads))
            .memory_limit(u64::try_from(memory_bytes)?)
            .query_memory_limit(memory_bytes)
            .statement_timeout(Duration::from_secs_f64(seconds));
        Ok(Self(options.open(directory)?))
    }

    /// Creates a table and loads its file.
    pub fn load(&self, table: &Table, directory: &Path) -> Result<()> {
        self.0.sql(&table.create(Engine::Esker), ())?;
        let into = self.0.table(table.name)?;
        let options = ImportOptions::default().schema((*into.schema()).clone());
        let reader = ImportReader::open(&cores(usize::MAX), &table.file(directory), options)?;
        let mut load = into.load()?;
        load.reserve_input(reader.memory_bytes())?;
        reader.read(|batch, _| load.push(batch).map_err(Failure::from))?;
        load.finish()?;
        Ok(())
    }

    /// Waits until what a load leaves behind is done, and closes it.
    pub fn settle(self) -> Result<()> {
        self.0.wait_idle()?;
        self.0.close()?;
        Ok(())
    }

    /// The rows of a query, and how long they took: its text is read, and its values are taken out
    /// of their columns, within the time.
    pub fn ask(&self, text: &str) -> Result<(f64, Rows)> {
        let start = Instant::now();
        let rows = self.0.sql(text, ())?.answer()?.to_rows();
        let seconds = start.elapsed().as_secs_f64();
        let rows = rows.iter().map(|row| row.iter().map(Cell::of_esker).collect()).collect();
        Ok((seconds, rows))
    }

    /// How long it takes to read and plan a query that is not run, and to say so.
    pub fn plan(&self, text: &str) -> Result<f64> {
        let start = Instant::now();
        self.0.sql(&format!("EXPLAIN {text}"), ())?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// What it does for a query, with the times of its steps.
    pub fn explain(&self, text: &str) -> Result<String> {
        match self.0.sql(&format!("EXPLAIN ANALYZE {text}"), ())? {
            Outcome::Plan(plan) => Ok(plan),
            other => Err(format!("no plan: {other:?}").into()),
        }
    }
}
