//! Which line of which file a row stands on, looked up when something is wrong with it afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use crate::comments::LinesGone;

/// The most rows whose lines are kept one by one.
const LINES_MAX: usize = 16 << 20;

/// The places of the rows that an [`ImportReader`](crate::ImportReader) has handed over.
///
/// Where every row has a line of its own this takes a few bytes for each batch, else four for each
/// row, up to 64 MiB; the places of rows beyond are not known.
#[derive(Clone, Debug, Default)]
pub struct Places(Arc<Mutex<Parts>>);

#[derive(Debug, Default)]
struct Parts {
    parts: Vec<Part>,
    rows: u64,
    lines_kept: usize,
}

#[derive(Debug)]
struct Part {
    first_row: u64,
    file: Arc<str>,
    gone: LinesGone,
    first_line: u64,
    lines: Lines,
}

/// The lines before each row of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// As many as rows.
    Rows,
    Each(Vec<u32>),
    Unknown,
}

impl Places {
    /// The file and the line of a row, both counted as errors count them, rows from 0.
    #[must_use]
    pub fn find(&self, row: u64) -> Option<(String, u64)> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = parts.parts.partition_point(|part| part.first_row <= row);
        let part = parts.parts.get(after.checked_sub(1)?).filter(|_| row < parts.rows)?;
        let position = row - part.first_row;
        let before = match &part.lines {
            Lines::Rows => position,
            Lines::Each(lines) => u64::from(*lines.get(usize::try_from(position).ok()?)?),
            Lines::Unknown => return None,
        };
        Some((part.file.to_string(), part.gone.in_file(part.first_line + before + 1)))
    }

    /// Adds the rows of a batch, which has `first_line` lines before it in its file.
    /// Forgets all rows so far: nothing is kept of a file of any length.
    pub fn forget(&self) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.parts.clear();
        parts.lines_kept = 0;
    }

    pub(crate) fn add(
        &self,
        (file, gone): (&Arc<str>, &LinesGone),
        first_line: u64,
        rows: u64,
        lines: Lines,
    ) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match &lines {
            Lines::Each(lines) => lines.len(),
            _ => 0,
        };
        let lines = if parts.lines_kept + kept > LINES_MAX { Lines::Unknown } else { lines };
        parts.lines_kept += if lines == Lines::Unknown { 0 } else { kept };
        let (first_row, file, gone) = (parts.rows, Arc::clone(file), gone.clone());
        parts.parts.push(Part { first_row, file, gone, first_line, lines });
        parts.rows += rows;
    }
}

impl Lines {
    /// Those before rows that start at some positions of `bytes`.
    pub(crate) fn of(bytes: &[u8], starts: &[u32], lines: u64) -> Self {
        // A row takes a line at least, but for the last, which may lack its end.
        if starts.len() as u64 >= lines {
            return Self::Rows;
        }
        let (mut at, mut count) = (0, 0);
        let each = starts.iter().map(|start| {
            let start = *start as usize;
            let part = bytes.get(at..start).unwrap_or_default();
            count += u32::try_from(memchr::memchr_iter(b'\n', part).count()).unwrap_or(0);
            at = start.max(at);
            count
        });
        Self::Each(each.collect())
    }
}
