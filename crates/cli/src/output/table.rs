//! Answers for people.

use std::io::{Result, Write};

use comfy_table::{CellAlignment, Table, presets};
use esker::{DataType, ValueRef};

use super::Answer;
use crate::units;

/// The most rows shown; the other formats write all.
const ROWS_SHOWN: usize = 1_000;

pub(super) fn write<'v, R>(out: &mut dyn Write, mut answer: Answer<'_, R>) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let mut table = plain_table(answer.columns.iter().map(|(name, _)| printable(name)));
    for row in answer.rows.by_ref().take(ROWS_SHOWN) {
        table.add_row(row.iter().map(|value| printable(&value.to_string())));
    }
    for (column, (_, data_type)) in table.column_iter_mut().zip(&answer.columns) {
        if is_right_aligned(*data_type) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    writeln!(out, "{}", table.trim_fmt())?;
    match answer.rows.count() as u64 {
        0 => Ok(()),
        more => writeln!(
            out,
            "… and {}: --format csv or json shows all",
            units::counted(more, "more row").replace("more rows", "rows more")
        ),
    }
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
