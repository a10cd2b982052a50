//! What makes a table a stream, as people write it: `stream (t, late '1 day', rest 'extra')`.

use esker_format::Schema;
use esker_format::schema::StreamOption;

use super::{Parser, name_text};
use crate::Result;

/// The time of a stream, and what else is said of it.
pub(super) struct StreamText {
    pub time: String,
    pub options: Vec<StreamOption>,
}

/// A stream as [`super::parse`] reads it; `None` for other tables.
pub(super) fn text(schema: &Schema) -> Option<String> {
    // A schema has the fields that its stream names.
    let options = schema.stream_options().ok()?;
    let (_, time) = options.first()?;
    let others = options.iter().skip(1);
    let others = others.map(|(name, value)| format!(", {name} '{}'", value.replace('\'', "''")));
    Some(format!("stream ({}{})", name_text(time), others.collect::<String>()))
}

impl Parser<'_> {
    /// What follows the word `stream`.
    pub(super) fn stream(&mut self) -> Result<StreamText> {
        self.expect('(', "`(`")?;
        let time = self.name("the field of the times")?;
        let mut options = Vec::new();
        loop {
            self.next_position();
            if self.rest().starts_with(')') {
                self.position += 1;
                return Ok(StreamText { time, options });
            }
            self.expect(',', "`,` or `)`")?;
            let start = self.next_position();
            let name = self.name("an option, such as late or retention")?;
            let value = self.word_or_quoted("a text in quotes", true)?;
            let option = StreamOption::read(&name, Some(&value));
            options.push(option.map_err(|e| self.error_at(start, &e.to_string()))?);
        }
    }
}
