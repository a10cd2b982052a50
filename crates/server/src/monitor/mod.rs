//! What a server shows of itself to those who look after it.
//!
//! | module | what it has |
//! |---|---|
//! | [`active_sessions`] | who is connected, and what runs for them |
//! | [`metrics`] | what is counted, and slow statements |
//! | [`logging`] | log lines |
//! | `clock_watch` | a suspect clock, written to the log |

pub mod active_sessions;
pub(crate) mod clock_watch;
pub mod logging;
pub mod metrics;
