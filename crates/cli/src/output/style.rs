//! How tables look.

/// What is chosen about tables: by the command line, and by `\\pset` in the shell.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// The most characters of a line.
    pub(crate) width: Option<usize>,
    /// What stands for NULL.
    pub(crate) null: String,
    /// Whether columns have their types below their names.
    pub(crate) types: bool,
    /// Whether each row is a table of names and values.
    pub(crate) expanded: bool,
    /// Whether the number of rows is said below them.
    pub(crate) counts: bool,
    /// The most rows shown.
    pub(crate) rows_max: usize,
    /// What shows the others.
    pub(crate) rest: &'static str,
    /// Whether headers and NULL are coloured.
    pub(crate) colors: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: None,
            null: "NULL".to_owned(),
            types: false,
            expanded: false,
            counts: false,
            rows_max: 1_000,
            rest: "--format csv or json shows all",
            colors: false,
        }
    }
}
