//! Tests of the database, in one program: each links the whole engine, which takes longer than most
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

mod alter;
mod answer_rows;
mod backup;
mod bucket_definitions;
mod bucket_durability;
mod bucket_reads;
mod bucket_removals;
mod bucket_threads;
mod bucket_types;
mod buckets;
mod checks;
mod clock;
mod coalescing;
mod comments;
mod computed_indexes;
mod conditional;
mod crashes;
mod dead_rows;
mod derived_names;
mod emdb_bugs;
mod erasures;
mod every_type;
mod expected_entries;
mod expiry;
mod expiry_changes;
mod expiry_model;
mod expiry_unique;
mod feed_places;
mod feeds;
mod finder;
mod fixture;
mod foreign_types;
mod full_disk;
mod generated_fields;
mod held_rows;
mod held_snapshots;
mod index_changes;
mod index_file;
mod indexes;
mod key_update;
mod large;
mod lifecycle;
mod limits;
mod lists;
mod load;
mod load_memory;
mod load_replace;
mod long_snapshots;
mod long_snapshots_mixed;
mod long_values;
mod lookups;
mod merging;
mod namespaces;
mod objects;
mod pages;
mod places_under_threads;
mod records;
mod references;
mod remembered_places;
mod rollups;
mod rot;
mod rows;
mod save;
mod scopes;
mod sequences;
mod shard_db_241;
mod spilling;
mod store_stress;
mod stream_dedupe;
mod stream_pages;
mod stream_producers;
mod stream_storage;
mod stream_tails;
mod streams;
mod sync_errors;
mod timeouts;
mod transaction_bugs;
mod transaction_bulk;
mod transaction_entries;
mod transaction_large;
mod transaction_pages;
mod transaction_spill;
mod transaction_tables;
mod transactions;
mod transactions_model;
mod typed_tables;
mod unique;
mod unique_paths;
mod unique_paths_model;
mod update_many;
mod update_operator_bugs;
mod update_operators;
mod update_operators_model;
#[path = "../../../../bench/src/user_rows.rs"]
mod user_rows;
mod views;
mod waiting;

/// True when databases in memory are on a simulated disk: see `cargo xtask ci test-stores`.
fn is_on_disk() -> bool {
    std::env::var_os("ESKER_TEST_MEMORY_ON_DISK").is_some()
}
