//! Numbers of as few bits as they need, in blocks of [`PACKED_ROWS`].
//!
//! ```text
//! directory, an entry a block:  u64 least | u64 place: number of its first line, from bit 56 width
//! lines of 128 bytes:           lanes of 8, 16, 32 or 64 bits, the least that a number fits in
//!
//! number i of a block           lane i mod lanes, number i / lanes of it, lowest bits first
//!
//! packed         number i = least + code i
//! packed deltas  number i = first + the sum of (least delta + code j) of 1 <= j <= i in the block;
//!                an entry has u64 first, u64 least delta, u64 place
//! ```
//!
//! All sums are of 64 bits, without a carry. One number of a packed column is found by itself; of
//! packed deltas those before it in its block are added up. Numbers that follow each other lie side
//! by side in lanes, at the same bit: so a processor shifts many of them at once, and a block is
//! unpacked by loops without branches, whatever its width.

use std::ops::Range;

use crate::{Error, Result};

/// Numbers of a block.
pub const PACKED_ROWS: usize = 1_024;
/// Bytes of an entry of a directory of packed numbers.
pub const PACKED_ENTRY_BYTES: u64 = 16;
/// The same of packed deltas.
pub const DELTA_ENTRY_BYTES: u64 = 24;
/// Words of a line.
pub const LINE_WORDS: usize = 16;
/// So few numbers of a block are unpacked one by one.
const FEW: usize = 32;
/// From which bit of a place the width is.
const WIDTH_BIT: u32 = 56;

/// Packed numbers, ready to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedNumbers {
    /// An entry for each block.
    pub directory: Vec<u64>,
    /// The lines.
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
        let line = (self.words.len() / LINE_WORDS) as u64;
        self.directory.extend_from_slice(head);
        self.directory.push(line | u64::from(width) << WIDTH_BIT);
        let place = BlockPlace { line: 0, width: width as usize };
        let mut lines = vec![[0u64; LINE_WORDS]; place.lines_of(block.len())];
        for (at, number) in block.iter().enumerate() {
            place.put(&mut lines, at, code(*number));
        }
        self.words.extend(lines.as_flattened());
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
    lines: &'a [[u64; LINE_WORDS]],
    first: First,
}

/// Reads packed deltas.
#[derive(Clone, Copy, Debug)]
pub struct DeltaReader<'a> {
    directory: &'a [[u64; 3]],
    lines: &'a [[u64; LINE_WORDS]],
    first: First,
}

/// Bits of the widest numbers.
const WIDTH_MAX: usize = 64;

/// Where a block lies, and how wide its numbers are.
#[derive(Clone, Copy, Debug)]
struct BlockPlace {
    line: usize,
    width: usize,
}

impl BlockPlace {
    /// `first` is where the lines at hand begin.
    fn of(place: u64, block: usize, first: First) -> Result<Self> {
        let (line, width) = (place & ((1 << WIDTH_BIT) - 1), place >> WIDTH_BIT);
        match (usize::try_from(line), usize::try_from(width)) {
            (Ok(line), Ok(width)) if width <= 64 && line >= first.line => {
                Ok(Self { line: line - first.line, width })
            }
            _ => Err(Error::corrupt(format!("packed block {block} has {width} bits at {line}"))),
        }
    }

    /// Bits of a lane of a line.
    fn lane_bits(self) -> usize {
        self.width.max(8).next_power_of_two()
    }

    /// Lanes of a line.
    fn lanes(self) -> usize {
        LINE_WORDS * 64 / self.lane_bits()
    }

    /// Lines that so many numbers take.
    fn lines_of(self, count: usize) -> usize {
        (count.div_ceil(self.lanes()) * self.width).div_ceil(self.lane_bits())
    }

    /// The line of a number, the word in it, and its lowest bit there, of `lane_bits`.
    fn bit_of(self, at: usize) -> (usize, usize, usize) {
        let (lane, bit) = (at % self.lanes(), at / self.lanes() * self.width);
        let within = lane * self.lane_bits();
        (bit / self.lane_bits(), within / 64, within % 64 + bit % self.lane_bits())
    }

