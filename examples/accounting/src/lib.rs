//! What calls of language models cost: a service over an embedded database.
//!
//! | module | what it has |
//! |---|---|
//! | [`schema`] | the tables: prices, events with what they cost, answers |
//! | [`event`] | an event as it is sent, and what it must be |
//! | [`key`] | API keys, their tiers, their rate limits |
//! | [`store`] | what is done with events |
//! | `totals` | sums by the hour |
//! | [`route`] | paths, status codes, headers |
#![forbid(unsafe_code)]

pub mod event;
pub mod key;
pub mod route;
pub mod schema;
pub mod store;
mod totals;

pub use key::{ApiKey, Keys, RateLimit};
pub use route::{Service, router};
pub use store::Store;
