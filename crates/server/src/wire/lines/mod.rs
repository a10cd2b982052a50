//! Requests as JSON objects, one a line, and answers likewise: for people with `nc`, and programs
//! that can do without speed. They are answered in order.
//!
//! | module | what it does |
//! |---|---|
//! | `line` | requests, and serving who sends them |
//! | `answer` | answers |

mod answer;
mod line;

pub(crate) use line::operations;
pub(super) use line::serve;
