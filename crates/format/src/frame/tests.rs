use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

const DATABASE: u128 = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;

fn file_header() -> FileHeader {
    FileHeader {
        database: DATABASE,
        number: 7,
        epoch: 3,
        first_commit: 41,
        epoch_start: 44,
        previous: 99,
    }
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { epoch: 3, commit: 41, kind: 20, lane: 0, ..FrameHeader::default() };
    let mut bytes = Vec::new();
    append_frame(&mut bytes, &header, payload).unwrap();
    let (_, sealed) = seal_frame(&mut bytes, place(DATABASE, 7, 80), 99, 40).unwrap();
    assert_eq!(sealed, bytes.len());
    bytes
}

#[test]
fn sizes_are_what_the_format_says() {
    assert_eq!(file_header().encode().len(), FILE_HEADER_BYTES);
    assert_eq!(frame(b"").len(), FRAME_HEADER_BYTES);
    assert_eq!(frame(b"123456789").len(), FRAME_HEADER_BYTES + 16);
    assert_eq!(frame_bytes(PAYLOAD_BYTES_MAX), FRAME_HEADER_BYTES + PAYLOAD_BYTES_MAX);
}

#[test]
fn file_header_survives_and_every_bit_counts() {
    let bytes = file_header().encode();
    assert_eq!(FileHeader::decode(&bytes).unwrap(), file_header());
    assert!(file_header().starts_epoch());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(FileHeader::decode(&damaged).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(FileHeader::decode(&bytes[..len]).is_err(), "cut to {len} bytes");
    }
}

#[test]
fn a_newer_version_is_named() {
    let mut bytes = file_header().encode();
    bytes[8] = 99;
    let torn = FileHeader::decode(&bytes).unwrap_err();
    assert_eq!(torn.kind(), ErrorKind::Corrupt);
    let sum = crate::checksum::checksum(place(DATABASE, 7, 0), &bytes[..72]);
    bytes[72..].copy_from_slice(&sum.to_le_bytes());
    let error = FileHeader::decode(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownVersion);
    assert!(error.to_string().contains("version is 99"), "{error}");
}

#[test]
fn frame_survives_and_every_bit_counts() {
    let bytes = frame(b"thirteen char");
    let decoded = decode_frame(&bytes, place(DATABASE, 7, 80)).unwrap();
    assert_eq!(decoded.payload, b"thirteen char");
    assert_eq!(decoded.bytes, bytes.len());
    let expected =
        FrameHeader { epoch: 3, commit: 41, durable_through: 40, previous: 99, kind: 20, lane: 0 };
    assert_eq!(decoded.header, expected);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_frame(&damaged, place(DATABASE, 7, 80)).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        let cut = decode_frame(&bytes[..len], place(DATABASE, 7, 80));
        assert!(cut.is_err(), "cut to {len} bytes");
    }
}

#[test]
fn frame_belongs_to_its_place() {
    let bytes = frame(b"payload");
    for elsewhere in [place(DATABASE, 7, 88), place(DATABASE, 8, 80), place(DATABASE + 1, 7, 80)] {
        assert!(decode_frame(&bytes, elsewhere).is_err(), "{elsewhere:?}");
    }
}

#[test]
fn oversized_payload_changes_nothing() {
    let mut bytes = vec![1, 2, 3];
    let payload = vec![0; PAYLOAD_BYTES_MAX + 1];
    let error = append_frame(&mut bytes, &FrameHeader::default(), &payload).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(bytes, [1, 2, 3]);
    append_frame(&mut bytes, &FrameHeader::default(), &payload[1..]).unwrap();
    assert_eq!(bytes.len(), 3 + frame_bytes(PAYLOAD_BYTES_MAX));
}

#[test]
fn sealing_needs_a_frame() {
    for mut bytes in [vec![], vec![0; 56], frame(b"x")[..60].to_vec()] {
        assert!(seal_frame(&mut bytes, place(DATABASE, 7, 80), 0, 0).is_err());
    }
}

#[test]
fn epoch_start_survives() {
    let start = EpochStart { previous_epoch: 8, ended_at_commit: 1 << 40 };
    assert_eq!(EpochStart::decode(&start.encode()).unwrap(), start);
    assert!(EpochStart::decode(&start.encode()[..15]).is_err());
    assert!(EpochStart::decode(&[0; 17]).is_err());
}

proptest! {
    #[test]
    fn decoders_take_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = FileHeader::decode(&bytes);
        let _ = decode_frame(&bytes, place(1, 2, 3));
        let _ = decode_unchecked(&bytes);
        let _ = EpochStart::decode(&bytes);
        let _ = seal_frame(&mut bytes.clone(), place(1, 2, 3), 4, 5);
    }

    #[test]
    fn decoders_take_damaged_frames(
        payload in proptest::collection::vec(any::<u8>(), 0..100),
        damage in proptest::collection::vec((0..156_usize, any::<u8>()), 0..6),
        cut in 0..200_usize,
    ) {
        let whole = frame(&payload);
        let mut bytes = whole.clone();
        for (at, byte) in damage {
            if let Some(slot) = bytes.get_mut(at) {
                *slot = byte;
            }
        }
        bytes.truncate(cut);
        let _ = decode_unchecked(&bytes);
        let mut sealing = bytes.clone();
        let _ = seal_frame(&mut sealing, place(1, 2, 3), 4, 5);
        if let Ok(decoded) = decode_frame(&bytes, place(DATABASE, 7, 80)) {
            prop_assert_eq!(decoded.payload, payload.as_slice());
            prop_assert_eq!(&bytes, &whole);
        }
    }
}
