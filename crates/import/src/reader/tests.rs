use std::io::{Cursor, Write as _};

use esker_format::{DataType, Value};
use proptest::prelude::*;

use super::*;
use crate::{Format, schema_text};

fn open(text: &[u8], options: ImportOptions) -> Result<ImportReader> {
    let bytes = Cursor::new(text.to_vec());
    ImportReader::from_reader(&Environment::os(), "f.csv", bytes, Some(text.len() as u64), options)
}

fn rows_of(reader: ImportReader) -> Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    reader.read(|batch, _| {
        let row = |i| batch.columns.iter().map(|c| c.value(i).to_owned()).collect::<Vec<_>>();
        rows.extend((0..batch.len()).map(row));
        Ok::<_, Error>(())
    })?;
    Ok(rows)
}

fn read(text: &str, options: ImportOptions) -> Result<(String, Vec<Vec<Value>>)> {
    let reader = open(text.as_bytes(), options)?;
    Ok((schema_text::write(reader.schema()), rows_of(reader)?))
}

fn error(text: &str, options: ImportOptions) -> String {
    read(text, options).unwrap_err().to_string()
}

#[test]
fn infers_and_reads() {
    let (schema, rows) = read(
        "\u{feff}id,name,score\r\n1,Anna,\r\n2,Bo,1.5\r\n",
        ImportOptions::default().key(["id"]).strict(true),
    )
    .unwrap();
    assert_eq!(schema, "id i64 not null, name text not null, score f64, primary key (id)");
    assert_eq!(rows[0], [1i64.into(), "Anna".into(), Value::Null]);
    assert_eq!(rows[1], [2i64.into(), "Bo".into(), 1.5.into()]);
}

#[test]
fn headers_alone_and_files_without_headers() {
    let (schema, rows) = read("a,b\n", ImportOptions::default()).unwrap();
    assert_eq!((schema.as_str(), rows.len()), ("a text, b text", 0));
    let semicolons = ImportOptions::default().header(false).delimiter(b';').strict(true);
    let (schema, rows) = read("\n1;x\n2;y", semicolons).unwrap();
    assert_eq!(schema, "column1 i64 not null, column2 text not null");
    assert_eq!(rows.len(), 2);
    let declared = schema_text::parse("x i8, y text").unwrap();
    let (schema, _) =
        read("1,x\n", ImportOptions::default().header(false).schema(declared)).unwrap();
    assert_eq!(schema, "x i8, y text");
}

/// Of the empty lines at the front, those of the first chunk used to be dropped.
#[test]
fn empty_lines_at_the_front_do_not_depend_on_chunks() {
    for (text, header) in [
        ("\nx\ny\n", false),
        ("\n\n\nx\n\ny", false),
        ("\n\nname\nx\n", true),
        ("\n\na,b\n", false),
    ] {
        let read = |bytes| read(text, ImportOptions::default().header(header).chunk_bytes(bytes));
        let whole = read(1 << 20).unwrap();
        for bytes in 1..8 {
            assert_eq!(read(bytes).unwrap(), whole, "{text:?} in chunks of {bytes}");
        }
    }
    let (_, rows) = read("\nx\ny\n", ImportOptions::default().header(false)).unwrap();
    assert_eq!(rows.len(), 3, "an empty line is a row of one empty field");
    let error = error("\n\n\"x", ImportOptions::default().chunk_bytes(1));
    assert!(error.starts_with("f.csv:3: "), "{error}");
}

#[test]
fn a_schema_matches_columns_by_name() {
    let declared = || ImportOptions::default().schema(schema_text::parse("b text, a u8").unwrap());
    let (_, rows) = read("a,b\n1,x\n", declared()).unwrap();
    assert_eq!(rows[0], ["x".into(), Value::Uint(1)]);
    assert_eq!(
        error("a,b,c\n", declared()),
        "f.csv: the file has a column \"c\" that the schema has not (it has b, a)"
    );
    // Whoever loads them gives a field without a column its default.
    assert_eq!(read("a\n", declared()).unwrap().1.len(), 0);
}

