//! The reader and writer that every stored structure is built on: little-endian numbers of fixed
//! width, counts as LEB128, and byte strings after their count.

use crate::{Error, Result};

/// Appends stored forms to a buffer.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on behind `bytes`.
    #[must_use]
    pub fn after(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The bytes written so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when nothing has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Gives up the buffer.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Forgets what was written and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// One byte.
    pub fn u8(&mut self, v: u8) {
        self.bytes.push(v);
    }

    /// Two bytes.
    pub fn u16(&mut self, v: u16) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// Four bytes.
    pub fn u32(&mut self, v: u32) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, v: u64) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// Eight bytes, two's complement.
    pub fn i64(&mut self, v: i64) {
        self.bytes.extend_from_slice(&v.to_le_bytes());
    }

    /// A number as LEB128: seven bits a byte, least significant first.
    #[allow(clippy::cast_possible_truncation, reason = "masked to seven bits")]
    pub fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.bytes.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.bytes.push(v as u8);
    }

    /// A count, as LEB128.
    pub fn count(&mut self, n: usize) {
        self.varint(n as u64);
    }

    /// Bytes as they are, without their count.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes after their count.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    /// Text after its count of bytes.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// What `write` appends, after four bytes that count its bytes: [`u32::MAX`] where they are
    /// more than that, which no reader finds.
    #[inline]
    pub fn counted<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        let at = self.len();
        self.u32(0);
        let written = write(self);
        let slot = self.bytes.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut);
        assert!(slot.is_some(), "the count at {at} was removed before it was known");
        if let Some((slot, counted)) = slot {
            let count = u32::try_from(counted.len());
            debug_assert!(count.is_ok(), "{} bytes after a count of four", counted.len());
            // default: as said above
            *slot = count.unwrap_or(u32::MAX).to_le_bytes();
        }
        written
    }
}

/// Reads stored forms from a buffer. Never panics, never reads past the end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes have been read.
    #[must_use]
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// `Corrupt` when fewer are left; the same for every method below.
    #[inline]
    pub fn raw(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        match end.and_then(|end| Some((end, self.bytes.get(self.at..end)?))) {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None => {
                let (at, left) = (self.at, self.remaining());
                Err(Error::corrupt(format!("expected {n} bytes at {at}, found {left}")))
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(N)?);
        Ok(array)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Eight bytes, two's complement.
    #[inline]
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Sixteen bytes, two's complement.
    #[inline]
    pub fn i128(&mut self) -> Result<i128> {
        Ok(i128::from_le_bytes(self.array()?))
    }

    /// A LEB128 number.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let (start, mut v, mut shift) = (self.at, 0u64, 0u32);
        loop {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                return Err(Error::corrupt(format!("number at {start} is longer than 64 bits")));
            }
            v |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(v);
            }
            shift += 7;
        }
    }

    /// A count, at most `most`.
    pub fn count(&mut self, most: usize) -> Result<usize> {
        let start = self.at;
        let n = self.varint()?;
        usize::try_from(n).ok().filter(|n| *n <= most).ok_or_else(|| {
            Error::corrupt(format!("count at {start} is {n}, expected at most {most}"))
        })
    }

    /// Bytes after their count.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.count(self.bytes.len())?;
        self.raw(n)
    }

    /// Text after its count of bytes.
    pub fn text(&mut self) -> Result<&'a str> {
        let at = self.at;
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes)
            .map_err(|e| Error::corrupt(format!("text at {at} is not UTF-8: {e}")))
    }

    /// The bytes from `start` up to here, for a checksum of them.
    pub(crate) fn read_since(&self, start: usize) -> Result<&'a [u8]> {
        let read = self.bytes.get(start..self.at);
        read.ok_or_else(|| Error::corrupt(format!("nothing was read from {start} to {}", self.at)))
    }

    /// Succeeds only at the end of the buffer.
    #[inline]
    pub fn finish(self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            n => Err(Error::corrupt(format!("{n} bytes too many at {}", self.at))),
        }
    }
}
