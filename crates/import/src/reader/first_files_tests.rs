//! Files as R, pandas, spreadsheets and web services write them, through the whole reader.

use std::io::{Cursor, Write as _};

use esker_format::Value;

use super::*;
use crate::{DateFormat, Format, Unknown, schema_text};

fn sniffing() -> ImportOptions {
    let options = ImportOptions::default().sniff_delimiter().sniff_quote();
    options.sniff_comment().sniff_header().find_rows().spellings()
}

fn open(text: &[u8], options: ImportOptions) -> Result<ImportReader> {
    let length = Some(text.len() as u64);
    let bytes = Cursor::new(text.to_vec());
    ImportReader::from_reader(&Environment::os(), "f", bytes, length, options)
}

/// The schema, the rows, and what is noted.
fn read_bytes(text: &[u8], options: ImportOptions) -> Result<(String, Vec<String>, String)> {
    let reader = open(text, options)?;
    let schema = schema_text::write(reader.schema());
    let notes = reader.notes().join("; ");
    let mut rows = Vec::new();
    reader.read(|batch, _| {
        let row = |i| batch.columns.iter().map(|c| c.value(i).to_string()).collect::<Vec<_>>();
        rows.extend((0..batch.len()).map(|i| row(i).join("|")));
        Ok::<_, Error>(())
    })?;
    Ok((schema, rows, notes))
}

/// Reads in one chunk and in many; both agree.
fn read(text: &str, options: ImportOptions) -> (String, Vec<String>, String) {
    let outcome = |bytes| {
        read_bytes(text.as_bytes(), options.clone().chunk_bytes(bytes)).map_err(|e| e.to_string())
    };
    let whole = outcome(1 << 20);
    for bytes in [1, 7, 20] {
        assert_eq!(outcome(bytes), whole, "chunks of {bytes}");
    }
    whole.unwrap()
}

fn error(text: &str, options: ImportOptions) -> String {
    read_bytes(text.as_bytes(), options).unwrap_err().to_string()
}

fn of(format: Format, schema: &str) -> ImportOptions {
    sniffing().format(format).schema(schema_text::parse(schema).unwrap())
}

/// All of these were refused, with the advice to take the header for a row.
#[test]
fn headers_of_r_and_pandas_are_made_good() {
    let (schema, rows, notes) = read(",name,score\n0,Ann,1.5\n1,Bob,2.0\n", sniffing());
    assert_eq!(schema, "column1 i64, name text, score f64");
    assert_eq!(rows, ["0|Ann|1.5", "1|Bob|2.0"]);
    assert_eq!(notes, "column 1 has no name: column1");
    let (schema, _, notes) = read("a,a,c\n1,x,3\n", sniffing());
    assert_eq!(
        (schema.as_str(), notes.as_str()),
        ("a i64, a_2 text, c i64", "column 2 repeats \"a\": a_2")
    );
    let (schema, rows, _) = read("\"a\nx\",b,c\n1,x,3\n", sniffing());
    assert_eq!((schema.as_str(), rows.len()), ("\"a x\" i64, b text, c i64", 1));
    // The names of rows, as R writes them.
    let (schema, rows, notes) = read("x\ty\na\t1\t2\nb\t3\t4\n", sniffing());
    assert_eq!((schema.as_str(), rows.len()), ("column1 text, x i64, y i64", 2));
    assert_eq!(notes, "column 1 has no name: column1");
}

