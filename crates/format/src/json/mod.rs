//! JSON in a canonical binary form: a field or an element is read without decoding the rest.
//!
//! ```text
//! null, false, true   tag
//! number              tag, order (of a whole document only), the number as written
//! string              tag, UTF-8
//! array               tag, width, count, end of each element, elements
//! object              tag, width, count, end of each name, end of each value, names, values
//! ```
//!
//! Width (1, 2 or 4) is that of the little-endian count and ends, the least that they fit. Ends
//! count from where what they bound begins. Names stand in the order of their bytes, none twice.
//! What holds a value knows where it ends.
//!
//! Documents compare as bytes: null, false, true, numbers, strings, arrays, objects; strings by
//! their bytes, numbers by their exact value and equal ones by their spelling. To that end a number
//! that is a whole document has its value in front as bytes that sort as numbers do: a byte for the
//! sign (1 below zero, 2 zero, 3 above), the power of ten above it in 4 bytes, most significant
//! first, its sign flipped, each digit plus one, and 0; all but the first flipped below zero.
//! Arrays and objects have an order too, which means nothing.

mod edit;
mod number;
mod parser;
mod path;
mod splice;
#[cfg(test)]
mod tests;

use std::fmt;

pub use edit::{
    Replacement, array, edit, edit_in_steps, expect_depth, from_value, merge, object, string,
};
pub use number::{add_decimals, add_numbers, compare_numbers, multiply_decimals, multiply_numbers};
pub use parser::{parse, parse_in_steps, parse_nested};
pub use path::{Step, is_path, name_step, parse_path, path_of, steps_of};

use crate::codec::Reader;
use crate::{Error, Result};

/// Called with how many bytes have been worked on, while a document of any size is. An error ends
/// the work.
pub type Steps<'s> = &'s mut dyn FnMut(usize) -> Result<()>;

/// The most levels of arrays and objects.
pub const DEPTH_MAX: usize = 128;

/// The largest power of ten in a number, either side of zero.
pub const EXPONENT_MAX: i32 = 1_000_000;

const NULL: u8 = 1;
/// The document that sorts before all others: null.
pub(crate) const LEAST: &[u8] = &[NULL];
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const NUMBER: u8 = 4;
const STRING: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// A JSON value within a document, or a whole one.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a> {
    bytes: &'a [u8],
    is_document: bool,
}

/// A JSON value, one level of it.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it is written.
    Number(&'a str),
    /// A string, without quotes and escapes.
    String(&'a str),
    /// An array.
    Array(Items<'a>),
    /// An object, its members in the order of their names.
    Object(Members<'a>),
}

/// The elements of an array.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    ends: Ends<'a>,
    values: &'a [u8],
}

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    name_ends: Ends<'a>,
    names: &'a [u8],
    items: Items<'a>,
}

/// A table of ends.
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Ends<'a> {
    fn len(self) -> usize {
        self.bytes.len() / self.width.max(1)
    }

    #[inline]
    fn end(self, i: usize) -> usize {
        let start = i.saturating_mul(self.width);
        // default: there is an end for each part, and no other is requested.
        match *self.bytes.get(start..start + self.width).unwrap_or_default() {
            [only] => usize::from(only),
            [low, high] => usize::from(u16::from_le_bytes([low, high])),
            ref bytes => bytes.iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte)),
        }
    }

    /// Where the part at a place begins.
    #[inline]
    fn start(self, i: usize) -> usize {
        if i == 0 { 0 } else { self.end(i - 1) }
    }

    /// What lies in `of` between the end before and this one; empty where that is nothing.
    fn part(self, i: usize, of: &'a [u8]) -> &'a [u8] {
        // default: what has not been checked may have ends that do not rise.
        of.get(self.start(i)..self.end(i)).unwrap_or_default()
    }
}

impl<'a> Items<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a place.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Json<'a>> {
        let bytes = if i < self.len() { self.ends.part(i, self.values) } else { return None };
        Some(Json { bytes, is_document: false })
    }

    /// All elements. None of them overlap, even in what has not been checked: it takes no longer
    /// to read than it is long.
    pub fn iter(self) -> impl Iterator<Item = Json<'a>> {
        let mut start = 0;
        (0..self.len()).map_while(move |i| {
            let end = self.ends.end(i);
            let bytes = self.values.get(start..end)?;
            start = end;
            Some(Json { bytes, is_document: false })
        })
    }
}

impl<'a> Members<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.name_ends.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn name(&self, i: usize) -> &'a [u8] {
        self.name_ends.part(i, self.names)
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Json<'a>> {
        self.find(name).ok().and_then(|at| self.items.get(at))
    }

    /// All names and values.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        // default: what has not been checked may have names that are no text.
        let name = move |i| std::str::from_utf8(self.name(i)).unwrap_or_default();
        self.items.iter().enumerate().map(move |(i, value)| (name(i), value))
    }
}