    /// Puts a number into lines that have zeros there.
    fn put(self, lines: &mut [[u64; LINE_WORDS]], at: usize, number: u64) {
        if self.width == 0 {
            return;
        }
        let (line, word, bit) = self.bit_of(at);
        let lane = bit / self.lane_bits() * self.lane_bits();
        let fits = (self.lane_bits() - (bit - lane)).min(self.width);
        let low = number & (u64::MAX >> (64 - fits));
        if let Some(word) = lines.get_mut(line).and_then(|line| line.get_mut(word)) {
            *word |= low << bit;
        }
        if let Some(word) = lines.get_mut(line + 1).and_then(|line| line.get_mut(word))
            && fits < self.width
        {
            *word |= number >> fits << lane;
        }
    }

    /// One number of the block.
    fn get(self, lines: &[[u64; LINE_WORDS]], at: usize) -> Result<u64> {
        if self.width == 0 {
            return Ok(0);
        }
        let (line, word, bit) = self.bit_of(at);
        let lane = bit / self.lane_bits() * self.lane_bits();
        let fits = (self.lane_bits() - (bit - lane)).min(self.width);
        let word_of = |line: usize| {
            let found = self.line.checked_add(line).and_then(|line| lines.get(line)?.get(word));
            found.copied().ok_or_else(|| self.no_line(line, lines.len()))
        };
        let low = word_of(line)? >> bit & (u64::MAX >> (64 - fits));
        if fits == self.width {
            return Ok(low);
        }
        Ok(low | (word_of(line + 1)? >> lane << fits & self.code_max()))
    }

    #[cold]
    fn no_line(self, line: usize, len: usize) -> Error {
        let Self { line: first, width } = self;
        Error::corrupt(format!("line {line} of a block of {width} bits at {first} of {len} lines"))
    }

    /// The greatest code that fits.
    fn code_max(self) -> u64 {
        match self.width {
            0 => 0,
            width => u64::MAX >> (64 - width),
        }
    }

    /// Shows some numbers of the block, in one piece or one by one.
    fn show<T: Unpacked>(
        self,
        lines: &[[u64; LINE_WORDS]],
        within: Range<usize>,
        least: u64,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let end = self.line.checked_add(self.width);
        let whole = end.and_then(|end| lines.get(self.line..end));
        match whole {
            _ if self.width == 0 => out.extend(within.map(|_| T::cut(least))),
            Some(whole) if within.len() > FEW => self.show_whole(whole, within, least, out),
            _ if within.len() > FEW => {
                // The lines of numbers that are not asked for, or not there, count as zeros.
                let there = lines.get(self.line..).ok_or_else(|| self.no_line(0, lines.len()))?;
                let needed = self.lines_of(within.end);
                if there.len() < needed {
                    return Err(self.no_line(needed, lines.len()));
                }
                let mut padded = [[0; LINE_WORDS]; WIDTH_MAX];
                padded.iter_mut().zip(there).take(self.width).for_each(|(to, from)| *to = *from);
                let whole = padded.get(..self.width).ok_or_else(|| self.no_line(0, WIDTH_MAX))?;
                self.show_whole(whole, within, least, out);
            }
            _ => {
                for at in within {
                    out.push(T::cut(least.wrapping_add(self.get(lines, at)?)));
                }
            }
        }
        Ok(())
    }

    /// The same out of all lines of the block, in one piece.
    fn show_whole<T: Unpacked>(
        self,
        whole: &[[u64; LINE_WORDS]],
        within: Range<usize>,
        least: u64,
        out: &mut Vec<T>,
    ) {
        match self.lane_bits() {
            8 => unpack_8(bytemuck::cast_slice(whole), self.width, within, least, out),
            16 => unpack_16(bytemuck::cast_slice(whole), self.width, within, least, out),
            32 => unpack_32(bytemuck::cast_slice(whole), self.width, within, least, out),
            _ => unpack_64(whole, self.width, within, least, out),
        }
    }
}

