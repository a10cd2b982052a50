//! When rows expire: the value of one timestamp field (protocol rule 9).
//!
//! A reader fixes the time once; a row whose time has come is absent for it, though no commit says
//! so. Units know when their first row expires, so that a reader before that looks at no row.

use esker_format::segment::ZONE_ROWS;
use esker_format::{Field, ValueRef};

use crate::Result;
use crate::segment::Segment;
use crate::view::Unit;

/// True when a row with this value of the field has expired at a time, in microseconds since 1970.
#[must_use]
pub fn has_expired(value: ValueRef<'_>, now_us: i64) -> bool {
    matches!(value, ValueRef::Timestamp(at_us) if at_us <= now_us)
}

impl Unit {
    /// When the first row expires, or earlier: `i64::MAX` when none does.
    #[must_use]
    pub fn least_expiry(&self, field: &Field) -> i64 {
        match self {
            Self::Group(group) => group.least_expiry(),
            Self::Segment(segment) => segment.least_expiry(field),
        }
    }

    /// True when a row has expired at a time.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; likewise below.
    pub fn has_expired(&self, row: usize, field: &Field, now_us: i64) -> Result<bool> {
        Ok(has_expired(self.value(field, row)?, now_us))
    }

    /// How many living rows have expired at a time, of those that every reader of commit `oldest`
    /// or later knows. The others lead to what they replaced, which older readers may see.
    pub fn count_expired(&self, field: &Field, now_us: i64, oldest: u64) -> Result<u64> {
        if self.least_expiry(field) > now_us {
            return Ok(0);
        }
        let mut count = 0;
        for row in 0..self.row_count() {
            let is_droppable = self.deleted(row) == 0 && self.created(row) <= oldest;
            count += u64::from(is_droppable && self.has_expired(row, field, now_us)?);
        }
        Ok(count)
    }
}

impl Segment {
    fn least_expiry(&self, field: &Field) -> i64 {
        *self.expiry.least.get_or_init(|| {
            let zones = self.row_count().div_ceil(ZONE_ROWS);
            let least = (0..zones).map(|zone| match self.zone(field, zone) {
                Some((ValueRef::Timestamp(least), _, _)) => least,
                Some((ValueRef::Null, _, _)) => i64::MAX,
                // Nothing is known of it.
                _ => i64::MIN,
            });
            least.min().unwrap_or(i64::MAX)
        })
    }

    /// Reads the whole field once.
    pub(crate) fn verify_expiry(&self, field: &Field) -> Result<()> {
        if self.expiry.verified.get().is_some() {
            return Ok(());
        }
        for start in (0..self.row_count()).step_by(ZONE_ROWS) {
            self.column(field, start..self.zone_end(start))?;
        }
        let _ = self.expiry.verified.set(());
        Ok(())
    }
}