#[test]
fn a_delimiter_at_the_end_of_lines_makes_no_column() {
    for text in ["a,b,\n1,x,\n2,y,\n", "a,b\n1,x,\n2,y,\n", "a,b,\n1,x\n2,y\n"] {
        let (schema, rows, notes) = read(text, sniffing());
        assert_eq!(
            (schema.as_str(), rows.join(";").as_str()),
            ("a i64, b text", "1|x;2|y"),
            "{text}"
        );
        assert!(!notes.is_empty() && !notes.contains("column3"), "{notes}");
    }
    let (schema, rows, _) = read("a,b,\n1,x,\n2,y,z\n", sniffing());
    assert_eq!((schema.as_str(), rows[1].as_str()), ("a i64, b text, column3 text", "2|y|z"));
    let declared = of(Format::Csv, "b text, a i64");
    assert_eq!(read("a,b,\n1,x,\n", declared.clone()).1, ["x|1"]);
    let found = error("a,b,\n1,x,\n1,x,z\n", declared);
    assert_eq!(found, "f:3: column 3 has no name; expected nothing in it, found \"z\"");
    // A value that comes late is not lost.
    let mut text = String::from("a,b,\n");
    (0..200).for_each(|i| text.push_str(&format!("{i},x,\n")));
    text.push_str("200,x,z\n");
    let sampled = sniffing().chunk_bytes(100).whole_bytes_max(200).sample_rows(9);
    let reader = open(text.as_bytes(), sampled).unwrap();
    assert_eq!(schema_text::write(reader.schema()), "a i64, b text");
    let again = reader.again().unwrap();
    let stopped = reader.read(|_, _| Ok::<_, Error>(())).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Contradicted);
    assert_eq!(again.open().unwrap().schema().fields().len(), 3);
}

#[test]
fn a_schema_or_names_that_are_given_name_the_columns() {
    let named = |schema| of(Format::Csv, schema).schema_names_columns();
    let (_, rows, notes) = read("a,a,c\n1,x,3\n", named("a i64, b text, c f64"));
    assert_eq!(
        (rows.join(";").as_str(), notes.contains("\"a_2\" is b")),
        ("1|x|3.0", true),
        "{notes}"
    );
    let found = error("b,x,a\n1,x,3\n", named("a i64, b text, c f64"));
    assert!(found.contains("a column \"x\" that the schema has not"), "{found}");
    let found = error("a,x,c,d\n1,x,3,4\n", named("a i64, b text, c f64"));
    assert!(found.contains("columns \"x\", \"d\" that the schema has not"), "{found}");
    let (schema, rows, _) = read("a,b\n1,x\n", sniffing().columns(["id", "name"]));
    assert_eq!((schema.as_str(), rows.len()), ("id i64, name text", 1));
    let (schema, rows, _) = read("1.5,x\n2.5,y\n", sniffing().columns(["n", "name"]));
    assert_eq!((schema.as_str(), rows.len()), ("n f64, name text", 2));
    let found = error("a,b\n1,x\n", sniffing().columns(["id"]));
    assert!(found.contains("a name for each of 2 columns, found 1"), "{found}");
    let left = of(Format::Csv, "a i64").unknown(Unknown::Ignore);
    let (_, rows, notes) = read("x,a,y\n1,2,3\n", left);
    assert_eq!((rows.join(";").as_str(), notes.as_str()), ("2", "left out: x, y"));
    let (_, rows, notes) = read("a\n1\n", of(Format::Csv, "a i64, b text"));
    assert_eq!(
        (rows.join(";").as_str(), notes.as_str()),
        ("1|null", "no column for b: default values")
    );
}

