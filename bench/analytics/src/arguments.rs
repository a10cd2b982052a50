//! The command line.

use std::path::PathBuf;

use crate::Result;
use crate::workload::Engine;

const USAGE: &str = "\
usage: cargo xtask bench tpch [--scale 0.1,1] [OPTION…]
       cargo xtask bench hits [--rows N] [OPTION…]
       cargo xtask bench windows [--rows N] [OPTION…]
       cargo xtask bench joins [OPTION…]

  --scale NUMBERS    scale factors of TPC-H, one after another; 0.1,1 unless given
  --rows N           rows of hits or windows; 10000000 unless given
  --memory BYTES     what each engine may take, in bytes; 1 GiB unless given
  --threads NUMBERS  threads of Esker and of DuckDB, one after another: 1, 2 or 1,2; 1 unless given
  --runs N           how often each question is timed; 5 unless given
  --only NAMES       only these questions
  --beside NAMES     who is asked beside Esker: duckdb, sqlite or both; SQLite is for joins and for
                     TPC-H up to scale factor 1 unless given
  --seconds N        how long a question may take; 120 unless given
  --dir DIR          where to make a directory for files, removed at the end
  --plot FILE        where to draw the ratios to DuckDB, as SVG
  --explain          shows what Esker does for each question, with times, and measures nothing";

/// What to load and to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Tpch,
    Hits,
    Windows,
    Joins,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Arguments {
    pub which: Which,
    pub scales: Vec<f64>,
    pub rows: u64,
    pub memory_bytes: usize,
    pub threads: Vec<usize>,
    pub runs: usize,
    pub only: Vec<String>,
    pub beside: Option<Vec<Engine>>,
    pub seconds: f64,
    pub dir: PathBuf,
    pub plot: Option<PathBuf>,
    pub explain: bool,
}

impl Arguments {
    /// Reads them.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let which = match words.next().as_deref() {
            Some("tpch") => Which::Tpch,
            Some("hits") => Which::Hits,
            Some("windows") => Which::Windows,
            Some("joins") => Which::Joins,
            _ => return Err(USAGE.into()),
        };
        let mut this = Self {
            which,
            scales: vec![0.1, 1.0],
            rows: 10_000_000,
            memory_bytes: 1 << 30,
            threads: vec![1],
            runs: 5,
            only: Vec::new(),
            beside: None,
            seconds: 120.0,
            dir: std::env::temp_dir(),
            plot: None,
            explain: false,
        };
        while let Some(word) = words.next() {
            if word == "--explain" {
                this.explain = true;
                continue;
            }
            let value =
                words.next().ok_or_else(|| format!("{word}: a value is missing\n{USAGE}"))?;
            this.set(&word, &value).map_err(|e| format!("{word} {value}: {e}"))?;
        }
        Ok(this)
    }

    fn set(&mut self, word: &str, value: &str) -> Result<()> {
        match word {
            "--scale" => self.scales = numbers(value)?,
            "--rows" => self.rows = value.parse()?,
            "--memory" => self.memory_bytes = value.parse()?,
            "--threads" => self.threads = numbers(value)?,
            "--runs" => self.runs = value.parse::<usize>()?.max(1),
            "--only" => self.only = value.split(',').map(str::to_owned).collect(),
            "--beside" => self.beside = Some(value.split(',').map(engine).collect::<Result<_>>()?),
            "--seconds" => self.seconds = value.parse()?,
            "--dir" => self.dir = PathBuf::from(value),
            "--plot" => self.plot = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown\n{USAGE}").into()),
        }
        let is_right = self.scales.iter().all(|scale| *scale > 0.0)
            && self.threads.iter().all(|threads| *threads > 0)
            && self.rows > 0;
        if is_right { Ok(()) } else { Err("expected a number above 0".into()) }
    }

    /// Who is asked beside Esker where it is not given: SQLite takes minutes for many rows.
    pub fn beside(&self, scale: f64) -> Vec<Engine> {
        match (&self.beside, self.which) {
            (Some(beside), _) => beside.clone(),
            (None, Which::Tpch) if scale <= 1.0 => vec![Engine::DuckDb, Engine::Sqlite],
            (None, Which::Joins) => vec![Engine::Sqlite],
            (None, _) => vec![Engine::DuckDb],
        }
    }
}

fn numbers<T: std::str::FromStr>(text: &str) -> Result<Vec<T>>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.split(',').map(|number| Ok(number.parse()?)).collect()
}

fn engine(name: &str) -> Result<Engine> {
    match name {
        "duckdb" => Ok(Engine::DuckDb),
        "sqlite" => Ok(Engine::Sqlite),
        _ => Err("expected duckdb or sqlite".into()),
    }
}
