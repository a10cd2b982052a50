//! The names of files as names of tables: `'x.csv'`, `read_csv('x.csv', delim => ';')`.

use std::fmt::{self, Display, Formatter};

/// How rows are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Fields with commas, or other delimiters, between them.
    Csv,
    /// Fields with tabs between them and a backslash before what is special, as `COPY` of
    /// PostgreSQL has it.
    Text,
    /// JSON objects in an array, or by their names.
    Json,
    /// A JSON object a line.
    Ndjson,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Csv, Self::Text, Self::Json, Self::Ndjson];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Text => "text",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
        }
    }
}

/// A file as a statement names it, and how it is to be read or written. As a text it is the name of
/// a table, which a query may read:
///
/// ```
/// use esker::{FileFormat, FileTable};
///
/// let file = FileTable::new("it's.csv").format(FileFormat::Csv).option("delim", ";");
/// let name = "read_csv('it''s.csv', delim => ';')";
/// assert_eq!(file.to_string(), name);
/// assert_eq!(FileTable::named(name), Some(file));
/// assert_eq!(FileTable::named("'x.csv'"), Some(FileTable::new("x.csv")));
/// assert_eq!(FileTable::named("people"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTable {
    /// Where it is.
    pub path: String,
    /// How its rows are written; `None` where its name tells.
    pub format: Option<FileFormat>,
    /// What else is said of it, in lower case, with its value.
    pub options: Vec<(String, String)>,
}

impl FileTable {
    /// A file whose name tells how it is written.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), format: None, options: Vec::new() }
    }

    /// The same, written so.
    #[must_use]
    pub fn format(self, format: FileFormat) -> Self {
        Self { format: Some(format), ..self }
    }

    /// The same with an option more.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// The file that a name of a table means; `None` for a name of another kind.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name.starts_with('\'') {
            let (path, rest) = quoted(name)?;
            return rest.is_empty().then(|| Self::new(path));
        }
        let rest = name.strip_prefix("read_")?;
        let (format, rest) = rest.split_once('(')?;
        let format = FileFormat::ALL.into_iter().find(|known| known.name() == format)?;
        let (path, mut rest) = quoted(rest)?;
        let mut file = Self::new(path).format(format);
        while let Some(more) = rest.strip_prefix(", ") {
            let (option, more) = more.split_once(" => ")?;
            let is_plain = option.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let (value, behind) = quoted(more).filter(|_| is_plain && !option.is_empty())?;
            file = file.option(option, value);
            rest = behind;
        }
        (rest == ")").then_some(file)
    }
}

/// A text in quotes, and what stands behind it.
pub(crate) fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (part, behind) = rest.split_once('\'')?;
        value.push_str(part);
        match behind.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None => return Some((value, behind)),
        }
    }
}

impl Display for FileTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let Some(format) = self.format else { return f.write_str(&text(&self.path)) };
        write!(f, "read_{}({}", format.name(), text(&self.path))?;
        for (name, value) in &self.options {
            write!(f, ", {name} => {}", text(value))?;
        }
        f.write_str(")")
    }
}
