//! Reading the output columns of rows that lie anywhere, some at a time.
//!
//! Rows of a chunk are read by location, so that each batch of the table is read once, and put in
//! the order requested. Chunks are as large as the budget allows: the first is small, and tells how
//! large rows are.

use std::ops::{ControlFlow, Range};

use esker_format::{Batch, Room};
use esker_vfs::parallel_map;

use super::projected::{append, expression_room, types};
use super::{Output, Sink};
use crate::bind::Projection;
use crate::bound::{Bound, Node};
use crate::evaluate::{Rows, Selection};
use crate::exec::output::copy::collect;
use crate::exec::scan::{MORSEL_ROWS, Morsel, Scan, WAVE_MAX, in_waves};
use crate::exec::sort::late_materialization::FEW_ROWS;
use crate::exec::sort::{Location, late_materialization};
use crate::meter::Reservation;
use crate::{ErrorKind, Fragment, Result, Source, ZONE_ROWS};

/// Where rows are so far apart, on average, each value is read by itself: a column of them has to
/// be unpacked with what lies between.
const SPARSE: usize = 16;
/// Rows whose values lie in one room: what is unpacked for them is kept so long.
const ROOM_ROWS: usize = 32;

/// The fewest and the most rows of a chunk.
const CHUNK_ROWS: (usize, usize) = (ZONE_ROWS, 1 << 22);

/// Reads the output columns of rows, and gives them in the order requested; `next` names at most so
/// many more of them, and none after the last.
///
/// # Errors
/// What reading and evaluating fails with.
pub(crate) fn in_chunks<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    sink: Sink<'_>,
    next: &mut dyn FnMut(usize) -> Result<Vec<Location>>,
) -> Result<()> {
    // Until it is known how large rows are.
    let mut most = CHUNK_ROWS.0;
    loop {
        let locations = next(most)?;
        if locations.is_empty() {
            return Ok(());
        }
        let mut rest = locations.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at_checked(most).unwrap_or((rest, &[]));
            let (batches, bytes) = match fetch(scan, projection, now) {
                Err(e) if e.kind() == ErrorKind::OverBudget && now.len() > CHUNK_ROWS.0 => {
                    most = (now.len() / 4).max(CHUNK_ROWS.0);
                    continue;
                }
                fetched => fetched?,
            };
            rest = later;
            let fit = scan.options.memory().left() / 4 / (bytes / now.len()).max(1);
            most = fit.clamp(CHUNK_ROWS.0, most.saturating_mul(8).min(CHUNK_ROWS.1));
            for batch in batches {
                scan.options.expect_time_left()?;
                if sink(batch)?.is_break() {
                    return Ok(());
                }
            }
        }
    }
}

