//! Loads of many rows.

use esker_format::{Value, ValueRef};
use esker_wire::value::write_values;
use esker_wire::{FrameWriter, Kind};

use crate::{Client, Error, Result};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// By [`Load::push`].
    #[default]
    MessagePack,
    /// Comma-separated fields, the first line with the names.
    Csv,
    /// A JSON object a line.
    Ndjson,
}

impl Format {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MessagePack => "messagepack",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

/// What becomes of rows whose key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// Nothing is loaded.
    #[default]
    Error,
    /// They are left out.
    Skip,
    /// They take the place of those that are there.
    Replace,
}

impl Duplicates {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Skip => "skip",
            Self::Replace => "replace",
        }
    }
}

/// Rows are sent once there are as many bytes of them.
const CHUNK_BYTES: usize = 256 << 10;

/// A load under way. Dropped before [`Load::finish`], nothing of it is loaded.
///
/// ```
/// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
/// # fn main() -> esker_client::Result<()> {
/// # let server = served::Served::start();
/// use esker_client::{Client, Duplicates, Format};
///
/// let mut client = Client::connect(&server.url())?;
/// client.sql("CREATE TABLE t (n i64 PRIMARY KEY, name text)", &[])?;
/// let mut load = client.load("t", Format::MessagePack, Duplicates::Error)?;
/// for n in 0..10_000i64 {
///     load.push(&[n.into(), "x".into()])?;
/// }
/// assert_eq!(load.finish()?, 10_000);
/// let mut load = client.load("t", Format::Csv, Duplicates::Replace)?;
/// load.push_text(b"n,name\n5,five\n")?;
/// assert_eq!(load.finish()?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Load<'c> {
    client: &'c mut Client,
    id: u32,
    chunk: Vec<u8>,
    is_finished: bool,
}

impl<'c> Load<'c> {
    pub(crate) fn new(client: &'c mut Client, id: u32) -> Self {
        Self { client, id, chunk: Vec::with_capacity(CHUNK_BYTES * 2), is_finished: false }
    }

    /// Adds a row, with a value for every field, to a load in MessagePack.
    ///
    /// # Errors
    /// When the connection failed.
    #[inline]
    pub fn push(&mut self, row: &[Value]) -> Result<()> {
        self.push_refs(row.iter().map(Value::as_ref))
    }

    /// The same, of borrowed values.
    ///
    /// # Errors
    /// As for [`Load::push`].
    #[inline]
    pub fn push_refs<'v>(
        &mut self,
        row: impl ExactSizeIterator<Item = ValueRef<'v>>,
    ) -> Result<()> {
        self.begin_chunk();
        write_values(&mut self.chunk, row);
        self.send_if_full()
    }

    /// Adds text, to a load in CSV or NDJSON; lines may be cut anywhere.
    ///
    /// # Errors
    /// As for [`Load::push`].
    pub fn push_text(&mut self, text: &[u8]) -> Result<()> {
        for part in text.chunks(CHUNK_BYTES) {
            self.begin_chunk();
            self.chunk.extend_from_slice(part);
            self.send_if_full()?;
        }
        Ok(())
    }

    /// The rows are written straight into a frame, whose length is known once it is full.
    fn begin_chunk(&mut self) {
        if self.chunk.is_empty() {
            FrameWriter::new(&mut self.chunk, self.id, Kind::BulkChunk, 0).finish();
        }
    }

    fn send_if_full(&mut self) -> Result<()> {
        if self.chunk.len() >= CHUNK_BYTES { self.send_chunk() } else { Ok(()) }
    }

    fn send_chunk(&mut self) -> Result<()> {
        let length = u32::try_from(self.chunk.len().saturating_sub(4));
        let length = length.map_err(|_| Error::connection("a row of more than 4 GiB"))?;
        if let Some(slot) = self.chunk.get_mut(..4) {
            slot.copy_from_slice(&length.to_le_bytes());
        }
        self.client.socket.write(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Loads the rows: all of them are on the disk, and visible, when it returns. Returns how many
    /// were loaded.
    ///
    /// # Errors
    /// What the server said of the first row that does not fit, or that the connection failed.
    pub fn finish(mut self) -> Result<u64> {
        if !self.chunk.is_empty() {
            self.send_chunk()?;
        }
        self.is_finished = true;
        FrameWriter::new(&mut self.chunk, self.id, Kind::BulkEnd, 0).finish();
        self.client.socket.write(&self.chunk)?;
        Ok(self.client.reply(self.id)?.changed())
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let mut cancel = Vec::new();
        crate::Call::cancel(self.id).frame(&mut cancel, self.id);
        if self.client.socket.write(&cancel).is_ok() {
            let _ = self.client.reply(self.id);
        }
    }
}
