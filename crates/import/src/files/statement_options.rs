//! What a statement says of a file: `read_csv('x.csv', delim => ';')`, `COPY … (FORMAT csv, …)`.

use std::path::Path;

use esker::{FileFormat, FileRequest, FileTable};
use esker_format::suggest::near_or_all;

use super::named_form::NamedForm;
use super::text_reader::TextForm;
use crate::export::CsvForm;
use crate::{Error, Format, ImportOptions, Result, Unknown, schema_text};

/// What is said of CSV that is read.
const OF_CSV: [&str; 10] = [
    "delim", "quote", "escape", "header", "null", "skip", "comment", "decimal", "schema", "strict",
];
/// Of JSON.
const OF_JSON: [&str; 3] = ["path", "schema", "strict"];
/// Of the text format, and of all that is written.
const OF_TEXT: [&str; 3] = ["delim", "header", "null"];
/// Of CSV that is written.
const OF_WRITTEN_CSV: [&str; 5] = ["delim", "quote", "escape", "header", "null"];

/// Names that mean the same as another.
const SAME: [(&str, &str); 4] =
    [("delimiter", "delim"), ("sep", "delim"), ("nullstr", "null"), ("columns", "schema")];

/// How a file is to be read.
pub(super) struct Reading {
    pub options: ImportOptions,
    /// Of the text format.
    pub text: Option<TextForm>,
}

/// How a file is to be written.
pub(super) enum Writing {
    Csv(CsvForm),
    Text(TextForm),
    Rows(Format),
}

/// How a file is written: as it is said, or by its name.
fn form(file: &FileTable) -> Result<(FileFormat, Option<NamedForm>)> {
    let named = NamedForm::of(Path::new(&file.path));
    let by_name = |form: NamedForm| match form.format {
        Format::Csv => FileFormat::Csv,
        Format::Ndjson => FileFormat::Ndjson,
        Format::Json => FileFormat::Json,
    };
    match file.format.or(named.map(by_name)) {
        Some(format) => Ok((format, named)),
        None => Err(Error::options(format!(
            "{}: the name does not tell how the file is written: expected one that ends with .csv, \
             .tsv, .ndjson or .json, read_csv('…'), read_json('…'), or FORMAT csv of COPY",
            file.path
        ))),
    }
}

/// What a statement says, by the names that are known.
struct Said<'f> {
    file: &'f FileTable,
    what: &'static str,
}

