//! One file a workload. Each checks its answers and returns one run's figures.

pub(crate) mod appender;
pub(crate) mod get;
pub(crate) mod get_while_merging;
pub(crate) mod group_commit;
pub(crate) mod insert_async;
pub(crate) mod insert_durable;
pub(crate) mod load_csv;
pub(crate) mod load_flights;
pub(crate) mod open;
pub(crate) mod prepared;
pub(crate) mod scan;
pub(crate) mod sizes;
pub(crate) mod small_tables;
pub(crate) mod updates;
