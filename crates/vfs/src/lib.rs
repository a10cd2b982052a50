//! The seam between Esker and the machine: files, clock, randomness and task scheduling.
//!
//! Nothing else in the workspace touches any of the four, so that the same engine runs on a real
//! disk with real threads, or inside the [`sim`] module: one thread, seeded order, a faulty disk.
//!
//! | trait | production | simulation |
//! |---|---|---|
//! | [`FileSystem`], [`File`] | system calls | durable and pending state, faults, crash images |
//! | [`Clock`] | system clocks | a counter that the simulator moves |
//! | [`Random`] | operating system entropy | a seeded generator |
//! | [`Tasks`] | a thread pool and futexes | one thread, seeded order |
//!
//! What threads share is made of [`sync`], so that a model checker can schedule it. Bugs that tests
//! have to find are planted by [`sabotage`].

#![deny(unsafe_code)]

mod block_copies;
mod clock;
#[cfg(test)]
mod conformance;
mod durations;
mod environment;
mod error;
mod event;
mod file;
mod mapping;
mod os;
mod random;
pub mod sabotage;
pub mod sim;
pub mod sync;
mod tasks;

pub use block_copies::BlockCopies;
pub use clock::Clock;
pub use durations::{DurationCounts, Durations};
pub use environment::Environment;
pub use error::{Error, ErrorKind, Result};
pub use event::Event;
pub use file::{File, FileLock, FileSystem, LockMode, OpenMode, RealPath};
pub use mapping::{GrowingBytes, GrowingMapping, Mapping};
pub use random::Random;
pub use tasks::{Step, Task, TaskHandle, Tasks, parallel_map};
