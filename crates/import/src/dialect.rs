//! How rows are written in a file.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Fields with delimiters between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Csv {
    pub(crate) delimiter: u8,
    /// What stands around fields that hold delimiters or line ends.
    pub(crate) quote: Option<u8>,
    /// What makes the next byte of a quoted field stand for itself; without it a quote is doubled.
    pub(crate) escape: Option<u8>,
}

/// How rows are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A line a row, more or less.
    Csv(Csv),
    /// A JSON object a line.
    Lines,
    /// JSON objects in an array.
    Array,
    /// JSON objects in an object: the names are the keys of the rows.
    Keyed,
}

impl Dialect {
    pub(crate) fn is_json(self) -> bool {
        !matches!(self, Self::Csv(_))
    }
}

impl Csv {
    #[cfg(test)]
    pub(crate) fn commas() -> Self {
        Self { delimiter: b',', quote: Some(b'"'), escape: None }
    }

    /// Whether there is a quote anywhere.
    pub(crate) fn has_quotes(&self, bytes: &[u8]) -> bool {
        self.quote.is_some_and(|quote| memchr(quote, bytes).is_some())
    }

    /// Whether a field that starts so is a quoted one.
    #[inline]
    pub(crate) fn opens(&self, first: Option<&u8>) -> bool {
        first.is_some() && first == self.quote.as_ref()
    }

    /// The position of the quote that closes the one at `opening`.
    pub(crate) fn closing_quote(&self, bytes: &[u8], opening: usize) -> Option<usize> {
        let quote = self.quote?;
        let mut position = opening + 1;
        loop {
            let rest = bytes.get(position..)?;
            let ahead = match self.escape {
                Some(escape) => memchr2(quote, escape, rest)?,
                None => memchr(quote, rest)?,
            };
            let found = position + ahead;
            let is_quote = bytes.get(found) == Some(&quote);
            let doubled = self.escape.is_none() && bytes.get(found + 1) == Some(&quote);
            if is_quote && !doubled {
                return Some(found);
            }
            position = found + 2;
        }
    }

    /// A field without the quotes around it, and what is escaped inside as it is meant.
    pub(crate) fn unquoted<'a>(&self, raw: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(quote) = self.quote else { return Cow::Borrowed(raw) };
        let inner = match raw {
            [first, inner @ .., last] if *first == quote && *last == quote => inner,
            _ => return Cow::Borrowed(raw),
        };
        let escape = self.escape.unwrap_or(quote);
        if memchr(escape, inner).is_none() {
            return Cow::Borrowed(inner);
        }
        let mut plain = Vec::with_capacity(inner.len());
        let mut escaped = false;
        for byte in inner {
            escaped = *byte == escape && !escaped;
            if !escaped {
                plain.push(*byte);
            }
        }
        Cow::Owned(plain)
    }

    /// The position after the first line end that is not within quotes, as the splitter sees it:
    /// where to go on behind a record that is not one.
    pub(crate) fn record_end(&self, bytes: &[u8], start: usize) -> Option<usize> {
        let mut position = start;
        let mut field_start = true;
        loop {
            let rest = bytes.get(position..)?;
            if field_start && self.opens(rest.first()) {
                position = self.closing_quote(bytes, position)? + 1;
                field_start = false;
                continue;
            }
            let found = position + memchr2(self.delimiter, b'\n', rest)?;
            position = found + 1;
            if bytes.get(found) == Some(&b'\n') {
                return Some(position);
            }
            field_start = true;
        }
    }
}
