//! Paths: a field, and a place inside it.

use esker_format::{DataType, Field, Schema};

use crate::{Error, Result};

/// Where an operator works.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// The position of the field.
    pub position: usize,
    /// Names and places inside the field's document.
    pub steps: Vec<String>,
}

impl Path {
    /// Takes a path apart: the name of a field, whole or up to the first dot.
    pub fn parse(schema: &Schema, text: &str) -> Result<Self> {
        if let Some(position) = schema.position(text) {
            return Ok(Self { position, steps: Vec::new() });
        }
        let mut steps = split(text).into_iter();
        // default: an empty path names no field, which is refused
        let position = schema.expect_position(&steps.next().unwrap_or_default())?;
        Ok(Self { position, steps: steps.collect() })
    }

    /// The field; one of JSON where the path leads inside.
    pub fn field<'s>(&self, schema: &'s Schema) -> Result<&'s Field> {
        let field = schema.fields().get(self.position);
        let field = field.ok_or_else(|| Error::invalid("unknown field"))?;
        let name = &field.name;
        if !self.steps.is_empty() && field.data_type != DataType::Json {
            let found = field.type_text();
            let message = format!("a path inside field {name:?}: expected json, found {found}");
            return Err(Error::invalid(message));
        }
        Ok(field)
    }

    /// In the order in which one that leads through another comes right after it.
    pub fn order(&self) -> (usize, &[String]) {
        (self.position, &self.steps)
    }

    /// True when the other path is this one, or leads through it.
    pub fn holds(&self, other: &Self) -> bool {
        self.position == other.position && other.steps.starts_with(&self.steps)
    }
}

/// The parts between dots; a backslash takes the next character as it is.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '.' => parts.push(std::mem::take(&mut part)),
            '\\' => part.extend(characters.next()),
            c => part.push(c),
        }
    }
    parts.push(part);
    parts
}
