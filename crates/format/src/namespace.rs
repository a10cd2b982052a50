//! Schemas of SQL: names that stand before those of tables. In code they are namespaces, since a
//! schema is what the rows of a table are.

use crate::codec::{Reader, Writer};
use crate::{Error, Result};

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
        out.u8(u8::from(self.comment.is_some()));
        self.comment.iter().for_each(|comment| out.text(comment));
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a namespace.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let comment = match input.u8()? {
            0 => None,
            1 => Some(input.text()?.to_owned()),
            other => return Err(Error::corrupt(format!("flag {other} of a schema"))),
        };
        Ok(Self { comment })
    }
}
