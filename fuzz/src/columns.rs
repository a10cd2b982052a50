//! Rows by column, as the wire protocol has them, and the appends that have them.

use std::sync::LazyLock;

use esker::{Database, Options};
use esker_server::{Session, answer_frames};
use esker_wire::frame::{Frame, FrameWriter, Kind};
use esker_wire::{Reader, columns, pack};

/// The most bytes that are tried.
const BYTES_MAX: usize = 1 << 12;

static DATABASE: LazyLock<Database> = LazyLock::new(|| {
    let database = Options::new().memory().expect("a database in memory");
    let text = "CREATE TABLE e (t timestamp NOT NULL, n u16, what text, d decimal(9,2), \
        tags text[], extra json) WITH (stream = 't', rest = 'extra')";
    let request = esker_server::Request::Sql { text: text.into(), parameters: Vec::new() };
    Session::new(&database).run(request).expect("a stream");
    database
});

/// The target: the first byte says how many rows there are.
pub fn run(data: &[u8]) {
    let data = data.get(..BYTES_MAX).unwrap_or(data);
    let Some((rows, bytes)) = data.split_first() else { return };
    let rows = usize::from(*rows);
    read(bytes, rows);
    append(Kind::AppendColumns, |out| {
        pack::uint(out, rows as u64);
        out.extend_from_slice(bytes);
    });
    append(Kind::Append, |out| out.extend_from_slice(bytes));
}

/// What is read as columns is written and read again.
fn read(bytes: &[u8], rows: usize) {
    let Ok(read) = columns::read(&mut Reader::new(bytes), rows) else { return };
    let mut written = Vec::new();
    columns::write(&mut written, read.iter().map(|one| (one.name, &one.column)));
    let again = columns::read(&mut Reader::new(&written), rows).expect("what was written");
    assert_eq!(format!("{again:?}"), format!("{read:?}"));
    assert!(read.iter().all(|one| one.column.len() == rows));
}

/// Events are stored as their answer says.
fn append(kind: Kind, events: impl FnOnce(&mut Vec<u8>)) {
    let mut frame = Vec::new();
    let mut writer = FrameWriter::new(&mut frame, 1, kind, 0);
    let payload = writer.payload();
    pack::array(payload, if kind == Kind::Append { 3 } else { 4 });
    pack::text(payload, "e");
    pack::nil(payload);
    events(payload);
    writer.finish();
    let count = || DATABASE.table("e").and_then(|table| table.count()).expect("a count");
    let before = count();
    let answer = answer_frames(&mut Session::new(&DATABASE), &frame);
    let (frame, _) = Frame::parse(&answer, usize::MAX).expect("a frame").expect("a whole one");
    let mut reader = Reader::new(frame.payload);
    let stored = match frame.kind().expect("a kind") {
        Kind::Done => reader.array().and_then(|_| reader.uint()).expect("how many"),
        _ => 0,
    };
    assert_eq!(count() - before, stored);
}
