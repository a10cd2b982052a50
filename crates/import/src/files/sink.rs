//! Files that statements write.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use esker::{Batch, Error, FileSink, FileTable, Result};
use esker_format::ValueRef;
use esker_query::ResultColumn;
use esker_vfs::{Environment, File};

use super::statement_options::Writing;
use super::text_reader::TextForm;
use crate::export::{RowWriter, distinct_names, write_plain};

/// Bytes gathered for one write.
const WRITE_BYTES: usize = 1 << 20;

/// A file, written from start to end.
pub struct FileWriter {
    file: Arc<dyn File>,
    offset: u64,
}

impl FileWriter {
    /// Writes a file that is empty.
    #[must_use]
    pub fn new(file: Arc<dyn File>) -> Self {
        Self { file, offset: 0 }
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write_all_at(bytes, self.offset).map_err(std::io::Error::other)?;
        self.file.start_writeback(self.offset, bytes.len() as u64);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Rows as bytes.
pub(super) enum RowsOut {
    Rows { writer: RowWriter, is_first: bool },
    Text { form: TextForm, names: Vec<String> },
}

impl RowsOut {
    pub fn new(file: &FileTable, columns: &[ResultColumn]) -> Result<Self> {
        let names = distinct_names(columns.iter().map(|column| column.name.as_str()));
        let borrowed = || names.iter().map(String::as_str);
        let rows = |writer| Self::Rows { writer, is_first: true };
        Ok(match Writing::of(file)? {
            Writing::Csv(form) => rows(RowWriter::csv(form, borrowed())),
            Writing::Rows(format) => rows(RowWriter::new(format, b',', borrowed())),
            Writing::Text(form) => Self::Text { form, names },
        })
    }

    fn start(&self) -> Vec<u8> {
        match self {
            Self::Rows { writer, .. } => writer.start(),
            Self::Text { form, names } if form.header => {
                let mut line = Vec::new();
                let texts = names.iter().map(|name| ValueRef::Text(name));
                text_line(&mut line, form, texts);
                line
            }
            Self::Text { .. } => Vec::new(),
        }
    }

    fn write(&mut self, batch: &Batch) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Rows { .. } if batch.is_empty() => {}
            Self::Rows { writer, is_first } => {
                if !std::mem::replace(is_first, false) {
                    out.extend_from_slice(writer.between());
                }
                writer.write(&mut out, batch);
            }
            Self::Text { form, .. } => {
                for row in 0..batch.len() {
                    let values = batch.columns.iter().map(|column| column.value(row));
                    text_line(&mut out, form, values);
                }
            }
        }
        out
    }

    fn end(&self) -> &'static [u8] {
        match self {
            // An array without rows has no line between its brackets.
            Self::Rows { writer, .. } => writer.end(),
            Self::Text { .. } => b"",
        }
    }
}

/// A row of the text format.
fn text_line<'v>(out: &mut Vec<u8>, form: &TextForm, values: impl Iterator<Item = ValueRef<'v>>) {
    let mut plain = Vec::new();
    for (position, value) in values.enumerate() {
        if position > 0 {
            out.push(form.delimiter);
        }
        if value.is_null() {
            out.extend_from_slice(form.null.as_bytes());
            continue;
        }
        plain.clear();
        write_plain(&mut plain, value);
        let start = out.len();
        for byte in &plain {
            match byte {
                8 => out.extend_from_slice(b"\\b"),
                12 => out.extend_from_slice(b"\\f"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                11 => out.extend_from_slice(b"\\v"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                byte if *byte == form.delimiter => out.extend_from_slice(&[b'\\', *byte]),
                byte => out.push(*byte),
            }
        }
        // What is no NULL is not written as it.
        if out.get(start..) == Some(form.null.as_bytes())
            && let Some((first, rest)) = plain.split_first()
        {
            out.truncate(start);
            out.extend_from_slice(format!("\\x{first:02x}").as_bytes());
            out.extend_from_slice(rest);
        }
    }
    out.push(b'\n');
}

/// A file that is written, and removed again where that does not come to its end.
pub(super) struct Written {
    rows: RowsOut,
    out: BufWriter<FileWriter>,
    /// Where it is, until it is whole.
    place: Option<(Environment, PathBuf)>,
}

impl Written {
    pub fn new(rows: RowsOut, file: FileWriter, place: (Environment, PathBuf)) -> Result<Self> {
        let out = BufWriter::with_capacity(WRITE_BYTES, file);
        let mut written = Self { rows, out, place: Some(place) };
        let start = written.rows.start();
        written.out.write_all(&start).map_err(of_output)?;
        Ok(written)
    }
}

impl FileSink for Written {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        let bytes = self.rows.write(batch);
        self.out.write_all(&bytes).map_err(of_output)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let end = self.rows.end();
        self.out.write_all(end).and_then(|()| self.out.flush()).map_err(of_output)?;
        self.out.get_ref().file.sync_data()?;
        self.place = None;
        Ok(())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if let Some((environment, path)) = self.place.take() {
            // Why it is not whole is what its user needs to know; at worst a part of it stays.
            let _ = environment.files.remove(&path);
        }
    }
}

/// Bytes that go elsewhere.
pub(super) struct Passed<'w> {
    rows: RowsOut,
    out: &'w mut dyn Write,
}

impl<'w> Passed<'w> {
    pub fn new(rows: RowsOut, out: &'w mut dyn Write) -> Result<Self> {
        let start = rows.start();
        out.write_all(&start).map_err(of_output)?;
        Ok(Self { rows, out })
    }
}

impl FileSink for Passed<'_> {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        let bytes = self.rows.write(batch);
        self.out.write_all(&bytes).map_err(of_output)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.out.write_all(self.rows.end()).and_then(|()| self.out.flush()).map_err(of_output)
    }
}

fn of_output(e: std::io::Error) -> Error {
    match e.downcast::<esker_vfs::Error>() {
        Ok(machine) => machine.into(),
        Err(e) => Error::new(esker::ErrorKind::Io, format!("write the rows: {e}")),
    }
}