/// Unpacks a block, by lines of numbers that lie side by side, and shows some of it.
macro_rules! unpack_block {
    ($name:ident, $word:ty, $lanes:literal, $of:expr) => {
        fn $name<T: Unpacked>(
            lines: &[[$word; $lanes]],
            width: usize,
            within: Range<usize>,
            least: u64,
            out: &mut Vec<T>,
        ) {
            const BITS: usize = <$word>::BITS as usize;
            let mask = <$word>::MAX >> (BITS - width);
            let mut codes: [[$word; $lanes]; PACKED_ROWS / $lanes] =
                [[0; $lanes]; PACKED_ROWS / $lanes];
            for (step, row) in codes.iter_mut().enumerate() {
                let (line, shift) = (step * width / BITS, step * width % BITS);
                let Some(low) = lines.get(line) else { return };
                match lines.get(line + 1) {
                    Some(high) if shift + width > BITS => {
                        for ((to, low), high) in row.iter_mut().zip(low).zip(high) {
                            *to = (low >> shift | high << (BITS - shift)) & mask;
                        }
                    }
                    _ => {
                        for (to, low) in row.iter_mut().zip(low) {
                            *to = low >> shift & mask;
                        }
                    }
                }
            }
            // default: a block has all of them
            let codes = codes.as_flattened().get(within).unwrap_or_default();
            out.extend(codes.iter().map(|code| $of(least, *code)));
        }
    };
}

unpack_block!(unpack_8, u8, 128, |least, code: u8| T::sum(least, code.into()));
unpack_block!(unpack_16, u16, 64, |least, code: u16| T::sum(least, code.into()));
unpack_block!(unpack_32, u32, 32, T::sum);
unpack_block!(unpack_64, u64, 16, |least: u64, code| T::cut(least.wrapping_add(code)));

/// What is missing of a directory.
fn no_block(block: usize) -> Error {
    Error::corrupt(format!("no packed block {block}"))
}

/// Where what a reader has at hand begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// The block of the first entry.
    pub block: usize,
    /// The number of the first line.
    pub line: usize,
}

/// Which lines some numbers lie in, by the places of the first and the last block that they are of:
/// the last words of the entries of these blocks.
///
/// # Errors
/// `Corrupt` when these are no places.
pub fn lines_of(first: u64, last: u64, rows: &Range<usize>) -> Result<Range<usize>> {
    let block = rows.start / PACKED_ROWS;
    let Some(end) = rows.end.checked_sub(1) else { return Ok(0..0) };
    let first = BlockPlace::of(first, block, First::default())?;
    let last = BlockPlace::of(last, end / PACKED_ROWS, First::default())?;
    let lines = last.lines_of(end % PACKED_ROWS + 1);
    Ok(first.line..last.line.saturating_add(lines).max(first.line))
}

impl<'a> PackedReader<'a> {
    /// Reads numbers out of a part of the directory and of the lines.
    #[must_use]
    pub fn new(directory: &'a [[u64; 2]], lines: &'a [[u64; LINE_WORDS]], first: First) -> Self {
        Self { directory, lines, first }
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
        Ok(least.wrapping_add(place.get(self.lines, at % PACKED_ROWS)?))
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
            let within = at % PACKED_ROWS..at % PACKED_ROWS + (end - at);
            place.show(self.lines, within, least.wrapping_sub(below), &mut out)?;
            at = end;
        }
        Ok(out)
    }
}

impl<'a> DeltaReader<'a> {
    /// Reads numbers out of a part of the directory and of the lines.
    #[must_use]
    pub fn new(directory: &'a [[u64; 3]], lines: &'a [[u64; LINE_WORDS]], first: First) -> Self {
        Self { directory, lines, first }
    }

