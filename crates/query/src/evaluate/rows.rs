//! A batch of rows of a part, with the columns that have been requested.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use esker_format::{ColumnSlice, Room};

use crate::meter::Meter;
use crate::{Error, Fragment, Limits, Result};

/// Consecutive rows of one part. A column is read when it is first requested.
pub(crate) struct Rows<'a> {
    part: Option<(&'a dyn Fragment, &'a Room)>,
    range: Range<usize>,
    columns: RefCell<BTreeMap<usize, ColumnSlice<'a>>>,
    meter: Meter<'a>,
}

impl<'a> Rows<'a> {
    /// `room` takes what the part does not have as it is read.
    pub(crate) fn new(
        part: &'a dyn Fragment,
        range: Range<usize>,
        limits: &'a Limits,
        room: &'a Room,
    ) -> Self {
        let meter = Meter::new(limits);
        Self { part: Some((part, room)), range, columns: RefCell::default(), meter }
    }

    /// One row without fields, for constants.
    pub(crate) fn constant(limits: &'a Limits) -> Self {
        let meter = Meter::new(limits);
        Self { part: None, range: 0..1, columns: RefCell::default(), meter }
    }

    /// Rows that have one column, which is at hand.
    pub(crate) fn of_column(position: usize, column: ColumnSlice<'a>, limits: &'a Limits) -> Self {
        let (range, meter) = (0..column.len, Meter::new(limits));
        let columns = RefCell::new(BTreeMap::from([(position, column)]));
        Self { part: None, range, columns, meter }
    }

    /// Counts what evaluating expressions over these rows takes.
    pub(crate) fn meter(&self) -> &Meter<'a> {
        &self.meter
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// The first row's number in its part.
    pub(crate) fn start(&self) -> usize {
        self.range.start
    }

    /// Tells the part how long the values of a field are in these rows.
    pub(crate) fn learn_lengths(&self, position: usize, lengths: RangeInclusive<u32>) {
        if let Some((part, _)) = self.part {
            part.learn_lengths(position, self.range.clone(), lengths);
        }
    }

    pub(crate) fn column(&self, position: usize) -> Result<ColumnSlice<'a>> {
        if let Some(column) = self.columns.borrow().get(&position) {
            return Ok(*column);
        }
        let (part, room) = self.part.ok_or_else(|| Error::invalid("a constant has no fields"))?;
        let column = part.column(position, self.range.clone(), room)?;
        self.columns.borrow_mut().insert(position, column);
        Ok(column)
    }
}
