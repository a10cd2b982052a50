//! Answers for people.

use std::io::{Result, Write};

use comfy_table::{CellAlignment, Table, presets};
use esker::{DataType, ValueRef};

use super::Answer;
use crate::units;

/// The most rows shown; the other formats write all.
const ROWS_SHOWN: usize = 1_000;

/// The least width of a column that is cut.
const CUT_CHARS_MIN: usize = 6;
/// What stands beside the text of a cell: a space on either side and a line.
const FRAME_CHARS: usize = 3;

pub(super) fn write<'v, R>(
    out: &mut dyn Write,
    mut answer: Answer<'_, R>,
    width: Option<usize>,
) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let mut rows = vec![answer.columns.iter().map(|(name, _)| printable(name)).collect()];
    let shown = answer.rows.by_ref().take(ROWS_SHOWN);
    rows.extend(shown.map(|row| row.iter().map(|v| printable(&v.to_string())).collect()));
    let kept = width.map_or(answer.columns.len(), |width| fit(&mut rows, width));
    let mut rows = rows.into_iter();
    let mut table = plain_table(rows.next().unwrap_or_default());
    rows.for_each(|row| {
        table.add_row(row);
    });
    for (column, (_, data_type)) in table.column_iter_mut().zip(&answer.columns) {
        if is_right_aligned(*data_type) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if let Some(left_out @ [_, ..]) = answer.columns.get(kept..) {
        let names: Vec<String> = left_out.iter().map(|(name, _)| printable(name)).collect();
        let count = units::counted(left_out.len() as u64, "column");
        writeln!(out, "… and {count} more: {}", names.join(", "))?;
    }
    match answer.rows.count() as u64 {
        0 => Ok(()),
        more => writeln!(
            out,
            "… and {}: --format csv or json shows all",
            units::counted(more, "more row").replace("more rows", "rows more")
        ),
    }
}

/// Cuts cells until rows are at most so wide: first the widest columns, then the last ones are left
/// out. Returns how many columns stay.
fn fit(rows: &mut [Vec<String>], width: usize) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let mut widths = vec![1usize; columns];
    for row in &*rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(cell.chars().count());
        }
    }
    let taken = |widths: &[usize]| widths.iter().map(|w| w + FRAME_CHARS).sum::<usize>() + 1;
    while taken(&widths) > width {
        let widest = widths.iter_mut().max().filter(|widest| **widest > CUT_CHARS_MIN);
        if let Some(widest) = widest {
            *widest -= 1;
        } else if widths.len() > 1 {
            widths.pop();
        } else {
            break;
        }
    }
    for row in rows {
        row.truncate(widths.len());
        for (cell, most) in row.iter_mut().zip(&widths) {
            if cell.chars().count() > *most {
                *cell = cell.chars().take(most - 1).chain(['…']).collect();
            }
        }
    }
    widths.len()
}

fn is_right_aligned(data_type: DataType) -> bool {
    data_type.is_numeric()
}

/// An empty table with a header, drawn with as few lines as read well.
pub(crate) fn plain_table<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<String>>());
    table
}

/// A text without characters that would move the cursor or colour the terminal.
pub(crate) fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}
