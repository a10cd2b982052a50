//! What is wrong with a record, in words.

use esker_format::suggest::near_or_all;
use esker_format::text::shown;

use crate::Error;
use crate::chunk::Layout;
use crate::options::Unknown;
use crate::tokenizer::{self, Fault, FaultKind};

/// The error of a record that is not one.
pub(crate) fn fault_error(layout: &Layout, bytes: &[u8], fault: Fault) -> Error {
    let names = || layout.columns.iter().map(String::as_str);
    match fault.kind {
        FaultKind::UnknownField(length) => {
            let name = bytes.get(fault.position..fault.position + length).unwrap_or_default();
            let name = crate::json::unescaped(name.get(1..length - 1).unwrap_or_default());
            let name = String::from_utf8_lossy(&name.unwrap_or_default()).into_owned();
            let near = near_or_all(&name, "fields", names());
            let message = format!("unknown field {}{near}", shown(name.as_bytes()));
            let error = Error::data(message).at(bytes, fault.position, length);
            let error =
                if layout.unknown == Unknown::Infer { error.contradicting() } else { error };
            error.against_types(&layout.note)
        }
        FaultKind::Twice(field) => {
            let name = layout.columns.get(field).map_or("", String::as_str);
            let message = "the row has the field twice, with different values or as its key";
            let message = if layout.key == Some(field) { message } else { "the row has it twice" };
            Error::data(message).at(bytes, fault.position, name.len() + 2).in_field(name)
        }
        _ => record_error(&layout.columns, bytes, fault),
    }
}

/// The same, for a file whose columns have the given names.
pub(crate) fn record_error(columns: &[String], bytes: &[u8], fault: Fault) -> Error {
    let line = tokenizer::lines_before(bytes, fault.position) + 1;
    let error = match fault.kind {
        FaultKind::FieldCount(found) => {
            let expected = columns.len();
            let fields = if expected == 1 { "field" } else { "fields" };
            let mut message = format!("expected {expected} {fields}, found {found}");
            if let Some(name) = columns.get(found) {
                message.push_str(&format!(": nothing for column {} {name:?}", found + 1));
            }
            Error::data(message)
        }
        FaultKind::Unclosed => Error::data("a quoted field starts here and is never closed"),
        FaultKind::AfterQuote => {
            let rest = bytes.get(fault.position..).unwrap_or_default();
            let start = tokenizer::line_start(bytes, fault.position);
            let column = fault.position - start + 1;
            let found = shown(rest.split(|b| *b == b'\n').next().unwrap_or_default());
            Error::data(format!(
                "expected a delimiter or the end of the line after a closing quote, \
                 found {found} at byte {column} of the line"
            ))
        }
        FaultKind::Expected(what) => {
            let (found, length) = found_in_json(bytes, fault.position);
            let message = format!("expected {what}, found {found}");
            return Error::data(message).at(bytes, fault.position, length);
        }
        FaultKind::UnknownField(_) | FaultKind::Twice(_) => Error::data("a bad row"),
    };
    error.on_line(line)
}

/// What stands in the way, in words, and its length: a word or a character, which no cut of the
/// file divides.
fn found_in_json(bytes: &[u8], position: usize) -> (String, usize) {
    let rest = bytes.get(position..).unwrap_or_default();
    let word = rest.iter().take(40).take_while(|b| b.is_ascii_alphanumeric()).count();
    match rest.first() {
        None => ("the end of the file".to_owned(), 1),
        Some(b'\n' | b'\r') => ("the end of the line".to_owned(), 1),
        Some(_) if word > 0 => {
            (format!("`{}`", String::from_utf8_lossy(rest.get(..word).unwrap_or_default())), word)
        }
        Some(byte) if byte.is_ascii_graphic() => (format!("`{}`", char::from(*byte)), 1),
        Some(byte) if byte.is_ascii() => (format!("the byte {byte:#04x}"), 1),
        Some(_) => {
            let start = rest.get(..rest.len().min(4)).unwrap_or_default();
            let text = String::from_utf8_lossy(start);
            (format!("`{}`", text.chars().next().unwrap_or('\u{fffd}')), 1)
        }
    }
}
