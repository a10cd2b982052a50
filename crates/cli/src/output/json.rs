//! Answers for other programs, one object a row.
//!
//! Integers and decimals are written in full; dates, timestamps and bytes are strings; so are the
//! values of floating-point columns that are no numbers. The second column of a name is called
//! `name_2`.

use std::io::{Result, Write};

use esker::ValueRef;
use esker_import::{Format, RowWriter};

pub(crate) use esker_import::distinct_names;

use super::Answer;

pub(super) fn write<'v, R>(out: &mut dyn Write, answer: Answer<'_, R>) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let names = distinct_names(answer.columns.iter().map(|(name, _)| *name));
    let writer = RowWriter::new(Format::Json, b',', names.iter().map(String::as_str));
    let mut text = Vec::new();
    for (number, row) in answer.rows.enumerate() {
        text.clear();
        if number == 0 {
            text = writer.start();
        }
        writer.write_row(&mut text, number > 0, row.into_iter());
        out.write_all(&text)?;
    }
    out.write_all(if text.is_empty() { b"[]\n" } else { writer.end() })
}
