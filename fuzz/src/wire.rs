//! Frames of the wire protocol, and a session that answers them.

use esker::Options;
use esker_server::{Session, answer_frames};
use esker_wire::frame::{Frame, FrameWriter, Kind};
use esker_wire::{Reader, pack, value};

/// Any bytes are frames or are not; what a value is read as is written and read again.
pub fn run_frames(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((frame, length))) = Frame::parse(rest, 1 << 16) {
        let mut reader = Reader::new(frame.payload);
        while !reader.is_at_end() {
            let Ok(read) = value::read_owned(&mut reader) else { break };
            let mut written = Vec::new();
            value::write(&mut written, read.as_ref());
            let again = value::read_owned(&mut Reader::new(&written));
            assert!(again.is_ok_and(|again| again.as_ref().is_identical(read.as_ref())));
        }
        rest = &rest[length..];
    }
}

/// Any frames are answered, each with a last frame, and the session goes on.
pub fn run_session(data: &[u8]) {
    let database = Options::new().memory().expect("a database in memory");
    let mut session = Session::new(&database);
    let mut input = Vec::new();
    sql(&mut input, "CREATE TABLE t (id i64 PRIMARY KEY, name text)");
    sql(&mut input, "INSERT INTO t VALUES (1, 'a'), (2, NULL)");
    let asked = count_frames(&input) + count_frames(data);
    input.extend_from_slice(data);
    let out = answer_frames(&mut session, &input);
    let (mut rest, mut answered) = (out.as_slice(), 0);
    while let Ok(Some((frame, length))) = Frame::parse(rest, usize::MAX) {
        answered += usize::from(frame.is_last());
        rest = &rest[length..];
    }
    assert!(rest.is_empty(), "answers are frames");
    // One more tells of bytes that are no frame.
    assert!(answered == asked || answered == asked + 1, "{answered} answers, {asked} requests");
    let mut ping = Vec::new();
    FrameWriter::new(&mut ping, 7, Kind::Ping, 0).finish();
    assert!(!answer_frames(&mut session, &ping).is_empty());
}

fn count_frames(mut rest: &[u8]) -> usize {
    let mut count = 0;
    while let Ok(Some((_, length))) = Frame::parse(rest, 1 << 20) {
        count += 1;
        rest = &rest[length..];
    }
    count
}

fn sql(out: &mut Vec<u8>, text: &str) {
    let mut frame = FrameWriter::new(out, 1, Kind::Sql, 0);
    pack::array(frame.payload(), 2);
    pack::text(frame.payload(), text);
    pack::array(frame.payload(), 0);
    frame.finish();
}