impl<'a> Json<'a> {
    /// A document in its stored form. What is none reads as null wherever it is not one.
    #[must_use]
    pub fn document(bytes: &'a [u8]) -> Self {
        Self { bytes, is_document: true }
    }

    /// What it is.
    #[must_use]
    pub fn kind(self) -> Kind<'a> {
        self.read().unwrap_or(Kind::Null) // default: what is no value is null, as said above.
    }

    fn read(self) -> Result<Kind<'a>> {
        let mut input = Reader::new(self.bytes);
        let text = |bytes| {
            std::str::from_utf8(bytes).map_err(|e| Error::corrupt(format!("json text: {e}")))
        };
        Ok(match input.u8()? {
            NULL => Kind::Null,
            FALSE => Kind::Bool(false),
            TRUE => Kind::Bool(true),
            NUMBER => {
                if self.is_document {
                    input.raw(order_len(self.bytes))?;
                }
                Kind::Number(text(input.raw(input.remaining())?)?)
            }
            STRING => Kind::String(text(input.raw(input.remaining())?)?),
            tag @ (ARRAY | OBJECT) => {
                let width = usize::from(input.u8()?);
                if !matches!(width, 1 | 2 | 4) {
                    return Err(Error::corrupt(format!("json offsets of {width} bytes")));
                }
                let count = Ends { bytes: input.raw(width)?, width }.end(0);
                let table = |input: &mut Reader<'a>| {
                    let len = count.saturating_mul(width);
                    Ok::<_, Error>(Ends { bytes: input.raw(len)?, width })
                };
                // default: where there are no parts, nothing is bounded.
                let last = |ends: Ends<'_>| count.checked_sub(1).map_or(0, |last| ends.end(last));
                if tag == ARRAY {
                    let ends = table(&mut input)?;
                    let values = input.raw(last(ends))?;
                    input.finish()?;
                    return Ok(Kind::Array(Items { ends, values }));
                }
                let (name_ends, ends) = (table(&mut input)?, table(&mut input)?);
                let names = input.raw(last(name_ends))?;
                let items = Items { ends, values: input.raw(last(ends))? };
                input.finish()?;
                Kind::Object(Members { name_ends, names, items })
            }
            other => return Err(Error::corrupt(format!("json tag {other}"))),
        })
    }

    /// The value of a name, where it is an object that has it.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Self> {
        match self.kind() {
            Kind::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// The element at a place, -1 for the last, where it is an array that has it.
    #[must_use]
    pub fn index(self, place: i64) -> Option<Self> {
        let Kind::Array(items) = self.kind() else { return None };
        let len = i64::try_from(items.len()).ok()?;
        items.get(usize::try_from(if place < 0 { len.checked_add(place)? } else { place }).ok()?)
    }

    /// The text at the end of a path of names; `None` where it leads nowhere, or to null.
    ///
    /// ```
    /// use esker_format::json::{Json, parse};
    ///
    /// let document = parse(r#"{"customer": {"city": "Bonn"}}"#)?;
    /// let text = Json::document(&document).text_at(["customer", "city"]);
    /// assert_eq!(text.as_deref(), Some("Bonn"));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn text_at<'n>(self, path: impl IntoIterator<Item = &'n str>) -> Option<String> {
        path.into_iter().try_fold(self, Self::get)?.to_text()
    }

    /// The value in its stored form, as it lies in its document. Equal arrays, and equal objects,
    /// have the same.
    #[must_use]
    pub fn stored(self) -> &'a [u8] {
        self.bytes
    }

    /// The value as a document of its own.
    #[must_use]
    pub fn to_document(self) -> Vec<u8> {
        match self.kind() {
            Kind::Number(written) if !self.is_document => number_document(written),
            _ => self.bytes.to_vec(),
        }
    }

    /// The value as text: a string as it is, anything else as JSON; `None` for null.
    #[must_use]
    pub fn to_text(self) -> Option<String> {
        match self.kind() {
            Kind::Null => None,
            Kind::String(text) => Some(text.to_owned()),
            _ => Some(self.to_string()),
        }
    }
}

