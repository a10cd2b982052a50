//! An index file that decodes encodes again to the same bytes.

use esker_format::TableId;
use esker_format::index_file::{IndexEntry, IndexHeader};

/// The target: the number that the file's name has, then the file; and the parts of one.
pub fn run(data: &[u8]) {
    let Some((number, bytes)) = data.split_first_chunk() else { return };
    let number = u64::from_le_bytes(*number);
    if let Ok((header, read)) = IndexHeader::decode(bytes, number) {
        assert_eq!(bytes.get(..read), Some(header.encode().as_slice()));
    }
    round_trip(number, bytes);
}

fn round_trip(number: u64, data: &[u8]) {
    let words: Vec<u64> = data.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let (segments, entries) = words.split_at(words.len() / 4);
    let header = IndexHeader {
        database: 7,
        number,
        table: TableId(3),
        segments: segments.to_vec(),
        entries: entries.len() as u64,
    };
    let mut bytes = header.encode();
    let decoded = IndexHeader::decode(&bytes, number).expect("a header decodes");
    assert_eq!(decoded, (header.clone(), bytes.len()));

    let position = bytes.len();
    let entries: Vec<IndexEntry> = entries.iter().map(|word| entry(*word)).collect();
    header.encode_piece(&mut bytes, position as u64, &entries);
    let (mut seen, piece) = (Vec::new(), &bytes[position..]);
    header.decode_piece(position as u64, piece, |entry| seen.push(entry)).expect("a piece decodes");
    assert_eq!(seen, entries);
    let elsewhere = header.decode_piece(position as u64 + 8, piece, |_| ());
    assert!(elsewhere.is_err(), "a piece was found in another place");
}

/// An entry within its bounds: 1,024 segments of 4 Mi rows.
#[allow(clippy::cast_possible_truncation, reason = "each part is masked to its bits")]
fn entry(word: u64) -> IndexEntry {
    IndexEntry {
        tag: (word >> 32) as u32,
        segment: (word >> 22 & 0x3ff) as u16,
        row: (word & 0x3f_ffff) as u32,
    }
}
