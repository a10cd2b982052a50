//! Tests of SQL, in one program: each links the whole engine, which takes longer than most
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

mod answers;
#[cfg(feature = "async")]
mod asynchronous;
mod changes_beside;
mod channels;
mod correlated;
mod distinct_estimates;
mod explain;
mod fixture;
mod function_values;
mod functions;
mod grouping_sets;
mod guide;
mod in_rust;
mod indexes;
mod intervals;
mod introspection;
mod join_order;
mod joins;
mod json_queries;
mod json_updates;
mod key_lookups;
mod key_order;
mod lateral;
mod lengths;
mod limits;
#[path = "../../../query/tests/memory_source/mod.rs"]
mod memory_source;
mod nesting;
mod offsets;
mod operators;
mod places;
mod relational;
mod returning;
mod rollup_history;
mod rollups;
mod semantics;
mod sequences;
mod series;
mod sessions;
mod subqueries;
mod tables;
mod temporary;
mod tpch_subqueries;
mod transaction_tables;
mod transactions;
mod types;
mod window_model;
mod windows;
mod writes;
mod zones;