#[test]
fn how_csv_is_written_is_found_out() {
    let text = "# made by x\n# 2013\na;b;c\n1,5;x;31.12.2013\n# between\n2,5;y;1.1.2014\n";
    let date = DateFormat::parse("%d.%m.%Y").unwrap();
    let (schema, rows, _) = read(text, sniffing().decimal_comma(true).date_formats([date]));
    assert_eq!(schema, "a f64, b text, c date");
    assert_eq!(rows, ["1.5|x|2013-12-31", "2.5|y|2014-01-01"]);
    let (_, _, notes) = read(text, sniffing());
    assert!(notes.contains("a has decimal commas: --decimal ,"), "{notes}");
    assert!(notes.contains("c looks like dates: --date-format"), "{notes}");
    // Lines count as in the file, what is no row included.
    let found = error(text, of(Format::Csv, "a f64, b text, c date"));
    assert!(found.starts_with("f:4: column 1 \"a\": expected f64"), "{found}");
    let late = text.replace("1,5", "1").replace("31.12.2013", "2013-12-31");
    let found = error(&late, of(Format::Csv, "a f64, b text, c date"));
    assert!(found.starts_with("f:6: column 1 \"a\": expected f64"), "{found}");
    let form = open(text.as_bytes(), sniffing()).unwrap().form().unwrap().to_owned();
    assert_eq!(form, "delimiter ';', quote \", comments behind #, with a header");
    let skipped = sniffing().skip(2);
    assert_eq!(read("x\ny,z,,\na,b\n1,2\n", skipped).0, "a i64, b i64");
    let (schema, rows, _) = read("1,2013-01-31\n2,2013-02-01\n", sniffing());
    assert_eq!((schema.as_str(), rows.len()), ("column1 i64, column2 date", 2));
    // In a file of one column comments leave no line, and lines counted without them.
    let one = "# by x\nn\n1\n% a\n% b\n2\nx\n%\n3\n";
    let declared = || of(Format::Csv, "n i64").comment(Some(b'%')).skip(1);
    for chunk in [1, 1 << 20] {
        let found = error(one, declared().chunk_bytes(chunk));
        assert!(found.starts_with("f:7: column 1 \"n\": expected i64"), "{found}");
    }
    let reader = open(one.replace('x', "4").as_bytes(), declared().chunk_bytes(1)).unwrap();
    let places = reader.places();
    reader.read(|_, _| Ok::<_, Error>(())).unwrap();
    let lines: Vec<u64> = (0..4).map(|row| places.find(row).unwrap().1).collect();
    assert_eq!(lines, [3, 6, 7, 9]);
    let percent = sniffing().comment(Some(b'%'));
    assert_eq!(read("% x\na,b\n1,2\n%\n", percent).1, ["1|2"]);
}

#[test]
fn spellings_of_null_are_hinted_at() {
    let (schema, _, notes) = read("a,b\n1,x\nNA,y\n", sniffing());
    assert_eq!(schema, "a text, b text");
    assert_eq!(notes, "a would be i64 but for \"NA\": --null NA makes that NULL");
    assert_eq!(read("a,b\n1,x\nNA,y\n", sniffing().nulls(["NA"])).0, "a i64, b text");
}

/// Only `Z` was read, `2015/01/01` was text, and so were UUIDs.
#[test]
fn times_with_offsets_slashes_and_uuids_are_typed() {
    let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    let text = format!("t,d,u\n2021-02-28T14:30:00+02:00,2015/01/01,{uuid}\n");
    let (schema, rows, _) = read(&text, sniffing());
    assert_eq!(schema, "t timestamp, d date, u uuid");
    assert_eq!(rows, [format!("2021-02-28 12:30:00|2015-01-01|{uuid}")]);
    let text = format!("{{\"t\":\"2021-02-28T14:30:00+02:00\",\"u\":\"{uuid}\"}}\n");
    assert_eq!(read(&text, sniffing().format(Format::Ndjson)).0, "t timestamp, u uuid");
    let date = DateFormat::parse("%m/%d/%Y %I:%M %p").unwrap();
    let text = "{\"t\":\"12/31/2013 1:05 PM\"}\n";
    let (schema, rows, _) = read(text, sniffing().format(Format::Ndjson).date_formats([date]));
    assert_eq!((schema.as_str(), rows.join(";").as_str()), ("t timestamp", "2013-12-31 13:05:00"));
}

