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

/// What becomes of the sequence that a field has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityChange {
    /// It gets one. The caller gives it a default that names the sequence.
    Add(Identity),
    /// Whether statements give the field no other values.
    SetAlways(bool),
    /// It has none any more, and no default.
    Drop,
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
    pub(super) fn change_identity(&mut self, change: IdentityChange) -> Result<()> {
        let name = &self.name;
        let refused = |why: &str| Err(Error::invalid(format!("field {name:?} {why}")));
        match (change, self.identity) {
            (IdentityChange::Add(_), Some(_)) => refused("is an identity already"),
            (IdentityChange::Add(_), None) if self.nullable => {
                refused("may be NULL: an identity is NOT NULL, which is to be set before")
            }
            (IdentityChange::Add(_), None) if self.default.is_some() => {
                refused("has a default: an identity has that of its sequence; drop it before")
            }
            (IdentityChange::Add(identity), None) => {
                self.identity = Some(identity);
                Ok(())
            }
            (IdentityChange::SetAlways(is_always), Some(identity)) => {
                self.identity = Some(Identity { is_always, ..identity });
                Ok(())
            }
            (IdentityChange::Drop, Some(_)) => {
                (self.identity, self.default) = (None, None);
                Ok(())
            }
            (_, None) => refused("is no identity"),
        }
    }

    /// The sequence that comes and goes with the field.
    #[must_use]
    pub fn own_sequence(&self) -> Option<&str> {
        self.identity.and_then(|_| self.default_sequence())
    }
}
