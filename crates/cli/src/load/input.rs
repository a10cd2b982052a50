//! Which files are loaded, and how they are read.

use std::path::{Path, PathBuf};

use esker::{Alteration, Schema};
use esker_import::{Format, ImportOptions, ImportReader, schema_text};
use esker_vfs::Environment;

use crate::arguments::{InputFormat, LoadArguments};
use crate::failure::{Failure, Result};

/// The name of standard input.
const STDIN: &str = "-";

/// Opens the files of a load.
pub(super) fn open(
    environment: &Environment,
    arguments: &LoadArguments,
    existing: Option<&Schema>,
) -> Result<ImportReader> {
    let options = options(arguments, existing)?;
    let files = &arguments.files;
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
fn format(arguments: &LoadArguments) -> Result<InputFormat> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let mut formats = arguments.files.iter().map(|file| (file, format_of(file)));
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
    let plain = match file.extension().and_then(|e| e.to_str()) {
        Some("gz" | "zst") => file.file_stem().map(PathBuf::from).unwrap_or_default(),
        _ => file.to_owned(),
    };
    let extension = plain.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "tsv" => InputFormat::Tsv,
        "ndjson" | "jsonl" => InputFormat::Ndjson,
        "json" => InputFormat::Json,
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

fn options(arguments: &LoadArguments, existing: Option<&Schema>) -> Result<ImportOptions> {
    let format = format(arguments)?;
    let delimiter = match &arguments.delimiter {
        Some(text) => character("delimiter", text)?,
        None if format == InputFormat::Tsv => b'\t',
        None => b',',
    };
    let quote = match arguments.quote.as_str() {
        "none" | "" => None,
        text => Some(character("quote", text)?),
    };
    let escape = arguments.escape.as_deref().map(|text| character("escape", text)).transpose()?;
    let format = match format {
        InputFormat::Csv | InputFormat::Tsv => Format::Csv,
        InputFormat::Ndjson => Format::Ndjson,
        InputFormat::Json => Format::Json,
    };
    let mut options = ImportOptions::default()
        .format(format)
        .delimiter(delimiter)
        .quote(quote)
        .escape(escape)
        .header(!arguments.no_header);
    if !arguments.nulls.is_empty() {
        options = options.nulls(&arguments.nulls);
    }
    let declared = arguments.schema.as_deref().map(schema_text::parse).transpose()?;
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
        (None, Some(schema)) if !has_key => Ok(options.schema(schema)),
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
fn with_advice(error: esker_import::Error) -> Failure {
    let reason = error.reason();
    let note = if reason.contains("bad name for column") {
        "; --no-header takes the first line as a row"
    } else if reason.contains("expected a row, an object") {
        "; --format ndjson reads an object a line, --format json an array or object of objects"
    } else {
        ""
    };
    Failure::from(error).with_note(note)
}
