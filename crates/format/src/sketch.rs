//! About how many different values there are: HyperLogLog (Flajolet and others, 2007), read by the
//! estimator of Ertl (2017), which is as good for few values as for many.
//!
//! ```text
//! hash     0110 0000 0001 0110…      register 6 sees that 7 zeros come before the first 1
//!          ├──┤ ├────────────►       and keeps 8, if that is more than it has
//! register    6 1       8
//! ```
//!
//! Of a sketch of 2ᵇ registers the count is off by 1.04 / √2ᵇ of it, as a standard deviation. Up to
//! a sixteenth as many values as it has registers are kept by their hashes, and counted. The sketch
//! of all values of two sets is made of the sketches of both, exactly.
//!
//! # Invariants
//!
//! Every sketch is made by [`Sketch::extend`] and [`Sketch::merge`], which uphold them;
//! [`Sketch::decode`] asserts them.
//! 1. Hashes that are kept rise, and are at most [`Sketch::EXACT`].
//! 2. There are 2ᵇ registers where there are any, each at most [`Sketch::LONGEST`].

use crate::codec::{Reader, Writer};
use crate::{Error, Result, invariant};

/// How many of the last hashes are known to be there, while hashes are kept.
const RECENT: usize = 1 << 10;

/// The different values of a set, by their hashes. It has 2ᵇ registers for a `BITS` of *b*, which
/// is 4 to 16.
///
/// ```
/// use esker_format::{Sketch, hash};
///
/// let mut sketch = Sketch::<10>::default();
/// sketch.extend([b"red", b"sky", b"red"].map(|text| hash::of_bytes(text)));
/// assert_eq!(sketch.count(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch<const BITS: u8>(Kept);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    /// Hashes, rising.
    Few(Vec<u64>),
    /// Registers, each with the longest run of zeros that it has seen, plus one; 0 for none.
    Many(Box<[u8]>),
}

impl<const BITS: u8> Default for Sketch<BITS> {
    fn default() -> Self {
        const { assert!(4 <= BITS && BITS <= 16, "16 to 65,536 registers") };
        Self(Kept::Few(Vec::new()))
    }
}

impl<const BITS: u8> Sketch<BITS> {
    /// How many registers there are.
    pub const REGISTERS: usize = 1 << BITS;
    /// The most values that are counted exactly; values with the same hash count once.
    pub const EXACT: usize = Self::REGISTERS / 16;
    /// The most that a register has.
    pub const LONGEST: u8 = 65 - BITS;

    /// Takes values in, by their hashes.
    pub fn extend(&mut self, hashes: impl IntoIterator<Item = u64>) {
        let mut hashes = hashes.into_iter();
        if let Kept::Few(_) = self.0 {
            let mut recent = [0; RECENT];
            for hash in hashes.by_ref() {
                // Few values come again and again.
                let slot = hash.to_le_bytes().first_chunk().map(|low| u16::from_le_bytes(*low));
                let slot = slot.and_then(|low| recent.get_mut(usize::from(low) % RECENT));
                if hash == 0 || slot.is_none_or(|slot| std::mem::replace(slot, hash) != hash) {
                    self.add(hash);
                    if matches!(self.0, Kept::Many(_)) {
                        break;
                    }
                }
            }
        }
        if let Kept::Many(registers) = &mut self.0 {
            hashes.for_each(|hash| Self::note(registers, hash));
        }
    }

