//! Where rows that do not fit go.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use esker_import::{FileWriter, Reject};
use esker_vfs::{Environment, OpenMode};

use crate::failure::{Failure, Result};
use crate::output::csv_line;

/// The file of rejected rows, if one is requested.
pub(super) struct Rejects {
    path: Option<PathBuf>,
    file: Option<BufWriter<FileWriter>>,
    environment: Environment,
    /// What is wrong with the first.
    first: Option<String>,
}

impl Rejects {
    /// Nothing is written before the first row.
    pub(super) fn new(environment: &Environment, path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path
            && environment.files.exists(path)?
        {
            let path = path.display();
            return Err(Failure::usage(format!("--rejects: {path} exists; give another name")));
        }
        let (path, environment) = (path.map(Path::to_owned), environment.clone());
        Ok(Self { path, file: None, environment, first: None })
    }

    /// What is wrong with the first row, if there is one.
    pub(super) fn first(&self) -> Option<String> {
        self.first.clone()
    }

    pub(super) fn add(&mut self, reject: &Reject) -> Result<()> {
        self.first.get_or_insert_with(|| reject.error.to_string());
        let Some(path) = &self.path else { return Ok(()) };
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = self.environment.files.open(path, OpenMode::CreateNew)?;
                let file = none.insert(BufWriter::new(FileWriter::new(file)));
                writeln!(file, "file,line,reason,row")?;
                file
            }
        };
        let error = &reject.error;
        let line = error.line().unwrap_or_default().to_string();
        let (name, reason) = (error.file().unwrap_or_default(), error.detail());
        file.write_all(&csv_line([name, &line, &reason, &reject.text]))?;
        Ok(())
    }

    /// Takes back what was written, for a load that begins again.
    pub(super) fn discard(self) -> Result<()> {
        match (self.file, self.path) {
            (Some(_), Some(path)) => Ok(self.environment.files.remove(&path)?),
            _ => Ok(()),
        }
    }

    /// Where the rows are, once all are there; `None` when there are none.
    pub(super) fn finish(self) -> Result<Option<PathBuf>> {
        let Some(mut file) = self.file else { return Ok(None) };
        file.flush()?;
        Ok(self.path)
    }
}
