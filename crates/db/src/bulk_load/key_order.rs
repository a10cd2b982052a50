//! Rows of a load in the order of their keys, or of their times.

use esker_format::key::first_word;
use esker_format::{Batch, Column, Schema, ValueRef};
use esker_log::sabotage::Bug;
use esker_table::key_order::KeyForm;

use crate::Result;

/// Puts the rows of a batch in the order of their keys; returns where each row was. Rows with one
/// key stay in their order, and so do events of one time: it is that of their row ids.
pub(super) fn sort(schema: &Schema, batch: &mut Batch) -> Result<Vec<u32>> {
    let form = KeyForm::of(schema);
    let fields: Vec<_> = schema.sort_fields().map(|field| field.id).collect();
    let positions = schema.positions_of(&fields)?;
    let columns: Vec<&Column> = positions.iter().filter_map(|p| batch.columns.get(*p)).collect();
    let key = |row: usize| {
        let key: Vec<ValueRef<'_>> = columns.iter().map(|column| column.value(row)).collect();
        form.encode(&key)
    };
    let rows = (0..batch.len()).zip(0u32..);
    let mut order: Vec<(u64, u32)> =
        rows.map(|(row, number)| (first_word(&key(row)), number)).collect();
    if Bug::LoadIgnoresKeyOrder.is_planted() {
        return Ok(order.into_iter().map(|(_, row)| row).collect());
    }
    order.sort_unstable();
    for equal in order.chunk_by_mut(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1) {
        equal.sort_by_cached_key(|(_, row)| (key(*row as usize), *row));
    }
    let order: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
    for column in &mut batch.columns {
        let mut sorted = Column::empty(column.data_type);
        for row in &order {
            sorted.push(column.value(*row as usize))?;
        }
        *column = sorted;
    }
    Ok(order)
}
