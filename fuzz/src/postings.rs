//! Rows that decode encode again to what decodes to them.

use esker_format::postings::{Postings, decode};

/// The target: a list of rows, and the numbers of some.
pub fn run(data: &[u8]) {
    if let Ok(rows) = decode(data, 1 << 22) {
        round_trip(&rows);
    }
    let words = data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word) % (1 << 22));
    let mut rows: Vec<u32> = words.collect();
    rows.sort_unstable();
    rows.dedup();
    round_trip(&rows);
}

fn round_trip(rows: &[u32]) {
    let mut postings = Postings::default();
    rows.iter().for_each(|row| postings.push(*row));
    assert_eq!(postings.count() as usize, rows.len());
    let encoded = postings.encode();
    assert_eq!(decode(&encoded, 1 << 22).expect("a list decodes"), rows);
    if let Some(last) = rows.last() {
        assert!(decode(&encoded, *last).is_err(), "a row past the last was taken");
    }
}
