use super::*;
use crate::dialect::Dialect;
use crate::splitter::Chunk;
use crate::tokenizer::{Fault, FaultKind};

fn rows(text: &str, dialect: Dialect) -> Result<Vec<Vec<String>>, Fault> {
    let names = Names::new(["a", "b", "key"]);
    let chunk = Chunk::of(text.as_bytes());
    let mut tokenizer = Tokenizer::new(&chunk, dialect, &names, 3, Some(2), Beside::Refused);
    let (mut rows, mut spans) = (Vec::new(), Vec::new());
    loop {
        tokenizer.next_block(&mut spans)?;
        if spans.is_empty() {
            return Ok(rows);
        }
        for row in spans.chunks(3) {
            let text = |s: &crate::tokenizer::Span| {
                String::from_utf8(s.of(text.as_bytes()).to_vec()).unwrap()
            };
            rows.push(row.iter().map(text).collect());
        }
    }
}

#[test]
fn rows_are_cut_into_fields() {
    let found =
        rows("{\"a\":1, \"b\" : \"x\\\"y\"}\r\n\n  {\"b\":[1,{\"c\":\"]\"}]}", Dialect::Lines);
    assert_eq!(found.unwrap(), [["1", "\"x\\\"y\"", ""], ["", "[1,{\"c\":\"]\"}]", ""]]);
    let found = rows(" {\"b\":null,\n\"a\":-1.5e3} , {} ]\n", Dialect::Array);
    assert_eq!(found.unwrap(), [["-1.5e3", "null", ""], ["", "", ""]]);
    let found = rows("\"k\": {\"a\":true}, \"\\u006b\": {\"\\u0061\":false}}", Dialect::Keyed);
    assert_eq!(found.unwrap(), [["true", "", "\"k\""], ["false", "", "\"\\u006b\""]]);
    assert!(rows("]", Dialect::Array).unwrap().is_empty());
    assert!(rows("}", Dialect::Keyed).unwrap().is_empty());
    assert!(rows("", Dialect::Lines).unwrap().is_empty());
}

#[test]
fn what_is_not_json_is_found() {
    let fault = |text: &str, dialect, position, what: &str| {
        let Err(Fault { position: found, kind: FaultKind::Expected(expected) }) =
            rows(text, dialect)
        else {
            panic!("{text:?}: {:?}", rows(text, dialect));
        };
        assert_eq!(found, position, "{text:?}: {expected}");
        assert!(expected.contains(what), "{text:?}: {expected}");
    };
    let lines = [
        ("[]", 0, "a row"),
        ("{\"a\" 1}", 5, "`:`"),
        ("{\"a\":01}", 6, "`,` or `}`"),
        ("{\"a\":+1}", 5, "a value"),
        ("{\"a\":1.}", 7, "a digit"),
        ("{\"a\":1e}", 7, "a digit"),
        ("{\"a\":.5}", 5, "a value"),
        ("{\"a\":-}", 6, "a digit"),
        ("{\"a\":tru}", 5, "a value"),
        ("{\"a\":\"x}", 8, "closing quote"),
        ("{\"a\":\"\t\"}", 6, "escaped"),
        ("{\"a\":\"\\x\"}", 6, "an escape"),
        ("{\"a\":\"\\u12g4\"}", 6, "an escape"),
        ("{\"a\":1,}", 7, "a name"),
        ("{,}", 1, "a name"),
        ("{\"a\":1 \"b\":2}", 7, "`,` or `}`"),
        ("{\"a\":1", 6, "`,` or `}`"),
        ("{\"a\":[1}}", 7, "the bracket"),
        ("{\"a\":1} {\"a\":2}", 8, "the end of the line"),
        ("{\"a\":1}\n{\"a\":\n1}", 13, "a value"),
        ("{a:1}", 1, "a name"),
    ];
    for (text, position, what) in lines {
        fault(text, Dialect::Lines, position, what);
    }
    fault("{\"a\":1}", Dialect::Array, 7, "`,` or `]`");
    fault("{\"a\":1},]", Dialect::Array, 8, "a row");
    fault("{\"a\":1}] x", Dialect::Array, 9, "nothing");
    fault("", Dialect::Array, 0, "a row");
    fault("1]", Dialect::Array, 0, "a row");
    fault("\"k\" {}}", Dialect::Keyed, 4, "`:`");
    fault("\"k\": 1}", Dialect::Keyed, 5, "a row");
    fault("\"k\": {}]", Dialect::Keyed, 7, "`,` or `}`");
    let deep = format!("{{\"a\":{}", "[".repeat(129));
    fault(&deep, Dialect::Lines, 133, "128");
}

#[test]
fn fields_stand_once_and_are_known() {
    let kind = |text| rows(text, Dialect::Lines).unwrap_err();
    let fault = kind("{\"a\":1,\"c\":2,\"a\":3}");
    assert_eq!(fault, Fault { position: 7, kind: FaultKind::UnknownField(3) });
    let fault = kind("{\"a\":1,\"a\":1}");
    assert_eq!(fault, Fault { position: 7, kind: FaultKind::Twice(0) });
    // The key may stand in the row, too, if it is the same.
    let same = rows("\"1\":{\"key\":1},\"x\":{\"key\":\"x\"}}", Dialect::Keyed).unwrap();
    assert_eq!(same, [["", "", "\"1\""], ["", "", "\"x\""]]);
    let fault = rows("\"1\":{\"key\":2}}", Dialect::Keyed).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Twice(2));
}

#[test]
fn escapes_say_what_they_mean() {
    let plain =
        |text: &str| unescaped(text.as_bytes()).map(|t| String::from_utf8_lossy(&t).into_owned());
    assert_eq!(plain("plain").unwrap(), "plain");
    assert_eq!(plain(r#"\"\\\/\b\f\n\r\t"#).unwrap(), "\"\\/\u{8}\u{c}\n\r\t");
    assert_eq!(plain(r"caf\u00e9 \ud83d\ude00!").unwrap(), "caf\u{e9} \u{1f600}!");
    assert_eq!(plain(r"\ud83d"), None);
    assert_eq!(plain(r"\ud83d\n"), None);
    assert_eq!(plain(r"\ude00"), None);
    assert_eq!(plain(r"\ud83dA"), None);
}

#[test]
fn chunks_end_between_rows() {
    assert_eq!(last_element_end(b"{\"a\":[1,2]},{\"b\":\"},\\\",\"},{"), Some(26));
    assert_eq!(last_element_end(b"{\"a\":1},{\"b\":\",,"), Some(8));
    assert_eq!(last_element_end(b"{\"a\":1}],,"), None);
    assert_eq!(last_element_end(b"\"k\":{\"a\":1,"), None);
}