#[test]
fn bad_files_are_refused_with_their_place() {
    let default = ImportOptions::default;
    assert_eq!(error("", default()), "f.csv: the file is empty; expected a header line");
    let long = format!("a,{}\n", "x".repeat(300));
    assert!(
        error(&long, default()).starts_with("f.csv:1: the header: column 2: a column name has")
    );
    assert_eq!(
        error("a,b\n1,2\n3\n", default()),
        "f.csv:3: expected 2 fields, found 1: nothing for column 2 \"b\""
    );
    assert_eq!(
        error("a,b\n1,2\n\n3,\"x\n\n", default()),
        "f.csv:4: a quoted field starts here and is never closed"
    );
    assert!(
        error("a,b\n1,2\n", default().delimiter(b'"')).starts_with("the delimiter is one ASCII")
    );
    assert_eq!(
        error("a\n1\n\n", default().key(["a"])),
        "f.csv:3: column 1 \"a\": the field is declared not null, found NULL (spelled \"\")"
    );
    assert_eq!(error("a,b\n1,2\n", default().key(["c"])), "f.csv: unknown key field \"c\"");
    let bytes = b"a,b\n1,caf\xe9\n";
    let found = rows_of(open(bytes, default()).unwrap()).unwrap_err();
    assert_eq!(
        found.to_string(),
        "f.csv:2: column 2 \"b\": expected text in UTF-8, found \"caf\u{fffd}\""
    );
    assert_eq!(
        (found.kind(), found.line(), found.column()),
        (ErrorKind::BadData, Some(2), Some((2, "b")))
    );
    let utf16 = open(b"\xff\xfea\0", default()).err().unwrap().to_string();
    assert!(utf16.starts_with("f.csv: the file is UTF-16; expected UTF-8"), "{utf16}");
}

#[test]
fn lines_count_across_chunks_and_records() {
    let mut text = String::from("a,b\n");
    (0..1000).for_each(|i| text.push_str(&format!("{i},\"x\ny\"\n")));
    text.push_str("oops,1\n");
    for chunk_bytes in [1, 100, 5000, 1 << 20] {
        let schema = schema_text::parse("a i64, b text").unwrap();
        let options = ImportOptions::default().schema(schema).chunk_bytes(chunk_bytes);
        let found = error(&text, options);
        assert!(found.starts_with("f.csv:2002: column 1 \"a\": expected i64"), "{found}");
    }
}

#[test]
fn a_sample_may_be_contradicted_later() {
    let mut text = String::from("a,b\n");
    (0..500).for_each(|i| text.push_str(&format!("{i},1\n")));
    let sampled = || ImportOptions::default().chunk_bytes(100).whole_bytes_max(200).sample_rows(50);
    let (schema, rows) = read(&text, sampled().key(["a"])).unwrap();
    assert_eq!((schema.as_str(), rows.len()), ("a i64 not null, b i64, primary key (a)", 500));
    text.push_str("500,1.5\n");
    let found = error(&text, sampled());
    assert!(found.starts_with("f.csv:502: column 2 \"b\": expected i64"), "{found}");
    assert!(found.contains("inferred from the first"), "{found}");
    let whole = ImportOptions::default().chunk_bytes(100).strict(true);
    assert_eq!(read(&text, whole).unwrap().0, "a i64 not null, b f64 not null");
}

#[test]
fn the_consumer_may_stop() {
    #[derive(Debug)]
    enum Stop {
        Here,
        Import(Error),
    }
    impl From<Error> for Stop {
        fn from(error: Error) -> Self {
            Self::Import(error)
        }
    }
    let text: String = (0..10_000).map(|i| format!("{i}\n")).collect();
    let reader =
        open(text.as_bytes(), ImportOptions::default().header(false).chunk_bytes(10)).unwrap();
    let mut batches = 0;
    let stopped = reader.read(|_, _| {
        batches += 1;
        if batches == 3 { Err(Stop::Here) } else { Ok(()) }
    });
    match stopped {
        Err(Stop::Here) => {}
        Err(Stop::Import(error)) => panic!("{error}"),
        Ok(report) => panic!("{report:?}"),
    }
    assert_eq!(batches, 3);
}

#[test]
fn compressed_files() {
    let text: String = (0..100_000).map(|i| format!("{i},row {i}\n")).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let options = || ImportOptions::default().header(false).chunk_bytes(4096);
    let plain = rows_of(open(text.as_bytes(), options()).unwrap()).unwrap();
    assert_eq!(plain.len(), 100_000);
    for packed in [&gzip, &zstd] {
        assert_eq!(rows_of(open(packed, options()).unwrap()).unwrap(), plain);
        let schema = || schema_text::parse("a i64, b text").unwrap();
        let cut = &packed[..packed.len() / 2];
        let error = rows_of(open(cut, options().schema(schema())).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadData, "{error}");
        assert!(error.to_string().contains("f.csv: decompress"), "{error}");
        assert!(open(cut, options()).is_err());
    }
    // Members of a gzip file follow one another.
    let twice = [gzip.clone(), gzip].concat();
    assert_eq!(rows_of(open(&twice, options()).unwrap()).unwrap().len(), 200_000);
}

