//! What is generated of rows outside of transactions: rows of other tables are looked up as they
//! are now.

use std::borrow::Cow;

use esker_format::{Batch, Value};
use esker_query::Limits;

use crate::Result;
use crate::bulk_load::batch_check::check_keys;
use crate::catalog::generated::RowBefore;
use crate::engine_handle::EngineHandle;
use crate::read::looked_up::NewestRows;
use crate::table_version::TableVersion;

impl EngineHandle {
    fn newest_rows<'a>(&'a self, current: &'a TableVersion) -> NewestRows<'a> {
        NewestRows { engine: self, as_of: &current.looked_up }
    }

    /// A row that is given whole, as it is stored.
    pub fn complete_row<'r>(
        &self,
        current: &TableVersion,
        row: &'r [Value],
    ) -> Result<Cow<'r, [Value]>> {
        self.complete_row_by(current, row, &self.newest_rows(current))
    }

    /// Computes what is generated of rows that are given whole and fit.
    pub fn complete_rows(
        &self,
        current: &TableVersion,
        rows: &mut [Cow<'_, [Value]>],
        limits: &Limits,
    ) -> Result<()> {
        self.complete_by(current, rows, &self.newest_rows(current), limits)
    }

    /// Computes what is generated of a row that was made of another one.
    #[inline]
    pub fn recompute(
        &self,
        current: &TableVersion,
        changed: (&mut [Value], &RowBefore),
        limits: Option<&Limits>,
    ) -> Result<()> {
        self.recompute_by(current, changed, &self.newest_rows(current), limits)
    }

    /// Looks up again what is looked up for a batch of rows that are whole and tested.
    pub fn look_up_again(&self, current: &TableVersion, batch: &mut Batch) -> Result<()> {
        if !self.looks_up(current)? {
            return Ok(());
        }
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        let (others, limits) = (self.newest_rows(current), self.limits());
        match checks.generated().look_up_again(batch, &others, &limits)? {
            true => checks.test(batch, 0, &limits),
            false => Ok(()),
        }
    }

    /// Computes what is generated of a batch whose other columns fit. The first row has a number.
    pub fn complete_batch(
        &self,
        current: &TableVersion,
        batch: &mut Batch,
        first_row: u64,
    ) -> Result<()> {
        if !current.schema.has_generated() {
            return Ok(());
        }
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        let others = self.newest_rows(current);
        checks.generated().complete_batch((batch, first_row), &others, &self.limits())?;
        check_keys(&current.schema, batch, first_row)
    }
}
