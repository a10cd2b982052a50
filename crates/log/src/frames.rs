//! Reading the chain that a scan found.

use crate::file_run::FileBytes;
use crate::log_file;
use crate::scan::{ChainPart, Scan};
use crate::{Error, ErrorKind, Result};

/// A frame that survived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredFrame {
    /// Its commit number.
    pub commit: u64,
    /// Its kind: see [`esker_format::frame::kind`].
    pub kind: u16,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// The surviving frames of a [`Scan`], in commit order.
#[derive(Debug)]
pub struct Frames<'a> {
    scan: &'a Scan,
    parts: std::slice::Iter<'a, ChainPart>,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    file: FileBytes,
    part: ChainPart,
    commit: u64,
    offset: u64,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(scan: &'a Scan) -> Self {
        Self { scan, parts: scan.chain.iter(), current: None }
    }

    fn open(&self, part: ChainPart) -> Result<Current> {
        let path = log_file::path(&self.scan.dir, part.number);
        let bytes = log_file::read(self.scan.environment.files.as_ref(), &path)?;
        let file = FileBytes::new(&path, part.number, self.scan.database, bytes)?;
        Ok(Current { file, part, commit: part.first_commit, offset: part.start })
    }

    fn read(&mut self) -> Result<Option<RecoveredFrame>> {
        loop {
            if let Some(current) = &mut self.current
                && current.commit <= current.part.last_commit
            {
                return current.frame(self.scan).map(Some);
            }
            match self.parts.next() {
                Some(part) => self.current = Some(self.open(*part)?),
                None => return Ok(None),
            }
        }
    }
}

impl Current {
    fn frame(&mut self, scan: &Scan) -> Result<RecoveredFrame> {
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        let frame = self.file.frame(scan.database, offset);
        let frame = frame.filter(|f| f.header.commit == self.commit).ok_or_else(|| {
            let message = format!(
                "{}: offset {offset}: the frame of commit {} changed since the log was scanned",
                log_file::path(&scan.dir, self.part.number).display(),
                self.commit
            );
            Error::new(ErrorKind::Corrupt, message)
        })?;
        let recovered = RecoveredFrame {
            commit: self.commit,
            kind: frame.header.kind,
            payload: frame.payload.to_vec(),
        };
        self.offset += frame.bytes as u64;
        self.commit += 1;
        Ok(recovered)
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<RecoveredFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.read().transpose();
        if matches!(result, Some(Err(_)) | None) {
            self.current = None;
            self.parts = [].iter();
        }
        result
    }
}