/// The rows at some locations, in this order, and about how many bytes reading them took.
fn fetch<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    locations: &[Location],
) -> Result<(Vec<Batch>, usize)> {
    if let Some(fields) = late_materialization::fields_of(projection, scan.source) {
        let types = types(projection);
        let batches =
            late_materialization::read(scan.source, (&fields, &types), locations, scan.options)?;
        let bytes: usize = batches.iter().map(crate::result::batch_bytes).sum();
        if locations.len() > CHUNK_ROWS.0 {
            scan.options.memory().charge().set(bytes)?;
        }
        return Ok((batches, bytes));
    }
    // By location, so that each batch is read once; `places` leads back to the order.
    let by_location = by_location(locations);
    let runs = runs(&by_location);
    let mut charge = scan.options.memory().charge();
    // The fewest rows are read whatever that takes.
    let is_least = locations.len() <= CHUNK_ROWS.0;
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = by_location.len() * 24;
    let mut at: Vec<(u32, u32)> = vec![(0, 0); locations.len()];
    let (mut next, mut computed) = (0u32, Vec::new());
    let morsels: Vec<_> = runs.iter().map(|run| Morsel { part: 0, rows: run.clone() }).collect();
    let job = |run: &Morsel| {
        let wanted = by_location.get(run.rows.clone()).unwrap_or_default();
        let mut output = Output::new(types(projection));
        let made = read(scan, projection, wanted, &mut output)?;
        Ok((output, run.rows.clone(), made))
    };
    in_waves(scan.options, &morsels, WAVE_MAX, job, |(output, run, made)| {
        bytes += output.bytes();
        computed.push(made);
        if !is_least {
            charge.set(bytes)?;
        }
        let (first, mut batch_start) = (next, 0u32);
        for batch in output.into_batches() {
            next += 1;
            batch_start += u32::try_from(batch.len()).unwrap_or(0);
            batches.push(batch);
        }
        debug_assert_eq!(batch_start as usize, run.len());
        let zone_rows = u32::try_from(ZONE_ROWS).unwrap_or(u32::MAX);
        let wanted = by_location.get(run).unwrap_or_default();
        for ((_, place), i) in wanted.iter().zip(0u32..) {
            if let Some(at) = at.get_mut(*place as usize) {
                *at = (first + i / zone_rows, i % zone_rows);
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let types = types(projection);
    let chunks: Vec<&[(u32, u32)]> = at.chunks(ZONE_ROWS).collect();
    let ordered =
        parallel_map(&*scan.options.tasks, &chunks, |places| collect(&types, &batches, places));
    Ok((ordered.into_iter().collect::<Result<_>>()?, bytes))
}

/// Locations in their order, and where each stood.
#[allow(clippy::cast_possible_truncation, reason = "each is put together of words of 32 bits")]
fn by_location(locations: &[Location]) -> Vec<(Location, u32)> {
    // One number each: these are sorted without branches.
    let pack = |(location, place): (&Location, u32)| {
        u128::from(location.part) << 64 | u128::from(location.row) << 32 | u128::from(place)
    };
    let mut packed: Vec<u128> = locations.iter().zip(0u32..).map(pack).collect();
    packed.sort_unstable();
    let unpack = |packed: u128| {
        let location = Location { part: (packed >> 64) as u32, row: (packed >> 32) as u32 };
        (location, packed as u32)
    };
    packed.into_iter().map(unpack).collect()
}

/// Ranges of `by_location` whose rows lie in one part and one span of [`MORSEL_ROWS`] rows, or all
/// of them where they are few.
fn runs(by_location: &[(Location, u32)]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    if by_location.len() <= FEW_ROWS {
        runs.push(0..by_location.len());
        return runs;
    }
    let span = |l: &(Location, u32)| (l.0.part, l.0.row as usize / MORSEL_ROWS);
    let mut start = 0;
    for run in by_location.chunk_by(|a, b| span(a) == span(b)) {
        runs.push(start..start + run.len());
        start += run.len();
    }
    runs
}

fn read<'a>(
    scan: &Scan<'a>,
    projection: &'a Projection,
    wanted: &[(Location, u32)],
    output: &mut Output,
) -> Result<Reservation<'a>> {
    let (mut rest, mut made) = (wanted, expression_room(scan.options.limits()));
    let fields = fields(projection);
    while let Some((part, rows, count)) = first_batch(scan.source, rest.iter().map(|(l, _)| l)) {
        let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        let rows = span_of(now.iter().map(|(l, _)| l.row)).unwrap_or(rows);
        let offset = u32::try_from(rows.start).unwrap_or(u32::MAX);
        rest = later;
        if let Some(fields) =
            fields.as_deref().filter(|_| rows.len() / SPARSE >= now.len() || rows.len() == 1)
        {
            for now in now.chunks(ROOM_ROWS) {
                let room = Room::default();
                for (location, _) in now {
                    let row = location.row as usize;
                    let values = fields.iter().map(|field| part.value(*field, row, &room));
                    output.push_row(values)?;
                }
            }
            continue;
        }
        let picked: Vec<u32> = now.iter().map(|(l, _)| l.row - offset).collect();
        let room = Room::default();
        let rows = Rows::new(part, rows, scan.options.limits(), &room);
        let selection = Selection::Rows(&picked);
        append(output, projection, &rows, selection, &mut made)?;
    }
    Ok(made)
}

/// The fields that are shown, where nothing is computed.
fn fields(projection: &Projection) -> Option<Vec<usize>> {
    let field = |output: &Bound| match output.node {
        Node::Field(position) => Some(position),
        _ => None,
    };
    projection.outputs.iter().map(field).collect()
}

/// The rows from the first to the last of some that ascend: what lies around them need not be
/// unpacked.
pub(crate) fn span_of(mut rows: impl DoubleEndedIterator<Item = u32>) -> Option<Range<usize>> {
    let first = rows.next()?;
    let last = rows.next_back().unwrap_or(first);
    Some(first as usize..last as usize + 1)
}

/// The batch of the first of some locations, which ascend, and how many of them lie in it.
pub(crate) fn first_batch<'a, 'l>(
    source: &'a dyn Source,
    mut locations: impl Iterator<Item = &'l Location>,
) -> Option<(&'a dyn Fragment, Range<usize>, usize)> {
    let first = locations.next()?;
    let (part, row) = (source.part(first.part as usize), first.row as usize);
    // Batches start where the scan had them start.
    let mut start = row / ZONE_ROWS * ZONE_ROWS;
    let zone_end = (start + ZONE_ROWS).min(part.row_count());
    let end_of = |start: usize| part.batch_end(start, zone_end - start).clamp(start + 1, zone_end);
    let mut end = end_of(start);
    while end <= row {
        (start, end) = (end, end_of(end));
    }
    let is_here = |l: &&Location| l.part == first.part && (l.row as usize) < end;
    Some((part, start..end, 1 + locations.take_while(is_here).count()))
}
