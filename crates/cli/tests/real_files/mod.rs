//! Files as R, pandas, spreadsheets, databases and web services write them, and what a load makes
//! of each: its rows and fields, or why it is refused.

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So many rows, of these fields.
    Loads(u64, &'static str),
    /// A message that says this.
    Refused(&'static str),
}

use Outcome::{Loads, Refused};

/// A file of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// What a load of it is given.
    pub arguments: &'static [&'static str],
    /// What becomes of it.
    pub outcome: Outcome,
}

type Text = (&'static str, &'static str, &'static [&'static str], Outcome);

/// Files of text, as they are written.
const TEXTS: &[Text] = &[
    ("plain.csv", "a,b\n1,x\n2,y\n", &[], Loads(2, "a i64, b text")),
    (
        "pandas_index.csv",
        ",name,score\n0,Ann,1.5\n1,Bob,2.0\n",
        &[],
        Loads(2, "column1 i64, name text, score f64"),
    ),
    (
        "r_write_csv.csv",
        "\"\",\"mpg\",\"cyl\"\n\"Mazda RX4\",21,6\n\"Datsun 710\",22.8,4\n",
        &[],
        Loads(2, "column1 text, mpg f64, cyl i64"),
    ),
    (
        "r_write_table.tsv",
        "\"mpg\"\t\"cyl\"\n\"Mazda RX4\"\t21\t6\n\"Datsun 710\"\t22.8\t4\n",
        &[],
        Loads(2, "column1 text, mpg f64, cyl i64"),
    ),
    (
        "r_write_csv2.csv",
        "\"x\";\"y\"\n1,5;2\n2,5;3\n",
        &["--decimal", ","],
        Loads(2, "x f64, y i64"),
    ),
    ("r_missing.csv", "a,b\n1,NA\nNA,x\n", &["--null", "NA"], Loads(2, "a i64, b text")),
    ("r_missing_as_text.csv", "a,b\n1,NA\nNA,x\n", &[], Loads(2, "a text, b text")),
    (
        "pandas_numbered.csv",
        "0,1,2\n0.5,1.5,2.5\n1.5,2.5,3.5\n",
        &[],
        Loads(2, "\"0\" f64, \"1\" f64, \"2\" f64"),
    ),
    (
        "pandas_times.csv",
        "t,v\n2021-02-28 12:30:00+00:00,1\n2021-02-28 12:30:00.123456+02:00,2\n",
        &[],
        Loads(2, "t timestamp, v i64"),
    ),
    ("pandas_nanoseconds.csv", "t\n2021-02-28 12:30:00.000000000\n", &[], Loads(1, "t timestamp")),
    ("pandas_bools.csv", "a,b\nTrue,1\nFalse,2\n", &[], Loads(2, "a bool, b i64")),
    (
        "pandas_lines.jsonl",
        "{\"a\":1,\"b\":\"x\"}\n{\"a\":null,\"b\":\"y\"}\n",
        &[],
        Loads(2, "a i64, b text"),
    ),
    (
        "pandas_records.json",
        "[{\"a\":1,\"b\":1.5},{\"a\":2,\"b\":null}]",
        &[],
        Loads(2, "a i64, b f64"),
    ),
    (
        "pandas_columns.json",
        "{\"a\":{\"0\":1,\"1\":2},\"b\":{\"0\":\"x\",\"1\":\"y\"}}",
        &[],
        Loads(2, "key text not null, \"0\" text, \"1\" text, primary key (key)"),
    ),
    ("repeated_names.csv", "a,a,c\n1,x,3\n", &[], Loads(1, "a i64, a_2 text, c i64")),
    (
        "named_by_schema.csv",
        "a,a,c\n1,x,3\n",
        &["--schema", "a i64, b text, c f64"],
        Loads(1, "a i64, b text, c f64"),
    ),
    ("trailing_delimiter.csv", "a,b,\n1,x,\n", &[], Loads(1, "a i64, b text")),
    ("trailing_in_rows.csv", "a,b\n1,x,\n2,y,\n", &[], Loads(2, "a i64, b text")),
    (
        "line_break_in_name.csv",
        "\"a\nx\",b,c\n1,x,3\n",
        &[],
        Loads(1, "\"a x\" i64, b text, c i64"),
    ),
    ("semicolons.csv", "id;name\n1;Ada\n2;Bo\n", &[], Loads(2, "id i64, name text")),
    ("pipes.txt", "id|name\n1|Ada\n2|Bo\n", &[], Loads(2, "id i64, name text")),
    ("tabs.tab", "id\tname\n1\tAda, B.\n2\tBo\n", &[], Loads(2, "id i64, name text")),
    ("tabs.txt", "id\tname\n1\tAda\n2\tBo\n", &[], Loads(2, "id i64, name text")),
    ("spaces.txt", "id name\n1 Ada\n2 Bo\n", &["--delimiter", " "], Loads(2, "id i64, name text")),
    ("single_quotes.csv", "id,name\n1,'Ada, B.'\n2,'Bo'\n", &[], Loads(2, "id i64, name text")),
    ("stray_quote.tsv", "id\tname\n1\t\"Ada\n2\tBo\n3\tCy\n", &[], Loads(3, "id i64, name text")),
    (
        "escaped_quotes.csv",
        "id,name\n1,\"Ada \\\"B\\\", C\"\n2,\"Bo\"\n",
        &[],
        Loads(2, "id i64, name text"),
    ),
    (
        "all_quoted.csv",
        "\"id\",\"name\"\n\"1\",\"Ada\"\n\"2\",\"Bo\"\n",
        &[],
        Loads(2, "id i64, name text"),
    ),
    ("no_header.csv", "1,2013-01-31\n2,2013-02-01\n", &[], Loads(2, "column1 i64, column2 date")),
    ("comments.csv", "# by x\n# on y\na,b\n1,2\n# end\n", &[], Loads(1, "a i64, b i64")),
    (
        "variants.vcf.tsv",
        "##fileformat=VCFv4.2\n##source=x\n#CHROM\tPOS\tID\n1\t5\trs1\n2\t6\trs2\n",
        &[],
        Loads(2, "\"#CHROM\" i64, POS i64, ID text"),
    ),
    (
        "title.csv",
        "Report of 2013\n\nname,n,m\nx,1,2\ny,2,3\n",
        &[],
        Loads(2, "name text, n i64, m i64"),
    ),
    ("skipped.csv", "1,2\n3,4,5\na,b\n1,x\n", &["--skip", "2"], Loads(1, "a i64, b text")),
    (
        "years.csv",
        "country,1990,1991\nAruba,1,2\n",
        &[],
        Loads(1, "country text, \"1990\" i64, \"1991\" i64"),
    ),
    ("windows.csv", "\u{feff}a,b\r\n1,x\r\n2,y\r\n", &[], Loads(2, "a i64, b text")),
    ("no_last_line_end.csv", "a,b\n1,x\n2,y", &[], Loads(2, "a i64, b text")),
    ("line_breaks_in_fields.csv", "a,b\n1,\"x\ny\"\n2,\"z\"\n", &[], Loads(2, "a i64, b text")),
    ("slashes.csv", "d\n2015/01/01\n2015/12/31\n", &[], Loads(2, "d date")),
    (
        "day_first.csv",
        "d,v\n31/12/2013,1\n01/02/2014,2\n",
        &["--date-format", "%d/%m/%Y"],
        Loads(2, "d date, v i64"),
    ),
    ("day_first_as_text.csv", "d,v\n31/12/2013,1\n01/02/2014,2\n", &[], Loads(2, "d text, v i64")),
    (
        "american.csv",
        "t\n12/31/2013 1:05 PM\n",
        &["--date-format", "%m/%d/%Y %I:%M %p"],
        Loads(1, "t timestamp"),
    ),
    ("uuids.csv", "id\n67e55044-10b1-426f-9247-bb680e5fe0c8\n", &[], Loads(1, "id uuid")),
    ("postal_codes.csv", "zip,n\n01234,1\n90210,2\n", &[], Loads(2, "zip text, n i64")),
    (
        "long_integers.csv",
        "id\n123456789012345678901234567890\n1\n",
        &[],
        Loads(2, "id decimal(30,0)"),
    ),
    (
        "reserved_names.csv",
        "user,interval,exists\n1,2,3\n",
        &[],
        Loads(1, "user i64, interval i64, exists i64"),
    ),
    ("header_alone.csv", "a,b\n", &[], Loads(0, "a text, b text")),
    ("renamed.csv", "a,b\n1,x\n", &["--columns", "id,name"], Loads(1, "id i64, name text")),
    (
        "mixed.ndjson",
        "{\"id\":1,\"v\":\"007\"}\n{\"id\":\"A2\",\"v\":8}\n",
        &[],
        Loads(2, "id text, v text"),
    ),
    (
        "big_number.ndjson",
        "{\"id\":123456789012345678901234567890}\n{\"id\":1}\n",
        &[],
        Loads(2, "id decimal(30,0)"),
    ),
    ("beyond_floats.ndjson", "{\"v\":1e400}\n{\"v\":1}\n", &[], Loads(2, "v text")),
    (
        "nested.ndjson",
        "{\"id\":1,\"tags\":[\"a\"],\"at\":{\"x\":1}}\n{\"id\":2,\"tags\":[],\"at\":null}\n",
        &[],
        Loads(2, "id i64, tags json, at json"),
    ),
    ("late_fields.ndjson", "{\"a\":1}\n{\"b\":\"x\",\"a\":2}\n", &[], Loads(2, "a i64, b text")),
    (
        "times.ndjson",
        "{\"t\":\"2021-02-28T12:30:00.123456+00:00\"}\n",
        &[],
        Loads(1, "t timestamp"),
    ),
    ("lines.json", "{\"a\":1}\n{\"a\":2}\n", &[], Loads(2, "a i64")),
    (
        "pretty.json",
        "[\n  {\n    \"a\": 1\n  },\n  {\n    \"a\": 2\n  }\n]\n",
        &[],
        Loads(2, "a i64"),
    ),
    ("one_object.json", "{\n \"a\": 1,\n \"b\": [1]\n}\n", &[], Loads(1, "a i64, b json")),
    (
        "by_key.json",
        "{\"x\":{\"n\":1},\"y\":{\"n\":2}}",
        &[],
        Loads(2, "key text not null, n i64, primary key (key)"),
    ),
    (
        "places.geojson",
        "{\"type\":\"FeatureCollection\",\"features\":\
         [{\"type\":\"Feature\",\"properties\":{\"a\":1},\"geometry\":null}]}",
        &["--path", "$.features"],
        Loads(1, "type text, properties json, geometry text"),
    ),
    (
        "places_without_path.geojson",
        "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\"}]}",
        &[],
        Refused("$.features (--path"),
    ),
    (
        "some_fields.ndjson",
        "{\"id\":1,\"x\":2}\n{\"id\":2,\"y\":[3]}\n",
        &["--schema", "id i64", "--unknown", "more"],
        Loads(2, "id i64, more json"),
    ),
    (
        "ignored_fields.ndjson",
        "{\"id\":1,\"x\":2}\n{\"id\":2,\"y\":[3]}\n",
        &["--schema", "id i64", "--unknown", "ignore"],
        Loads(2, "id i64"),
    ),
    ("short_rows.csv", "a,b\n1,x\n2\n3,y\n", &["--on-error", "skip"], Loads(2, "a i64, b text")),
    (
        "broken_lines.ndjson",
        "{\"a\":1}\n{\"a\":\n{\"a\":3}\n",
        &["--on-error", "skip"],
        Loads(2, "a i64"),
    ),
    (
        "page.csv",
        "<!DOCTYPE html>\n<html><body>404</body></html>\n",
        &[],
        Refused("a page of HTML"),
    ),
    ("short_row.csv", "a,b\n1,x\n2\n", &[], Refused("expected 2 fields, found 1")),
    ("empty.csv", "", &[], Refused("the file is empty")),
];

