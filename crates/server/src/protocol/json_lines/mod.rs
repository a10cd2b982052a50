//! Requests as JSON objects, one a line, and answers the same way: for people with `nc`, and
//! programs that can do without speed. They are answered in order.
//!
//! | module | what it does |
//! |---|---|
//! | `line` | requests, and serving who sends them |
//! | `ahead` | what comes while a request is done, and ends it |
//! | `members` | which members a line may have |
//! | `load` | rows that follow a request |
//! | `answer` | answers |

mod ahead;
mod answer;
mod line;
mod load;
mod members;
#[cfg(test)]
mod tests;

pub(crate) use line::{operations, serve, value};
#[cfg(test)]
pub(crate) use members::OPERATIONS;
