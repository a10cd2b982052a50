//! Tests of the client, in one program: each links the whole engine.
#![allow(missing_docs, reason = "tests")]

mod client;
mod events;
mod pools;
#[path = "readme/sell.rs"]
mod sell;
#[path = "../served/mod.rs"]
mod served;
mod tls;
