//! Where it is kept how long the texts of a segment are: see [`lengths`](super::lengths).

use std::sync::OnceLock;

use esker_vfs::sync::AtomicU64;

/// The words of a column's zones.
type Zones = Box<[AtomicU64]>;

/// What is known of the lengths in a segment: by column, once they were needed.
#[derive(Default)]
pub(super) struct KnownLengths {
    columns: OnceLock<Box<[OnceLock<Zones>]>>,
}

impl KnownLengths {
    pub fn zone(&self, column: usize, zone: usize) -> Option<&AtomicU64> {
        self.columns.get()?.get(column)?.get()?.get(zone)
    }

    /// The same, where there is none yet.
    pub fn zone_or_new(
        &self,
        (column, columns): (usize, usize),
        (zone, zones): (usize, usize),
    ) -> Option<&AtomicU64> {
        let all = self.columns.get_or_init(|| (0..columns).map(|_| OnceLock::new()).collect());
        let words = all.get(column)?;
        words.get_or_init(|| (0..zones).map(|_| AtomicU64::new(0)).collect()).get(zone)
    }
}
