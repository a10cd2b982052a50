//! What the workloads share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use esker::{Database, Options, Schema, Table, Value};
use esker_import::{ImportOptions, ImportReader};
use esker_vfs::Environment;

use crate::Result;
use crate::arguments::Arguments;
use crate::data::{Texts, key, mix, write_csv};
use crate::machine::Machine;
use crate::queries::Users;
use crate::workloads::scan::Flat;

/// The name of the large table.
pub(crate) const TABLE: &str = "kv";

/// The directory, the limits, and databases that several rows read.
pub(crate) struct Bench {
    pub(crate) machine: Machine,
    pub(crate) rows: u64,
    pub(crate) load_bytes: u64,
    pub(crate) flights: PathBuf,
    pub(crate) texts: Texts,
    pub(crate) flat: Option<Flat>,
    pub(crate) users: Option<Users>,
    /// Databases that several rows ask, by their names.
    pub(crate) kept: BTreeMap<&'static str, Database>,
    dir: PathBuf,
    csv: Option<PathBuf>,
    big: Option<Big>,
}

/// The large table: keys of 16 bytes, texts of 100.
struct Big {
    dir: PathBuf,
    /// Rows of the CSV, then rows that were inserted one by one.
    rows: u64,
    database: Option<Database>,
}

impl Bench {
    pub(crate) fn new(arguments: &Arguments, machine: Machine) -> Result<Self> {
        let dir = arguments.dir.join(format!("esker-bench-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        Ok(Self {
            machine,
            rows: arguments.rows,
            load_bytes: arguments.load_bytes,
            flights: arguments.flights.clone(),
            texts: Texts::new(),
            flat: None,
            users: None,
            kept: BTreeMap::new(),
            dir,
            csv: None,
            big: None,
        })
    }

    /// Removes all files.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.close_big()?;
        self.flat = None;
        self.users = None;
        self.kept.clear();
        std::fs::remove_dir_all(&self.dir)?;
        Ok(())
    }

    /// A place for a file or directory; nothing is there.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        if path.is_dir() {
            std::fs::remove_dir_all(&path)?;
        }
        Ok(path)
    }

    /// The large table as CSV, made when first asked for.
    pub(crate) fn csv(&mut self) -> Result<PathBuf> {
        if let Some(path) = &self.csv {
            return Ok(path.clone());
        }
        let path = self.dir.join("kv.csv");
        write_csv(&path, self.rows)?;
        // Writing it back must not disturb what is measured.
        std::fs::File::open(&path)?.sync_all()?;
        self.csv = Some(path.clone());
        Ok(path)
    }

    /// Loads the large table anew; how long that took until it was durable, in seconds.
    pub(crate) fn load_big(&mut self) -> Result<f64> {
        let csv = self.csv()?;
        self.close_big()?;
        self.big = None;
        let dir = self.place("big")?;
        let start = Instant::now();
        let (database, rows) = load(&dir, &csv)?;
        let elapsed = start.elapsed().as_secs_f64();
        if rows != self.rows {
            return Err(format!("loaded {rows} rows, not {}", self.rows).into());
        }
        self.big = Some(Big { dir, rows, database: Some(database) });
        Ok(elapsed)
    }

    /// The large table, open; loaded when there is none.
    pub(crate) fn big(&mut self) -> Result<(Database, Table)> {
        if self.big.is_none() {
            self.load_big()?;
            if let Some(database) = self.big.as_ref().and_then(|big| big.database.as_ref()) {
                database.wait_idle()?;
            }
        }
        let big = self.big.as_mut().ok_or("no large table")?;
        let database = match big.database.take() {
            Some(database) => database,
            None => Options::new().create(false).open(&big.dir)?,
        };
        big.database = Some(database.clone());
        let table = database.table(TABLE)?;
        Ok((database, table))
    }

    /// Closes the large table; where it is and how many rows it has.
    pub(crate) fn closed_big(&mut self) -> Result<(PathBuf, u64)> {
        if self.big.is_none() {
            self.big()?;
        }
        self.close_big()?;
        let big = self.big.as_ref().ok_or("no large table")?;
        Ok((big.dir.clone(), big.rows))
    }

    /// Rows have been inserted into the large table.
    pub(crate) fn big_has_grown(&mut self, rows: u64) {
        if let Some(big) = &mut self.big {
            big.rows = rows;
        }
    }

    fn close_big(&mut self) -> Result<()> {
        if let Some(database) = self.big.as_mut().and_then(|big| big.database.take()) {
            database.close()?;
        }
        Ok(())
    }
}

/// Loads a CSV file into a new table as `esker load` does.
pub(crate) fn load(dir: &Path, csv: &Path) -> Result<(Database, u64)> {
    load_with(dir, csv, ImportOptions::default().key(["key"]))
}

pub(crate) fn load_with(dir: &Path, csv: &Path, options: ImportOptions) -> Result<(Database, u64)> {
    let environment = Environment::os();
    let reader = ImportReader::open(&environment, csv, options)?;
    let database = Options::new().open(dir)?;
    let table = database.create_table(TABLE, reader.schema().clone())?;
    let mut load = table.load()?;
    load.reserve_input(reader.memory_bytes())?;
    reader.read(|batch, _| load.push(batch).map_err(boxed))?;
    let report = load.finish()?;
    Ok((database, report.rows))
}

pub(crate) fn boxed(
    error: impl std::error::Error + Send + Sync + 'static,
) -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(error)
}

/// Checks the number of rows and a thousand of them.
pub(crate) fn check_big(table: &Table, texts: &Texts, rows: u64) -> Result<()> {
    let count = table.count()?;
    if count != rows {
        return Err(format!("{count} rows, not {rows}").into());
    }
    for probe in 0..1_000 {
        let row = mix(probe) % rows;
        check_row(table, texts, row)?;
    }
    let absent = key(rows);
    match table.get(&[Value::Text(absent.clone())])? {
        None => Ok(()),
        Some(_) => Err(format!("key {absent} is found and was never added").into()),
    }
}

/// Checks one row of the large table.
pub(crate) fn check_row(table: &Table, texts: &Texts, row: u64) -> Result<()> {
    let key = key(row);
    let found = table.get(&[Value::Text(key.clone())])?;
    match found.as_ref().map(|found| found.values()) {
        Some([Value::Text(k), Value::Text(v)]) if *k == key && v == texts.text(row) => Ok(()),
        other => Err(format!("key {key}: found {other:?}").into()),
    }
}

/// A schema of fields that must not be NULL.
pub(crate) fn schema(fields: &[(&str, esker::DataType)], key: &[&str]) -> Result<Schema> {
    let builder = fields.iter().fold(Schema::builder(), |b, (name, t)| b.field(*name, *t));
    let builder = if key.is_empty() { builder } else { builder.primary_key(key.iter().copied()) };
    Ok(builder.build()?)
}

/// How many segments a table has.
pub(crate) fn segments(database: &Database, table: &str) -> usize {
    let info = database.info();
    info.tables.iter().find(|t| t.name == table).map_or(0, |t| t.segments)
}
