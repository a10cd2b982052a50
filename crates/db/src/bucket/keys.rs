//! Keys that are gathered before their entries are removed.

use std::sync::Arc;

use esker_arena::{Category, Reservation};
use esker_table::table::Existing;

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Reservations grow by so many bytes.
const RESERVED_AT_ONCE: u64 = 1 << 20;
/// Memory for each key beside its bytes: where it ends, the entry to remove, and what the log is
/// told of it.
const EACH_BYTES: usize = size_of::<usize>() + size_of::<Existing>() + 16;

/// Keys, end to end. Their memory, and that of removing them in one commit, is reserved.
pub(super) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    engine: Arc<Engine>,
    held: Reservation,
}

impl Keys {
    /// No key yet.
    pub fn new(engine: &Arc<Engine>) -> Self {
        let held = Reservation::new(&engine.arena, Category::Load);
        Self { bytes: Vec::new(), ends: Vec::new(), engine: Arc::clone(engine), held }
    }

    /// Adds a key.
    ///
    /// # Errors
    /// `OverBudget` when there is too little memory, also once what can be sealed is.
    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        let needed = (self.bytes.len() + self.ends.len() * EACH_BYTES) as u64;
        if needed < RESERVED_AT_ONCE || needed <= self.held.bytes() {
            return Ok(());
        }
        let wanted = needed.div_ceil(RESERVED_AT_ONCE) * RESERVED_AT_ONCE;
        if self.engine.seal_for_load(&mut self.held, wanted)? {
            return Ok(());
        }
        let (count, share) = (self.ends.len(), self.engine.load_share());
        let message = format!(
            "to remove more than {count} entries at once takes more than {wanted} bytes of \
             memory, at most {share} and less than others have: remove smaller ranges, clear the \
             bucket, or open with a higher memory limit"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }

    /// The keys, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let of = |(start, end): (usize, &usize)| self.bytes.get(start..*end).unwrap_or_default();
        starts.zip(&self.ends).map(of)
    }
}
