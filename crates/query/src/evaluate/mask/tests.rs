//! Masks agree with lists of bools.

use esker_format::Validity;
use proptest::prelude::*;

use super::Mask;

fn rows(mask: &Mask) -> Vec<usize> {
    mask.rows().into_iter().map(|row| row as usize).collect()
}

#[test]
fn words_past_the_end_are_empty() {
    for len in [0, 1, 63, 64, 65, 8_192] {
        let mask = Mask::all(len);
        assert_eq!((mask.count(), mask.len(), mask.is_all()), (len, len, true));
        assert_eq!(Mask::from_words(&[u64::MAX; 128], len), mask);
        assert!(Mask::none(len).is_empty());
    }
}

proptest! {
    #[test]
    fn retain_keeps_what_passes(values in prop::collection::vec(any::<u8>(), 0..300), least: u8) {
        let mut mask = Mask::all(values.len());
        mask.retain(&values, |v| v >= least);
        let expected: Vec<_> = (0..values.len()).filter(|i| values[*i] >= least).collect();
        prop_assert_eq!(rows(&mask), expected.clone());
        let mut again = Mask::all(values.len());
        again.retain_rows(|row| values[row] >= least);
        prop_assert_eq!(&again, &mask);
        mask.truncate(3);
        prop_assert_eq!(rows(&mask), &expected[..expected.len().min(3)]);
    }

    #[test]
    fn validity_is_read_at_any_offset(
        valid in prop::collection::vec(any::<bool>(), 0..300), offset in 0usize..8,
    ) {
        let mut bits = vec![0u8; (valid.len() + offset).div_ceil(8)];
        for (i, _) in valid.iter().enumerate().filter(|(_, v)| **v) {
            bits[(i + offset) / 8] |= 1 << ((i + offset) % 8);
        }
        let expected: Vec<_> = (0..valid.len()).filter(|i| valid[*i]).collect();
        let mask = Mask::valid(&Validity::ValidBits { bits: &bits, offset }, valid.len());
        prop_assert_eq!(rows(&mask), expected.clone());
        let nulls: Vec<u8> = valid.iter().map(|v| u8::from(!v)).collect();
        let mask = Mask::valid(&Validity::NullBytes(&nulls), valid.len());
        prop_assert_eq!(rows(&mask), expected);
    }
}
