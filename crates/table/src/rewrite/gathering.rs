//! Copying one column of the rows that are kept; long values stay where they are.

use esker_format::{Column, ColumnSlice, Data, Field, Room, ValueRef};
use esker_log::sabotage::Bug;

use super::{RELEASE_ROWS, RewritePlan, SegmentSink};
use crate::live_version::LiveVersion;
use crate::value_file::StoredValue;
use crate::view::RowGroup;
use crate::{Error, Result};

/// One column of an output on its way.
pub(super) struct Gathering<'a> {
    plan: &'a RewritePlan,
    field: &'a Field,
    sink: &'a mut dyn SegmentSink,
    /// Longer values go to value files.
    long_bytes: usize,
    column: Column,
    /// The long values, by row of the output.
    long: Vec<(usize, StoredValue)>,
    /// The last long value that all rows of a row group have, and where it was stored: row groups
    /// may have different ones.
    constant: Option<(Vec<u8>, StoredValue)>,
}

impl<'a> Gathering<'a> {
    pub fn new(plan: &'a RewritePlan, field: &'a Field, sink: &'a mut dyn SegmentSink) -> Self {
        let column = Column::empty(field.data_type);
        let schema = plan.table.schema();
        let long_bytes = match schema.may_have_long_values(field) {
            true => sink.long_bytes(),
            false => usize::MAX,
        };
        Self { plan, field, sink, long_bytes, column, long: Vec::new(), constant: None }
    }

    /// The column, which has an empty value in place of each long one.
    pub fn finish(self) -> (Column, Vec<(usize, StoredValue)>) {
        (self.column, self.long)
    }

    /// Copies rows, in runs of consecutive rows of one row group. What has been read of a row group
    /// leaves the memory again, or all of the inputs would be there at the same time.
    pub fn rows(&mut self, rows: &[LiveVersion]) -> Result<()> {
        let plan = self.plan;
        let mut at = 0;
        let mut read = vec![0; plan.inputs.len()];
        while let Some(first) = rows.get(at) {
            let row_group = plan.row_group(first)?;
            let start = first.row as usize;
            let limit = match row_group {
                RowGroup::Group(group) => group.chunk_end(start),
                RowGroup::Segment(segment) => segment.zone_end(start),
            };
            let follows = |(i, kept): (usize, &LiveVersion)| {
                kept.row_group == first.row_group && kept.row as usize == start + i
            };
            let run = rows
                .iter()
                .skip(at)
                .take(limit - start)
                .enumerate()
                .take_while(|pair| follows(*pair))
                .count()
                .max(1);
            if row_group.has_long(self.field) {
                (start..start + run).try_for_each(|row| self.row(row_group, row))?;
            } else {
                let room = Room::default();
                self.near(&row_group.column(self.field, start..start + run, &room)?)?;
            }
            at += run;
            let next = rows.get(at).map(|kept| kept.row_group);
            if let Some(read) = read.get_mut(first.row_group as usize) {
                *read += run;
                if *read >= RELEASE_ROWS.min(row_group.row_count()) && next != Some(first.row_group)
                {
                    row_group.release();
                    *read = 0;
                }
            }
        }
        Ok(())
    }

    /// One row of a row group that has long values.
    fn row(&mut self, row_group: &RowGroup, row: usize) -> Result<()> {
        let Some(stored) = row_group.stored_value(self.field, row)? else {
            let room = Room::default();
            return self.near(&row_group.column(self.field, row..row + 1, &room)?);
        };
        let stored = match self.plan.emptied.contains(&stored.reference.file) {
            true => self.moved(&stored)?,
            false => stored,
        };
        self.push_long(stored)
    }

    /// Copies a value into another file.
    fn moved(&mut self, stored: &StoredValue) -> Result<StoredValue> {
        let reference = &stored.reference;
        stored.file.ensure(reference)?;
        let bytes = stored.file.bytes(reference);
        if bytes.len() as u64 != reference.len {
            return Err(Error::corrupt(format!("{reference}: {} bytes are there", bytes.len())));
        }
        let copy = self.sink.store(bytes)?;
        Ok(match Bug::ValueReferenceNotRepointed.is_planted() {
            true => StoredValue { reference: stored.reference, ..copy },
            false => copy,
        })
    }

    fn push_long(&mut self, stored: StoredValue) -> Result<()> {
        self.long.push((self.column.len(), stored));
        self.column.push(ValueRef::from_bytes(self.field.data_type, &[]))?;
        Ok(())
    }

    /// Copies rows whose values lie in the row group; one that is too long for that goes to a value
    /// file.
    fn near(&mut self, slice: &ColumnSlice<'_>) -> Result<()> {
        let is_long = |i| slice.bytes(i).len() > self.long_bytes;
        if !(0..slice.len).any(is_long) {
            return Ok(self.column.append(slice)?);
        }
        for i in 0..slice.len {
            let bytes = slice.bytes(i);
            if bytes.len() <= self.long_bytes || slice.is_null(i) {
                self.column.push(slice.value(i))?;
                continue;
            }
            let known = self.constant.as_ref().filter(|(value, _)| value == bytes);
            let stored = match known {
                Some((_, stored)) => stored.clone(),
                None => self.sink.store(bytes)?,
            };
            if matches!(slice.data, Data::Constant(_)) {
                self.constant = Some((bytes.to_vec(), stored.clone()));
            }
            self.push_long(stored)?;
        }
        Ok(())
    }
}
