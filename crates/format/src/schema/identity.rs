//! Fields with a sequence of their own.

use super::Field;
use crate::codec::{Reader, Writer};
use crate::{Error, Result, Sequence};

/// That a field has the sequence that its default takes values of for itself: the sequence comes
/// and goes with the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Statements give it no other values: `GENERATED ALWAYS AS IDENTITY`.
    pub is_always: bool,
    /// The first value.
    pub start: i64,
    /// From one value to the next; not 0.
    pub increment: i64,
}

impl Default for Identity {
    fn default() -> Self {
        Self { is_always: false, start: 1, increment: 1 }
    }
}

const ALWAYS: u8 = 1;
const BY_DEFAULT: u8 = 2;

impl Identity {
    /// The sequence, which has given out nothing.
    ///
    /// # Errors
    /// `InvalidInput` for an increment of 0.
    pub fn sequence(self) -> Result<Sequence> {
        Sequence::new(self.start, self.increment)
    }

    pub(super) fn encode(self, out: &mut Writer) {
        out.u8(if self.is_always { ALWAYS } else { BY_DEFAULT });
        out.i64(self.start);
        out.i64(self.increment);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let is_always = match input.u8()? {
            ALWAYS => true,
            BY_DEFAULT => false,
            other => return Err(Error::corrupt(format!("kind {other} of an identity"))),
        };
        Ok(Self { is_always, start: input.i64()?, increment: input.i64()? })
    }
}

impl Field {
    /// The sequence that comes and goes with the field.
    #[must_use]
    pub fn own_sequence(&self) -> Option<&str> {
        self.identity.and_then(|_| self.default_sequence())
    }
}
