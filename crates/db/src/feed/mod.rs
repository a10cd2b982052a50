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
//! | [`assembly`] | whole commits of events |
//! | [`reader`] | whole commits in order, once they are durable |
//! | [`changes_table`] | how a statement names them, `changes('t', '12.345')` |
//! | [`collected`] | the same as rows of a statement |
//! | [`place`] | the newest place, and why one is gone |
//!
//! A row that expires is told when a commit ends it: another row takes its place, or the table gets
//! another expiry. Where its old row is longer than 64 KiB, the event has none. One that a merge
//! drops is not told: a follower goes by the time in its row.
//!
//! What a commit adds to a feed is in [`changed_rows`](crate::commit::changed_rows).

mod assembly;
pub(crate) mod changes_table;
pub(crate) mod collected;
mod cursor;
pub(crate) mod place;
pub(crate) mod reader;
pub(crate) mod shape;

pub use assembly::{Change, CommitChanges};
pub use changes_table::ChangesTable;
pub use cursor::ChangeCursor;
pub use reader::{ChangeReader, ChangesFrom};
pub use shape::ChangeKind;
