//! How texts end: their last eight bytes are one word, and one comparison tells nearly all.

use crate::evaluate::Mask;

const WORD_BYTES: usize = 8;

/// Removes the rows that do not end with `wanted`, or with `negated` those that do. Text `i` is
/// `heap[offsets[i] - start..offsets[i + 1] - start]`.
pub(super) fn keep(
    (offsets, start, heap): (&[u32], u32, &[u8]),
    wanted: &[u8],
    negated: bool,
    mask: &mut Mask,
) {
    let last = wanted.len().min(WORD_BYTES);
    // Bytes that do not count are shifted out.
    let shift = 8 * (WORD_BYTES - last);
    let word_of = |bytes: &[u8]| {
        let word = bytes.last_chunk().map(|eight| u64::from_le_bytes(*eight));
        word.map(|word| if last == 0 { 0 } else { word >> shift })
    };
    let mut padded = [0; WORD_BYTES].to_vec();
    padded.extend_from_slice(wanted);
    let wanted_word = word_of(&padded);
    let place = |offset: Option<&u32>| offset.map_or(0, |o| o.wrapping_sub(start) as usize);
    mask.retain_rows(|row| {
        let (from, to) = (place(offsets.get(row)), place(offsets.get(row + 1)));
        let ends = match word_of(heap.get(..to).unwrap_or_default()) {
            // What stands before the text may be in the word, too.
            Some(word) => {
                Some(word) == wanted_word
                    && to - from >= wanted.len()
                    && (wanted.len() <= WORD_BYTES
                        || heap.get(from..to).is_some_and(|text| text.ends_with(wanted)))
            }
            None => heap.get(from..to).is_some_and(|text| text.ends_with(wanted)),
        };
        ends != negated
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_and_end_is_told_as_by_looking_at_it() {
        let texts = ["", "a", "ba", "aaaaaaa", "aaaaaaaa", "baaaaaaaa", "xaaaaaaaaaab", "b", "éa"];
        let heap = texts.concat();
        let mut offsets = vec![7];
        for text in texts {
            let len = u32::try_from(text.len()).unwrap();
            offsets.push(offsets.last().unwrap() + len);
        }
        for wanted in ["", "a", "ba", "b", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaaaab", "é", "éa"] {
            for negated in [false, true] {
                let mut mask = Mask::all(texts.len());
                keep((&offsets, 7, heap.as_bytes()), wanted.as_bytes(), negated, &mut mask);
                let rows = (0u32..).zip(texts);
                let right = rows.filter(|(_, text)| text.ends_with(wanted) != negated);
                assert_eq!(mask.rows(), right.map(|(row, _)| row).collect::<Vec<_>>(), "{wanted}");
            }
        }
    }
}
