//! Answers for other programs, in the dialect that `esker load` reads: NULL is nothing, an empty
//! text is `""`.

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
        ValueRef::Text(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
            write!(out, "\"{}\"", text.replace('"', "\"\""))
        }
        ValueRef::Bytes([]) => out.write_all(b"\"\""),
        value => write!(out, "{value}"),
    }
}
