//! What clients share: memory, threads, loads.
//!
//! | module | what it has |
//! |---|---|
//! | [`budget`] | one budget of memory for what arrives and what leaves |
//! | `fair_share` | turns of connections that share a thread |
//! | `load_slots` | how many loads there may be at once |
//! | `spin` | looking for the next request for a moment, before waiting for it |

pub mod budget;
pub(crate) mod fair_share;
pub(crate) mod load_slots;
pub(crate) mod spin;
