//! Headers and frames that decode encode again to the same bytes; a frame is found where it was
//! written and nowhere else.

use esker_format::codec::Reader;
use esker_format::frame::{
    EpochStart, FileHeader, FrameHeader, append_frame, decode_frame, decode_unchecked, place,
    seal_frame,
};

const DATABASE: u128 = 7;

/// The target: as a file header, as a frame, and as the parts of a frame to be written.
pub fn run(data: &[u8]) {
    if let Ok(header) = FileHeader::decode(data) {
        assert_eq!(data.get(..header.encode().len()), Some(header.encode().as_slice()));
    }
    if let Ok(start) = EpochStart::decode(data) {
        assert_eq!(start.encode(), data);
    }
    if let Ok(frame) = decode_unchecked(data) {
        assert!(frame.bytes <= data.len() && frame.payload.len() <= frame.bytes);
        // Nobody computes a checksum by chance: sealed, the same bytes are a frame.
        let mut sealed = data.to_vec();
        let (checksum, bytes) =
            seal_frame(&mut sealed, place(DATABASE, 1, 80), 5, 6).expect("a frame can be sealed");
        let again = decode_frame(&sealed, place(DATABASE, 1, 80)).expect("a sealed frame decodes");
        assert_eq!((again.checksum, again.bytes, again.payload), (checksum, bytes, frame.payload));
        assert_eq!((again.header.previous, again.header.durable_through), (5, 6));
    }
    _ = round_trip(data);
}

fn round_trip(data: &[u8]) -> Option<()> {
    let mut input = Reader::new(data);
    let header = FrameHeader {
        epoch: input.u64().ok()?,
        commit: input.u64().ok()?,
        durable_through: input.u64().ok()?,
        previous: input.u64().ok()?,
        kind: input.u16().ok()?,
        lane: input.u16().ok()?,
    };
    let (number, offset) = (input.u64().ok()?, input.u64().ok()?);
    let payload = input.raw(input.remaining()).ok()?;
    let here = place(DATABASE, number, offset);
    let mut bytes = Vec::new();
    append_frame(&mut bytes, &header, payload).expect("a small payload fits");
    seal_frame(&mut bytes, here, header.previous, header.durable_through).expect("a frame");
    let frame = decode_frame(&bytes, here).expect("a sealed frame decodes");
    assert_eq!((frame.header, frame.payload, frame.bytes), (header, payload, bytes.len()));
    let elsewhere = place(DATABASE, number, offset.wrapping_add(8));
    assert!(decode_frame(&bytes, elsewhere).is_err(), "a frame was found in another place");
    Some(())
}
