//! The rows that have something, rising, in few bytes.
//!
//! ```text
//! 0, then varints: the first row, and each as a distance from the one before
//! 1, then one bit per row, the first at the least significant bit of the first byte
//! ```
//!
//! The shorter form is taken: distances below 128 take a byte, so bits are shorter where more than
//! one row in eight is among them.

use crate::codec::{Reader, Writer};
use crate::{Error, Result};

const DISTANCES: u8 = 0;
const BITS: u8 = 1;

/// Rows that are gathered, rising.
#[derive(Clone, Debug, Default)]
pub struct Postings {
    distances: Writer,
    count: u32,
    last: Option<u32>,
}

impl Postings {
    /// Adds a row; one that is not past the last one is left out.
    pub fn push(&mut self, row: u32) {
        match self.last {
            Some(last) if row <= last => return,
            Some(last) => self.distances.varint(u64::from(row - last)),
            None => self.distances.varint(u64::from(row)),
        }
        self.last = Some(row);
        self.count += 1;
    }

    /// How many rows there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The stored form.
    ///
    /// ```
    /// use esker_format::postings::{Postings, decode};
    ///
    /// let mut postings = Postings::default();
    /// [3, 4, 4, 1_000].into_iter().for_each(|row| postings.push(row));
    /// assert_eq!(decode(&postings.encode(), 2_000)?, [3, 4, 1_000]);
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // default: no rows take no bits.
        let bits_len = self.last.map_or(0, |last| last as usize / 8 + 1);
        let mut out = Writer::new();
        if self.distances.len() <= bits_len {
            out.u8(DISTANCES);
            out.raw(self.distances.as_bytes());
            return out.into_bytes();
        }
        let mut bits = vec![0u8; bits_len];
        let mut input = Reader::new(self.distances.as_bytes());
        let mut row = 0usize;
        while let Ok(distance) = input.varint() {
            // default: `push` wrote distances of 32 bits.
            row += usize::try_from(distance).unwrap_or_default();
            if let Some(byte) = bits.get_mut(row / 8) {
                *byte |= 1 << (row % 8);
            }
        }
        out.u8(BITS);
        out.raw(&bits);
        out.into_bytes()
    }
}

/// The rows of a stored form, all below `rows`.
///
/// # Errors
/// `Corrupt` when the bytes are none.
pub fn decode(bytes: &[u8], rows: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut input = Reader::new(bytes);
    match input.u8()? {
        DISTANCES => distances(&mut input, rows, &mut |row| found.push(row))?,
        BITS => {
            for (at, byte) in (0u32..).zip(input.raw(input.remaining())?) {
                for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                    let row = at.checked_mul(8).map(|row| row + bit).filter(|row| *row < rows);
                    found.push(row.ok_or_else(|| wrong(PAST))?);
                }
            }
        }
        form => return Err(wrong(&format!("form {form} is not known"))),
    }
    Ok(found)
}

/// Sets the bits of the rows of a stored form, all below `rows`: row 0 at the least significant bit
/// of the first word. Rows past the words are left out.
///
/// ```
/// use esker_format::postings::{Postings, add_to};
///
/// let (mut postings, mut bits) = (Postings::default(), [1, 0]);
/// [3, 64].into_iter().for_each(|row| postings.push(row));
/// add_to(&postings.encode(), 100, &mut bits)?;
/// assert_eq!(bits, [0b1001, 1]);
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` as for [`decode`]; some bits may be set then.
pub fn add_to(bytes: &[u8], rows: u32, bits: &mut [u64]) -> Result<()> {
    let mut input = Reader::new(bytes);
    match input.u8()? {
        DISTANCES => distances(&mut input, rows, &mut |row| {
            if let Some(word) = bits.get_mut(row as usize / 64) {
                *word |= 1 << (row % 64);
            }
        }),
        BITS => {
            let bytes = input.raw(input.remaining())?;
            let used = bytes.iter().rposition(|byte| *byte != 0);
            let last = used.and_then(|at| Some((at, bytes.get(at)?)));
            let last = last.map(|(at, byte)| at * 8 + byte.ilog2() as usize);
            if last.is_some_and(|last| last >= rows as usize) {
                return Err(wrong(PAST));
            }
            let (words, rest) = bytes.as_chunks();
            for (into, word) in bits.iter_mut().zip(words) {
                *into |= u64::from_le_bytes(*word);
            }
            let mut last = [0; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            if let Some(into) = bits.get_mut(words.len()) {
                *into |= u64::from_le_bytes(last);
            }
            Ok(())
        }
        form => Err(wrong(&format!("form {form} is not known"))),
    }
}

const PAST: &str = "a row past the last";

fn wrong(what: &str) -> Error {
    Error::corrupt(format!("rows that have something: {what}"))
}

/// Visits rows that are stored as distances.
fn distances(input: &mut Reader<'_>, rows: u32, visit: &mut dyn FnMut(u32)) -> Result<()> {
    let mut last: Option<u64> = None;
    while input.remaining() > 0 {
        let distance = input.varint()?;
        if distance == 0 && last.is_some() {
            return Err(wrong("a row comes twice"));
        }
        // default: the first row stands as it is.
        let next = last.unwrap_or_default().saturating_add(distance);
        let row = u32::try_from(next).ok().filter(|row| *row < rows);
        visit(row.ok_or_else(|| wrong(PAST))?);
        last = Some(next);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_the_shorter_form() {
        for (rows, form) in [
            ((0..0).collect::<Vec<u32>>(), DISTANCES),
            ((0..100_000).collect(), BITS),
            ((0..100_000).step_by(7).collect(), BITS),
            ((0..100_000).step_by(9).collect(), DISTANCES),
            (vec![4_194_303], DISTANCES),
            (vec![0], DISTANCES),
        ] {
            let mut postings = Postings::default();
            rows.iter().for_each(|row| postings.push(*row));
            assert_eq!(postings.count() as usize, rows.len());
            let encoded = postings.encode();
            assert_eq!(encoded.first(), Some(&form));
            assert_eq!(decode(&encoded, 1 << 22).unwrap(), rows);
            let mut bits = vec![0; 1 << 16];
            add_to(&encoded, 1 << 22, &mut bits).unwrap();
            let mut expected = vec![0; 1 << 16];
            rows.iter().for_each(|row| expected[*row as usize / 64] |= 1 << (row % 64));
            assert_eq!(bits, expected);
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bytes in [&[][..], &[2], &[0, 1, 0], &[0, 0x80], &[0, 9, 1], &[1, 0, 4]] {
            assert!(decode(bytes, 10).is_err(), "{bytes:?}");
            assert!(add_to(bytes, 10, &mut [0]).is_err(), "{bytes:?}");
        }
    }
}
