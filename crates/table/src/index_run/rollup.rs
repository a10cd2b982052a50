//! The run of a rollup: partial aggregates of the groups of a segment's rows.
//!
//! ```text
//! segment-…2a   row    0  1  2  3  4       run-…2a-0004   model   a   b
//!               model  a  b  a  a  b                      rows    3   2
//!               cost   1  7  2  5  1                      cost    3 values, 8   2 values, 8
//! ```
//!
//! It is stored as a segment with a row for each group, in the order of the keys; what its columns
//! are says the layer above, which computes them. Every row is counted, dead ones included, so that
//! a run is a function of its segment and of the definition; readers take away what they do not
//! see.
//!
//! A segment with more groups than a quarter of its rows has a run of one row that says so: a group
//! of no rows. It is scanned.
//!
//! # Invariants
//!
//! Beside those of all runs:
//! 1. Its groups have at most as many rows as the segment, and exactly as many where no rows are
//!    left out of the rollup: asserted of all when a run is written, of the greatest when it is
//!    opened.
//! 2. No group has no rows, unless the run says that it is left out: asserted at both.
//!
//! That each group has its aggregates is compared by `verify`, which computes them anew.

use std::ops::Range;
use std::sync::Arc;

use esker_format::{Column, ColumnSlice, DataType, Field, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;

use super::row_number::number;
use super::run::IndexRun;
use super::run_format::{NewRun, RunFormat, RunSource, new_for};
use super::run_writer::write_columns;
use crate::index_values::{IndexValues, Partials};
use crate::segment::Segment;
use crate::segment::sink::SegmentSink;
use crate::{Error, Result};

/// A run has fewer groups than one for so many rows.
const ROWS_OF_GROUP_MIN: usize = 4;

/// So many groups are kept of any segment.
const GROUPS_MIN: usize = 64;

/// The most groups that a run of so many rows has.
fn groups_max(rows: usize) -> usize {
    (rows / ROWS_OF_GROUP_MIN).max(GROUPS_MIN)
}

/// [`IndexKind::Rollup`](esker_format::schema::IndexKind::Rollup).
pub(super) struct Rollups;

/// What computes the partial aggregates.
fn partials_of<'v>(
    index: &str,
    values: Option<&'v Arc<dyn IndexValues>>,
) -> Result<&'v dyn Partials> {
    let found = values.and_then(|values| values.partials());
    found.ok_or_else(|| Error::corrupt(format!("rollup {index:?}: nothing computes it")))
}

/// The columns of a run for some rows.
fn computed(new: NewRun<'_>, source: &dyn RunSource) -> Result<Vec<Column>> {
    let partials = partials_of(&new.index.name, new.values)?;
    let (room, rows) = (Room::default(), source.row_count());
    let mut read = Vec::new();
    for id in partials.reads() {
        let field = new.schema.field_of(*id).ok_or_else(|| new.no_field())?;
        read.push(source.column(field, &room)?);
    }
    let counted = rows.saturating_sub(usize::from(Bug::RollupLacksLastRow.is_planted()));
    if counted < rows {
        read = read.into_iter().map(|column| column.rows(0, counted)).collect();
    }
    Ok(match partials.compute(&read, counted, groups_max(rows))? {
        Some(columns) => columns,
        None => partials.types().iter().map(of_no_rows).collect::<Result<_>>()?,
    })
}

fn is_left_out(rows: &Column) -> bool {
    rows.len() == 1 && rows.value(0) == ValueRef::Uint(0)
}

/// Asserts that the groups have the rows of the segment.
fn expect_all_rows(new: NewRun<'_>, columns: &[Column], rows: usize) -> Result<()> {
    let partials = partials_of(&new.index.name, new.values)?;
    let counts = columns.get(partials.rows()).ok_or_else(|| new.no_field())?;
    let counts = (0..counts.len()).map(|group| Ok(u64::from(number(counts.value(group))?)));
    let counts = counts.collect::<Result<Vec<u64>>>()?;
    let (counted, rows) = (counts.iter().sum::<u64>(), rows as u64);
    let is_right = match new.index.filter {
        Some(_) => counted <= rows,
        None => counted == rows || counts == [0],
    };
    match is_right {
        true => Ok(()),
        false => {
            let rule = format!("groups have {counted} rows, the segment has {rows}");
            Err(esker_format::Error::broken("a rollup", rule).into())
        }
    }
}

