//! Rows that lie anywhere, read where they are shown: fields straight from the encoded columns of
//! the batches that they lie in.
//!
//! ```text
//! locations  0.9  0.2  1.4        batches   0: part 0, rows 0..8192     places  0:9 0:2 1:4
//!                                           1: part 1, rows 0..8192
//! ```
//!
//! Each value lies somewhere else, and waiting for memory is most of the work. So numbers are
//! decoded first where many rows of their batches are wanted, which reads them one after another;
//! and texts are found, touched and copied some at a time, each step for all of them, so that many
//! are waited for at once.

use std::hint::black_box;
use std::ops::Range;

use esker_format::{Batch, Column, ColumnSlice, DataType, Room, Values, VariableValues};
use esker_vfs::parallel_map;

use crate::bind::Projection;
use crate::bound::Node;
use crate::evaluate::Selection;
use crate::exec::output::copy::{append, collect_column, unpacked};
use crate::exec::sort::Location;
use crate::{Error, Fragment, Options, Result, Source, ZONE_ROWS};

/// How many texts are looked for at once.
const AT_ONCE: usize = 64;

/// So few rows are read before another thread has started.
pub(crate) const FEW_ROWS: usize = 512;

/// Numbers are decoded where at least one of so many rows is wanted: they take so many times the
/// memory of those that are shown.
const DENSE: usize = 4;

/// The number of a batch, and that of a row in it.
type Place = (u32, u32);

/// A column of a batch.
enum FieldSource<'a> {
    Encoded(ColumnSlice<'a>),
    Decoded(Column),
}

/// Batches of a source that some rows lie in.
struct Batches<'a> {
    parts: Vec<PartBatches>,
    all: Vec<(&'a dyn Fragment, Range<usize>)>,
}

/// The first of the batches of each zone of a part; `None` where no row lies, and nothing where
/// none lies in the part.
type PartBatches = Vec<Option<u32>>;

/// The fields that are shown, where nothing is computed and all values lie in mapped memory.
pub(crate) fn fields_of(projection: &Projection, source: &dyn Source) -> Option<Vec<usize>> {
    let is_at_hand = |part: &dyn Fragment| part.rows_at_once() >= part.row_count();
    if !(0..source.part_count()).all(|index| is_at_hand(source.part(index))) {
        return None;
    }
    let field = |output: &crate::bound::Bound| match output.node {
        Node::Field(position) => Some(position),
        _ => None,
    };
    projection.outputs.iter().map(field).collect()
}

/// Some fields of the rows at some locations, in this order.
///
/// # Errors
/// When a column cannot be read, or the query is to end; `OutOfRange` when texts would pass 4 GiB.
pub(crate) fn read(
    source: &dyn Source,
    (fields, types): (&[usize], &[DataType]),
    locations: &[Location],
    options: &Options,
) -> Result<Vec<Batch>> {
    let batches = Batches::of(source, locations);
    let is_few = locations.len() <= FEW_ROWS;
    let all_rows: usize = batches.all.iter().map(|(_, rows)| rows.len()).sum();
    let is_dense = locations.len().saturating_mul(DENSE) >= all_rows;
    let rooms: Vec<Room> = batches.all.iter().map(|_| Room::default()).collect();
    let read: Vec<_> = batches.all.iter().zip(&rooms).collect();
    let columns = map(options, is_few, &read, |((part, rows), room)| {
        options.expect_time_left()?;
        let column = |(position, data_type): (&usize, &DataType)| {
            source_of(part.column(*position, rows.clone(), room)?, *data_type, is_dense)
        };
        fields.iter().zip(types).map(column).collect::<Result<Vec<FieldSource<'_>>>>()
    });
    let columns = columns.into_iter().collect::<Result<Vec<_>>>()?;
    let chunks: Vec<&[Location]> = locations.chunks(ZONE_ROWS).collect();
    let shown = map(options, is_few, &chunks, |locations| {
        options.expect_time_left()?;
        let places: Vec<_> = locations.iter().map(|location| batches.place(*location)).collect();
        let column = |(number, data_type): (usize, &DataType)| {
            let sources: Option<Vec<_>> = columns.iter().map(|batch| batch.get(number)).collect();
            gather(*data_type, &sources.unwrap_or_default(), &places)
        };
        let columns = types.iter().enumerate().map(column).collect::<Result<_>>()?;
        Ok(Batch { columns })
    });
    shown.into_iter().collect()
}

/// What a job makes of each item, on other threads where that takes longer than waking them.
fn map<T: Sync, R: Send>(
    options: &Options,
    is_short: bool,
    items: &[T],
    job: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if is_short {
        items.iter().map(job).collect()
    } else {
        parallel_map(&*options.tasks, items, job)
    }
}

