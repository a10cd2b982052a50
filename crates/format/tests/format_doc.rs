//! The tables of docs/internals/format.md say what the code says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a panic is the report"
)]

use std::collections::BTreeMap;

use esker_format::checkpoint::{self, Checkpoint};
use esker_format::checksum::{Place, checksum};
use esker_format::compression;
use esker_format::edit::{Edit, ROWS_FRAME};
use esker_format::frame::{self, EpochStart, FileHeader, FrameHeader, kind};
use esker_format::index_file::{self, IndexHeader};
use esker_format::segment::{self, Trailer};
use esker_format::value_file::{self, ValueFileHeader};
use esker_format::{
    ClockRecord, DataType, Namespace, Schema, Sequence, TableId, View, row, schema,
};

const DOCUMENT: &str = include_str!("../../../docs/internals/format.md");

/// The rows of the first table of a text whose columns have these names.
fn table(text: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut lines = text.lines();
    assert!(lines.any(|line| cells(line) == columns), "no table {columns:?}");
    lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect()
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    let cells = inner.into_iter().flat_map(|inner| inner.split('|'));
    cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
}

/// The text below a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let (_, rest) = DOCUMENT
        .split_once(&format!("\n### {heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading:?}"));
    rest.split("\n#").next().unwrap()
}

#[test]
fn sizes_are_those_of_the_code() {
    let code = BTreeMap::from([
        ("frame::FILE_HEADER_BYTES", frame::FILE_HEADER_BYTES as u64),
        ("frame::FRAME_HEADER_BYTES", frame::FRAME_HEADER_BYTES as u64),
        ("frame::PAYLOAD_BYTES_MAX", frame::PAYLOAD_BYTES_MAX as u64),
        ("segment::HEADER_BYTES", segment::HEADER_BYTES as u64),
        ("segment::TRAILER_BYTES", segment::TRAILER_BYTES as u64),
        ("segment::BLOCK_BYTES", segment::BLOCK_BYTES as u64),
        ("segment::ZONE_ROWS", segment::ZONE_ROWS as u64),
        ("segment::SKETCH_ROWS_MIN", u64::from(segment::SKETCH_ROWS_MIN)),
        ("segment::SEGMENT_ROWS_MAX", segment::SEGMENT_ROWS_MAX as u64),
        ("segment::packed::PACKED_ROWS", segment::packed::PACKED_ROWS as u64),
        ("compression::HEAP_BLOCK_BYTES", compression::HEAP_BLOCK_BYTES as u64),
        ("segment::FOOTER_BYTES_MAX", segment::FOOTER_BYTES_MAX),
        ("checkpoint::HEADER_BYTES", checkpoint::HEADER_BYTES as u64),
        ("checkpoint::PIECE_BYTES", checkpoint::PIECE_BYTES as u64),
        ("index_file::HEADER_BYTES", index_file::HEADER_BYTES as u64),
        ("index_file::PIECE_ENTRIES", index_file::PIECE_ENTRIES as u64),
        ("index_file::SEGMENTS_MAX", index_file::SEGMENTS_MAX as u64),
        ("value_file::HEADER_BYTES", value_file::HEADER_BYTES as u64),
        ("value_file::ALIGN_BYTES", value_file::ALIGN_BYTES),
        ("value_file::REFERENCE_BYTES", value_file::REFERENCE_BYTES as u64),
        ("value_file::LONG_BYTES", value_file::LONG_BYTES as u64),
        ("row::KEY_BYTES_MAX", row::KEY_BYTES_MAX as u64),
        ("row::VALUE_BYTES_MAX", row::VALUE_BYTES_MAX as u64),
        ("schema::CHECKS_MAX", schema::CHECKS_MAX as u64),
        ("schema::FIELDS_MAX", schema::FIELDS_MAX as u64),
        ("schema::FIELD_IDS_MAX", schema::FIELD_IDS_MAX as u64),
        ("schema::NAME_BYTES_MAX", schema::NAME_BYTES_MAX as u64),
    ]);
    let rows = table(DOCUMENT, &["constant", "value"]);
    let document: BTreeMap<&str, u64> =
        rows.iter().map(|row| (row[0].as_str(), row[1].parse().unwrap())).collect();
    assert_eq!(document, code);
}

#[test]
fn magics_and_versions_are_those_of_the_code() {
    let row = |file: &str, magic: &[u8], version: u32| {
        [file.to_owned(), String::from_utf8(magic.to_vec()).unwrap(), version.to_string()]
    };
    let log = log_header();
    assert_eq!(log[8..12], frame::FORMAT_VERSION.to_le_bytes());
    let code = [
        row("log", &log[..8], frame::FORMAT_VERSION),
        row("segment", &segment::MAGIC, segment::VERSION),
        row("checkpoint", &checkpoint::MAGIC, checkpoint::VERSION),
        row("index", &index_file::MAGIC, index_file::VERSION),
        row("values", &value_file::MAGIC, value_file::VERSION),
    ];
    assert_eq!(table(DOCUMENT, &["file", "magic", "version"]), code);
}

fn log_header() -> Vec<u8> {
    let (database, number, epoch) = (1, 2, 3);
    FileHeader { database, number, epoch, first_commit: 4, epoch_start: 5, previous: 6 }.encode()
}

#[test]
fn types_are_those_of_the_code() {
    let code = DataType::ALL.map(|t| {
        let bytes = t.width().map_or_else(|| "variable".to_owned(), |width| width.to_string());
        [t.to_string(), t.code().to_string(), bytes]
    });
    assert_eq!(table(DOCUMENT, &["type", "code", "bytes"]), code);
}

