//! Who comes in, and what they may do.
//!
//! | module | what it has |
//! |---|---|
//! | [`token`] | tokens: who may do what, kept as hashes |
//! | [`authenticator`] | who is let in, and to which database |
//! | [`access_control`] | the same by tokens and tenants, for all protocols |
//! | [`tls`] | TLS 1.3 |

pub mod access_control;
pub mod authenticator;
pub mod tls;
pub mod token;
