//! Passing over the chain that a scan found.
//!
//! A frame is lent from the bytes that the scan holds. Its checksum was computed when the file was
//! read, and nothing writes to that memory; so a pass costs a look at each header, and a pass over
//! the edits alone does not touch the rows between them.

use crate::Result;
use crate::scan::{ChainPart, Scan};

/// A frame that survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredFrame<'a> {
    /// Its commit number.
    pub commit: u64,
    /// Its kind: see [`esker_format::frame::kind`].
    pub kind: u16,
    /// Its payload, in the memory of the scan.
    pub payload: &'a [u8],
}

/// The surviving frames of a [`Scan`], in commit order.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    parts: std::slice::Iter<'a, ChainPart>,
    current: Option<Current<'a>>,
    /// Frames up to this commit are left out.
    after: u64,
    edits_only: bool,
}

/// The next frame of a part of the chain, and where it starts.
#[derive(Clone, Debug)]
struct Current<'a> {
    part: &'a ChainPart,
    commit: u64,
    offset: u64,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(scan: &'a Scan, after: u64, edits_only: bool) -> Self {
        Self { parts: scan.chain.iter(), current: None, after, edits_only }
    }

    /// No frames: a new database has none to carry over.
    pub(crate) fn none() -> Self {
        Self { parts: [].iter(), current: None, after: 0, edits_only: false }
    }

    fn read(&mut self) -> Result<Option<RecoveredFrame<'a>>> {
        loop {
            if let Some(current) = &mut self.current
                && (!self.edits_only || current.skip_to_edit())
                && current.commit <= current.part.last_commit
            {
                return current.frame().map(Some);
            }
            let after = self.after;
            let Some(part) = self.parts.find(|part| part.last_commit > after) else {
                return Ok(None);
            };
            self.current = Some(Current::behind(after, part)?);
        }
    }
}

impl<'a> Current<'a> {
    fn behind(commit: u64, part: &'a ChainPart) -> Result<Self> {
        if commit < part.first_commit {
            return Ok(Self { part, commit: part.first_commit, offset: part.start });
        }
        let first = part.file.behind(commit)?;
        Ok(Self { part, commit: first.commit, offset: first.offset })
    }

    /// Goes on to the next edit, maybe a void one behind the part; false when there is none.
    fn skip_to_edit(&mut self) -> bool {
        let edit = self.part.file.edit_from(self.commit);
        if let Some(edit) = edit {
            (self.commit, self.offset) = (edit.commit, edit.offset);
        }
        edit.is_some()
    }

    fn frame(&mut self) -> Result<RecoveredFrame<'a>> {
        let frame = self.part.file.verified(self.offset, self.commit)?;
        let (commit, kind) = (self.commit, frame.header.kind);
        self.offset += frame.bytes as u64;
        self.commit += 1;
        Ok(RecoveredFrame { commit, kind, payload: frame.payload })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<RecoveredFrame<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.read().transpose();
        if matches!(result, Some(Err(_)) | None) {
            self.current = None;
            self.parts = [].iter();
        }
        result
    }
}
