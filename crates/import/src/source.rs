//! The bytes of a file, decompressed.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;

use crate::binary::{self, HEAD_BYTES};
use crate::comments::{Comment, LinesGone, WithoutComments};
use crate::dialect::Csv;
use crate::{Error, ErrorKind, Result};

/// How much of a compressed file is read at once.
const READ_BYTES: usize = 1 << 20;

/// A stream of uncompressed bytes, and how far the file behind it has been read.
pub(crate) struct Source {
    bytes: Box<dyn Read + Send>,
    compression: Compression,
    file_bytes_read: Arc<AtomicU64>,
    file_bytes: Option<u64>,
    /// Whether what comes out is all that the file has, so that its length is known.
    is_plain: bool,
    /// Comment lines that leave no line behind.
    gone: LinesGone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Tells by the first bytes. Neither magic number is valid UTF-8, so no CSV file starts so.
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one to be skipped.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// What reading such bytes is called.
    fn operation(self) -> &'static str {
        match self {
            Self::None => "read",
            Self::Gzip => "decompress (gzip)",
            Self::Zstd => "decompress (zstd)",
        }
    }

    /// The bytes without it.
    fn unpacked<'r>(self, bytes: impl Read + Send + 'r) -> Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Self::None => Box::new(bytes),
            Self::Gzip => Box::new(Members::new(BufReader::with_capacity(READ_BYTES, bytes))),
            Self::Zstd => {
                let buffered = BufReader::with_capacity(READ_BYTES, bytes);
                let decoder = zstd::stream::read::Decoder::with_buffer(buffered);
                Box::new(decoder.map_err(|e| read_error(e, "decompress"))?)
            }
        })
    }
}

/// How many bytes a compressed text has without its compression, up to `most`, as a reader of it
/// gets them: of a damaged one, those before the damage. 0 for a text that is not compressed.
///
/// ```
/// assert_eq!(esker_import::unpacked_bytes(b"a,b\n1,2\n", 100), 0);
/// ```
#[must_use]
pub fn unpacked_bytes(packed: &[u8], most: u64) -> u64 {
    let compression = Compression::of(packed);
    if compression == Compression::None {
        return 0;
    }
    let Ok(unpacked) = compression.unpacked(packed) else { return 0 };
    let (mut unpacked, mut buffer, mut bytes) = (unpacked.take(most), vec![0; READ_BYTES], 0);
    loop {
        match unpacked.read(&mut buffer) {
            Ok(count @ 1..) => bytes += count as u64,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return bytes,
        }
    }
}

/// A text without its compression, of at most so many bytes; `None` when it has more. A text that
/// is not compressed is as it was.
///
/// ```
/// let text = b"{}".to_vec();
/// assert_eq!(esker_import::unpacked(text.clone(), 100)?, Some(text));
/// # Ok::<(), esker_import::Error>(())
/// ```
///
/// # Errors
/// `BadData` when it is damaged.
pub fn unpacked(packed: Vec<u8>, most: usize) -> Result<Option<Vec<u8>>> {
    let compression = Compression::of(&packed);
    if compression == Compression::None {
        return Ok(Some(packed).filter(|packed| packed.len() <= most));
    }
    let mut text = Vec::new();
    let unpacked = compression.unpacked(Cursor::new(packed))?;
    let read = unpacked.take(most as u64 + 1).read_to_end(&mut text);
    read.map_err(|e| read_error(e, compression.operation()))?;
    Ok(Some(text).filter(|text| text.len() <= most))
}

/// The first bytes.
fn head_of(bytes: &mut Box<dyn Read + Send>) -> Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let start = HEAD_BYTES as u64;
    bytes.by_ref().take(start).read_to_end(&mut head).map_err(|e| read_error(e, "read"))?;
    Ok(head)
}

/// What is read without its compression, which its first bytes tell.
pub(crate) fn unpacked_stream(mut bytes: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    let head = head_of(&mut bytes)?;
    let compression = Compression::of(&head);
    compression.unpacked(Cursor::new(head).chain(bytes))
}

impl Source {
    /// Reads from anything. `file_bytes` is its length, when known.
    pub(crate) fn new(mut bytes: Box<dyn Read + Send>, file_bytes: Option<u64>) -> Result<Self> {
        let head = head_of(&mut bytes)?;
        let compression = Compression::of(&head);
        let file_bytes_read = Arc::new(AtomicU64::new(0));
        let whole = Cursor::new(head).chain(bytes);
        let counted = Counted { inner: whole, count: Arc::clone(&file_bytes_read) };
        let bytes = compression.unpacked(counted)?;
        let is_plain = compression == Compression::None;
        let gone = LinesGone::default();
        let mut source = Self { bytes, compression, file_bytes_read, file_bytes, is_plain, gone };
        source.check_start()?;
        Ok(source)
    }

