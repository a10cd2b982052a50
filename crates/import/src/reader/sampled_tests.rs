//! Types that are inferred from the first rows, and widened once a later one does not fit, are
//! those of a reader that looks at all rows first, and so are the rows.

use std::io::Cursor;

use esker_format::Value;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::{DateFormat, Format, schema_text};

/// Values by which a type holds, or widens in one of the ways there are.
const VALUES: [&str; 47] = [
    "true",
    "FALSE",
    "t",
    "1",
    "-5",
    "0",
    "-0",
    "007",
    "+7",
    "1.0",
    "1.50",
    ".5",
    "5.",
    "0.1",
    "1,5",
    "1e5",
    "1e400",
    "inf",
    "9007199254740993",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "123456789012345678901234567890",
    "1234567890123456789.5",
    "1234567890123456789012345678901234567.25",
    "0.12345678901234567890123456789012345678901",
    "1234567890123456789012345678901234567890",
    "2013-01-31",
    "2013/01/31",
    "2013-01-31 05:17:00",
    "2013-01-31T05:17:00+02:00",
    "2013-01-31T05:17:00.25Z",
    "31/12/2013",
    "31/12/2013 05:17",
    "67e55044-10b1-426f-9247-bb680e5fe0c8",
    "67E5504410B1426F9247BB680E5FE0C8",
    "NA",
    "-",
    "null",
    "x",
    "two words",
    "",
    "12:30",
    "1_000",
    "0x10",
    "ünï",
    "1.250",
];
/// Fields of CSV that are quoted, or escaped.
const QUOTED: [&str; 8] =
    ["\"\"", "\"7\"", "\"007\"", "\"1\"\"2\"", "\"x\ny\"", "\"\n\"", "\"1,5\"", "\"NA\""];
/// Values of JSON that are none of CSV.
const NESTED: [&str; 8] = [
    "[1, 2]",
    "{\"a\": 1}",
    "[]",
    "{\"a\":1,\"a\":2}",
    "[1e999]",
    "\"1\\u00322\"",
    "\"\\n\"",
    "\"\\u0037\"",
];

/// Values of which the type of some does not hold the others, nearly.
const ALIKE: [&[&str]; 7] = [
    &["9007199254740993", "18446744073709551616", "1.5", "1.50", "1.250", "1.0", "7"],
    &["7", "007", "\"1\\\\2\"", "\"\\u0037\"", "\"7\"", "\"\\7\"", "1.0", "-0"],
    &["2013-01-31", "2013/01/31", "2013-01-31 05:17", "\"2013-01-3\\u0031\"", "31/12/2013"],
    &["true", "FALSE", "t", "\"true\"", "\"tru\\e\"", "\"tru\\u0065\""],
    &["1e5", "1.5", "9007199254740993", "1e400", "inf", "-0.0", "5."],
    &["", "null", "-", "NA", "\"\"", "7", "x", "[1]"],
    &["x", "7", "true", "[1]", "{\"a\":1,\"a\":2}", "2013-01-31"],
];

/// What a reader comes to: the schema, the rows, and what it left out.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    schema: String,
    rows: Vec<String>,
    rejects: Vec<String>,
}

/// A file, and how it is read.
#[derive(Clone, Debug)]
struct Case {
    text: String,
    format: Format,
    strict: bool,
    skips: bool,
    dates: bool,
    comma: bool,
    /// Whether a quote within quotes is escaped by a backslash, not doubled.
    escapes: bool,
}

impl Case {
    fn options(&self) -> ImportOptions {
        let day = DateFormat::parse("%d/%m/%Y").unwrap();
        let options = ImportOptions::default().format(self.format).spellings();
        let options = options.strict(self.strict).pass_over(self.skips).decimal_comma(self.comma);
        let options = if self.dates { options.date_formats([day]) } else { options };
        let options = if self.format == Format::Csv { options.nulls(["", "-"]) } else { options };
        if self.escapes { options.escape(Some(b'\\')) } else { options }
    }

    /// The outcome, and how often the reader began again.
    fn read(&self, options: ImportOptions) -> (std::result::Result<Outcome, String>, usize) {
        let bytes = Cursor::new(self.text.clone().into_bytes());
        let length = Some(self.text.len() as u64);
        let environment = Environment::os();
        let mut reader = match ImportReader::from_reader(&environment, "f", bytes, length, options)
        {
            Ok(reader) => reader,
            Err(error) => return (Err(error.to_string()), 0),
        };
        for times in 0..3 {
            let (again, schema) = (reader.again(), schema_text::write(reader.schema()));
            let (mut rows, mut rejects) = (Vec::new(), Vec::new());
            let mut consume = |batch: Batch, _: Progress| {
                let row = |i| {
                    let values = batch.columns.iter().map(|c| c.value(i).to_owned());
                    values.map(|value: Value| format!("{value:?}")).collect::<Vec<_>>().join("|")
                };
                rows.extend((0..batch.len()).map(row));
                Ok::<_, Error>(())
            };
            let report = match self.skips {
                true => reader.read_or_reject(consume, |reject, _| {
                    rejects.push(format!("{}: {}", reject.error, reject.text));
                    Ok(())
                }),
                false => reader.read(&mut consume),
            };
            match (report, again) {
                (Ok(_), _) => return (Ok(Outcome { schema, rows, rejects }), times),
                (Err(e), Some(again)) if e.kind() == ErrorKind::Contradicted => {
                    match again.open() {
                        Ok(next) => reader = next,
                        Err(error) => return (Err(error.to_string()), times + 1),
                    }
                }
                (Err(error), _) => return (Err(error.to_string()), times),
            }
        }
        panic!("a reader of all rows is contradicted");
    }
}

