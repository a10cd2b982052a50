//! How to read a file.

use std::path::PathBuf;
use std::sync::Arc;

use esker_format::Schema;
use esker_format::json::{self, Step};

use crate::date_format::{DateFormat, Dates};
use crate::dialect::{Csv, Dialect};
use crate::inference::Survey;
use crate::kinds::Notation;
use crate::sniff::Wanted;
use crate::{Error, Result};

/// What a chunk takes with the values that it becomes, over its text, for short numbers.
pub(crate) const CHUNK_FACTOR: usize = 5;
/// Chunks get no smaller for want of memory, and the first has no more.
pub(crate) const CHUNK_BYTES_MIN: usize = 64 << 10;

/// How rows are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// Fields with commas, or other delimiters, between them.
    #[default]
    Csv,
    /// A JSON object a line.
    Ndjson,
    /// A JSON array of objects; or a JSON object whose members are the rows, by their keys.
    Json,
}

/// What becomes of a member of a JSON row, or of a column of CSV, that the schema does not name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Unknown {
    /// It is an error.
    #[default]
    Error,
    /// It is left out.
    Ignore,
    /// This field of type json takes all of a row's as an object; of CSV, as strings.
    Field(String),
    /// It becomes a field of the type that inference proposes from all rows, behind those of the
    /// schema. Of what can be read once only, and is longer than what memory keeps, it is an error.
    Infer,
}

/// How to read a file. [`ImportOptions::default`] expects CSV with a header, commas, and an empty
/// field for NULL, and infers the types.
///
/// The dialect of CSV: records end with LF or CRLF; a field that starts with `"` ends with the
/// next `"` that is not doubled, may hold delimiters and line ends, and is never NULL; a `"`
/// further inside a field stands for itself. Empty lines are skipped, unless the file has one
/// column only. The text is UTF-8, with or without a byte order mark.
///
/// Of JSON: RFC 8259, no more. The members of a row are its fields, in any order; a field that a
/// row has not is NULL. Numbers are taken digit by digit, never through a double, and may be
/// written as strings; what is not a number, true or false is written as a string, as in CSV.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    pub(crate) format: Format,
    pub(crate) delimiter: u8,
    pub(crate) quote: Option<u8>,
    pub(crate) escape: Option<u8>,
    pub(crate) header: bool,
    pub(crate) nulls: Vec<String>,
    pub(crate) schema: Option<Schema>,
    pub(crate) key: Vec<String>,
    pub(crate) chunk_bytes: usize,
    pub(crate) whole_bytes_max: usize,
    pub(crate) sample_rows: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) sniffs: Wanted,
    pub(crate) finds_rows: bool,
    pub(crate) comment: Option<u8>,
    pub(crate) skip: u64,
    pub(crate) columns: Vec<String>,
    pub(crate) names_columns: bool,
    pub(crate) strict: bool,
    pub(crate) decimal_comma: bool,
    pub(crate) dates: Dates,
    pub(crate) spellings: bool,
    pub(crate) unknown: Unknown,
    pub(crate) path: Vec<Step>,
    pub(crate) passes_over: bool,
    pub(crate) spool_directory: PathBuf,
    pub(crate) spool_bytes_max: u64,
    /// What was seen in all rows of all files, once that is known.
    pub(crate) survey: Option<Arc<Survey>>,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            format: Format::Csv,
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            header: true,
            nulls: vec![String::new()],
            schema: None,
            key: Vec::new(),
            chunk_bytes: 4 << 20,
            whole_bytes_max: 64 << 20,
            sample_rows: 100_000,
            memory_bytes: 512 << 20,
            sniffs: Wanted::default(),
            finds_rows: false,
            comment: None,
            skip: 0,
            columns: Vec::new(),
            names_columns: false,
            strict: false,
            decimal_comma: false,
            dates: Dates::default(),
            spellings: false,
            unknown: Unknown::Error,
            path: Vec::new(),
            passes_over: false,
            spool_directory: std::env::temp_dir(),
            spool_bytes_max: 64 << 30,
            survey: None,
        }
    }
}

impl ImportOptions {
    /// How rows are written. What is said of fields and lines below is for CSV.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// What stands around fields that hold delimiters or line ends, a double quote unless set;
    /// `None`: nothing does.
    #[must_use]
    pub fn quote(mut self, quote: Option<u8>) -> Self {
        self.quote = quote;
        self
    }