impl<'f> Said<'f> {
    /// Refuses what is not known.
    fn new(file: &'f FileTable, what: &'static str, known: &[&'static str]) -> Result<Self> {
        for (at, (name, _)) in file.options.iter().enumerate() {
            let own = canonical(name);
            if !known.contains(&own) {
                let near = near_or_all(name, "options", known.iter().copied());
                return Err(Error::options(format!("{what}: unknown option {name}{near}")));
            }
            let before = file.options.iter().take(at);
            if own != "null" && before.clone().any(|(name, _)| canonical(name) == own) {
                return Err(Error::options(format!("{what}: {name} is said twice")));
            }
        }
        Ok(Self { file, what })
    }

    fn all(&self, name: &'f str) -> impl Iterator<Item = &'f str> {
        let options = self.file.options.iter();
        options.filter(move |(own, _)| canonical(own) == name).map(|(_, value)| value.as_str())
    }

    fn value(&self, name: &'f str) -> Option<&'f str> {
        self.all(name).next()
    }

    fn unfit(&self, name: &str, expected: &str, found: &str) -> Error {
        Error::options(format!("{}: {name}: expected {expected}, found {found:?}", self.what))
    }

    /// True or false.
    fn flag(&self, name: &'f str) -> Result<Option<bool>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "true" | "on" | "1" | "yes" => Ok(Some(true)),
            "false" | "off" | "0" | "no" => Ok(Some(false)),
            _ => Err(self.unfit(name, "true or false", value)),
        }
    }

    /// One ASCII character.
    fn character(&self, name: &'f str) -> Result<Option<u8>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_bytes() {
            b"\\t" => Ok(Some(b'\t')),
            [byte] if byte.is_ascii() => Ok(Some(*byte)),
            _ => Err(self.unfit(name, "one ASCII character", value)),
        }
    }

    /// One of them, or `none`.
    fn mark(&self, name: &'f str) -> Result<Option<Option<u8>>> {
        match self.value(name) {
            Some("" | "none") => Ok(Some(None)),
            _ => Ok(self.character(name)?.map(Some)),
        }
    }

    fn text_form(&self) -> Result<TextForm> {
        let delimiter = self.character("delim")?.unwrap_or(b'\t'); // default: of the format
        if matches!(delimiter, b'\\' | b'\n' | b'\r' | b'.' | b'"')
            || delimiter.is_ascii_alphanumeric()
        {
            let found = char::from(delimiter).to_string();
            return Err(self.unfit("delim", "no letter, digit, backslash or line end", &found));
        }
        let null = self.value("null").unwrap_or("\\N"); // default: of the format
        let header = self.flag("header")?.unwrap_or(false); // default: of the format
        if null.contains(['\n', '\r', char::from(delimiter)]) {
            return Err(self.unfit("null", "no delimiter or line end", null));
        }
        Ok(TextForm { delimiter, null: null.to_owned(), header })
    }
}

fn canonical(name: &str) -> &str {
    let same = SAME.iter().find(|(other, _)| *other == name);
    same.map_or(name, |(_, own)| own)
}

impl Reading {
    pub fn of(file: &FileTable, request: &FileRequest) -> Result<Self> {
        let (format, named) = form(file)?;
        let mut options = ImportOptions::default()
            .memory_bytes(request.memory_bytes)
            .spellings()
            .columns(&request.columns);
        let mut text = None;
        let said = match format {
            FileFormat::Csv => {
                let said = Said::new(file, "read_csv", &OF_CSV)?;
                options = match request.as_copied {
                    true => copied(&said, named, options)?,
                    false => csv(&said, named, options)?,
                };
                said
            }
            FileFormat::Text => {
                let said = Said::new(file, "read_text", &OF_TEXT)?;
                let form = said.text_form()?;
                options = options.header(form.header);
                text = Some(form);
                said
            }
            FileFormat::Ndjson => Said::new(file, "read_ndjson", &OF_JSON)?,
            FileFormat::Json => Said::new(file, "read_json", &OF_JSON)?,
        };
        if matches!(format, FileFormat::Ndjson | FileFormat::Json) {
            let is_lines = format == FileFormat::Ndjson;
            let format = if is_lines { Format::Ndjson } else { Format::Json };
            options = options.format(format);
            options = match said.value("path") {
                Some(path) => options.path(path)?,
                None if !is_lines => options.find_rows(),
                None => options,
            };
        }
        options = options.strict(said.flag("strict")?.unwrap_or(false)); // default: NULL may be
        options = match (&request.schema, said.value("schema")) {
            (Some(schema), None) => options.schema((**schema).clone()),
            (Some(_), Some(_)) => {
                let message = "schema: the table has one: leave it out";
                return Err(Error::options(message));
            }
            (None, Some(schema)) => {
                let schema = schema_text::parse(schema)?;
                options.schema(schema).schema_names_columns().unknown(Unknown::Infer)
            }
            (None, None) => options,
        };
        Ok(Self { options, text })
    }
}

/// How CSV is written: as it is said, else as `COPY` has it.
fn copied(
    said: &Said<'_>,
    named: Option<NamedForm>,
    options: ImportOptions,
) -> Result<ImportOptions> {
    let usual = if named.is_some_and(|form| form.has_tabs) { b'\t' } else { b',' };
    let options = options
        .delimiter(said.character("delim")?.unwrap_or(usual)) // default: of the format
        .quote(said.mark("quote")?.unwrap_or(Some(b'"'))) // default: of the format
        .header(said.flag("header")?.unwrap_or(false)) // default: of the format
        .comment(said.mark("comment")?.flatten());
    rest_of_csv(said, options)
}

/// How CSV is written: as it is said, else as the file shows.
fn csv(said: &Said<'_>, named: Option<NamedForm>, options: ImportOptions) -> Result<ImportOptions> {
    let has_tabs = named.is_some_and(|form| form.has_tabs);
    let mut options = match said.character("delim")? {
        Some(delimiter) => options.delimiter(delimiter),
        None if has_tabs => options.delimiter(b'\t').sniff_delimiter(),
        None => options.sniff_delimiter(),
    };
    options = match said.mark("quote")? {
        Some(quote) => options.quote(quote),
        None => options.sniff_quote(),
    };
    options = match said.mark("comment")? {
        Some(comment) => options.comment(comment),
        None if said.value("header").is_some() => options,
        None => options.sniff_comment(),
    };
    options = match said.flag("header")? {
        Some(header) => options.header(header),
        None => options.sniff_header(),
    };
    rest_of_csv(said, options)
}

/// What is said of CSV and cannot be found out.
fn rest_of_csv(said: &Said<'_>, mut options: ImportOptions) -> Result<ImportOptions> {
    if let Some(escape) = said.mark("escape")? {
        options = options.escape(escape);
    }
    if said.value("null").is_some() {
        options = options.nulls(said.all("null"));
    }
    if let Some(lines) = said.value("skip") {
        let lines = lines.parse().map_err(|_| said.unfit("skip", "a number of lines", lines))?;
        options = options.skip(lines);
    }
    match said.value("decimal") {
        None | Some(".") => Ok(options),
        Some(",") => Ok(options.decimal_comma(true)),
        Some(other) => Err(said.unfit("decimal", ". or `,`", other)),
    }
}

impl Writing {
    pub fn of(file: &FileTable) -> Result<Self> {
        let (format, named) = form(file)?;
        if named.is_some_and(|form| form.is_packed) {
            let path = &file.path;
            let message = format!("{path}: files are written plain: expected a name without .gz");
            return Err(Error::options(message));
        }
        Ok(match format {
            FileFormat::Text => {
                Self::Text(Said::new(file, "the text format", &OF_TEXT)?.text_form()?)
            }
            FileFormat::Ndjson => {
                Said::new(file, "NDJSON", &[])?;
                Self::Rows(Format::Ndjson)
            }
            FileFormat::Json => {
                Said::new(file, "JSON", &[])?;
                Self::Rows(Format::Json)
            }
            FileFormat::Csv => {
                let said = Said::new(file, "CSV", &OF_WRITTEN_CSV)?;
                let usual = if named.is_some_and(|form| form.has_tabs) { b'\t' } else { b',' };
                // default: CSV as it usually is
                let quote = said.character("quote")?.unwrap_or(b'"');
                let form = CsvForm {
                    delimiter: said.character("delim")?.unwrap_or(usual), // default: the same
                    quote,
                    escape: said.character("escape")?.unwrap_or(quote), // default: doubled
                    null: said.value("null").unwrap_or_default().to_owned(),
                    header: said.flag("header")?.unwrap_or(false), // default: of COPY
                };
                form.validate()?;
                Self::Csv(form)
            }
        })
    }
}
