//! The Esker server: sessions over databases, and the protocols that reach them.
//!
//! | module | what it defines |
//! |---|---|
//! | [`error`] | the one error of all protocols, with its stable codes |
//! | [`session`] | what a client may ask, and doing it: transactions, limits, cancelling |
//!
//! ```text
//!  socket ──► protocol ──► Request ──► Session ──► esker::Database
//!         ◄── (a folder) ◄── Answer ◄──
//! ```
#![forbid(unsafe_code)]

pub mod error;
pub mod session;

pub use error::{Code, Error, Result};
pub use session::{Answer, Request, Session};