    /// Takes a value in, by its hash.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        match &mut self.0 {
            Kept::Few(hashes) => {
                if let Err(place) = hashes.binary_search(&hash) {
                    hashes.insert(place, hash);
                    if hashes.len() > Self::EXACT {
                        self.grow();
                    }
                }
            }
            Kept::Many(registers) => Self::note(registers, hash),
        }
    }

    /// Takes in all that another has seen.
    pub fn merge(&mut self, other: &Self) {
        match &other.0 {
            Kept::Few(hashes) => hashes.iter().for_each(|hash| self.add(*hash)),
            Kept::Many(others) => {
                self.grow();
                if let Kept::Many(registers) = &mut self.0 {
                    let both = registers.iter_mut().zip(others);
                    both.for_each(|(own, other)| *own = (*own).max(*other));
                }
            }
        }
    }

    fn grow(&mut self) {
        if let Kept::Few(hashes) = &self.0 {
            let mut registers = vec![0; Self::REGISTERS].into_boxed_slice();
            hashes.iter().for_each(|hash| Self::note(&mut registers, *hash));
            self.0 = Kept::Many(registers);
        }
    }

    /// Notes a hash: its first bits name the register, the zeros behind them are counted.
    #[inline]
    fn note(registers: &mut [u8], hash: u64) {
        let (place, longest) = (hash >> (u64::BITS - u32::from(BITS)), hash << BITS);
        let length = (longest | 1 << (BITS - 1)).leading_zeros() + 1;
        // default: neither is more than 65,535
        let place = usize::from(u16::try_from(place).unwrap_or(u16::MAX));
        // default: the same
        let length = u8::try_from(length).unwrap_or(u8::MAX);
        if let Some(longest) = registers.get_mut(place) {
            *longest = (*longest).max(length);
        }
    }

    /// About how many different values it has seen.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is no number below zero, and what does not fit becomes the greatest"
    )]
    pub fn count(&self) -> u64 {
        let registers = match &self.0 {
            Kept::Few(hashes) => return hashes.len() as u64,
            Kept::Many(registers) => registers,
        };
        // How many registers have each length.
        let mut counts = [0u32; 66];
        for longest in registers {
            if let Some(count) = counts.get_mut(usize::from(*longest)) {
                *count += 1;
            }
        }
        let m = Self::REGISTERS as f64;
        // default: each length has a count
        let share = |length: u8| counts.get(usize::from(length)).map_or(0.0, |c| f64::from(*c) / m);
        let mut sum = full(1.0 - share(Self::LONGEST));
        for length in (1..Self::LONGEST).rev() {
            sum = (sum + share(length)) / 2.0;
        }
        sum += empty(share(0));
        (m / (2.0 * std::f64::consts::LN_2 * sum)).round() as u64
    }

    /// The least number of different values that it can have seen.
    #[must_use]
    pub fn least_count(&self) -> usize {
        match &self.0 {
            Kept::Few(hashes) => hashes.len(),
            Kept::Many(registers) => registers.iter().filter(|longest| **longest > 0).count(),
        }
    }

    /// Bytes of memory in use, but for the sketch itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kept::Few(hashes) => hashes.capacity() * size_of::<u64>(),
            Kept::Many(registers) => registers.len(),
        }
    }

    /// Appends the stored form: 0 and hashes after their count, or 1 and registers of six bits.
    pub fn encode(&self, out: &mut Writer) {
        match &self.0 {
            Kept::Few(hashes) => {
                out.u8(0);
                out.count(hashes.len());
                hashes.iter().for_each(|hash| out.u64(*hash));
            }
            Kept::Many(registers) => {
                out.u8(1);
                for four in registers.as_chunks::<4>().0 {
                    let word = four.iter().rev().fold(0, |w, longest| w << 6 | u32::from(*longest));
                    let [bytes @ .., _] = word.to_le_bytes();
                    out.raw(&bytes);
                }
            }
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a sketch.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        const PLACE: &str = "sketch";
        match input.u8()? {
            0 => {
                let count = input.count(Self::EXACT)?;
                let hashes = (0..count).map(|_| input.u64()).collect::<Result<Vec<u64>>>()?;
                let rise = hashes.is_sorted_by(|a, b| a < b);
                invariant!(rise, PLACE, "the hashes of {count} values do not rise");
                Ok(Self(Kept::Few(hashes)))
            }
            1 => {
                let mut registers = Vec::with_capacity(Self::REGISTERS);
                for three in input.raw(Self::REGISTERS / 4 * 3)?.as_chunks().0 {
                    let [a, b, c] = three.map(u32::from);
                    let word = a | b << 8 | c << 16;
                    // default: six bits fit
                    let six = |at: u32| u8::try_from(word >> at & 63).unwrap_or(u8::MAX);
                    registers.extend([six(0), six(6), six(12), six(18)]);
                }
                let most = Self::LONGEST;
                let bad = registers.iter().enumerate().find(|(_, longest)| **longest > most);
                invariant!(bad.is_none(), PLACE, "register and length {bad:?}, at most {most}");
                Ok(Self(Kept::Many(registers.into_boxed_slice())))
            }
            other => Err(Error::corrupt(format!("{PLACE}: unknown form {other}"))),
        }
    }
}

/// What a share of registers that have seen nothing adds to the sum: Σ 2ᵏ⁻¹ x^(2ᵏ), and x.
fn empty(share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut factor, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let next = sum + power * factor;
        factor += factor;
        if next <= sum {
            return sum;
        }
        sum = next;
    }
}

