//! The last step over what memory does not hold.

use std::ops::ControlFlow;

use esker_format::codec::Writer;
use esker_format::row::encode_row;
use esker_format::{Batch, DataType, Schema, ValueRef};

use super::file::TemporaryFiles;
use super::groups::SpilledGroups;
use super::sorter::{ExternalSorter, Merge, Record};
use super::{push_row, rising};
use crate::bind::{Bound, Projection};
use crate::exec::evaluate::evaluate;
use crate::exec::filter::CodeTables;
use crate::exec::project::Sink;
use crate::exec::scan::{Morsel, Scan, ScanCounts, in_waves};
use crate::exec::sorter::{Location, Sorter, encode};
use crate::exec::vector::Picked;
use crate::options::Options;
use crate::plan::{Goal, ScanPlan};
use crate::predicate::Predicate;
use crate::{Result, ZONE_ROWS};

/// Filters, orders, cuts and shows groups.
///
/// # Errors
/// What evaluating, writing and reading fails with.
pub(in crate::exec) fn project(
    mut groups: SpilledGroups<'_>,
    projection: &Projection,
    options: &Options,
    files: &TemporaryFiles,
    sink: Sink<'_>,
) -> Result<ScanCounts> {
    let predicate = Predicate::compile(projection.filter.as_ref());
    let types: Vec<DataType> = projection.outputs.iter().map(Bound::data_type).collect();
    let schema = Schema::of_types(&types);
    let mut sorter = ExternalSorter::new(options, files);
    let mut counts = ScanCounts::default();
    loop {
        let first = groups.taken;
        let Some(source) = groups.next_source()? else { break };
        let (tables, row_count) = (CodeTables::default(), source.row_count());
        let plan = ScanPlan::new(&predicate, &source, Goal::ALL, options)?;
        let scan = Scan::new(&source, &predicate, &tables, &plan, options);
        counts += scan.run(&Morsel { part: 0, rows: 0..row_count }, |rows, mask| {
            let picked = Picked::of(&mask);
            let selection = picked.selection();
            let keys = projection.order.iter().map(|key| &key.bound);
            let keys = keys.map(|bound| evaluate(bound, rows, selection));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            let outputs = projection.outputs.iter();
            let outputs = outputs.map(|bound| evaluate(bound, rows, selection));
            let outputs = outputs.collect::<Result<Vec<_>>>()?;
            for i in 0..selection.len() {
                let mut key = Vec::new();
                for (order, vector) in projection.order.iter().zip(&keys) {
                    encode(&mut key, order, vector, i);
                }
                if projection.after.as_ref().is_some_and(|after| !after.is_before(&key)) {
                    continue;
                }
                key.extend(rising(first + rows.start() as u64 + u64::from(selection.row(i))));
                let mut out = Writer::new();
                let value = |field: usize| {
                    outputs.get(field).map_or(ValueRef::Null, |vector| vector.value(i))
                };
                encode_row(&mut out, &schema, value);
                sorter.push(&key, out.as_bytes())?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    show(sorter.finish()?, &schema, projection, sink)?;
    Ok(counts)
}

/// Hands over the rows of sorted records.
fn show(
    mut sorted: Merge<'_>,
    schema: &Schema,
    projection: &Projection,
    sink: Sink<'_>,
) -> Result<()> {
    let mut batch = Batch::empty(schema);
    let mut left = projection.rows_wanted() as u64;
    let mut skip = projection.offset;
    while left > 0
        && let Some(Record { payload, .. }) = sorted.next()?
    {
        left -= 1;
        if skip > 0 {
            skip -= 1;
            continue;
        }
        push_row(&mut batch, schema, &payload)?;
        if batch.len() >= ZONE_ROWS
            && sink(std::mem::replace(&mut batch, Batch::empty(schema)))?.is_break()
        {
            return Ok(());
        }
    }
    if !batch.is_empty() {
        let _ = sink(batch)?;
    }
    Ok(())
}

/// Where rows lie, in an order.
pub(in crate::exec) struct SortedLocations<'a> {
    merge: Merge<'a>,
}

/// Sorts the locations of all rows; `job` finds those of a morsel.
///
/// # Errors
/// What `job`, writing and reading fails with.
pub(in crate::exec) fn sorted_locations<'o>(
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
    pub(in crate::exec) fn next(&mut self) -> Result<Option<Location>> {
        let Some(Record { key, .. }) = self.merge.next()? else { return Ok(None) };
        let mut tail = key.last_chunk::<8>().copied().unwrap_or_default();
        tail.reverse();
        let place = u64::from_le_bytes(tail);
        let part = u32::try_from(place >> 32).unwrap_or(u32::MAX);
        let row = u32::try_from(place & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        Ok(Some(Location { part, row }))
    }
}
