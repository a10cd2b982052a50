//! Changing one place of a document without reading the rest of it.
//!
//! The way to the place leads through arrays and objects. Each of them is written anew around what
//! has changed below it, and what else it holds is copied as bytes.
//!
//! ```text
//! { "a": …, "items": [ …, { "count": 1 }, … ], "z": … }      items.1.count
//!    copied            copied   ^ changed  copied  copied
//! ```

use super::{
    ARRAY, DEPTH_MAX, Items, Json, Kind, Members, NUMBER, OBJECT, STRING, Step, Steps, document_of,
    number_document, parser,
};
use crate::{Error, List, Result, ValueRef};

/// What becomes of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// Nothing: the document stays as it is.
    Keep,
    /// What is there goes: the member of an object, the element of an array.
    Remove,
    /// This document takes the place of what is there, or a new one.
    Put(Vec<u8>),
}

/// Changes what lies at the end of a path: names of members, and places in arrays from 0, -1 for
/// the last. `change` is given what is there, `None` where nothing is. What is put where nothing is
/// becomes a new member, or the element after the last; objects and arrays on the way to it come
/// to be, an array only for a step that is a place.
///
/// ```
/// use esker_format::json::{Json, Replacement, edit, parse, parse_path};
///
/// let document = parse(r#"{"items": [{"count": 1}, {"count": 2}]}"#)?;
/// let path = parse_path("$.items[-1].count")?;
/// let edited = edit(Some(Json::document(&document)), &path, &mut |found| {
///     assert_eq!(found.unwrap().to_string(), "2");
///     Ok(Replacement::Put(parse("3")?))
/// })?;
/// let Replacement::Put(edited) = edited else { unreachable!() };
/// assert_eq!(
///     Json::document(&edited).to_string(),
///     r#"{"items":[{"count":1},{"count":3}]}"#,
/// );
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` where the way leads through something that has no such part, or past the end of
/// an array; for more than 128 levels; and what `change` fails with.
pub fn edit(
    document: Option<Json<'_>>,
    path: &[Step],
    change: &mut dyn FnMut(Option<Json<'_>>) -> Result<Replacement>,
) -> Result<Replacement> {
    edit_in_steps(document, path, change, &mut |_| Ok(()))
}

/// The same for a document of any size: see [`Steps`].
///
/// # Errors
/// As [`edit`], and what `steps` fails with.
pub fn edit_in_steps(
    document: Option<Json<'_>>,
    path: &[Step],
    change: &mut dyn FnMut(Option<Json<'_>>) -> Result<Replacement>,
    steps: Steps<'_>,
) -> Result<Replacement> {
    if path.len() > DEPTH_MAX {
        let levels = path.len();
        return Err(Error::invalid(format!("expected at most {DEPTH_MAX} levels, found {levels}")));
    }
    let mut way = Way { path, change, steps };
    Ok(match way.edit_at(document, 0)? {
        Replacement::Put(nested) => Replacement::Put(document_of(nested)?),
        other => other,
    })
}

/// The way to the place that changes, and what is done there.
struct Way<'w> {
    path: &'w [Step],
    change: &'w mut dyn FnMut(Option<Json<'_>>) -> Result<Replacement>,
    steps: Steps<'w>,
}

impl Way<'_> {
    /// Changes what lies below, with values in their form within a document.
    fn edit_at(&mut self, found: Option<Json<'_>>, depth: usize) -> Result<Replacement> {
        let path = self.path;
        let Some(step) = path.get(depth) else { return self.change(found, depth) };
        let Some(found) = found else { return self.edit_nothing(step, depth) };
        match (found.kind(), step) {
            (Kind::Object(members), Step::Name(name) | Step::Part(name)) => {
                self.edit_member(members, name, depth)
            }
            (Kind::Array(items), _) => self.edit_element(items, step, depth),
            _ => {
                let kind = found.kind_name();
                let expected = match step {
                    Step::Name(_) => "an object",
                    Step::Place(_) => "an array",
                    Step::Part(_) => "an object or an array",
                };
                Err(Error::invalid(format!("expected {expected} before {step}, found {kind}")))
            }
        }
    }

    fn edit_member(
        &mut self,
        members: Members<'_>,
        name: &str,
        depth: usize,
    ) -> Result<Replacement> {
        let at = members.find(name);
        let below = at.ok().and_then(|at| members.items.get(at));
        Ok(match (self.edit_at(below, depth + 1)?, at) {
            (Replacement::Keep, _) | (Replacement::Remove, Err(_)) => Replacement::Keep,
            (Replacement::Remove, Ok(_)) => {
                Replacement::Put(members.with(at, name, None, self.steps)?)
            }
            (Replacement::Put(value), _) => {
                Replacement::Put(members.with(at, name, Some(&value), self.steps)?)
            }
        })
    }

    fn edit_element(&mut self, items: Items<'_>, step: &Step, depth: usize) -> Result<Replacement> {
        let len = items.len();
        let place = place_of(len, step).ok_or_else(|| no_place(len, step))?;
        Ok(match self.edit_at(items.get(place), depth + 1)? {
            Replacement::Keep => Replacement::Keep,
            Replacement::Remove if place >= len => Replacement::Keep,
            Replacement::Remove => Replacement::Put(items.with(place, None, self.steps)?),
            Replacement::Put(_) if place > len => return Err(no_place(len, step)),
            Replacement::Put(value) => {
                Replacement::Put(items.with(place, Some(&value), self.steps)?)
            }
        })
    }

    /// Makes the object or the array that a step leads into.
    fn edit_nothing(&mut self, step: &Step, depth: usize) -> Result<Replacement> {
        let Replacement::Put(value) = self.edit_at(None, depth + 1)? else {
            return Ok(Replacement::Keep);
        };
        let made = match step {
            Step::Name(name) | Step::Part(name) => {
                container([(name.as_bytes(), value.as_slice())].into_iter(), self.steps)?
            }
            Step::Place(0) => {
                (self.steps)(value.len() + 1)?;
                parser::container(ARRAY, 1, &[&[value.len()]], &[&value])
            }
            Step::Place(_) => return Err(no_place(0, step)),
        };
        Ok(Replacement::Put(made))
    }

    /// Changes what lies at the end of the way.
    fn change(&mut self, found: Option<Json<'_>>, depth: usize) -> Result<Replacement> {
        match (self.change)(found)? {
            Replacement::Put(document) => {
                let json = Json::document(&document);
                if depth + height(json, self.steps)? > DEPTH_MAX {
                    return Err(Error::invalid(format!("expected at most {DEPTH_MAX} levels")));
                }
                Ok(Replacement::Put(nested(json).to_vec()))
            }
            other => Ok(other),
        }
    }
}

/// The place that a step names in an array of a length; none before its start.
fn place_of(len: usize, step: &Step) -> Option<usize> {
    let place = match step {
        Step::Name(_) => return None,
        Step::Place(place) => *place,
        Step::Part(name) => name.parse().ok()?,
    };
    let len = i64::try_from(len).ok()?;
    usize::try_from(if place < 0 { len.checked_add(place)? } else { place }).ok()
}

fn no_place(len: usize, step: &Step) -> Error {
    Error::invalid(format!("expected a place of an array of {len}, found {step}"))
}

impl Members<'_> {
    /// Where a name is, or would be.
    pub(super) fn find(&self, name: &str) -> std::result::Result<usize, usize> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            match self.name(middle).cmp(name.as_bytes()) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }
}

/// An object of members in the order of their names.
fn container<'a>(
    members: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    steps: Steps<'_>,
) -> Result<Vec<u8>> {
    let (mut name_ends, mut ends, mut names, mut values) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, value) in members {
        steps(name.len() + value.len() + 1)?;
        names.extend_from_slice(name);
        name_ends.push(names.len());
        values.extend_from_slice(value);
        ends.push(values.len());
    }
    Ok(parser::container(OBJECT, ends.len(), &[&name_ends, &ends], &[&names, &values]))
}

/// An array of values as a document.
///
/// # Errors
/// What `steps` fails with.
pub fn array<'a>(items: impl Iterator<Item = Json<'a>>, steps: Steps<'_>) -> Result<Vec<u8>> {
    let (mut ends, mut values) = (Vec::new(), Vec::new());
    for item in items {
        let item = nested(item);
        steps(item.len() + 1)?;
        values.extend_from_slice(&item);
        ends.push(values.len());
    }
    Ok(parser::container(ARRAY, ends.len(), &[&ends], &[&values]))
}

/// An object of members as a document.
///
/// # Errors
/// `InvalidInput` when a name comes twice, and for more than 128 levels; what `steps` fails with.
pub fn object<'a>(
    members: impl Iterator<Item = (&'a str, Json<'a>)>,
    steps: Steps<'_>,
) -> Result<Vec<u8>> {
    let mut members: Vec<_> = members.map(|(name, value)| (name, nested(value))).collect();
    members.sort_by_key(|(name, _)| *name);
    let twice = members.windows(2).find(|pair| matches!(pair, [(a, _), (b, _)] if a == b));
    if let Some([(name, _), ..]) = twice {
        return Err(Error::invalid(format!("name {name:?} comes twice")));
    }
    let members = members.iter().map(|(name, value)| (name.as_bytes(), value.as_ref()));
    let object = container(members, steps)?;
    expect_depth(&object, steps)?;
    Ok(object)
}

/// Refuses a document of too many levels.
///
/// # Errors
/// `InvalidInput` for more than 128 levels; what `steps` fails with.
pub fn expect_depth(document: &[u8], steps: Steps<'_>) -> Result<()> {
    if height(Json::document(document), steps)? > DEPTH_MAX {
        return Err(Error::invalid(format!("expected at most {DEPTH_MAX} levels")));
    }
    Ok(())
}

/// A document changed by another one, as RFC 7396 has it: what is no object takes its place;
/// members of an object take the place of those of the same name, objects among them are merged,
/// and null removes.
///
/// ```
/// use esker_format::json::{Json, merge, parse};
///
/// let document = parse(r#"{"a": 1, "b": {"c": 2}}"#)?;
/// let patch = parse(r#"{"a": null, "b": {"d": 3}}"#)?;
/// let document = Some(Json::document(&document));
/// let merged = merge(document, Json::document(&patch), &mut |_| Ok(()))?;
/// assert_eq!(Json::document(&merged).to_string(), r#"{"b":{"c":2,"d":3}}"#);
/// # Ok::<(), esker_format::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` for more than 128 levels; what `steps` fails with.
pub fn merge(document: Option<Json<'_>>, patch: Json<'_>, steps: Steps<'_>) -> Result<Vec<u8>> {
    if height(patch, steps)? > DEPTH_MAX {
        return Err(Error::invalid(format!("expected at most {DEPTH_MAX} levels")));
    }
    document_of(merge_nested(document, patch, steps)?)
}

