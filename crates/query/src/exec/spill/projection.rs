//! The last step over what memory does not hold.

use std::ops::ControlFlow;

use esker_format::codec::Writer;
use esker_format::row::encode_row;
use esker_format::{Batch, Room, Schema, ValueRef};

use super::groups::SpilledGroups;
use super::row::{push_row, rising};
use super::sorter::{ExternalSorter, Merge, Record};
use crate::access_path::{Goal, ScanPlan};
use crate::bind::Projection;
use crate::evaluate::{Mask, Picked, Rows, Selection, evaluate};
use crate::exec::output::project::shown_of;
use crate::exec::output::projected::{append, expression_room, types};
use crate::exec::output::{Materialised, Output, Sink};
use crate::exec::scan::{Morsel, Scan, ScanCounts, in_waves};
use crate::exec::sort::sorter::encode;
use crate::exec::sort::{Location, Sorter};
use crate::filter::CodeTables;
use crate::predicate::Predicate;
use crate::temporary_file::TemporaryFiles;
use crate::{Budget, Error, ErrorKind, Options, Result, Source, ZONE_ROWS};

/// Filters, orders, cuts and shows groups. What is shown is computed for the groups that are, and
/// for no others: what fails in a group that a limit leaves out fails nothing.
///
/// # Errors
/// What evaluating, writing and reading fails with.
pub(crate) fn project(
    groups: SpilledGroups<'_>,
    projection: &Projection,
    options: &Options,
    files: &TemporaryFiles,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    match projection.order.is_empty() {
        true => as_met(groups, projection, options, sink),
        false => in_order(groups, projection, options, files, sink),
    }
}

/// Shows groups as they were met, and reads no more of them than are wanted.
fn as_met(
    mut groups: SpilledGroups<'_>,
    projection: &Projection,
    options: &Options,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let predicate = Predicate::compile(projection.filter.as_ref());
    // Groups come in batches, which take what a morsel does.
    let budget = Budget::new(usize::MAX);
    // default: an offset beyond all rows
    let mut skip = usize::try_from(projection.offset).unwrap_or(usize::MAX);
    let mut left = projection.rows_wanted().saturating_sub(skip);
    let mut counts = ScanCounts::default();
    while left > 0
        && let Some(source) = groups.next_source()?
    {
        let (tables, row_count) = (CodeTables::default(), source.row_count());
        let plan = ScanPlan::new(&predicate, &source, Goal::ALL, options)?;
        let scan = Scan::new(&source, &predicate, &tables, &plan, options);
        let all = Morsel { part: 0, rows: 0..row_count };
        let room = Room::default();
        let shown = shown_of(&scan, projection, (&all, &room), (skip, left), &budget);
        skip = shown.skip;
        left -= shown.output.len();
        counts += shown.counts;
        for batch in shown.output.into_batches() {
            if sink(batch)?.is_break() {
                return Ok(counts);
            }
        }
        match shown.error {
            Some(error) if left > 0 => return Err(error),
            _ => {}
        }
    }
    Ok(counts)
}

