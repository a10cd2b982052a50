//! What is known of when rows expire.

use std::sync::OnceLock;

use esker_format::{Field, FieldId, ValueRef};

/// True when a row with this value of the field has expired at a time, in microseconds since 1970.
#[must_use]
pub fn has_expired(value: ValueRef<'_>, now_us: i64) -> bool {
    matches!(value, ValueRef::Timestamp(at_us) if at_us <= now_us)
}

/// When the first row with a value of a field that all rows have expires.
pub(crate) fn initial_expiry(field: &Field) -> i64 {
    match field.initial.as_ref() {
        ValueRef::Timestamp(at_us) => at_us,
        _ => i64::MAX,
    }
}

/// What is known of when the rows of a segment expire, by the fields that were needed:
/// mostly one.
#[derive(Default)]
pub(crate) struct KnownExpiry(OnceLock<Box<OfField>>);

/// What is known of one field.
pub(crate) struct OfField {
    field: FieldId,
    /// The least time.
    pub least_us: i64,
    /// All times have been read.
    pub verified: OnceLock<()>,
    /// The next field.
    next: KnownExpiry,
}

impl KnownExpiry {
    /// What is known of a field, whose least time is to be found first.
    pub fn of(&self, field: FieldId, find_us: impl Fn() -> i64) -> &OfField {
        let mut at = self;
        loop {
            let known = at.0.get_or_init(|| {
                let (verified, next) = (OnceLock::new(), Self::default());
                Box::new(OfField { field, least_us: find_us(), verified, next })
            });
            if known.field == field {
                return known;
            }
            at = &known.next;
        }
    }
}
