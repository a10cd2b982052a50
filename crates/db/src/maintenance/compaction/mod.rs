//! Compaction: segments are rewritten without the rows that no snapshot needs.
//!
//! | module | what it decides or does |
//! |---|---|
//! | [`pick`] | which segments of a table are rewritten next |
//! | [`leveled`] | the same where rows lie in the order of the key |
//! | [`windows`], [`window_span`] | the same of a stream |
//! | [`expired`] | segments of which many rows have expired |
//! | [`table`] | compacting one table |
//! | [`manual`] | compacting everything, on demand |

pub(crate) mod expired;
pub(crate) mod leveled;
pub(crate) mod manual;
pub(crate) mod pick;
pub(crate) mod table;
pub(crate) mod window_span;
pub(crate) mod windows;
