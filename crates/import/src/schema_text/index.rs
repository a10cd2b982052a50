//! Indexes as people write them: `by_city (city, age desc)`, or only `city, age desc`.

use std::fmt::Write;

use esker_format::schema::{Index, IndexKind, NewIndex};
use esker_format::{DataType, Schema};

use super::{Parser, is_word, name_text};
use crate::Result;

/// Reads an index: its name and its fields, or paths, in parentheses, or only its fields, after
/// which it is named then; with `unique` before, no two rows have the same values, with `trigram`
/// it finds parts of a text, with `bitmap` it has the rows of each value.
///
/// ```
/// use esker_import::schema_text::parse_index;
///
/// let index = parse_index("city, age desc")?;
/// assert_eq!(index, parse_index("by_city_age (city, age desc)")?);
/// assert!(index.fields[1].1);
/// assert_eq!(parse_index("unique city, age desc")?, index.unique());
/// assert_eq!(parse_index("doc.customer.city")?.name, "by_doc_customer_city");
/// # Ok::<(), esker_import::Error>(())
/// ```
///
/// # Errors
/// `InvalidOptions` with the place in the text and what was expected there.
pub fn parse_index(text: &str) -> Result<NewIndex> {
    let mut parser = Parser { what: "index", text, position: 0 };
    let unique = parser.takes_before_name("unique");
    let kinds = [IndexKind::Trigram, IndexKind::Bitmap];
    let kind = kinds.into_iter().find(|k| !unique && parser.takes_before_name(k.name()));
    let start = parser.position;
    let name = parser.name("a field name")?;
    let index = if parser.is_next('(') {
        NewIndex { name, ..NewIndex::on(parser.index_fields()?) }
    } else {
        parser.position = start;
        let mut fields = vec![parser.index_field()?];
        while !parser.at_end() {
            parser.expect(',', "`,` or the end")?;
            fields.push(parser.index_field()?);
        }
        NewIndex::on(fields)
    };
    let index = NewIndex { unique, kind: kind.unwrap_or_default(), ..index };
    if parser.at_end() { Ok(index) } else { Err(parser.unexpected("the end")) }
}

/// An index as [`super::parse`] reads it.
pub(super) fn text(schema: &Schema, index: &Index) -> String {
    let mut text = String::from(match (index.unique, index.kind) {
        (true, _) => "unique index ",
        (false, IndexKind::Trigram) => "trigram index ",
        (false, IndexKind::Bitmap) => "bitmap index ",
        (false, IndexKind::Ordered | IndexKind::Rollup) => "index ",
    });
    if is_type(&index.name) {
        let _ = write!(text, "\"{}\" (", index.name);
    } else {
        let _ = write!(text, "{} (", name_text(&index.name));
    }
    for (i, field) in index.fields.iter().enumerate() {
        let name = schema.field_of(field.field).map_or("", |field| field.name.as_str());
        let comma = if i > 0 { ", " } else { "" };
        let order = if field.descending { " desc" } else { "" };
        let steps = field.path.iter().map(|step| format!(".{}", name_text(step)));
        let path = steps.collect::<String>();
        let _ = write!(text, "{comma}{}{path}{order}", name_text(name));
    }
    text.push(')');
    text
}

/// A field called `index` may have it, and parentheses behind it.
fn is_type(word: &str) -> bool {
    DataType::is_decimal_name(word) || word.parse::<DataType>().is_ok()
}

impl Parser<'_> {
    /// What stands behind the word `index`; nothing is taken where that is the name of a field.
    pub(super) fn index(&mut self) -> Result<Option<NewIndex>> {
        if self.is_next('(') {
            return Ok(Some(NewIndex::on(self.index_fields()?)));
        }
        let start = self.next_position();
        let is_name = self.rest().starts_with(|c| is_word(c) || c == '"') && !is_type(self.word());
        let name = if is_name { self.name("the name of an index")? } else { String::new() };
        if !is_name || !self.is_next('(') {
            self.position = start;
            return Ok(None);
        }
        Ok(Some(NewIndex { name, ..NewIndex::on(self.index_fields()?) }))
    }

    /// Takes a word, unless it is the name of a field or an index.
    fn takes_before_name(&mut self, word: &str) -> bool {
        let start = self.next_position();
        let found = self.take_word(word);
        self.next_position();
        let has_name = self.rest().starts_with(|c| is_word(c) || c == '"')
            && !["asc", "desc"].iter().any(|order| self.word().eq_ignore_ascii_case(order));
        if !(found && has_name) {
            self.position = start;
        }
        found && has_name
    }

    pub(super) fn is_next(&mut self, character: char) -> bool {
        self.next_position();
        self.rest().starts_with(character)
    }

    fn index_fields(&mut self) -> Result<Vec<(String, bool)>> {
        self.expect('(', "`(`")?;
        let mut fields = vec![self.index_field()?];
        while !self.is_next(')') {
            self.expect(',', "`,` or `)`")?;
            fields.push(self.index_field()?);
        }
        self.position += 1;
        Ok(fields)
    }

    fn index_field(&mut self) -> Result<(String, bool)> {
        let mut name = self.name("a field name")?;
        while self.rest().starts_with('.') {
            self.position += 1;
            let step = self.name("a name within the field")?;
            if step.contains('.') {
                return Err(self.unexpected("a name without points behind a field's"));
            }
            name = format!("{name}.{step}");
        }
        let descending = !self.take_word("asc") && self.take_word("desc");
        Ok((name, descending))
    }
}
