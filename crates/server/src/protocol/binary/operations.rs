//! What is counted of requests.

use esker_wire::{Code, Kind};
use tokio::time::Instant;

use crate::monitor::metrics::Operations;

/// The operations of the binary form, by the position of their kinds.
pub(crate) fn frames() -> Operations {
    Operations::new("wire", Kind::ALL.iter().map(|kind| snake_case(&format!("{kind:?}"))))
}

/// `BucketGet` as `bucket_get`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// A request under way: its kind, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub kind: Kind,
    pub since: Instant,
}

impl Asked {
    /// Counts it as answered at a moment.
    pub fn count(self, operations: &Operations, failed: Option<Code>, now: Instant) {
        let took = now.saturating_duration_since(self.since);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        operations.count(self.kind as usize, failed, nanoseconds);
    }
}
