//! Numbers at equal distances, made as they are read: no memory holds them.
//!
//! ```text
//! row       0      1      2    …      a batch: its least value, and how far each is from it
//! value     first  + step + step      ascending  0, step, 2 · step, …
//! number    1      2      3           descending the same from its end
//! ```
//!
//! The distances are the same for each batch, so that one table of them serves all. A distance has
//! 32 bits: the larger the step, the fewer rows a batch has.

use std::ops::Range;
use std::sync::Arc;

use esker_format::{Codes, ColumnSlice, Data, DataType, Room, Schema, Validity, ValueRef};

use super::{Fragment, Source, ZONE_ROWS, Zone};
use crate::{Error, Result};

/// The most rows of a part.
const PART_ROWS: usize = 1 << 30;

/// Values of a type that is stored as 64 bits, each a step from the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// The first value as it is stored: see [`ValueRef::as_word`].
    pub(crate) first: i64,
    /// In two's complement.
    pub(crate) step: i64,
    pub(crate) is_descending: bool,
    pub(crate) count: usize,
}

/// A column of values, and a second one with the numbers of the rows where the schema has one.
#[derive(Debug)]
pub(crate) struct Series {
    schema: Schema,
    parts: Vec<SeriesPart>,
}

/// Some rows of a series.
#[derive(Debug)]
struct SeriesPart {
    data_type: DataType,
    steps: Steps,
    /// The number of the first row.
    number: i64,
    distances: Arc<Distances>,
}

/// Of the rows of a batch from its first one.
#[derive(Debug)]
struct Distances {
    /// Of values, one batch of them.
    values: Vec<u32>,
    /// The same from the last row to the first.
    reversed: Vec<u32>,
    /// Of numbers.
    numbers: Vec<u32>,
}

impl Steps {
    /// The value of a row, as it is stored.
    fn word(&self, row: usize) -> i64 {
        // Rows have values that the type can hold: what wraps around comes back.
        self.first.wrapping_add((row as u64).cast_signed().wrapping_mul(self.step))
    }

    /// How many rows a batch has at the most.
    pub(crate) fn batch_rows(&self) -> usize {
        let step = self.step.unsigned_abs().max(1);
        let most = u64::from(u32::MAX) / step + 1;
        usize::try_from(most).unwrap_or(usize::MAX).min(ZONE_ROWS) // default: the least of both
    }
}

impl Series {
    /// The schema has one column, or one more for the numbers of rows.
    pub(crate) fn new(schema: Schema, steps: Steps) -> Self {
        // default: a series without a column has no values to be typed
        let data_type = schema.fields().first().map_or(DataType::I64, |field| field.data_type);
        let distances = Arc::new(Distances::new(&steps));
        let part = |start: usize| SeriesPart {
            data_type,
            steps: Steps {
                first: steps.word(start),
                count: (steps.count - start).min(PART_ROWS),
                ..steps
            },
            number: (start as u64).cast_signed().wrapping_add(1),
            distances: Arc::clone(&distances),
        };
        Self { schema, parts: (0..steps.count).step_by(PART_ROWS).map(part).collect() }
    }
}

impl Distances {
    fn new(steps: &Steps) -> Self {
        let step = u32::try_from(steps.step.unsigned_abs());
        let value = |row: usize| {
            // default: a step of more than 32 bits makes batches of one row
            let (row, step) = (u32::try_from(row).unwrap_or(0), step.unwrap_or(0));
            row.saturating_mul(step)
        };
        let values: Vec<u32> = (0..steps.batch_rows()).map(value).collect();
        let reversed = values.iter().rev().copied().collect();
        let numbers = (0..).take(ZONE_ROWS).collect();
        Self { values, reversed, numbers }
    }
}

impl Source for Series {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        self.parts.len()
    }

    #[allow(clippy::indexing_slicing, reason = "the contract of the trait")]
    fn part(&self, index: usize) -> &dyn Fragment {
        &self.parts[index]
    }
}

impl SeriesPart {
    /// The values of a column at the first and the last of some rows.
    fn ends(&self, position: usize, rows: &Range<usize>) -> [ValueRef<'static>; 2] {
        let last = rows.end.saturating_sub(1);
        [rows.start, last].map(|row| match position {
            0 => ValueRef::from_word(self.data_type, self.steps.word(row)),
            _ => ValueRef::Int(self.number.wrapping_add((row as u64).cast_signed())),
        })
    }
}

impl Fragment for SeriesPart {
    fn row_count(&self) -> usize {
        self.steps.count
    }

