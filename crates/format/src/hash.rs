//! Hashes of words and of bytes.
//!
//! They are the same on every machine and in every version: segments keep what is made of them,
//! and a run repeats. They are no defence against values that are chosen to collide.

/// A hash of a word that no other word has: each step can be undone.
#[must_use]
#[inline]
pub fn of_word(word: u64) -> u64 {
    let word = (word ^ (word >> 32)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let word = (word ^ (word >> 29)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 32)
}

/// A hash of bytes: eight at a time, each folded in by a 128-bit multiplication.
#[must_use]
#[inline]
pub fn of_bytes(bytes: &[u8]) -> u64 {
    const START: u64 = 0x9e37_79b9_7f4a_7c15;
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut hash = START ^ bytes.len() as u64;
    for eight in eights {
        hash = fold(hash ^ u64::from_le_bytes(*eight));
    }
    let mut last = [0u8; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    fold(hash ^ u64::from_le_bytes(last))
}

#[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
#[inline]
fn fold(v: u64) -> u64 {
    let wide = u128::from(v ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db_u128;
    (wide as u64) ^ ((wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::{of_bytes, of_word};

    #[test]
    fn no_two_words_have_one_hash() {
        let mut hashes: Vec<u64> =
            (0..100_000u64).flat_map(|i| [i, i << 32, u64::MAX - i].map(of_word)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        // 0 is there twice.
        assert_eq!(hashes.len(), 300_000 - 1);
    }

    /// Segments that are stored have sketches of these.
    #[test]
    fn hashes_never_change() {
        assert_eq!([0, 1, u64::MAX].map(of_word), WORDS);
        assert_eq!([&b""[..], b"a", b"8 bytes.", b"more than 8"].map(of_bytes), BYTES);
    }

    const WORDS: [u64; 3] = [0, 0x5f49_31e5_1b58_8313, 0xd1af_363a_6605_da72];
    const BYTES: [u64; 4] = [
        0x7f40_f511_7e11_298b,
        0x1ff0_d35d_0194_04cc,
        0x7478_d8c8_0bbc_ac83,
        0xe37a_04ed_65d2_8623,
    ];
}
