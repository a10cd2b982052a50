//! What computes the value of a field from the others of its row.

use crate::codec::{Reader, Writer};
use crate::{Error, Result};

/// What computes the value of a field from the others of its row, whenever the row is written.
/// Nobody gives such a field a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The expression, in the stored form of the layer that evaluates it.
    pub expression: String,
    /// Whether it was declared VIRTUAL. Its values are stored all the same: the expression gives
    /// the same whenever it is computed.
    pub is_virtual: bool,
}

const STORED: u8 = 1;
const VIRTUAL: u8 = 2;

impl Generated {
    pub(super) fn encode(&self, out: &mut Writer) {
        out.u8(if self.is_virtual { VIRTUAL } else { STORED });
        out.text(&self.expression);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let is_virtual = match input.u8()? {
            STORED => false,
            VIRTUAL => true,
            other => return Err(Error::corrupt(format!("kind {other} of a generated field"))),
        };
        Ok(Self { expression: input.text()?.to_owned(), is_virtual })
    }

    /// The word that says how its values are kept, as statements write it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.is_virtual { "VIRTUAL" } else { "STORED" }
    }
}
