//! Window functions over rows that memory does not hold.
//!
//! Rows lie in files by the hash of the keys of their partition, so that a partition is in one
//! file; a file of which memory does not hold the rows is split again. What comes of a file lies in
//! the order of the rows, which the merge of all of them keeps.

use std::ops::ControlFlow;

use esker_format::codec::Writer;
use esker_format::row::encode_row;
use esker_format::{Batch, DataType, Schema, ValueRef};

use super::groups::SpilledGroups;
use super::partitions::{LEVELS_MAX, Partitions, record_of, rest_of, split};
use super::row::{push_row, rising};
use super::sorter::{ExternalSorter, write_record};
use crate::bind::window::WindowStage;
use crate::bound::Bound;
use crate::evaluate::key_codec::encode;
use crate::exec::input::Input;
use crate::exec::output::RowBatches;
use crate::exec::scan::ScanCounts;
use crate::exec::showing::show;
use crate::exec::window::{vector, with_calls};
use crate::filter::CodeTables;
use crate::temporary_file::{SpillReader, TemporaryFiles};
use crate::{Error, ErrorKind, Options, Result, Source, ZONE_ROWS};

/// Computes the window functions of a stage, all of them over the same partitions.
///
/// # Errors
/// `OverBudget` when one partition is too large; what writing and reading fails with.
pub(crate) fn windows<'o>(
    source: &dyn Source,
    stage: &WindowStage,
    partition: &[usize],
    options: &'o Options,
    files: &'o TemporaryFiles,
) -> Result<(SpilledGroups<'o>, ScanCounts)> {
    let types: Vec<DataType> = stage.rows.outputs.iter().map(Bound::data_type).collect();
    let schema = Schema::of_types(&types);
    let (mut partitions, mut first) = (Partitions::new(files, 0)?, 0u64);
    let tables = CodeTables::default();
    let counts = show(Input::Source(source), &stage.rows, &tables, options, &mut |batch| {
        options.expect_time_left()?;
        write_rows(&mut partitions, &batch, partition, &schema, first)?;
        first += batch.len() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    let mut sorted = ExternalSorter::new(options, files);
    let mut todo: Vec<(SpillReader, u32)> =
        partitions.finish()?.into_iter().map(|file| (file, 1)).collect();
    while let Some((file, level)) = todo.pop() {
        if file.len() == 0 {
            continue;
        }
        match of_file(file.again(), stage, &schema, options, files) {
            Err(e) if e.kind() == ErrorKind::OverBudget && level < LEVELS_MAX => {
                let parts = split(file, level, options, files)?;
                todo.extend(parts.into_iter().map(|file| (file, level + 1)));
            }
            done => {
                let (run, count) = done?;
                sorted.add_sorted(run, count)?;
            }
        }
    }
    let count = sorted.len();
    Ok((SpilledGroups::of(sorted.finish()?, stage.types(), count), counts))
}

/// Adds rows, of which the first has some place: the keys of the partition, the place, the row.
fn write_rows(
    partitions: &mut Partitions,
    batch: &Batch,
    partition: &[usize],
    schema: &Schema,
    first: u64,
) -> Result<()> {
    let keys = partition.iter().map(|column| vector(batch, *column));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let mut out = Writer::new();
    for (row, place) in (0..batch.len()).zip(first..) {
        let mut record = record_of(|key| keys.iter().for_each(|vector| encode(key, vector, row)));
        record.extend(place.to_le_bytes());
        write_row(&mut out, batch, schema, row);
        record.extend_from_slice(out.as_bytes());
        partitions.push(&record)?;
    }
    Ok(())
}

fn write_row(out: &mut Writer, batch: &Batch, schema: &Schema, row: usize) {
    out.clear();
    encode_row(out, schema, |field| {
        // default: there is a column for each field
        batch.columns.get(field).map_or(ValueRef::Null, |column| column.value(row))
    });
}

/// What comes of the rows of a file, in their order, and how many there are.
fn of_file(
    mut file: SpillReader,
    stage: &WindowStage,
    schema: &Schema,
    options: &Options,
    files: &TemporaryFiles,
) -> Result<(SpillReader, u64)> {
    let (mut rows, mut places) = (RowBatches::new(options), Vec::new());
    let mut held = options.memory().charge();
    let mut batch = Batch::empty(schema);
    while let Some(record) = file.next()? {
        let (place, row) = rest_of(record).split_first_chunk::<8>().ok_or_else(|| {
            let message = format!("a row of {} bytes in a temporary file", record.len());
            Error::new(ErrorKind::Corrupt, message)
        })?;
        places.push(u64::from_le_bytes(*place));
        push_row(&mut batch, schema, row)?;
        if batch.len() == ZONE_ROWS {
            options.expect_time_left()?;
            held.set(places.capacity() * size_of::<u64>())?;
            let _more = rows.push(std::mem::replace(&mut batch, Batch::empty(schema)))?;
        }
    }
    if !batch.is_empty() {
        let _more = rows.push(batch)?;
    }
    let (batches, charge) = rows.finish_charged()?;
    let (batches, _charge) = with_calls(batches, charge, stage, options)?;
    let schema = Schema::of_types(&stage.types());
    let (mut run, mut out, mut next) = (files.create()?, Writer::new(), places.iter());
    for batch in &batches {
        options.expect_time_left()?;
        for (row, place) in (0..batch.len()).zip(next.by_ref()) {
            write_row(&mut out, batch, &schema, row);
            write_record(&mut run, &rising(*place), out.as_bytes())?;
        }
    }
    Ok((run.finish()?, places.len() as u64))
}
