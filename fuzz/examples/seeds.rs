//! Writes valid inputs for each target into `fuzz/regressions/TARGET`, from which the fuzzer
//! starts: `cargo run -p esker-fuzz --example seeds`.
#![allow(clippy::disallowed_methods, reason = "a tool beside the engine")]

use esker_format::checkpoint::{Checkpoint, GroupState, HEADER_BYTES, SegmentState, TableState};
use esker_format::codec::Writer;
use esker_format::edit::{Edit, RowChange, SegmentEntry};
use esker_format::frame::{FrameHeader, append_frame};
use esker_format::row::encode_row;
use esker_format::schema::{RowOrder, StreamOption};
use esker_format::segment::{
    ColumnLayout, Encoding, Extent, FieldSketch, Footer, Packing, RowIds, ValueFileUse, ZoneEntry,
};
use esker_format::value_file::ValueFileHeader;
use esker_format::{
    ClockRecord, DataType, Field, FieldId, Namespace, Schema, Sequence, TableId, Value, ValueRef,
    View, ViewColumn, ViewInput, hash,
};
use std::path::Path;

const SQL: &str = "SELECT origin AS o, count(*), avg(delay) / 2 FROM flights WHERE carrier IN \
    ('AA', 'UA') AND NOT (delay BETWEEN 1 AND 5.5 OR tail LIKE 'N%' OR tail IS NULL) \
    GROUP BY 1 HAVING count(*) > 3 ORDER BY 2 DESC NULLS LAST LIMIT 10 OFFSET 2";

const HTTP_SQL: &str = r#"{"sql":"SELECT name FROM t WHERE id > ?","parameters":[0]}"#;

/// Requests one after another: ranges, conditions, numbers, a transaction's beginning.
const HTTP_ENTRIES: &[u8] =
    b"PUT /v1/databases/default/buckets/b/entries/k%00\nEsker-TTL: 9\n\n7\x1e\
    GET /v1/databases/default/buckets/b/entries/k%00\nRange: bytes=0-0\nIf-None-Match: *\n\n\x1e\
    POST /v1/databases/default/buckets/b/entries/n/increment?by=-2\nIdempotency-Key: 1\n\n\x1e\
    GET /v1/databases/default/tables/t/rows?limit=1\nAccept: application/x-ndjson\n\n\x1e\
    POST /v1/databases/default/transactions\ncontent-type: application/json\n\n{}";

fn http(path: &str, media: &str, body: &str) -> Vec<u8> {
    let head = format!("POST /v1/databases/default/{path}\ncontent-type: {media}\n\n");
    [head.as_bytes(), body.as_bytes()].concat()
}

