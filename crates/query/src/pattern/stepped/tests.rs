//! Byte by byte, an expression is found where it is found at once.

use regex::bytes::RegexBuilder;

use super::*;
use crate::Limits;

const EXPRESSIONS: [&str; 18] = [
    "",
    "a",
    "^a",
    "a$",
    "^a*$",
    "(a|b|ä| ){3}no$",
    "\\bno\\b",
    "\\Bo\\B",
    "(\\bno\\b.{2}){2}",
    "(?m)^no$",
    "(?s)a.b",
    "a.b",
    "\\w+\\d",
    "[^a-z]ß",
    "\\p{Greek}{2}",
    "ÄB|ss",
    "(?i)äb",
    "x{2,3}?y",
];

const TEXTS: [&str; 16] = [
    "",
    "a",
    "b",
    "aa",
    "ba",
    "no",
    "ono no",
    "änoß no..no",
    "a\nb",
    "x\nno\ny",
    "word7",
    "Wörter8",
    "7ß",
    "xΣσ",
    "Äb äB",
    "xxxy xy",
];

#[test]
fn every_way_finds_the_same() {
    let limits = Limits::default();
    let meter = Meter::new(&limits);
    for expression in EXPRESSIONS {
        for any_case in [false, true] {
            let whole = RegexBuilder::new(expression).case_insensitive(any_case).build().unwrap();
            let stepped = Stepped::new(expression, any_case).unwrap();
            for text in TEXTS {
                let wanted = whole.is_match(text.as_bytes());
                let found = stepped.matches(text.as_bytes(), &meter).unwrap();
                assert_eq!(found, wanted, "{expression:?} in {text:?}");
                let found = stepped.matches_anyhow(text.as_bytes(), &meter).unwrap();
                assert_eq!(found, wanted, "{expression:?} in {text:?}, state by state");
            }
        }
    }
}
