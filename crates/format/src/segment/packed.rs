//! Numbers of as few bits as they need, in blocks of [`PACKED_ROWS`].
//!
//! ```text
//! directory, an entry a block:  u64 least | u64 place: number of its first word, from bit 56 width
//! words:                        64 numbers of `width` bits take `width` words, lowest bits first
//!
//! packed         number i = least + code i
//! packed deltas  number i = first + the sum of (least delta + code j) of 1 <= j <= i in the block;
//!                an entry has u64 first, u64 least delta, u64 place
//! ```
//!
//! All sums are of 64 bits, without a carry. One number of a packed column is found by itself; of
//! packed deltas those before it in its block are added up. Whole groups of 64 numbers are unpacked
//! by a loop of its own for each width, which has no branches.

use std::ops::Range;

use crate::{Error, Result};

/// Numbers of a block.
pub const PACKED_ROWS: usize = 1_024;
/// Bytes of an entry of a directory of packed numbers.
pub const PACKED_ENTRY_BYTES: u64 = 16;
/// The same of packed deltas.
pub const DELTA_ENTRY_BYTES: u64 = 24;
/// Numbers that are unpacked together.
const GROUP: usize = 64;
/// From which bit of a place the width is.
const WIDTH_BIT: u32 = 56;

/// Packed numbers, ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedNumbers {
    /// An entry for each block.
    pub directory: Vec<u64>,
    /// The bits.
    pub words: Vec<u64>,
}

impl PackedNumbers {
    /// Packs numbers.
    #[must_use]
    pub fn new(numbers: &[u64]) -> Self {
        let mut packed = Self::default();
        for block in numbers.chunks(PACKED_ROWS) {
            // default: a block has numbers
            let mut least = block.iter().min().copied().unwrap_or_default();
            let greatest = block.iter().max().copied().unwrap_or_default(); // default: the same
            // Blocks that need no base of their own have codes that compare with each other.
            if width_of(greatest) == width_of(greatest - least) {
                least = 0;
            }
            packed.push(&[least], block, |number| number - least, greatest - least);
        }
        packed
    }

    /// Packs the distances from each number to the next.
    #[must_use]
    pub fn of_deltas(numbers: &[u64]) -> Self {
        let mut packed = Self::default();
        for block in numbers.chunks(PACKED_ROWS) {
            let first = block.first().copied().unwrap_or_default(); // default: as above
            let delta = |pair: &[u64]| match pair {
                [a, b] => b.wrapping_sub(*a),
                _ => 0,
            };
            let signed = |pair| delta(pair).cast_signed();
            // default: one number alone has no delta
            let least = block.windows(2).map(signed).min().unwrap_or_default().cast_unsigned();
            let mut codes = vec![0];
            codes.extend(block.windows(2).map(|pair| delta(pair).wrapping_sub(least)));
            let greatest = codes.iter().max().copied().unwrap_or_default(); // default: as above
            packed.push(&[first, least], &codes, |code| code, greatest);
        }
        packed
    }

    fn push(&mut self, head: &[u64], block: &[u64], code: impl Fn(u64) -> u64, greatest: u64) {
        let width = width_of(greatest);
        self.directory.extend_from_slice(head);
        self.directory.push(self.words.len() as u64 | u64::from(width) << WIDTH_BIT);
        for group in block.chunks(GROUP) {
            let (mut word, mut filled) = (0u64, 0u32);
            let mut left = width;
            for number in group.iter().map(|number| code(*number)) {
                if width == 0 {
                    continue;
                }
                word |= number << filled;
                filled += width;
                if filled >= u64::BITS {
                    self.words.push(word);
                    left -= 1;
                    filled -= u64::BITS;
                    // What did not fit, if that is anything.
                    word = number.checked_shr(width - filled).unwrap_or_default(); // default: none
                    word = if filled == 0 { 0 } else { word };
                }
            }
            if filled > 0 {
                self.words.push(word);
                left -= 1;
            }
            self.words.extend(std::iter::repeat_n(0, left as usize));
        }
    }

    /// Bytes of both buffers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.directory.len() + self.words.len()) * size_of::<u64>()
    }
}

/// Bits that a number needs.
fn width_of(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// A number that others are unpacked to.
pub trait Unpacked: Copy + Default {
    /// A sum, as far as it fits.
    fn sum(least: u64, code: u32) -> Self;
    /// A number, as far as it fits.
    fn cut(number: u64) -> Self;
}

macro_rules! unpacked {
    ($($type:ty),*) => {
        $(impl Unpacked for $type {
            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "the reader has seen what fits")]
            fn sum(least: u64, code: u32) -> Self {
                (least as u32).wrapping_add(code) as Self
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "the reader has seen what fits")]
            fn cut(number: u64) -> Self {
                number as Self
            }
        })*
    };
}

