//! Values and schemas as people write them: what is read is shown as text that reads the same.

use esker_format::codec::{Reader, Writer};
use esker_format::{DataType, Schema};
use esker_import::{parse_value, schema_text};

/// The target: a type and a value of it; a schema as text; a schema in its stored form.
pub fn run(data: &[u8]) {
    if let Ok(schema) = Schema::decode(&mut Reader::new(data)) {
        let text = schema_text::write(&schema);
        let again = schema_text::parse(&text).expect("a written schema is read");
        assert_eq!(fields(&again), fields(&schema), "{text}");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(schema) = schema_text::parse(text) {
        let written = schema_text::write(&schema);
        assert_eq!(
            schema_text::parse(&written).ok().as_ref(),
            Some(&schema),
            "{text:?} as {written:?}"
        );
        let mut out = Writer::new();
        schema.encode(&mut out);
        assert_eq!(Schema::decode(&mut Reader::new(out.as_bytes())), Ok(schema));
    }
    // A label of an enum is read as the text that it is.
    for data_type in DataType::ALL.into_iter().filter(|t| *t != DataType::Enum) {
        if let Ok(value) = parse_value(text, data_type) {
            let shown = value.to_string();
            let again = parse_value(&shown, data_type);
            assert_eq!(
                again.ok().as_ref(),
                Some(&value),
                "{text:?} as {data_type} is shown as {shown:?}"
            );
        }
    }
}

/// All but the numbers of the fields, which text does not have.
fn fields(schema: &Schema) -> Vec<(&str, String, bool, bool)> {
    let key = schema.key_positions();
    let fields = schema.fields().iter().enumerate();
    fields.map(|(at, f)| (f.name.as_str(), f.type_text(), f.nullable, key.contains(&at))).collect()
}
