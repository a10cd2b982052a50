//! Rows as JSON, through the whole reader.

use std::io::Cursor;

use esker_format::Value;
use proptest::prelude::*;

use super::*;
use crate::{Format, schema_text};

fn options(format: Format, schema: &str) -> ImportOptions {
    let options = ImportOptions::default().format(format);
    if schema.is_empty() { options } else { options.schema(schema_text::parse(schema).unwrap()) }
}

fn open(text: &str, options: ImportOptions) -> Result<ImportReader> {
    let bytes = Cursor::new(text.to_owned().into_bytes());
    ImportReader::from_reader(&Environment::os(), "f.json", bytes, Some(text.len() as u64), options)
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

fn read(text: &str, options: ImportOptions) -> Result<(String, Vec<String>)> {
    let reader = open(text, options)?;
    let schema = schema_text::write(reader.schema());
    let show = |row: Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    Ok((schema, rows_of(reader)?.into_iter().map(show).collect()))
}

/// Reads in one chunk and in many; both agree.
fn rows(text: &str, options: ImportOptions) -> std::result::Result<Vec<String>, String> {
    let outcome = |bytes| {
        let read = read(text, options.clone().chunk_bytes(bytes));
        read.map(|(_, rows)| rows).map_err(|e| e.to_string())
    };
    let whole = outcome(1 << 20);
    for bytes in [1, 2, 3, 7, 20] {
        assert_eq!(outcome(bytes), whole, "chunks of {bytes}");
    }
    whole
}

const FORMATS: [(Format, &str, &str, &str); 2] =
    [(Format::Ndjson, "", "\n", "\n"), (Format::Json, "[", ",\n", "]")];

#[test]
fn every_type_is_read() {
    let schema = "a bool, b i8, c u64, d f64, e text, f bytes, g date, h timestamp, i time, \
                  j uuid, k ipv4, l ipv6, m i64";
    let all = r#"{"a":true,"b":-128,"c":18446744073709551615,"d":-1.5e-3,"e":"x\n\u00e9\"",
        "f":"00ff","g":"2013-01-31","h":"2013-01-31T05:17:00Z","i":"05:17:00","k":"192.0.2.1",
        "j":"67e55044-10b1-426f-9247-bb680e5fe0c8","l":"2001:db8::1","m":-9223372036854775808}"#;
    let all = all.replace("\n", "");
    // Other order, other white space, numbers as strings, NULL and nothing.
    let other = r#"{ "m":"7" ,"c": "18446744073709551615","e":"","d":"NaN" , "a":null,"b":null }"#;
    for (format, before, between, after) in FORMATS {
        let text = format!("{before}{all}{between}{other}{after}");
        let found = rows(&text, options(format, schema)).unwrap();
        assert_eq!(
            found[0],
            "true|-128|18446744073709551615|-0.0015|x\n\u{e9}\"|00ff|2013-01-31|2013-01-31 \
             05:17:00|05:17:00|67e55044-10b1-426f-9247-bb680e5fe0c8|192.0.2.1|2001:db8::1|\
             -9223372036854775808"
        );
        assert_eq!(
            found[1],
            "null|null|18446744073709551615|NaN||null|null|null|null|null|null|null|7"
        );
    }
}

#[test]
fn an_object_of_rows_gives_its_names_to_the_key() {
    let schema = "n i64, id text not null, primary key (id)";
    let text = "{\n \"a\": {\"n\": 1},\n \"b\\u0063\": {\"n\": 2, \"id\": \"bc\"}}\n";
    // The second key is spelled otherwise in the row.
    let error = rows(text, options(Format::Json, schema)).unwrap_err();
    assert_eq!(
        error,
        "f.json:3: field \"id\": the row has the field twice, with different values or as its key"
    );
    let text = "{\"a\": {\"n\": 1}, \"bc\": {\"n\": 2, \"id\": \"bc\"}}";
    assert_eq!(rows(text, options(Format::Json, schema)).unwrap(), ["1|a", "2|bc"]);
    let inferred = options(Format::Json, "").key(["id"]);
    let (schema, _) = read("{\"7\": {\"n\": 1.5}, \"8\": {}}", inferred).unwrap();
    assert_eq!(schema, "id i64 not null, n f64, primary key (id)");
    let strict = options(Format::Json, "").strict(true);
    let (schema, _) = read("{\"x\": {\"n\": 1}}", strict).unwrap();
    assert_eq!(
        schema,
        "\"key\" text not null, n i64 not null, primary key (\"key\")".replace('"', "")
    );
    let two = options(Format::Json, "a i64 not null, b i64 not null, primary key (a, b)");
    assert!(rows("{}", two).unwrap_err().contains("primary key of one field"));
}

