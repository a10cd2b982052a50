//! The command line.

use std::path::PathBuf;

use crate::Result;
use crate::rows::Row;

pub(crate) const USAGE: &str = "\
usage: esker-bench engine|load|queries|invoice|slate|whitedb|txn|server|streams|rollups|ycsb
                   [--rows N] [--runs N] [--only NAME,NAME] [--dir DIR] [--flights FILE]
                   [--bytes N] [--plot FILE]

  --rows N        rows of the large tables; 10000000 unless given, 1000000 for load,
                  queries, invoice, txn and ycsb, 500000 for slate
  --runs N        how often each row is measured; 5 unless given
  --only NAMES    only these rows
  --dir DIR       where to make a directory for files, removed at the end; the system's
                  directory for temporary files unless given
  --bytes N       what load reads with little memory, in bytes; 10000000000 unless given
  --plot FILE     where to draw the medians, as SVG
  --flights FILE  the flights CSV, compressed by gzip; the one among the examples unless given";

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    /// The rows of the table to choose from.
    table: &'static [Row],
    /// Rows of the large tables, and how many there are in a run that counts.
    pub(crate) rows: u64,
    pub(crate) rows_wanted: u64,
    pub(crate) load_bytes: u64,
    pub(crate) runs: usize,
    pub(crate) only: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) flights: PathBuf,
    pub(crate) plot: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn parse(table: &'static [Row], rows_wanted: u64, words: &[String]) -> Result<Self> {
        let flights = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/flights/flights.csv.zst");
        let mut arguments = Self {
            table,
            rows: rows_wanted,
            rows_wanted,
            load_bytes: 10_000_000_000,
            runs: 5,
            only: Vec::new(),
            dir: std::env::temp_dir(),
            flights: PathBuf::from(flights),
            plot: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word}: a value is missing"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{word}: not a number"));
            match word.as_str() {
                "--rows" => arguments.rows = number()?.max(10_000),
                "--runs" => arguments.runs = usize::try_from(number()?)?.max(1),
                "--bytes" => arguments.load_bytes = number()?,
                "--only" => arguments.only = value.split(',').map(str::to_owned).collect(),
                "--dir" => arguments.dir = PathBuf::from(value),
                "--plot" => arguments.plot = Some(PathBuf::from(value)),
                "--flights" => arguments.flights = PathBuf::from(value),
                _ => return Err(format!("{word}: unknown\n{USAGE}").into()),
            }
        }
        for name in &arguments.only {
            if table.iter().all(|row| row.name != name) {
                let names: Vec<&str> = table.iter().map(|row| row.name).collect();
                return Err(format!("no row {name:?}; there are {}", names.join(", ")).into());
            }
        }
        Ok(arguments)
    }

    /// The rows to run, in the order of the table.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = &'static Row> {
        let wanted = |row: &&Row| self.only.is_empty() || self.only.iter().any(|n| n == row.name);
        self.table.iter().filter(wanted)
    }
}