fn main() -> std::io::Result<()> {
    let seeds = [
        ("bucket_key", b"\x04\x0bab\0\xffc\0\0\x80\0\0\x01ab\0\0\x7f\xff\xff\xff".to_vec()),
        ("calendar", b"2013-01-31 05:17:00.123456Z".to_vec()),
        ("checkpoint", checkpoint()),
        ("codec", codec()),
        ("csv", b"\x04name\tn\tday\n\"An\"\"na\"\t1\t2013-01-31\nBo\tNA\tnull\r\n".to_vec()),
        ("database", b"\x01\x00\x01\x40\0\0\0\x03\0\x01\x04\x40\0\0\0\x20\x02".to_vec()),
        ("edit", edit()),
        (
            "event",
            br#"{"t":"2026-01-02 03:04:05","what":"x","n":-7,"d":1.25,"b":true,"extra":{"a":[1]}}"#
                .to_vec(),
        ),
        ("frame", frame()),
        ("http", http("query", "application/json", r#"{"table":"t","order":["id"]}"#)),
        ("index", (0..128).collect()),
        (
            "json_binary",
            esker_format::json::parse(r#"{"a":[1,"x",null,{"b":-0.5e3}],"c":true}"#).expect("json"),
        ),
        ("key", key()),
        ("packed", (0..400u64).flat_map(|n| (n * 1_000).to_le_bytes()).collect()),
        ("resp", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\nMULTI\r\nINCR n\r\nEXEC\r\n".to_vec()),
        ("row", row()),
        ("schema", encoded(|out| schema().encode(out))),
        ("segment", segment()),
        ("sql", SQL.as_bytes().to_vec()),
        ("values", values()),
        ("text", b"a text not null, \"b c\" i64, d timestamp, primary key (a)".to_vec()),
    ];
    let seeds = seeds.map(|(target, bytes)| (target, "valid", bytes));
    let more = [
        ("http", "sql", http("query", "application/json", HTTP_SQL)),
        ("http", "csv", http("tables/t/rows", "text/csv", "id,name\n3,\"c\"\"d\"\n4,\n")),
        ("http", "ndjson", http("tables/t/rows", "application/x-ndjson", "{\"id\":3}\n{\"id\":4}")),
        ("http", "json", http("tables/t/rows", "application/json", r#"[{"id":3,"doc":{"a":[]}}]"#)),
        ("http", "entries", HTTP_ENTRIES.to_vec()),
        ("segment", "side_by_side", side_by_side()),
        ("segment", "sketch", encoded(|out| sketch(2_000).encode(out))),
        ("segment", "rows", b"\x01\x05\x02\x09\x00\xffkeys and values of three rows".to_vec()),
        ("checkpoint", "body", body()),
        ("edit", "time", time()),
        ("edit", "together", together()),
        ("edit", "ended", ended()),
        ("schema", "stream", encoded(|out| stream().encode(out))),
    ];
    for (target, name, bytes) in seeds.into_iter().chain(more) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(name), bytes)?;
    }
    Ok(())
}

fn encoded(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::new();
    write(&mut out);
    out.into_bytes()
}

fn stream() -> Schema {
    let fields = Schema::builder().field("t", DataType::Timestamp);
    let fields = fields.nullable("rest", DataType::Json).nullable("tier", DataType::Text);
    let options = [
        StreamOption::Late(Some(86_400_000_000)),
        StreamOption::Ahead(Some(1)),
        StreamOption::Rest(Some("rest".into())),
        StreamOption::read("retention", Some("90 days")).expect("an option"),
        StreamOption::read("retention_by", Some("tier: free 7 days, vip forever"))
            .expect("an option"),
        StreamOption::read("window", Some("1 day")).expect("an option"),
    ];
    fields.stream("t", options).build().expect("a valid schema")
}

fn schema() -> Schema {
    let builder = Schema::builder().field("id", DataType::I64);
    let labels = esker_format::Labels::new(["first", "second"]).expect("labels");
    let add = |builder: esker_format::schema::SchemaBuilder, t: DataType| {
        let builder = builder.nullable(t.to_string(), t);
        if t == DataType::Enum { builder.labels(labels.clone()) } else { builder }
    };
    let builder = DataType::ALL.into_iter().fold(builder, add);
    builder.primary_key(["id"]).build().expect("a valid schema")
}

fn value(data_type: DataType) -> Value {
    match data_type {
        DataType::Bool => Value::Bool(true),
        DataType::F32 => Value::Float32(1.5),
        DataType::F64 => Value::Float(-2.5),
        DataType::Text => Value::Text("Grüße".to_owned()),
        DataType::Bytes => Value::Bytes(vec![0, 255, 0]),
        DataType::Date => Value::Date(15_000),
        DataType::Timestamp => Value::Timestamp(1_359_609_420_123_456),
        DataType::Time => Value::Time(19_020_000_000),
        DataType::Uuid => Value::Uuid([7; 16]),
        DataType::Ipv4 => Value::Ipv4(0xc000_0201),
        DataType::Ipv6 => Value::Ipv6([0x20; 16]),
        DataType::Enum => Value::Text("second".to_owned()),
        DataType::Interval => Value::Interval(esker_format::Interval::new(14, -3, 5_000_000)),
        DataType::Json => Value::json(r#"{"a":[1,"x",null],"b":2.50}"#).expect("json"),
        DataType::List(element) => {
            let item = value(element.data_type());
            Value::list(element, [item.as_ref(), ValueRef::Null]).expect("a list")
        }
        DataType::Decimal { scale, .. } => {
            Value::Decimal(esker_format::Decimal::new(-12_345, scale).expect("it fits"))
        }
        DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64 => Value::Int(-7),
        DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => Value::Uint(7),
    }
}

fn row() -> Vec<u8> {
    let schema = schema();
    let fitted = |field: &Field| field.fit(&value(field.data_type)).expect("it fits");
    let values: Vec<_> = schema.fields().iter().map(fitted).collect();
    encoded(|out| {
        schema.encode(out);
        encode_row(out, &schema, |at| values[at].as_ref());
    })
}

fn codec() -> Vec<u8> {
    let bytes = encoded(|out| {
        out.u8(1);
        out.u16(2);
        out.u32(3);
        out.u64(4);
        out.i64(-5);
        out.varint(1 << 40);
        out.count(6);
        out.bytes(b"bytes");
        out.text("text");
    });
    let mut script: Vec<u8> = (9..18).cycle().take(bytes.len()).collect();
    script.extend(bytes);
    script
}

fn key() -> Vec<u8> {
    encoded(|out| {
        let types = [DataType::Text, DataType::F64, DataType::I32];
        types.iter().for_each(|t| out.u8(t.code()));
        for text in ["a", "a\0b"] {
            out.text(text);
            out.u64((-0.0f64).to_bits());
            out.u32(u32::MAX);
        }
    })
}

fn frame() -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = FrameHeader { epoch: 1, commit: 2, ..FrameHeader::default() };
    append_frame(&mut bytes, &header, b"payload").expect("a small payload fits");
    bytes
}

fn time() -> Vec<u8> {
    let edit = Edit::Clock(ClockRecord::of_time(1_767_225_600_000_000));
    [edit.frame_kind().to_le_bytes().to_vec(), edit.encode()].concat()
}

fn ended() -> Vec<u8> {
    let (table, segments) = (TableId(3), vec![9, 4]);
    let edit = Edit::EndSegments { table, segments, through_row_id: 1 << 40 };
    let mut bytes = edit.frame_kind().to_le_bytes().to_vec();
    bytes.extend(edit.encode());
    bytes
}

fn together() -> Vec<u8> {
    let gone = |table| encoded(|out| RowChange::encode_delete(out, TableId(table), 9));
    let load = Edit::Load {
        table: TableId(1),
        segments: vec![SegmentEntry {
            id: 4,
            rows: 2,
            file_bytes: 300,
            holds_through: 0,
            row_id_shift: 0,
        }],
        next_row_id: 12,
        replaced: vec![3, 7],
        superseded: Vec::new(),
    };
    let edits = vec![load, Edit::DropTable { table: TableId(3) }];
    let edit = Edit::Atomic { edits, rows: gone(2) };
    [edit.frame_kind().to_le_bytes().to_vec(), edit.encode()].concat()
}

fn edit() -> Vec<u8> {
    let edit = Edit::CreateTable { table: TableId(1), name: "people".to_owned(), schema: schema() };
    let mut bytes = edit.frame_kind().to_le_bytes().to_vec();
    bytes.extend(edit.encode());
    bytes.extend(encoded(|out| RowChange::encode_delete(out, TableId(1), 9)));
    bytes
}

/// A sketch of so many values.
fn sketch(values: u64) -> FieldSketch {
    let mut sketch = FieldSketch::default();
    sketch.extend((0..values).map(hash::of_word));
    sketch
}

fn segment() -> Vec<u8> {
    let extent = |offset, len| Extent { offset, len };
    let zone = ZoneEntry { least: Value::Int(1), greatest: Some(Value::Int(9)), null_count: 0 };
    let plain = Encoding::Plain { values: extent(64, 80) };
    let text = Encoding::Dictionary {
        width: 1,
        codes: extent(192, 10),
        offsets: extent(256, 12),
        heap: extent(320, 6),
    };
    let column = |field, data_type, encoding, zones| ColumnLayout {
        field: FieldId(field),
        data_type,
        encoding,
        validity: Some(extent(384, 8)),
        zones,
        sketch: Some(sketch(4)),
    };
    let footer = Footer {
        table: TableId(1),
        segment: 3,
        schema_version: 1,
        rows: 10,
        order: RowOrder::Arrival,
        packing: Packing::None,
        row_ids: RowIds::Dense { first: 100 },
        dead: None,
        columns: vec![
            column(1, DataType::I64, plain, vec![zone]),
            column(2, DataType::Text, text, vec![]),
            column(3, DataType::F64, Encoding::Constant(Value::Float(0.5)), vec![]),
        ],
        value_files: vec![ValueFileUse { file: 4, bytes: 70_000 }],
        block_checksums: vec![77],
    };
    let mut bytes = 448u64.to_le_bytes().to_vec();
    bytes.extend(footer.encode());
    bytes
}

fn side_by_side() -> Vec<u8> {
    let extent = |offset, len| Extent { offset, len };
    let (lines, offsets, heap) = (extent(64, 128), extent(192, 132), extent(384, 77));
    let shared = [
        Encoding::Lined { part: 0, lines, heap },
        Encoding::Lined { part: 1, lines, heap },
        Encoding::Interleaved { part: 1, offsets, heap },
        Encoding::Strided { width: 1, stride: 4, at: 2, heap: extent(384, 64) },
    ];
    let column = |(field, encoding)| ColumnLayout {
        field: FieldId(field),
        data_type: DataType::Bytes,
        encoding,
        validity: None,
        zones: Vec::new(),
        sketch: None,
    };
    let footer = Footer {
        table: TableId(1),
        segment: 3,
        schema_version: 1,
        rows: 16,
        order: RowOrder::Key,
        packing: Packing::None,
        row_ids: RowIds::Dense { first: 100 },
        dead: None,
        columns: (1..).zip(shared).map(column).collect(),
        value_files: Vec::new(),
        block_checksums: vec![77],
    };
    let mut bytes = 512u64.to_le_bytes().to_vec();
    bytes.extend(footer.encode());
    bytes
}

fn checkpoint() -> Vec<u8> {
    let entry =
        SegmentEntry { id: 3, rows: 10, file_bytes: 4096, holds_through: 7, row_id_shift: 0 };
    let table = TableState {
        table: TableId(1),
        name: "people".to_owned(),
        schema: schema(),
        next_row_id: 11,
        sealed_through: 7,
        segments: vec![SegmentState { entry, dead: vec![0, 4, 9] }],
        index_file: 0,
        groups: vec![GroupState { newest_commit: 9, rows: vec![7; 20] }],
        ended_row_id: 3,
    };
    let state = Checkpoint {
        clock: Some(ClockRecord::of_time(1_767_225_600_000_000)),
        database: 7,
        number: 5,
        commit: 9,
        hash_key: [1, 2],
        next_table: 2,
        next_segment: 4,
        tables: vec![table],
        sequences: vec![(
            "orders".to_owned(),
            Sequence { given: 33, ..Sequence::new(1, 2).unwrap() },
        )],
        views: vec![("adults".to_owned(), view())],
        namespaces: vec![("app".to_owned(), Namespace { comment: Some("ours".to_owned()) })],
    };
    let mut bytes = 5u64.to_le_bytes().to_vec();
    bytes.extend(state.encode());
    bytes
}

fn view() -> View {
    let column = ViewColumn { name: "name".to_owned(), data_type: DataType::Text };
    let input = ViewInput { name: "people".to_owned(), is_view: false, through: 2 };
    View {
        comment: Some("what it shows".into()),
        text: "SELECT name FROM people".to_owned(),
        query: "{}".to_owned(),
        columns: vec![column],
        settings: vec![("nulls_order".to_owned(), "first".to_owned())],
        inputs: vec![input],
        is_rollup: true,
    }
}

/// What the checksums of [`checkpoint`] cover, which is a single piece.
fn body() -> Vec<u8> {
    let file = checkpoint();
    file[8 + HEADER_BYTES..file.len() - 8].to_vec()
}

/// A number, and the header of the file with that number.
fn values() -> Vec<u8> {
    let number = 10u64;
    let header = ValueFileHeader { database: 1, number, salt: 2 }.encode();
    [number.to_le_bytes().as_slice(), &header].concat()
}
