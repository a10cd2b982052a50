//! Tokens: who may do what, kept as hashes.
//!
//! A token is `esk_`, 16 hexadecimal digits that name it, `_`, and 64 that are 32 random bytes. The
//! name finds the entry; the whole text is hashed and compared in constant time. What is stored is
//! the SHA-256 of the text: a reader of the file can use none of them, and the text itself is
//! shown once, when it is created.
//!
//! ```text
//! esk_5b0c2f9a1d3e4f60_3a…(64 digits)
//!     └── id, public ─┘ └── secret ──┘
//! ```
//!
//! Invariants: a change is on the disk before it is answered; the file is replaced as a whole, by
//! one process at a time. A server sees what another process changed within a second.

mod scope;
mod standing;
mod store;
#[cfg(test)]
mod tests;

pub use scope::{Place, Principal, Scope};
pub use standing::Standing;
pub use store::{NewToken, Token, TokenInfo, TokenStore};
