//! Headers of value files and rows with references: what decodes encodes again to the same.

use crate::schema;
use esker_format::ValueReference;
use esker_format::codec::{Reader, Writer};
use esker_format::row::{Cell, decode_cells, encode_cells};
use esker_format::value_file::{ALIGN_BYTES, HEADER_BYTES, HeapWord, ValueFileHeader};

/// The target: a number and a header; a word, a reference; a schema and a row.
pub fn run(data: &[u8]) {
    let Some((number, bytes)) = data.split_first_chunk() else { return };
    let number = u64::from_le_bytes(*number);
    if let Ok(header) = ValueFileHeader::decode(bytes, number) {
        assert_eq!(header.number, number);
        let again = ValueFileHeader::decode(&header.encode(), number);
        assert_eq!(again.ok(), Some(header));
    }
    let header = ValueFileHeader { database: 1, number, salt: 2 }.encode();
    assert_eq!(header.len(), HEADER_BYTES);
    assert!(ValueFileHeader::decode(&header, number).is_ok(), "a header decodes");
    assert_eq!(HeapWord::of(number).word(), number);
    if let Ok(reference) = ValueReference::decode(&mut Reader::new(bytes)) {
        assert!(reference.offset >= ALIGN_BYTES && reference.end() > reference.offset.min(1));
        let mut out = Writer::new();
        reference.encode(&mut out);
        assert_eq!(bytes.get(..out.len()), Some(out.as_bytes()));
    }
    let Some((schema, mut input)) = schema::read(data) else { return };
    let mut cells = Vec::new();
    if decode_cells(&mut input, &schema, &mut cells).is_err() {
        return;
    }
    for (field, cell) in schema.fields().iter().zip(&cells) {
        assert!(field.data_type.may_be_long() || matches!(cell, Cell::Value(_)));
    }
    let mut out = Writer::new();
    encode_cells(&mut out, &schema, |at| cells[at]);
    let (mut again, mut input) = (Vec::new(), Reader::new(out.as_bytes()));
    assert!(decode_cells(&mut input, &schema, &mut again).is_ok() && input.finish().is_ok());
    assert_eq!(again, cells);
}