    /// What makes the next byte of a quoted field stand for itself, such as a backslash. Unless
    /// set, a quote within quotes is doubled.
    #[must_use]
    pub fn escape(mut self, escape: Option<u8>) -> Self {
        self.escape = escape;
        self
    }

    /// The byte between fields: any ASCII character except quotes, line ends and NUL.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Whether the first record names the columns. Without a header, columns are matched to the
    /// fields of the schema in order, or named `column1`, `column2`, ….
    #[must_use]
    pub fn header(mut self, header: bool) -> Self {
        self.header = header;
        self
    }

    /// The spellings of NULL, in place of the empty field. They count as NULL in every column,
    /// and only without quotes.
    #[must_use]
    pub fn nulls<S: Into<String>>(mut self, spellings: impl IntoIterator<Item = S>) -> Self {
        self.nulls = spellings.into_iter().map(Into::into).collect();
        self
    }

    /// The fields the file must have, in place of inference. With a header, columns are matched
    /// by name and may stand in another order.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        let rest = schema.rest_position().and_then(|at| schema.fields().get(at));
        if let (Some(rest), Unknown::Error) = (rest, &self.unknown) {
            self.unknown = Unknown::Field(rest.name.clone());
        }
        self.schema = Some(schema);
        self
    }

    /// The primary key of an inferred schema, by field name. Ignored when a schema is given.
    #[must_use]
    pub fn key<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.key = names.into_iter().map(Into::into).collect();
        self
    }

    /// About how many bytes one worker parses at a time; records are never cut. 4 MiB unless set.
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.chunk_bytes = bytes.clamp(1, 256 << 20);
        self
    }

    /// The types of files up to this many bytes (uncompressed) are inferred from all rows at once;
    /// those of longer files from a sample first, see [`ImportReader::again`].
    /// 64 MiB unless set; files are held in memory up to it.
    ///
    /// [`ImportReader::again`]: crate::ImportReader::again
    #[must_use]
    pub fn whole_bytes_max(mut self, bytes: usize) -> Self {
        self.whole_bytes_max = bytes;
        self
    }

    /// How many rows at the start of a long file its types are inferred from, at least. 100,000
    /// unless set.
    #[must_use]
    pub fn sample_rows(mut self, rows: u64) -> Self {
        self.sample_rows = rows;
        self
    }

    /// About how much memory reading may take, in bytes: chunks and what is kept for inference get
    /// smaller with it, down to 64 KiB a chunk, and a record of more than half of it is refused.
    /// 512 MiB unless set. [`ImportReader::memory_bytes`](crate::ImportReader::memory_bytes) tells
    /// what it comes to.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// The delimiter of CSV is found out from a sample of the file; the one that is set is the
    /// usual one.
    #[must_use]
    pub fn sniff_delimiter(mut self) -> Self {
        self.sniffs.delimiter = true;
        self
    }

    /// The quote and the escape of CSV are found out from a sample of the file.
    #[must_use]
    pub fn sniff_quote(mut self) -> Self {
        self.sniffs.quote = true;
        self
    }

    /// Lines of CSV that begin with `#` are comments where the file begins with one, unless they
    /// have as many fields as a row.
    #[must_use]
    pub fn sniff_comment(mut self) -> Self {
        self.sniffs.comment = true;
        self
    }

    /// Whether the first record of CSV names the columns, and whether titles stand before it, is
    /// found out from a sample of the file.
    #[must_use]
    pub fn sniff_header(mut self) -> Self {
        self.sniffs.header = true;
        self
    }

    /// Where the rows of a JSON file are is found out: in an array, one a line, the members of an
    /// object, or one object that is a row.
    #[must_use]
    pub fn find_rows(mut self) -> Self {
        self.finds_rows = true;
        self
    }

    /// Lines of CSV that begin with this byte are comments.
    #[must_use]
    pub fn comment(mut self, start: Option<u8>) -> Self {
        self.comment = start;
        self
    }

    /// How many lines at the start of a file are passed over, whatever is in them.
    #[must_use]
    pub fn skip(mut self, lines: u64) -> Self {
        self.skip = lines;
        self
    }

    /// The names of the columns of CSV, in place of those in the header if there is one.
    #[must_use]
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// A schema with as many fields as a file of CSV has columns names these, where their own names
    /// are others.
    #[must_use]
    pub fn schema_names_columns(mut self) -> Self {
        self.names_columns = true;
        self
    }

    /// Fields that have a value in all rows are inferred to be not null.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Whether a comma stands before the fraction of a number in CSV.
    #[must_use]
    pub fn decimal_comma(mut self, comma: bool) -> Self {
        self.decimal_comma = comma;
        self
    }

    /// How dates and timestamps may be written, beside the usual way.
    #[must_use]
    pub fn date_formats(mut self, formats: impl IntoIterator<Item = DateFormat>) -> Self {
        self.dates = Dates(formats.into_iter().collect());
        self
    }

    /// A text field takes numbers, true and false of JSON as they are written.
    #[must_use]
    pub fn spellings(mut self) -> Self {
        self.spellings = true;
        self
    }

    /// Whether there is a schema, of some fields, and inference adds others.
    pub(crate) fn infers_rest(&self) -> bool {
        self.schema.is_some() && self.unknown == Unknown::Infer
    }

    /// What becomes of what the schema does not name.
    #[must_use]
    pub fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// The rows of a JSON file are the elements of the array, or the members of the object, at a
    /// path such as `$.features`.
    ///
    /// # Errors
    /// `InvalidOptions` when it is no path.
    pub fn path(mut self, path: &str) -> Result<Self> {
        self.path = json::parse_path(path).map_err(|e| Error::options(format!("path: {e}")))?;
        Ok(self)
    }

    /// Inference passes over rows that are none, which
    /// [`read_or_reject`](crate::ImportReader::read_or_reject) then rejects.
    #[must_use]
    pub fn pass_over(mut self, passes_over: bool) -> Self {
        self.passes_over = passes_over;
        self
    }

    /// Where the bytes of a pipe are kept whose types are inferred, when they are more than memory
    /// has room for, and at most how many: the directory for temporary files, and 64 GiB, unless
    /// set.
    #[must_use]
    pub fn spool(mut self, directory: impl Into<PathBuf>, bytes_max: u64) -> Self {
        self.spool_directory = directory.into();
        self.spool_bytes_max = bytes_max;
        self
    }

    /// How CSV is written, as far as that is given.
    pub(crate) fn csv(&self) -> Csv {
        let escape = self.escape.filter(|escape| self.quote != Some(*escape));
        Csv { delimiter: self.delimiter, quote: self.quote, escape }
    }

    pub(crate) fn notation(&self) -> Notation {
        let decimal_comma = self.decimal_comma && self.format == Format::Csv;
        Notation { decimal_comma, dates: self.dates.clone() }
    }

    /// Fits the sizes of chunks, and of what is kept, to the memory there is for that.
    pub(crate) fn fit_memory(&mut self, chunks: usize) {
        let most = usize::try_from(self.memory_bytes).unwrap_or(usize::MAX);
        self.whole_bytes_max = self.whole_bytes_max.min(most / 2);
        let chunk = most / 2 / CHUNK_FACTOR / chunks.max(1);
        self.chunk_bytes = self.chunk_bytes.min(chunk.max(CHUNK_BYTES_MIN));
    }

    /// The dialect; that of JSON files is known once they are open.
    pub(crate) fn dialect(&self) -> Dialect {
        match self.format {
            Format::Csv => Dialect::Csv(self.csv()),
            Format::Ndjson => Dialect::Lines,
            Format::Json => Dialect::Array,
        }
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.format != Format::Csv {
            return Ok(());
        }
        if !self.path.is_empty() {
            return Err(Error::options("a path leads into a file of JSON; this is one of CSV"));
        }
        let delimiter = char::from(self.delimiter);
        let is_plain = |byte: u8| byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'\0');
        let marks = [self.quote, self.csv().escape, self.comment];
        if !is_plain(self.delimiter) || marks.contains(&Some(self.delimiter)) {
            return Err(Error::options(format!(
                "the delimiter is one ASCII character other than a quote, a line end or NUL, \
                 found {delimiter:?}"
            )));
        }
        if let Some(mark) = marks.into_iter().flatten().find(|mark| !is_plain(*mark)) {
            return Err(Error::options(format!(
                "a quote or escape is one ASCII character other than a line end or NUL, \
                 found {:?}",
                char::from(mark)
            )));
        }
        if self.escape.is_some() && self.quote.is_none() {
            return Err(Error::options("an escape counts within quotes, and there are none"));
        }
        let quote = self.quote.map_or(delimiter, char::from);
        for spelling in &self.nulls {
            if spelling.contains(['\n', '\r', quote, delimiter]) {
                return Err(Error::options(format!(
                    "a spelling of NULL has no quote, line end or delimiter, found {spelling:?}"
                )));
            }
        }
        Ok(())
    }
}
