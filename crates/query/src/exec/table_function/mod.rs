//! The rows that functions make, which are read in place of tables.
//!
//! A series of numbers, and of moments without months, is made as it is read ([`Series`]), unless
//! its steps are so long that a batch would have few rows. Other rows are collected first.

mod collected;
mod made_rows;
mod numbers;
mod parts;

use esker_format::json::Json;
use esker_format::{List, Schema, ValueRef};

use crate::bind::table_function::{BoundCall, RowKind};
use crate::evaluate::shifted;
use crate::exec::output::Materialised;
use crate::source::SourceRef;
use crate::source::series::Series;
use crate::{Error, ErrorKind, Options, Result, ZONE_ROWS};
pub use collected::{CollectedRows, RowCollector};
pub(crate) use made_rows::MadeRows;
use numbers::Numbers;

/// The most rows of a series: so many are never read to the end.
const ROWS_MAX: u128 = 1 << 44;

/// A series of no more rows is collected where batches would be short.
const COLLECTED_MAX: u128 = 1 << 20;

/// How a call is made of constants.
pub(crate) struct Call<'c> {
    pub(crate) call: &'c BoundCall,
    /// One for each operand, of its type.
    pub(crate) operands: &'c [ValueRef<'c>],
}

impl Call<'_> {
    /// How many rows it makes, where that is known without making them.
    ///
    /// # Errors
    /// `InvalidQuery` for operands that make no rows.
    pub(crate) fn row_count(&self) -> Result<Option<u128>> {
        if self.operands.iter().any(|operand| operand.is_null()) {
            return Ok(Some(0));
        }
        if let Some(list) = self.list()? {
            return Ok(Some(list.len()? as u128));
        }
        match self.document() {
            Some(document) => parts::count(self.call.function, document).map(Some),
            None => Ok(self.numbers()?.map(|numbers| numbers.count)),
        }
    }

    /// Its rows as a source, of which no more than `most` are read; the schema has its columns, and
    /// one more for the numbers of rows where these are wanted.
    ///
    /// # Errors
    /// As [`Call::add_rows`].
    pub(crate) fn source<'a>(
        &self,
        schema: Schema,
        most: Option<u64>,
        options: &Options,
    ) -> Result<SourceRef<'a>> {
        let has_null = self.operands.iter().any(|operand| operand.is_null());
        if !has_null
            && matches!(self.call.rows, RowKind::Numbers(_) | RowKind::Moments)
            && let Some(numbers) = self.numbers()?
        {
            let count = most.map_or(numbers.count, |most| numbers.count.min(most.into()));
            if count > ROWS_MAX {
                let function = self.call.function.name();
                let message =
                    format!("{function}: expected {ROWS_MAX} rows at most, found {count}");
                return Err(Error::new(ErrorKind::OverBudget, message));
            }
            if let Some(steps) = numbers.steps(count)
                && (steps.batch_rows() == ZONE_ROWS || count > COLLECTED_MAX)
            {
                return Ok(SourceRef::Shared(std::sync::Arc::new(Series::new(schema, steps))));
            }
        }
        let mut rows = MadeRows::new(&schema, options).at_most(most);
        self.add_rows(&mut rows)?;
        let rows = Materialised::of(schema, rows.finish()?);
        Ok(SourceRef::Shared(std::sync::Arc::new(rows)))
    }

    /// Adds its rows to others.
    ///
    /// # Errors
    /// `InvalidQuery` for a step of zero, `OutOfRange` where a value is none of its type,
    /// `OverBudget` with the number of bytes needed.
    pub(crate) fn add_rows(&self, rows: &mut MadeRows<'_>) -> Result<()> {
        if self.operands.iter().any(|operand| operand.is_null()) {
            return Ok(());
        }
        if let Some(list) = self.list()? {
            for item in list.items() {
                if rows.is_full() {
                    break;
                }
                rows.push(&[item?.value(list.element())?.as_ref()])?;
            }
            return Ok(());
        }
        if let Some(document) = self.document() {
            return parts::add_rows(self.call.function, document, rows);
        }
        match self.numbers()? {
            Some(numbers) => numbers.add_rows(rows),
            None => self.add_moments(rows).map_err(|e| e.at(self.call.function.name())),
        }
    }

    /// The list whose items are the rows.
    fn list(&self) -> Result<Option<List<'_>>> {
        match (self.call.rows, self.operands) {
            (RowKind::Items, [ValueRef::List(list)]) => Ok(Some(List::of(list)?)),
            _ => Ok(None),
        }
    }

    /// What parts are made of.
    fn document(&self) -> Option<Json<'_>> {
        match (self.call.rows, self.operands) {
            (RowKind::Parts, [ValueRef::Json(document)]) => Some(Json::document(document)),
            _ => None,
        }
    }

    /// A series at equal distances; `None` where months are among the steps.
    fn numbers(&self) -> Result<Option<Numbers>> {
        Numbers::of(self.call, self.operands).map_err(|e| e.at(self.call.function.name()))
    }

    /// Moments some months from each other. Each is a step from the one before, so that the end of
    /// a short month is kept by those behind it, as PostgreSQL has it.
    fn add_moments(&self, rows: &mut MadeRows<'_>) -> Result<()> {
        let (RowKind::Moments, [ValueRef::Timestamp(start), ValueRef::Timestamp(stop), step @ ..]) =
            (self.call.rows, self.operands)
        else {
            return Err(Error::invalid("a series of other operands than its types say"));
        };
        let (months, us) = numbers::step_of(step)?;
        let is_up = numbers::direction(months, us)?;
        let is_exclusive = self.call.excludes_stop();
        let mut moment = *start;
        loop {
            let is_past = if is_up { moment > *stop } else { moment < *stop };
            if is_past || is_exclusive && moment == *stop || rows.is_full() {
                return Ok(());
            }
            rows.push(&[ValueRef::Timestamp(moment)])?;
            let next = shifted(moment, months, us);
            moment = next.ok_or_else(|| Error::out_of_range("a step leads to no timestamp"))?;
        }
    }
}

impl BoundCall {
    fn excludes_stop(&self) -> bool {
        self.function == crate::model::TableFunction::Range
    }
}
