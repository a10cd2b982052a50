//! Where the rows of a load go.

use esker::{Batch, Load, Table};

use super::Sink;
use crate::arguments::OnDuplicate;
use crate::failure::Result;

/// A bulk load of all rows or none, by what becomes of those whose key exists.
pub(super) fn start(table: &Table, on_duplicate: OnDuplicate, input_bytes: u64) -> Result<Load> {
    let mut load = table.load()?;
    match on_duplicate {
        OnDuplicate::Error => {}
        OnDuplicate::Skip => load.skip_existing()?,
        OnDuplicate::Replace => load.replace_existing()?,
    }
    load.reserve_input(input_bytes)?;
    Ok(load)
}

impl Sink for Load {
    fn push(&mut self, batch: Batch) -> Result<()> {
        Ok(Load::push(self, batch)?)
    }

    fn finish(self) -> Result<u64> {
        Ok(Load::finish(self)?.rows)
    }
}
