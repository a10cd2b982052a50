//! Reading: everything is read as of one commit, that of a snapshot.
//!
//! | module | what it reads |
//! |---|---|
//! | [`snapshot`], [`tables`] | tables, all as of one commit |
//! | [`source`], [`time_run`] | columns, events by time |
//! | [`rollup_entries`], [`rollup_blocks`] | what rollups have of segments, and of open groups |
//! | [`history_source`] | a stream with the history of a rollup |
//! | [`row`], [`visit`], [`range`], [`index_lookup`] | rows by key, in order, by an index |
//! | [`table_rows`] | all rows of a table, one after another |
//! | [`looked_up`], [`kept_lookups`] | rows of other tables, for fields that are computed |
//! | [`generated_rows`] | such fields of rows outside of transactions |
//! | [`page`], [`rows`] | answers page by page, row by row |

pub(crate) mod generated_rows;
pub(crate) mod held_snapshots;
mod history_source;
pub(crate) mod index_lookup;
pub(crate) mod kept_lookups;
pub(crate) mod looked_up;
pub(crate) mod page;
pub(crate) mod range;
pub(crate) mod result_row;
mod rollup_blocks;
mod rollup_entries;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod snapshot;
pub(crate) mod source;
pub(crate) mod table_rows;
pub(crate) mod tables;
mod time_run;
pub(crate) mod visit;
