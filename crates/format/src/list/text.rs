//! Lists as text: `{1,2,NULL,"a b"}`, and as arrays of JSON.

use std::fmt;

use super::{List, ListBuilder, ListElement};
use crate::json::{self, Json, Kind};
use crate::text::{parse_value, shown};
use crate::{Error, Result, Value, ValueRef};

/// Writes the list that has a stored form. Damage, which a checksum would have to miss first, is
/// written as such.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    const DAMAGED: &str = "<damaged>";
    let Ok(list) = List::of(bytes) else { return f.write_str(DAMAGED) };
    f.write_str("{")?;
    for (number, item) in list.items().enumerate() {
        f.write_str(if number == 0 { "" } else { "," })?;
        match item.and_then(|item| item.value(list.element)) {
            Ok(value) => write_item(f, value.as_ref())?,
            Err(_) => return f.write_str(DAMAGED),
        }
    }
    f.write_str("}")
}

fn write_item(f: &mut fmt::Formatter<'_>, value: ValueRef<'_>) -> fmt::Result {
    if value.is_null() {
        return f.write_str("NULL");
    }
    let text = value.to_string();
    let is_special = |c: char| matches!(c, '{' | '}' | '"' | ',' | '\\') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.contains(is_special) && !text.eq_ignore_ascii_case("null") {
        return f.write_str(&text);
    }
    f.write_str("\"")?;
    for piece in text.split_inclusive(['"', '\\']) {
        let end = piece.trim_end_matches(['"', '\\']);
        let (plain, mark) = piece.split_at(end.len());
        write!(f, "{plain}{}{mark}", if mark.is_empty() { "" } else { "\\" })?;
    }
    f.write_str("\"")
}

/// Reads a list as text: as it is printed, or as an array of JSON.
///
/// ```
/// use esker_format::list::{ListElement, parse};
///
/// let list = parse(r#"{1, NULL, "2"}"#, ListElement::I64)?;
/// assert_eq!(list, parse("[1, null, 2]", ListElement::I64)?);
/// assert_eq!(list.to_string(), "{1,NULL,2}");
/// let error = parse("{1,", ListElement::I64).unwrap_err();
/// assert_eq!(error.to_string(), "expected an item of a list at its byte 3, found the end");
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` with what was expected, and where.
pub fn parse(text: &str, element: ListElement) -> Result<Value> {
    let trimmed = text.trim();
    match trimmed.as_bytes().first() {
        Some(b'[') => from_json(Json::document(&json::parse(trimmed)?), element),
        Some(b'{') => Parser { text: trimmed, at: 1 }.read(element),
        _ => {
            let found = shown(text.as_bytes());
            Err(Error::invalid(format!("expected a list like {{1,2}} or [1,2], found {found}")))
        }
    }
}

/// An array of JSON as a list: numbers, strings, truth values and null, as a field of the type
/// takes them.
///
/// # Errors
/// `InvalidInput` with what was expected, and which item has something else.
pub fn from_json(document: Json<'_>, element: ListElement) -> Result<Value> {
    let Kind::Array(array) = document.kind() else {
        let found = document.to_string();
        let found = shown(found.as_bytes());
        return Err(Error::invalid(format!("expected an array like [1,2], found {found}")));
    };
    let mut list = ListBuilder::new(element);
    for (i, part) in array.iter().enumerate() {
        let pushed = item_of(part, element).and_then(|value| list.push(value.as_ref()));
        pushed.map_err(|e| e.at(format_args!("item {}", i + 1)))?;
    }
    Ok(list.finish())
}

fn item_of(part: Json<'_>, element: ListElement) -> Result<Value> {
    let data_type = element.data_type();
    let is_word = matches!(element, ListElement::Text | ListElement::Bytes);
    match part.kind() {
        Kind::Null => Ok(Value::Null),
        Kind::String(text) if element == ListElement::Text => Ok(Value::Text(text.to_owned())),
        Kind::String(text) => parse_value(text, data_type),
        Kind::Bool(value) if element == ListElement::Bool => Ok(Value::Bool(value)),
        Kind::Number(written) if data_type.is_numeric() && !is_word => {
            parse_value(written, data_type)
        }
        Kind::Array(_) => Err(Error::invalid("a list in a list: such a field is json")),
        _ => {
            let (expected, found) = (crate::text::expected(data_type), part.to_string());
            let found = shown(found.as_bytes());
            Err(Error::invalid(format!("expected {expected}, found {found}")))
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn read(mut self, element: ListElement) -> Result<Value> {
        let mut list = ListBuilder::new(element);
        self.skip_spaces();
        if self.take(b'}') {
            return self.end(list);
        }
        loop {
            let value = self.item(element)?;
            list.push(value.as_ref())?;
            self.skip_spaces();
            if self.take(b'}') {
                return self.end(list);
            }
            if !self.take(b',') {
                return Err(self.expected("',' or '}' behind an item of a list"));
            }
        }
    }

    fn end(mut self, list: ListBuilder) -> Result<Value> {
        self.skip_spaces();
        match self.rest().is_empty() {
            true => Ok(list.finish()),
            false => Err(self.expected("nothing behind the '}' of a list")),
        }
    }

    fn item(&mut self, element: ListElement) -> Result<Value> {
        self.skip_spaces();
        let start = self.at;
        let at = |e: Error| e.at(format_args!("the list's byte {start}"));
        match self.rest().first() {
            Some(b'"') => {
                let text = self.quoted()?;
                parse_value(&text, element.data_type()).map_err(at)
            }
            Some(b'{') => Err(Error::invalid(format!(
                "a list in a list at its byte {start}: such a field is json"
            ))),
            _ => {
                let from = self.at;
                let text = self.plain()?;
                // With a backslash in it, it is a text.
                let is_bare = self.text.get(from..self.at).is_some_and(|raw| !raw.contains('\\'));
                if is_bare && text.eq_ignore_ascii_case("null") {
                    return Ok(Value::Null);
                }
                parse_value(&text, element.data_type()).map_err(at)
            }
        }
    }

    /// What is written between quotes: a backslash stands before a character that is meant as it
    /// is.
    fn quoted(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.tail().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c => text.push(c),
            }
        }
        self.at = self.text.len();
        Err(self.expected("'\"' that ends an item of a list"))
    }

    /// What is written without quotes, without the spaces around it.
    fn plain(&mut self) -> Result<String> {
        let mut text = String::new();
        let (mut kept, mut end) = (0, self.text.len());
        let mut chars = self.tail().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                ',' | '}' | '{' | '"' => {
                    end = self.at + at;
                    break;
                }
                '\\' => {
                    text.extend(chars.next().map(|(_, c)| c));
                    kept = text.len();
                }
                c => {
                    text.push(c);
                    kept = if c.is_ascii_whitespace() { kept } else { text.len() };
                }
            }
        }
        text.truncate(kept);
        if text.is_empty() {
            return Err(self.expected("an item of a list"));
        }
        self.at = end;
        Ok(text)
    }

    fn tail(&self) -> &str {
        // default: it goes from one whole character to the next.
        self.text.get(self.at..).unwrap_or_default()
    }

    fn rest(&self) -> &[u8] {
        self.tail().as_bytes()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.rest().first() == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_spaces(&mut self) {
        let spaces = self.rest().iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += spaces;
    }

    fn expected(&self, what: &str) -> Error {
        let found = match self.tail().chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end".to_owned(),
        };
        Error::invalid(format!("expected {what} at its byte {}, found {found}", self.at))
    }
}
