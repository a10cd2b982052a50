//! Events that are stored once: a sender may send one again, which is the same by one of its
//! values.
//!
//! ```text
//! dedupe = 'request_id within 1 hour'
//!           │                 └ two events whose times are no further apart …
//!           └ … and that have the same value of this field are one
//! ```

use super::stream::{Span, Stream, span_us};
use super::{FieldId, Schema};
use crate::codec::{Reader, Writer};
use crate::{DataType, Error, Result};

/// What says in the block of a stream that this follows.
pub(super) const FLAG: u8 = 1 << 3;
/// The word between the field and the time.
const WITHIN: &str = " within ";

/// Which events are the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// The field that they have the same value of. NULL is the same as nothing.
    pub field: FieldId,
    /// By how many microseconds their times may differ.
    pub within_us: u64,
}

/// The field, and the time in microseconds.
pub(super) fn read(text: &str) -> Result<(String, u64)> {
    let expected = "expected a field and a time such as 'request_id within 1 hour'";
    let invalid =
        || Error::invalid(format!("option dedupe of a stream: {expected}, found {text:?}"));
    let at = text.to_ascii_lowercase().rfind(WITHIN).ok_or_else(invalid)?;
    let (field, rest) = text.split_at_checked(at).ok_or_else(invalid)?;
    let span = rest.get(WITHIN.len()..).ok_or_else(invalid)?;
    let field = field.trim();
    if field.is_empty() {
        return Err(invalid());
    }
    match span_us("dedupe", span.trim())? {
        0 => Err(invalid()),
        within_us => Ok((field.to_owned(), within_us)),
    }
}

impl Dedupe {
    /// As a statement has it.
    pub(super) fn text(self, field: &str) -> String {
        format!("{field}{WITHIN}{}", Span(self.within_us))
    }

    pub(super) fn encode(self, out: &mut Writer) {
        out.u16(self.field.0);
        out.u64(self.within_us);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let (field, within_us) = (FieldId(input.u16()?), input.u64()?);
        if within_us == 0 || i64::try_from(within_us).is_err() {
            return Err(Error::corrupt(format!("events that are one within {within_us} us")));
        }
        Ok(Self { field, within_us })
    }
}

impl Schema {
    /// Which events are stored once, where that is said.
    #[must_use]
    #[inline]
    pub fn dedupe(&self) -> Option<Dedupe> {
        self.stream()?.dedupe
    }

    pub(super) fn validate_dedupe(&self, stream: &Stream) -> Result<()> {
        let Some(dedupe) = stream.dedupe else { return Ok(()) };
        let missing = || Error::invalid("dedupe by a field that is not there");
        let field = self.field_of(dedupe.field).ok_or_else(missing)?;
        let (name, found) = (&field.name, field.type_text());
        let is_exact = !matches!(
            field.data_type,
            DataType::F32
                | DataType::F64
                | DataType::Json
                | DataType::Interval
                | DataType::Bool
                | DataType::Enum
                | DataType::List(_)
        );
        if !is_exact || field.id == stream.time {
            let expected = "expected text, bytes, a whole number, a decimal, a date or a uuid";
            return Err(Error::invalid(format!("dedupe by {name:?}: {expected}, found {found}")));
        }
        match field.generated {
            Some(_) => {
                let message = "expected a field that events bring, found a generated one";
                Err(Error::invalid(format!("dedupe by {name:?}: {message}")))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::StreamOption;

    fn schema(text: &str) -> Result<Schema> {
        let fields = Schema::builder().field("t", DataType::Timestamp).field("f", DataType::F64);
        let fields = fields.nullable("request id", DataType::Text);
        fields.stream("t", [StreamOption::read("dedupe", Some(text))?]).build()
    }

    #[test]
    fn what_is_said_is_kept() {
        let schema = schema("request id WITHIN 90 minutes").unwrap();
        let dedupe = schema.dedupe().unwrap();
        assert_eq!((dedupe.field, dedupe.within_us), (FieldId(3), 5_400_000_000));
        let options = schema.stream_options().unwrap();
        assert!(options.contains(&("dedupe", "request id within 90 minutes".to_owned())));
        let mut out = Writer::new();
        schema.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(Schema::decode(&mut Reader::new(&bytes)).unwrap().dedupe(), Some(dedupe));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, expected) in [
            ("request id", "such as 'request_id within 1 hour'"),
            (" within 1 hour", "such as 'request_id within 1 hour'"),
            ("request id within 0 seconds", "such as 'request_id within 1 hour'"),
            ("request id within a while", "expected a length of time"),
            ("other within 1 hour", "other"),
            ("t within 1 hour", "dedupe by \"t\": expected text"),
            ("f within 1 hour", "found f64"),
        ] {
            let e = schema(text).unwrap_err().to_string();
            assert!(e.contains(expected), "{text}: {e}");
        }
    }
}
