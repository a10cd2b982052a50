//! Who comes in, and what they may do.
//!
//! | module | what it has |
//! |---|---|
//! | [`token`] | tokens: who may do what, kept as hashes |
//! | [`admission`] | who is let in, and to which database |
//! | [`gate`] | the same by tokens and tenants, for all protocols |
//! | [`tls`] | TLS 1.3 |

pub mod admission;
pub mod gate;
pub mod tls;
pub mod token;
