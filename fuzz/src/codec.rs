//! A reader stays inside its buffer, and what it reads, a writer writes so that it reads the same.

use esker_format::codec::{Reader, Writer};

/// The target: half of the input says what to read, the other half is read.
pub fn run(data: &[u8]) {
    let (script, bytes) = data.split_at(data.len() / 2);
    let mut reader = Reader::new(bytes);
    for operation in script {
        let start = reader.position();
        let mut writer = Writer::new();
        let read = step(*operation, &mut reader, &mut writer);
        let consumed = reader.position() - start;
        assert!(reader.position() + reader.remaining() == bytes.len(), "position is off");
        if !read {
            // A refusal may have consumed a count, and nothing behind the end.
            continue;
        }
        // Only LEB128 has more than one form of a number, and ours is the shortest.
        assert!(writer.len() <= consumed, "operation {operation} wrote more than it read");
        let mut again = Reader::new(writer.as_bytes());
        let mut rewritten = Writer::new();
        assert!(step(*operation, &mut again, &mut rewritten), "operation {operation}");
        assert_eq!(rewritten.as_bytes(), writer.as_bytes(), "operation {operation}");
        assert!(again.finish().is_ok(), "operation {operation}");
    }
}

/// Reads one thing and writes it; false when the reader refuses.
fn step(operation: u8, reader: &mut Reader<'_>, writer: &mut Writer) -> bool {
    match operation % 9 {
        0 => reader.u8().map(|v| writer.u8(v)),
        1 => reader.u16().map(|v| writer.u16(v)),
        2 => reader.u32().map(|v| writer.u32(v)),
        3 => reader.u64().map(|v| writer.u64(v)),
        4 => reader.i64().map(|v| writer.i64(v)),
        5 => reader.varint().map(|v| writer.varint(v)),
        6 => reader.count(usize::from(operation)).map(|v| writer.count(v)),
        7 => reader.bytes().map(|v| writer.bytes(v)),
        _ => reader.text().map(|v| writer.text(v)),
    }
    .is_ok()
}