/// Checks the stored form of a document, all of it: what passes is the one form of what it says.
///
/// # Errors
/// `Corrupt` saying what is wrong.
pub fn check(document: &[u8]) -> Result<()> {
    let mut pending = vec![(Json::document(document), 0usize)];
    while let Some((json, depth)) = pending.pop() {
        if depth > DEPTH_MAX {
            return Err(Error::corrupt(format!("json of more than {DEPTH_MAX} levels")));
        }
        match json.read()? {
            Kind::Null | Kind::Bool(_) => {
                if json.bytes.len() != 1 {
                    return Err(Error::corrupt("json constant of several bytes"));
                }
            }
            Kind::String(_) => {}
            Kind::Number(written) => {
                let canonical = parser::is_number(written.as_bytes())
                    && (!json.is_document || number_document(written) == json.bytes);
                if !canonical {
                    return Err(Error::corrupt(format!("json number {written:?}")));
                }
            }
            Kind::Array(items) => {
                check_ends(items.ends, items.values.len(), items.values.len())?;
                pending.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Kind::Object(members) => {
                let longest = members.names.len().max(members.items.values.len());
                check_ends(members.name_ends, members.names.len(), longest)?;
                check_ends(members.items.ends, members.items.values.len(), longest)?;
                for i in 0..members.len() {
                    let name = members.name(i);
                    let rises = i == 0 || members.name(i - 1) < name;
                    if !rises || std::str::from_utf8(name).is_err() {
                        return Err(Error::corrupt(format!("json name {i} of an object")));
                    }
                }
                pending.extend(members.iter().map(|(_, value)| (value, depth + 1)));
            }
        }
    }
    Ok(())
}

/// Checks that ends rise up to `len`, and are as narrow as `longest` allows.
fn check_ends(ends: Ends<'_>, len: usize, longest: usize) -> Result<()> {
    let mut before = 0;
    for i in 0..ends.len() {
        let end = ends.end(i);
        if end < before || end > len {
            return Err(Error::corrupt(format!("json offset {end} after {before}, of {len}")));
        }
        before = end;
    }
    if ends.width == width_of(longest.max(ends.len())) {
        Ok(())
    } else {
        Err(Error::corrupt(format!("json offsets of {} bytes", ends.width)))
    }
}

fn width_of(greatest: usize) -> usize {
    match greatest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// How many bytes of order stand behind the tag of a number that is a document; where their end is
/// missing, more than there are.
fn order_len(document: &[u8]) -> usize {
    let end = match document.get(1) {
        Some(1) => 0xff,
        Some(3) => 0,
        _ => return 1,
    };
    // default: an order without an end would go on behind the document.
    document.iter().skip(6).position(|byte| *byte == end).map_or(document.len(), |at| at + 6)
}

/// A number, as it is written, as a document.
fn number_document(written: &str) -> Vec<u8> {
    let mut document = vec![NUMBER];
    push_order(&mut document, written);
    document.extend_from_slice(written.as_bytes());
    document
}

/// A value in its form within a document, as a document of its own.
fn document_of(nested: Vec<u8>) -> Result<Vec<u8>> {
    let Some((&NUMBER, written)) = nested.split_first() else { return Ok(nested) };
    let written = std::str::from_utf8(written);
    written.map(number_document).map_err(|e| Error::corrupt(format!("json number: {e}")))
}

/// Appends the order of a number, as it is written: bytes that sort as numbers do.
fn push_order(out: &mut Vec<u8>, written: &str) {
    let (negative, rest) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    // default: a number without an exponent is what its digits say.
    let (coefficient, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    // default: a whole number has no fraction.
    let (whole, fraction) = coefficient.split_once('.').unwrap_or((coefficient, ""));
    // What has not been checked may have others than digits.
    let digits = whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit);
    let digits: Vec<u8> = digits.map(|b| b - b'0').collect();
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let Some(last) = digits.iter().rposition(|digit| *digit != 0) else { return out.push(2) };
    // default: `is_number` has refused what is no exponent, and one beyond a million.
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // default: no value has so many digits.
    let places = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let power = exponent.saturating_add(places(whole.len())).saturating_sub(places(zeros));
    let flip = if negative { 0xff } else { 0 };
    out.push(if negative { 1 } else { 3 });
    let ordered = (power.cast_unsigned() ^ 1 << 31).to_le_bytes();
    out.extend(ordered.iter().rev().map(|byte| byte ^ flip));
    out.extend(digits.iter().take(last + 1).skip(zeros).map(|digit| (digit + 1) ^ flip));
    out.push(flip);
}

impl fmt::Display for Json<'_> {
    /// Compact, names in the order of their bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Json<'_> {
    fn write(self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        // No document is deeper; what has not been checked may be.
        match if depth > DEPTH_MAX { Kind::Null } else { self.kind() } {
            Kind::Null => f.write_str("null"),
            Kind::Bool(v) => write!(f, "{v}"),
            Kind::Number(written) => f.write_str(written),
            Kind::String(text) => write_string(f, text),
            Kind::Array(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    item.write(f, depth + 1)?;
                }
                f.write_str("]")
            }
            Kind::Object(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    write_string(f, name)?;
                    f.write_str(":")?;
                    value.write(f, depth + 1)?;
                }
                f.write_str("}")
            }
        }
    }
}

fn write_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    use fmt::Write;
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if u32::from(c) < 0x20 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_str("\"")
}
