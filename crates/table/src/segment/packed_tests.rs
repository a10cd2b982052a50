//! Packed columns read as those that are not, and damaged ones are errors.

use std::borrow::Cow;
use std::sync::Arc;

use esker_arena::{Arena, ArenaOptions, Category};
use esker_format::edit::SegmentEntry;
use esker_format::schema::{RowOrder, StreamOption};
use esker_format::segment::{Encoding, Packing};
use esker_format::{Batch, DataType, Field, Room, Schema, TableId, Value, ValueRef};
use esker_vfs::Environment;

use super::files::SegmentFiles;
use super::{Segment, SegmentSpec, SegmentWriter, SinkTarget};
use crate::value_file::ValueLimits;

struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("esker-packed-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        Environment::os().files.create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn files(&self, copies: bool) -> Arc<SegmentFiles> {
        let limits = ValueLimits { long_bytes: 1 << 16, file_bytes_max: 1 << 20 };
        SegmentFiles::new(Environment::os(), self.0.clone(), 7, copies, limits)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = Environment::os().files.remove_dir_all(&self.0);
    }
}

const TYPES: [(&str, DataType); 17] = [
    ("t", DataType::Timestamp),
    ("jitter", DataType::Timestamp),
    ("b", DataType::Bool),
    ("i8", DataType::I8),
    ("i16", DataType::I16),
    ("i32", DataType::I32),
    ("i64", DataType::I64),
    ("u8", DataType::U8),
    ("u16", DataType::U16),
    ("u32", DataType::U32),
    ("u64", DataType::U64),
    ("date", DataType::Date),
    ("money", DataType::Decimal { precision: 18, scale: 2 }),
    ("wide", DataType::Decimal { precision: 38, scale: 2 }),
    ("word", DataType::Text),
    ("fixed", DataType::Text),
    ("text", DataType::Text),
];

fn schema() -> Schema {
    let mut builder = Schema::builder();
    for (name, data_type) in TYPES {
        builder = match name {
            "t" => builder.field(name, data_type),
            _ => builder.nullable(name, data_type),
        };
    }
    builder.stream("t", [StreamOption::Window(Some(86_400_000_000))]).build().unwrap()
}

fn mix(n: u64) -> u64 {
    esker_format::hash::of_word(n)
}

fn value(field: &Field, row: u64, nulls: bool) -> Value {
    let word = mix(row ^ u64::from(field.id.0) << 40);
    if nulls && field.name != "t" && word.is_multiple_of(7) {
        return Value::Null;
    }
    let signed = (word >> 3).cast_signed();
    match field.name.as_str() {
        "t" => Value::Timestamp(1_767_225_600_000_000 + row.cast_signed() * 1_000),
        "jitter" => {
            Value::Timestamp(row.cast_signed() * 1_000 - (word % 5_000).cast_signed() - 77_000_000)
        }
        "b" => Value::Bool(word.is_multiple_of(3)),
        "i8" => Value::Int(signed % 5 - 2),
        "i16" => Value::Int(signed % 900 - 450),
        "i32" => Value::Int(i64::from(i32::MIN) + signed % 90_000),
        "i64" => Value::Int(i64::MIN + signed % (1 << 45)),
        "u8" => Value::Uint(200 + word % 9),
        "u16" => Value::Uint(word % 3_000),
        "u32" => Value::Uint(u64::from(u32::MAX) - word % (1 << 20)),
        "u64" => Value::Uint(u64::MAX - word % (1 << 40)),
        "date" => Value::Date(20_000 + i32::try_from(word % 700).unwrap()),
        "money" | "wide" => {
            ValueRef::from_mantissa(field.data_type, (signed % 100_000).into()).to_owned()
        }
        "word" => Value::Text(format!("word-{}", word % 11)),
        "fixed" => Value::Text(format!("req_{:016x}{:08x}", word % 9_999_999, word % 77)),
        _ => Value::Text("abcd ".repeat(usize::try_from(word % 9).unwrap()) + &row.to_string()),
    }
}

fn batch(schema: &Schema, rows: u64, nulls: bool) -> Batch {
    let mut batch = Batch::empty(schema);
    for row in 0..rows {
        for (field, column) in schema.fields().iter().zip(&mut batch.columns) {
            column.push(value(field, row, nulls).as_ref()).unwrap();
        }
    }
    batch
}

fn write(
    files: &Arc<SegmentFiles>,
    schema: &Schema,
    batch: &Batch,
    packing: Packing,
) -> SegmentEntry {
    let spec = SegmentSpec {
        database: 7,
        table: TableId(1),
        segment: 5,
        schema_version: schema.version(),
        rows: u32::try_from(batch.len()).unwrap(),
        order: RowOrder::Time,
        side_by_side: None,
        key: None,
        packing,
    };
    files.remove(5);
    let target = SinkTarget::File(files.create(5).unwrap());
    let mut writer = SegmentWriter::new(spec, target).unwrap();
    for (field, column) in schema.fields().iter().zip(&batch.columns) {
        writer.field(field.id, Cow::Borrowed(column), Vec::new()).unwrap();
    }
    let ids: Vec<u64> = (0..batch.len() as u64).collect();
    let finished = writer.finish(&ids, None).unwrap();
    let (rows, file_bytes) = (spec.rows, finished.file_bytes);
    SegmentEntry { id: 5, rows, file_bytes, holds_through: 0, row_id_shift: 0 }
}