    fn visible_count(&self) -> Option<usize> {
        Some(self.steps.count)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let zone_end = (start / ZONE_ROWS + 1) * ZONE_ROWS;
        let most = rows_max.min(self.distances.values.len());
        zone_end.min(start.saturating_add(most)).min(self.steps.count)
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let Self { steps, distances, .. } = self;
        let missing = || Error::invalid(format!("no column {position} of a series {rows:?}"));
        let len = rows.len();
        let (data_type, base, codes) = match position {
            0 if len == 1 => (self.data_type, steps.word(rows.start), None),
            0 if steps.is_descending => {
                let from = distances.reversed.len().checked_sub(len).ok_or_else(missing)?;
                let last = rows.end.checked_sub(1).ok_or_else(missing)?;
                (self.data_type, steps.word(last), distances.reversed.get(from..))
            }
            0 => (self.data_type, steps.word(rows.start), distances.values.get(..len)),
            1 => {
                let first = self.number.wrapping_add((rows.start as u64).cast_signed());
                (DataType::I64, first, distances.numbers.get(..len))
            }
            _ => return Err(missing()),
        };
        let data = match codes {
            Some(codes) => Data::Narrowed { base: base.cast_unsigned(), codes: Codes::U32(codes) },
            None if len == 1 => Data::Constant(ValueRef::from_word(data_type, base)),
            None => return Err(missing()),
        };
        Ok(ColumnSlice { data_type, len, validity: Validity::AllValid, data })
    }

    fn visible(&self, _rows: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, position: usize, zone: usize) -> Option<Zone<'_>> {
        let start = zone.checked_mul(ZONE_ROWS)?;
        let rows = start..self.steps.count.min(start.checked_add(ZONE_ROWS)?);
        let [first, last] = self.ends(position, &rows);
        let is_descending = position == 0 && self.steps.is_descending;
        let (least, greatest) = if is_descending { (last, first) } else { (first, last) };
        Some(Zone { least, greatest: Some(greatest), null_count: 0 })
    }
}

#[cfg(test)]
mod tests {
    use esker_format::{Field, FieldId, Value};

    use super::*;

    fn series(first: i64, step: i64, count: usize) -> Series {
        let field = |name: &str| Field::new(FieldId(1), name.to_owned(), DataType::I64, false);
        let schema = Schema::of_fields(vec![field("g"), field("ordinality")]);
        Series::new(schema, Steps { first, step, is_descending: step < 0, count })
    }

    /// The values of both columns, batch by batch.
    fn rows(series: &Series) -> Vec<(i64, i64)> {
        let mut rows = Vec::new();
        for part in (0..series.part_count()).map(|part| series.part(part)) {
            let mut start = 0;
            while start < part.row_count() {
                let end = part.batch_end(start, 1_000);
                let room = Room::default();
                let [values, numbers] =
                    [0, 1].map(|at| part.column(at, start..end, &room).unwrap());
                for row in 0..end - start {
                    let int = |column: &ColumnSlice<'_>| match column.value(row).to_owned() {
                        Value::Int(value) => value,
                        other => panic!("{other}"),
                    };
                    rows.push((int(&values), int(&numbers)));
                }
                start = end;
            }
        }
        rows
    }

    #[test]
    fn each_value_is_a_step_from_the_one_before() {
        for step in [1, -1, 3, -7, 600_000, -600_000, 1 << 31, 1 << 40, -(1 << 40)] {
            let found = rows(&series(17, step, 9_000));
            let expected = (0..9_000).map(|i| (17 + i * step, i + 1));
            assert!(found.into_iter().eq(expected), "step {step}");
        }
    }

    #[test]
    fn the_ends_of_the_type_are_reached() {
        assert_eq!(rows(&series(i64::MAX - 1, 1, 2)), [(i64::MAX - 1, 1), (i64::MAX, 2)]);
        assert_eq!(rows(&series(i64::MIN + 1, -1, 2)), [(i64::MIN + 1, 1), (i64::MIN, 2)]);
        assert_eq!(
            rows(&series(i64::MIN, i64::MAX, 3)),
            [(i64::MIN, 1), (-1, 2), (i64::MAX - 1, 3)]
        );
    }

    #[test]
    fn zones_have_the_bounds_of_their_rows() {
        let up = series(5, 2, 10_000);
        let zone = up.part(0).zone(0, 1).unwrap();
        assert_eq!(zone.least.to_owned(), Value::Int(5 + 2 * 8_192));
        assert_eq!(zone.greatest.unwrap().to_owned(), Value::Int(5 + 2 * 9_999));
        let down = series(5, -2, 10_000);
        let zone = down.part(0).zone(0, 0).unwrap();
        assert_eq!(zone.least.to_owned(), Value::Int(5 - 2 * 8_191));
        assert_eq!(zone.greatest.unwrap().to_owned(), Value::Int(5));
    }
}
