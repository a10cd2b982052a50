//! Columns some of whose values lie in value files.

use std::ops::Range;
use std::sync::Arc;

use esker_format::segment::{Encoding, Extent};
use esker_format::value_file::{HeapWord, REFERENCE_BYTES};
use esker_format::{Data, Field, ValueReference};

use super::Segment;
use super::plain::byte;
use super::scattered_heap::{ScatteredHeap, find};
use crate::value_file::ValueFile;
use crate::{Error, Result};

impl Segment {
    /// Opens the value files that the columns refer to.
    pub(super) fn open_value_files(&mut self) -> Result<()> {
        let Some(files) = &self.files else { return Ok(()) };
        let uses = self.footer.value_files.iter();
        let opened: Vec<_> =
            uses.map(|used| files.values().open(used.file)).collect::<Result<_>>()?;
        self.value_files = opened.into();
        let copies = self.blocks.as_ref().and_then(|blocks| blocks.copies().cloned());
        for (column, layout) in self.footer.columns.iter().enumerate() {
            if let Encoding::Scattered { heap, long, .. } = layout.encoding {
                let (mapping, copies) = (self.mapping.clone(), copies.clone());
                let files = Arc::clone(&self.value_files);
                let heap = ScatteredHeap { mapping, copies, heap, long, files };
                self.heaps.insert(column, heap);
            }
        }
        Ok(())
    }

    /// The value files that the columns refer to, by rising number.
    #[must_use]
    pub fn value_files(&self) -> &[Arc<ValueFile>] {
        &self.value_files
    }

    /// Bytes of a value file that the values of rows, dead ones included, take.
    #[must_use]
    pub fn bytes_in(&self, file: u64) -> u64 {
        self.footer.value_files.iter().filter(|used| used.file == file).map(|used| used.bytes).sum()
    }

    /// Bytes of value files that the values of rows, dead ones included, take.
    #[must_use]
    pub fn long_bytes(&self) -> u64 {
        self.footer.value_files.iter().map(|used| used.bytes).sum()
    }

    /// The column of a field, when some of its values are long.
    fn scattered_layout(&self, field: &Field) -> Option<(Extent, Extent)> {
        match self.layout(field)?.encoding {
            Encoding::Scattered { words, long, .. } => Some((words, long)),
            _ => None,
        }
    }

    /// Has some row a long value for a field?
    #[must_use]
    pub fn has_long(&self, field: &Field) -> bool {
        self.scattered_layout(field).is_some()
    }

    /// Are all columns with long values those of these fields?
    #[must_use]
    pub fn has_long_only_of(&self, fields: &[Field]) -> bool {
        let columns = self.footer.columns.iter();
        let mut long = columns.filter(|c| matches!(c.encoding, Encoding::Scattered { .. }));
        long.all(|column| fields.iter().any(|field| field.id == column.field))
    }

    /// Where the value of a row lies, when it is long.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn long_value(&self, field: &Field, row: usize) -> Result<Option<ValueReference>> {
        let Some((words, long)) = self.scattered_layout(field) else { return Ok(None) };
        let word = self.typed::<u64>(words, row..row + 1)?.first();
        match HeapWord::of(*word.ok_or_else(|| self.no_row(row))?) {
            HeapWord::Long { index } => self.reference(long, index).map(Some),
            HeapWord::Near { .. } => Ok(None),
        }
    }

    fn reference(&self, long: Extent, index: u64) -> Result<ValueReference> {
        let index = byte(index);
        let missing = || Error::corrupt(format!("segment {}: no reference {index}", self.id()));
        if index >= byte(long.len) / REFERENCE_BYTES {
            return Err(missing());
        }
        let words: &[[u64; 4]] = self.typed(long, index..index + 1)?;
        Ok(ValueReference::from_words(*words.first().ok_or_else(missing)?)?)
    }

    pub(super) fn scattered(
        &self,
        column: usize,
        (words, heap, long): (Extent, Extent, Extent),
        rows: Range<usize>,
    ) -> Result<Data<'_>> {
        let words: &[u64] = self.typed(words, rows)?;
        let (mut start, mut end) = (u64::MAX, 0);
        for word in words {
            match HeapWord::of(*word) {
                HeapWord::Near { len: 0, .. } => {}
                HeapWord::Near { position, len } => {
                    start = start.min(position);
                    end = end.max(position + len);
                }
                HeapWord::Long { index } => {
                    let reference = self.reference(long, index)?;
                    self.expect_value_file(reference)?.ensure(&reference)?;
                }
            }
        }
        if end > heap.len {
            let (id, len) = (self.id(), heap.len);
            return Err(Error::corrupt(format!("segment {id}: byte {end} of a heap of {len}")));
        }
        if start < end {
            self.bytes(heap, byte(start)..byte(end))?;
        }
        let missing = || Error::corrupt(format!("segment {}: no heap", self.id()));
        let heap = self.heaps.get(&column).ok_or_else(missing)?;
        Ok(Data::Scattered { references: words, heap })
    }

    fn expect_value_file(&self, reference: ValueReference) -> Result<&Arc<ValueFile>> {
        find(&self.value_files, reference.file).ok_or_else(|| {
            let id = self.id();
            Error::corrupt(format!("segment {id}: {reference}, a file that it does not name"))
        })
    }

    /// Reads and verifies every long value again.
    pub(super) fn verify_long(&self) -> Result<()> {
        for layout in &self.footer.columns {
            let Encoding::Scattered { long, .. } = layout.encoding else { continue };
            for index in 0..long.len / REFERENCE_BYTES as u64 {
                let reference = self.reference(long, index)?;
                self.expect_value_file(reference)?.verify(&reference)?;
            }
        }
        Ok(())
    }
}
