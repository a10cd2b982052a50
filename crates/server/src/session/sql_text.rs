//! A statement in SQL, parsed once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use esker_sql::{Statement, parse_statement};

use crate::Result;

/// The text of a statement. It is parsed once, by the first who needs to know what it says; what
/// is cloned of it shares that.
#[derive(Clone)]
pub struct SqlText(Arc<Parsed>);

struct Parsed {
    text: String,
    statement: OnceLock<Result<Statement>>,
}

impl SqlText {
    /// What it says.
    ///
    /// # Errors
    /// `InvalidRequest` with the place of a syntax error.
    pub fn statement(&self) -> Result<&Statement> {
        let parse = || Ok(parse_statement(&self.0.text)?);
        self.0.statement.get_or_init(parse).as_ref().map_err(Clone::clone)
    }
}

impl Deref for SqlText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl From<String> for SqlText {
    fn from(text: String) -> Self {
        Self(Arc::new(Parsed { text, statement: OnceLock::new() }))
    }
}

impl From<&str> for SqlText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for SqlText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
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
