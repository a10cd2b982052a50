//! What statements say of files, and the text format.

use std::io::{Cursor, Read};

use esker::{FileFormat, FileRequest, FileTable};

use super::statement_options::{Reading, Writing};
use super::text_reader::{TextForm, TextReader};
use crate::source::Source;

/// The text format as CSV.
fn as_csv(text: impl Into<Vec<u8>>, null: &str) -> String {
    let form = TextForm { delimiter: b'\t', null: null.to_owned(), header: false };
    let source = Source::new(Box::new(Cursor::new(text.into())), None).unwrap();
    let mut csv = String::new();
    TextReader::new(source, form, 1 << 20).read_to_string(&mut csv).unwrap();
    csv
}

#[test]
fn the_text_format_is_read_as_csv() {
    for (text, csv) in [
        ("", ""),
        ("a\tb\n", "\"a\",\"b\"\n"),
        ("a\tb", "\"a\",\"b\"\n"),
        ("\n", "\"\"\n"),
        ("\\N\t\\\\N\t\n", ",\"\\N\",\"\"\n"),
        ("a\\tb\\nc\\\td\n", "\"a\tb\nc\td\"\n"),
        ("a\\\nb\r\nc\\\r\n", "\"a\nb\"\n\"c\r\"\n"),
        ("\\b\\f\\r\\v\\q\\x41\\x4\\xg\\101\\1\n", "\"\u{8}\u{c}\r\u{b}qA\u{4}xgA\u{1}\"\n"),
        ("say \"no\"\n", "\"say \"\"no\"\"\"\n"),
        ("a\n\\.\nb\n", "\"a\"\n"),
        ("\u{feff}a\n", "\"a\"\n"),
        ("a\\", "\"a\\\"\n"),
    ] {
        assert_eq!(as_csv(text, "\\N"), csv, "{text:?}");
    }
    assert_eq!(as_csv("NA\t\\x4eA\t\n", "NA"), ",\"NA\",\"\"\n");
    let long = "x".repeat(300_000);
    let form = TextForm { delimiter: b'\t', null: String::new(), header: false };
    let source = Source::new(Box::new(Cursor::new(long.into_bytes())), None).unwrap();
    let read = TextReader::new(source, form, 1 << 20).read_to_end(&mut Vec::new());
    assert!(read.unwrap_err().to_string().contains("more than 262144 bytes"));
}

#[test]
fn options_are_known_by_name_and_by_format() {
    let refused = |file: FileTable, writes: bool| match writes {
        true => Writing::of(&file).err().map(|e| e.to_string()),
        false => Reading::of(&file, &FileRequest::shown()).err().map(|e| e.to_string()),
    };
    let csv = || FileTable::new("x").format(FileFormat::Csv);
    let ndjson = || FileTable::new("x").format(FileFormat::Ndjson);
    for (file, writes, expected) in [
        (csv().option("sep", ";").option("nullstr", "NA").option("null", "-"), false, None),
        (csv().option("delim", ";").option("sep", ";"), false, Some("sep is said twice")),
        (csv().option("delim", ";;"), false, Some("delim: expected one ASCII character")),
        (csv().option("skip", "-1"), false, Some("skip: expected a number of lines")),
        (csv().option("decimal", ":"), false, Some("decimal: expected . or `,`")),
        (csv().option("schema", "a"), false, Some("a")),
        (csv().option("skip", "1"), true, Some("CSV: unknown option skip")),
        (csv().option("delim", "\""), true, Some("delimiter, quote and escape are")),
        (csv().option("null", "a,b"), true, Some("what stands for NULL has no quote")),
        (ndjson().option("header", "true"), false, Some("read_ndjson: unknown option header")),
        (ndjson().option("null", "x"), true, Some("NDJSON: unknown option null")),
        (FileTable::new("x.csv.gz"), false, None),
        (FileTable::new("x.csv.gz"), true, Some("files are written plain")),
        (FileTable::new("x"), false, Some("the name does not tell")),
        (
            FileTable::new("x").format(FileFormat::Text).option("delim", "n"),
            true,
            Some("no letter"),
        ),
    ] {
        let found = refused(file.clone(), writes);
        match expected {
            None => assert_eq!(found, None, "{file}"),
            Some(part) => {
                assert!(found.as_ref().is_some_and(|e| e.contains(part)), "{file}: {found:?}")
            }
        }
    }
}