#[test]
fn types_are_inferred() {
    let text = "{\"a\":1,\"b\":\"2013-01-31\",\"c\":true,\"d\":1,\"e\":\"1\",\"f\":1}\n\
                {\"a\":2.5,\"b\":\"2013-01-31 05:17:00\",\"c\":null,\"d\":18446744073709551615,\
                \"e\":\"2\",\"g\":\"x\"}\n";
    let wanted = "a f64 not null, b timestamp not null, c bool, d u64 not null, e text not null, \
                  f i64, g text";
    for bytes in [1, 1 << 20] {
        let options = options(Format::Ndjson, "").chunk_bytes(bytes);
        assert_eq!(read(text, options.strict(true)).unwrap().0, wanted);
    }
    let (schema, found) = read("{\"a\":[1, 2]}", options(Format::Ndjson, "")).unwrap();
    assert_eq!((schema.as_str(), found[0].as_str()), ("a json", "[1,2]"));
    for empty in ["[]", "[ ]\n"] {
        let error = rows(empty, options(Format::Json, "")).unwrap_err();
        assert!(error.contains("give a schema"), "{error}");
        assert!(rows(empty, options(Format::Json, "a i64")).unwrap().is_empty());
    }
    // What the sample did not show is told as such.
    let mut text: String = (0..100).map(|i| format!("{{\"n\":{i}}}\n")).collect();
    text.push_str("{\"n\":1,\"late\":2}\n");
    let sampled = options(Format::Ndjson, "").chunk_bytes(100).whole_bytes_max(200).sample_rows(9);
    let error = read(&text, sampled).unwrap_err().to_string();
    assert!(error.starts_with("f.json:101: unknown field \"late\""), "{error}");
    assert!(error.contains("inferred from the first"), "{error}");
}

#[test]
fn what_does_not_fit_is_named() {
    let schema = "id i64 not null, name text, ok bool";
    let error = |row: &str| {
        rows(&format!("{{\"id\":1}}\n{row}\n"), options(Format::Ndjson, schema)).unwrap_err()
    };
    let integer = "expected i64 (-9223372036854775808 to 9223372036854775807), found";
    for (row, wanted) in [
        ("{\"id\":\"x\"}", format!("field \"id\": {integer} \"x\"")),
        ("{\"id\":1.5}", format!("field \"id\": {integer} \"1.5\"")),
        (
            "{\"id\":9223372036854775808}",
            format!("field \"id\": {integer} \"9223372036854775808\""),
        ),
        ("{\"id\":true}", format!("field \"id\": {integer} true")),
        ("{\"id\":[1]}", format!("field \"id\": {integer} [1]")),
        ("{\"id\":1,\"name\":5}", "field \"name\": expected text in UTF-8, found 5".into()),
        ("{\"id\":1,\"ok\":1}", "field \"ok\": expected bool (true or false), found 1".into()),
        (
            "{\"name\":\"x\"}",
            "field \"id\": the field is declared not null, found no such field in the row".into(),
        ),
        ("{\"id\":null}", "field \"id\": the field is declared not null, found null".into()),
        ("{\"id\":1,\"nmae\":1}", "unknown field \"nmae\"; did you mean \"name\"?".into()),
        ("{\"id\":1,\"other\":1}", "unknown field \"other\"; fields: id, name, ok".into()),
        ("{\"id\":1,\"id\":2}", "field \"id\": the row has it twice".into()),
        ("{\"id\":1", "expected `,` or `}`, found the end of the line".into()),
        (
            "{\"id\":1,\"name\":\"\\ud800\"}",
            "field \"name\": expected text in UTF-8, found \"\\ud800\"".into(),
        ),
    ] {
        assert_eq!(error(row), format!("f.json:2: {wanted}"));
    }
    let found = read("{\"id\":1}\n{\"id\":1, \"nmae\":2}", options(Format::Ndjson, schema));
    let excerpt = found.unwrap_err().excerpt().unwrap().to_string();
    assert_eq!(excerpt, "{\"id\":1, \"nmae\":2}\n         ^^^^^^");
}

