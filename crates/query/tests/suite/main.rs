//! Tests of queries, in one program: each links the whole engine, which takes longer than most
//! of them run.
#![allow(
    missing_docs,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::cast_possible_truncation,
    reason = "tests stop where they fail, and share what not all of them need"
)]

mod against_naive;
mod function_limits;
mod generate;
mod join_order;
mod joins;
mod kept;
mod looks;
mod many_groups;
#[path = "../memory_source/mod.rs"]
mod memory_source;
mod naive;
mod rewrites;
mod runtime_filters;
mod sets;
mod sorted_rows;
mod spilling;
mod timeouts;
mod walks;
mod zone_order;
