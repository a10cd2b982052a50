//! What proves Esker's promises: a model, random workloads, crash campaigns and planted bugs.
//!
//! | to | see |
//! |---|---|
//! | know what a database must hold | [`model`], [`schema`], [`history`] |
//! | change it by statements and by operators | [`statement`], [`operators`] |
//! | do several changes in one transaction | [`transaction`] |
//! | hold an open database against it, or what a read answered | [`oracle`], [`answer`] |
//! | work on a database in a simulated machine | [`workload`] |
//! | do the same with buckets, whose entries expire | [`buckets`] |
//! | do the same with streams, whose events end | [`streams`] |
//! | crash, fault, rot and sabotage it | [`campaign`] |
//! | compare the answers of all plans | [`plans`] |
//! | judge histories of transactions by their isolation | [`isolation`] |
//! | kill a real process that writes to it | [`kill`] |
//! | kill a server under load of all protocols | [`kill_server`] |
//! | many clients of a server, and bad ones | [`load_server`] |
#![forbid(unsafe_code)]

pub mod answer;
pub mod buckets;
pub mod campaign;
mod clock_step;
pub mod history;
mod index;
pub mod isolation;
pub mod kill;
pub mod kill_server;
pub mod load_server;
pub mod model;
pub mod operators;
pub mod oracle;
pub mod plans;
pub mod schema;
pub mod statement;
pub mod streams;
pub mod transaction;
pub mod workload;