/// The same, in its form within a document.
fn merge_nested(document: Option<Json<'_>>, patch: Json<'_>, steps: Steps<'_>) -> Result<Vec<u8>> {
    let Kind::Object(changes) = patch.kind() else {
        steps(patch.bytes.len())?;
        return Ok(nested(patch).into_owned());
    };
    let old = match document.map(Json::kind) {
        Some(Kind::Object(members)) => Some(members),
        _ => None,
    };
    let mut members = Vec::new();
    for (name, value) in old.into_iter().flat_map(Members::iter) {
        steps(name.len() + value.bytes.len() + 1)?;
        if changes.get(name).is_none() {
            members.push((name, nested(value).into_owned()));
        }
    }
    for (name, change) in changes.iter() {
        steps(name.len() + 1)?;
        if !matches!(change.kind(), Kind::Null) {
            let before = old.and_then(|members| members.get(name));
            members.push((name, merge_nested(before, change, steps)?));
        }
    }
    members.sort_by_key(|(name, _)| *name);
    container(members.iter().map(|(name, value)| (name.as_bytes(), value.as_slice())), steps)
}

/// A value in its form within a document.
fn nested(json: Json<'_>) -> std::borrow::Cow<'_, [u8]> {
    match json.kind() {
        Kind::Number(written) if json.is_document => number(written).into(),
        _ => json.bytes.into(),
    }
}

fn number(written: &str) -> Vec<u8> {
    let mut bytes = vec![NUMBER];
    bytes.extend_from_slice(written.as_bytes());
    bytes
}

/// The levels of arrays and objects of a value.
fn height(json: Json<'_>, steps: Steps<'_>) -> Result<usize> {
    let mut below = 0;
    match json.kind() {
        Kind::Array(items) => {
            for item in items.iter() {
                steps(1)?;
                below = below.max(height(item, steps)?);
            }
        }
        Kind::Object(members) => {
            for (_, value) in members.iter() {
                steps(1)?;
                below = below.max(height(value, steps)?);
            }
        }
        _ => return Ok(0),
    }
    Ok(below + 1)
}

impl Items<'_> {
    /// True when an element contains a value.
    fn has(&self, part: Json<'_>, steps: Steps<'_>) -> Result<bool> {
        for element in self.iter() {
            if element.contains(part, steps)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Json<'_> {
    /// What it is, for error messages.
    #[must_use]
    pub fn kind_name(self) -> &'static str {
        match self.kind() {
            Kind::Null => "null",
            Kind::Bool(_) => "bool",
            Kind::Number(_) => "a number",
            Kind::String(_) => "a string",
            Kind::Array(_) => "an array",
            Kind::Object(_) => "an object",
        }
    }

    /// What is at the end of a path, as [`edit`] takes it; `None` where it leads nowhere.
    #[must_use]
    pub fn at(self, path: &[Step]) -> Option<Self> {
        path.iter().try_fold(self, |found, step| match (found.kind(), step) {
            (Kind::Object(members), Step::Name(name) | Step::Part(name)) => members.get(name),
            (Kind::Array(items), _) => items.get(place_of(items.len(), step)?),
            _ => None,
        })
    }

    /// True when all that another value has is here, too: every member of an object, every element
    /// of an array at any place, or the same value.
    ///
    /// # Errors
    /// What `steps` fails with.
    pub fn contains(self, part: Json<'_>, steps: Steps<'_>) -> Result<bool> {
        match (self.kind(), part.kind()) {
            (Kind::Object(whole), Kind::Object(part)) => {
                for (name, part) in part.iter() {
                    match whole.get(name) {
                        Some(whole) if whole.contains(part, steps)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            (Kind::Array(whole), Kind::Array(part)) => {
                for part in part.iter() {
                    if !whole.has(part, steps)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                steps(part.bytes.len())?;
                Ok(self.is_same(part))
            }
        }
    }

    /// True for what says the same: numbers of one value are equal however they are written.
    #[must_use]
    pub fn is_same(self, other: Json<'_>) -> bool {
        match (self.kind(), other.kind()) {
            (Kind::Number(a), Kind::Number(b)) => super::compare_numbers(a, b).is_eq(),
            (Kind::Array(a), Kind::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.is_same(b))
            }
            (Kind::Object(a), Kind::Object(b)) => {
                let same =
                    |((a, x), (b, y)): ((&str, Json<'_>), (&str, Json<'_>))| a == b && x.is_same(y);
                a.len() == b.len() && a.iter().zip(b.iter()).all(same)
            }
            (Kind::String(a), Kind::String(b)) => a == b,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Null, Kind::Null) => true,
            _ => false,
        }
    }
}

/// A value of a field as a document: numbers and truth values as such, JSON as it is, a list as an
/// array, anything else as a string.
///
/// # Errors
/// `InvalidInput` for a float that is no number.
pub fn from_value(value: ValueRef<'_>) -> Result<Vec<u8>> {
    let finite = |is_finite: bool, written: String| {
        let error = || Error::invalid(format!("expected a number that json has, found {written}"));
        is_finite.then(|| number_document(&written)).ok_or_else(error)
    };
    Ok(match value {
        ValueRef::Null => vec![super::NULL],
        ValueRef::Bool(false) => vec![super::FALSE],
        ValueRef::Bool(true) => vec![super::TRUE],
        ValueRef::Int(v) => number_document(&v.to_string()),
        ValueRef::Uint(v) => number_document(&v.to_string()),
        ValueRef::Decimal(v) => number_document(&v.to_string()),
        ValueRef::Float32(v) => finite(v.is_finite(), v.to_string())?,
        ValueRef::Float(v) => finite(v.is_finite(), written_float(v))?,
        ValueRef::Json(document) => document.to_vec(),
        ValueRef::Text(text) => string(text),
        ValueRef::List(bytes) => {
            let list = List::of(bytes)?;
            let mut items = Vec::new();
            for item in list.items() {
                items.push(from_value(item?.value(list.element())?.as_ref())?);
            }
            array(items.iter().map(|item| Json::document(item)), &mut |_| Ok(()))?
        }
        other => string(&other.to_string()),
    })
}

/// A float as JSON has it, the shortest way.
pub(super) fn written_float(v: f64) -> String {
    let plain = v.to_string();
    if plain.len() > 25 { format!("{v:e}") } else { plain }
}

/// A string as a document.
#[must_use]
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = vec![STRING];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
