//! The catalogue: which tables there are, and what they are.
//!
//! | module | what it has |
//! |---|---|
//! | [`names`] | names of tables, now and at the commits that snapshots may still read at |
//! | [`ddl`], [`new_fields`], [`expiry`] | changes of tables |
//! | [`table_or_create`] | tables that are there or are made |
//! | [`index`], [`computed_index`], [`index_test`] | indexes, and what they compute |
//! | [`kept_rollup`] | partial aggregates of rollups |
//! | [`rollup_history`], [`kept_for`] | those of rows that are gone, and for how long |
//! | [`unique_build`] | filling unique indexes beside writers |
//! | [`namespace`] | what stands before names of tables |
//! | [`defined_view`], [`view`] | views |
//! | [`references`], [`reference_target`] | rows of a table that name rows of another |
//! | [`usable_name`] | names of new tables and views |
//! | [`view_needs`] | what may not change while views read it |
//! | [`checks`], [`generated`] | what rows must meet, fields that are computed |
//! | [`looked_up`] | tables in which rows are looked up for such fields |
//! | [`defaults`], [`sequence`], [`own_sequence`] | what fields get by themselves |
//! | [`event_times`] | how far the times of events may be from now |

pub(crate) mod altered_rows;
pub(crate) mod bucket_alteration;
pub(crate) mod checked_rows;
pub(crate) mod checks;
pub(crate) mod computed_index;
pub(crate) mod ddl;
pub(crate) mod defaults;
pub(crate) mod defined_view;
pub(crate) mod event_times;
pub(crate) mod expiry;
pub(crate) mod generated;
pub(crate) mod index;
pub(crate) mod index_test;
pub(crate) mod kept_for;
pub(crate) mod kept_rollup;
pub(crate) mod looked_up;
pub(crate) mod names;
pub(crate) mod namespace;
pub(crate) mod new_fields;
pub(crate) mod own_sequence;
pub(crate) mod reference_target;
pub(crate) mod references;
pub(crate) mod rollup_history;
pub(crate) mod sequence;
pub(crate) mod shared_sequence;
pub(crate) mod table_or_create;
pub(crate) mod unique_build;
pub(crate) mod usable_name;
pub(crate) mod view;
pub(crate) mod view_needs;
