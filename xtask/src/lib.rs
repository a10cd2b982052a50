//! The project's own commands, as a library so that tests can call them.
//!
//! | module | what it runs |
//! |---|---|
//! | [`ci`] | every check, timed, as continuous integration does |
//! | [`tidy`] | the rules of style that no compiler checks |
//! | [`crash`], [`differential`], [`plans`] | campaigns of other crates, built optimised |
//! | [`history`] | histories of transactions and their anomalies, likewise |
//! | [`mod@bench`] | a benchmark, likewise |
//! | [`compare`] | the benchmarks of two builds in turn |
//! | [`hello`] | small programs with Esker and with other databases, built |
//! | [`fuzz`] | the fuzz targets, bounded by time |
//! | [`tsan`] | concurrent tests under a race detector |
//! | [`loom`], [`model`] | containers, and the whole engine, under a model checker |
//! | [`kill`], [`load`] | servers that are killed, or asked by many and by bad clients |
//! | [`mod@schemathesis`] | generated HTTP requests |
//! | [`clients`] | generated HTTP clients, and every operation called by them |
//! | [`served`] | a server for the two |
//! | [`realfiles`] | files as people have them, loaded here and by DuckDB |
//! | [`quickstart`] | the example data, loaded, asked and served |
//! | [`pool`] | programs that run side by side |
//! | [`test_build`] | the programs of the build of the tests |
//! | [`program`] | other programs, started from the root of the repository |
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a tool beside the engine: no simulator ever schedules it"
)]

pub mod bench;
pub mod ci;
pub mod clients;
pub mod compare;
pub mod crash;
pub mod differential;
mod error;
pub mod fuzz;
pub mod hello;
pub mod history;
pub mod kill;
pub mod load;
pub mod loom;
pub mod model;
pub mod plans;
pub mod pool;
pub mod program;
pub mod quickstart;
pub mod realfiles;
pub mod schemathesis;
pub mod served;
pub mod test_build;
pub mod tidy;
pub mod tsan;

pub use error::{Error, ErrorKind, Result};