#[test]
fn progress_and_report_add_up() {
    let text: String = (0..1000).map(|i| format!("{i}\n")).collect();
    let reader =
        open(text.as_bytes(), ImportOptions::default().header(false).chunk_bytes(64)).unwrap();
    let (mut rows, mut last) = (0, None);
    let report = reader.read(|batch, progress| {
        rows += batch.len() as u64;
        assert_eq!(progress.rows, rows);
        last = Some(progress);
        Ok::<_, Error>(())
    });
    let (report, bytes) = (report.unwrap(), text.len() as u64);
    assert_eq!((report.rows, report.lines, report.file_bytes), (1000, 1000, bytes));
    let wanted = Progress { rows: 1000, file_bytes_read: bytes, file_bytes: Some(bytes) };
    assert_eq!(last, Some(wanted));
}

/// What waits between reading and loading was bounded by the number of cores only.
#[test]
fn little_memory_makes_small_chunks_and_refuses_long_records() {
    let line = format!("{},1\n", "x".repeat(1_000));
    let text = format!("name,number\n{}", line.repeat(4_000));
    let ample = open(text.as_bytes(), ImportOptions::default()).unwrap();
    let options = || ImportOptions::default().memory_bytes(2 << 20);
    let small = open(text.as_bytes(), options()).unwrap();
    assert!(small.memory_bytes() < ample.memory_bytes() / 4, "{}", small.memory_bytes());
    let mut batches = 0;
    let report = small.read(|batch, _| {
        batches += 1;
        assert!(batch.len() < 1_000);
        Ok::<_, Error>(())
    });
    assert_eq!(report.unwrap().rows, 4_000);
    assert!(batches > 10);
    let text = format!("name\n\"{}", "x".repeat(3 << 20));
    let error = open(text.as_bytes(), options()).and_then(rows_of).unwrap_err();
    assert!(error.to_string().contains("longer than 1048576 bytes"), "{error}");
}

/// One row took as much as a file of any length: 120 MiB with two cores.
#[test]
fn a_small_file_takes_little_memory() {
    let environment = Environment::os();
    let schema = Schema::builder().field("id", DataType::I64).build().unwrap();
    let one = |format: Format, bytes: Vec<u8>, length: Option<u64>| {
        let options = ImportOptions::default().format(format).schema(schema.clone());
        let body = Cursor::new(bytes);
        ImportReader::from_reader(&environment, "f", body, length, options).unwrap()
    };
    let packed = zstd::encode_all(b"id\n1\n".as_slice(), 1).unwrap();
    let cases = [
        (Format::Csv, b"id\n1\n".to_vec()),
        (Format::Ndjson, b"{\"id\":1}\n".to_vec()),
        (Format::Json, b"[{\"id\":1}]".to_vec()),
        (Format::Csv, packed),
    ];
    for (format, bytes) in cases {
        for length in [None, Some(bytes.len() as u64), Some(0)] {
            let reader = one(format, bytes.clone(), length);
            assert!(reader.memory_bytes() < 70_000, "{format:?} {}", reader.memory_bytes());
            assert_eq!(rows_of(reader).unwrap().len(), 1);
        }
    }
    // Of more, the length counts, as far as it is known and is one.
    let lines: String = (0..100_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let length = lines.len() as u64;
    let unknown = one(Format::Ndjson, lines.clone().into_bytes(), None).memory_bytes();
    assert!(unknown > 60 << 20, "{unknown}");
    assert_eq!(one(Format::Ndjson, lines.clone().into_bytes(), Some(0)).memory_bytes(), unknown);
    let reader = one(Format::Ndjson, lines.into_bytes(), Some(length));
    assert!(reader.memory_bytes() < 6 * length, "{}", reader.memory_bytes());
    assert_eq!(rows_of(reader).unwrap().len(), 100_000);
}

#[test]
fn a_file_that_is_not_there() {
    let path = Path::new("no/such/file.csv");
    let error =
        ImportReader::open(&Environment::os(), path, ImportOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("no/such/file.csv"), "{error}");
}

/// How a table is written as CSV, by choices that must not matter.
#[derive(Clone, Debug)]
struct Style {
    crlf: bool,
    mark: bool,
    last_line_end: bool,
    quote_all: bool,
    blank_lines: bool,
    delimiter: u8,
    chunk_bytes: usize,
}

fn style() -> impl Strategy<Value = Style> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let sizes = prop_oneof![1usize..40, Just(1 << 20)];
    (flags, prop_oneof![Just(b','), Just(b';'), Just(b'\t')], sizes).prop_map(
        |((crlf, mark, last_line_end, quote_all, blank_lines), delimiter, chunk_bytes)| Style {
            crlf,
            mark,
            last_line_end,
            quote_all,
            blank_lines,
            delimiter,
            chunk_bytes,
        },
    )
}

