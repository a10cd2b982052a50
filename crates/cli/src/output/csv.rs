//! Answers for other programs, in the dialect that `esker load` reads: NULL is nothing, an empty
//! text is `""`.

use std::io::{Result, Write};

use esker::ValueRef;
use esker_import::{Format, RowWriter};

use super::Answer;

pub(super) fn write<'v, R>(out: &mut dyn Write, answer: Answer<'_, R>) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    let writer = RowWriter::new(Format::Csv, b',', answer.columns.iter().map(|(name, _)| *name));
    out.write_all(&writer.start())?;
    let mut text = Vec::new();
    for row in answer.rows {
        text.clear();
        writer.write_row(&mut text, false, row.into_iter());
        out.write_all(&text)?;
    }
    Ok(())
}

/// A line of texts.
pub(crate) fn csv_line<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut line = Vec::new();
    let values = texts.into_iter().map(ValueRef::Text);
    RowWriter::new(Format::Csv, b',', []).write_row(&mut line, false, values);
    line
}
