//! Answers for people, a row as lines of names and values.

use std::io::{Result, Write};

use esker::ValueRef;

use super::table::{counted_rows, left_out};
use super::{Answer, Style, printable};

pub(super) fn write<'v, R>(
    out: &mut dyn Write,
    mut answer: Answer<'_, R>,
    style: &Style,
) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let names: Vec<String> = answer.columns.iter().map(|column| name(column, style)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let (bold, dim, plain) = match style.colors {
        true => ("\x1b[1m", "\x1b[2m", "\x1b[0m"),
        false => ("", "", ""),
    };
    let mut shown = 0;
    for row in answer.rows.by_ref().take(style.rows_max) {
        shown += 1;
        writeln!(out, "{dim}── row {shown} ──{plain}")?;
        for (name, value) in names.iter().zip(&row) {
            write!(out, "{bold}{name:width$}{plain} │ ")?;
            match value {
                ValueRef::Null => writeln!(out, "{dim}{}{plain}", style.null)?,
                value => writeln!(out, "{}", printable(&value.to_string()))?,
            }
        }
    }
    let more = answer.rows.count() as u64;
    left_out(out, more, style)?;
    counted_rows(out, shown + more, style)
}

fn name((name, data_type): &(&str, esker::DataType), style: &Style) -> String {
    match style.types {
        true => format!("{} {data_type}", printable(name)),
        false => printable(name),
    }
}
