//! Redis's protocol, onto buckets: `docs/reference/resp.md`.
//!
//! A connection reads what has come, does the commands one after another, waits once for the disk,
//! and writes all their answers. Those that may take long are done on a thread of their own.
//!
//! ```text
//!  socket ──► parser ──► turn: command, command, ... ──► one sync ──► socket
//!                          │        table
//!                          ▼
//!               bucket, or transaction between MULTI and EXEC
//! ```
//!
//! | module | what it defines |
//! |---|---|
//! | `protocol`, `reply` | commands as they come, answers as they go |
//! | `connection` | one client: reading, writing, memory, time-outs |
//! | `state` | what a client has under way, and doing what it sends |
//! | `pipeline` | writes that have come together: one commit |
//! | `reads` | `GET`s that have come together |
//! | `call` | one command: its arguments, its bucket |
//! | `table` | all commands |
//! | `strings`, `numbers`, `set`, `expiry`, `keys` | doing those about keys |
//! | `manage`, `client`, `config`, `info`, `describe` | doing the others |
//! | `pubsub` | channels, of which nothing is stored |
//! | `transactions`, `watch` | `MULTI` to `EXEC`, and the keys that are watched |
//! | `glob`, `cursors` | patterns, and where scans go on |
//! | `document` | the reference |

#[cfg(test)]
mod answers;
mod call;
#[cfg(test)]
mod channels;
mod client;
mod config;
mod connection;
mod cursors;
#[cfg(test)]
mod definitions;
mod describe;
#[cfg(test)]
mod document;
mod expiry;
mod glob;
mod info;
#[cfg(test)]
mod isolation;
mod keys;
mod manage;
mod numbers;
mod pipeline;
mod protocol;
mod pubsub;
mod reads;
mod reply;
#[cfg(test)]
mod safety;
mod set;
mod state;
mod strings;
mod table;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
mod tls;
mod transactions;
mod turn;
mod watch;

use crate::Session;
use crate::monitor::metrics::Operations;
pub(crate) use connection::serve;
pub(crate) use cursors::Cursors;

/// What is counted of commands.
pub(crate) fn operations() -> Operations {
    Operations::new("resp", table::COMMANDS.iter().map(|command| command.name.to_owned()))
}

/// Answers commands without a socket, for fuzzing.
#[must_use]
pub fn answer_commands(session: Session, input: &[u8]) -> Vec<u8> {
    let mut state = state::State::alone(session);
    state.answer_all(input)
}
