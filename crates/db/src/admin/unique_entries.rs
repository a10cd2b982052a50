//! Checking the entries of unique indexes.

use std::ops::ControlFlow;
use std::sync::Arc;

use esker_table::Table as TableCore;
use esker_table::table::{ComputedRow, UniqueKeys};
use esker_table::view::{RowGroup, View};

use super::check::CheckReport;
use crate::engine::Engine;
use crate::{Error, Result};

/// Every living row is found by its values in each unique index, and no other one is.
pub(crate) fn check(engine: &Engine, table: &Arc<TableCore>, report: &mut CheckReport) {
    let view = table.view();
    for keys in table.uniques().iter() {
        for row_group in view.row_groups.iter().filter(|row_group| !row_group.is_loading()) {
            for row in 0..row_group.row_count() {
                let place = (row_group, row);
                // Again when no writer is between a row and its entry.
                let checked = check_row(table, keys, &view, place).or_else(|_| {
                    let _catalogue = engine.lock();
                    check_row(table, keys, &view, place)
                });
                if let Err(e) = checked {
                    report.add(&table.name(), e.to_string());
                }
            }
            row_group.release();
        }
        report.index_entries += keys.entries().len() as u64;
    }
}

fn check_row(
    table: &TableCore,
    keys: &UniqueKeys,
    view: &View,
    (row_group, row): (&RowGroup, usize),
) -> Result<()> {
    let schema = &view.schema;
    if !row_group.is_alive(row) {
        return Ok(());
    }
    let mut room = ComputedRow::default();
    let values = keys.values_at(schema, (row_group, row), &mut room)?;
    let Some(values) = values else { return Ok(()) };
    let hash = table.hasher().hash_key(values.iter().copied());
    let mut found = 0;
    // By the row groups of now: an entry may be newer than those that are checked.
    keys.candidates(&table.view(), hash, |(row_group, row), _| {
        let lives = row_group.is_alive(row) && !row_group.is_loading();
        found += usize::from(lives && keys.equals(schema, (row_group, row), &values)?);
        Ok::<_, Error>(ControlFlow::<()>::Continue(()))
    })?;
    // A row that died meanwhile, or was moved, is no problem.
    let is_there = row_group.is_alive(row) && table.view().row_group(row_group.id()).is_some();
    if found != 1 && is_there {
        let (what, row_id) = (keys.describe(schema, &values), row_group.row_id(row)?);
        return Err(Error::corrupt(format!("{what}: row {row_id} is found {found} times by it")));
    }
    Ok(())
}
