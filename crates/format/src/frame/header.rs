//! One frame: header, payload, padding.

use crate::checksum::{Place, checksum};
use crate::codec::{Reader, Writer};
use crate::{Error, Result};

/// The size of a stored frame header.
pub const FRAME_HEADER_BYTES: usize = 56;

/// The largest payload of a frame; larger transactions become bulk loads.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

const MAGIC: u32 = 0x4d52_4645; // "EFRM"
const CHECKSUM_AT: usize = 0;
const MAGIC_AT: usize = 8;
const DURABLE_THROUGH_AT: usize = 32;
const PREVIOUS_AT: usize = 40;

/// What a frame says of itself.
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | checksum of all that follows, bound to its place |
/// | 8..12 | `"EFRM"` |
/// | 12..16 | length of the payload in bytes |
/// | 16..24 | epoch |
/// | 24..32 | commit number |
/// | 32..40 | durable through |
/// | 40..48 | checksum of the frame before this one |
/// | 48..50 | kind |
/// | 50..52 | lane |
/// | 52..56 | zero |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHeader {
    /// The epoch it was written in.
    pub epoch: u64,
    /// Its commit number: dense, over frames of every kind.
    pub commit: u64,
    /// Every commit up to this one was durable when the frame was written.
    pub durable_through: u64,
    /// The checksum of the frame with the commit number before; 0 when there is none.
    pub previous: u64,
    /// What the payload is: see [`kind`](super::kind).
    pub kind: u16,
    /// The log lane; 0.
    pub lane: u16,
}

/// A frame whose checksum was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its header.
    pub header: FrameHeader,
    /// Its payload, without the padding.
    pub payload: &'a [u8],
    /// Its checksum, which the next frame repeats.
    pub checksum: u64,
    /// Its size in the file, padding included.
    pub bytes: usize,
}

/// The size in the file of a frame with a payload of this length.
#[must_use]
pub fn frame_bytes(payload_len: usize) -> usize {
    FRAME_HEADER_BYTES + payload_len.next_multiple_of(8)
}

/// Appends a frame whose checksum is still to come: [`seal_frame`] adds it when the frame's place
/// is known.
///
/// # Errors
/// `InvalidInput` when the payload is longer than [`PAYLOAD_BYTES_MAX`]; nothing is appended.
pub fn append_frame(out: &mut Vec<u8>, header: &FrameHeader, payload: &[u8]) -> Result<()> {
    let fits = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= PAYLOAD_BYTES_MAX);
    let len = fits.ok_or_else(|| {
        Error::invalid(format!(
            "payload of a log frame has {} bytes, expected at most {PAYLOAD_BYTES_MAX}",
            payload.len()
        ))
    })?;
    let end = out.len() + frame_bytes(payload.len());
    out.reserve(frame_bytes(payload.len()));
    let mut out_header = Writer::after(std::mem::take(out));
    out_header.u64(0);
    out_header.u32(MAGIC);
    out_header.u32(len);
    out_header.u64(header.epoch);
    out_header.u64(header.commit);
    out_header.u64(header.durable_through);
    out_header.u64(header.previous);
    out_header.u16(header.kind);
    out_header.u16(header.lane);
    out_header.u32(0);
    out_header.raw(payload);
    *out = out_header.into_bytes();
    out.resize(end, 0);
    Ok(())
}

/// Completes the first frame in `frames` for its place, and returns its checksum and its size.
///
/// # Errors
/// `Corrupt` when no frame made by [`append_frame`] stands there.
pub fn seal_frame(
    frames: &mut [u8],
    place: Place,
    previous: u64,
    durable_through: u64,
) -> Result<(u64, usize)> {
    let mut input = Reader::new(frames);
    input.raw(MAGIC_AT)?;
    let magic = input.u32()?;
    let bytes = frame_bytes(input.u32()? as usize);
    let frame = frames.get_mut(..bytes).filter(|_| magic == MAGIC);
    let frame = frame.ok_or_else(|| Error::corrupt("expected a frame to seal"))?;
    set(frame, PREVIOUS_AT, previous);
    set(frame, DURABLE_THROUGH_AT, durable_through);
    let sum = checksum(place, covered(frame, bytes)?);
    set(frame, CHECKSUM_AT, sum);
    Ok((sum, bytes))
}