/// Inference said text and the row was refused for a number; arrays had no type.
#[test]
fn inferred_types_hold_all_of_a_json_file() {
    let ndjson = |text: &str| read(text, sniffing().format(Format::Ndjson));
    let (schema, rows, _) =
        ndjson("{\"id\":1,\"v\":\"007\"}\n{\"id\":\"A2\",\"v\":8}\n{\"v\":1.0}\n");
    assert_eq!(schema, "id text, v text");
    assert_eq!(rows, ["1|007", "A2|8", "null|1.0"]);
    let (schema, rows, _) = ndjson("{\"id\":123456789012345678901234567890}\n{\"id\":1}\n");
    assert_eq!(schema, "id decimal(30,0)");
    assert_eq!(rows, ["123456789012345678901234567890", "1"]);
    let (schema, rows, _) =
        ndjson("{\"a\":[1, 2],\"b\":1e400}\n{\"a\":{\"x\":null},\"b\":true}\n{\"a\":\"s\"}\n");
    assert_eq!(schema, "a json, b text");
    assert_eq!(rows, ["[1,2]|1e400", "{\"x\":null}|true", "\"s\"|null"]);
    // Names of members that would be bad names of fields.
    let (schema, rows, notes) = ndjson("{\"\":1,\"a\\nb\":2}\n");
    assert_eq!((schema.as_str(), rows.join(";").as_str()), ("column1 i64, \"a b\" i64", "1|2"));
    assert!(notes.contains("column 1 has no name"), "{notes}");
}

/// Each of these fits what the sample showed to a reader, and not to inference.
#[test]
fn types_of_a_sample_that_do_not_hold_are_found_and_widened() {
    let contradicts = |format: Format, rows: &[String], late: &str, wanted: &str| {
        let mut text = rows.join("\n");
        text.push_str(&format!("\n{late}\n"));
        let sampled =
            sniffing().format(format).chunk_bytes(100).whole_bytes_max(200).sample_rows(9);
        for skips in [false, true] {
            let reader = open(text.as_bytes(), sampled.clone().pass_over(skips)).unwrap();
            let again = reader.again().unwrap();
            let stopped = if skips {
                reader.read_or_reject(|_, _| Ok(()), |_, _| Ok::<_, Error>(()))
            } else {
                reader.read(|_, _| Ok::<_, Error>(()))
            };
            assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Contradicted, "{late}");
            let reader = again.open().unwrap();
            assert_eq!(schema_text::write(reader.schema()), wanted);
            assert!(reader.again().is_none());
            let report = reader.read(|_, _| Ok::<_, Error>(())).unwrap();
            let lines = text.lines().count() - usize::from(format == Format::Csv);
            assert_eq!(report.rows, lines as u64);
        }
    };
    let csv = |value: &str| {
        let mut rows = vec!["n,v".to_owned()];
        rows.extend((0..300).map(|n| format!("{n},{value}")));
        rows
    };
    for (value, late, data_type) in [
        ("7", "007", "text"),
        ("7", "+7", "text"),
        ("7", "7.5", "f64"),
        ("7", "x", "text"),
        ("7", "99999999999999999999", "decimal(20,0)"),
        ("1.5", "9007199254740993", "decimal(17,1)"),
        ("true", "1", "text"),
        ("2013-01-31", "2013-01-31 05:00", "timestamp"),
    ] {
        contradicts(
            Format::Csv,
            &csv(value),
            &format!("1,{late}"),
            &format!("n i64, v {data_type}"),
        );
    }
    let ndjson: Vec<String> = (0..300).map(|n| format!("{{\"n\":{n}}}")).collect();
    contradicts(Format::Ndjson, &ndjson, "{\"n\":\"1\"}", "n text");
    contradicts(Format::Ndjson, &ndjson, "{\"n\":[1]}", "n json");
    contradicts(Format::Ndjson, &ndjson, "{\"n\":1,\"late\":2}", "n i64, late i64");
}

