//! Orders: which rows are first, found with as little reading as the source allows.
//!
//! | module | what it does |
//! |---|---|
//! | [`sorter`], [`packed_keys`] | ordering by keys written as bytes, or packed in integers |
//! | [`runs`] | the same by integers alone, in runs that all threads put together |
//! | [`index_order_scan`], [`index_order_merge`] | the first rows of an order out of indexes |
//! | [`offset_skip`] | rows before an offset, passed over by their entries |
//! | [`zone_order`], [`row_order`], [`ordered_parts`] | the same by zone maps, row ids, and parts |
//! | [`late_materialization`] | reading the columns of the rows that are shown, and of no others |

pub(crate) mod index_order_merge;
pub(crate) mod index_order_scan;
pub(crate) mod late_materialization;
pub(crate) mod offset_skip;
pub(crate) mod ordered_parts;
pub(crate) mod packed_keys;
pub(crate) mod row_keys;
pub(crate) mod row_order;
pub(crate) mod runs;
pub(crate) mod sorter;
pub(crate) mod zone_order;

pub(crate) use sorter::{Location, Sorter};
