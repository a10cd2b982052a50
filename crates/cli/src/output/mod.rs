//! Answers as a table, CSV or JSON.

mod csv;
mod json;
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

/// Writes the answer of a query; a table at most so wide.
pub(crate) fn write_result(
    out: &mut dyn Write,
    result: &QueryResult,
    format: Format,
    width: Option<usize>,
) -> Result<()> {
    let columns = result.columns.iter().map(|c| (c.name.as_str(), c.data_type)).collect();
    write(out, Answer { columns, rows: result.rows() }, format, width)
}

/// Writes any answer.
pub(crate) fn write<'v, R>(
    out: &mut dyn Write,
    answer: Answer<'_, R>,
    format: Format,
    width: Option<usize>,
) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    match format {
        Format::Table => table::write(out, answer, width),
        Format::Csv => csv::write(out, answer),
        Format::Json => json::write(out, answer),
    }
}

pub(crate) use csv::csv_line;
pub(crate) use json::distinct_names;
pub(crate) use table::{plain_table, printable};

#[cfg(test)]
mod tests;
