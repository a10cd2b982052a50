//! How a file is written, by its name.

use std::path::{Path, PathBuf};

use crate::Format;

/// What the name of a file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedForm {
    /// How its rows are written.
    pub format: Format,
    /// Whether tabs are between its fields.
    pub has_tabs: bool,
    /// Whether it is compressed, or is to be.
    pub is_packed: bool,
}

impl NamedForm {
    /// Of a file; `None` for an ending that says nothing.
    ///
    /// ```
    /// use esker_import::{Format, NamedForm};
    ///
    /// let form = NamedForm::of("b/x.tsv.gz".as_ref()).expect("an ending that is known");
    /// assert_eq!((form.format, form.has_tabs, form.is_packed), (Format::Csv, true, true));
    /// assert!(NamedForm::of("x.dat".as_ref()).is_none());
    /// ```
    #[must_use]
    pub fn of(file: &Path) -> Option<Self> {
        let ending = |path: &Path| {
            path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase()
        };
        let is_packed = matches!(ending(file).as_str(), "gz" | "zst");
        let plain = match is_packed {
            true => file.file_stem().map(PathBuf::from).unwrap_or_default(),
            false => file.to_owned(),
        };
        let (format, has_tabs) = match ending(&plain).as_str() {
            "csv" => (Format::Csv, false),
            "tsv" | "tab" => (Format::Csv, true),
            "ndjson" | "jsonl" => (Format::Ndjson, false),
            "json" | "geojson" => (Format::Json, false),
            _ => return None,
        };
        Some(Self { format, has_tabs, is_packed })
    }
}
