//! An object of JSON that is written member by member.
//!
//! Answers to events have few members of known names: no tree of values is made for them.

use std::fmt::{self, Write};

use serde_json::{Map, Value as Json};

/// An object of JSON as text, still open.
#[derive(Debug)]
pub(super) struct ObjectText(String);

impl ObjectText {
    /// Without members.
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a member: a plain name, and its value as JSON has it.
    pub fn add(&mut self, name: &str, value: impl fmt::Display) {
        let comma = if self.0.len() == 1 { "" } else { "," };
        // Writing to memory does not fail.
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
    }

    /// The whole text.
    pub fn into_text(mut self) -> String {
        self.0.push('}');
        self.0
    }

    /// The members, for who adds others.
    pub fn into_members(self) -> Map<String, Json> {
        // What was written here reads as an object.
        serde_json::from_str(&self.into_text()).unwrap_or_default()
    }
}

/// A text of letters and digits as JSON has it.
pub(super) struct Quoted<T>(pub T);

impl<T: fmt::Display> fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_their_order() {
        assert_eq!(ObjectText::new().into_text(), "{}");
        let mut object = ObjectText::new();
        object.add("id", Quoted("01K"));
        object.add("n", 7);
        object.add("all", "[1,2]");
        let text = object.into_text();
        assert_eq!(text, r#"{"id":"01K","n":7,"all":[1,2]}"#);
        let mut object = ObjectText::new();
        object.add("n", 7);
        assert_eq!(object.into_members().get("n"), Some(&Json::from(7)));
    }
}
