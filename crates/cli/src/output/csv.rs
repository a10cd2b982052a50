//! Answers for other programs, in the dialect that `esker load` reads: NULL is nothing, an empty
//! text is `""`.

use std::borrow::Cow;
use std::io::{Result, Write};

use esker::ValueRef;

use super::Answer;

pub(super) fn write<'v, R>(out: &mut dyn Write, answer: Answer<'_, R>) -> Result<()>
where
    R: Iterator<Item = Vec<ValueRef<'v>>>,
{
    for (position, (name, _)) in answer.columns.iter().enumerate() {
        write_field(out, position, ValueRef::Text(name))?;
    }
    writeln!(out)?;
    for row in answer.rows {
        for (position, value) in row.iter().enumerate() {
            write_field(out, position, *value)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_field(out: &mut dyn Write, position: usize, value: ValueRef<'_>) -> Result<()> {
    if position > 0 {
        out.write_all(b",")?;
    }
    match value {
        ValueRef::Null => Ok(()),
        ValueRef::Text(text) => out.write_all(csv_text(text).as_bytes()),
        ValueRef::Bytes([]) => out.write_all(b"\"\""),
        value => write!(out, "{value}"),
    }
}

/// A text as a field: in quotes where it needs them.
pub(crate) fn csv_text(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        return Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")));
    }
    Cow::Borrowed(text)
}
