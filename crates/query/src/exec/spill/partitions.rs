//! Records by the hash of their keys, in files: those of equal keys lie in one file, in the order
//! in which they came. A file that is still too large is split again by other bits of the hash.
//!
//! ```text
//! record   length of the key u32 | key | anything
//! ```

use crate::temporary_file::{SpillReader, SpillWriter, TemporaryFiles};
use crate::{Options, Result, ZONE_ROWS};

/// How many files records are spread over at a time.
pub(super) const FILES: usize = 1 << FILES_BITS;
const FILES_BITS: u32 = 5;
/// How often a file is split.
pub(crate) const LEVELS_MAX: u32 = 8;

/// Files that are written.
pub(crate) struct Partitions {
    files: Vec<SpillWriter>,
    level: u32,
}

impl Partitions {
    /// Files by the bits of a level, from 0.
    ///
    /// # Errors
    /// `NoSpace` or `Io`; the same below.
    pub(crate) fn new(files: &TemporaryFiles, level: u32) -> Result<Self> {
        let files = (0..FILES).map(|_| files.create()).collect::<Result<_>>()?;
        Ok(Self { files, level })
    }

    /// Adds a record.
    pub(crate) fn push(&mut self, record: &[u8]) -> Result<()> {
        match self.files.get_mut(file_of(hash(key_of(record)), self.level)) {
            Some(file) => file.push(record),
            None => Ok(()),
        }
    }

    /// Adds records, those of each file together, each behind its length.
    pub(crate) fn push_shares(&mut self, shares: &[Vec<u8>]) -> Result<()> {
        let mut each = self.files.iter_mut().zip(shares);
        each.try_for_each(|(file, records)| file.push_records(records))
    }

    /// All files, those without a record included: equal keys are in files of one number.
    pub(crate) fn finish(self) -> Result<Vec<SpillReader>> {
        self.files.into_iter().map(SpillWriter::finish).collect()
    }
}

/// The records of a file as files of the next level.
///
/// # Errors
/// What reading and writing fails with, and when the query is to end.
pub(crate) fn split(
    mut file: SpillReader,
    level: u32,
    options: &Options,
    files: &TemporaryFiles,
) -> Result<Vec<SpillReader>> {
    let mut parts = Partitions::new(files, level)?;
    let mut count = 0usize;
    while let Some(record) = file.next()? {
        if count.is_multiple_of(ZONE_ROWS) {
            options.expect_time_left()?;
        }
        count += 1;
        parts.push(record)?;
    }
    parts.finish()
}

/// The beginning of a record: its key, which `write` appends.
pub(crate) fn record_of(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut record = vec![0; 4];
    write(&mut record);
    // default: records are below 4 GiB
    let len = u32::try_from(record.len() - 4).unwrap_or(u32::MAX);
    record.splice(..4, len.to_le_bytes());
    record
}

/// The key of a record.
pub(crate) fn key_of(record: &[u8]) -> &[u8] {
    let Some((len, rest)) = record.split_first_chunk::<4>() else { return &[] };
    // default: a record that was written here, whose length is checked
    rest.get(..u32::from_le_bytes(*len) as usize).unwrap_or_default()
}

/// What follows the key of a record.
pub(crate) fn rest_of(record: &[u8]) -> &[u8] {
    // default: a record that was written here, whose length is checked
    record.get(4 + key_of(record).len()..).unwrap_or_default()
}

/// Which file of a level has the records of a hash.
#[allow(clippy::cast_possible_truncation, reason = "less than the number of files")]
pub(super) fn file_of(hash: u64, level: u32) -> usize {
    (hash >> (level * FILES_BITS) & (FILES as u64 - 1)) as usize
}

/// FNV-1a, mixed once more so that every bit tells keys apart.
pub(super) fn hash(key: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325u64;
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = key.iter().fold(start, fold);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use esker_vfs::Environment;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn splitting_ends_with_the_query() {
        let environment = Environment::os();
        let files = TemporaryFiles::new(&environment, std::env::temp_dir());
        let options = Options::new(&environment);
        let mut file = files.create().unwrap();
        for i in 0..100u32 {
            file.push(&record_of(|key| key.extend(i.to_le_bytes()))).unwrap();
        }
        let file = file.finish().unwrap();
        options.inputs.limits.cancel.store(true, Ordering::Relaxed);
        let error = split(file, 1, &options, &files).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    }
}