/// Sorts groups by the keys of an order, and shows the first of them.
fn in_order(
    mut groups: SpilledGroups<'_>,
    projection: &Projection,
    options: &Options,
    files: &TemporaryFiles,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let predicate = Predicate::compile(projection.filter.as_ref());
    let schema = Schema::of_types(&groups.types);
    let mut sorter = ExternalSorter::new(options, files);
    let mut counts = ScanCounts::default();
    loop {
        let first = groups.taken;
        let Some(source) = groups.next_source()? else { break };
        let (tables, row_count) = (CodeTables::default(), source.row_count());
        let plan = ScanPlan::new(&predicate, &source, Goal::ALL, options)?;
        let scan = Scan::new(&source, &predicate, &tables, &plan, options);
        let room = Room::default();
        counts += scan.run((&Morsel { part: 0, rows: 0..row_count }, &room), |rows, mask| {
            add_groups(&mut sorter, projection, &schema, rows, &mask, first)?;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    drop(groups);
    show_sorted(sorter.finish()?, &schema, projection, options, sink)?;
    Ok(counts)
}

/// Adds the groups of a mask by their keys; `first` is the number of the first of their source.
fn add_groups<'a>(
    sorter: &mut ExternalSorter<'_>,
    projection: &'a Projection,
    schema: &Schema,
    rows: &Rows<'a>,
    mask: &Mask,
    first: u64,
) -> Result<()> {
    let picked = Picked::of(mask);
    let selection = picked.selection();
    let keys = projection.order.iter().map(|key| evaluate(&key.bound, rows, selection));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let _copies = rows.meter().room_for_copies(&keys)?;
    let fields = (0..schema.fields().len()).map(|field| rows.column(field));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    for i in 0..selection.len() {
        let mut key = Vec::new();
        for (order, vector) in projection.order.iter().zip(&keys) {
            encode(&mut key, order, vector, i);
        }
        if projection.after.as_ref().is_some_and(|after| !after.is_before(&key)) {
            continue;
        }
        let row = selection.row(i);
        key.extend(rising(first + rows.start() as u64 + u64::from(row)));
        let mut out = Writer::new();
        let value = |field: usize| {
            // default: a column for each field was computed
            fields.get(field).map_or(ValueRef::Null, |column| column.value(row as usize))
        };
        encode_row(&mut out, schema, value);
        sorter.push(&key, out.as_bytes())?;
    }
    Ok(())
}

/// Shows the groups of sorted records.
fn show_sorted(
    mut sorted: Merge<'_>,
    schema: &Schema,
    projection: &Projection,
    options: &Options,
    sink: Sink<'_>,
) -> Result<()> {
    let mut left = projection.rows_wanted() as u64;
    let mut skip = projection.offset;
    loop {
        let mut groups = Batch::empty(schema);
        while left > 0
            && groups.len() < ZONE_ROWS
            && let Some(Record { payload, .. }) = sorted.next()?
        {
            left -= 1;
            match skip {
                0 => push_row(&mut groups, schema, &payload)?,
                _ => skip -= 1,
            }
        }
        let len = groups.len();
        if len == 0 {
            return Ok(());
        }
        let source = Materialised::of(schema.clone(), vec![groups]);
        let room = Room::default();
        let rows = Rows::new(source.part(0), 0..len, options.limits(), &room);
        let mut output = Output::new(types(projection));
        let selection = Selection::All(len);
        let mut made = expression_room(options.limits());
        append(&mut output, projection, &rows, selection, &mut made)?;
        for batch in output.into_batches() {
            if sink(batch)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Where rows lie, in an order.
pub(crate) struct SortedLocations<'a> {
    merge: Merge<'a>,
}

/// Sorts the locations of all rows; `job` finds those of a morsel.
///
/// # Errors
/// What `job`, writing and reading fails with.
pub(crate) fn sorted_locations<'o>(
    morsels: &[Morsel],
    options: &'o Options,
    files: &'o TemporaryFiles,
    job: impl Fn(&Morsel) -> Result<(Sorter, ScanCounts)> + Sync,
) -> Result<(SortedLocations<'o>, ScanCounts)> {
    let mut sorter = ExternalSorter::new(options, files);
    let mut counts = ScanCounts::default();
    let cores = options.tasks.parallelism().max(1);
    in_waves(options, morsels, cores, job, |(found, more): (Sorter, ScanCounts)| {
        counts += more;
        let mut bytes = Vec::new();
        for (key, Location { part, row }) in found.rows() {
            bytes.clear();
            bytes.extend_from_slice(key);
            bytes.extend(rising(u64::from(part) << 32 | u64::from(row)));
            sorter.push(&bytes, &[])?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((SortedLocations { merge: sorter.finish()? }, counts))
}

impl SortedLocations<'_> {
    /// The next location; `None` after the last.
    ///
    /// # Errors
    /// What reading fails with.
    pub(crate) fn next(&mut self) -> Result<Option<Location>> {
        let Some(Record { key, .. }) = self.merge.next()? else { return Ok(None) };
        let short = || {
            let message = format!("a key of {} bytes in a temporary file", key.len());
            Error::new(ErrorKind::Corrupt, message)
        };
        let mut tail = key.last_chunk::<8>().copied().ok_or_else(short)?;
        tail.reverse();
        let place = u64::from_le_bytes(tail);
        // default: 32 bits, which fit
        let part = u32::try_from(place >> 32).unwrap_or(u32::MAX);
        // default: 32 bits, which fit
        let row = u32::try_from(place & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        Ok(Some(Location { part, row }))
    }
}
