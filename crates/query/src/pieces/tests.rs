//! Piece by piece, the outcome is that of the whole text.

use std::collections::BTreeSet;

use super::*;
use crate::Limits;

const LENS: [usize; 3] = [1, PIECE_BYTES - 1, 2 * PIECE_BYTES + 5];

/// Texts of a few pieces, made of few characters: many of them lie across the ends of pieces.
fn texts() -> Vec<String> {
    let alphabets = ["a", "Σ", "aΣ", "Σ.", "aΣ.'\u{301} b", "ΣσςΑ\u{345}ʰ\u{ad}中1", "äß€😀bİ"];
    let mut texts = vec![String::new()];
    let mut state = 1u32;
    for alphabet in alphabets {
        let characters: Vec<char> = alphabet.chars().collect();
        for len in LENS {
            let mut text = String::new();
            while text.len() < len {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                text.push(characters[(state >> 16) as usize % characters.len()]);
            }
            texts.push(text);
        }
    }
    // What the case of a sigma depends on is some pieces away.
    let far = ".".repeat(PIECE_BYTES + 3);
    for (before, after) in [("a", "a"), ("a", ""), ("", "a"), (" ", "a"), ("a", " "), ("Σ", "Σ")]
    {
        texts.push(format!("{before}{far}Σ{far}{after}"));
        texts.push(format!("{before}{far}Σ.Σ{after}{far}"));
    }
    for before in 0..4 {
        texts.push(format!("{}Σb Σ", "a".repeat(PIECE_BYTES - before)));
    }
    texts
}

#[test]
fn cases_and_order_are_those_of_the_whole() {
    let limits = Limits::default();
    let meter = Meter::new(&limits);
    for text in texts() {
        let bytes = text.as_bytes();
        let start: String = text.chars().take(20).collect();
        assert!(lower(bytes, &meter).unwrap() == text.to_lowercase().as_bytes(), "{start}");
        let upper = mapped(bytes, bytes.len(), &meter, |piece, out| {
            out.extend_from_slice(piece.to_uppercase().as_bytes());
        });
        assert!(upper.unwrap() == text.to_uppercase().as_bytes(), "{start}");
        let mut room = meter.room("a test");
        let folded = folded(bytes, &mut room, &meter).unwrap();
        assert!(*folded == *fold_piece(&text).as_bytes(), "{start}");
        let back: String = text.chars().rev().collect();
        assert!(reversed(bytes, &meter).unwrap() == back.as_bytes(), "{start}");
    }
}

#[test]
fn places_are_those_of_the_whole() {
    let limits = Limits::default();
    let meter = Meter::new(&limits);
    for text in texts() {
        let bytes = text.as_bytes();
        let count = text.chars().count();
        assert_eq!(characters(bytes, &meter).unwrap(), count);
        for index in [0, 1, count / 2, count.saturating_sub(1), count, count + 1] {
            let wanted = text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
            assert_eq!(place(bytes, index, &meter).unwrap(), wanted);
        }
        let long = text.get(text.len() / 3..).unwrap_or("b Σ");
        for part in ["a", "Σ", "aΣ", "..", "b Σ", "äß", "no", long] {
            let finder = Finder::new(part);
            assert_eq!(find(bytes, &finder, &meter).unwrap(), text.find(part), "{part:.20}");
            let mut found = Vec::new();
            let visit = |at| {
                found.push(at);
                Ok(())
            };
            find_all(bytes, &finder, &meter, visit).unwrap();
            let places = text.match_indices(part).map(|(at, _)| at);
            let wanted: Vec<usize> = places.filter(|_| !part.is_empty()).collect();
            assert!(found == wanted, "{part:.20}");
        }
    }
}

#[test]
fn trimmed_is_what_the_whole_has_at_its_ends() {
    let limits = Limits::default();
    let meter = Meter::new(&limits);
    let many: String = ('\u{80}'..'\u{3000}').chain(['a', '.', '😀']).collect();
    for text in texts() {
        for set in ["", "a", "Σ.", "ba.'", "ä€ßaΣ", &many] {
            let characters = Characters::of(set.as_bytes(), &meter).unwrap();
            let set: BTreeSet<char> = set.chars().collect();
            let start = text.trim_start_matches(|c| set.contains(&c)).len();
            let leading = leading(text.as_bytes(), &characters, &meter).unwrap();
            assert_eq!(leading, text.len() - start, "{} characters", set.len());
            let end = text.trim_end_matches(|c| set.contains(&c)).len();
            let trailing = trailing(text.as_bytes(), &characters, &meter).unwrap();
            assert_eq!(trailing, text.len() - end, "{} characters", set.len());
        }
    }
}

/// Each letter of a text was looked for in all of the set, which may be as long as the text.
#[test]
fn a_set_of_many_characters_is_no_slower_than_one_of_few() {
    let limits = Limits::default();
    let meter = Meter::new(&limits);
    let set = format!("{}ab", "c".repeat(8 << 20));
    let text = "ab".repeat(1 << 20);
    let set = Characters::of(set.as_bytes(), &meter).unwrap();
    assert_eq!(leading(text.as_bytes(), &set, &meter).unwrap(), text.len());
}
