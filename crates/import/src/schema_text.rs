//! Schemas as people write them:
//! `origin text not null, hour timestamp not null, temp f64, primary key (origin, hour)`.
//!
//! A text or bytes field may have a limit, `text(40)` or `varchar:40`: characters, or bytes.
//!
//! Names that are not plain words stand in double quotes, a quote inside doubled. White space,
//! line ends included, only separates. Fields may be NULL unless they say `not null` or belong to
//! the primary key. Indexes stand behind the fields, as `index by_hour (hour desc, origin)` or
//! `unique index by_mail (mail)`; also `trigram index parts (note)` and `bitmap index of (kind)`.
//! `stream (hour, retention '90 days')` makes the table a stream.

mod index;
mod stream;

use std::fmt::Write;

use esker_format::schema::{Index, IndexKind};
use esker_format::{DataType, Excerpt, Field, Labels, Schema, with_article};

use crate::{Error, Result};
pub use index::parse_index;

/// Writes a schema in one line; [`parse`] reads it back.
#[must_use]
pub fn write(schema: &Schema) -> String {
    parts(schema).join(", ")
}

/// The fields, the primary key, the stream and the indexes, each as a text; with commas between
/// them, [`parse`] reads them.
#[must_use]
pub fn parts(schema: &Schema) -> Vec<String> {
    let fields = schema.fields();
    let mut parts: Vec<String> = fields.iter().map(field_text).collect();
    let key = schema.key_positions().iter().filter_map(|p| fields.get(*p));
    let key: Vec<String> = key.map(|f| name_text(&f.name)).collect();
    if !key.is_empty() {
        parts.push(format!("primary key ({})", key.join(", ")));
    }
    parts.extend(stream::text(schema));
    parts.extend(plain_indexes(schema).map(|index| index::text(schema, index)));
    parts
}

/// The indexes that this text can describe: those on fields, of all rows. Others, like checks, need
/// a statement.
fn plain_indexes(schema: &Schema) -> impl Iterator<Item = &Index> {
    schema.row_indexes().filter(|index| !index.is_computed())
}

fn field_text(field: &Field) -> String {
    let not_null = if field.nullable { "" } else { " not null" };
    format!("{} {}{not_null}", name_text(&field.name), field.type_text())
}

fn name_text(name: &str) -> String {
    let mut text = name.to_owned();
    let plain = name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit());
    if !plain || name.is_empty() {
        text.clear();
        let _ = write!(text, "\"{}\"", name.replace('"', "\"\""));
    }
    text
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads a schema.
///
/// # Errors
/// `InvalidOptions` with the place in the text and what was expected there.
pub fn parse(text: &str) -> Result<Schema> {
    let mut parser = Parser { what: "schema", text, position: 0 };
    let (mut fields, mut key): (Vec<FieldText>, Vec<String>) = Default::default();
    let (mut indexes, mut stream) = (Vec::new(), None);
    loop {
        let start = parser.next_position();
        let name = parser.name("a field name or `primary key`")?;
        if name.eq_ignore_ascii_case("primary") && parser.take_word("key") {
            if !key.is_empty() {
                return Err(parser.error_at(start, "expected one primary key, found a second"));
            }
            key = parser.key_names()?;
        } else if name.eq_ignore_ascii_case("stream") && parser.is_next('(') {
            if stream.is_some() {
                return Err(parser.error_at(start, "expected one stream, found a second"));
            }
            stream = Some(parser.stream()?);
        } else if name.eq_ignore_ascii_case("unique") && parser.take_word("index") {
            let index = parser.index()?.ok_or_else(|| parser.unexpected("a unique index"))?;
            indexes.push(index.unique());
        } else if let Some(kind) = IndexKind::from_name(&name)
            && kind != IndexKind::Ordered
            && parser.take_word("index")
        {
            let expected = format!("{} index", with_article(kind.name()));
            let index = parser.index()?.ok_or_else(|| parser.unexpected(&expected))?;
            indexes.push(index.using(kind));
        } else if name.eq_ignore_ascii_case("index")
            && let Some(index) = parser.index()?
        {
            indexes.push(index);
        } else {
            let data_type = parser.data_type()?;
            let labels = if data_type == DataType::Enum { Some(parser.labels()?) } else { None };
            let length = parser.length(data_type)?;
            let not_null = parser.nullability()?;
            fields.push(FieldText { name, data_type, labels, length, not_null });
        }
        if parser.at_end() {
            break;
        }
        parser.expect(',', "`,` or the end")?;
    }
    let mut builder = Schema::builder();
    for FieldText { name, data_type, labels, length, not_null } in fields {
        let required = not_null || key.contains(&name);
        builder = match required {
            true => builder.field(name, data_type),
            false => builder.nullable(name, data_type),
        };
        builder = length.map_or(builder.clone(), |length| builder.max_length(length));
        builder = labels.map_or(builder.clone(), |labels| builder.labels(labels));
    }
    builder = indexes.into_iter().fold(builder, |builder, index| builder.add_index(index));
    if let Some(stream) = stream {
        builder = builder.stream(stream.time, stream.options);
    }
    builder.primary_key(key).build().map_err(|e| Error::options(format!("schema: {e}")))
}