#[test]
fn what_the_schema_does_not_name_is_refused_left_out_or_kept() {
    let text = "{\"id\":1,\"x\":\"y\",\"z\":[1]}\n{\"z\":{},\"id\":2}\n{\"id\":3}\n";
    let schema = of(Format::Ndjson, "id i64, more json");
    assert!(error(text, schema.clone()).contains("unknown field \"x\""));
    let ignored = read(text, schema.clone().unknown(Unknown::Ignore));
    assert_eq!(ignored.1, ["1|null", "2|null", "3|null"]);
    let kept = schema.unknown(Unknown::Field("more".to_owned()));
    assert_eq!(read(text, kept.clone()).1, ["1|{\"x\":\"y\",\"z\":[1]}", "2|{\"z\":{}}", "3|null"]);
    // What is wrong with a row leaves those around it as they are.
    let text = "{\"id\":1,\"a\":1}\n{\"id\":\"x\",\"b\":1}\n\
                {\"id\":2,\"c\":1,\"c\":2}\n{\"id\":3,\"d\":1}\n";
    let reader = open(text.as_bytes(), kept).unwrap();
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let report = reader.read_or_reject(
        |batch, _| {
            rows.extend((0..batch.len()).map(|i| batch.columns[1].value(i).to_string()));
            Ok::<_, Error>(())
        },
        |reject, _| {
            lines.push(reject.error.line().unwrap());
            Ok(())
        },
    );
    assert_eq!((report.unwrap().rows, lines), (2, vec![2, 3]));
    assert_eq!(rows, ["{\"a\":1}", "{\"d\":1}"]);
    let bad = of(Format::Ndjson, "id i64, more text").unknown(Unknown::Field("more".to_owned()));
    assert!(error("{\"id\":1}\n", bad).contains("expected it to be json"));
}

#[test]
fn rows_are_found_where_they_are_in_json() {
    let json = |text: &str| read(text, sniffing().format(Format::Json));
    assert_eq!(json("{\"a\":1}\n{\"a\":2}\n").1, ["1", "2"]);
    assert_eq!(json("{\n \"a\": 1,\n \"b\": [1]\n}\n").1, ["1|[1]"]);
    let lines = read("[{\"a\":1},\n{\"a\":2}]", sniffing().format(Format::Ndjson));
    assert_eq!(lines.1, ["1", "2"]);
    let geo = "{\"type\": \"FeatureCollection\",\n \"crs\": {\"features\": []},\n \"features\": [\n\
               {\"id\": 1, \"properties\": {\"a\": \"]}\"}},\n{\"id\": 2}\n],\n \"n\": 2}\n";
    let found = error(geo, sniffing().format(Format::Json));
    assert!(
        found.contains("the file is one object; give the path of its rows, $.features"),
        "{found}"
    );
    let path = |path: &str| sniffing().format(Format::Json).path(path).unwrap();
    let (schema, rows, _) = read(geo, path("$.features"));
    assert_eq!(schema, "id i64, properties json");
    assert_eq!(rows, ["1|{\"a\":\"]}\"}", "2|null"]);
    let bad = geo.replace("\"id\": 2", "\"id\": x");
    assert!(
        error(&bad, path("$.features")).starts_with("f:5: "),
        "{}",
        error(&bad, path("$.features"))
    );
    assert_eq!(read("{\"a\":[0,{\"b\":[{\"c\":1}]}]}", path("$.a[1].b")).1, ["1"]);
    for (way, wanted) in [
        ("$.fetures", "f:7: $ has no member \"fetures\"; it has type, crs, features, n"),
        ("$.type", "f:1: expected an array or object of rows at $.type, found"),
        ("$.features[7]", "f:6: $.features has 2 elements, and none at 7"),
        ("$.type.x", "f:1: expected an object at $.type, found"),
    ] {
        let found = error(geo, path(way));
        assert!(found.starts_with(wanted), "{found}");
    }
}

