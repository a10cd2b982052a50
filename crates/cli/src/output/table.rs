//! Answers for people.

use std::io::{Result, Write};

use comfy_table::{CellAlignment, Table, presets};
use esker::{DataType, ValueRef};

use super::{Answer, Style};
use crate::units;

/// The least width of a column that is cut.
const CUT_CHARS_MIN: usize = 6;
/// What stands beside the text of a cell: a space on either side and a line.
const FRAME_CHARS: usize = 3;
/// What NULL is drawn with before it is coloured: no text has this character, see [`printable`].
const NULL_MARK: char = '\u{fdd0}';

pub(super) fn write<'v, R>(
    out: &mut dyn Write,
    mut answer: Answer<'_, R>,
    style: &Style,
) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let null = match style.colors {
        true => NULL_MARK.to_string().repeat(style.null.chars().count()),
        false => style.null.clone(),
    };
    let cell = |value: &ValueRef<'v>| match value {
        ValueRef::Null => null.clone(),
        value => printable(&value.to_string()),
    };
    let header = answer.columns.iter().map(|(name, data_type)| match style.types {
        true => format!("{}\n{data_type}", printable(name)),
        false => printable(name),
    });
    let mut rows = vec![header.collect()];
    let shown = answer.rows.by_ref().take(style.rows_max);
    rows.extend(shown.map(|row| row.iter().map(cell).collect()));
    let shown = rows.len() as u64 - 1;
    let kept = style.width.map_or(answer.columns.len(), |width| fit(&mut rows, width));
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
    let text = table.trim_fmt();
    writeln!(out, "{}", if style.colors { colored(&text, style) } else { text })?;
    if let Some(left_out @ [_, ..]) = answer.columns.get(kept..) {
        let names: Vec<String> = left_out.iter().map(|(name, _)| printable(name)).collect();
        let count = units::counted(left_out.len() as u64, "column");
        writeln!(out, "… and {count} more: {}", names.join(", "))?;
    }
    let more = answer.rows.count() as u64;
    left_out(out, more, style)?;
    counted_rows(out, shown + more, style)
}

/// Says how many rows are not shown, and what shows them.
pub(super) fn left_out(out: &mut dyn Write, rows: u64, style: &Style) -> Result<()> {
    match rows {
        0 => Ok(()),
        more => {
            let more = units::counted(more, "more row").replace("more rows", "rows more");
            writeln!(out, "… and {more}: {}", style.rest)
        }
    }
}

/// Says how many rows there are, where that is wanted.
pub(super) fn counted_rows(out: &mut dyn Write, rows: u64, style: &Style) -> Result<()> {
    match style.counts {
        true => writeln!(out, "({})", units::counted(rows, "row")),
        false => Ok(()),
    }
}

/// A drawn table with a bold header, and NULL in the place of its marks.
fn colored(text: &str, style: &Style) -> String {
    let header_lines = if style.types { 2 } else { 1 };
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if (1..=header_lines).contains(&number) {
            lines.push(format!("\x1b[1m{line}\x1b[0m"));
        } else if line.contains(NULL_MARK) {
            let mut shown = String::with_capacity(line.len());
            let mut rest = line;
            while let Some((before, after)) = rest.split_once(NULL_MARK) {
                let behind = after.trim_start_matches(NULL_MARK);
                let marks = 1 + (after.len() - behind.len()) / NULL_MARK.len_utf8();
                let null: String = style.null.chars().take(marks).collect();
                shown.push_str(&format!("{before}\x1b[2m{null}\x1b[0m"));
                rest = behind;
            }
            shown.push_str(rest);
            lines.push(shown);
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

/// Cuts cells until rows are at most so wide: first the widest columns, then the last ones are left
/// out. Returns how many columns stay.
fn fit(rows: &mut [Vec<String>], width: usize) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let mut widths = vec![1usize; columns];
    for row in &*rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(cell.lines().map(|line| line.chars().count()).max().unwrap_or(0));
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
            let cut = |line: &str| match line.chars().count() > *most {
                true => line.chars().take(most - 1).chain(['…']).collect(),
                false => line.to_owned(),
            };
            *cell = cell.lines().map(cut).collect::<Vec<String>>().join("\n");
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

/// A text without characters that would move the cursor or colour the terminal, or that stand for
/// NULL in a table that is being drawn.
pub(crate) fn printable(text: &str) -> String {
    let is_hidden = |c: char| c.is_control() || c == NULL_MARK;
    if !text.chars().any(is_hidden) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}
