//! Memory for entries that are to be removed in one commit.

use std::sync::Arc;

use esker_arena::{Category, Reservation};
use esker_table::table::Existing;

use crate::engine::Engine;
use crate::{Error, ErrorKind, Result};

/// Reservations grow by so many bytes.
const RESERVED_AT_ONCE: u64 = 1 << 20;
/// Memory for each entry: what is removed, and its part of the frame.
const EACH_BYTES: u64 = size_of::<Existing>() as u64 + 16;

/// Memory for some entries, held until they are removed.
pub(super) struct RemovalReservation {
    count: u64,
    engine: Arc<Engine>,
    held: Reservation,
}

impl RemovalReservation {
    /// For no entry yet.
    pub fn new(engine: &Arc<Engine>) -> Self {
        let held = Reservation::new(&engine.arena, Category::Load);
        Self { count: 0, engine: Arc::clone(engine), held }
    }

    /// Makes room for one more.
    ///
    /// # Errors
    /// `OverBudget` when there is too little memory, also once what can be sealed is.
    pub fn add(&mut self) -> Result<()> {
        self.count += 1;
        let needed = self.count * EACH_BYTES;
        if needed < RESERVED_AT_ONCE || needed <= self.held.bytes() {
            return Ok(());
        }
        let wanted = needed.div_ceil(RESERVED_AT_ONCE) * RESERVED_AT_ONCE;
        if self.engine.seal_for_load(&mut self.held, wanted)? {
            return Ok(());
        }
        let (count, share) = (self.count, self.engine.load_share());
        let message = format!(
            "to remove more than {count} entries at once takes more than {wanted} bytes of \
             memory, at most {share} and less than others have: remove smaller ranges, clear the \
             bucket, or open with a higher memory limit"
        );
        Err(Error::new(ErrorKind::OverBudget, message))
    }
}