/// Every kind.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    let texts = TEXTS.iter().map(|(name, text, arguments, outcome)| {
        let (bytes, outcome) = (text.as_bytes().to_vec(), *outcome);
        Kind { name, bytes, arguments, outcome }
    });
    let two = Loads(2, "a i64, b text");
    let (first, second) = (b"a,b\n1,x\n", b"2,y\n");
    let zeros = vec![0; 512];
    let of = |name, parts: &[&[u8]], outcome| {
        let bytes = parts.concat();
        Kind { name, bytes, arguments: &[], outcome }
    };
    let skipped = b"\x50\x2a\x4d\x18\x03\0\0\0xyz";
    let binaries = [
        of("members.csv.gz", &[&gzip(first), &gzip(second)], two),
        of("padded.csv.gz", &[&gzip(first), &gzip(second), &zeros], two),
        of("named_otherwise.csv", &[&gzip(first), &gzip(second)], two),
        of("frames.csv.zst", &[&zstd(first), &zstd(second)], two),
        of("skippable.csv.zst", &[skipped, &zstd(first), skipped, &zstd(second), skipped], two),
        of("table.parquet", &[b"PAR1\x15\x04\x15\x10\x15\x10\0PAR1"], Refused("a Parquet file")),
        of("table.csv.zip", &[b"PK\x03\x04\x14\0\0\0\x08\0table.csv"], Refused("a zip archive")),
        of("table.xlsx", &[b"PK\x03\x04\x14\0\x06\0[Content_Types].xml"], Refused("an Excel file")),
        of("table.sqlite", &[b"SQLite format 3\0\x10\0\x01\x01"], Refused("an SQLite database")),
        of("table.csv.xz", &[b"\xfd7zXZ\0\0\x04"], Refused("compressed by xz")),
        of("utf16.csv", &[b"\xff\xfea\0,\0b\0\n\0"], Refused("UTF-16")),
        of("latin1.csv", &[b"a,b\n1,caf\xe9\n"], Refused("iconv -f LATIN1")),
    ];
    texts.chain(binaries).collect()
}

/// A member of gzip, not compressed.
fn gzip(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap_or_default(); // default: they are short.
    let mut checksum = !0u32;
    for byte in text {
        checksum ^= u32::from(*byte);
        for _ in 0..8 {
            checksum = (checksum >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(checksum & 1));
        }
    }
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    let (size, inverse) = (length.to_le_bytes(), (!length).to_le_bytes());
    let whole = u32::from(length).to_le_bytes();
    [&head[..], &size, &inverse, text, &(!checksum).to_le_bytes(), &whole].concat()
}

/// A frame of zstd, not compressed.
fn zstd(text: &[u8]) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or_default(); // default: as above.
    // One segment with its size in a byte; one block, the last and raw.
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, length][..], &block[..3], text].concat()
}
