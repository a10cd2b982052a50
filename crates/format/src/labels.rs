//! The labels of an enum field, and its values.
//!
//! A value is stored as two bytes of its place among the labels, big-endian, and then the label. So
//! it says what it is without its field, and values compare as bytes in the order in which the
//! labels were declared.

use std::fmt;

use crate::codec::{Reader, Writer};
use crate::text::shown;
use crate::{Error, Result, ValueRef};

/// The most labels of a field.
pub const LABELS_MAX: usize = 65_535;

/// The longest label, in bytes.
pub const LABEL_BYTES_MAX: usize = 255;

/// How many labels an error lists.
const LISTED_MAX: usize = 20;

/// The labels of a field, in their order. There is at least one, and none twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Values as they are stored.
    values: Vec<Vec<u8>>,
    /// Their places, by the order of their texts.
    by_text: Vec<u16>,
}

impl Labels {
    /// Labels in the order that their values have.
    ///
    /// # Errors
    /// `InvalidInput` for no label or too many, and for one that is empty, too long or repeated.
    pub fn new<L: AsRef<str>>(labels: impl IntoIterator<Item = L>) -> Result<Self> {
        let mut values: Vec<Vec<u8>> = Vec::new();
        for label in labels {
            let label = label.as_ref();
            if label.is_empty() || label.len() > LABEL_BYTES_MAX {
                let (len, label) = (label.len(), shown(label.as_bytes()));
                return Err(Error::invalid(format!(
                    "an enum's label has 1 to {LABEL_BYTES_MAX} bytes, found {len}: {label}"
                )));
            }
            let place = u16::try_from(values.len()).ok().filter(|_| values.len() < LABELS_MAX);
            let place = place.ok_or_else(|| {
                Error::invalid(format!("an enum has at most {LABELS_MAX} labels"))
            })?;
            let [low, high] = place.to_le_bytes();
            values.push([&[high, low], label.as_bytes()].concat());
        }
        if values.is_empty() {
            return Err(Error::invalid("an enum has at least one label, like enum(red, green)"));
        }
        let mut by_text: Vec<u16> = (0..=u16::MAX).take(values.len()).collect();
        let text = |place: &u16| values.get(usize::from(*place)).map(|v| label(v));
        by_text.sort_by_key(|place| text(place).map(str::to_owned));
        let repeated = by_text.windows(2).find_map(|pair| match pair {
            [a, b] => text(a).filter(|label| Some(*label) == text(b)),
            _ => None,
        });
        if let Some(repeated) = repeated {
            return Err(Error::invalid(format!("label {repeated:?} is declared twice")));
        }
        Ok(Self { values, by_text })
    }

    /// The labels, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(|value| label(value))
    }

    /// The value of a label.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<ValueRef<'_>> {
        let value = |place: &u16| self.values.get(usize::from(*place));
        // default: each place is that of a value.
        let compare = |place: &u16| value(place).map_or("", |v| label(v)).cmp(text);
        let at = self.by_text.binary_search_by(compare).ok()?;
        Some(ValueRef::Enum(value(self.by_text.get(at)?)?))
    }

    /// The value of a label.
    ///
    /// # Errors
    /// `InvalidInput` listing the labels.
    pub fn expect(&self, text: &str) -> Result<ValueRef<'_>> {
        self.find(text).ok_or_else(|| {
            Error::invalid(format!(
                "expected {}, found {}",
                self.expected(),
                shown(text.as_bytes())
            ))
        })
    }

    /// What a value looks like, for errors.
    #[must_use]
    pub fn expected(&self) -> String {
        let listed: Vec<_> = self.iter().take(LISTED_MAX).map(quoted).collect();
        let rest = self.values.len().saturating_sub(LISTED_MAX);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!("one of {}{more}", listed.join(", "))
    }

    /// True for a value of these labels in its stored form.
    #[must_use]
    pub fn has_value(&self, value: &[u8]) -> bool {
        let Some([high, low]) = value.first_chunk::<2>() else { return false };
        let place = usize::from(u16::from_le_bytes([*low, *high]));
        self.values.get(place).is_some_and(|known| known == value)
    }

    /// Appends the stored form: a count of labels, and each as text.
    pub fn encode(&self, out: &mut Writer) {
        out.count(self.values.len());
        self.iter().for_each(|label| out.text(label));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not labels.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let count = input.count(LABELS_MAX)?;
        let mut labels = Vec::new();
        for _ in 0..count {
            labels.push(input.text()?);
        }
        Self::new(labels).map_err(|e| Error::corrupt(e.to_string()))
    }
}

/// The label of a stored value; empty for what is none.
#[must_use]
pub fn label(value: &[u8]) -> &str {
    let text = value.get(2..).and_then(|text| std::str::from_utf8(text).ok());
    text.unwrap_or_default() // default: what is no value has no label, as said above.
}

/// Checks that bytes have the form of a value of some labels.
///
/// # Errors
/// `Corrupt` when they do not.
pub fn check_value(value: &[u8]) -> Result<()> {
    let fits = value.get(2..).is_some_and(|text| {
        (1..=LABEL_BYTES_MAX).contains(&text.len()) && std::str::from_utf8(text).is_ok()
    });
    if fits { Ok(()) } else { Err(Error::corrupt(format!("enum value of {} bytes", value.len()))) }
}

/// A label as schemas write it: in quotes unless it is a plain word.
fn quoted(label: &str) -> String {
    let plain = label.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain { label.to_owned() } else { format!("'{}'", label.replace('\'', "''")) }
}

impl fmt::Display for Labels {
    /// `red, 'dark green'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, label) in self.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, quoted(label))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_and_have_their_order() {
        let labels = Labels::new(["small", "large", "a b", "Ä"]).unwrap();
        assert_eq!(labels.to_string(), "small, large, 'a b', Ä");
        let (small, large) = (labels.find("small").unwrap(), labels.find("large").unwrap());
        assert!(small < large && large < labels.find("Ä").unwrap());
        assert_eq!(large.to_string(), "large");
        assert!(labels.has_value(large.as_bytes().unwrap()));
        assert!(!labels.has_value(b"\0\0large") && !labels.has_value(b"\0"));
        assert_eq!(
            labels.expect("Small").unwrap_err().to_string(),
            "expected one of small, large, 'a b', Ä, found \"Small\""
        );
        let mut out = Writer::new();
        labels.encode(&mut out);
        assert_eq!(Labels::decode(&mut Reader::new(out.as_bytes())).unwrap(), labels);
    }

    #[test]
    fn bad_labels_are_refused() {
        let long = "x".repeat(256);
        for labels in [&[][..], &["a", "b", "a"], &[""], &[long.as_str()]] {
            Labels::new(labels).unwrap_err();
        }
        let many = |count: usize| Labels::new((0..count).map(|i| i.to_string()));
        assert_eq!(many(LABELS_MAX).unwrap().iter().len(), LABELS_MAX);
        many(LABELS_MAX + 1).unwrap_err();
    }
}
