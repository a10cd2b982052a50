//! The commit pipeline: how changes become one numbered, durable, visible commit.
//!
//! | module | what it has |
//! |---|---|
//! | [`pipeline`] | every commit: stage, extend, number, apply, publish, acknowledge |
//! | [`write_set`], [`staged`], [`fit`] | the changes of a commit, by table; checked rows |
//! | [`row_sink`], [`by_key`] | where changes of rows go; those by key |
//! | [`conflict`], [`restaged`] | what others have changed since |
//! | [`options`] | on which terms |
//! | [`apply`], [`stored_rows`] | what a frame does, live and at recovery; rows of the log |
//! | [`hooks`], [`extension`] | what else takes part in commits |
//! | [`changed_rows`] | what a commit adds to the feeds of its tables |
//! | [`changed_namespaces`] | schemas of SQL that a commit makes and drops |
//! | [`definitions`] | tables that a commit creates, alters and drops beside its rows |
//! | [`file_commit`], [`overflow`], [`private_rows`], [`long_values`] | what needs files first |
//! | [`segment_rows`] | rows that are written as segments |
//! | [`ended_segments`] | segments of a stream that end as a whole |
//! | [`unique_check`], [`staged_keys`] | rows that are in the way of others |
//! | [`reference_check`], [`named_rows`], [`value_set`] | rows that others refer to |
//! | [`bound_commits`] | commits that go on as a transaction |
//! | [`journal`], [`log_reserve`] | numbers and frames |
//! | [`coalesce`], [`gathered_events`] | many requests in one commit, many commits with one sync |
//! | [`watermarks`], [`acknowledge`] | what is applied, durable, visible; who waits for it |
//! | [`expiry_clock`], [`times`] | the moment by which rows expire |

pub(crate) mod acknowledge;
pub(crate) mod apply;
pub(crate) mod bound_commits;
pub(crate) mod by_key;
pub(crate) mod changed_namespaces;
pub(crate) mod changed_rows;
pub(crate) mod coalesce;
pub(crate) mod conflict;
pub(crate) mod defined_views;
pub(crate) mod definitions;
pub(crate) mod ended_segments;
pub(crate) mod expiry_clock;
pub(crate) mod extension;
pub(crate) mod file_commit;
pub(crate) mod fit;
pub(crate) mod gathered_events;
pub(crate) mod hooks;
pub(crate) mod journal;
pub(crate) mod log_reserve;
pub(crate) mod long_values;
pub(crate) mod named_rows;
pub(crate) mod options;
pub(crate) mod overflow;
pub(crate) mod pipeline;
pub(crate) mod private_rows;
pub(crate) mod recent_events;
pub(crate) mod reference_check;
pub(crate) mod restaged;
pub(crate) mod row_sink;
pub(crate) mod segment_rows;
pub(crate) mod staged;
pub(crate) mod staged_keys;
pub(crate) mod stored_rows;
pub(crate) mod times;
pub(crate) mod unique_check;
pub(crate) mod value_set;
pub(crate) mod wakes;
pub(crate) mod watermarks;
pub(crate) mod write_set;
