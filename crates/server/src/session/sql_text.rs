//! A statement in SQL, parsed once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use esker::{Semantics, Value};
use esker_sql::{Statement, expect_values, parse_with_parameters};

use crate::Result;

/// The text of a statement. It is parsed once, by the first who needs to know what it says; what
/// is cloned of it shares that.
#[derive(Clone)]
pub struct SqlText {
    parsed: Arc<Parsed>,
    /// What it chooses beside its text.
    semantics: Semantics,
}

struct Parsed {
    text: String,
    /// What it says, and the names of its parameters.
    read: OnceLock<Result<(Statement, Arc<[String]>)>>,
}

impl SqlText {
    /// The same with what it chooses: where NULLs go, and what a division by zero is.
    #[must_use]
    pub fn with_semantics(self, semantics: Semantics) -> Self {
        Self { semantics, ..self }
    }

    /// What it chooses beside its text.
    #[must_use]
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// What it says.
    ///
    /// # Errors
    /// `InvalidRequest` with the place of a syntax error.
    pub fn statement(&self) -> Result<&Statement> {
        self.read().map(|(statement, _)| statement)
    }

    /// What it says, to be run with these values.
    ///
    /// # Errors
    /// As for [`SqlText::statement`]; when it has more parameters, or fewer.
    pub fn statement_for(&self, values: &[Value]) -> Result<&Statement> {
        let (statement, parameters) = self.read()?;
        expect_values(parameters, values)?;
        Ok(statement)
    }

    fn read(&self) -> Result<&(Statement, Arc<[String]>)> {
        let read = || Ok(parse_with_parameters(&self.parsed.text)?);
        self.parsed.read.get_or_init(read).as_ref().map_err(Clone::clone)
    }
}

impl Deref for SqlText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.parsed.text
    }
}

impl From<String> for SqlText {
    fn from(text: String) -> Self {
        let parsed = Arc::new(Parsed { text, read: OnceLock::new() });
        Self { parsed, semantics: Semantics::default() }
    }
}

impl From<&str> for SqlText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for SqlText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other && self.semantics == other.semantics
    }
}

impl fmt::Debug for SqlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once_for_all_its_clones() {
        let text = SqlText::from("SELECT 1");
        let clone = text.clone();
        let statement: *const Statement = clone.statement().unwrap();
        assert!(std::ptr::eq(statement, text.statement().unwrap()));
        let wrong = SqlText::from("SELEC 1");
        let refused = wrong.clone().statement().map(drop).unwrap_err();
        assert_eq!(wrong.statement().map(drop).unwrap_err(), refused);
    }
}
