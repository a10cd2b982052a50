//! Which files are loaded, and how they are read.

use std::path::{Path, PathBuf};

use esker::{Alteration, Schema};
use esker_import::{
    DateFormat, Format, ImportOptions, ImportReader, NamedForm, Unknown, schema_text,
};
use esker_vfs::Environment;

use super::matching;
use crate::arguments::{InputFormat, LoadArguments, OnError, TextArguments};
use crate::failure::{Failure, Result};

/// What helps where a file is no UTF-8.
pub(super) const ENCODING: &str =
    "; `iconv -f LATIN1 -t UTF-8 FILE` converts a file of another encoding";

/// The name of standard input.
const STDIN: &str = "-";

/// Opens the files of a load.
pub(super) fn open(
    environment: &Environment,
    arguments: &LoadArguments,
    existing: Option<&Schema>,
) -> Result<ImportReader> {
    let files = matching::files(environment, &arguments.files)?;
    let options = options(arguments, &files, existing)?;
    let reader = match files.as_slice() {
        [only] if only.as_os_str() == STDIN => {
            let bytes = std::io::stdin();
            ImportReader::from_reader(environment, "standard input", bytes, None, options)
        }
        files if files.iter().any(|file| file.as_os_str() == STDIN) => {
            return Err(Failure::usage("standard input (-) cannot be one of several files"));
        }
        files => ImportReader::open_all(environment, files, options),
    };
    reader.map_err(with_advice)
}

/// How the files are written: as given, or by their names.
fn format(arguments: &LoadArguments, files: &[PathBuf]) -> Result<InputFormat> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let mut formats = files.iter().map(|file| (file, format_of(file)));
    let Some((first, format)) = formats.next() else { return Ok(InputFormat::Csv) };
    match formats.find(|(_, other)| *other != format) {
        None => Ok(format),
        Some((other, _)) => Err(Failure::usage(format!(
            "{} and {} are written differently by their names; --format says how all are",
            first.display(),
            other.display()
        ))),
    }
}

/// How a file is written, by its name.
pub(crate) fn format_of(file: &Path) -> InputFormat {
    match NamedForm::of(file) {
        Some(NamedForm { format: Format::Csv, has_tabs: true, .. }) => InputFormat::Tsv,
        Some(NamedForm { format: Format::Ndjson, .. }) => InputFormat::Ndjson,
        Some(NamedForm { format: Format::Json, .. }) => InputFormat::Json,
        _ => InputFormat::Csv,
    }
}

/// One ASCII character of an option.
pub(crate) fn character(option: &str, text: &str) -> Result<u8> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => {
            Err(Failure::usage(format!("--{option}: expected one ASCII character, found {text:?}")))
        }
    }
}

fn options(
    arguments: &LoadArguments,
    files: &[PathBuf],
    existing: Option<&Schema>,
) -> Result<ImportOptions> {
    let format = format(arguments, files)?;
    let mut options = text_options(&arguments.text, format)?;
    if arguments.format.is_none() && arguments.path.is_none() {
        options = options.find_rows();
    }
    if let Some(path) = &arguments.path {
        options = options.path(path)?;
    }
    let dates = arguments.date_formats.iter().map(|text| DateFormat::parse(text));
    options = options
        .date_formats(dates.collect::<std::result::Result<Vec<_>, _>>()?)
        .spellings()
        .strict(arguments.strict)
        .pass_over(arguments.on_error == OnError::Skip)
        .spool(std::env::temp_dir(), arguments.spool_limit)
        .unknown(unknown(arguments, existing)?);
    with_schema(arguments, options, existing)
}

