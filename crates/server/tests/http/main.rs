//! The server over HTTP, as a client meets it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real sockets and files"
)]

mod buckets;
mod bulk;
mod change_reads;
mod client;
mod copying;
mod cors;
mod definitions;
mod documented;
mod drain;
mod event_reads;
mod events_once;
mod form;
mod http2;
mod isolation;
mod memory;
mod metrics;
mod once;
mod rows;
mod streams;
mod tenants;
mod tls;
mod transactions;
#[path = "../two_tenants/mod.rs"]
mod two_tenants;
mod views;
