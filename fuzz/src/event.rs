//! Events as they are sent, and where readers of events are: a body that is read at once holds the
//! rows that are read one by one; ids, cursors and places of tails that read as such come back.

use esker::{Column, EventCursor, EventId, Schema, TailFrom, Value};
use esker_import::{JsonRows, parse_new_json_row};
use std::sync::LazyLock;

/// The longest body tried.
const BODY_BYTES_MAX: usize = 1 << 10;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let text =
        "t timestamp not null, what text not null, n i64, d decimal(9,2), b bool, extra json";
    esker_import::schema_text::parse(text).expect("a schema")
});
static ROWS: LazyLock<JsonRows> = LazyLock::new(|| JsonRows::new(&SCHEMA));

/// The target: a text.
pub fn run(data: &[u8]) {
    let data = data.get(..BODY_BYTES_MAX).unwrap_or(data);
    one_event(data);
    drop(ROWS.read(data.to_vec(), 100));
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(id) = text.parse::<EventId>() {
        assert_eq!(id.to_string().parse::<EventId>().ok(), Some(id));
    }
    if let Ok(cursor) = text.parse::<EventCursor>() {
        assert!(cursor.to_string().eq_ignore_ascii_case(text), "{text}");
    }
    if let Ok(TailFrom::After(row_id)) = text.parse() {
        assert!(
            matches!(row_id.to_string().parse(), Ok(TailFrom::After(again)) if again == row_id)
        );
    }
}

/// One event at once, and by itself.
fn one_event(data: &[u8]) {
    let (batch, back) = ROWS.read(data.to_vec(), 100);
    assert_eq!(back, data);
    let Some(batch) = batch.filter(|_| data.trim_ascii_start().first() != Some(&b'[')) else {
        return;
    };
    let text = std::str::from_utf8(data).expect("what was read is text");
    let row = parse_new_json_row(text.trim(), &SCHEMA).expect("what is read at once");
    assert_eq!(batch.len(), 1);
    for (field, column) in SCHEMA.fields().iter().zip(&batch.columns) {
        let given = row.iter().find(|(name, _)| *name == field.name);
        let given = given.map_or(Value::Null, |(_, value)| value.clone());
        let given = field.fit(&given).expect("it fits");
        assert_eq!(value(column), given, "{}", field.name);
    }
}

fn value(column: &Column) -> Value {
    column.value(0).to_owned()
}
