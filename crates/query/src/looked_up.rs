//! Rows of other tables that are looked up while values of fields are computed.

use std::collections::BTreeSet;
use std::ops::Range;

use esker_format::{Column, DataType, Room};

use crate::bind::bind;
use crate::bind::scope::Scope;
use crate::bound::Bound;
use crate::evaluate::{Rows, Selection, evaluate};
use crate::model::Lookup;
use crate::row_expression::{FailedRow, RowsAtHand, for_each_part};
use crate::{Error, Limits, Result};

/// Finds rows of other tables.
pub trait FindRows {
    /// Appends to `found` what is looked up for each of some rows, by columns of the values of the
    /// key: NULL where there is no such row, or one of the values is NULL.
    ///
    /// # Errors
    /// What reading the table fails with.
    fn find(&self, lookup: &Lookup, keys: (&[Column], usize), found: &mut Column) -> Result<()>;
}

/// Where there are no other tables.
pub struct NoOtherRows;

impl FindRows for NoOtherRows {
    fn find(&self, lookup: &Lookup, _: (&[Column], usize), _: &mut Column) -> Result<()> {
        Err(Error::invalid(format!("{lookup}: there are no other tables here")))
    }
}

/// What is looked up of a row, ready to be computed.
#[derive(Clone, Debug)]
pub(crate) struct LookedUp {
    pub(crate) lookup: Lookup,
    pub(crate) data_type: DataType,
    keys: Vec<Bound>,
}

impl LookedUp {
    pub(crate) fn new(lookup: &Lookup, scope: &mut dyn Scope) -> Result<Self> {
        let Some(data_type) = lookup.data_type else {
            let message = format!("{lookup}: the table was not looked at");
            return Err(Error::invalid(message));
        };
        let within = lookup.keys.iter().flat_map(|key| key.lookups()).next();
        if let Some(within) = within {
            let message = format!("{lookup}: expected no other look-up within, found {within}");
            return Err(Error::invalid(message));
        }
        let keys = lookup.keys.iter().map(|key| bind(key, scope)).collect::<Result<_>>()?;
        Ok(Self { lookup: lookup.clone(), data_type, keys })
    }

    pub(crate) fn collect_fields(&self, fields: &mut BTreeSet<usize>) {
        self.keys.iter().for_each(|key| key.collect_fields(fields));
    }

    /// The types of the values of the key; `None` for a NULL.
    pub(crate) fn key_types(&self) -> Vec<Option<DataType>> {
        self.keys.iter().map(|key| key.data_type).collect()
    }

    /// What is found for some rows.
    pub(crate) fn of(
        &self,
        part: &RowsAtHand<'_>,
        others: &dyn FindRows,
        limits: &Limits,
    ) -> std::result::Result<Column, FailedRow> {
        let mut keys = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            // default: a NULL, by which nothing is found, may be of any type
            let mut column = Column::empty(key.data_type.unwrap_or(DataType::Bool));
            for_each_part(part.rows, &mut column, |range, column| {
                append(key, part, range, (limits, column))
            })?;
            keys.push(column);
        }
        let mut found = Column::empty(self.data_type);
        let done = others.find(&self.lookup, (&keys, part.rows), &mut found);
        done.map_err(|error| FailedRow { row: 0, error })?;
        Ok(found)
    }
}

fn append(
    key: &Bound,
    part: &RowsAtHand<'_>,
    range: Range<usize>,
    (limits, column): (&Limits, &mut Column),
) -> Result<()> {
    let count = range.len();
    let room = Room::default();
    let rows = Rows::new(part, range, limits, &room);
    let vector = evaluate(key, &rows, Selection::All(count))?;
    (0..count).try_for_each(|row| Ok(column.push(vector.value(row))?))
}
