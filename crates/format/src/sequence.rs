//! Named sequences: numbers that are each given out once.

use std::sync::Arc;

use crate::codec::{Reader, Writer};
use crate::{Error, Result};

/// The most sequences of a database.
pub const SEQUENCES_MAX: usize = 65_536;

/// A sequence: where it starts, how far it steps, and how many of its values are gone.
///
/// ```
/// use esker_format::Sequence;
///
/// let sequence = Sequence { given: 3, ..Sequence::new(10, -5)? };
/// assert_eq!(sequence.value(0), Some(10));
/// assert_eq!(sequence.next(), Some(-5));
/// # Ok::<(), esker_format::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The first value.
    pub start: i64,
    /// From one value to the next; not 0.
    pub increment: i64,
    /// How many values may have been given out.
    pub given: u64,
    /// What its users say of it; stored behind it.
    pub comment: Option<Arc<str>>,
}

impl Sequence {
    /// A sequence that has given out nothing.
    ///
    /// # Errors
    /// `InvalidInput` for an increment of 0.
    pub fn new(start: i64, increment: i64) -> Result<Self> {
        if increment == 0 {
            return Err(Error::invalid("the increment of a sequence is not 0"));
        }
        Ok(Self { start, increment, given: 0, comment: None })
    }

    /// The value after `before` others; `None` past the least or greatest number there is.
    #[must_use]
    pub fn value(&self, before: u64) -> Option<i64> {
        let distance = i128::from(self.increment).checked_mul(i128::from(before))?;
        i64::try_from(i128::from(self.start).checked_add(distance)?).ok()
    }

    /// The next value; `None` once there are no more.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        self.value(self.given)
    }

    /// Appends the stored form, without the comment.
    pub fn encode(&self, out: &mut Writer) {
        out.i64(self.start);
        out.i64(self.increment);
        out.varint(self.given);
    }

    /// Reads the stored form, without the comment.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a sequence.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let new = Self::new(input.i64()?, input.i64()?);
        let new = new.map_err(|e| Error::corrupt(e.to_string()))?;
        Ok(Self { given: input.varint()?, ..new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_the_last_number() {
        let sequence = Sequence::new(i64::MAX - 1, 1).unwrap();
        assert_eq!(sequence.value(1), Some(i64::MAX));
        assert_eq!(sequence.value(2), None);
        assert_eq!(sequence.value(u64::MAX), None);
        let falling = Sequence::new(i64::MIN + 1, -2).unwrap();
        assert_eq!((falling.value(0), falling.value(1)), (Some(i64::MIN + 1), None));
        assert!(Sequence::new(1, 0).is_err());
    }
}
