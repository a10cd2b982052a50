//! Frames.
//!
//! ```text
//!  0        4        8      9       10
//!  ┌────────┬────────┬──────┬───────┬──────────┐
//!  │ length │ id     │ kind │ flags │ payload  │    numbers are little-endian
//!  └────────┴────────┴──────┴───────┴──────────┘
//!           └─────────── length bytes ─────────┘
//! ```

use crate::{Error, Result};

/// What a connection starts with, from either side, before major and minor version.
pub const MAGIC: [u8; 4] = *b"ESKR";
/// The version here: major and minor. Sides with the same major understand each other.
pub const VERSION: [u8; 2] = [1, 0];
/// Bytes of the greeting.
pub const GREETING_BYTES: usize = 6;
/// Bytes before the payload.
pub const HEADER_BYTES: usize = 10;
/// Bytes that the length counts before the payload.
const COUNTED_BYTES: usize = 6;
/// The most bytes of a payload.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// A flag: further frames of this answer follow.
pub const MORE: u8 = 1;

/// The greeting of this version.
#[must_use]
pub fn greeting() -> [u8; GREETING_BYTES] {
    let ([a, b, c, d], [major, minor]) = (MAGIC, VERSION);
    [a, b, c, d, major, minor]
}

/// Reads a greeting: the version of the other side.
///
/// # Errors
/// When it is none, or of another major version.
pub fn parse_greeting(bytes: [u8; GREETING_BYTES]) -> Result<[u8; 2]> {
    let [a, b, c, d, major, minor] = bytes;
    if [a, b, c, d] != MAGIC {
        return Err(Error::new("greeting: expected \"ESKR\" and a version"));
    }
    let [ours, our_minor] = VERSION;
    if major != ours {
        let message =
            format!("version {major}.{minor}: expected {ours}.x, such as {ours}.{our_minor}");
        return Err(Error::new(message));
    }
    Ok([major, minor])
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal,)*) => {
        /// What a frame asks or tells.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])* $name,)*
        }

        impl Kind {
            /// All kinds, by rising code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The byte that stands for it.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The kind that a byte stands for.
            #[must_use]
            pub const fn of(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Whether anybody is there. No payload.
    Ping = 0x01,
    /// Who asks: `[token, database]`.
    Hello = 0x02,
    /// End a request: `id`. Never answered; the request is.
    Cancel = 0x03,
    /// A write that is done once, however often it is sent: `[key, code, payload]`, the last two as
    /// the write comes without a key.
    Once = 0x04,
    /// Rows by key: `[table, [key…]]`.
    Get = 0x10,
    /// Whether there are rows: `[table, [key…]]`.
    Exists = 0x11,
    /// Store rows: `[table, replace, [row…]]`.
    Insert = 0x12,
    /// Change a row: `[table, key, {field: value…}]`.
    Update = 0x13,
    /// Remove rows: `[table, [key…]]`.
    Delete = 0x14,
    /// The names of tables.
    Tables = 0x15,
    /// The schema of a table: `[table]`.
    Schema = 0x16,
    /// Change rows: `[table, [key, {field: value…}, …]]`.
    UpdateMany = 0x17,
    /// A statement: `[text, [parameter…]]`.
    Sql = 0x20,
    /// A query as JSON: `[text]`.
    Query = 0x21,
    /// How a query as JSON is answered: `[text]`.
    Explain = 0x22,
    /// Begin a transaction: `[serializable, read_only]`.
    Begin = 0x23,
    /// Commit it.
    Commit = 0x24,
    /// Roll it back.
    Rollback = 0x25,
    /// Something for an administrator of the database, as JSON: `[text]`.
    Admin = 0x26,
    /// Values of a bucket: `[bucket, [key…]]`.
    BucketGet = 0x30,
    /// Put entries: `[bucket, expiry, [key, value, …]]`.
    BucketPut = 0x31,
    /// Remove entries: `[bucket, [key…]]`.
    BucketRemove = 0x32,
    /// Add to a number: `[bucket, key, by]`.
    BucketIncrement = 0x33,
    /// Entries by key: `[bucket, from, to, prefix, limit, reverse]`.
    BucketRange = 0x34,
    /// The names of buckets.
    Buckets = 0x35,
    /// Begin a bulk load: `[table, format, on_duplicate]`.
    BulkBegin = 0x40,
    /// A part of its rows, as they are.
    BulkChunk = 0x41,
    /// There are no more rows: load them.
    BulkEnd = 0x42,
    /// Add events to a stream: `[stream, how, [row…]]`.
    Append = 0x50,
    /// The same by column: `[stream, how, count, [column…]]`.
    AppendColumns = 0x51,
    /// Events as they arrive: `[stream, from, where, credit]`.
    Tail = 0x52,
    /// So many events more may be told, under the id of their tail.
    Credit = 0x53,
    /// It is done: one value, by the kind of request.
    Done = 0x80,
    /// The columns of rows that follow: `[[name, type]…]`.
    Columns = 0x81,
    /// Rows: `[[value…]…]`.
    Rows = 0x82,
    /// How far a tail is: `[row id, gap]`.
    Position = 0x83,
    /// It failed: `[code, message]`.
    Failed = 0xff,
}

/// One frame, in the buffer that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// Which request it is or belongs to; the client chooses it.
    pub id: u32,
    /// What it asks or tells, as a byte.
    pub code: u8,
    /// [`MORE`].
    pub flags: u8,
    /// The rest.
    pub payload: &'b [u8],
}

