//! Feeds of tables: their changes as events of a stream, in the commits that make them.
//!
//! ```text
//! commit ─► stage rows ─► events of the feed ─► number ─► one frame has both
//!                                                └► … durable ─► a reader tells whole commits
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`shape`] | the stream that a feed is, and how it is found |
//! | [`cursor`] | the place behind a commit |
//! | [`reader`] | whole commits in order, once they are durable |
//!
//! A row that expires is told when a commit ends it: another row takes its place, or the table gets
//! another expiry. Where its old row is longer than 64 KiB, the event has none. One that a merge drops is not told: a follower goes by the time in its row.
//!
//! What a commit adds to a feed is in [`changed_rows`](crate::commit::changed_rows).

mod cursor;
pub(crate) mod reader;
pub(crate) mod shape;

pub use cursor::ChangeCursor;
pub use reader::{Change, ChangeReader, ChangesFrom, CommitChanges};
pub use shape::ChangeKind;