#[test]
fn rows_that_do_not_fit_can_be_left_out() {
    let text = "{\"n\":1}\nnonsense\n{\"n\":\"x\"}\n{\"m\":1}\n{\"n\":2}\n";
    for bytes in [1, 1 << 20] {
        let reader = open(text, options(Format::Ndjson, "n i64").chunk_bytes(bytes)).unwrap();
        let (mut kept, mut rejects) = (0, Vec::new());
        let report = reader.read_or_reject(
            |batch, _| {
                kept += batch.len();
                Ok(())
            },
            |reject, _| {
                rejects.push((reject.error.line().unwrap(), reject.text));
                Ok::<_, Error>(())
            },
        );
        let report = report.unwrap();
        assert_eq!((kept, report.rows, report.rejects, report.lines), (2, 2, 3, 5));
        let texts: Vec<_> = rejects.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(texts, [(2, "nonsense"), (3, "{\"n\":\"x\"}"), (4, "{\"m\":1}")]);
    }
    let text = "[{\"n\":1},\n{\"n\":\"x\"},\n{\"m\":1},{\"n\":3}]";
    for bytes in [1, 1 << 20] {
        let reader = open(text, options(Format::Json, "n i64").chunk_bytes(bytes)).unwrap();
        let mut lines = Vec::new();
        let report = reader.read_or_reject(
            |_, _| Ok(()),
            |reject, _| {
                lines.push(reject.error.line().unwrap());
                Ok::<_, Error>(())
            },
        );
        assert_eq!((report.unwrap().rows, lines), (2, vec![2, 3]));
    }
    let text = "[{\"n\":1},{\"n\" 2}]";
    let reader = open(text, options(Format::Json, "n i64")).unwrap();
    let stopped = reader.read_or_reject(|_, _| Ok(()), |_, _| Ok::<_, Error>(()));
    assert!(stopped.unwrap_err().to_string().contains("`:`"));
}

#[test]
fn rows_of_csv_can_be_left_out() {
    let text = "a,b\n1,x\ny,2\n1\n\"1\"z,\"q\n\"\n2,\"long\n\"\n";
    for bytes in [1, 1 << 20] {
        let options = options(Format::Csv, "a i64, b text").chunk_bytes(bytes);
        let reader = open(text, options).unwrap();
        let (mut rows, mut rejects) = (Vec::new(), Vec::new());
        let report = reader.read_or_reject(
            |batch, _| {
                rows.extend((0..batch.len()).map(|i| batch.columns[0].value(i).to_string()));
                Ok(())
            },
            |reject, _| {
                rejects.push((reject.error.line().unwrap(), reject.text));
                Ok::<_, Error>(())
            },
        );
        assert_eq!(report.unwrap().lines, 8);
        assert_eq!(rows, ["1", "2"]);
        let wanted = [(3, "y,2"), (4, "1"), (5, "\"1\"z,\"q\n\"")];
        assert_eq!(rejects, wanted.map(|(line, text)| (line, text.to_owned())));
    }
}

#[test]
fn quotes_and_escapes_can_be_others() {
    let read = |text: &str, options: ImportOptions| {
        let schema = schema_text::parse("a text, b text").unwrap();
        rows(text, options.header(false).schema(schema))
    };
    let options = ImportOptions::default;
    let single = options().quote(Some(b'\''));
    assert_eq!(read("'a,''b','\"'\n", single).unwrap(), ["a,'b|\""]);
    let backslash = options().escape(Some(b'\\'));
    assert_eq!(read("\"a\\\"b\\\\\",\"c\nd\"\n", backslash.clone()).unwrap(), ["a\"b\\|c\nd"]);
    assert!(read("\"a\"\"b\",x\n", backslash).unwrap_err().contains("after a closing quote"));
    assert_eq!(read("\"a,b\"\n", options().quote(None)).unwrap(), ["\"a|b\""]);
    let refused = read("a,b\n", options().quote(None).escape(Some(b'\\'))).unwrap_err();
    assert!(refused.contains("an escape counts within quotes"), "{refused}");
    assert!(read("a,b\n", options().quote(Some(b','))).is_err());
    assert!(read("a,b\n", options().quote(Some(b'\n'))).is_err());
    assert_eq!(read("\"a\"\"\",x\n", options().escape(Some(b'"'))).unwrap(), ["a\"|x"]);
}