impl<'b> Frame<'b> {
    /// The frame that some bytes start with, and how many bytes it takes; `None` when there are
    /// not enough yet.
    ///
    /// # Errors
    /// When the length is none that a frame may have: it is unknown where the next one starts.
    pub fn parse(bytes: &'b [u8], payload_bytes_max: usize) -> Result<Option<(Self, usize)>> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return match bytes.first_chunk::<4>() {
                Some(length) => payload_bytes(*length, payload_bytes_max).map(|_| None),
                None => Ok(None),
            };
        };
        let [l0, l1, l2, l3, i0, i1, i2, i3, code, flags] = *header;
        let length = payload_bytes([l0, l1, l2, l3], payload_bytes_max)?;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let id = u32::from_le_bytes([i0, i1, i2, i3]);
        Ok(Some((Self { id, code, flags, payload }, HEADER_BYTES + length)))
    }

    /// How many bytes the frame takes that some bytes start with, as far as they say.
    #[must_use]
    pub fn announced(bytes: &[u8]) -> Option<usize> {
        let length = u32::from_le_bytes(*bytes.first_chunk::<4>()?);
        usize::try_from(length).ok()?.checked_add(4)
    }

    /// What it asks or tells.
    ///
    /// # Errors
    /// When the code is none that is known.
    pub fn kind(&self) -> Result<Kind> {
        let code = self.code;
        Kind::of(code).ok_or_else(|| Error::new(format!("unknown kind of frame {code:#04x}")))
    }

    /// True when no further frame of the same answer follows.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.flags & MORE == 0
    }
}

fn payload_bytes(length: [u8; 4], most: usize) -> Result<usize> {
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    match length.checked_sub(COUNTED_BYTES) {
        Some(payload) if payload <= most => Ok(payload),
        Some(payload) => {
            Err(Error::new(format!("a frame of {payload} bytes, expected at most {most}")))
        }
        None => Err(Error::new(format!(
            "a frame of length {length}, expected at least {COUNTED_BYTES}"
        ))),
    }
}

/// Appends one frame to a buffer, its payload byte by byte.
#[derive(Debug)]
pub struct FrameWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl<'o> FrameWriter<'o> {
    /// Begins a frame.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, id: u32, kind: Kind, flags: u8) -> Self {
        let start = out.len();
        let [a, b, c, d] = id.to_le_bytes();
        out.extend_from_slice(&[0, 0, 0, 0, a, b, c, d, kind.code(), flags]);
        Self { out, start }
    }

    /// Where the payload goes.
    #[inline]
    pub fn payload(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Ends the frame.
    #[inline]
    pub fn finish(self) {
        let length = self.out.len() - self.start - 4;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if let Some(slot) = self.out.get_mut(self.start..self.start + 4) {
            slot.copy_from_slice(&length.to_le_bytes());
        }
    }
}
