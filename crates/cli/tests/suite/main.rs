//! Tests of the program, in one program: each links the whole engine, which takes longer than most
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

mod buckets;
mod care;
mod changes_guide;
mod clock;
mod commands;
mod copying;
mod exporting;
mod first_files;
mod flights_oracle;
mod full_disk;
mod guide;
mod http_guide;
mod indexes;
mod loading;
mod page;
mod python;
#[path = "../real_files/mod.rs"]
mod real_files;
mod reloading;
mod remote;
mod remote_admin;
mod sandbox;
mod served;
mod server_guide;
mod shell;
mod sqllogic;
mod statements;
mod stopping;
mod stopping_under_load;
mod streams_guide;
mod terminal;
mod tokens;
mod transcript;
mod watching;
mod wrong_stores;
