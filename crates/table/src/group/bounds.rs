//! Bounds on the values of a group's zones, found when a reader first asks for them.
//!
//! Rows of a group never change, so what is known of a zone whose rows are all there stays so. Only
//! numbers and times have bounds here, and a zone that still grows has none.

use std::sync::OnceLock;

use esker_format::segment::ZONE_ROWS;
use esker_format::{DataType, Field, Value, ValueRef};

use super::Group;
use crate::location::ROW_GROUP_ROWS_MAX;

/// What is known of the zones of each column, once they were needed.
#[derive(Debug, Default)]
pub(crate) struct KnownBounds(OnceLock<Box<[OnceLock<Zones>]>>);

type Zones = Box<[OnceLock<Option<Bounds>>]>;

/// The least value, NULL when all are; the greatest; how many are NULL.
#[derive(Debug)]
struct Bounds {
    least: Value,
    greatest: Value,
    null_count: usize,
}

impl Group {
    /// Bounds on a field within a zone, as segments have them.
    #[must_use]
    pub fn zone(
        &self,
        field: &Field,
        zone: usize,
    ) -> Option<(ValueRef<'_>, Option<ValueRef<'_>>, usize)> {
        let at = self.column_map.get(field.id)?;
        let (first, end) = (zone * ZONE_ROWS, (zone + 1) * ZONE_ROWS);
        let is_same = self.columns.get(at)?.data_type() == field.data_type;
        if end > self.row_count() || !is_same || !has_bounds(field.data_type) {
            return None;
        }
        let columns = || self.columns.iter().map(|_| OnceLock::new()).collect();
        let zones = ROW_GROUP_ROWS_MAX.div_ceil(ZONE_ROWS);
        let zones = || std::iter::repeat_with(OnceLock::new).take(zones).collect();
        let known = self.bounds.0.get_or_init(columns).get(at)?.get_or_init(zones).get(zone)?;
        let known = known.get_or_init(|| self.find_bounds(field, first, end)).as_ref()?;
        let Bounds { least, greatest, null_count } = known;
        Some((least.as_ref(), Some(greatest.as_ref()), *null_count))
    }

    /// The bounds of some rows; `None` where one cannot be read, which reading it will say.
    fn find_bounds(&self, field: &Field, first: usize, end: usize) -> Option<Bounds> {
        let (mut least, mut greatest) = (ValueRef::Null, ValueRef::Null);
        let (mut null_count, mut row) = (0, first);
        while row < end {
            let next = self.chunk_end(row).min(end);
            let column = self.column(field, row, next).ok()?;
            for i in 0..next - row {
                let value = column.value(i);
                if value.is_null() {
                    null_count += 1;
                    continue;
                }
                if least.is_null() || value.compare(least).is_lt() {
                    least = value;
                }
                if greatest.is_null() || value.compare(greatest).is_gt() {
                    greatest = value;
                }
            }
            row = next;
        }
        let (least, greatest) = (least.to_owned(), greatest.to_owned());
        Some(Bounds { least, greatest, null_count })
    }
}

/// Types whose values take a few bytes each and have one order.
fn has_bounds(data_type: DataType) -> bool {
    let is_other = matches!(data_type, DataType::Bool | DataType::Json | DataType::Enum);
    !is_other && !data_type.is_variable() && !data_type.is_float()
}
