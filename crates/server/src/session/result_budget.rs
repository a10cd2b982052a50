//! The memory that an answer may take.
//!
//! A reader of an answer reserves room first: how long a value is, is known before it is
//! copied. An answer has no more bytes than the tenant lets it have, and a large one has a share of
//! the budget of all connections before it is put together. On a thread that must not wait for that
//! share a large answer is refused, and the protocol begins the request again on one that may: what
//! is refused so has changed nothing. The same happens beside answers that wait to be written: if
//! connections waited for each other's shares with shares of their own, none would go on.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::resources::budget::{SMALL_BYTES, Share};
use crate::{Code, Error, Result};

/// Shares grow by so many bytes.
const STEP_BYTES: usize = 256 << 10;

/// Where the bytes of an answer lie.
#[derive(Debug, Default)]
enum Place {
    /// Where they are not counted.
    #[default]
    Uncounted,
    /// On a thread that must not wait.
    AtOnce,
    /// In a share of the budget, which is waited for so long, if at all.
    Shared { share: Share, patience: Option<(Duration, Handle)>, copies: usize },
}

/// What one answer may take, and has taken.
#[derive(Debug)]
pub(crate) struct ResultBudget {
    place: Place,
    /// The most bytes that the protocol takes.
    cap: u64,
    /// The most bytes of the answer under way.
    most: u64,
    taken: u64,
    /// It was refused as it must not wait here.
    is_exhausted: bool,
    /// What is read is not part of the answer.
    is_internal: bool,
}

impl Default for ResultBudget {
    fn default() -> Self {
        Self::in_place(Place::Uncounted)
    }
}

impl ResultBudget {
    fn in_place(place: Place) -> Self {
        let (cap, most) = (u64::MAX, u64::MAX);
        Self { place, cap, most, taken: 0, is_exhausted: false, is_internal: false }
    }

    /// On a thread that must not wait.
    pub fn at_once() -> Self {
        Self::in_place(Place::AtOnce)
    }

    /// On a thread where waiting does no harm. Within a runtime.
    pub fn shared(share: Share, patience: Duration) -> Self {
        let patience = Some((patience, Handle::current()));
        Self::in_place(Place::Shared { share, patience, copies: 1 })
    }

    /// Beside answers that have shares and wait to be written, which has to come first where this
    /// one would have to wait.
    pub fn beside_others(share: Share) -> Self {
        Self::in_place(Place::Shared { share, patience: None, copies: 1 })
    }

    /// Of an answer that is there twice for a moment: as values, and as it is sent.
    pub fn twice(mut self) -> Self {
        if let Place::Shared { copies, .. } = &mut self.place {
            *copies = 2;
        }
        self
    }

    /// With no more bytes than a protocol takes.
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.cap = bytes as u64;
        self
    }

    /// An answer begins, of no more bytes than this.
    pub fn begin(&mut self, most: u64) {
        (self.most, self.taken, self.is_exhausted) = (most.min(self.cap), 0, false);
    }

    /// True when an answer was refused only as it must not wait here.
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// What is read from now on is part of the answer, or not.
    pub(super) fn set_internal(&mut self, is_internal: bool) {
        self.is_internal = is_internal;
    }

    /// Room for so many bytes more.
    ///
    /// # Errors
    /// `LimitExceeded` when the answer may not be so large, or there is no memory for it.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        if self.is_internal {
            return Ok(());
        }
        let taken = self.taken.saturating_add(bytes as u64);
        if taken > self.most {
            return Err(Error::too_large_answer(self.most));
        }
        if taken > SMALL_BYTES as u64 {
            match &mut self.place {
                Place::Uncounted => {}
                Place::AtOnce => return Err(self.short()),
                Place::Shared { share, patience, copies } => {
                    let needed = usize::try_from(taken).unwrap_or(usize::MAX);
                    let needed = needed.saturating_mul(*copies);
                    let step = needed.checked_next_multiple_of(STEP_BYTES).unwrap_or(needed);
                    if needed > share.bytes() && !share.resize(step) {
                        match patience {
                            Some((patience, runtime)) => {
                                runtime.block_on(share.wait(needed, *patience))?;
                            }
                            None => return Err(self.short()),
                        }
                    }
                }
            }
        }
        self.taken = taken;
        Ok(())
    }

    fn short(&mut self) -> Error {
        self.is_exhausted = true;
        Error::new(Code::LimitExceeded, "the answer needs memory that has to be waited for")
    }

    /// The share that the answer has; none of one that is small.
    pub fn into_share(self) -> Option<Share> {
        match self.place {
            Place::Shared { share, .. } => Some(share),
            Place::Uncounted | Place::AtOnce => None,
        }
    }
}
