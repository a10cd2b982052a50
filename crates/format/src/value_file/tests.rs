//! Headers and references survive a round trip and refuse damage.

use super::*;
use crate::codec::{Reader, Writer};
use crate::row::{Cell, decode_cells, decode_row, encode_cells};
use crate::{DataType, Schema, ValueRef};

#[test]
fn a_header_survives_a_round_trip_and_refuses_every_flipped_bit() {
    let header = ValueFileHeader { database: 0x1234, number: 5, salt: 77 };
    let mut bytes = header.encode();
    assert_eq!(bytes.len(), HEADER_BYTES);
    assert_eq!(ValueFileHeader::decode(&bytes, 5).unwrap(), header);
    assert!(ValueFileHeader::decode(&bytes, 6).is_err(), "the number is part of the place");
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(ValueFileHeader::decode(&bytes, 5).is_err(), "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn a_checksum_is_bound_to_database_file_and_offset() {
    let reference = ValueReference::new(1, 2, 512, b"value");
    for (database, file, offset) in [(2, 2, 512), (1, 3, 512), (1, 2, 1_024)] {
        let other = ValueReference::new(database, file, offset, b"value");
        assert_ne!(other.checksum, reference.checksum);
    }
    let mut sum = reference.start_checksum(1);
    sum.update(b"val");
    sum.update(b"ue");
    assert_eq!(sum.finish(), reference.checksum);
}

#[test]
fn references_that_cannot_be_are_refused() {
    let good = ValueReference::new(1, 2, 512, b"value").words();
    assert!(ValueReference::from_words(good).is_ok());
    for (word, value) in [(1, 0), (1, 513), (2, (1 << 30) + 1), (2, u64::MAX)] {
        let mut bad = good;
        bad[word] = value;
        assert!(ValueReference::from_words(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_row_may_have_references_where_values_may_be_long() {
    let schema = Schema::builder()
        .field("a", DataType::Text)
        .nullable("b", DataType::Bytes)
        .field("c", DataType::Uuid)
        .build()
        .unwrap();
    let reference = ValueReference::new(1, 2, 512, b"value");
    let uuid = ValueRef::Uuid(&[7; 16]);
    let rows = [
        [Cell::Value(ValueRef::Text("x")), Cell::Long(reference), Cell::Value(uuid)],
        [Cell::Long(reference), Cell::Value(ValueRef::Null), Cell::Value(uuid)],
    ];
    for row in rows {
        let mut out = Writer::new();
        encode_cells(&mut out, &schema, |i| row[i]);
        let (mut cells, mut input) = (Vec::new(), Reader::new(out.as_bytes()));
        decode_cells(&mut input, &schema, &mut cells).unwrap();
        input.finish().unwrap();
        assert_eq!(cells, row);
        let values = decode_row(&mut Reader::new(out.as_bytes()), &schema, &mut Vec::new());
        assert!(values.unwrap_err().to_string().contains("of value file 2"));
        for cut in 0..out.len() {
            let bytes = out.as_bytes().get(..cut).unwrap();
            assert!(decode_cells(&mut Reader::new(bytes), &schema, &mut cells).is_err());
        }
    }
}
