//! First touch of a block: read it, verify its checksum, and only then use the mapping, or the copy
//! that was verified.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker_format::checksum::{Place, checksum};
use esker_format::segment::BLOCK_BYTES;
use esker_log::sabotage::Bug;
use esker_vfs::sync::AtomicU64;
use esker_vfs::{BlockCopies, File};

use crate::{Error, Result};

/// The tag of segment files in checksums.
const FILE_TAG: u64 = 3 << 56;

/// The place of a block, the footer (block [`u64::MAX`] − 1) or the trailer (block [`u64::MAX`]).
#[must_use]
pub fn block_place(database: u128, segment: u64, block: u64) -> Place {
    Place { database, file: FILE_TAG | segment, position: block }
}

/// Where the footer stands, for its checksum.
pub const FOOTER_BLOCK: u64 = u64::MAX - 1;
/// Where the trailer stands, for its checksum.
pub const TRAILER_BLOCK: u64 = u64::MAX;

/// Which blocks of a file have been verified.
pub struct Blocks {
    file: Arc<dyn File>,
    path: PathBuf,
    database: u128,
    segment: u64,
    data_end: u64,
    checksums: Vec<u64>,
    verified: Vec<AtomicU64>,
    /// How many have not been: readers of values need not look at the bits once none is left.
    left: AtomicU64,
    copies: Option<Arc<BlockCopies>>,
}

impl Blocks {
    /// No block verified yet.
    #[must_use]
    pub fn new(
        file: Arc<dyn File>,
        path: PathBuf,
        database: u128,
        segment: u64,
        data_end: u64,
        checksums: Vec<u64>,
    ) -> Self {
        let words = checksums.len().div_ceil(64);
        let verified = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        let left = AtomicU64::new(checksums.len() as u64);
        Self { file, path, database, segment, data_end, checksums, verified, left, copies: None }
    }

    /// The same, keeping a copy of each block that is verified at its first touch.
    ///
    /// # Errors
    /// `Corrupt` when there are more bytes than memory can hold.
    pub fn with_copies(mut self) -> Result<Self> {
        let len = usize::try_from(self.data_end).map_err(|_| {
            let (path, bytes) = (self.path.display(), self.data_end);
            Error::corrupt(format!("{path}: {bytes} bytes, more than memory can hold"))
        })?;
        self.copies = Some(Arc::new(BlockCopies::new(len, BLOCK_BYTES)));
        Ok(self)
    }

    /// The copies of verified blocks, when they are to be read.
    #[inline]
    pub fn copies(&self) -> Option<&Arc<BlockCopies>> {
        self.copies.as_ref()
    }

    /// Verifies the blocks under the bytes from `start` up to `end`, if that has not been done.
    ///
    /// # Errors
    /// `Corrupt` naming file and offset, or what the machine says.
    #[inline]
    pub fn ensure(&self, start: u64, end: u64) -> Result<()> {
        if start >= end || self.are_all_verified() {
            return Ok(());
        }
        let (first, last) = (start / BLOCK_BYTES as u64, (end - 1) / BLOCK_BYTES as u64);
        if first == last && self.is_verified(first) {
            return Ok(());
        }
        self.ensure_all(first, last)
    }

    fn ensure_all(&self, first: u64, last: u64) -> Result<()> {
        for block in first..=last {
            if !self.is_verified(block) {
                self.touch(block)?;
            }
        }
        Ok(())
    }

    /// True when every block has been verified.
    #[inline]
    pub fn are_all_verified(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// True when the blocks under the bytes from `first` to `last` have been verified.
    #[inline]
    pub fn are_verified(&self, first: u64, last: u64) -> bool {
        let (first, last) = (first / BLOCK_BYTES as u64, last / BLOCK_BYTES as u64);
        self.are_all_verified()
            || self.is_verified(first) && (first + 1..=last).all(|block| self.is_verified(block))
    }

    #[inline]
    fn is_verified(&self, block: u64) -> bool {
        // default: a number beyond all words
        let index = usize::try_from(block / 64).unwrap_or(usize::MAX);
        // default: no block behind the end is verified, and reading one fails
        let word = self.verified.get(index).map_or(0, |w| w.load(Ordering::Acquire));
        word >> (block % 64) & 1 == 1
    }

    /// Reads and verifies a block, and keeps what it read when copies are read.
    fn touch(&self, block: u64) -> Result<()> {
        let bytes = self.verify(block)?;
        // default: a number beyond all blocks, which `verify` has refused
        let index = usize::try_from(block).unwrap_or(usize::MAX);
        if self.copies.as_ref().is_some_and(|copies| !copies.fill(index, &bytes)) {
            let path = self.path.display();
            return Err(Error::corrupt(format!("{path}: no block {block}")));
        }
        if let Some(word) = self.verified.get(index / 64) {
            let bit = 1 << (index % 64);
            // Each block is counted once; a reader that sees none left sees their copies.
            if word.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
                self.left.fetch_sub(1, Ordering::AcqRel);
            }
        }
        Ok(())
    }

    /// Reads and verifies a block, whether or not that has been done.
    fn verify(&self, block: u64) -> Result<Vec<u8>> {
        let offset = block * BLOCK_BYTES as u64;
        let rest = self.data_end.saturating_sub(offset);
        // default: a limit, and no block is longer
        let len = usize::try_from(rest).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, offset)?;
        let index = usize::try_from(block).ok();
        let expected = index.and_then(|index| self.checksums.get(index)).copied();
        if expected != Some(self.checksum(block, &bytes)) && !self.fits_anywhere(&bytes) {
            let path = self.path.display();
            return Err(Error::corrupt(format!(
                "{path}: the {len} bytes at offset {offset} do not fit their checksum"
            )));
        }
        Ok(bytes)
    }

    fn checksum(&self, block: u64, bytes: &[u8]) -> u64 {
        checksum(block_place(self.database, self.segment, block), bytes)
    }

    /// A bug to plant: a block is taken for whole wherever in the file it belongs.
    fn fits_anywhere(&self, bytes: &[u8]) -> bool {
        Bug::ChecksumNotBoundToPosition.is_planted()
            && (0..).zip(&self.checksums).any(|(block, sum)| self.checksum(block, bytes) == *sum)
    }

    /// Verifies every block again.
    ///
    /// # Errors
    /// As for [`Blocks::ensure`]; the first damaged block is named.
    pub fn verify_all(&self) -> Result<()> {
        let check = |block| match self.copies {
            None => self.touch(block),
            // Copies are made of what is read for its contents only.
            Some(_) => self.verify(block).map(drop),
        };
        (0..self.checksums.len() as u64).try_for_each(check)
    }
}