#[test]
fn frame_kinds_are_those_of_the_code() {
    let table_id = TableId(1);
    let schema = Schema::builder().field("a", DataType::I64).build().unwrap();
    let edits = [
        Edit::CreateTable { table: table_id, name: "t".into(), schema: schema.clone() },
        Edit::DropTable { table: table_id },
        Edit::Load {
            table: table_id,
            segments: Vec::new(),
            next_row_id: 1,
            replaced: Vec::new(),
            superseded: Vec::new(),
        },
        Edit::Seal { table: table_id, through: 1, segments: Vec::new() },
        Edit::Merge { table: table_id, inputs: Vec::new(), segments: Vec::new() },
        Edit::Checkpoint { number: 1, commit: 1 },
        Edit::AlterTable { table: table_id, name: "t".into(), schema },
        Edit::TruncateTable { table: table_id, replacement: TableId(2) },
        Edit::SetSequence { name: "s".into(), sequence: Sequence::new(1, 1).unwrap() },
        Edit::DropSequence { name: "s".into() },
        Edit::Atomic { edits: Vec::new(), rows: Vec::new() },
        Edit::Clock(ClockRecord::of_time(1)),
        Edit::SetView { name: "v".into(), view: View::default() },
        Edit::DropView { name: "v".into() },
        Edit::SetNamespace { name: "n".into(), namespace: Namespace::default() },
        Edit::DropNamespace { name: "n".into() },
        Edit::EndSegments { table: table_id, segments: Vec::new(), through_row_id: 1 },
    ];
    let names = [
        "create table",
        "drop table",
        "load",
        "seal",
        "merge",
        "checkpoint",
        "alter table",
        "truncate table",
        "set sequence",
        "drop sequence",
        "atomic",
        "clock",
        "set view",
        "drop view",
        "set schema",
        "drop schema",
        "end segments",
    ];
    let mut code =
        vec![(kind::ROWS, "rows"), (kind::EPOCH_START, "epoch start"), (kind::CLOSE, "close")];
    code.extend(edits.iter().map(Edit::frame_kind).zip(names));
    assert_eq!(kind::ROWS, ROWS_FRAME);
    let rows = table(DOCUMENT, &["kind", "frame", "payload"]);
    let document: Vec<(u16, &str)> =
        rows.iter().map(|row| (row[0].parse().unwrap(), row[1].as_str())).collect();
    assert_eq!(document, code);
    let start = EpochStart { previous_epoch: 1, ended_at_commit: 2 };
    assert_eq!(start.encode().len(), 16, "two u64, as the table says");
}

/// The last eight bytes of a header are its checksum, bound to the file that the table names.
#[test]
fn places_are_those_of_the_code() {
    let (database, number) = (1 << 100, 7);
    let log =
        FileHeader { database, number, epoch: 3, first_commit: 4, epoch_start: 5, previous: 6 };
    let (table, segments) = (TableId(2), vec![4]);
    let index = IndexHeader { database, number, table, segments, entries: 5 };
    let checkpoint = Checkpoint { database, number, ..Checkpoint::default() };
    let values = ValueFileHeader { database, number, salt: 9 };
    let headers = [
        (log.encode(), 0x676f_6c00_0000_0000, frame::FILE_HEADER_BYTES),
        (checkpoint.encode(), 2 << 56, checkpoint::HEADER_BYTES),
        (index.encode(), 4 << 56, index_file::HEADER_BYTES),
        (values.encode(), 5 << 56, value_file::HEADER_BYTES),
    ];
    for (encoded, file, bytes) in headers {
        let (covered, sum) = encoded[..bytes].split_at(bytes - 8);
        let place = Place { database, file: file ^ number, position: 0 };
        assert_eq!(sum, checksum(place, covered).to_le_bytes(), "{file:x}");
    }
}

/// Layouts leave no gap, end where the encoded form ends, and have magics and zeros where they
/// say.
#[test]
fn layouts_are_those_of_the_code() {
    let place = Place { database: 1, file: 2, position: 3 };
    let version = segment::VERSION;
    let trailer = Trailer { version, footer_offset: 64, footer_len: 1, footer_checksum: 2 };
    let mut frame_header = Vec::new();
    frame::append_frame(&mut frame_header, &FrameHeader::default(), b"").unwrap();
    let (database, table_id, segments) = (1, TableId(2), vec![4]);
    let index = IndexHeader { database, number: 3, table: table_id, segments, entries: 5 };
    let layouts = [
        ("Log file header", log_header()),
        ("Frame header", frame_header),
        ("Segment header", segment::header(database, table_id, 3).to_vec()),
        ("Segment trailer", trailer.encode(place)),
        ("Checkpoint header", Checkpoint::default().encode()[..checkpoint::HEADER_BYTES].to_vec()),
        ("Index header", index.encode()[..index_file::HEADER_BYTES].to_vec()),
        ("Value file header", ValueFileHeader { database, number: 3, salt: 4 }.encode()),
    ];
    for (heading, encoded) in layouts {
        let mut at = 0;
        for row in table(section(heading), &["bytes", "what"]) {
            let (start, end) = row[0].split_once("..").unwrap();
            let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
            assert_eq!(start, at, "{heading}: {row:?}");
            let bytes = &encoded[start..end];
            match row[1].as_str() {
                "zero" => assert!(bytes.iter().all(|b| *b == 0), "{heading}: {row:?}"),
                magic if magic.starts_with('E') => {
                    assert_eq!(bytes, magic.as_bytes(), "{heading}: {row:?}");
                }
                _ => {}
            }
            at = end;
        }
        assert_eq!(at, encoded.len(), "{heading}");
    }
}