/// What registers that are not as long as can be (`share` of them) add to the sum.
fn full(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut factor, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        factor *= 0.5;
        let next = sum - (1.0 - root) * (1.0 - root) * factor;
        if next >= sum {
            return sum / 3.0;
        }
        sum = next;
    }
}

#[cfg(test)]
mod tests {
    use super::Sketch;
    use crate::codec::{Reader, Writer};
    use crate::hash;

    fn sketch<const BITS: u8>(numbers: std::ops::Range<u64>) -> Sketch<BITS> {
        let mut sketch = Sketch::default();
        sketch.extend(numbers.map(hash::of_word));
        sketch
    }

    #[test]
    fn a_count_is_near() {
        for (count, off) in
            [(0u64, 0), (1, 0), (256, 0), (1_000, 40), (10_000, 500), (300_000, 15_000)]
        {
            let found = sketch::<12>(0..count).count();
            assert!(found.abs_diff(count) <= off, "{count}: {found}");
        }
        for count in [0, 5, 64] {
            assert_eq!(sketch::<10>(7..7 + count).count(), count);
        }
        let mut count = 65;
        while count < 2_000_000 {
            let found = sketch::<10>(0..count).count();
            assert!(found.abs_diff(count) <= count / 10, "{count}: {found}");
            count += count / 4;
        }
    }

    /// Over many sets the errors are no more than is said, and to neither side.
    #[test]
    fn errors_are_those_of_the_paper() {
        for count in [300, 1_000, 2_500, 4_000, 20_000] {
            let (mut sum, mut squares, sets) = (0.0, 0.0, 200u64);
            for set in 0..sets {
                let from = set << 32;
                let found = sketch::<10>(from..from + count).count() as f64;
                let error = found / count as f64 - 1.0;
                (sum, squares) = (sum + error, squares + error * error);
            }
            let (bias, deviation) = (sum / sets as f64, (squares / sets as f64).sqrt());
            assert!(bias.abs() < 0.008 && deviation < 0.038, "{count}: {bias} {deviation}");
        }
    }

    #[test]
    fn halves_put_together_are_the_whole() {
        for count in [10u64, 60, 100, 300, 50_000] {
            let [mut whole, mut half, mut other] = [(); 3].map(|()| Sketch::<10>::default());
            for number in 0..count {
                whole.add(hash::of_word(number));
                if number % 3 == 0 { &mut half } else { &mut other }.add(hash::of_word(number));
            }
            other.merge(&half);
            half.merge(&other);
            assert_eq!((&half, &other), (&whole, &whole));
        }
    }

    #[test]
    fn values_that_come_again_change_nothing() {
        for count in [1u64, 64, 65, 5_000] {
            let mut sketch = sketch::<10>(0..count);
            let before = sketch.clone();
            sketch.extend((0..3 * count).map(|number| hash::of_word(number % count)));
            assert_eq!(sketch, before);
        }
        let mut zero = Sketch::<10>::default();
        zero.extend([0, 256, 0]);
        assert_eq!((zero.count(), zero.least_count()), (2, 2));
    }

    #[test]
    fn stored_forms_survive_a_round_trip_and_refuse_damage() {
        for count in [0, 1, 64, 65, 1_000_000] {
            let sketch = sketch::<10>(0..count);
            let mut out = Writer::new();
            sketch.encode(&mut out);
            let bytes = out.into_bytes();
            assert!(bytes.len() <= 769);
            let mut input = Reader::new(&bytes);
            assert_eq!(Sketch::decode(&mut input), Ok(sketch.clone()));
            input.finish().unwrap();
            for cut in 0..bytes.len() {
                assert!(Sketch::<10>::decode(&mut Reader::new(&bytes[..cut])).is_err());
            }
            if count > 64 {
                assert!(sketch.least_count() <= 1_024 && sketch.least_count() > 60);
            }
        }
        let refused =
            |bytes: &[u8]| Sketch::<10>::decode(&mut Reader::new(bytes)).unwrap_err().to_string();
        assert_eq!(refused(&[2]), "sketch: unknown form 2");
        assert!(refused(&[0, 65]).contains("65, expected at most 64"));
        let falling = [&[0, 2][..], &7u64.to_le_bytes(), &7u64.to_le_bytes()].concat();
        let message = "sketch: broken invariant: the hashes of 2 values do not rise";
        assert_eq!(refused(&falling), message);
        let mut long = vec![0; 769];
        (long[0], long[1]) = (1, 56);
        let message = "sketch: broken invariant: register and length Some((0, 56)), at most 55";
        assert_eq!(refused(&long), message);
    }
}
