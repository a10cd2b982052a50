//! Letters without their case: the one folding that every comparison without case, and every index
//! of parts of texts, goes by.

use std::borrow::Cow;

/// A text with its letters in one case.
///
/// ```
/// assert_eq!(esker_format::case::folded("Straße ΣΑΣ"), "straße σασ");
/// ```
#[must_use]
pub fn folded(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        Cow::Owned(text.chars().map(fold).collect())
    } else if text.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// A letter's form in which all its cases are one, by Unicode's simple case folding: one character
/// for one, whatever stands beside it. So the three sigmas are equal, and `_` stands for as many
/// characters as without regard to case.
///
/// ```
/// assert_eq!(esker_format::case::fold('Ö'), 'ö');
/// ```
#[must_use]
pub fn fold(c: char) -> char {
    fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
        characters.next().filter(|_| characters.next().is_none())
    }
    match c {
        // Its capital is that of another letter.
        '\u{131}' => c,
        // Equal letters that have no capital of their own.
        '\u{1fd3}' => '\u{390}',
        '\u{1fe3}' => '\u{3b0}',
        '\u{fb05}' => '\u{fb06}',
        _ => {
            // default: a letter stays where another case of it would be several letters.
            let upper = single(c.to_uppercase()).unwrap_or(c);
            single(upper.to_lowercase()).unwrap_or(upper) // default: as above.
        }
    }
}
