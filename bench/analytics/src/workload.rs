//! What is loaded, and what is asked of it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::answer::TOLERANCE;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 16 bits.
    Small,
    /// 32 bits.
    Int,
    /// 64 bits.
    Big,
    /// So many digits, two of them behind the point.
    Decimal(u8),
    /// 64 bits.
    Float,
    Date,
    Timestamp,
    Text,
}

/// A table: its file is `NAME.csv`.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    /// The fields of its key in Esker and SQLite; none where no question asks by it.
    pub key: &'static [&'static str],
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Esker,
    DuckDb,
    Sqlite,
}

impl Engine {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Esker => "Esker",
            Self::DuckDb => "DuckDB",
            Self::Sqlite => "SQLite",
        }
    }

    /// The name of a type.
    fn type_name(self, kind: Kind) -> String {
        let is_sqlite = self == Self::Sqlite;
        match kind {
            Kind::Small if !is_sqlite => "smallint".into(),
            Kind::Int if !is_sqlite => "integer".into(),
            Kind::Big if !is_sqlite => "bigint".into(),
            Kind::Small | Kind::Int | Kind::Big => "integer".into(),
            Kind::Decimal(digits) if !is_sqlite => format!("decimal({digits}, 2)"),
            Kind::Decimal(_) => "real".into(),
            Kind::Float if is_sqlite => "real".into(),
            Kind::Float => "double".into(),
            Kind::Date if !is_sqlite => "date".into(),
            Kind::Timestamp if !is_sqlite => "timestamp".into(),
            Kind::Date | Kind::Timestamp | Kind::Text => "text".into(),
        }
    }
}

impl Table {
    /// The statement that creates it.
    pub fn create(&self, engine: Engine) -> String {
        let column =
            |(name, kind): &(&str, Kind)| format!("{name} {} NOT NULL", engine.type_name(*kind));
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        let mut text = format!("CREATE TABLE {} ({}", self.name, columns.join(", "));
        // An index of DuckDB's would cost it memory, and no question reads it.
        if !self.key.is_empty() && engine != Engine::DuckDb {
            let _ = write!(text, ", PRIMARY KEY ({})", self.key.join(", "));
        }
        text + ")"
    }

    /// Where its rows are.
    pub fn file(&self, directory: &Path) -> PathBuf {
        directory.join(self.name).with_extension("csv")
    }
}

/// A question, as each engine reads it.
#[derive(Clone, Debug)]
pub struct Question {
    pub name: String,
    pub esker: String,
    pub duckdb: String,
    /// Where SQLite can say it.
    pub sqlite: Option<String>,
    /// Whether its `ORDER BY` leaves no choice.
    pub is_ordered: bool,
    /// The answer as the specification prints it: names, then a row a line, `|` between values.
    pub printed: Option<&'static str>,
    /// By how much its numbers may differ from what is printed, as a share of that.
    pub printed_tolerance: f64,
}

impl Question {
    /// A question in words that all three read.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            name: name.into(),
            esker: text.clone(),
            duckdb: text.clone(),
            sqlite: Some(text),
            is_ordered: true,
            printed: None,
            printed_tolerance: TOLERANCE,
        }
    }

    /// Its text for an engine.
    pub fn text(&self, engine: Engine) -> Option<&str> {
        match engine {
            Engine::Esker => Some(&self.esker),
            Engine::DuckDb => Some(&self.duckdb),
            Engine::Sqlite => self.sqlite.as_deref(),
        }
    }
}

/// A query that is planned and not run.
pub struct Planned {
    pub name: String,
    pub text: String,
    /// What planning may take, in milliseconds.
    pub ms_most: f64,
}

/// What a run is about.
pub struct Workload {
    /// The title of its table.
    pub title: String,
    pub tables: &'static [Table],
    pub questions: Vec<Question>,
    /// Queries of which only planning is timed, at its very end.
    pub planned: Vec<Planned>,
    /// Writes a file for each table.
    pub write: Box<dyn Fn(&Path) -> Result<()>>,
    /// By whose times Esker's are divided, and whose answers count.
    pub beside: Engine,
    /// What the geometric mean of the ratios is to be at the most.
    pub mean_most: Option<f64>,
    /// What no ratio is to be above.
    pub ratio_most: Option<f64>,
}