    /// One number: those before it in its block are added up.
    ///
    /// # Errors
    /// `Corrupt` when its block is not there.
    pub fn get(&self, at: usize) -> Result<u64> {
        let (block, place) = (at / PACKED_ROWS, at % PACKED_ROWS);
        let entry = block.checked_sub(self.first.block).and_then(|at| self.directory.get(at));
        let [first, least, lines] = entry.ok_or_else(|| no_block(block))?;
        let lines = BlockPlace::of(*lines, block, self.first)?;
        let mut codes: Vec<u64> = Vec::with_capacity(place + 1);
        lines.show(self.lines, 0..place + 1, *least, &mut codes)?;
        // The first has no delta.
        let deltas = codes.get(1..).ok_or_else(|| no_block(block))?;
        Ok(deltas.iter().fold(*first, |number, delta| number.wrapping_add(*delta)))
    }

    /// Some numbers, each with `base` added.
    ///
    /// # Errors
    /// As for [`DeltaReader::get`].
    pub fn unpack(&self, rows: Range<usize>, base: u64) -> Result<Vec<u64>> {
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
            place.show(self.lines, 0..end - start, *least, &mut codes)?;
            let (skipped, mut number) = (rows.start.saturating_sub(start), base);
            let mut add = |delta: &u64| {
                number = number.wrapping_add(*delta);
                number
            };
            // The first has no delta.
            codes.first_mut().into_iter().for_each(|code| *code = *first);
            let (before, shown) = codes.split_at(skipped.min(codes.len()));
            before.iter().for_each(|delta| _ = add(delta));
            out.extend(shown.iter().map(add));
            start += PACKED_ROWS;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words<const N: usize>(words: &[u64]) -> Vec<[u64; N]> {
        words.chunks(N).map(|entry| entry.try_into().unwrap()).collect()
    }

    /// All that the readers give equals the numbers.
    fn comes_back(numbers: &[u64]) {
        let packed = PackedNumbers::new(numbers);
        let directory = words(&packed.directory);
        let reader = PackedReader::new(&directory, packed.words.as_chunks().0, First::default());
        let count = numbers.len();
        let (low, high) = reader.bounds(&(0..count)).unwrap();
        assert!(numbers.iter().all(|number| (low..=high).contains(number)));
        assert_eq!(reader.unpack::<u64>(0..count, 0).unwrap(), numbers);
        let deltas = PackedNumbers::of_deltas(numbers);
        let directory = words(&deltas.directory);
        let delta_reader =
            DeltaReader::new(&directory, deltas.words.as_chunks().0, First::default());
        assert_eq!(delta_reader.unpack(0..count, 0).unwrap(), numbers);
        for at in (0..count).step_by((count / 97).max(1)).chain(count.checked_sub(1)) {
            assert_eq!(reader.get(at).unwrap(), numbers[at], "number {at}");
            assert_eq!(delta_reader.get(at).unwrap(), numbers[at], "number {at}");
            let end = count.min(at + 1_500);
            assert_eq!(reader.unpack::<u64>(at..end, low).unwrap().len(), end - at);
            assert_eq!(delta_reader.unpack(at..end, 0).unwrap(), &numbers[at..end]);
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
        let short =
            PackedReader::new(&directory, &packed.words.as_chunks().0[..2], First::default());
        assert!(short.unpack::<u32>(0..3_000, 0).is_err());
        assert!(short.get(2_999).is_err());
        let none = PackedReader::new(&directory[..1], packed.words.as_chunks().0, First::default());
        assert!(none.get(1_024).is_err() && none.bounds(&(0..3_000)).is_err());
        let wide = [[0, u64::MAX]];
        assert!(
            PackedReader::new(&wide, packed.words.as_chunks().0, First::default()).get(0).is_err()
        );
        let wide = [[0, 0, 65 << WIDTH_BIT]];
        assert!(
            DeltaReader::new(&wide, packed.words.as_chunks().0, First::default()).get(3).is_err()
        );
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