/// A column as values are taken from it.
fn source_of(
    slice: ColumnSlice<'_>,
    data_type: DataType,
    is_dense: bool,
) -> Result<FieldSource<'_>> {
    let mut column = Column::empty(data_type);
    let is_number = !matches!(column.values, Values::Variable(_));
    if is_dense && is_number && append(&mut column, &slice, Selection::All(slice.len))? {
        return Ok(FieldSource::Decoded(column));
    }
    Ok(FieldSource::Encoded(slice))
}

impl<'a> Batches<'a> {
    fn of(source: &'a dyn Source, locations: &[Location]) -> Self {
        let mut parts: Vec<PartBatches> = vec![Vec::new(); source.part_count()];
        for location in locations {
            let Some(zones) = parts.get_mut(location.part as usize) else { continue };
            if zones.is_empty() {
                // Not of each part: few rows lie in few of them.
                let rows = source.part(location.part as usize).row_count();
                zones.resize(rows.div_ceil(ZONE_ROWS), None);
            }
            let zone = zones.get_mut(location.row as usize / ZONE_ROWS);
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
    #[allow(clippy::cast_possible_truncation, reason = "a batch starts at or before its rows")]
    fn place(&self, location: Location) -> Place {
        let (row, zones) = (location.row as usize, self.parts.get(location.part as usize));
        let first = zones.and_then(|zones| zones.get(row / ZONE_ROWS).copied().flatten());
        let mut batch = first.unwrap_or_default();
        while self.all.get(batch as usize).is_some_and(|(_, rows)| rows.end <= row) {
            batch += 1;
        }
        let start = self.all.get(batch as usize).map_or(0, |(_, rows)| rows.start);
        (batch, location.row.saturating_sub(start as u32))
    }
}

/// The values at some places.
fn gather(data_type: DataType, sources: &[&FieldSource<'_>], places: &[Place]) -> Result<Column> {
    let decoded = sources.iter().map(|source| match source {
        FieldSource::Decoded(column) => Some(column),
        FieldSource::Encoded(_) => None,
    });
    if let Some(columns) = decoded.collect::<Option<Vec<&Column>>>() {
        return collect_column(data_type, &columns, places.iter().map(unpacked), false);
    }
    let slices: Vec<ColumnSlice<'_>> = sources.iter().map(|source| source.slice()).collect();
    let mut column = Column::empty(data_type);
    let Values::Variable(texts) = &mut column.values else {
        for (batch, row) in places {
            let slice = slices.get(*batch as usize).ok_or_else(missing)?;
            column.push(slice.value(*row as usize))?;
        }
        return Ok(column);
    };
    let nulls = gather_texts(texts, &slices, places)?;
    if !nulls.is_empty() {
        let mut marks = vec![0; places.len()];
        for place in nulls {
            marks.get_mut(place).into_iter().for_each(|mark| *mark = Column::NULL_MARK);
        }
        column.nulls = Some(marks);
    }
    Ok(column)
}

impl FieldSource<'_> {
    fn slice(&self) -> ColumnSlice<'_> {
        match self {
            Self::Encoded(slice) => *slice,
            Self::Decoded(column) => ColumnSlice::from(column),
        }
    }
}

/// Appends the texts at some places; returns which of them are NULL.
fn gather_texts(
    to: &mut VariableValues,
    slices: &[ColumnSlice<'_>],
    places: &[Place],
) -> Result<Vec<usize>> {
    let mut nulls = Vec::new();
    let mut found: Vec<&[u8]> = Vec::with_capacity(AT_ONCE);
    to.offsets.reserve(places.len());
    for (chunk, places) in places.chunks(AT_ONCE).enumerate() {
        found.clear();
        for (place, (batch, row)) in places.iter().enumerate() {
            let slice = slices.get(*batch as usize).ok_or_else(missing)?;
            let is_null = slice.is_null(*row as usize);
            if is_null {
                nulls.push(chunk * AT_ONCE + place);
            }
            found.push(if is_null { &[] } else { slice.bytes(*row as usize) });
        }
        // Both ends: a text may lie in two cache lines.
        let ends = |text: &&[u8]| text.first().unwrap_or(&0) ^ text.last().unwrap_or(&0);
        black_box(found.iter().map(ends).fold(0, |all, byte| all ^ byte));
        for text in &found {
            if !to.push(text) {
                return Err(Error::out_of_range("a batch of results would pass 4 GiB"));
            }
        }
    }
    Ok(nulls)
}

fn missing() -> Error {
    Error::invalid("a row lies in no batch")
}