#[test]
fn several_files_are_one_table() {
    let dir = std::env::temp_dir().join(format!("esker-import-{}", std::process::id()));
    let environment = Environment::os();
    environment.files.create_dir_all(&dir).unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        let file = environment.files.open(&path, esker_vfs::OpenMode::CreateNew).unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        path
    };
    let paths = [
        file("1.csv", "a,b\n1,x\n"),
        file("2.csv", "b,a\ny,2\n,3\n"),
        file("3.csv", "a,b\n4,z\nx,5\n"),
    ];
    let open = |paths: &[PathBuf]| {
        ImportReader::open_all(&environment, paths, ImportOptions::default()).and_then(rows_of)
    };
    let found = open(&paths[..2]).unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[1], [2i64.into(), "y".into()]);
    let error = open(&paths).unwrap_err().to_string();
    assert!(error.contains("3.csv:3: column 1 \"a\": expected i64"), "{error}");
    assert!(error.contains("the types were inferred from the first 1 rows"), "{error}");
    // Columns are those of all files, by name; a file that has none of them is another table.
    let other = file("4.csv", "a,c\n1,2\n");
    let files = [paths[0].clone(), other.clone()];
    let reader = ImportReader::open_all(&environment, &files, ImportOptions::default()).unwrap();
    assert_eq!(schema_text::write(reader.schema()), "a i64, b text, c i64");
    let [first, second] = reader.notes() else { panic!("{:?}", reader.notes()) };
    assert!(first.ends_with("1.csv has no column c: NULL"), "{first}");
    assert!(second.ends_with("4.csv has no column b: NULL"), "{second}");
    let found = rows_of(reader).unwrap();
    assert_eq!(found[0], [1i64.into(), "x".into(), Value::Null]);
    assert_eq!(found[1], [1i64.into(), Value::Null, 2i64.into()]);
    let strict = ImportOptions::default().strict(true);
    let reader = ImportReader::open_all(&environment, &files, strict).unwrap();
    assert_eq!(schema_text::write(reader.schema()), "a i64 not null, b text, c i64");
    let stranger = file("6.csv", "x,y\n1,2\n");
    let error = open(&[paths[0].clone(), stranger]).unwrap_err().to_string();
    assert!(error.contains("6.csv: no column of the files before it is one of this"), "{error}");
    let declared = schema_text::parse("a i64, b text").unwrap();
    let declared = ImportOptions::default().schema(declared);
    let reader = ImportReader::open_all(&environment, &files, declared).unwrap();
    let error = rows_of(reader).unwrap_err().to_string();
    assert!(error.contains("4.csv: the file has a column \"c\""), "{error}");
    let missing = open(&[paths[0].clone(), dir.join("5.csv")]).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    environment.files.remove_dir_all(&dir).unwrap();
}

/// JSON text that is nearly right.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"b\"",
        "\"",
        "\\",
        "1",
        "-2.5",
        "null",
        "true",
        "\n",
        " ",
        "{\"a\":1}",
        "{\"a\":1,\"b\":\"x,}\"}",
        "\"k\":{\"b\":null}",
        "\u{e9}",
        "\\u00",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever the text, all ways to cut it agree; what is read is what a JSON parser reads.
    #[test]
    fn the_cut_does_not_matter(text in nearly_json(), shape in 0..3) {
        let (format, text) = match shape {
            0 => (Format::Ndjson, text),
            1 => (Format::Json, format!("[{text}")),
            _ => (Format::Json, format!("{{{text}")),
        };
        let schema = "a i64, b text, k text not null, primary key (k)";
        let schema = if shape == 2 { schema } else { "a i64, b text" };
        let found = rows(&text, options(format, schema));
        if let Ok(rows) = found {
            let count = match shape {
                0 => text.lines().filter(|l| !l.trim().is_empty()).map(|line| {
                    assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line:?}");
                }).count(),
                _ => match serde_json::from_str::<serde_json::Value>(&text) {
                    Ok(serde_json::Value::Array(rows)) => rows.len(),
                    // Of equal names, which the table refuses, the parser keeps one.
                    Ok(serde_json::Value::Object(_)) => rows.len(),
                    other => panic!("{text:?}: {other:?}"),
                },
            };
            prop_assert_eq!(rows.len(), count);
        }
    }
}
