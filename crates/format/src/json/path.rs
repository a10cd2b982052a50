//! Paths as texts: `$.items[0]."unit price"`.
//!
//! A path is a `$`, the document, and steps into it: `.name`, `."any name"` with the escapes of a
//! JSON string, `[0]` for the first element of an array, `[-1]` or `[#-1]` for the last.

use std::borrow::Cow;
use std::fmt;

use super::{Json, parse, string};
use crate::{Error, Result};

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The member of an object.
    Name(String),
    /// The element of an array, from 0, or from -1 for the last.
    Place(i64),
    /// The member of that name in an object, the element at that place in an array. No path
    /// written as a text has one: it is what a name stands for where it alone names a part.
    Part(String),
}

/// A step as error messages have it: `"name"`, `[0]`.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) | Self::Part(name) => write!(f, "{name:?}"),
            Self::Place(place) => write!(f, "[{place}]"),
        }
    }
}

/// True for a text that is a path where names are taken, too: one that begins with `$`.
#[must_use]
pub fn is_path(text: &str) -> bool {
    text.starts_with('$')
}

/// A name where paths are taken, too: as it is, or as a path of one step.
///
/// ```
/// use esker_format::json::name_step;
///
/// assert_eq!(name_step("id"), "id");
/// assert_eq!(name_step("$ref"), r#"$."$ref""#);
/// ```
#[must_use]
pub fn name_step(name: &str) -> Cow<'_, str> {
    if is_path(name) { Cow::Owned(path_of([name])) } else { Cow::Borrowed(name) }
}

/// The path of some names.
#[must_use]
pub fn path_of<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let steps = names.into_iter().map(|name| {
        let quoted = string(name);
        format!(".{}", Json::document(&quoted))
    });
    std::iter::once("$".to_owned()).chain(steps).collect()
}

/// Names as steps where paths are taken, too: the names, or one path where one of them begins with
/// `$`.
#[must_use]
pub fn steps_of(names: &[String]) -> Vec<String> {
    match names.iter().any(|name| is_path(name)) {
        true => vec![path_of(names.iter().map(String::as_str))],
        false => names.to_vec(),
    }
}

/// Reads a path.
///
/// ```
/// use esker_format::json::{Step, parse_path};
///
/// let steps = parse_path(r#"$.a[0]."b c"[#-1]"#)?;
/// let name = |name: &str| Step::Name(name.to_owned());
/// assert_eq!(steps, [name("a"), Step::Place(0), name("b c"), Step::Place(-1)]);
/// let error = parse_path("$.a[x]").unwrap_err();
/// let wanted = "path \"$.a[x]\": expected a place like 0 or -1 at offset 4, found \"x]\"";
/// assert_eq!(error.to_string(), wanted);
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` with the place in bytes, from 0, and what was expected there.
pub fn parse_path(text: &str) -> Result<Vec<Step>> {
    let mut reader = Reader { text, rest: text };
    let mut steps = Vec::new();
    reader.expect("$", "$")?;
    while !reader.rest.is_empty() {
        steps.push(match reader.rest.as_bytes() {
            [b'.', b'"', ..] => reader.quoted()?,
            [b'.', ..] => reader.name()?,
            [b'[', ..] => reader.place()?,
            _ => return Err(reader.fault("a step, .name or [0],")),
        });
    }
    Ok(steps)
}

struct Reader<'t> {
    text: &'t str,
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn fault(&self, expected: &str) -> Error {
        let (text, rest) = (self.text, self.rest);
        let offset = text.len() - rest.len();
        let found = match rest {
            "" => "the end".to_owned(),
            rest => crate::text::shown(rest.as_bytes()),
        };
        let text = crate::text::shown(text.as_bytes());
        Error::invalid(format!(
            "path {text}: expected {expected} at offset {offset}, found {found}"
        ))
    }

    fn expect(&mut self, wanted: &str, shown: &str) -> Result<()> {
        self.rest = self.rest.strip_prefix(wanted).ok_or_else(|| self.fault(shown))?;
        Ok(())
    }

    /// Takes so many bytes, which end where a character does.
    fn take(&mut self, bytes: usize) -> Result<&'t str> {
        let split = self.rest.split_at_checked(bytes);
        let (taken, rest) = split.ok_or_else(|| self.fault("whole characters"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// `.name`, up to the next step.
    fn name(&mut self) -> Result<Step> {
        self.expect(".", ".")?;
        // default: the last name goes on to the end.
        let end = self.rest.find(['.', '[', '"', ']', '*']).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.fault("the name of a member, in double quotes if need be,"));
        }
        Ok(Step::Name(self.take(end)?.to_owned()))
    }

    /// `."any name"`.
    fn quoted(&mut self) -> Result<Step> {
        self.expect(".", ".")?;
        let mut is_escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        let Some(end) = end else {
            return Err(self.fault("a name that ends with a double quote"));
        };
        let quoted = self.rest.get(..end + 2);
        let quoted = quoted.ok_or_else(|| self.fault("whole characters"))?;
        let name = parse(quoted).ok().and_then(|name| Json::document(&name).to_text());
        let name = name.ok_or_else(|| self.fault("a name as JSON writes a string"))?;
        self.take(quoted.len())?;
        Ok(Step::Name(name))
    }

    /// `[0]`, `[-1]`, `[#-1]`.
    fn place(&mut self) -> Result<Step> {
        const PLACE: &str = "a place like 0 or -1";
        self.expect("[", "[")?;
        let (is_from_end, rest) = match self.rest.strip_prefix('#') {
            Some(rest) => (true, rest),
            None => (false, self.rest),
        };
        let digits = match rest.find(|c: char| !c.is_ascii_digit() && c != '-') {
            Some(end) => rest.split_at(end).0,
            None => rest,
        };
        let place = digits.parse::<i64>().ok().filter(|place| !is_from_end || *place < 0);
        let place = place.ok_or_else(|| self.fault(PLACE))?;
        self.take(digits.len() + usize::from(is_from_end))?;
        self.expect("]", "]")?;
        Ok(Step::Place(place))
    }
}
