//! The protocols: each turns what a client sends into requests of a session, and answers back.
//!
//! | module | protocol |
//! |---|---|
//! | `binary` | frames: `docs/reference/wire.md` |
//! | `json_lines` | the same as JSON objects, one a line |
//! | `resp` | Redis's: `docs/reference/resp.md` |
//! | [`http`] | HTTP: `docs/reference/http.md` |
//!
//! What events have in common, whatever they come by: `event_outcomes`, `gathered`, `tails`.

pub(crate) mod binary;
mod event_outcomes;
mod gathered;
pub mod http;
pub(crate) mod json_lines;
pub(crate) mod resp;
pub(crate) mod tails;
