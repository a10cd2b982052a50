//! A schema that decodes is valid, and encodes again to the same schema.

use esker_format::Schema;
use esker_format::codec::{Reader, Writer};
use esker_format::schema::validate_name;

/// The target.
pub fn run(data: &[u8]) {
    if let Some((schema, _)) = read(data) {
        let mut out = Writer::new();
        schema.encode(&mut out);
        let mut input = Reader::new(out.as_bytes());
        assert_eq!(Schema::decode(&mut input).as_ref(), Ok(&schema));
        assert!(input.finish().is_ok());
        for (position, field) in schema.fields().iter().enumerate() {
            assert!(validate_name("field", &field.name).is_ok());
            assert_eq!(schema.position(&field.name), Some(position));
        }
        for position in schema.key_positions() {
            assert!(!schema.fields()[*position].nullable);
        }
    }
}

/// The schema at the start of the input, and the reader behind it.
pub fn read(data: &[u8]) -> Option<(Schema, Reader<'_>)> {
    let mut input = Reader::new(data);
    let schema = Schema::decode(&mut input).ok()?;
    Some((schema, input))
}