/// Inference failed at the first record that is none.
#[test]
fn rows_can_be_left_out_without_a_schema() {
    let cases = [
        (Format::Csv, "a,b\n1,x\n2\n3,y\n"),
        (Format::Csv, "a,b\n1,\"x\"\n2,\"y\"z\n3,\"y\"\n"),
        (Format::Ndjson, "{\"a\":1}\n{\"a\":\n{\"a\":3}\n"),
    ];
    for (format, text) in cases {
        let options = sniffing().format(format);
        assert!(open(text.as_bytes(), options.clone()).is_err());
        let reader = open(text.as_bytes(), options.pass_over(true)).unwrap();
        assert!(schema_text::write(reader.schema()).starts_with("a i64"));
        let report = reader.read_or_reject(|_, _| Ok(()), |_, _| Ok::<_, Error>(()));
        let report = report.unwrap();
        assert_eq!((report.rows, report.rejects), (2, 1));
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn padded_gzip_and_skippable_frames_are_read() {
    let (a, b) = (gzip("a\n1\n"), gzip("2\n"));
    let zeros = vec![0; 700];
    for packed in [[&a[..], &b, &zeros].concat(), [&a[..], &zeros, &b].concat()] {
        assert_eq!(read_bytes(&packed, sniffing()).unwrap().1, ["1", "2"]);
    }
    let garbage = [&a[..], b"x"].concat();
    let found = read_bytes(&garbage, sniffing()).unwrap_err();
    assert_eq!(found.kind(), ErrorKind::BadData);
    assert!(found.to_string().contains("what follows the last member"), "{found}");
    let frame = |text: &str| zstd::encode_all(text.as_bytes(), 1).unwrap();
    let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
    let (a, b) = (frame("a\n1\n"), frame("2\n"));
    for packed in [
        [&skipped[..], &a, &b].concat(),
        [&a[..], &skipped, &b].concat(),
        [&a[..], &b, &skipped].concat(),
        [&skipped[..], &skipped, &a, &skipped, &b, &skipped].concat(),
    ] {
        assert_eq!(read_bytes(&packed, sniffing()).unwrap().1, ["1", "2"]);
    }
}

/// What can be read once, and is longer than what is kept in memory, goes to a temporary file.
#[test]
fn a_long_stream_is_kept_to_be_read_again() {
    let mut text = String::from("n,v\n");
    (0..60_000).for_each(|n| text.push_str(&format!("{n},{n}\n")));
    text.push_str("60000,late\n");
    let few = || sniffing().memory_bytes(256 << 10).whole_bytes_max(1000).sample_rows(9);
    let stream = |options: ImportOptions| {
        let bytes = Cursor::new(text.clone().into_bytes());
        ImportReader::from_reader(&Environment::os(), "pipe", bytes, None, options)
    };
    let reader = stream(few()).unwrap();
    let again = reader.again().unwrap();
    let stopped = reader.read(|_, _| Ok::<_, Error>(())).unwrap_err();
    assert!(
        stopped.to_string().starts_with("pipe:60002: column 2 \"v\": expected i64"),
        "{stopped}"
    );
    let reader = again.open().unwrap();
    assert_eq!(schema_text::write(reader.schema()), "n i64, v text");
    assert_eq!(reader.read(|_, _| Ok::<_, Error>(())).unwrap().rows, 60_001);
    let refused = stream(few().spool(std::env::temp_dir(), 100_000)).err().unwrap();
    assert!(refused.to_string().contains("more than 100000 bytes from a pipe"), "{refused}");
}

#[test]
fn several_files_are_looked_at_together_when_the_first_misleads() {
    let dir = std::env::temp_dir().join(format!("esker-together-{}", std::process::id()));
    let environment = Environment::os();
    environment.files.create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        let file = environment.files.open(&path, esker_vfs::OpenMode::CreateNew).unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        path
    };
    let paths = [file("1.csv", "a,b\n1,2\n"), file("2.csv", "b;a\nx;3\n")];
    let reader = ImportReader::open_all(&environment, &paths, sniffing()).unwrap();
    assert_eq!(schema_text::write(reader.schema()), "a i64, b i64");
    let again = reader.again().unwrap();
    assert_eq!(reader.read(|_, _| Ok::<_, Error>(())).unwrap_err().kind(), ErrorKind::Contradicted);
    let reader = again.open().unwrap();
    assert_eq!(schema_text::write(reader.schema()), "a i64, b text");
    assert_eq!(reader.read(|_, _| Ok::<_, Error>(())).unwrap().rows, 2);
    environment.files.remove_dir_all(&dir).unwrap();
}

#[test]
fn a_value_may_be_null_unless_strict() {
    let text = "a,b\n1,x\n";
    assert_eq!(read(text, sniffing()).0, "a i64, b text");
    assert_eq!(read(text, sniffing().strict(true)).0, "a i64 not null, b text not null");
    assert_eq!(
        read_bytes(text.as_bytes(), sniffing()).unwrap().1,
        [Value::from(1i64).to_string() + "|x"]
    );
}
