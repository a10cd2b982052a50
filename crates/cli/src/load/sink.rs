//! Where the rows of a load go.

use esker::{Batch, Load, LoadReport, Table, Value};

use crate::arguments::OnDuplicate;
use crate::failure::Result;

/// Rows of one commit, where a load is several.
const COMMIT_ROWS: usize = 64 << 10;
/// Bytes of values of one commit, where a load is several: far below what a commit may have.
const COMMIT_BYTES: usize = 8 << 20;

/// Takes the rows of a load.
pub(super) enum Sink {
    /// A bulk load: all rows or none.
    Load(Load),
    /// Commits of rows that replace others, in order.
    Replace { table: Table, rows: Vec<Vec<Value>>, bytes: usize, added: u64 },
}

impl Sink {
    pub(super) fn new(table: &Table, on_duplicate: OnDuplicate, input_bytes: u64) -> Result<Self> {
        let has_key = !table.schema().key_positions().is_empty();
        if on_duplicate == OnDuplicate::Replace && has_key {
            let (table, rows) = (table.clone(), Vec::new());
            return Ok(Self::Replace { table, rows, bytes: 0, added: 0 });
        }
        let mut load = table.load()?;
        if on_duplicate == OnDuplicate::Skip {
            load.skip_existing();
        }
        load.reserve_input(input_bytes)?;
        Ok(Self::Load(load))
    }

    pub(super) fn push(&mut self, mut batch: Batch) -> Result<()> {
        match self {
            Self::Load(load) => Ok(load.push(batch)?),
            Self::Replace { table, rows, bytes, added } => {
                table.fill_defaults(&mut batch)?;
                for row in 0..batch.len() {
                    let values = batch.columns.iter().map(|c| c.value(row).to_owned());
                    let values: Vec<Value> = values.collect();
                    *bytes += values.iter().map(size).sum::<usize>();
                    rows.push(values);
                    if rows.len() >= COMMIT_ROWS || *bytes >= COMMIT_BYTES {
                        *added += commit(table, rows)?;
                        *bytes = 0;
                    }
                }
                Ok(())
            }
        }
    }

    /// Makes all rows real; how many there are.
    pub(super) fn finish(self) -> Result<u64> {
        match self {
            Self::Load(load) => {
                let LoadReport { rows, .. } = load.finish()?;
                Ok(rows)
            }
            Self::Replace { table, mut rows, added, .. } => Ok(added + commit(&table, &mut rows)?),
        }
    }

    /// Whether a failure has left some rows behind.
    pub(super) fn has_committed(&self) -> bool {
        matches!(self, Self::Replace { added, .. } if *added > 0)
    }
}

fn size(value: &Value) -> usize {
    16 + value.as_ref().as_bytes().map_or(0, <[u8]>::len)
}

fn commit(table: &Table, rows: &mut Vec<Vec<Value>>) -> Result<u64> {
    if !rows.is_empty() {
        table.upsert_many(rows)?;
    }
    let count = rows.len() as u64;
    rows.clear();
    Ok(count)
}
