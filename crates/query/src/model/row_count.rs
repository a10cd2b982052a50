//! How many rows: of `LIMIT` and `OFFSET`.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::Parameter;

/// A number of rows, or the parameter that says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RowCount {
    /// So many.
    Number(u64),
    /// As many as the statement is given when it is run.
    Parameter(Parameter),
}

impl RowCount {
    /// The number, where the query says it itself.
    #[must_use]
    pub const fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Parameter(_) => None,
        }
    }
}

impl Default for RowCount {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl From<u64> for RowCount {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl Display for RowCount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Parameter(parameter) => f.write_str(&parameter.name),
        }
    }
}