/// One row of a file, from values of each of its columns.
fn row(format: Format, at: &str, values: &[Option<String>]) -> String {
    let json = |value: &String| match format {
        Format::Csv => value.clone(),
        _ if value.starts_with(['[', '{', '"']) => value.clone(),
        _ if serde_json::from_str::<serde_json::Value>(value).is_ok() => value.clone(),
        _ => serde_json::to_string(value).unwrap(),
    };
    if format == Format::Csv {
        let fields = values.iter().map(|value| value.as_ref().map(json).unwrap_or_default());
        return fields.collect::<Vec<_>>().join(",");
    }
    let values = values.iter().enumerate();
    let members =
        values.filter_map(|(n, value)| Some(format!("\"c{n}\": {}", json(value.as_ref()?))));
    let object = format!("{{{}}}", members.collect::<Vec<_>>().join(", "));
    if format == Format::Json { format!("{at}: {object}") } else { object }
}

fn file(format: Format, rows: &[String]) -> String {
    match format {
        Format::Csv => format!("c0,c1,c2\n{}\n", rows.join("\n")),
        Format::Ndjson => rows.join("\n"),
        Format::Json => format!("{{{}}}", rows.join(",\n")),
    }
}

prop_compose! {
    /// A file of which the first rows take values from a few, and the last from others.
    fn cases()(
        format in select(vec![Format::Csv, Format::Ndjson, Format::Json]),
        alike in prop::collection::vec(prop::option::of(select(ALIKE.to_vec())), 3),
        early in prop::collection::vec(prop::collection::vec(any::<Index>(), 1..3), 3),
        late in prop::collection::vec(prop::collection::vec(any::<Index>(), 1..3), 3),
        which in prop::collection::vec(prop::array::uniform3(any::<Index>()), 14..24),
        late_rows in 1usize..6,
        ragged in prop::option::of((any::<Index>(), 0usize..3)),
        (strict, skips, dates, comma) in any::<(bool, bool, bool, bool)>(),
        (escapes, odd_name) in (any::<bool>(), prop::option::of(select(ALIKE[1].to_vec()))),
    ) -> Case {
        let of_format: &[&str] = if format == Format::Csv { &QUOTED } else { &NESTED };
        let is_value = |value: &&&str| {
            let is_whole = !value.contains([',', '{']) || value.starts_with('"');
            format != Format::Csv || is_whole
        };
        let all: Vec<&str> =
            VALUES.iter().filter(is_value).chain(of_format).copied().collect();
        let value = |column: usize, index: &Index| {
            let alike = alike[column].map(|some| some.iter().filter(is_value).copied().collect());
            let palette: Vec<&str> = alike.unwrap_or_else(|| all.clone());
            // One more is no value at all, or NULL.
            palette.get(index.index(palette.len() + 1)).map(|value| (*value).to_owned())
        };
        let mut rows = Vec::new();
        for (at, picks) in which.iter().enumerate() {
            let from = if at + late_rows < which.len() { &early } else { &late };
            let values: Vec<Option<String>> = picks.iter().zip(from).enumerate()
                .map(|(n, (pick, kinds))| value(n, &kinds[pick.index(kinds.len())])).collect();
            let name = match odd_name {
                Some(name) if at + 1 == which.len() => name.trim_matches('"').to_owned(),
                _ => (at + 20).to_string(),
            };
            rows.push(row(format, &format!("\"{name}\""), &values));
        }
        if let Some((at, kind)) = ragged {
            let at = at.index(rows.len());
            let bad = match (format, kind) {
                (Format::Csv, 0) => "1,2".to_owned(),
                (Format::Csv, 1) => "x,x,x,x".to_owned(),
                (Format::Csv, _) => "\"x\"y,z,1".to_owned(),
                (Format::Ndjson, 0) => "{\"c0\": \"x\", \"c0\": 2}".to_owned(),
                (Format::Ndjson, 1) => "{\"c0\": 1".to_owned(),
                (Format::Ndjson, _) => "7".to_owned(),
                (Format::Json, _) => rows[at].clone(),
            };
            rows[at] = bad;
        }
        Case { text: file(format, &rows), format, strict, skips, dates, comma, escapes }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn types_of_the_first_rows_become_those_of_all_rows(case in cases()) {
        let (whole, times) = case.read(case.options());
        prop_assert_eq!(times, 0);
        for chunk in [16, 90] {
            let sampled = case.options().chunk_bytes(chunk).whole_bytes_max(60).sample_rows(3);
            let (found, times) = case.read(sampled);
            prop_assert!(times <= 1);
            // Of several faults of a file, either may be met first.
            if let (Err(_), Err(_)) = (&whole, &found) {
                continue;
            }
            prop_assert_eq!(&whole, &found);
        }
    }
}

/// The names of rows are strings: numbers among them contradicted numbers, and a load of a long
/// file began again in vain; names that are `true` and `false` were refused.
#[test]
fn the_names_of_rows_may_look_like_numbers_or_truths() {
    for names in [["1", "2", "3"], ["true", "false", "TRUE"]] {
        let rows = names.map(|name| format!("\"{name}\": {{\"c0\": 1}}"));
        let (format, text) = (Format::Json, file(Format::Json, &rows));
        let case = Case {
            text,
            format,
            strict: false,
            skips: false,
            dates: false,
            comma: false,
            escapes: false,
        };
        let (outcome, times) =
            case.read(case.options().chunk_bytes(9).whole_bytes_max(20).sample_rows(1));
        assert_eq!((outcome.unwrap().rows.len(), times), (3, 0), "{names:?}");
    }
}
