//! The protocols: each turns what a client sends into requests of a session, and answers back.
//!
//! | module | protocol |
//! |---|---|
//! | `binary` | frames: `docs/reference/wire.md` |
//! | `json_lines` | the same as JSON objects, one a line |
//! | `resp` | Redis's: `docs/reference/resp.md` |
//! | [`http`] | HTTP: `docs/reference/http.md` |

pub(crate) mod binary;
pub mod http;
pub(crate) mod json_lines;
pub(crate) mod resp;