unpacked!(u8, u16, u32);

impl Unpacked for u64 {
    #[inline]
    fn sum(least: u64, code: u32) -> Self {
        least.wrapping_add(code.into())
    }

    #[inline]
    fn cut(number: u64) -> Self {
        number
    }
}

/// Reads packed numbers.
#[derive(Clone, Copy, Debug)]
pub struct PackedReader<'a> {
    directory: &'a [[u64; 2]],
    words: &'a [u64],
    first: First,
}

/// Reads packed deltas.
#[derive(Clone, Copy, Debug)]
pub struct DeltaReader<'a> {
    directory: &'a [[u64; 3]],
    words: &'a [u64],
    first: First,
}

/// Where a block lies, and how wide its numbers are.
#[derive(Clone, Copy, Debug)]
struct BlockPlace {
    word: usize,
    width: usize,
}

impl BlockPlace {
    /// `first` is where the words at hand begin.
    fn of(place: u64, block: usize, first: First) -> Result<Self> {
        let (word, width) = (place & ((1 << WIDTH_BIT) - 1), place >> WIDTH_BIT);
        match (usize::try_from(word), usize::try_from(width)) {
            (Ok(word), Ok(width)) if width <= 64 && word >= first.word => {
                Ok(Self { word: word - first.word, width })
            }
            _ => {
                Err(Error::corrupt(format!("packed block {block} has {width} bits at word {word}")))
            }
        }
    }

    /// The words of a group.
    fn group(self, words: &[u64], group: usize) -> Result<&[u64]> {
        let start = self.word.checked_add(group * self.width);
        let found = start.and_then(|start| words.get(start..start.checked_add(self.width)?));
        found.ok_or_else(|| {
            let Self { word, width } = self;
            let len = words.len();
            Error::corrupt(format!("group {group} of {width} bits at word {word} of {len}"))
        })
    }

    /// The greatest code that fits.
    fn code_max(self) -> u64 {
        match self.width {
            0 => 0,
            width => u64::MAX >> (64 - width),
        }
    }
}

/// What is missing of a directory.
fn no_block(block: usize) -> Error {
    Error::corrupt(format!("no packed block {block}"))
}

/// Where what a reader has at hand begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// The block of the first entry.
    pub block: usize,
    /// The number of the first word.
    pub word: usize,
}

/// Which words some numbers lie in, by the places of the first and the last block that they are of:
/// the last words of the entries of these blocks.
///
/// # Errors
/// `Corrupt` when these are no places.
pub fn words_of(first: u64, last: u64, rows: &Range<usize>) -> Result<Range<usize>> {
    let block = rows.start / PACKED_ROWS;
    let Some(end) = rows.end.checked_sub(1) else { return Ok(0..0) };
    let first = BlockPlace::of(first, block, First::default())?;
    let last = BlockPlace::of(last, end / PACKED_ROWS, First::default())?;
    let groups = end % PACKED_ROWS / GROUP + 1;
    Ok(first.word..last.word.saturating_add(groups * last.width).max(first.word))
}

impl<'a> PackedReader<'a> {
    /// Reads numbers out of a part of the directory and of the words.
    #[must_use]
    pub fn new(directory: &'a [[u64; 2]], words: &'a [u64], first: First) -> Self {
        Self { directory, words, first }
    }

    fn block(&self, block: usize) -> Result<(u64, BlockPlace)> {
        let entry = block.checked_sub(self.first.block).and_then(|at| self.directory.get(at));
        let [least, place] = entry.ok_or_else(|| no_block(block))?;
        Ok((*least, BlockPlace::of(*place, block, self.first)?))
    }

    /// One number.
    ///
    /// # Errors
    /// `Corrupt` when its block is not there.
    pub fn get(&self, at: usize) -> Result<u64> {
        let (least, place) = self.block(at / PACKED_ROWS)?;
        if place.width == 0 {
            return Ok(least);
        }
        let within = at % PACKED_ROWS;
        let words = place.group(self.words, within / GROUP)?;
        let bit = within % GROUP * place.width;
        let low = words.get(bit / 64).map_or(0, |word| word >> (bit % 64)); // default: never
        let high = match words.get(bit / 64 + 1) {
            Some(word) if bit % 64 + place.width > 64 => word << (64 - bit % 64),
            _ => 0,
        };
        Ok(least.wrapping_add((low | high) & place.code_max()))
    }

    /// A number that none of some is below, and one that none is above.
    ///
    /// # Errors
    /// As for [`PackedReader::get`].
    pub fn bounds(&self, rows: &Range<usize>) -> Result<(u64, u64)> {
        let (mut low, mut high) = (u64::MAX, 0);
        if rows.is_empty() {
            return Ok((0, 0));
        }
        for block in rows.start / PACKED_ROWS..rows.end.div_ceil(PACKED_ROWS) {
            let (least, place) = self.block(block)?;
            low = low.min(least);
            high = high.max(least.saturating_add(place.code_max()));
        }
        Ok((low.min(high), high))
    }

