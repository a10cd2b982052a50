//! What was erased, and how far that is.

use crate::introspection::erasures;
use crate::{Database, ErasureInfo, Result};

impl Database {
    /// The erasures there were, by number: see [`Table::erase`](crate::Table::erase).
    ///
    /// # Errors
    /// Those of a read.
    pub fn erasures(&self) -> Result<Vec<ErasureInfo>> {
        erasures(&self.snapshot()?, self.engine())
    }
}
