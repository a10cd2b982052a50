//! Changes of rows, as every protocol and binding says them.

use serde::{Deserialize, Serialize};

use super::{Expr, Query};

/// A change of the rows of one table: all of it, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Add rows.
    Insert(Insert),
    /// Change fields of the rows that match.
    Update(Update),
    /// Remove the rows that match.
    Delete(Delete),
}

/// Rows to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insert {
    /// The table's name.
    pub table: String,
    /// The fields that the rows have values for; empty for every field, in their order. The
    /// others are NULL.
    #[serde(default)]
    pub fields: Vec<String>,
    /// The rows.
    pub rows: InsertRows,
    /// What happens when there is a row with the key of a new one.
    #[serde(default)]
    pub on_conflict: OnConflict,
}

/// Where the rows of an [`Insert`] come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertRows {
    /// Constant expressions, one list a row.
    Values(Vec<Vec<Expr>>),
    /// The answer to a query.
    Query(Query),
}

/// What happens to a row whose key exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The statement fails.
    #[default]
    Fail,
    /// The new row is left out.
    Skip,
    /// The new row replaces the old one.
    Replace,
}

/// New values for some fields of the rows that match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The table's name.
    pub table: String,
    /// Fields and their new values, computed from the row as it was.
    pub set: Vec<(String, Expr)>,
    /// Which rows; `None` for all.
    #[serde(default)]
    pub filter: Option<Expr>,
}

/// The rows to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delete {
    /// The table's name.
    pub table: String,
    /// Which rows; `None` for all.
    #[serde(default)]
    pub filter: Option<Expr>,
}
