//! Members and elements of a JSON query, and the places that errors name: `where[2].or[0].op`.

use std::fmt;

use esker_format::json::{Items, Json, Kind, Members};
use esker_format::suggest::near_or_all;

use crate::{Error, Result};

/// Where something stands in a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Item(usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) => {
                let is_first = self.parent.is_none_or(|p| matches!(p.step, Step::Root));
                write!(f, "{}{name}", if is_first { "" } else { "." })
            }
            Step::Item(i) => write!(f, "[{i}]"),
        }
    }
}

impl<'a> Place<'a> {
    pub(super) const fn root() -> Place<'static> {
        Place { parent: None, step: Step::Root }
    }

    pub(super) fn member<'b>(&'b self, name: &'b str) -> Place<'b>
    where
        'a: 'b,
    {
        Place { parent: Some(self), step: Step::Member(name) }
    }

    pub(super) fn item(&self, i: usize) -> Place<'_> {
        Place { parent: Some(self), step: Step::Item(i) }
    }

    /// How many groups of conditions it lies in.
    pub(super) fn depth(&self) -> usize {
        let items = usize::from(matches!(self.step, Step::Item(_) | Step::Member("not")));
        items + self.parent.map_or(0, Place::depth)
    }

    pub(super) fn error(&self, message: impl fmt::Display) -> Error {
        match self.to_string() {
            place if place.is_empty() => Error::invalid(message.to_string()),
            place => Error::invalid(format!("{place}: {message}")),
        }
    }

    pub(super) fn expected(&self, what: &str, found: Json<'_>) -> Error {
        self.error(format!("expected {what}, found {}", shown(found)))
    }

    /// The text of a member that must be there.
    pub(super) fn text_of<'j>(&self, members: Members<'j>, name: &str) -> Result<&'j str> {
        match members.get(name) {
            Some(json) => text(json, &self.member(name)),
            None => Err(self.error(format!("expected a member {name:?}"))),
        }
    }

    pub(super) fn optional_text_of(
        &self,
        members: Members<'_>,
        name: &str,
    ) -> Result<Option<String>> {
        let json = members.get(name);
        json.map(|json| text(json, &self.member(name)).map(str::to_owned)).transpose()
    }
}

/// What was found, cut where it is long.
fn shown(json: Json<'_>) -> String {
    const CHARACTERS_MAX: usize = 60;
    let text = json.to_string();
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

pub(super) fn object<'j>(json: Json<'j>, place: &Place<'_>) -> Result<Members<'j>> {
    match json.kind() {
        Kind::Object(members) => Ok(members),
        _ => Err(place.expected("an object", json)),
    }
}

pub(super) fn array<'j>(json: Json<'j>, place: &Place<'_>) -> Result<Items<'j>> {
    match json.kind() {
        Kind::Array(items) => Ok(items),
        _ => Err(place.expected("an array", json)),
    }
}

pub(super) fn text<'j>(json: Json<'j>, place: &Place<'_>) -> Result<&'j str> {
    match json.kind() {
        Kind::String(text) => Ok(text),
        _ => Err(place.expected("a text", json)),
    }
}

/// True or false; of what is not there, false.
pub(super) fn flag(members: Members<'_>, name: &str, place: &Place<'_>) -> Result<bool> {
    let Some(json) = members.get(name) else { return Ok(false) };
    match json.kind() {
        Kind::Bool(flag) => Ok(flag),
        _ => Err(place.member(name).expected("true or false", json)),
    }
}

/// Refuses members that mean nothing.
pub(super) fn refuse_others(members: Members<'_>, known: &[&str], place: &Place<'_>) -> Result<()> {
    match members.iter().map(|(name, _)| name).find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let near = near_or_all(name, "members", known.iter().copied());
            Err(place.error(format!("unknown member {name:?}{near}")))
        }
    }
}
