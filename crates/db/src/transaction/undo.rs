//! What leads back from the changes of a transaction.

use std::sync::Arc;

use esker_format::{Schema, TableId};

use super::definitions::Definitions;
use super::delta::Delta;
use super::write_buffer::Undo;

/// What leads back from one change.
pub(super) enum Step {
    Row(TableId, Undo),
    Defined { base: Option<Arc<Definitions>>, taken: Taken },
}

impl Step {
    /// Bytes that it keeps, about.
    pub fn byte_count(&self) -> usize {
        match self {
            Self::Row(_, undo) => undo.byte_count(),
            Self::Defined { taken, .. } => taken.byte_count(),
        }
    }
}

/// What a definition has taken from the changes of rows.
pub(super) enum Taken {
    Nothing,
    /// All of a table; `None` where there were none.
    Changes(TableId, Option<Box<Delta>>),
    /// The schema that they were of.
    Schema(TableId, Arc<Schema>),
    /// Of several tables, in the order in which it was taken.
    Several(Vec<Taken>),
}

impl Taken {
    /// Bytes that it keeps, about.
    pub fn byte_count(&self) -> usize {
        match self {
            // Hidden versions are pinned in a list that the delta after it shares and adds to.
            Self::Changes(_, Some(delta)) => delta.bytes() + delta.spilled_bytes(),
            Self::Changes(_, None) | Self::Schema(..) | Self::Nothing => 0,
            Self::Several(several) => several.iter().map(Self::byte_count).sum(),
        }
    }
}

/// The savepoints of a transaction, oldest first, with what had been done then.
#[derive(Default)]
pub(super) struct Savepoints {
    pub stack: Vec<(u64, usize)>,
    pub next: u64,
}
