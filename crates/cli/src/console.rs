//! Where output goes.

use std::io::Write;

/// The two output streams.
pub struct Console<'a> {
    /// Answers.
    pub out: &'a mut dyn Write,
    /// Errors and timings.
    pub err: &'a mut dyn Write,
    /// Whether a person reads `out`: answers are tables then, unless configured otherwise.
    pub is_terminal: bool,
    /// How many columns and lines the terminal has, where there is one.
    pub size: Option<(usize, usize)>,
    /// Whether headers, NULL and the word `error` are coloured.
    pub colors: bool,
    /// Whether `out` and `err` are one place, which keeps the order of what is written.
    pub is_merged: bool,
}

impl Console<'_> {
    /// How wide a table may be.
    pub(crate) fn width(&self) -> Option<usize> {
        self.size.map(|(columns, _)| columns)
    }

    /// Writes what was answered, before something is said about it on `err`.
    pub(crate) fn flush_before_note(&mut self) -> std::io::Result<()> {
        if self.is_merged { Ok(()) } else { self.out.flush() }
    }

    /// The word that errors begin with.
    pub(crate) fn error_word(&self) -> &'static str {
        if self.colors { "\x1b[1;31merror:\x1b[0m" } else { "error:" }
    }
}
