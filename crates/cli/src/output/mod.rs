//! Answers as a table, CSV or JSON.

mod csv;
mod expanded;
mod json;
mod style;
mod table;

use std::io::{Result, Write};

use esker::{DataType, ValueRef};
use esker_query::QueryResult;

use crate::arguments::Format;

/// The names and types of the columns, and the rows.
pub(crate) struct Answer<'a, R> {
    pub(crate) columns: Vec<(&'a str, DataType)>,
    pub(crate) rows: R,
}

/// Writes the answer of a query; tables in some style.
pub(crate) fn write_result(
    out: &mut dyn Write,
    result: &QueryResult,
    format: Format,
    style: &Style,
) -> Result<()> {
    let columns = result.columns.iter().map(|c| (c.name.as_str(), c.data_type)).collect();
    write(out, Answer { columns, rows: result.rows() }, format, style)
}

/// Writes any answer.
pub(crate) fn write<'v, R>(
    out: &mut dyn Write,
    answer: Answer<'_, R>,
    format: Format,
    style: &Style,
) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    match format {
        Format::Table if style.expanded => expanded::write(out, answer, style),
        Format::Table => table::write(out, answer, style),
        Format::Csv => csv::write(out, answer),
        Format::Json => json::write(out, answer),
    }
}

pub(crate) use csv::csv_line;
pub(crate) use json::distinct_names;
pub(crate) use style::Style;
pub(crate) use table::{plain_table, printable};

#[cfg(test)]
mod tests;