    /// Some numbers, less `below`, which none of them is below.
    ///
    /// # Errors
    /// As for [`PackedReader::get`].
    pub fn unpack<T: Unpacked>(&self, rows: Range<usize>, below: u64) -> Result<Vec<T>> {
        let mut out = Vec::with_capacity(rows.len());
        let mut at = rows.start;
        while at < rows.end {
            let (least, place) = self.block(at / PACKED_ROWS)?;
            let end = rows.end.min((at / PACKED_ROWS + 1) * PACKED_ROWS);
            let least = least.wrapping_sub(below);
            while at < end {
                at = unpack_group(self.words, place, (at, end), least, &mut out)?;
            }
        }
        Ok(out)
    }
}

/// Unpacks what is left of the group of number `at`; says where the next begins.
#[inline]
fn unpack_group<T: Unpacked>(
    words: &[u64],
    place: BlockPlace,
    (at, end): (usize, usize),
    least: u64,
    out: &mut Vec<T>,
) -> Result<usize> {
    let group = at / GROUP * GROUP;
    let next = (group + GROUP).min(end);
    let words = place.group(words, group % PACKED_ROWS / GROUP)?;
    let range = at - group..next - group;
    if place.width <= 32 {
        let codes = narrow_codes(words, place.width);
        let codes = codes.get(range).unwrap_or_default(); // default: a group has 64
        out.extend(codes.iter().map(|code| T::sum(least, *code)));
    } else {
        let codes = wide_codes(words, place.width);
        let codes = codes.get(range).unwrap_or_default(); // default: the same
        out.extend(codes.iter().map(|code| T::cut(least.wrapping_add(*code))));
    }
    Ok(next)
}

/// A group of at most 32 bits.
#[inline]
fn narrow_codes(words: &[u64], width: usize) -> [u32; GROUP] {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                $($width => words.first_chunk().map(unpack_words::<$width>),)*
                _ => None,
            }
        };
    }
    let codes = by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
        28 29 30 31 32);
    codes.unwrap_or([0; GROUP]) // default: those of 0 bits
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the mask has at most 32 bits")]
#[allow(clippy::indexing_slicing, reason = "64 numbers of W bits have W words")]
fn unpack_words<const W: usize>(words: &[u64; W]) -> [u32; GROUP] {
    let mask = u64::MAX >> (64 - W);
    let mut codes = [0; GROUP];
    let mut at = 0;
    while at < GROUP {
        let bit = at * W;
        let mut code = words[bit / 64] >> (bit % 64);
        if bit % 64 + W > 64 {
            code |= words[bit / 64 + 1] << (64 - bit % 64);
        }
        codes[at] = (code & mask) as u32;
        at += 1;
    }
    codes
}

/// A group of any width.
fn wide_codes(words: &[u64], width: usize) -> [u64; GROUP] {
    let mask = BlockPlace { word: 0, width }.code_max();
    let word = |at: usize| words.get(at).copied().unwrap_or_default(); // default: behind the last
    let mut codes = [0; GROUP];
    for (at, code) in codes.iter_mut().enumerate() {
        let (bit, shift) = (at * width, at * width % 64);
        let high = if shift + width > 64 { word(bit / 64 + 1) << (64 - shift) } else { 0 };
        *code = (word(bit / 64) >> shift | high) & mask;
    }
    codes
}

impl<'a> DeltaReader<'a> {
    /// Reads numbers out of a part of the directory and of the words.
    #[must_use]
    pub fn new(directory: &'a [[u64; 3]], words: &'a [u64], first: First) -> Self {
        Self { directory, words, first }
    }

    /// One number: those before it in its block are added up.
    ///
    /// # Errors
    /// `Corrupt` when its block is not there.
    pub fn get(&self, at: usize) -> Result<u64> {
        let last = self.unpack(at..at + 1)?.last().copied();
        last.ok_or_else(|| no_block(at / PACKED_ROWS))
    }

