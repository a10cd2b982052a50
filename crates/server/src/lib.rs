//! The Esker server: sessions over databases, and the protocols that reach them.
//!
//! | module | what it defines |
//! |---|---|
//! | [`budget`] | one budget of memory for what all connections send and are sent |
//! | [`config`] | what a server is told: file, environment, flags |
//! | [`Server`] | listening, serving, stopping |
//! | [`admission`] | who is let in, and to which database |
//! | [`durability`] | one sync for all that wait |
//! | `wire` | the wire protocol, binary or JSON lines |
//! | [`error`] | the one error of all protocols, with its stable codes |
//! | [`gate`] | who comes in, to which database, under which limits |
//! | [`http`] | HTTP/1.1 and HTTP/2 |
//! | [`logging`] | log lines |
//! | [`metrics`] | what is counted, and slow statements |
//! | `resp` | Redis's protocol, onto buckets |
//! | [`seat`] | who is connected, and what runs for whom |
//! | [`session`] | what a client may ask, and doing it: transactions, limits, cancelling |
//! | [`tenant`] | a database for each tenant, and what it may take |
//! | [`tls`] | TLS 1.3 |
//! | [`token`] | who may do what |
//!
//! ```text
//!  socket ──► protocol ──► Request ──► Session ──► esker::Database
//!         ◄── (a folder) ◄── Answer ◄──
//! ```
#![forbid(unsafe_code)]

// What tests within share with those of other files names this crate as they do.
#[cfg(test)]
extern crate self as esker_server;

pub mod admission;
pub mod budget;
pub mod config;
pub mod durability;
pub mod error;
mod file;
pub mod gate;
pub mod http;
mod lingering;
pub mod logging;
pub mod metrics;
mod resp;
pub mod seat;
mod server;
pub mod session;
pub mod tenant;
pub mod tls;
pub mod token;
mod turns;
#[cfg(test)]
#[path = "../tests/two_tenants/mod.rs"]
mod two_tenants;
mod wire;

pub use error::{Code, Error, Result};
#[doc(hidden)]
pub use resp::answer_commands;
pub use server::{Server, ServerConfig};
pub use session::{Answer, Request, Session};
#[doc(hidden)]
pub use wire::answer_frames;
