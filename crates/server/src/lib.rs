//! The Esker server: sessions over databases, and the protocols that reach them.
//!
//! | module | what it defines |
//! |---|---|
//! | [`auth`] | who comes in, to which database, and what they may do |
//! | [`config`] | what a server runs with: file, environment, flags |
//! | [`error`] | the one error of all protocols, with its stable codes |
//! | [`monitor`] | who is connected, what is counted, log lines |
//! | [`protocol`] | the wire protocol, JSON lines, Redis's protocol, HTTP |
//! | [`resources`] | what clients share: memory, threads, loads |
//! | [`Server`] | listening, serving, stopping |
//! | [`session`] | what a client may ask, and doing it: transactions, limits, cancelling |
//! | [`tenant`] | a database for each tenant, and what it may take |
//!
//! ```text
//!  socket ──► protocol ──► Request ──► Session ──► esker::Database
//!         ◄── (a folder) ◄── Answer ◄──
//! ```
#![forbid(unsafe_code)]

// What tests within share with those of other files names this crate as they do.
#[cfg(test)]
extern crate self as esker_server;

pub mod auth;
pub mod config;
pub mod error;
mod file;
pub mod monitor;
pub mod protocol;
pub mod resources;
mod server;
pub mod session;
mod shared;
pub mod tenant;
#[cfg(test)]
#[path = "../tests/two_tenants/mod.rs"]
mod two_tenants;

#[doc(hidden)]
pub use crate::protocol::binary::answer_frames;
#[doc(hidden)]
pub use crate::protocol::resp::answer_commands;
pub use error::{Code, Error, Result};
pub use file::check;
pub use server::Server;
pub use session::{Answer, Request, Session};
pub use shared::ServerConfig;
