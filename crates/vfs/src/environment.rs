//! The four seams in one value.

use std::sync::Arc;

use crate::{Clock, FileSystem, Random, Tasks};

/// Everything the engine may ask of the machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Files and directories.
    pub files: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Background work and waiting.
    pub tasks: Arc<dyn Tasks>,
}

impl Environment {
    /// The real machine: system calls, system clocks, entropy and a thread pool.
    #[must_use]
    pub fn os() -> Self {
        crate::os::environment()
    }
}
