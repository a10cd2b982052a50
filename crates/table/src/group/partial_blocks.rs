//! Partial aggregates of blocks of a group's rows, as far as readers needed them.
//!
//! The values of rows that have been published stay as they are, so that what a block of them comes
//! to does; who died is not in it. Layers above compute blocks, and take away what their reader
//! does not see. Nothing of it is stored: it goes with the group.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use esker_format::{Column, Schema};
use esker_vfs::sync::Mutex;

/// The groups of a block; `None` where it has too many.
pub type BlockGroups = Option<Vec<Column>>;

/// The blocks of a group, by the number of the index that a rollup is.
#[derive(Default)]
pub struct PartialBlocks {
    known: Mutex<BTreeMap<(u32, usize), Vec<KnownBlock>>>,
    reading: Mutex<Option<Reading>>,
}

struct KnownBlock {
    end: usize,
    groups: Arc<BlockGroups>,
}

/// What readers with a schema made of the rollups of the table.
struct Reading {
    schema: Arc<Schema>,
    made: Arc<dyn Any + Send + Sync>,
}

impl PartialBlocks {
    /// What a block comes to, where that is known.
    #[must_use]
    pub fn known(&self, index: u32, rows: &Range<usize>) -> Option<Arc<BlockGroups>> {
        // default: the map is whole between any two steps
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = known.get(&(index, rows.start))?;
        blocks.iter().find(|block| block.end == rows.end).map(|block| Arc::clone(&block.groups))
    }

    /// Keeps what a block comes to, in place of those within it.
    pub fn keep(&self, index: u32, rows: &Range<usize>, groups: BlockGroups) -> Arc<BlockGroups> {
        let groups = Arc::new(groups);
        // default: as above
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, blocks) in known.range_mut((index, rows.start)..(index, rows.end)) {
            blocks.retain(|block| block.end > rows.end);
        }
        let block = KnownBlock { end: rows.end, groups: Arc::clone(&groups) };
        known.entry((index, rows.start)).or_default().push(block);
        groups
    }

    /// What a reader with this schema has kept, if it is what another one keeps.
    #[must_use]
    pub fn reading<T: Any + Send + Sync>(&self, schema: &Arc<Schema>) -> Option<Arc<T>> {
        // default: it is replaced as a whole
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = reading.as_ref().filter(|reading| Arc::ptr_eq(&reading.schema, schema))?;
        Arc::clone(&reading.made).downcast().ok()
    }

    /// Keeps what a reader with a schema made of the rollups, for those that follow.
    pub fn keep_reading(&self, schema: &Arc<Schema>, made: Arc<dyn Any + Send + Sync>) {
        let reading = Reading { schema: Arc::clone(schema), made };
        // default: as above
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_block_takes_the_place_of_those_within() {
        let blocks = PartialBlocks::default();
        for start in [0, 8, 16] {
            blocks.keep(3, &(start..start + 8), None);
        }
        blocks.keep(4, &(8..16), None);
        blocks.keep(3, &(0..16), Some(Vec::new()));
        let known = |index, start, end| blocks.known(index, &(start..end)).is_some();
        assert!(known(3, 0, 16) && known(3, 16, 24) && known(4, 8, 16));
        assert!(!known(3, 0, 8) && !known(3, 8, 16) && !known(4, 0, 8));
    }
}