/// What the checksum of a frame of so many bytes covers.
fn covered(frame: &[u8], bytes: usize) -> Result<&[u8]> {
    let covered = frame.get(MAGIC_AT..bytes);
    covered.ok_or_else(|| {
        let found = frame.len();
        Error::corrupt(format!("expected a log frame of {bytes} bytes, found {found}"))
    })
}

fn set(frame: &mut [u8], at: usize, v: u64) {
    if let Some(slot) = frame.get_mut(at..at + 8) {
        slot.copy_from_slice(&v.to_le_bytes());
    }
}

/// A quick look: false when no frame starts `bytes`, so that a search need not compute checksums.
#[must_use]
pub fn may_be_frame(bytes: &[u8]) -> bool {
    bytes.get(MAGIC_AT..MAGIC_AT + 4) == Some(MAGIC.to_le_bytes().as_slice())
}

/// Reads the frame at the start of `bytes`, which lie at `place`.
///
/// # Errors
/// `Corrupt` when no whole frame stands there.
pub fn decode_frame(bytes: &[u8], place: Place) -> Result<Frame<'_>> {
    let frame = decode_unchecked(bytes)?;
    if checksum(place, covered(bytes, frame.bytes)?) != frame.checksum {
        return Err(Error::corrupt("checksum of the log frame does not match"));
    }
    Ok(frame)
}

/// Reads the frame at the start of `bytes` without looking at its checksum: for tests that plant
/// that very mistake.
///
/// # Errors
/// `Corrupt` when the header makes no sense or the payload is cut off.
#[doc(hidden)]
pub fn decode_unchecked(bytes: &[u8]) -> Result<Frame<'_>> {
    if !may_be_frame(bytes) {
        return Err(Error::corrupt("expected a log frame"));
    }
    let mut input = Reader::new(bytes);
    let checksum = input.u64()?;
    input.raw(4)?;
    let payload_len = input.u32()? as usize;
    if payload_len > PAYLOAD_BYTES_MAX {
        return Err(Error::corrupt(format!(
            "payload of a log frame has {payload_len} bytes, expected at most {PAYLOAD_BYTES_MAX}"
        )));
    }
    let header = FrameHeader {
        epoch: input.u64()?,
        commit: input.u64()?,
        durable_through: input.u64()?,
        previous: input.u64()?,
        kind: input.u16()?,
        lane: input.u16()?,
    };
    let reserved = input.u32()?;
    let payload = input.raw(payload_len)?;
    let padding = input.raw(payload_len.next_multiple_of(8) - payload_len)?;
    if reserved != 0 || padding.iter().any(|b| *b != 0) {
        return Err(Error::corrupt("reserved bytes of a log frame are not zero"));
    }
    Ok(Frame { header, payload, checksum, bytes: frame_bytes(payload_len) })
}

/// The payload of the frame that starts an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    /// The epoch before; 0 for a new database.
    pub previous_epoch: u64,
    /// The last commit of earlier epochs. Their frames above it are void for ever.
    pub ended_at_commit: u64,
}

impl EpochStart {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u64(self.previous_epoch);
        out.u64(self.ended_at_commit);
        out.into_bytes()
    }

    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// `Corrupt` when it is not exactly this.
    pub fn decode(payload: &[u8]) -> Result<Self> {
        let mut input = Reader::new(payload);
        let start = Self { previous_epoch: input.u64()?, ended_at_commit: input.u64()? };
        input.finish()?;
        Ok(start)
    }
}