/// Writes a table; `None` is NULL, spelled `NA`.
fn write(table: &[Vec<Option<String>>], style: &Style) -> Vec<u8> {
    let line_end = if style.crlf { "\r\n" } else { "\n" };
    let mut text = String::from(if style.mark { "\u{feff}" } else { "" });
    for (number, row) in table.iter().enumerate() {
        if number > 0 {
            text.push_str(line_end);
        }
        if style.blank_lines && row.len() > 1 {
            text.push_str(line_end);
        }
        for (position, field) in row.iter().enumerate() {
            if position > 0 {
                text.push(char::from(style.delimiter));
            }
            match field {
                None => text.push_str("NA"),
                Some(value) => {
                    let special = ['"', '\n', '\r', char::from(style.delimiter), '\u{feff}'];
                    let needed = style.quote_all
                        || value == "NA"
                        || value.is_empty()
                        || value.contains(special);
                    match needed {
                        true => text.push_str(&format!("\"{}\"", value.replace('"', "\"\""))),
                        false => text.push_str(value),
                    }
                }
            }
        }
    }
    if style.last_line_end && !table.is_empty() {
        text.push_str(line_end);
    }
    text.into_bytes()
}

fn table() -> impl Strategy<Value = Vec<Vec<Option<String>>>> {
    let field = prop_oneof![
        Just(None),
        "[a-z0-9,;\t\"\r\n é]{0,12}".prop_map(Some),
        Just(Some("NA".to_owned())),
        "[a-z]{0,30}".prop_map(Some),
    ];
    (1usize..5).prop_flat_map(move |columns| {
        prop::collection::vec(prop::collection::vec(field.clone(), columns), 1..30)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_table_comes_back_however_it_is_written(table in table(), style in style()) {
        let columns = table[0].len();
        let fields: Vec<_> = (0..columns).map(|n| format!("c{n} text")).collect();
        let options = ImportOptions::default()
            .header(false)
            .delimiter(style.delimiter)
            .nulls(["NA"])
            .schema(schema_text::parse(&fields.join(", ")).unwrap())
            .chunk_bytes(style.chunk_bytes);
        let found = rows_of(open(&write(&table, &style), options).unwrap()).unwrap();
        let wanted: Vec<Vec<Value>> = table
            .iter()
            .map(|row| row.iter().map(|f| f.clone().into()).collect())
            .collect();
        prop_assert_eq!(found, wanted);
    }

    /// On any text that both take, the `csv` crate finds the same fields; and however the text is
    /// cut, the answer is the same.
    #[test]
    fn any_text_reads_as_the_csv_crate_reads_it(
        text in "[a,\"\n]{0,40}|[ab1,\"\n\r]{0,60}",
        chunk_bytes in 1usize..20,
    ) {
        let schema = || schema_text::parse("a text, b text").unwrap();
        let options = || ImportOptions::default().header(false).nulls(["-"]).schema(schema());
        let outcome = |options| open(text.as_bytes(), options).and_then(rows_of)
            .map_err(|e| e.to_string());
        let found = outcome(options());
        prop_assert_eq!(&found, &outcome(options().chunk_bytes(chunk_bytes)));
        // The crate ends records at a lone CR too; ours does not.
        let lone_return = text.replace("\r\n", "").contains('\r');
        if let Ok(found) = found && !lone_return {
            let mut oracle = csv::ReaderBuilder::new()
                .has_headers(false).flexible(true).from_reader(text.as_bytes());
            let wanted: Vec<Vec<Value>> = oracle.records()
                .map(|r| r.unwrap().iter().map(Value::from).collect())
                .collect();
            prop_assert_eq!(found, wanted, "{:?}", text);
        }
    }
}