    /// Drops the byte order mark of UTF-8, and refuses those of UTF-16 and what is no text.
    fn check_start(&mut self) -> Result<()> {
        let head = self.peek(HEAD_BYTES)?;
        match head.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                return Err(Error::data(
                    "the file is UTF-16; expected UTF-8: \
                     `iconv -f UTF-16 -t UTF-8 FILE > FILE.csv`",
                ));
            }
            [0xef, 0xbb, 0xbf, ..] => {
                self.fill(&mut [0; 3])?;
            }
            _ => binary::check(&head, head.len() < HEAD_BYTES)?,
        }
        Ok(())
    }

    /// The next bytes, at most so many, which stay where they are; fewer only at the end.
    pub(crate) fn peek(&mut self, most: usize) -> Result<Vec<u8>> {
        let mut head = vec![0; most];
        let count = self.fill(&mut head)?;
        head.truncate(count);
        self.put_back(head.clone());
        Ok(head)
    }

    fn put_back(&mut self, bytes: Vec<u8>) {
        let rest = std::mem::replace(&mut self.bytes, Box::new(std::io::empty()));
        self.bytes = Box::new(Cursor::new(bytes).chain(rest));
    }

    /// Passes over lines; how many there were.
    pub(crate) fn skip_lines(&mut self, lines: u64) -> Result<u64> {
        let mut passed = 0;
        let mut buffer = vec![0; HEAD_BYTES];
        while passed < lines {
            let count = self.fill(&mut buffer)?;
            let bytes = buffer.get(..count).unwrap_or_default(); // default: never beyond.
            let mut after = 0;
            for end in memchr::memchr_iter(b'\n', bytes) {
                passed += 1;
                after = end + 1;
                if passed == lines {
                    break;
                }
            }
            self.is_plain = false;
            if passed == lines {
                self.put_back(bytes.get(after..).unwrap_or_default().to_vec()); // default: none.
            } else if count < buffer.len() {
                break;
            }
        }
        Ok(passed)
    }

    /// Leaves out comment lines; `lines` of the file have been passed over.
    pub(crate) fn leave_out(&mut self, csv: Csv, comment: Comment, lines: u64) {
        let rest = std::mem::replace(&mut self.bytes, Box::new(std::io::empty()));
        let without = WithoutComments::new(rest, csv, comment, lines);
        self.gone = without.gone();
        self.bytes = Box::new(without);
        self.is_plain = false;
    }

    /// Another stream in the place of the bytes that are still to come.
    pub(crate) fn replace(
        &mut self,
        by: impl FnOnce(Box<dyn Read + Send>) -> Box<dyn Read + Send>,
    ) {
        let rest = std::mem::replace(&mut self.bytes, Box::new(std::io::empty()));
        self.bytes = by(rest);
        self.is_plain = false;
    }

    /// Fills `buffer`; fewer bytes only at the end.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..)
            && !rest.is_empty()
        {
            match self.bytes.read(rest) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(read_error(e, self.compression.operation())),
            }
        }
        Ok(filled)
    }

    /// Lines of the file that are none of those that come out.
    pub(crate) fn gone(&self) -> LinesGone {
        self.gone.clone()
    }

    /// How many bytes of the file, compressed as it is, have been read.
    pub(crate) fn file_bytes_read(&self) -> u64 {
        self.file_bytes_read.load(Ordering::Relaxed)
    }

    /// How many bytes come out of [`Source::fill`] in all, when known beforehand.
    pub(crate) fn plain_bytes(&self) -> Option<u64> {
        if self.is_plain { self.file_bytes } else { None }
    }
}

/// What went wrong below: the machine, or the compressed data.
pub(crate) fn read_error(error: std::io::Error, operation: &str) -> Error {
    let message = format!("{operation}: {error}");
    match error.downcast::<esker_vfs::Error>() {
        Ok(machine) => machine.into(),
        Err(other) => match other.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let end = "the file is cut short, or something follows what is compressed";
                Error::data(format!("{operation}: {end}"))
            }
            _ if operation.starts_with("decompress") => Error::data(message),
            _ => Error::new(ErrorKind::Io, message),
        },
    }
}

/// Members of gzip, one behind the other, and zeros between and behind them, by which some fill up
/// a block.
struct Members<R> {
    /// `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(bytes: R) -> Self {
        Self { member: Some(GzDecoder::new(bytes)) }
    }

    /// The next member, if there is one.
    fn next(mut bytes: R) -> std::io::Result<Option<GzDecoder<R>>> {
        loop {
            let ahead = bytes.fill_buf()?;
            let zeros = ahead.iter().take_while(|byte| **byte == 0).count();
            match ahead.first() {
                None => return Ok(None),
                Some(0) => bytes.consume(zeros),
                Some(0x1f) => return Ok(Some(GzDecoder::new(bytes))),
                Some(_) => {
                    let message = "what follows the last member of gzip is none";
                    return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
                }
            }
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.member = match self.member.take() {
                Some(member) => Self::next(member.into_inner())?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
