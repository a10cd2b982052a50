//! The headers `If-Match` and `If-None-Match`: lists of entity tags (RFC 9110, section 13.1).

use crate::{Error, Result};

/// What a header lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tags {
    /// `*`: whatever is there.
    Any,
    Some(Vec<Tag>),
}

/// A tag as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    is_weak: bool,
    /// With its quotes.
    text: String,
}

impl Tags {
    /// Reads the value of a header.
    ///
    /// # Errors
    /// `InvalidRequest` for anything else than `*` or tags in quotes, each with or without `W/`.
    pub fn parse(name: &str, value: &str) -> Result<Self> {
        if value.trim() == "*" {
            return Ok(Self::Any);
        }
        let wrong = |found: &str| {
            let message =
                format!("header {name}: expected * or tags in quotes, found {:?}", found.trim());
            Error::invalid(message)
        };
        let (mut tags, mut rest) = (Vec::new(), value);
        loop {
            // A list may have empty elements.
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                break;
            }
            let (is_weak, quoted) = match rest.strip_prefix("W/") {
                Some(quoted) => (true, quoted),
                None => (false, rest),
            };
            let inner = quoted.strip_prefix('"').ok_or_else(|| wrong(rest))?;
            let (inner, after) = inner.split_once('"').ok_or_else(|| wrong(rest))?;
            if !after.trim_start().is_empty() && !after.trim_start().starts_with(',') {
                return Err(wrong(rest));
            }
            tags.push(Tag { is_weak, text: format!("\"{inner}\"") });
            rest = after;
        }
        if tags.is_empty() { Err(wrong(value)) } else { Ok(Self::Some(tags)) }
    }

    /// True when a strong tag is among them by the weak comparison, that of `If-None-Match`.
    pub fn has_weakly(&self, tag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|known| known.text == tag),
        }
    }

    /// True when a strong tag is among them by the strong comparison, that of `If-Match`.
    pub fn has_strongly(&self, tag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Some(tags) => tags.iter().any(|known| !known.is_weak && known.text == tag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_as_the_standard_says() {
        // The header, and whether "a" is among its tags: weakly, strongly.
        let cases = [
            ("*", true, true),
            (r#""a""#, true, true),
            (r#"W/"a""#, true, false),
            (r#""b", W/"a""#, true, false),
            (r#" "b" ,, "a","#, true, true),
            (r#""b,a", "c""#, false, false),
            (r#"W/"b""#, false, false),
            (r#""A""#, false, false),
        ];
        for (text, weakly, strongly) in cases {
            let tags = Tags::parse("if-match", text).unwrap();
            assert_eq!(tags.has_weakly(r#""a""#), weakly, "{text}");
            assert_eq!(tags.has_strongly(r#""a""#), strongly, "{text}");
        }
        for text in ["a", "", ",", r#""a"#, r#"w/"a""#, r#""a" "b""#, r#"*, "a""#] {
            let error = Tags::parse("if-match", text).unwrap_err().to_string();
            assert!(error.contains("header if-match: expected * or tags in quotes"), "{error}");
        }
    }
}
