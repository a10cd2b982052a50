//! Rows that decode encode again to what decodes to them.

use esker_format::postings::{Postings, add_to, decode};

/// The target: a list of rows, and the numbers of some.
pub fn run(data: &[u8]) {
    let mut bits = vec![0; 1 << 16];
    let added = add_to(data, 1 << 22, &mut bits);
    match decode(data, 1 << 22) {
        Ok(rows) => {
            assert!(added.is_ok(), "bits of a list are refused");
            let is_set =
                |row: &u32| bits.get(*row as usize / 64).is_some_and(|w| w >> (row % 64) & 1 == 1);
            assert!(rows.iter().all(is_set), "a row is not among the bits");
            let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
            assert_eq!(count as usize, rows.len());
            round_trip(&rows);
        }
        Err(_) => assert!(added.is_err(), "bits of what is no list"),
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
