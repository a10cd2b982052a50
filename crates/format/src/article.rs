//! The indefinite article before names that messages put in.

use std::fmt;

/// Shows a name of the product with `a` or `an` before it, as it sounds: `an integer`, `a uuid`,
/// `an f64`.
#[must_use]
pub fn with_article(name: &str) -> impl fmt::Display + '_ {
    let article = if sounds_as_vowel(name) { "an" } else { "a" };
    fmt::from_fn(move |f| write!(f, "{article} {name}"))
}

fn sounds_as_vowel(name: &str) -> bool {
    let mut letters = name.chars().map(|letter| letter.to_ascii_lowercase());
    match (letters.next(), letters.next(), letters.next()) {
        (Some('a' | 'e' | 'i' | 'o'), ..) => true,
        // As in unsigned and upper, not as in uuid, unique, user and u64.
        (Some('u'), Some('n'), third) => third != Some('i'),
        (Some('u'), Some('p'), _) => true,
        // The letter by itself: f32.
        (Some('f'), Some('0'..='9'), _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::with_article;
    use crate::schema::IndexKind;
    use crate::{Interval, ValueRef};

    #[test]
    fn it_is_as_the_name_sounds() {
        let shown = |name: &str| with_article(name).to_string();
        let none = Interval::default();
        let interval = ValueRef::Interval(none.stored());
        for (value, expected) in [
            (ValueRef::Int(1), "an integer"),
            (ValueRef::Uint(1), "an unsigned integer"),
            (interval, "an interval"),
            (ValueRef::Enum(b""), "an enum"),
            (ValueRef::Ipv4(1), "an ipv4 address"),
            (ValueRef::Bool(true), "a bool"),
            (ValueRef::Float(1.0), "a floating-point number"),
            (ValueRef::Uuid(&[0; 16]), "a uuid"),
            (ValueRef::Text("a"), "a text"),
        ] {
            assert_eq!(shown(value.kind_name()), expected);
        }
        let kinds = IndexKind::ALL.map(|kind| shown(kind.name()));
        assert_eq!(kinds, ["an ordered", "a trigram", "a bitmap"]);
        for (name, expected) in [("u64", "a u64"), ("i64", "an i64"), ("f64", "an f64")] {
            assert_eq!(shown(name), expected);
        }
    }
}