    /// Some numbers.
    ///
    /// # Errors
    /// As for [`DeltaReader::get`].
    pub fn unpack(&self, rows: Range<usize>) -> Result<Vec<u64>> {
        let mut out = Vec::with_capacity(rows.len());
        let mut codes: Vec<u64> = Vec::with_capacity(PACKED_ROWS);
        if rows.is_empty() {
            return Ok(out);
        }
        let mut start = rows.start / PACKED_ROWS * PACKED_ROWS;
        while start < rows.end {
            let block = start / PACKED_ROWS;
            let entry = block.checked_sub(self.first.block).and_then(|at| self.directory.get(at));
            let [first, least, place] = entry.ok_or_else(|| no_block(block))?;
            let place = BlockPlace::of(*place, block, self.first)?;
            let end = rows.end.min(start + PACKED_ROWS);
            codes.clear();
            let mut at = start;
            while at < end {
                at = unpack_group(self.words, place, (at, end), *least, &mut codes)?;
            }
            let (mut number, skipped) = (*first, rows.start.saturating_sub(start));
            for (at, delta) in codes.iter().enumerate() {
                number = if at == 0 { number } else { number.wrapping_add(*delta) };
                if at >= skipped {
                    out.push(number);
                }
            }
            start += PACKED_ROWS;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words<const N: usize>(directory: &[u64]) -> Vec<[u64; N]> {
        directory.chunks(N).map(|entry| entry.try_into().unwrap()).collect()
    }

    /// All that the readers give equals the numbers.
    fn comes_back(numbers: &[u64]) {
        let packed = PackedNumbers::new(numbers);
        let directory = words(&packed.directory);
        let reader = PackedReader::new(&directory, &packed.words, First::default());
        let count = numbers.len();
        let (low, high) = reader.bounds(&(0..count)).unwrap();
        assert!(numbers.iter().all(|number| (low..=high).contains(number)));
        assert_eq!(reader.unpack::<u64>(0..count, 0).unwrap(), numbers);
        let deltas = PackedNumbers::of_deltas(numbers);
        let directory = words(&deltas.directory);
        let delta_reader = DeltaReader::new(&directory, &deltas.words, First::default());
        assert_eq!(delta_reader.unpack(0..count).unwrap(), numbers);
        for at in (0..count).step_by((count / 97).max(1)).chain(count.checked_sub(1)) {
            assert_eq!(reader.get(at).unwrap(), numbers[at], "number {at}");
            assert_eq!(delta_reader.get(at).unwrap(), numbers[at], "number {at}");
            let end = count.min(at + 1_500);
            assert_eq!(reader.unpack::<u64>(at..end, low).unwrap().len(), end - at);
            assert_eq!(delta_reader.unpack(at..end).unwrap(), &numbers[at..end]);
            let (low, high) = reader.bounds(&(at..end)).unwrap();
            if high - low <= u64::from(u32::MAX) {
                let all = reader.unpack::<u32>(at..end, low).unwrap();
                let all: Vec<u64> = all.iter().map(|code| low + u64::from(*code)).collect();
                assert_eq!(all, &numbers[at..end]);
            }
        }
    }

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 0..=64u32 {
            let mask = u64::MAX.checked_shr(64 - width).unwrap_or_default();
            for count in [1, 63, 64, 65, 1_023, 1_024, 1_025, 2_100] {
                let of = |n: u64| crate::hash::of_word(n) & mask;
                let mut numbers: Vec<u64> = (0..count).map(of).collect();
                comes_back(&numbers);
                numbers[0] = mask;
                comes_back(&numbers);
            }
        }
    }

    #[test]
    fn edges_come_back() {
        comes_back(&[u64::MAX, 0, u64::MAX, 1, u64::MAX / 2]);
        comes_back(&(0..8_193).map(|n| n * 1_000).collect::<Vec<u64>>());
        comes_back(&(0..8_192).map(|n| u64::MAX - n).collect::<Vec<u64>>());
        comes_back(&vec![u64::MAX; 1_025]);
    }

    #[test]
    fn damage_is_an_error() {
        let packed = PackedNumbers::new(&(0..3_000).collect::<Vec<u64>>());
        let directory: Vec<[u64; 2]> = words(&packed.directory);
        let short = PackedReader::new(&directory, &packed.words[..40], First::default());
        assert!(short.unpack::<u32>(0..3_000, 0).is_err());
        assert!(short.get(2_999).is_err());
        let none = PackedReader::new(&directory[..1], &packed.words, First::default());
        assert!(none.get(1_024).is_err() && none.bounds(&(0..3_000)).is_err());
        let wide = [[0, u64::MAX]];
        assert!(PackedReader::new(&wide, &packed.words, First::default()).get(0).is_err());
        let wide = [[0, 0, 65 << WIDTH_BIT]];
        assert!(DeltaReader::new(&wide, &packed.words, First::default()).get(3).is_err());
    }

    proptest! {
        #[test]
        fn any_numbers_come_back(
            base in any::<u64>(),
            width in 0u32..=64,
            numbers in prop::collection::vec(any::<u64>(), 1..2_500),
        ) {
            let mask = u64::MAX.checked_shr(64 - width).unwrap_or_default();
            let all: Vec<u64> = numbers.iter().map(|n| base.saturating_add(n & mask)).collect();
            comes_back(&all);
        }
    }
}
