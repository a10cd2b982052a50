//! What is asked for on the command line.

use std::path::PathBuf;

use crate::data::{SMALL, Sizes, USUAL};
use crate::phases::PHASES;
use crate::store::Result;

/// The arguments.
pub struct Arguments {
    /// Entries that are loaded.
    pub records: usize,
    /// How often everything is done.
    pub runs: usize,
    /// Where databases are made: a directory on the disk to be measured.
    pub dir: PathBuf,
    /// The stores; all when empty.
    pub only: Vec<String>,
    /// The phases after the load; all when empty.
    pub phases: Vec<String>,
    /// How long keys and values are.
    pub sizes: Sizes,
    /// Where a chart goes.
    pub plot: Option<PathBuf>,
}

impl Arguments {
    /// Reads arguments.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut parsed = Self {
            records: 5_000_000,
            runs: 5,
            dir: std::env::temp_dir(),
            only: Vec::new(),
            phases: Vec::new(),
            sizes: USUAL,
            plot: None,
        };
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            if name == "--small" {
                parsed.sizes = SMALL;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name}: a value is missing"))?;
            match name.as_str() {
                "--records" => parsed.records = value.parse::<usize>()?.max(10_000),
                "--runs" => parsed.runs = value.parse::<usize>()?.max(1),
                "--dir" => parsed.dir = PathBuf::from(value),
                "--only" => parsed.only = value.split(',').map(str::to_owned).collect(),
                "--phases" => parsed.phases = value.split(',').map(str::to_owned).collect(),
                "--plot" => parsed.plot = Some(PathBuf::from(value)),
                other => {
                    let known = "--records, --runs, --dir, --only, --phases, --plot, --small";
                    return Err(format!("unknown argument {other:?}; expected {known}").into());
                }
            }
        }
        if let Some(name) = parsed.phases.iter().find(|name| !PHASES.contains(&name.as_str())) {
            return Err(format!("unknown phase {name:?}; expected {}", PHASES.join(", ")).into());
        }
        Ok(parsed)
    }

    /// True when a phase is to be done.
    pub fn wants_phase(&self, phase: &str) -> bool {
        self.phases.is_empty() || self.phases.iter().any(|name| name == phase)
    }

    /// True when a store is to be measured.
    pub fn wants(&self, store: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == store)
    }
}