/// The column of a run that says that it is left out.
fn of_no_rows(data_type: &DataType) -> Result<Column> {
    let mut column = Column::empty(*data_type);
    match data_type {
        DataType::U32 => column.push(ValueRef::Uint(0))?,
        _ => column.push_null(),
    }
    Ok(column)
}

impl RunFormat for Rollups {
    fn write(
        &self,
        new: NewRun<'_>,
        source: &dyn RunSource,
        sink: &mut dyn SegmentSink,
    ) -> Result<Segment> {
        let columns = computed(new, source).map_err(|e| new.at(e))?;
        expect_all_rows(new, &columns, source.row_count()).map_err(|e| new.at(e))?;
        let fields = partials_of(&new.index.name, new.values)?.columns();
        let stored = fields.iter().map(|field| field.id).zip(columns);
        write_columns(new, &stored.collect::<Vec<_>>(), sink)
    }

    fn broken_rule(&self, run: &IndexRun) -> Result<Option<String>> {
        let partials = partials_of(&run.index.name, run.values.as_ref())?;
        let rows = run.row_count() as u64;
        for bounds in run.number_bounds(run.partial_field(partials.rows())?) {
            let Some((least, greatest)) = bounds else {
                return Ok(Some("a group of no number of rows".to_owned()));
            };
            if greatest > rows {
                return Ok(Some(format!("groups have {greatest} rows, the segment has {rows}")));
            }
            if least == 0 && run.len() > 1 {
                return Ok(Some("a group of no rows".to_owned()));
            }
        }
        Ok(None)
    }

    fn is_readable_by(&self, run: &IndexRun, schema: &Schema) -> bool {
        let partials = run.values.as_ref().and_then(|values| values.partials());
        partials.is_some_and(|of| of.reads().iter().all(|id| schema.field_of(*id).is_some()))
    }

    fn is_left_out(&self, run: &IndexRun) -> Result<bool> {
        let partials = partials_of(&run.index.name, run.values.as_ref())?;
        let rows = run.partial_field(partials.rows())?;
        Ok(run.len() == 1 && number(run.entries.value_as_stored(rows, 0)?)? == 0)
    }

    fn verify(&self, run: &IndexRun, owner: &Segment, schema: &Schema) -> Result<()> {
        let new = new_for(run, owner, schema);
        let wrong = |what: &str| Err(new.at(Error::corrupt(what)));
        // What is left out depends on the memory that grouping took, too.
        if self.is_left_out(run)? {
            return Ok(());
        }
        let columns = computed(new, owner)?;
        let partials = partials_of(&run.index.name, run.values.as_ref())?;
        if columns.get(partials.rows()).is_some_and(is_left_out) {
            return Ok(());
        }
        // default: a rollup has a column at least
        let expected = columns.first().map_or(0, Column::len);
        if expected != run.len() {
            return wrong(&format!("{} groups, expected {expected}", run.len()));
        }
        for (number, (column, field)) in columns.iter().zip(&run.made).enumerate() {
            for group in 0..column.len() {
                if run.entries.value_as_stored(field, group)? != column.value(group) {
                    return wrong(&format!("another value in column {number}, group {group}"));
                }
            }
        }
        Ok(())
    }
}

impl IndexRun {
    /// A column of the groups of a rollup.
    ///
    /// # Errors
    /// `Corrupt` when there is none, or a block does not fit its checksum.
    pub fn partial_column(&self, number: usize, groups: Range<usize>) -> Result<ColumnSlice<'_>> {
        self.entries.column_as_stored(self.partial_field(number)?, groups)
    }

    /// What is known of a column of the groups of a rollup within a zone: the least value, the
    /// greatest where it is known, and how many are NULL.
    #[must_use]
    pub fn partial_zone(
        &self,
        number: usize,
        zone: usize,
    ) -> Option<(ValueRef<'_>, Option<ValueRef<'_>>, usize)> {
        self.entries.zone(self.made.get(number)?, zone)
    }

    /// True when the columns of a rollup are of some types.
    #[must_use]
    pub fn has_partials_of(&self, types: &[DataType]) -> bool {
        self.made.len() == types.len()
            && self
                .made
                .iter()
                .zip(types)
                .all(|(field, data_type)| self.entries.stored_type(field) == Some(*data_type))
    }

    fn partial_field(&self, number: usize) -> Result<&Field> {
        let missing = || {
            let message = format!("rollup {:?}: no column {number}", self.index.name);
            Error::corrupt(message)
        };
        self.made.get(number).ok_or_else(missing)
    }
}
