//! Sorting the rows of a segment by some of its columns.
//!
//! Each column becomes *ranks*: whole numbers in the order of its values, NULL the greatest. Then
//! rows are sorted by the ranks of the last column first, and stably by those before it. Texts by
//! themselves are sorted without ranks.

use esker_format::{ColumnSlice, Data};

use super::bytes_order;
use super::radix::sort_by_rank;
use super::ranks::Ranks;
use crate::{Error, Result};

/// The rows in the order of some columns, each with whether its greatest value comes first; NULL
/// last, ties by row.
///
/// # Errors
/// `Corrupt` when the columns do not have so many rows.
pub(super) fn sorted_rows(len: usize, columns: &[(ColumnSlice<'_>, bool)]) -> Result<Vec<u32>> {
    if let Some((column, _)) = columns.iter().find(|(column, _)| column.len != len) {
        return Err(Error::corrupt(format!("a column of {} rows, expected {len}", column.len)));
    }
    if let [(column, false)] = columns
        && column.data_type.is_variable()
        && !matches!(column.data, Data::Dictionary { .. } | Data::Constant(_))
    {
        return Ok(by_bytes(column));
    }
    let mut order: Vec<u32> = (0..len).zip(0u32..).map(|(_, row)| row).collect();
    for (column, descending) in columns.iter().rev() {
        let ranks = Ranks::of(column);
        order = sort_by_rank(&order, |row| ranks.rank(row, *descending), ranks.greatest())?;
    }
    Ok(order)
}

fn by_bytes(column: &ColumnSlice<'_>) -> Vec<u32> {
    let mut order = bytes_order::sorted_rows(column);
    if order.len() < column.len {
        let rows = (0..column.len).zip(0u32..);
        order.extend(rows.filter(|(row, _)| column.is_null(*row)).map(|(_, number)| number));
    }
    order
}
