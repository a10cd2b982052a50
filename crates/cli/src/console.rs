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
}

impl Console<'_> {
    /// How wide a table may be.
    pub(crate) fn width(&self) -> Option<usize> {
        self.size.map(|(columns, _)| columns)
    }
}
