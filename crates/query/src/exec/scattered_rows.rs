//! Rows that lie anywhere, read where they are shown: fields straight from the encoded columns of
//! the batches that they lie in.
//!
//! ```text
//! locations  0.9  0.2  1.4        batches   0: part 0, rows 0..8192     places  0:9 0:2 1:4
//!                                           1: part 1, rows 0..8192
//! ```

use std::ops::Range;

use esker_format::{Batch, Column, ColumnSlice, DataType, Values};
use esker_vfs::parallel_map;

use super::sorter::Location;
use crate::bind::{Node, Projection};
use crate::options::Options;
use crate::source::{Part, Source};
use crate::{Error, Result, ZONE_ROWS};

/// Batches of a source that some rows lie in.
struct Batches<'a> {
    parts: Vec<PartBatches>,
    all: Vec<(&'a dyn Part, Range<usize>)>,
}

/// The first of the batches of each zone of a part; `None` where no row lies.
type PartBatches = Vec<Option<u32>>;

/// The fields that are shown, where nothing is computed and all values lie in mapped memory.
pub(super) fn fields_of(projection: &Projection, source: &dyn Source) -> Option<Vec<usize>> {
    let is_at_hand = |part: &dyn Part| part.rows_at_once() >= part.row_count();
    if !(0..source.part_count()).all(|index| is_at_hand(source.part(index))) {
        return None;
    }
    let field = |output: &crate::bind::Bound| match output.node {
        Node::Field(position) => Some(position),
        _ => None,
    };
    projection.outputs.iter().map(field).collect()
}

/// Some fields of the rows at some locations, in this order.
///
/// # Errors
/// When a column cannot be read, or the query is to end; `OutOfRange` when texts would pass 4 GiB.
pub(super) fn read(
    source: &dyn Source,
    (fields, types): (&[usize], &[DataType]),
    locations: &[Location],
    options: &Options,
) -> Result<Vec<Batch>> {
    let batches = Batches::of(source, locations);
    let columns = parallel_map(&*options.tasks, &batches.all, |(part, rows)| {
        options.expect_time_left()?;
        let columns = fields.iter().map(|position| part.column(*position, rows.clone()));
        columns.collect::<Result<Vec<ColumnSlice<'_>>>>()
    });
    let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
    let chunks: Vec<&[Location]> = locations.chunks(ZONE_ROWS).collect();
    let shown = parallel_map(&*options.tasks, &chunks, |locations| {
        options.expect_time_left()?;
        let places: Vec<_> = locations.iter().map(|location| batches.place(*location)).collect();
        let column = |(number, data_type): (usize, &DataType)| {
            let slices = columns.iter().map(|batch| batch.get(number).copied());
            let slices: Option<Vec<_>> = slices.collect();
            gather(*data_type, &slices.unwrap_or_default(), &places)
        };
        let columns = types.iter().enumerate().map(column).collect::<Result<_>>()?;
        Ok(Batch { columns })
    });
    shown.into_iter().collect()
}

impl<'a> Batches<'a> {
    fn of(source: &'a dyn Source, locations: &[Location]) -> Self {
        let zones = |part: usize| source.part(part).row_count().div_ceil(ZONE_ROWS);
        let mut parts: Vec<PartBatches> =
            (0..source.part_count()).map(|part| vec![None; zones(part)]).collect();
        for location in locations {
            let zones = parts.get_mut(location.part as usize);
            let zone = zones.and_then(|zones| zones.get_mut(location.row as usize / ZONE_ROWS));
            zone.into_iter().for_each(|zone| *zone = Some(0));
        }
        let mut all = Vec::new();
        for (index, zones) in parts.iter_mut().enumerate() {
            let part = source.part(index);
            for (zone, first) in zones.iter_mut().enumerate().filter(|(_, zone)| zone.is_some()) {
                *first = u32::try_from(all.len()).ok();
                let mut start = zone * ZONE_ROWS;
                let zone_end = (start + ZONE_ROWS).min(part.row_count());
                while start < zone_end {
                    let end = part.batch_end(start, zone_end - start).clamp(start + 1, zone_end);
                    all.push((part, start..end));
                    start = end;
                }
            }
        }
        Self { parts, all }
    }

    /// The batch of a row, and its number there.
    fn place(&self, location: Location) -> (usize, usize) {
        let (row, zones) = (location.row as usize, self.parts.get(location.part as usize));
        let first = zones.and_then(|zones| zones.get(row / ZONE_ROWS).copied().flatten());
        let mut batch = first.unwrap_or_default() as usize;
        while self.all.get(batch).is_some_and(|(_, rows)| rows.end <= row) {
            batch += 1;
        }
        let start = self.all.get(batch).map_or(0, |(_, rows)| rows.start);
        (batch, row.saturating_sub(start))
    }
}

/// The values at some places.
fn gather(
    data_type: DataType,
    slices: &[ColumnSlice<'_>],
    places: &[(usize, usize)],
) -> Result<Column> {
    let missing = || Error::invalid("a row lies in no batch");
    let mut column = Column::empty(data_type);
    let Values::Variable(texts) = &mut column.values else {
        for (batch, row) in places {
            column.push(slices.get(*batch).ok_or_else(missing)?.value(*row))?;
        }
        return Ok(column);
    };
    texts.offsets.reserve(places.len());
    let mut nulls: Vec<usize> = Vec::new();
    for (place, (batch, row)) in places.iter().enumerate() {
        let slice = slices.get(*batch).ok_or_else(missing)?;
        let is_null = slice.is_null(*row);
        if is_null {
            nulls.push(place);
        }
        if !texts.push(if is_null { &[] } else { slice.bytes(*row) }) {
            return Err(Error::out_of_range("a batch of results would pass 4 GiB"));
        }
    }
    if !nulls.is_empty() {
        let mut marks = vec![0; places.len()];
        for place in nulls {
            marks.get_mut(place).into_iter().for_each(|mark| *mark = Column::NULL_MARK);
        }
        column.nulls = Some(marks);
    }
    Ok(column)
}
