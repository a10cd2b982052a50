//! Grams: any three bytes next to each other in a text whose letters are in one case.
//!
//! A text that has some part has all grams of the part, whatever their case. So the texts that have
//! all grams of a part are few, and all that have the part are among them.

use std::borrow::Cow;

use crate::case::folded;

/// Bytes of a gram.
pub const GRAM_BYTES: usize = 3;

/// The letters of stored bytes in one case, as grams are taken of them.
fn in_one_case(text: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(text) {
        Ok(text) => match folded(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
        Err(_) => Cow::Borrowed(text),
    }
}

/// Visits the grams of a text, as numbers below 2²⁴, in their order; some come more than once.
///
/// ```
/// let mut count = 0;
/// esker_format::grams::for_each("Banana", |_| count += 1);
/// assert_eq!(count, 4);
/// ```
pub fn for_each(text: &str, mut visit: impl FnMut(u32)) {
    for_each_of_bytes(text.as_bytes(), &mut visit);
}

/// As [`for_each`], of the bytes of a stored text.
pub fn for_each_of_bytes(text: &[u8], visit: &mut dyn FnMut(u32)) {
    for window in in_one_case(text).windows(GRAM_BYTES) {
        visit(window.iter().fold(0, |gram, byte| gram << 8 | u32::from(*byte)));
    }
}

/// The grams of a text, each once, rising. None when it has fewer than three bytes.
///
/// ```
/// use esker_format::grams;
///
/// assert_eq!(grams::of("Abc"), grams::of("aBC"));
/// assert_eq!(grams::of("banana").len(), 3);
/// assert_eq!(grams::of("ab"), []);
/// ```
#[must_use]
pub fn of(text: &str) -> Vec<u32> {
    let mut grams = Vec::new();
    for_each(text, |gram| grams.push(gram));
    grams.sort_unstable();
    grams.dedup();
    grams
}
