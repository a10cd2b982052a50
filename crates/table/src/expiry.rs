//! When rows expire: the value of one timestamp field (protocol rule 9).
//!
//! A reader fixes the time once; a row whose time has come is absent for it, though no commit says
//! so. Row groups know when their first row expires, so that a reader before that looks at no row.
//!
//! The field may be changed: readers at older commits ask for the times of another one.

use esker_format::segment::ZONE_ROWS;
use esker_format::{Field, Room, ValueRef};

use crate::Result;
pub use crate::known_expiry::has_expired;
use crate::known_expiry::{OfField, initial_expiry};
use crate::segment::Segment;
use crate::view::RowGroup;

impl RowGroup {
    /// When the first row expires, or earlier: `i64::MAX` when none does.
    #[must_use]
    pub fn least_expiry(&self, field: &Field) -> i64 {
        match self {
            Self::Group(group) => group.least_expiry(field),
            Self::Segment(segment) => segment.least_expiry(field),
        }
    }

    /// True when a row has expired at a time.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn has_expired(&self, row: usize, field: &Field, now_us: i64) -> Result<bool> {
        Ok(has_expired(self.value(field, row, &Room::default())?, now_us))
    }

    /// How many living rows have expired at a time, of those that every reader of commit `oldest`
    /// or later knows. The others lead to what they replaced, which older readers may see.
    pub fn count_expired(&self, field: &Field, now_us: i64, oldest: u64) -> Result<u64> {
        if self.least_expiry(field) > now_us {
            return Ok(0);
        }
        let mut count = 0;
        for row in 0..self.row_count() {
            let is_droppable = self.is_alive(row) && self.is_created_at(row, oldest);
            count += u64::from(is_droppable && self.has_expired(row, field, now_us)?);
        }
        Ok(count)
    }
}

impl Segment {
    fn least_expiry(&self, field: &Field) -> i64 {
        self.known_expiry(field).least_us
    }

    fn known_expiry(&self, field: &Field) -> &OfField {
        self.expiry.of(field.id, || {
            if !self.has_column(field) {
                return initial_expiry(field);
            }
            let zones = self.row_count().div_ceil(ZONE_ROWS);
            let least = (0..zones).map(|zone| match self.zone(field, zone) {
                Some((ValueRef::Timestamp(least), _, _)) => least,
                Some((ValueRef::Null, _, _)) => i64::MAX,
                // Nothing is known of it.
                _ => i64::MIN,
            });
            least.fold(i64::MAX, i64::min)
        })
    }

    /// Reads the whole field once.
    pub(crate) fn verify_expiry(&self, field: &Field) -> Result<()> {
        let known = self.known_expiry(field);
        if known.verified.get().is_some() {
            return Ok(());
        }
        for start in (0..self.row_count()).step_by(ZONE_ROWS) {
            self.column(field, start..self.zone_end(start), &Room::default())?;
        }
        let _ = known.verified.set(());
        Ok(())
    }
}