fn expect_same(segment: &Segment, schema: &Schema, batch: &Batch) {
    let rows = batch.len();
    for (field, column) in schema.fields().iter().zip(&batch.columns) {
        let edges = [0, 1, 1_023, 1_024, 1_025, 8_191, 8_192, 8_193, rows];
        for start in edges.into_iter().filter(|start| *start <= rows) {
            for end in edges.into_iter().filter(|end| (start..=rows).contains(end)) {
                let room = Room::default();
                let slice = segment.column(field, start..end, &room).unwrap();
                assert_eq!(slice.len, end - start);
                let step = ((end - start) / 300).max(1);
                for row in (start..end).step_by(step) {
                    let name = &field.name;
                    assert_eq!(slice.value(row - start), column.value(row), "{name}, row {row}");
                }
            }
        }
        for row in (0..rows).step_by((rows / 500).max(1)) {
            let room = Room::default();
            let found = segment.value(field, row, &room).unwrap();
            assert_eq!(found, column.value(row), "{}, row {row}", field.name);
        }
        if field.data_type == DataType::Text {
            let bytes = |row| column.value(row).as_bytes().map_or(0, <[u8]>::len) as u64;
            assert!(segment.decoded_bytes(field).unwrap() >= (0..rows).map(bytes).sum());
        }
    }
    segment.verify_all().unwrap();
    segment.verify_sketches(schema.fields()).unwrap();
}

#[test]
fn packed_columns_read_as_those_that_are_not() {
    let (schema, dir) = (schema(), Directory::new("same"));
    for copies in [false, true] {
        let files = dir.files(copies);
        for rows in [1, 1_023, 1_024, 1_025, 8_192, 8_193, 20_000] {
            for nulls in [false, true] {
                let batch = batch(&schema, rows, nulls);
                let mut bytes = Vec::new();
                for packing in [Packing::None, Packing::Numbers, Packing::Heaps] {
                    let entry = write(&files, &schema, &batch, packing);
                    let arena = Arena::new(ArenaOptions::default()).unwrap();
                    let segment = Segment::open(&files, &entry, &arena).unwrap();
                    expect_same(&segment, &schema, &batch);
                    bytes.push(entry.file_bytes);
                }
                if rows > 8_000 {
                    assert!(bytes[1] * 10 < bytes[0] * 9 && bytes[2] < bytes[1], "{bytes:?}");
                }
            }
        }
    }
}

#[test]
fn every_packed_encoding_is_used() {
    let (schema, dir) = (schema(), Directory::new("used"));
    let files = dir.files(false);
    let entry = write(&files, &schema, &batch(&schema, 20_000, false), Packing::Heaps);
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    let segment = Segment::open(&files, &entry, &arena).unwrap();
    let encoding = |name: &str| {
        let field = schema.fields().iter().find(|field| field.name == name).unwrap();
        match segment.layout(field).unwrap().encoding {
            Encoding::Packed { .. } => "packed",
            Encoding::PackedDeltas { .. } => "deltas",
            Encoding::PackedDictionary { .. } => "dictionary",
            Encoding::Compressed { .. } => "compressed",
            _ => "another",
        }
    };
    assert_eq!(encoding("t"), "deltas");
    for name in ["b", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "date", "money"] {
        assert_eq!(encoding(name), "packed", "{name}");
    }
    assert_eq!(encoding("wide"), "packed");
    assert_eq!(encoding("word"), "dictionary");
    assert_eq!(encoding("fixed"), "compressed");
    assert_eq!(encoding("text"), "compressed");
}

#[test]
fn blocks_are_kept_until_their_segment_goes() {
    let (schema, dir) = (schema(), Directory::new("kept"));
    let files = dir.files(false);
    let batch = batch(&schema, 20_000, false);
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    let entry = write(&files, &schema, &batch, Packing::Heaps);
    let segment = Segment::open(&files, &entry, &arena).unwrap();
    let fixed = schema.fields().iter().find(|field| field.name == "fixed").unwrap();
    let room = Room::default();
    segment.value(fixed, 7, &room).unwrap();
    assert_eq!(arena.used_by(Category::Blocks), 64 << 10);
    segment.value(fixed, 8, &room).unwrap();
    assert_eq!(arena.used_by(Category::Blocks), 64 << 10);
    segment.column(fixed, 0..8_192, &room).unwrap();
    assert!(arena.used_by(Category::Blocks) > 64 << 10);
    drop(segment);
    assert_eq!(arena.used_by(Category::Blocks), 0);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test damages a file")]
fn a_damaged_file_is_an_error_that_names_the_place() {
    let (schema, dir) = (schema(), Directory::new("damaged"));
    let files = dir.files(true);
    let batch = batch(&schema, 3_000, true);
    let entry = write(&files, &schema, &batch, Packing::Heaps);
    let path = files.path(5);
    let whole = std::fs::read(&path).unwrap();
    for at in (64..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        let arena = Arena::new(ArenaOptions::default()).unwrap();
        let found = Segment::open(&files, &entry, &arena).and_then(|segment| {
            let room = Room::default();
            for field in schema.fields() {
                segment.column(field, 0..3_000, &room)?;
            }
            segment.verify_all()
        });
        let error = found.unwrap_err().to_string();
        assert!(error.contains("segment-0000000000000005"), "{error}");
    }
}
