//! Schemas of SQL: names that stand before those of tables. In code they are namespaces, since a
//! schema is what the rows of a table are.

use crate::codec::{Reader, Writer};
use crate::{Result, comment};

/// The most namespaces of a database.
pub const NAMESPACES_MAX: usize = 65_536;

/// What is known of a namespace beside its name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Namespace {
    /// What its users say of it.
    pub comment: Option<String>,
}

impl Namespace {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Writer) {
        comment::encode(self.comment.as_deref(), out);
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a namespace.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { comment: comment::decode(input)? })
    }
}
