//! Files that are no text, named as what they are, with what can be done.

use crate::{Error, Result};

/// How much of the start of a file is looked at.
pub(crate) const HEAD_BYTES: usize = 4096;

/// The first bytes, what a file that begins so is, and what can be done with it.
const KINDS: &[(&[u8], &str, &str)] = &[
    (b"PAR1", "a Parquet file", "write it as CSV first, by DuckDB: COPY 'FILE' TO 'FILE.csv'"),
    (b"ARROW1\0\0", "an Arrow file", "write it as CSV first, by the program that wrote it"),
    (b"ORC", "an ORC file", "write it as CSV first, by the program that wrote it"),
    (b"Obj\x01", "an Avro file", "write it as JSON lines first, by `avro cat`"),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "write a table as CSV first: `sqlite3 -csv -header FILE 'SELECT * FROM t'`",
    ),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Excel file (.xls)",
        "save it as CSV UTF-8 in the spreadsheet",
    ),
    (b"BZh", "compressed by bzip2", "unpack it first: `bunzip2 -c FILE | esker load DB TABLE -`"),
    (b"\xfd7zXZ\0", "compressed by xz", "unpack it first: `xz -dc FILE | esker load DB TABLE -`"),
    (
        b"\x04\x22\x4d\x18",
        "compressed by lz4",
        "unpack it first: `lz4 -dc FILE | esker load DB TABLE -`",
    ),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it first"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it first"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "write it as CSV first, by the program that wrote it"),
    (
        b"RDX",
        "an R data file",
        "write it as CSV first: `write.csv(x, \"x.csv\", row.names = FALSE)`",
    ),
    (
        b"X\n\0\0",
        "an R data file",
        "write it as CSV first: `write.csv(x, \"x.csv\", row.names = FALSE)`",
    ),
    (
        b"\x80\x04\x95",
        "a pickle of Python",
        "write it as CSV first: `frame.to_csv(\"x.csv\", index=False)`",
    ),
    (b"\x93NUMPY", "an array of NumPy", "write it as CSV first: `numpy.savetxt`"),
    (b"%PDF-", "a PDF", "a table in it has to be written as CSV first"),
    (b"\x89PNG\r\n", "a picture", "it has no rows"),
    (b"\xff\xd8\xff", "a picture", "it has no rows"),
    (b"\x7fELF", "a program", "it has no rows"),
];

/// Texts that are no rows, by how they begin, without white space and in lower case.
const MARKUP: &[(&[u8], &str, &str)] = &[
    (b"<!doctype html", "a page of HTML", "was it an error page that was saved?"),
    (b"<html", "a page of HTML", "was it an error page that was saved?"),
    (b"<?xml", "XML", "write it as CSV or JSON first"),
];

/// Refuses what is no text of rows, going by its start; `is_whole` says that this is all of it.
pub(crate) fn check(head: &[u8], is_whole: bool) -> Result<()> {
    let named = KINDS.iter().chain(MARKUP).find(|(start, ..)| begins(head, start));
    let found = match named {
        Some((_, what, advice)) => Some((*what, *advice)),
        None => archive(head).or_else(|| unnamed(head, is_whole)),
    };
    match found {
        Some((what, advice)) => {
            Err(Error::data(format!("the file is {what}, no CSV or JSON; {advice}")))
        }
        None => Ok(()),
    }
}

fn begins(head: &[u8], start: &[u8]) -> bool {
    if start.starts_with(b"<") {
        let space = head.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let text = head.get(space..space + start.len());
        return text.is_some_and(|text| text.eq_ignore_ascii_case(start));
    }
    // A header may begin with the same letters; behind it stands text.
    let is_plain = start.iter().all(|byte| byte.is_ascii_graphic());
    head.starts_with(start)
        && (!is_plain || start == b"%PDF-" || !is_utf8(head, false) || head.contains(&0))
}

fn archive(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let zip = [&b"PK\x03\x04"[..], b"PK\x05\x06"].iter().any(|start| head.starts_with(start));
    let holds = |part: &[u8]| memchr::memmem::find(head, part).is_some();
    if zip && (holds(b"[Content_Types].xml") || holds(b"xl/") || holds(b"_rels/.rels")) {
        return Some(("an Excel file (.xlsx)", "save it as CSV UTF-8 in the spreadsheet"));
    }
    if zip {
        return Some(("a zip archive", "unpack it first: `unzip -p FILE | esker load DB TABLE -`"));
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(("a tar archive", "unpack it first: `tar -xf FILE`"));
    }
    None
}

fn unnamed(head: &[u8], is_whole: bool) -> Option<(&'static str, &'static str)> {
    if is_utf16(head) {
        let advice = "convert it first: `iconv -f UTF-16 -t UTF-8 FILE > FILE.csv`";
        return Some(("UTF-16", advice));
    }
    let advice = "write it as CSV or JSON first, by the program that wrote it";
    let is_binary = head.contains(&0) && !is_utf8(head, is_whole);
    is_binary.then_some(("binary data", advice))
}

/// Whether it is UTF-16 without a mark: every other byte is mostly zero, beside line ends too.
fn is_utf16(head: &[u8]) -> bool {
    let has_zeros = |remainder: usize| {
        let (mine, others) = (head.iter().skip(remainder), head.iter().skip(1 - remainder));
        let zeros = mine.step_by(2).filter(|byte| **byte == 0).count();
        zeros * 3 > head.len() && others.step_by(2).all(|byte| *byte != 0)
    };
    let mut ends = memchr::memchr_iter(b'\n', head);
    let is_wide = |at: usize| {
        let beside = [at.checked_sub(1), Some(at + 1)];
        beside.into_iter().flatten().any(|at| head.get(at).is_none_or(|byte| *byte == 0))
    };
    (has_zeros(0) || has_zeros(1)) && ends.all(is_wide)
}

/// Whether bytes are UTF-8, but for a character that is cut at the end.
fn is_utf8(head: &[u8], is_whole: bool) -> bool {
    match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(e) => e.error_len().is_none() && !is_whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(head: &[u8]) -> String {
        check(head, false).err().map_or_else(String::new, |e| e.to_string())
    }

    /// They were read as text, and shown in the message.
    #[test]
    fn what_is_no_text_is_named() {
        assert!(found(b"PAR1\x15\x04\x15\0\xff").contains("Parquet"));
        assert!(found(b"PK\x03\x04\x14\0\0\0a.csv").contains("zip archive"));
        assert!(found(b"PK\x03\x04\x14\0\0\0[Content_Types].xml").contains("Excel"));
        assert!(found(b"SQLite format 3\0\x10\0").contains("SQLite"));
        assert!(found(b"BZh91AY&SY\xf3\x01").contains("bunzip2"));
        assert!(found(b"a\0,\0b\0\n\0").contains("UTF-16"));
        assert!(found(b"\n <!DOCTYPE HTML>").contains("HTML"));
        assert!(found(b"a,\0\xff\xfe\0\x01b,c,d,e\xff,f,g").contains("binary data"));
        for text in ["PAR1,x\n1,2\n", "BZh,a\n", "ORC\n1\n", "", "a,\u{e9}", "a\0,b", "<a>\n"] {
            assert_eq!(found(text.as_bytes()), "", "{text:?}");
        }
        assert_eq!(found(&"é".as_bytes()[..1]), "");
    }
}