struct FieldText {
    name: String,
    data_type: DataType,
    labels: Option<Labels>,
    length: Option<u32>,
    not_null: bool,
}

struct Parser<'a> {
    /// What the text is, as errors call it.
    what: &'static str,
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn next_position(&mut self) -> usize {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
        self.position
    }

    fn at_end(&mut self) -> bool {
        self.next_position() == self.text.len()
    }

    fn error_at(&self, position: usize, message: &str) -> Error {
        let before = self.text.get(..position).unwrap_or_default();
        let (line, last) = (before.matches('\n').count() + 1, before.rsplit('\n').next());
        let character = last.unwrap_or_default().chars().count() + 1;
        let place = if self.text.contains('\n') {
            format!("line {line}, character {character}")
        } else {
            format!("character {character}")
        };
        let error = Error::options(format!("{}, {place}: {message}", self.what));
        let length = self.text.get(position..).unwrap_or_default();
        let length = length.find(|c| !is_word(c)).unwrap_or(length.len());
        error.with_excerpt(Excerpt::of(self.text.as_bytes(), position, length))
    }

    fn unexpected(&mut self, expected: &str) -> Error {
        let position = self.next_position();
        let found = match self.rest().chars().next() {
            None => "the end".to_owned(),
            Some(c) if is_word(c) => format!("{:?}", self.word()),
            Some(c) => format!("`{c}`"),
        };
        self.error_at(position, &format!("expected {expected}, found {found}"))
    }

    fn expect(&mut self, character: char, expected: &str) -> Result<()> {
        self.next_position();
        if !self.rest().starts_with(character) {
            return Err(self.unexpected(expected));
        }
        self.position += character.len_utf8();
        Ok(())
    }

    /// The word ahead, not taken.
    fn word(&mut self) -> &'a str {
        self.next_position();
        let rest = self.rest();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let word = self.word();
        let found = word.eq_ignore_ascii_case(wanted);
        if found {
            self.position += word.len();
        }
        found
    }

    fn name(&mut self, expected: &str) -> Result<String> {
        self.word_or_quoted(expected, false)
    }

    /// A plain word, or anything in quotes: double ones, or, for a label, single ones too.
    fn word_or_quoted(&mut self, expected: &str, is_label: bool) -> Result<String> {
        let start = self.next_position();
        let quote = self.rest().chars().next().filter(|c| *c == '"' || is_label && *c == '\'');
        let Some(quote) = quote else {
            let word = self.word();
            if word.is_empty() {
                return Err(self.unexpected(expected));
            }
            self.position += word.len();
            return Ok(word.to_owned());
        };
        let mut name = String::new();
        let mut characters = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = characters.next() {
            let doubled = c == quote && characters.next_if(|(_, next)| *next == quote).is_some();
            if c == quote && !doubled {
                self.position = start + at + 1;
                return Ok(name);
            }
            name.push(c);
        }
        Err(self.error_at(start, "a quoted name starts here and is never closed"))
    }

    /// The labels of an enum, `(red, 'dark green')`.
    fn labels(&mut self) -> Result<Labels> {
        let start = self.next_position();
        self.expect('(', "the labels of the enum, like (red, green)")?;
        let mut labels = Vec::new();
        loop {
            self.next_position();
            labels.push(self.word_or_quoted("a label", true)?);
            self.next_position();
            if self.rest().starts_with(')') {
                self.position += 1;
                return Labels::new(labels).map_err(|e| self.error_at(start, &e.to_string()));
            }
            self.expect(',', "`,` or `)`")?;
        }
    }

    fn key_names(&mut self) -> Result<Vec<String>> {
        self.expect('(', "`(`")?;
        let mut names = vec![self.name("a field name")?];
        loop {
            self.next_position();
            if self.rest().starts_with(')') {
                self.position += 1;
                return Ok(names);
            }
            self.expect(',', "`,` or `)`")?;
            names.push(self.name("a field name")?);
        }
    }

    fn data_type(&mut self) -> Result<DataType> {
        let start = self.next_position();
        let word = self.word();
        if word.is_empty() {
            return Err(self.unexpected("a type"));
        }
        let digits = if DataType::is_decimal_name(word) { self.digits(word.len()) } else { 0 };
        let mut end = start + word.len() + digits;
        let behind = self.text.get(end..).unwrap_or_default();
        // A list: each pair of brackets is part of the type.
        let brackets = behind.len() - behind.trim_start_matches(['[', ']']).len();
        end += brackets;
        let found = self.text.get(start..end).unwrap_or_default().parse::<DataType>();
        let data_type = found.map_err(|e| self.error_at(start, &e.to_string()))?;
        self.position = end;
        Ok(data_type)
    }

    /// The length of a decimal's digits, `(12, 2)` or `:12,2`, behind its name.
    fn digits(&self, name: usize) -> usize {
        let rest = self.rest().get(name..).unwrap_or_default();
        if rest.trim_start().starts_with('(') {
            return rest.find(')').map_or(rest.len(), |end| end + 1);
        }
        let Some(numbers) = rest.strip_prefix(':') else { return 0 };
        let count =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let precision = count(numbers);
        let scale = match numbers.get(precision..).and_then(|rest| rest.strip_prefix(',')) {
            Some(rest) if count(rest) > 0 => 1 + count(rest),
            _ => 0,
        };
        1 + precision + scale
    }

    /// The most characters or bytes, as `(40)` or `:40` behind the type.
    fn length(&mut self, data_type: DataType) -> Result<Option<u32>> {
        let start = self.next_position();
        let in_parentheses = self.rest().starts_with('(');
        if !in_parentheses && !self.rest().starts_with(':') {
            return Ok(None);
        }
        if !matches!(data_type, DataType::Text | DataType::Bytes) {
            let message = format!("text and bytes have a length, {data_type} has none");
            return Err(self.error_at(start, &message));
        }
        self.position += 1;
        let word = self.word();
        let length = word.parse().ok().filter(|length| *length > 0);
        let length =
            length.ok_or_else(|| self.unexpected(&format!("a length of 1 to {}", u32::MAX)))?;
        self.position += word.len();
        if in_parentheses {
            self.expect(')', "`)`")?;
        }
        Ok(Some(length))
    }

    fn nullability(&mut self) -> Result<bool> {
        if self.take_word("null") {
            return Ok(false);
        }
        if !self.take_word("not") {
            return Ok(false);
        }
        if self.take_word("null") { Ok(true) } else { Err(self.unexpected("`null`")) }
    }
}

#[cfg(test)]
mod tests;