/// How CSV is written: as given, else as the files say.
fn text_options(text: &TextArguments, format: InputFormat) -> Result<ImportOptions> {
    let is_tsv = format == InputFormat::Tsv;
    let format = match format {
        InputFormat::Csv | InputFormat::Tsv => Format::Csv,
        InputFormat::Ndjson => Format::Ndjson,
        InputFormat::Json => Format::Json,
    };
    let usual = ImportOptions::default().format(format);
    let mut options = match &text.delimiter {
        Some(delimiter) => usual.delimiter(character("delimiter", delimiter)?),
        None if is_tsv => usual.delimiter(b'\t').sniff_delimiter(),
        None => usual.sniff_delimiter(),
    };
    let mark = |option, given: &str| match given {
        "none" | "" => Ok(None),
        given => character(option, given).map(Some),
    };
    options = match &text.quote {
        Some(quote) => options.quote(mark("quote", quote)?),
        None => options.sniff_quote(),
    };
    if let Some(escape) = &text.escape {
        options = options.escape(Some(character("escape", escape)?));
    }
    options = match &text.comment {
        Some(comment) => options.comment(mark("comment", comment)?),
        None => options.sniff_comment(),
    };
    options = match (text.header, text.no_header) {
        (false, false) => options.sniff_header(),
        (_, no_header) => options.header(!no_header),
    };
    if !text.nulls.is_empty() {
        options = options.nulls(&text.nulls);
    }
    let decimal_comma = match text.decimal.as_str() {
        "." => false,
        "," => true,
        other => {
            return Err(Failure::usage(format!("--decimal: expected . or `,`, found {other:?}")));
        }
    };
    Ok(options.skip(text.skip).columns(&text.columns).decimal_comma(decimal_comma))
}

/// What becomes of what the schema does not name.
fn unknown(arguments: &LoadArguments, existing: Option<&Schema>) -> Result<Unknown> {
    match arguments.unknown.as_deref() {
        None if existing.is_none() && arguments.schema.is_some() => Ok(Unknown::Infer),
        None | Some("error") => Ok(Unknown::Error),
        Some(_) if existing.is_none() && arguments.schema.is_none() => {
            Err(Failure::usage("--unknown: without --schema, no field is unknown"))
        }
        Some("ignore") => Ok(Unknown::Ignore),
        Some(field) => Ok(Unknown::Field(field.to_owned())),
    }
}

/// The schema that is declared, with the field that takes what no other does.
fn declared(arguments: &LoadArguments) -> Result<Option<Schema>> {
    let Some(text) = &arguments.schema else { return Ok(None) };
    let schema = schema_text::parse(text)?;
    match arguments.unknown.as_deref() {
        None | Some("error" | "ignore") => Ok(Some(schema)),
        Some(field) if schema.fields().iter().any(|known| known.name == field) => Ok(Some(schema)),
        Some(field) => {
            let field = field.replace('"', "\"\"");
            Ok(Some(schema_text::parse(&format!("{text}, \"{field}\" json"))?))
        }
    }
}

fn with_schema(
    arguments: &LoadArguments,
    options: ImportOptions,
    existing: Option<&Schema>,
) -> Result<ImportOptions> {
    let declared = declared(arguments)?;
    let has_key = !arguments.key.is_empty();
    match (existing, declared) {
        (Some(_), Some(_)) => {
            Err(Failure::usage("--schema: the table exists and keeps its schema; leave it out"))
        }
        (Some(_), None) if has_key => {
            Err(Failure::usage("--key: the table exists and keeps its key; leave it out"))
        }
        (Some(_), None) if !arguments.indexes.is_empty() => {
            Err(Failure::usage("--index: the table exists; `esker index` gives it an index"))
        }
        (Some(schema), None) => Ok(options.schema(schema.clone())),
        (None, Some(schema)) if !has_key => Ok(options.schema(schema).schema_names_columns()),
        (None, Some(_)) => {
            Err(Failure::usage("--key: give the key in --schema, as in `…, primary key (a, b)`"))
        }
        (None, None) => Ok(options.key(&arguments.key)),
    }
}

/// The schema of a table that is made, with the indexes that are requested.
pub(super) fn with_indexes(schema: &Schema, indexes: &[String]) -> Result<Schema> {
    let mut add = Vec::new();
    for text in indexes {
        add.push(Alteration::AddIndex(schema_text::parse_index(text)?));
    }
    let indexed = schema.alter(&add).map_err(|e| Failure::usage(format!("--index: {e}")))?;
    Ok(indexed.with_version(schema.version()))
}

/// Says which flag helps.
pub(super) fn with_advice(error: esker_import::Error) -> Failure {
    let reason = error.reason();
    let note = if reason.contains("expected a row, an object") {
        "; --format ndjson reads an object a line, --format json an array or object of objects, \
         --path $.rows rows within a document"
    } else if reason.contains("that the schema has not") {
        "; --unknown ignore leaves out what the schema does not name"
    } else if reason.contains("bytes from a pipe") {
        "; --spool-limit keeps more"
    } else if reason.contains("a name in UTF-8") {
        ENCODING
    } else {
        ""
    };
    Failure::from(error).with_note(note)
}
