//! What had returned before something else began, without an edge for each such pair.
//!
//! The ends of the transactions that committed are a chain of nodes of their own. A transaction
//! leads to its end, each end to the next one, and the last end before a transaction begins leads
//! to it:
//!
//! ```text
//! T1 ─► end of T1 ─► end of T2 ─► …
//!                        └─► T3, which began after T2 had returned
//! ```

use super::graph::{Edge, NO_KEY};
use super::{Dependency, History, Outcome};

/// Adds the edges, and tells how many nodes there are with the ends.
pub(super) fn infer(history: &History, edges: &mut Vec<Edge>) -> u32 {
    let mut ends = Vec::new();
    let mut begins = Vec::new();
    for (number, made) in history.numbered() {
        match made.outcome {
            Outcome::Committed => {
                ends.push((made.end, number));
                begins.push((made.begin, number));
            }
            // Nobody saw it end.
            Outcome::Unknown => begins.push((made.begin, number)),
            Outcome::Aborted => {}
        }
    }
    ends.sort_unstable();
    begins.sort_unstable();
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let first = count(history.transactions.len());
    let mut lead = |from, to| {
        edges.push(Edge { from, to, dependency: Dependency::RealTime, key: NO_KEY });
    };
    for (node, (_, number)) in (first..).zip(&ends) {
        lead(*number, node);
        if node > first {
            lead(node - 1, node);
        }
    }
    let mut before = 0;
    for (begin, number) in begins {
        while ends.get(before).is_some_and(|(end, _)| *end < begin) {
            before += 1;
        }
        if before > 0 {
            lead(first + count(before) - 1, number);
        }
    }
    first + count(ends.len())
}
