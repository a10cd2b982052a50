//! Histories of transactions, judged by the isolation that they were promised.
//!
//! A [`History`] is what clients saw: for each transaction when it began and ended, what it wrote,
//! what it read, and how it ended. The checker takes nobody's word for it. It infers in which order
//! the versions of each key came to be, from that which transaction depends on which, and looks for
//! cycles, as in A. Adya's *Weak Consistency* (1999) and in Elle (K. Kingsbury and P. Alvaro, VLDB
//! 2020):
//!
//! ```text
//! operations ─► by key ─► order of versions ─► dependencies ─► components ─► cycles, named
//!                 │        (list, register)     ww, wr, rw      (Tarjan)
//!                 └──────► what one key shows: G1a, G1b, lost update, lost append …
//!
//! ww  a version, and the one that replaces it          T1 writes x, T2 writes x after it
//! wr  a version, and who reads it                      T1 writes x, T2 reads that
//! rw  who reads a version, and who replaces it         T1 reads x, T2 writes x after that
//! rt  real time: one had returned before the other began
//! ```
//!
//! * A *list* gains values at its end, each of them once in the history; whoever reads it sees the
//!   order of all its versions. A *register* holds one [`Cell`], with a stamp of its own for each
//!   write; its order is that of the commit numbers.
//! * A predicate read sees also which rows do *not* match. Who makes one match is what it misses.
//! * Only what committed is in the graph, and what may have, once its writes are seen.
//! * Cycles are looked for in components. Without two anti-dependencies (`rw`) in a row no cycle
//!   exists under snapshot isolation (A. Cerone and A. Gotsman, PODC 2016). So each transaction is
//!   two nodes, *entered by an anti-dependency* or not, and from the first no anti-dependency
//!   leads on: the components of that graph are the violations. What is a cycle in the plain
//!   graph alone is a matter of serializability.
//!
//! All is linear in the operations and values of lists, but for sorting them by key, and for
//! predicate reads, which look at each key of their table.
//!
//! Beside it, [`replay`](History::replay) does what needs the engine's own numbers: it applies the
//! transactions to a map in the order of their commits, and compares every read.
//!
//! | to | see |
//! |---|---|
//! | describe what happened | [`History`], [`Transaction`], [`Operation`] |
//! | know the names of what can go wrong | [`Anomaly`], [`Level`] |
//! | judge | [`History::judge`], [`Verdict`] |
//! | see the checker find each of them | [`planted`] |
//! | make histories without a database | [`simulator`] |
//! | make histories of the database itself | [`drive`] |

mod anomaly;
pub mod command;
mod components;
mod cycles;
pub mod drive;
mod finding;
mod graph;
mod inference;
mod list;
pub mod planted;
mod predicate;
mod real_time;
mod register;
mod replay;
pub mod simulator;
mod transaction;
mod verdict;

pub use anomaly::{Anomaly, Level};
pub use finding::{Dependency, Finding, Step};
pub use transaction::{Cell, Condition, History, Key, Operation, Outcome, Transaction};
pub use verdict::Verdict;

#[cfg(test)]
mod tests;
